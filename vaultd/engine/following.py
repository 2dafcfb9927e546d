"""How the index of a running daemon follows the disk: when hints are taken, and when everything is looked at."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from vaultd.engine.live import Live

__all__ = ["Following"]

_SCAN_S = 5.0  # without a watch, and while something is wrong
_WATCHED_SCAN_S = 60.0
_SCAN_SHARE = 100  # of large vaults: the time between scans is at least so many times what one takes
_GATHER_S = 0.05  # a save is several changes: they are brought in together


class Following:
    """The steps of the daemon's index loop, and the times between them."""

    def __init__(self, live: Live, complain: Callable[[str], None]) -> None:
        """`complain` is told of pages that cannot be indexed."""
        self._live = live
        self._complain = complain
        self._scan_at = 0.0
        self.scans = 0

    def step(self, stop: Callable[[], bool]) -> set[str]:
        """Bring in what was named and hinted, and everything when that is due; the pages that changed since before.

        Goes on until `stop`. After an error everything is looked at again soon.
        """
        live = self._live
        due, self._scan_at = self._scan_at, min(self._scan_at, time.monotonic() + _SCAN_S)
        live.bring_named()
        if live.due or time.monotonic() >= due:
            took = live.scan(stop)
            self.scans += 1
            pause = _SCAN_S if live.due else _WATCHED_SCAN_S
            due = time.monotonic() + max(pause, _SCAN_SHARE * took)
            self._tell()
        changed = live.take_changed()
        if changed:
            live.compact()
        self._scan_at = due
        return changed

    def wait(self, stopping: threading.Event) -> None:
        """Until the next step: something is named or hinted at, or a scan is due."""
        if self._live.woken.wait(max(0.0, self._scan_at - time.monotonic())):
            stopping.wait(_GATHER_S)
        self._live.woken.clear()

    def _tell(self) -> None:
        """Tell of pages that could not be indexed."""
        failed = self._live.failed
        for path, reason in list(failed.items())[:1]:
            more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
            self._complain(f"not indexed, tried again: {path} ({reason}){more}")
