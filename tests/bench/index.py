"""What the index costs, against a plain scan of the same files in the same run.

    python -m tests.bench.index [--pages N] [--words N] [--updates N] [--queries N]

Pages are synthetic: words drawn by Zipf's law, some of them names as they stand in code. Prints milliseconds (p50, p95)
and ratios to the scan, which reads every file and looks for each word of the query; asserts nothing.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from itertools import accumulate
from pathlib import Path

from vaultd.core.markdown import locate
from vaultd.store.index import Index, IndexDoc, Put

VOCABULARY = 30_000
LENGTHS = (1, 3, 10)


class Corpus:
    """Pages on disk and words to ask for, the same in every run."""

    def __init__(self, root: Path, words: int) -> None:
        self.root = root
        self.words = words
        self.chance = random.Random(7)
        self.vocabulary = [self._word(number) for number in range(VOCABULARY)]
        self.weights = list(accumulate(1 / (number + 10) for number in range(VOCABULARY)))

    def _word(self, number: int) -> str:
        """A word by its rank: mostly plain ones, some names."""
        plain = "".join(self.chance.choices("abcdefghiklmnoprstuw", k=3 + number % 8))
        if number % 10 == 7:
            return f"{plain}_{plain[::-1]}"
        if number % 10 == 8:
            return plain + plain[:3].title()
        if number % 10 == 9:
            return f"src/{plain}/{plain[:4]}.py"
        return plain

    def text(self) -> str:
        """A page's text, in lines of about twelve words under a heading."""
        words = self.chance.choices(self.vocabulary, cum_weights=self.weights, k=self.words)
        lines = [" ".join(words[start : start + 12]) for start in range(0, len(words), 12)]
        return "# " + " ".join(words[:3]) + "\n\n" + "\n".join(lines) + "\n"

    def write(self, pages: int) -> None:
        """Put all pages on disk."""
        for number in range(pages):
            path = self.root / self.path(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.text(), "utf-8")

    def path(self, number: int) -> str:
        """A page's path in the vault."""
        return f"projects/p{number % 7}/notes/n{number:06}.md"

    def put(self, number: int) -> Put:
        """A page as reconcile gives it to the index."""
        path = self.path(number)
        body = (self.root / path).read_text("utf-8")
        stat = (self.root / path).stat()
        return Put(
            IndexDoc(
                path,
                title=body[2 : body.index("\n")],
                body=body,
                kind="note",
                project=f"p-{number % 7}",
                inode=stat.st_ino,
                mtime_ns=stat.st_mtime_ns,
                size=stat.st_size,
                revision=f"{number:064}",
            )
        )

    def queries(self, count: int, length: int) -> list[str]:
        """Queries of some words each, rare and common ones."""
        return [" ".join(self.chance.choices(self.vocabulary[20:8000], k=length)) for _ in range(count)]

    def scan(self, query: str) -> int:
        """How many pages hold a word of the query, by reading them all."""
        wanted = [word.lower().encode() for word in query.split()]
        found = 0
        for folder, _, names in os.walk(self.root):
            for name in names:
                data = (Path(folder) / name).read_bytes().lower()
                found += any(word in data for word in wanted)
        return found


def times(calls: Iterable[Callable[[], object]]) -> tuple[float, float]:
    """Milliseconds of each call: p50 and p95."""
    taken = []
    for call in calls:
        start = time.perf_counter()
        call()
        taken.append((time.perf_counter() - start) * 1000)
    return statistics.median(taken), sorted(taken)[int(len(taken) * 0.95)]


def show(name: str, figures: tuple[float, float], base: float | None = None) -> None:
    """One line of the table."""
    ratio = f"{figures[0] / base:10.3f}" if base else ""
    print(f"{name:<44}{figures[0]:10.2f}{figures[1]:10.2f}{ratio}", flush=True)


def measure(corpus: Corpus, folder: Path, args: argparse.Namespace) -> None:
    """Build, open, update, search and compact, and print what each took."""
    index = Index(folder, corpus.root)
    start, cpu = time.perf_counter(), time.process_time()
    index.rebuild(map(corpus.put, range(args.pages)))
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{args.pages} pages of {args.words} words: {wall:.1f} s ({cpu:.1f} s of CPU), {size / 1e6:.1f} MB\n")

    print(f"{'milliseconds':<44}{'p50':>10}{'p95':>10}{'/ scan':>10}")
    scan = times(partial(corpus.scan, query) for query in corpus.queries(5, 3))
    show("scan of all files, 3 words", scan)
    fresh = [Index(folder, corpus.root) for _ in range(5)]
    show("open, check sums, first search", times(partial(opened.search, "word", 10) for opened in fresh), scan[0])
    show("what is known of all pages", times(index.known for _ in range(5)), scan[0])
    searches(corpus, index, args.queries, scan[0], "one segment")
    updates = times(partial(change, corpus, index, number) for number in range(args.updates))
    show("one page changed and found", updates, scan[0])
    searches(corpus, index, args.queries, scan[0], f"{args.updates + 1} segments")
    show("compact", times(index.compact for _ in range(1)), scan[0])
    body = corpus.text()
    show("place and snippet in a page", times(partial(locate, body, query) for query in corpus.queries(50, 3)), scan[0])
    for opened in (index, *fresh):
        opened.close()


def change(corpus: Corpus, index: Index, number: int) -> None:
    """Index one page again and search at once."""
    index.apply([corpus.put(number)])
    index.search("word", 10)


def searches(corpus: Corpus, index: Index, count: int, base: float, note: str) -> None:
    """Searches of several lengths, in the whole vault and in one project."""
    for length in LENGTHS:
        calls = (partial(index.search, query, 10) for query in corpus.queries(count, length))
        show(f"search, {length} words, {note}", times(calls), base)
    calls = (partial(index.search, query, 10, project="p-1") for query in corpus.queries(count, 3))
    show(f"search, 3 words in a project, {note}", times(calls), base)


def main() -> None:
    """Measure once."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--words", type=int, default=250)
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--queries", type=int, default=100)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vaultd-bench-") as base:
        corpus = Corpus(Path(base) / "vault", args.words)
        corpus.write(args.pages)
        measure(corpus, Path(base) / "cache" / "index", args)


if __name__ == "__main__":
    main()
