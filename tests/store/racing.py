"""Editors that save as fast as they can while vaultd writes the same pages, and a count of the saves that got lost.

By hand: `python -m tests.store.racing --swaps 5000` (of each style; `--naive` shows what a check and a rename lose).

Each editor is a process of its own with its own pages. It puts a number into a page, saves, and goes on to the next
page; a page is saved again only after its last number was seen in it, or beside it, again. A number that is not seen
within `PATIENCE` seconds was lost. vaultd's part reads a page, adds a line to what it read, and writes it back.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from vaultd.store import fs
from vaultd.store.swap import QUIET, Batch, Change, SwapResult

PATIENCE = 8.0
STYLES = ("in-place", "rename", "vim")
ROOT = Path(__file__).resolve().parents[2]


def save_in_place(page: Path, text: bytes) -> None:
    handle = os.open(page, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        half = len(text) // 2
        os.write(handle, text[:half])
        os.write(handle, text[half:])
    finally:
        os.close(handle)


def save_by_rename(page: Path, text: bytes) -> None:
    temp = page.with_name(page.name + ".new")
    temp.write_bytes(text)
    temp.replace(page)


def save_like_vim(page: Path, text: bytes) -> None:
    backup = page.with_name(page.name + "~")
    page.replace(backup)
    save_in_place(page, text)
    backup.unlink(missing_ok=True)


SAVE: dict[str, Callable[[Path, bytes], None]] = dict(
    zip(STYLES, (save_in_place, save_by_rename, save_like_vim), strict=True)
)


def edit(style: str, folder: Path, count: int, seed: int) -> dict[str, int]:
    """Save the pages until standard input ends; how many saves were made, checked and lost."""
    chance = random.Random(seed)
    pages = [folder / f"{style}-{number}.md" for number in range(count)]
    number = dict.fromkeys(pages, 0)
    waiting: dict[Path, float] = {}
    tally = Counter(saves=0, checked=0, lost=0)
    os.set_blocking(0, False)
    stopping = False
    while not stopping or waiting:
        stopping = stopping or _is_over()
        for page in pages:
            if page in waiting:
                if _holds(page, number[page]):
                    tally["checked"] += 1
                elif time.monotonic() < waiting[page]:
                    continue
                else:
                    tally["lost"] += 1
                    print(f"lost: {page.name} save {number[page]}", file=sys.stderr)
                    for path in folder.glob("*"):
                        with contextlib.suppress(FileNotFoundError):
                            if _text(page, number[page]) in path.read_bytes():
                                print(f"it is in {path.name}", file=sys.stderr)
                del waiting[page]
            if not stopping:
                for _ in range(chance.choice((1, 1, 1, 2, 5))):
                    number[page] += 1
                    SAVE[style](page, _text(page, number[page]) + b"\n" + b"x" * chance.randrange(3000) + b"\n")
                    tally["saves"] += 1
                waiting[page] = time.monotonic() + PATIENCE
    return dict(tally)


def _text(page: Path, number: int) -> bytes:
    return f"save {number} of {page.name}.".encode()


def _is_over() -> bool:
    try:
        return os.read(0, 1) == b""
    except BlockingIOError:
        return False


def _holds(page: Path, number: int) -> bool:
    """Whether the save can be read in the page, or in a file that was kept beside it."""
    wanted = _text(page, number)
    try:
        if page.read_bytes().startswith(wanted):
            return True
    except FileNotFoundError:
        return False
    return any(kept.read_bytes().startswith(wanted) for kept in page.parent.glob(f"{page.stem} (kept *"))


@dataclass
class Race:
    """What both sides counted, by style."""

    results: dict[str, Counter[str]] = field(default_factory=dict)
    editors: dict[str, dict[str, int]] = field(default_factory=dict)
    kept: int = 0
    seconds: float = 0.0

    @property
    def lost(self) -> int:
        return sum(tally["lost"] for tally in self.editors.values())

    def __str__(self) -> str:
        rows = [f"{style}: ours {dict(self.results[style])}, theirs {self.editors[style]}" for style in self.results]
        return "\n".join([*rows, f"kept beside: {self.kept}, {self.seconds:.1f} s"])


@contextlib.contextmanager
def editors(folder: Path, count: int, styles: tuple[str, ...], seed: int, race: Race) -> Iterator[None]:
    """One editor process a style while the block runs; what they counted is in `race` afterwards."""
    for style in styles:
        for number in range(count):
            (folder / f"{style}-{number}.md").write_bytes(b"save 0.\n")
    command = [sys.executable, "-m", "tests.store.racing", "--edit"]
    running = {
        style: subprocess.Popen(
            [*command, style, str(folder), str(count), str(seed)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for style in styles
    }
    try:
        yield
        for style, process in running.items():
            out, _ = process.communicate(timeout=PATIENCE + 30)
            race.editors[style] = json.loads(out)
    finally:
        for process in running.values():
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    pipe.close()


def run(
    folder: Path,
    swaps: int,
    *,
    count: int = 25,
    styles: tuple[str, ...] = STYLES,
    naive: bool = False,
    seed: int = 1,
    seconds: float = 0.0,
) -> Race:
    """Race until `swaps` writes of ours were tried for each style, and for so many seconds at least."""
    race = Race({style: Counter() for style in styles})
    began = time.monotonic()
    with editors(folder, count, styles, seed, race):
        written = 0
        while written < swaps or time.monotonic() - began < seconds:
            written += count
            pages = [(style, folder / f"{style}-{number}.md") for style in styles for number in range(count)]
            _write_all(pages, race, written, naive)
    race.seconds = time.monotonic() - began
    return race


def _write_all(pages: list[tuple[str, Path]], race: Race, turn: int, naive: bool) -> None:
    results: dict[Path, SwapResult] = {}
    with Batch(quiet=QUIET, sync=False) as batch:
        for _, page in pages:
            try:
                data = page.read_bytes()
            except FileNotFoundError:
                results[page] = SwapResult.GONE
                continue
            change = Change(page, data.partition(b"vaultd")[0] + b"vaultd %d\n" % turn, fs.revision(data))
            results[page] = check_then_rename(change) if naive else batch.swap(change)
    race.kept += len(batch.kept)
    for style, page in pages:
        race.results[style][results[page].value] += 1
        if page in batch.undone:
            race.results[style][f"undone: {batch.undone[page].value}"] += 1


def write_for_ever(folder: Path, count: int) -> None:
    """Our part alone, until it is killed; prints a line after each batch."""
    race = Race({style: Counter() for style in STYLES})
    pages = [(style, folder / f"{style}-{number}.md") for style in STYLES for number in range(count)]
    turn = 0
    while True:
        turn += 1
        _write_all(pages, race, turn, naive=False)
        print(turn, flush=True)


def check_then_rename(change: Change) -> SwapResult:
    """What everybody does: compare, then rename over it."""
    temp = fs.temp_beside(change.path, change.data, sync=False)
    try:
        if fs.revision(change.path.read_bytes()) != change.expected:
            fs.remove(temp)
            return SwapResult.DIVERGED
    except FileNotFoundError:
        fs.remove(temp)
        return SwapResult.GONE
    fs.replace(temp, change.path)
    return SwapResult.WRITTEN


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--edit", nargs=4)
    parser.add_argument("--write", nargs=2)
    parser.add_argument("--swaps", type=int, default=1000)
    parser.add_argument("--pages", type=int, default=25)
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--naive", action="store_true")
    given = parser.parse_args()
    if given.edit:
        style, folder, count, seed = given.edit
        print(json.dumps(edit(style, Path(folder), int(count), int(seed))))
        return
    if given.write:
        write_for_ever(Path(given.write[0]), int(given.write[1]))
    with tempfile.TemporaryDirectory() as scratch:
        race = run(
            Path(scratch),
            given.swaps,
            count=given.pages,
            naive=given.naive,
            seed=given.seed,
            seconds=given.seconds,
        )
        left = [path for path in Path(scratch).iterdir() if path.name.startswith(fs.TEMP_PREFIX)]
    print(race)
    print(f"lost: {race.lost}, temp files left: {len(left)}")


if __name__ == "__main__":
    main()
