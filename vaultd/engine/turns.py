"""Taking turns between threads: one at a time, and who is asked a question goes first."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Turns"]


class Turns:
    """One turn that threads take one after the other; those that are urgent before all others. Not re-entrant."""

    def __init__(self) -> None:
        self._free = threading.Condition()
        self._held = False
        self._urgent = 0

    @contextmanager
    def taken(self, *, urgent: bool = False, timeout: float | None = None) -> Iterator[bool]:
        """Have the turn inside the block; whether it came within `timeout` seconds (None: however long it takes)."""
        mine = self._take(urgent, timeout)
        try:
            yield mine
        finally:
            if mine:
                with self._free:
                    self._held = False
                    self._free.notify_all()

    def _take(self, urgent: bool, timeout: float | None) -> bool:
        with self._free:
            self._urgent += urgent
            try:
                mine = self._free.wait_for(lambda: not self._held and (urgent or not self._urgent), timeout)
            finally:
                self._urgent -= urgent
                self._free.notify_all()
            self._held = self._held or mine
            return mine
