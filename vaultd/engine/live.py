"""The index of a running daemon: kept open, brought up to date before a question is answered.

Three things say what to bring in: pages that we wrote name themselves (`touched`), the watch hints at what others
changed, and a scan, the truth, finds the rest. Named pages come first, for they are few; a scan's come in chunks, and
between two chunks whoever waits for named ones has his turn. Only huge pages are left to the index loop in any case.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from vaultd.engine.reconcile import Behind, Reconcile, index_lock, open_index
from vaultd.engine.stores import Stores
from vaultd.engine.turns import Turns
from vaultd.store.index import Index

if TYPE_CHECKING:
    from vaultd.store.watch import Watch

__all__ = ["Live"]

_MOST = 500
"""Pages that a question waits for; more are left to the index loop and counted."""

_PATIENCE_S = 2.0
"""How long a question waits for whoever is at the index."""

OFF = "off"
"""What `watching` says where no watch is wanted."""


class Live:
    """An open index, and what it is known to be behind by. Safe from several threads."""

    def __init__(self, stores: Stores, *, watch: bool = False) -> None:
        """Nothing is opened yet. With `watch` changes are watched for from the first scan on."""
        self._stores = stores
        self._watch_wanted = watch
        self._watch: Watch | None = None
        self._index: Index | None = None
        self._opening = threading.Lock()
        self._turns = Turns()
        self._guard = threading.Lock()  # of what follows
        self._named: set[str] = set()
        self._huge: set[str] = set()  # left to the index loop
        self._taken = False  # named pages are being brought in
        self._everything = True  # a scan is due
        self._left = 0  # pages that the scan which goes on has not come to yet
        self._changed: set[str] = set()
        self._projects: Mapping[str, str] | None = None
        self.failed: Mapping[str, str] = {}
        self.woken = threading.Event()

    @property
    def index(self) -> Index:
        """The index, opened when first asked for."""
        with self._opening:
            self._index = self._index or open_index(self._stores)
            return self._index

    @property
    def watching(self) -> str:
        """`on`, `off`, or in words why changes are found by scanning only."""
        if not self._watch_wanted:
            return OFF
        return self._watch.state if self._watch is not None else "it has not begun"

    @property
    def hinted(self) -> bool:
        """Whether hints come in: then a scan is needed now and then only."""
        return self.watching == "on"

    @property
    def due(self) -> bool:
        """Whether everything is to be looked at now."""
        return self._everything or self.index.doubt is not None

    def touched(self, paths: Iterable[str]) -> None:
        """These pages (vault paths) were written or removed just now: the next question knows, the index loop wakes."""
        named = set(paths)
        if named:
            with self._guard:
                self._named |= named
            self.woken.set()

    def take_changed(self) -> set[str]:
        """The pages that were brought in, dropped, or named and gone at once, since this was asked last."""
        with self._guard:
            taken, self._changed = self._changed, set()
        return taken

    def catch_up(self) -> int:
        """Bring in what was named and hinted up to now, unless it is much; how many pages are still behind.

        Without hints everything is looked at.
        """
        if self._watch is not None and self.hinted:
            self._watch.settle()
        if self.index.doubt:
            with self._guard:
                self._everything = True
        if not self._bring_named(urgent=True):
            return self._behind + 1
        if self.hinted:
            return self._behind
        with self._turns.taken(urgent=True, timeout=_PATIENCE_S) as mine:
            if not mine:
                return self._behind + 1
            reconcile = Reconcile(self._stores, self.index)
            behind = reconcile.behind()
            if behind.count > _MOST or not self._bring_in(reconcile, behind, urgent=True):
                self.woken.set()
                return behind.count
            with self._guard:
                return len(self.failed.keys() | self._huge)  # whatever the index loop still counts

    def scan(self, stop: Callable[[], bool] = lambda: False) -> float:
        """Look at everything and bring in what changed, until `stop`; processor seconds that the look took."""
        with self._turns.taken():
            self._arm()
            self._take_hints()
            with self._guard:
                self._everything = False
            before = time.thread_time()
            try:
                reconcile = Reconcile(self._stores, self.index)
                behind = reconcile.behind()
            except BaseException:
                self._look_again()
                raise
            took = time.thread_time() - before
            self._projects = reconcile.projects
            if not self._stores.vault.presence().here:
                self._look_again()
        if behind.count:
            try:
                self._work_off(reconcile, behind, stop)
            except BaseException:
                self._look_again()
                raise
            finally:
                self._left = 0
        self.failed = dict(reconcile.failed)
        return took

    def bring_named(self) -> None:
        """Bring in what was named and hinted, huge pages too."""
        self._bring_named(urgent=False)
        while self._huge:
            with self._guard:
                path = min(self._huge)  # counted as behind until it is in
            with self._turns.taken(), self._locked(urgent=False):
                reconcile = Reconcile(self._stores, self.index)
                reconcile.bring_in([path])
                self._note(reconcile, [path])
            self._bring_named(urgent=False)

    def compact(self) -> None:
        """Merge what many small changes left, if nobody else is at the index."""
        with self._turns.taken(), self._locked(urgent=True) as mine:
            if mine:
                self.index.compact()

    def close(self) -> None:
        """Let go of the watch and the index."""
        if self._watch is not None:
            self._watch.close()
        with self._opening:
            if self._index is not None:
                self._index.close()
                self._index = None

    @property
    def _behind(self) -> int:
        """Pages that the index is known to be behind by."""
        with self._guard:
            return self._left + len(self.failed) + len(self._huge) + (self._everything and self.hinted)

    def _arm(self) -> None:
        """Begin to watch, or again; where that is not possible the watch knows why."""
        if self._watch_wanted:
            if self._watch is None:
                from vaultd.store.watch import Watch  # watchdog takes long to import

                self._watch = Watch(self._stores.vault.root, self.woken.set)
            self._watch.arm(time.monotonic())

    def _look_again(self) -> None:
        """Something went wrong: have everything looked at."""
        with self._guard:
            self._everything = True

    def _take_hints(self) -> None:
        """Add the watch's hints to what is named."""
        hints = self._watch.take() if self._watch is not None and self._watch.pending else set()
        with self._guard:
            self._everything = self._everything or hints is None
            self._named |= hints or set()

    def _bring_named(self, *, urgent: bool) -> bool:
        """Bring in what is named, but for huge pages; False when a question would wait for too long."""
        with self._guard:
            nothing = not (self._named or self._taken)
        if nothing and not (self._watch is not None and self._watch.pending):
            return True
        with self._turns.taken(urgent=urgent, timeout=_PATIENCE_S if urgent else None) as mine:
            if not mine:
                return False
            self._take_hints()
            with self._guard:
                named, self._named = self._named, set()
                self._taken = True
            done = False
            try:
                done = self._bring_paths(named, urgent)
            finally:
                with self._guard:
                    self._taken = False
                    if not done:
                        self._named |= named
            return done

    def _bring_paths(self, named: set[str], urgent: bool) -> bool:
        """Compare these paths with the disk and bring them in; whether they are dealt with."""
        if not named:
            return True
        reconcile = Reconcile(self._stores, self.index)
        before, self._projects = self._projects, reconcile.projects
        if before is not None and before != reconcile.projects:
            moved = set(before.items()) ^ set(reconcile.projects.items())
            named = named | {folder for folder, _ in moved}
        pages = {path.removesuffix("/project.md") for path in named if path.endswith("/project.md")}
        named = named | (pages - reconcile.projects.keys())  # the page of what is no project, perhaps any more
        if self.index.doubt or len(named) > _MOST or not self._stores.vault.presence().here:
            return self._leave()
        behind = reconcile.behind(named)
        well = named.difference((s.path for s in behind.changed), behind.gone)
        # Written and removed before the index ever had them: others may know them all the same.
        never = {path for path in well - self.index.known().keys() if path.endswith(".md")}
        with self._guard:
            self.failed = {path: why for path, why in self.failed.items() if path not in well}
            self._changed |= never
        return self._leave() if behind.count > _MOST else self._bring_in(reconcile, behind, urgent=urgent)

    def _leave(self) -> bool:
        """Leave it to a scan."""
        self._look_again()
        self.woken.set()
        return True

    def _bring_in(self, reconcile: Reconcile, behind: Behind, *, urgent: bool) -> bool:
        """Bring in what is behind, but for huge pages; False when another process is at the index for too long."""
        if behind.huge:
            with self._guard:
                self._huge.update(behind.huge)
            self.woken.set()
        if behind.count == len(behind.huge):
            return True
        with self._locked(urgent=urgent) as mine:
            if mine and self.index.doubt:
                reconcile.make_anew()
                self._note(reconcile, [stat.path for stat in behind.changed])
            elif mine:
                for chunk in behind.chunks():
                    if chunk[0] not in behind.huge:
                        reconcile.bring_in(chunk)
                        self._note(reconcile, chunk)
            return mine

    def _work_off(self, reconcile: Reconcile, behind: Behind, stop: Callable[[], bool]) -> None:
        """Bring in what a scan found, chunk by chunk."""
        self._left = behind.count
        if self.index.doubt:
            with self._locked(urgent=False):
                reconcile.make_anew()
            self._note(reconcile, [stat.path for stat in behind.changed])
            return
        for chunk in behind.chunks():
            if stop():
                return
            with self._turns.taken(), self._locked(urgent=False):
                reconcile.bring_in(chunk)
                self._note(reconcile, chunk)
            self._left -= len(chunk)
            self._bring_named(urgent=False)

    def _note(self, reconcile: Reconcile, paths: Iterable[str]) -> None:
        """Remember what was brought in and what was not."""
        told = set(paths)
        with self._guard:
            self._changed |= told - reconcile.failed.keys()
            kept = {path: why for path, why in self.failed.items() if path not in told}
            self.failed = {**kept, **reconcile.failed}
            self._huge -= told

    @contextmanager
    def _locked(self, *, urgent: bool) -> Iterator[bool]:
        """Hold the lock of the index, for other processes; whether it could be had in time."""
        lock = index_lock(self._stores)
        deadline, pause = time.monotonic() + _PATIENCE_S, threading.Event()
        while not lock.acquire(blocking=not urgent) and time.monotonic() < deadline:
            pause.wait(0.01)
        try:
            yield lock.held
        finally:
            lock.release()
