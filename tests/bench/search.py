"""How fast the whole search is, beside SQLite's FTS5 and a whoosh as it comes, over the same pages in the same run.

    python tests/bench/search.py [--pages 10000] [--questions 200] [--edits 50] [--chunk 3000] [--grow 50000]

On one processor. Prints tables, and asserts nothing:

    search      FTS5 (porter, bm25), whoosh (StemmingAnalyzer, BM25F, OrGroup), `Index.search`, and the whole answer
                of the daemon's service with snippets, over all pages and for one project. Each question is put to all
                of them in turn: the first time, then again. Processor time, for others may be at work here
                (text at most 1.0 x FTS5 at the median, 1.5 x at the 95th percentile; the answer at most 3.0 x)
    build       pages a second beside whoosh, --chunk pages each in turn, and of all pages (at least 1.5 x whoosh)
    edit        a page written, named to the daemon's index and found (within 60 ms)
    start       `vaultd serve` on a vault that did not change, from the start of the process to the first answer that
                nothing is missing from (within 1 s), and its memory when idle (under 200 MB)
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

sys.path.pop(0)  # this folder: its http.py would be taken for Python's
sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from whoosh.analysis import StemmingAnalyzer
from whoosh.fields import ID, TEXT, Schema
from whoosh.index import create_in, open_dir
from whoosh.qparser import MultifieldParser, OrGroup
from whoosh.scoring import BM25F

import vaultd
from tests.bench.corpus import PROJECTS, Corpus
from tests.scratch import Scratch, git
from tests.waiting import until
from vaultd.client import Exchange
from vaultd.core.fusion import STREAMS
from vaultd.core.question import Question
from vaultd.engine.health import Pulse
from vaultd.engine.live import Live
from vaultd.engine.local import LocalService
from vaultd.engine.reconcile import document, open_index, rebuild
from vaultd.engine.service import Scope, Search
from vaultd.engine.stores import local_now
from vaultd.store.index import Index, Put
from vaultd.store.vault import PageStat

Way = Callable[[str], object]


class Quantiles(NamedTuple):
    """The 50th and the 95th percentile, in milliseconds."""

    p50: float
    p95: float


def quantiles(seconds: Sequence[float]) -> Quantiles:
    """Of some times."""
    ordered = sorted(seconds)
    return Quantiles(*(1000 * ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.95)))


def say(text: str) -> None:
    """Progress."""
    print(f"[{time.perf_counter():7.1f} s] {text}", file=sys.stderr, flush=True)


def cpu(work: Callable[[], object]) -> float:
    """Processor seconds that some work takes."""
    before = time.process_time()
    work()
    return time.process_time() - before


def folder_bytes(folder: Path) -> int:
    """What a folder takes on disk."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


class Bench:
    """A scratch vault with the pages, and what the others make of the same pages."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.corpus = Corpus()
        self.scratch = Scratch(base / "scratch")
        self.scratch.init()
        for number in range(PROJECTS):
            page = self.scratch.vault / f"projects/p{number}/project.md"
            page.parent.mkdir(parents=True)
            page.write_text(f"---\nid: p-{number:012}\n---\n# p{number}\n", "utf-8")
        self.pages = 0

    def grow(self, pages: int) -> None:
        """Have so many pages in the vault."""
        self.corpus.write(self.scratch.vault, range(self.pages, pages))
        self.pages = pages

    def put(self, number: int) -> Put:
        """A page as reconcile gives it to the index."""
        data = self.corpus.page(number).encode()
        stat = PageStat(self.corpus.path(number), number, number, len(data))
        return Put(document(stat, data, f"p-{number % PROJECTS:012}"))

    # What each makes of the pages

    def fts5(self, pages: int) -> None:
        """SQLite's full-text index."""
        file = self.base / "fts5.db"
        file.unlink(missing_ok=True)
        with sqlite3.connect(file) as db:
            db.execute("CREATE VIRTUAL TABLE pages USING fts5(path UNINDEXED, title, body, tokenize='porter')")
            rows = ((self.corpus.path(n), self.corpus.title(n), self.corpus.body(n)) for n in range(pages))
            db.executemany("INSERT INTO pages VALUES (?, ?, ?)", rows)
        db.close()

    def whoosh(self, pages: Iterable[tuple[str, str, str]], folder: Path) -> None:
        """whoosh as its manual has it, with the memory that it has by itself."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        text = StemmingAnalyzer()
        schema = Schema(path=ID(stored=True, unique=True), title=TEXT(analyzer=text), body=TEXT(analyzer=text))
        writer = create_in(str(folder), schema).writer(limitmb=128)
        for path, title, body in pages:
            writer.add_document(path=path, title=title, body=body)
        writer.commit()

    def texts(self, numbers: range) -> list[tuple[str, str, str]]:
        """Path, title and body."""
        return [(self.corpus.path(n), self.corpus.title(n), self.corpus.body(n)) for n in numbers]

    # The tables

    def builds(self, chunk: int, rounds: int = 3) -> None:
        """Pages a second of whoosh and of ours, one after the other."""
        ours: list[float] = []
        theirs: list[float] = []
        for number in range(rounds):
            numbers = range(number * chunk, (number + 1) * chunk)
            texts, puts = self.texts(numbers), [self.put(n) for n in numbers]
            theirs.append(chunk / cpu(partial(self.whoosh, texts, self.base / "stock-chunk")))
            index = Index(self.base / "chunk", self.scratch.vault)
            ours.append(chunk / cpu(partial(index.rebuild, puts)))
            index.close()
            say(f"round {number + 1}: whoosh {theirs[-1]:.0f}, ours {ours[-1]:.0f} pages a second")
        median = sorted(ours)[rounds // 2], sorted(theirs)[rounds // 2]
        ratio = sorted(mine / its for mine, its in zip(ours, theirs, strict=True))[rounds // 2]
        print(
            f"build, {chunk} pages: whoosh {median[1]:.0f}, ours {median[0]:.0f} pages a second: {ratio:.2f} x",
            flush=True,
        )

    def whole_build(self) -> None:
        """All pages, from the disk."""
        wall = time.perf_counter()
        took = cpu(partial(rebuild, self.scratch.stores()))
        wall = time.perf_counter() - wall
        size = folder_bytes(self.scratch.config.places.index(self.scratch.vault)) / 1e6
        print(
            f"build of all {self.pages} pages from disk: {self.pages / took:.0f} pages a second"
            f" ({took:.1f} s of processor, {wall:.1f} s); {size:.1f} MB on disk",
            flush=True,
        )

    def searches(self, count: int) -> None:
        """Every question to everybody."""
        stores = self.scratch.stores()
        say("FTS5 and whoosh read the pages")
        self.fts5(self.pages)
        self.whoosh(self.texts(range(self.pages)), self.base / "stock")
        index = open_index(stores)
        lives = [Live(stores, watch=True) for _ in range(2)]
        services = [LocalService(self.scratch.stores, live, Pulse(), lambda _: None) for live in lives]
        for live in lives:
            live.scan()
        now, beyond_text = local_now(), frozenset(STREAMS) - {"text"}
        ways: dict[str, Way] = {
            "FTS5": fts5(self.base / "fts5.db"),
            "whoosh": stock(self.base / "stock"),
            "Index.search, text alone": lambda text: index.search(Question(text, now, without=beyond_text)),
            "Index.search": lambda text: index.search(Question(text, now)),
            "the answer, everywhere": partial(services[0].query, Scope(), search=Search(everywhere=True)),
            "the answer, in a project": partial(services[1].query, Scope(project="p3")),
        }
        questions = self.corpus.questions(self.pages, count)
        for when in ("the first time", "again"):
            say(f"{count} questions {when}")
            took: dict[str, list[float]] = {name: [] for name in ways}
            for question in questions:
                for name, search in ways.items():
                    before = time.thread_time()
                    search(question)
                    took[name].append(time.thread_time() - before)
            print(f"\n{f'search, {self.pages} pages, {when}':44}{'p50 ms':>8}{'x FTS5':>8}{'p95 ms':>10}{'x FTS5':>8}")
            base = quantiles(took["FTS5"])
            for name, seconds in took.items():
                had = quantiles(seconds)
                ratio = had.p50 / base.p50, had.p95 / base.p95
                print(f"{name:44}{had.p50:8.2f}{ratio[0]:8.2f}{had.p95:10.2f}{ratio[1]:8.2f}", flush=True)
        index.close()
        for live in lives:
            live.close()
        print()

    def edits(self, count: int, questions: int) -> None:
        """Pages changed while the daemon's index is open."""
        stores = self.scratch.stores()
        live = Live(stores, watch=True)
        service = LocalService(self.scratch.stores, live, Pulse(), lambda _: None)
        live.scan()
        chance, took, busy = random.Random(5), [], []
        service.query(Scope(), "anything", Search(everywhere=True))
        for number in range(count):
            path = self.corpus.path(chance.randrange(self.pages))
            word = "zq" + "".join(chance.choices("bcdfghjklm", k=12))
            page = self.scratch.vault / path
            text = page.read_text("utf-8") + f"\n{word}\n"
            before, cpu_before = time.perf_counter(), time.thread_time()
            page.write_text(text, "utf-8")
            live.touched([path])
            hits: Any = service.query(Scope(), word, Search(everywhere=True))["hits"]
            took.append(time.perf_counter() - before)
            busy.append(time.thread_time() - cpu_before)
            assert [hit["path"] for hit in hits] == [path]
            if number % 10 == 9:  # as the index loop does it after changes
                live.compact()
        wall, used = quantiles(took), quantiles(busy)
        print(
            f"edit to found, {self.pages} pages: p50 {wall.p50:.0f} ms, p95 {wall.p95:.0f} ms"
            f" (processor {used.p50:.0f}, {used.p95:.0f})"
        )
        asked = self.corpus.questions(self.pages, questions)
        had = quantiles(
            [cpu(partial(live.index.search, Question(question, local_now()))) for question in asked * 2][questions:]
        )
        print(f"Index.search after {count} edits, again: p50 {had.p50:.2f} ms, p95 {had.p95:.2f} ms", flush=True)
        live.close()

    def daemon(self, starts: int = 3) -> None:
        """`vaultd serve` as a process of its own, on a vault that is in git, compiled as an installation leaves it."""
        compileall.compile_dir(Path(vaultd.__file__).parent, quiet=1)
        for command in ("add", "-A"), ("commit", "-q", "-m", "the pages"):
            git(*command, cwd=self.scratch.vault)
        with serving(self.scratch) as pid:  # and served before: git and the disk are done with all those pages
            until(partial(at_rest, pid), 120, 0.1)
        took, busy = [], []
        for number in range(starts):
            began = time.perf_counter()
            with serving(self.scratch) as pid:
                took.append(time.perf_counter() - began)
                busy.append(used(pid))
                if number == starts - 1:
                    until(partial(at_rest, pid), 120, 0.1)
                    wall, cpus = sorted(took)[starts // 2], sorted(busy)[starts // 2]
                    print(f"start to first answer, {self.pages} pages: {wall:.2f} s (processor {cpus:.2f})")
                    print(f"daemon, idle after the start: {memory(pid)}")
                    for question in self.corpus.questions(self.pages, 200):
                        asked(self.scratch, question)
                    until(partial(at_rest, pid), 120, 0.1)
                    print(f"daemon, idle after 200 questions: {memory(pid)}", flush=True)


def fts5(file: Path) -> Way:
    """Searches of an open FTS5 table, with as much memory as our postings have."""
    db = sqlite3.connect(file)
    db.execute("PRAGMA cache_size = -65536")
    select = "SELECT path FROM pages WHERE pages MATCH ? ORDER BY bm25(pages, 0, 3.0, 1.0) LIMIT 10"

    def search(question: str) -> object:
        words = " OR ".join('"' + word.replace('"', '""') + '"' for word in question.split())
        return db.execute(select, (words,)).fetchall()

    return search


def stock(folder: Path) -> Way:
    """Searches of an open whoosh index."""
    searcher = open_dir(str(folder)).searcher(weighting=BM25F())
    parser = MultifieldParser(["title", "body"], searcher.schema, fieldboosts={"title": 3.0}, group=OrGroup)
    plain = str.maketrans(dict.fromkeys("\"'()[]{}*?^~:+-!&|/", " "))

    def search(question: str) -> object:
        return [hit["path"] for hit in searcher.search(parser.parse(question.translate(plain)), limit=10)]

    return search


class serving:
    """A daemon in the foreground, ready when it has answered with all pages; its process id."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        command = [sys.executable, "-P", "-m", "vaultd", "--vault", str(scratch.vault), "serve"]
        self._process = subprocess.Popen(
            command, cwd=scratch.base, env=scratch.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def __enter__(self) -> int:
        until(partial(complete, self._scratch), 600, 0.02)
        return self._process.pid

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)


def complete(scratch: Scratch) -> bool:
    """Whether the daemon answers, and knows all pages."""
    try:
        return asked(scratch, "anything").get("pending") == 0
    except Exception:  # noqa: BLE001  it does not listen yet
        return False


def asked(scratch: Scratch, question: str) -> dict[str, object]:
    """The daemon's answer."""
    exchange = Exchange(str(scratch.config.places.socket(scratch.vault)), 60)
    reply = exchange.run(f"/api/v1/search?everywhere=true&query={quote(question)}", b"", {}, "GET")
    told: dict[str, object] = json.loads(reply.body)
    return told


def at_rest(pid: int) -> bool:
    """Whether a process used less than a twentieth of a processor for two seconds."""
    before = used(pid)
    time.sleep(2)
    return used(pid) - before < 0.1


def used(pid: int) -> float:
    """Processor seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> str:
    """What a process has in memory, and its share of it."""

    def rows(name: str) -> Iterator[tuple[str, str]]:
        for row in Path(f"/proc/{pid}/{name}").read_text().splitlines():
            name, _, value = row.partition(":")
            yield name, value.split()[0] if value.split() else ""

    status, share = dict(rows("status")), dict(rows("smaps_rollup"))
    most = f"{int(status['VmHWM']) // 1024} MB at most"
    return f"VmRSS {int(status['VmRSS']) // 1024} MB, Pss {int(share['Pss']) // 1024} MB, {most}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in {"pages": 10_000, "questions": 200, "edits": 50, "chunk": 3000, "grow": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    base = Path(tempfile.mkdtemp(prefix="vaultd-bench-"))
    try:
        bench = Bench(base)
        bench.builds(options.chunk)
        for pages in filter(None, (options.pages, options.grow)):
            say(f"writing {pages} pages")
            bench.grow(pages)
            bench.whole_build()
            bench.searches(options.questions)
            bench.daemon()
            bench.edits(options.edits, options.questions)
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main()
