"""How the index of a running daemon follows the disk: when hints are taken, and when everything is looked at."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from vaultd.engine.live import Live

__all__ = ["Following"]

_SCAN_S = 5.0  # without a watch, and while something is wrong
_WATCHED_SCAN_S = 60.0
_SCAN_SHARE = 200  # of large vaults: the time between scans is at least so many times what one takes
_LOOK_S = 5.0  # whether the watch and the index are as they should be
_RETRY_S = 60.0  # a page that cannot be indexed is tried again after a second, then less often
_GATHER_S = 0.05  # a save is several changes: they are brought in together


class Following:
    """The steps of the daemon's index loop, and the times between them."""

    def __init__(self, live: Live, complain: Callable[[str], None]) -> None:
        """`complain` is told of pages that cannot be indexed."""
        self._live = live
        self._complain = complain
        self._scan_at = 0.0
        self._hinted = False  # with the last scan
        self._retry_at, self._pause = 0.0, 1.0
        self.scans = 0

    def step(self, stop: Callable[[], bool]) -> set[str]:
        """Bring in what was named and hinted, and everything when that is due; the pages that changed since before.

        Goes on until `stop`. After an error everything is looked at again soon.
        """
        live = self._live
        due, self._scan_at = self._scan_at, min(self._scan_at, time.monotonic() + _SCAN_S)
        if live.failed and time.monotonic() >= self._retry_at:
            self._pause = min(2 * self._pause, _RETRY_S)
            live.touched(live.failed)
        live.bring_named()
        if live.due or time.monotonic() >= due or (self._hinted and not live.hinted):
            took = live.scan(stop)
            self.scans += 1
            self._hinted = live.hinted
            pause = _WATCHED_SCAN_S if live.hinted and not live.due else _SCAN_S
            due = time.monotonic() + max(pause, _SCAN_SHARE * took)
        self._tell()
        changed = live.take_changed()
        if changed:
            live.compact()
        self._scan_at = due
        return changed

    def wait(self, stopping: threading.Event) -> None:
        """Until the next step: something is named or hinted at, or a scan is due."""
        at = min(self._scan_at, self._retry_at if self._live.failed else self._scan_at)
        if self._live.woken.wait(min(_LOOK_S, max(0.0, at - time.monotonic()))):
            stopping.wait(_GATHER_S)
        self._live.woken.clear()

    def _tell(self) -> None:
        """Tell of pages that could not be indexed."""
        failed = self._live.failed
        if not failed:
            self._pause = 1.0
        elif time.monotonic() >= self._retry_at:
            self._retry_at = time.monotonic() + self._pause
        for path, reason in list(failed.items())[:1]:
            more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
            self._complain(f"not indexed, tried again: {path} ({reason}){more}")
