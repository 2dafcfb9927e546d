"""The index of a running daemon: kept open, and brought up to date before a question is answered.

Hints (store/watch.py, and `touched`) say where to look; a scan of the whole vault is the truth. The first thing is a
scan, and another follows whenever a hint says so, a while after the last one, and always where nothing gives hints.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

from vaultd.engine.reconcile import Behind, Reconcile, open_index
from vaultd.engine.stores import Stores
from vaultd.store.index import Index
from vaultd.store.watch import Watch

__all__ = ["Live"]

_MOST = 500
"""Pages that a question waits for; more are left to the index loop and counted."""

_PATIENCE_S = 0.3  # for which a question waits for pages that are being brought in

log = logging.getLogger("vaultd")


class Live:
    """An open index, and where it may be behind. Safe from several threads.

    `woken` is set whenever there is something to look at; `seen` is told, on any thread, what differs before it is
    brought in. Without `watch` nobody is asked for hints.
    """

    def __init__(self, stores: Stores, *, watch: bool = False) -> None:
        self._stores = stores
        self._guard = threading.Lock()
        self._work = threading.Lock()
        self._index: Index | None = None
        self._hinted: set[str] = set()
        self._everything = True
        self._pending = 0
        self._scanned = 0.0
        self.woken = threading.Event()
        self.seen: Callable[[Behind], None] = lambda _: None
        self.watch = Watch(stores.vault.root, self.woken.set) if watch else None

    @property
    def index(self) -> Index:
        """The index, opened when first asked for."""
        with self._guard:
            self._index = self._index or open_index(self._stores)
            return self._index

    @property
    def hinted(self) -> bool:
        """Whether changes are told, so that a scan is a precaution only."""
        return self.watch is not None and self.watch.works

    def touched(self, paths: Iterable[str]) -> None:
        """These pages (vault paths) were written or removed just now: the next question knows, the index loop wakes."""
        new = set(paths)
        if new:
            with self._guard:
                self._hinted |= new
            self.woken.set()

    def catch_up(self) -> int:
        """Bring in what is known to have changed up to now, unless it is much; how many pages are still behind."""
        if not self._work.acquire(timeout=_PATIENCE_S):
            return max(1, self._pending)
        try:
            behind = self._look(Reconcile(self._stores, self.index), scan=not self.hinted)
            if behind.count > _MOST:
                self._again(everything=True)
                return behind.count
            return self._bring(behind)
        finally:
            self._work.release()

    def rearm(self) -> str:
        """Begin to watch, or again where that broke off: "on", "off", or why it does not work."""
        watch = self.watch
        if watch is None:
            return "off"
        if not watch.works and not watch.reason:
            if self._scanned:
                log.warning("watching the vault broke off; it is begun anew")
            watch.start()
        return watch.reason or "on"

    def step(self, every_s: float) -> float:
        """One pass of the index loop: look where hints say, or at everything when the last scan is `every_s` old.

        The seconds of processor time that a scan took, 0 for none.
        """
        with self._work:
            before = time.thread_time()
            scan = time.monotonic() - self._scanned >= every_s or not self.hinted
            behind = self._look(Reconcile(self._stores, self.index), scan=scan)
            took = time.thread_time() - before if scan else 0.0
            self._bring(behind)
            self.index.compact()
        return took

    def close(self) -> None:
        """Stop watching and let go of the index."""
        if self.watch is not None:
            self.watch.stop()
        with self._guard:
            if self._index is not None:
                self._index.close()
                self._index = None

    def _look(self, reconcile: Reconcile, *, scan: bool) -> Behind:
        """What differs, where hints say or everywhere."""
        if self.index.doubt:
            scan = True
        with self._guard:
            paths, self._hinted = self._hinted, set()
            scan, self._everything = scan or self._everything, False
        if self.watch is not None:
            hints = self.watch.take()
            paths |= hints.paths
            scan = scan or hints.everything
        if not scan:
            return reconcile.behind_at(paths)
        self._scanned = time.monotonic()
        return reconcile.behind()

    def _bring(self, behind: Behind) -> int:
        """Bring pages in; how many could not be and are looked at again later."""
        self._pending = behind.count
        self.seen(behind)
        if not behind.count:
            return 0
        reconcile = Reconcile(self._stores, self.index)

        def progress(done: int, total: int) -> None:
            self._pending = total - done

        try:
            done = reconcile.run(behind, progress, blocking=behind.count > _MOST)
        except BaseException:
            self._again(everything=True)
            raise
        left = behind.count if not done else len(reconcile.failed)
        self._pending = left
        if not done:
            self._again(everything=True)  # another process is at it
        elif reconcile.failed:
            with self._guard:
                self._hinted |= reconcile.failed
        return left

    def _again(self, *, everything: bool) -> None:
        """Look again, at everything, the next time."""
        with self._guard:
            self._everything = self._everything or everything
        self.woken.set()
