"""The index of a running daemon: kept open, brought up to date before a question is answered."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from vaultd.engine.reconcile import Reconcile, open_index
from vaultd.engine.stores import Stores
from vaultd.store.index import Index

__all__ = ["Live"]

_MOST = 500
"""Pages that a question waits for; more are left to the index loop and counted."""


class Live:
    """An open index, and what it is known to be behind by. Safe from several threads."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._guard = threading.RLock()
        self._index: Index | None = None
        self.woken = threading.Event()

    @property
    def index(self) -> Index:
        """The index, opened when first asked for."""
        with self._guard:
            self._index = self._index or open_index(self._stores)
            return self._index

    def touched(self, paths: Iterable[str]) -> None:
        """These pages (vault paths) were written or removed just now: the next question knows, the index loop wakes."""
        if any(True for _ in paths):
            self.woken.set()

    def catch_up(self) -> int:
        """Bring in what changed on disk up to now, unless it is much; how many pages are still behind."""
        with self._guard:
            reconcile = Reconcile(self._stores, self.index)
            behind = reconcile.behind()
            if behind.count > _MOST or not reconcile.run(behind, blocking=behind.count > 0):
                return behind.count
            return 0

    def close(self) -> None:
        """Let go of the index."""
        with self._guard:
            if self._index is not None:
                self._index.close()
                self._index = None
