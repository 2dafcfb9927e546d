"""Replace a page beside a person who may be saving it: compare-and-swap against the revision that was read.

The danger is an editor that opened the page before our write and saves after it: into the old inode, which has no name
any more. On Linux each swap therefore goes like this:

1. Write lease on the page (F_SETLEASE). It is refused while anybody has the page open: BUSY. Whoever opens the page
   from now on waits in `open` until the lease ends; that is well under a millisecond.
2. Compare with the expected revision, exchange the page with the prepared file (RENAME_EXCHANGE), and look at which
   inode came out. Another one than the leased: an editor renamed a new text there meanwhile. It goes back: DIVERGED.
3. End the lease. The old inode keeps a temp name for `QUIET` seconds, so that a save which was waiting, or was already
   on its way to it, lands in a file that still has a name.
4. Lease and compare the old inode again. As before: its name is removed. Changed, or open: it goes back into place.

What is taken out again in 2 and 4 was visible for a moment and may have been opened; it is retired by 3 and 4 as well.
A text of the person's whose place was meanwhile taken by a newer one of theirs is kept beside the page under a name
that says so. Where there are no leases (another system or file system, a page of another user): only files that were
quiet for `STILL` seconds, compared at the last moment, and 4 without the lease. Where there is no exchange: a rename.

Crash: before the exchange a temp file is litter. After it the page is ours, whole, and the temp name holds the old text
or what was saved into it since; its name says which revisions may be dropped; store/rescue.py brings any other back.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Self

from vaultd.store import fs, lease
from vaultd.store.fs import Revision
from vaultd.store.lease import Hold
from vaultd.store.retired import PIN, Retired, age, inode, open_plain, prepare, put_under, read_all, short

__all__ = ["QUIET", "Batch", "Change", "SwapResult", "swap", "swap_many"]

QUIET = 0.5
"""Seconds for which an inode that was taken out of its place keeps a name."""

STILL = 2.0
"""Where leases are refused: seconds since a page's last change before it is replaced."""

_LIMIT = 100  # files in one batch before it settles by itself; each holds one descriptor
_ROUNDS = 6


class SwapResult(Enum):
    """What became of a swap."""

    WRITTEN = "written"
    """The page has the new bytes."""
    DIVERGED = "diverged"
    """The page no longer has the expected revision; the person's text stands."""
    BUSY = "busy"
    """Somebody has the page open or is saving it; their text stands. Come back later."""
    GONE = "gone"
    """There is no such file."""


@dataclass(frozen=True, slots=True)
class Change:
    """One page to replace: `data` for what has the revision `expected` now. `path` must not be a symlink."""

    path: Path
    data: bytes
    expected: Revision


def swap(path: Path, data: bytes, expected: Revision, *, quiet: float = QUIET, sync: bool = True) -> SwapResult:
    """Replace the file's bytes if they still have the revision `expected`; takes `quiet` seconds when it does.

    Mode, owner and extended attributes stay. With `sync` the bytes and the folder are synced. OSError as it comes
    (disk full, read-only): the page is as it was.
    """
    return swap_many([Change(path, data, expected)], quiet=quiet, sync=sync)[0]


def swap_many(changes: Sequence[Change], *, quiet: float = QUIET, sync: bool = True) -> list[SwapResult]:
    """`swap` for many different files with one wait per hundred; results in the order of `changes`."""
    with Batch(quiet=quiet, sync=sync) as batch:
        results = [batch.swap(change) for change in changes]
    return [batch.undone.get(change.path, result) for change, result in zip(changes, results, strict=True)]


class Batch:
    """Swaps that share one wait: `swap` answers at once, `settle` (or the end of the `with` block) makes sure.

    After that `undone` holds the pages whose WRITTEN did not stand, `restored` those that got a person's text back, and
    `kept` the files that were put beside a page to keep a person's text. `clock` and `pause` are in seconds.
    """

    def __init__(
        self,
        *,
        quiet: float = QUIET,
        sync: bool = True,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.undone: dict[Path, SwapResult] = {}
        self.restored: list[Path] = []
        self.kept: list[Path] = []
        self._quiet, self._sync, self._clock, self._pause = quiet, sync, clock, pause
        self._retired: list[Retired] = []
        self._ours: dict[int, tuple[int, Revision]] = {}  # by inode; the descriptor keeps its number from other files
        self._last = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.settle()

    def swap(self, change: Change) -> SwapResult:
        """Steps 1 to 3 for one page. WRITTEN is what the page holds now; `undone` may take it back."""
        if len(self._retired) >= _LIMIT:
            self.settle()
        with contextlib.ExitStack() as undo:
            try:
                handle = open_plain(change.path)
            except (FileNotFoundError, NotADirectoryError):
                return SwapResult.GONE
            undo.callback(os.close, handle)
            if fs.revision(read_all(handle)) != change.expected:
                return SwapResult.DIVERGED
            temp = prepare(change.path, change.data, change.expected, handle)
            undo.callback(fs.remove, temp)
            hold = lease.take(handle)
            undo.callback(lease.let_go, handle)
            if hold is Hold.BUSY or (hold is Hold.NONE and age(temp, handle) < STILL):
                return SwapResult.BUSY
            if fs.revision(read_all(handle)) != change.expected:
                return SwapResult.DIVERGED
            pin = os.open(temp, PIN)
            undo.callback(os.close, pin)
            try:
                if not fs.exchange(temp, change.path):
                    fs.replace(temp, change.path)
                    return SwapResult.WRITTEN
            except FileNotFoundError:
                return SwapResult.BUSY  # an editor has the page between two names, or it was moved this moment
            undo.pop_all()  # from here on the temp name holds what stood in the page's place
        self.own(pin, fs.revision(change.data))
        result = self._look(change, temp, handle, hold)
        if self._sync:
            fs.sync_folder(change.path.parent)
        return result

    def settle(self) -> None:
        """Step 4 for every page: waits until the last exchange is `quiet` seconds old, then compares.

        What is still open elsewhere after a few rounds keeps its temp name, for `rescue` to look at.
        """
        for _ in range(_ROUNDS):
            if not self._retired:
                break
            self._pause(max(0.0, self._last + self._quiet - self._clock()))
            retired, self._retired = self._retired, []
            for one in reversed(retired):
                self.drop(one)
        for one in self._retired:
            os.close(one.handle)
        self._retired.clear()
        for pin, _ in self._ours.values():
            os.close(pin)
        self._ours.clear()

    def _look(self, change: Change, temp: Path, handle: int, hold: Hold) -> SwapResult:
        """What came out? The old inode, and nobody waits for it: retire it. Else it goes back."""
        out, old = inode(temp), os.fstat(handle).st_ino
        wanted = hold is Hold.HELD and lease.is_wanted(handle)
        lease.let_go(handle)
        if out == old and not wanted:
            self._retire(Retired(temp, handle, change.path, frozenset({short(change.expected)})))
            return SwapResult.WRITTEN
        os.close(handle)
        self._put(temp, change.path, frozenset({short(change.expected)}) if out == old else None)
        return SwapResult.BUSY if out == old else SwapResult.DIVERGED

    def _retire(self, one: Retired) -> None:
        self._retired.append(one)
        self._last = self._clock()

    def drop(self, one: Retired) -> None:
        """Remove a retired file whose text is known and that nobody has open; else see that its text is not lost."""
        hold = lease.take(one.handle)
        text = short(fs.revision(read_all(one.handle)))
        if hold is not Hold.BUSY and text in one.known and not (hold is Hold.HELD and lease.is_wanted(one.handle)):
            fs.remove(one.temp)
            os.close(one.handle)
            return
        lease.let_go(one.handle)
        self._bring_back(one, text)

    def _bring_back(self, one: Retired, text: str) -> None:
        """A retired file is being saved, or was: back into place if ours stands there, else beside it."""
        saved = text not in one.known
        if self._is_ours(one.target):
            self.undone[one.target] = SwapResult.DIVERGED if saved else SwapResult.BUSY
            self.restored += [one.target] if saved else []
            os.close(one.handle)
            self._put(one.temp, one.target, one.known)
        elif saved:
            self.keep(one, text)
        else:  # only open so far: look again
            self._retire(one)

    def _is_ours(self, target: Path) -> bool:
        """Whether the name holds what this batch wrote, or nothing: then a person's text may have it back."""
        try:
            handle = open_plain(target)
        except FileNotFoundError:
            return True
        try:
            pin = self._ours.get(os.fstat(handle).st_ino)
            return pin is not None and fs.revision(read_all(handle)) == pin[1]
        finally:
            os.close(handle)

    def _put(self, hand: Path, target: Path, known: frozenset[str] | None = None) -> None:
        """Bring the person's text that `hand` names back into place, and retire what comes out.

        What comes out and is not ours was renamed there a moment ago: it is newer, so it goes back in turn. What the
        person replaced so may be dropped; `known`, if given, says what may be dropped of the first one.
        """
        placed: dict[int, tuple[int, frozenset[str]]] = {}  # open, so that no inode number comes back as another file
        handle = open_plain(hand)
        while True:
            number = os.fstat(handle).st_ino
            placed[number] = (handle, known or frozenset({short(fs.revision(read_all(handle)))}))
            came_out = put_under(hand, target)
            if not came_out:
                break
            known = None
            handle = open_plain(hand)
            number = os.fstat(handle).st_ino
            if number in placed:
                known = placed[number][1]
                break
            if number in self._ours:
                known = frozenset({short(self._ours[number][1])})
                break
        for other, _ in placed.values():
            os.close(other)
        if came_out:
            self._retire(Retired(hand, handle, target, known or frozenset()))

    def own(self, pin: int, revision: Revision) -> None:
        """The inode that `pin` is open on was written by us, with this revision."""
        number = os.fstat(pin).st_ino
        if number in self._ours:
            os.close(self._ours[number][0])
        self._ours[number] = (pin, revision)

    def keep(self, one: Retired, text: str) -> None:
        """Give a person's text a visible name beside its page; one that stands there already is not doubled."""
        beside = one.target.with_name(f"{one.target.stem} (kept {text}){one.target.suffix}")
        with contextlib.suppress(FileExistsError):
            fs.move(one.temp, beside, sync=self._sync)
        fs.remove(one.temp)
        os.close(one.handle)
        self.kept.append(beside)
        self.undone[one.target] = SwapResult.DIVERGED
