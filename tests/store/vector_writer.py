"""A process that appends vectors until it is stopped; every batch that is kept is a line on its standard output.

python -m tests.store.vector_writer FOLDER VAULT FIRST COUNT     batches FIRST .. FIRST+COUNT-1, then it ends
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.store.index_writer import page
from vaultd.core.embedding import unit
from vaultd.store.vectors import Kind, PageVectors, Vectors

KIND = Kind("words", "count", 300)


def batch(number: int) -> list[PageVectors]:
    """One batch: a page with two vectors, and the page three further on dropped."""
    vectors = [unit([float(number == place) + 0.01 for place in range(300)]), unit([1.0] * 300)]
    return [PageVectors(page(number + 3), "", ()), PageVectors(page(number), f"r{number}", vectors)]


def main() -> None:
    """Write the batches that the command line names."""
    folder, vault, first, count = sys.argv[1:]
    vectors = Vectors(Path(folder), Path(vault), KIND)
    for number in range(int(first), int(first) + int(count)):
        vectors.put(batch(number))
        vectors.compact()
        print(number, flush=True)


if __name__ == "__main__":
    main()
