"""A process that writes an index until it is stopped; every finished commit is a line on its standard output.

python -m tests.store.index_writer FOLDER VAULT FIRST COUNT     batches FIRST .. FIRST+COUNT-1, then it ends
"""

from __future__ import annotations

import sys
from pathlib import Path

from vaultd.store.index import Drop, Index, IndexDoc, Put

PAGES = 7
"""How many pages the batches go round over."""


def page(batch: int) -> str:
    """The page that a batch writes."""
    return f"notes/page{batch % PAGES}.md"


def word(number: int) -> str:
    """A word that only one batch writes."""
    return "only" + "".join(chr(ord("a") + int(digit)) for digit in str(number)) + "x"


def batch(number: int) -> list[Put | Drop]:
    """One commit: a page written, the page three further on dropped."""
    name = page(number)
    doc = IndexDoc(
        name, title=name, body=f"common words and {word(number)} of {name}", revision=f"r{number}", size=number
    )
    return [Drop(page(number + 3)), Put(doc)]


def after(count: int) -> dict[str, str]:
    """Path to revision after the first `count` batches."""
    pages: dict[str, str] = {}
    for number in range(count):
        pages.pop(page(number + 3), None)
        pages[page(number)] = f"r{number}"
    return pages


def main() -> None:
    """Write the batches that the command line names."""
    folder, vault, first, count = sys.argv[1:]
    index = Index(Path(folder), Path(vault))
    for number in range(int(first), int(first) + int(count)):
        index.apply(batch(number))
        if number % 12 == 11:
            index.compact()
        print(number, flush=True)


if __name__ == "__main__":
    main()
