"""How soon a person's edit can be found, as a process beside a running daemon.

    python tests/bench/watch.py [--pages 10000] [--edits 40] [--idle 20] [--files 5000]

Prints, and asserts nothing: the time from an editor's save to the first search that finds it (median within 250 ms with
watching), with watching on and off; the processor time of the idle daemon; how long after a `git checkout` that
changes --files pages the last of them is found; memory.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

sys.path.pop(0)  # this folder: its http.py would be taken for Python's
sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from tests.bench.daemon import pages
from tests.scratch import Scratch, git
from tests.waiting import until
from vaultd.client import Exchange


def asked(scratch: Scratch, path: str) -> dict[str, object]:
    """A reply of the daemon over its socket."""
    exchange = Exchange(str(scratch.config.places.socket(scratch.vault)), 60)
    told: dict[str, object] = json.loads(exchange.run(f"/api/v1{path}", b"", {}, "GET").body)
    return told


def found(scratch: Scratch, word: str) -> bool:
    """Whether a search for a word has hits."""
    return bool(asked(scratch, f"/search?everywhere=true&query={quote(word)}").get("hits"))


def word(chance: random.Random) -> str:
    """A word that no page has."""
    return "zq" + "".join(chance.choices("bcdfghklmnprstvw", k=10))


def edits(scratch: Scratch, count: int) -> list[float]:
    """Seconds from each save to the first search that finds it."""
    chance, took = random.Random(11), []
    every = sorted((scratch.vault / "notes").rglob("*.md"))
    for number in range(count):
        page, told = chance.choice(every), word(chance)
        text = page.read_text() + f"\n{told}\n"
        began = time.perf_counter()
        if number % 2:
            (page.parent / ".new").write_text(text)
            (page.parent / ".new").rename(page)
        else:
            page.write_text(text)
        until(lambda told=told: found(scratch, told), 30, 0.005)  # type: ignore[misc]  # the word of this round
        took.append(time.perf_counter() - began)
    return took


def cpu(pid: int) -> float:
    """Seconds of processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> int:
    """Resident memory in MB."""
    rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(row for row in rows if row.startswith("VmRSS")).split()[1]) // 1024


def checkout(scratch: Scratch, files: int) -> float:
    """Seconds until the last of so many pages, changed by `git checkout`, is found."""
    chance = random.Random(5)
    every = sorted((scratch.vault / "notes").rglob("*.md"))[:files]
    words = [word(chance) for _ in every]
    git("add", "-A", cwd=scratch.vault)
    git("commit", "-q", "-m", "before", "--allow-empty", cwd=scratch.vault)
    branch = git("branch", "--show-current", cwd=scratch.vault).strip()
    git("checkout", "-q", "-b", "other", cwd=scratch.vault)
    for page, told in zip(every, words, strict=True):
        page.write_text(f"# {told}\n\nchanged\n")
    git("commit", "-q", "-a", "-m", "other", cwd=scratch.vault)
    git("checkout", "-q", branch, cwd=scratch.vault)
    until(lambda: not found(scratch, words[0]) and not found(scratch, words[-1]), 600, 0.5)
    git("checkout", "-q", "other", cwd=scratch.vault)
    began = time.perf_counter()
    until(lambda: all(found(scratch, told) for told in (words[0], words[-1], words[len(words) // 2])), 600, 0.2)
    return time.perf_counter() - began


def measure(options: argparse.Namespace, watch: bool) -> None:
    """One daemon, with or without watching."""
    base = Path(tempfile.mkdtemp(prefix="vaultd-bench-"))
    scratch = Scratch(base)
    try:
        scratch.init()
        pages(scratch.vault, options.pages, "notes")
        (scratch.vault / "vaultd.toml").write_text(f"[daemon]\nwatch = {'true' if watch else 'false'}\n")
        git("add", "-A", cwd=scratch.vault)
        git("commit", "-q", "-m", "pages", cwd=scratch.vault)
        scratch.run("reindex", check=True)
        scratch.run("up", check=True)
        pid = json.loads((scratch.vault / ".vaultd/daemon.json").read_text())["pid"]
        until(lambda: asked(scratch, "/search?everywhere=true&query=loader")["pending"] == 0, 300, 0.2)
        took = sorted(1000 * seconds for seconds in edits(scratch, options.edits))
        p95 = took[int(0.95 * (len(took) - 1))]
        name = f"watch {'on' if watch else 'off'}, {options.pages} pages"
        print(f"{name}: edit to found p50 {statistics.median(took):.0f} ms, p95 {p95:.0f} ms, most {took[-1]:.0f} ms")
        time.sleep(5)
        before = cpu(pid)
        time.sleep(options.idle)
        print(f"{name}: idle {100 * (cpu(pid) - before) / options.idle:.2f} % of a processor, {memory(pid)} MB")
        if watch and options.files:
            print(f"{name}: {options.files} files of a checkout found after {checkout(scratch, options.files):.1f} s")
            print(f"{name}: {memory(pid)} MB")
    finally:
        scratch.run("down")
        shutil.rmtree(base, ignore_errors=True)


def main() -> None:
    """Measure with watching on, then off."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--edits", type=int, default=40)
    parser.add_argument("--idle", type=float, default=20.0)
    parser.add_argument("--files", type=int, default=5_000)
    options = parser.parse_args()
    measure(options, True)
    measure(options, False)


if __name__ == "__main__":
    main()
