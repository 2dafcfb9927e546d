"""Whether the daemon does its work: not that it runs, but that events are taken in and the index follows."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from vaultd.engine.service import Health
from vaultd.engine.stores import Stores

__all__ = ["AWAY", "Pulse", "health"]

AWAY = Health(False, ("The vault is away.",))
"""The verdict while there is nothing to look at."""

_WAIT_S = 120.0
_LOOPS = {"events": (60.0, "Events are not being taken in."), "index": (300.0, "The index does not follow.")}


class Pulse:
    """When each of the daemon's loops was last heard of. Safe from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._beats: dict[str, float] = {}
        self.held = False

    def beat(self, *names: str) -> None:
        """Loops are at work."""
        with self._guard:
            self._beats.update(dict.fromkeys(names, self._clock()))

    def silent(self, name: str, limit_s: float) -> bool:
        """Whether a loop that was heard of once has not been for so long."""
        with self._guard:
            last = self._beats.get(name)
        return last is not None and self._clock() - last > limit_s


def health(stores: Stores, pulse: Pulse) -> Health:
    """The verdict, from what can be looked at quickly."""
    problems = [words for name, (limit, words) in _LOOPS.items() if pulse.silent(name, limit)]
    if not stores.vault.presence().here:
        return Health(False, [*problems, *AWAY.problems])
    if pulse.held:
        problems.append("The settings are wrong: events wait until they are mended.")
    waiting = stores.inbox.waiting(stores.clock().timestamp())
    if waiting.new and waiting.oldest_s > _WAIT_S and (waited := _longest(stores)) > _WAIT_S:
        problems.append(f"{waiting.new} events wait, the oldest for {waited / 60:.0f} minutes.")
    if (stores.vault.room / "runs/trouble.json").exists():
        problems.append("Some events are held back; `vaultd status` says why.")
    if not os.access(stores.inbox.new, os.W_OK | os.X_OK):
        problems.append("Events cannot be put into the inbox.")
    if os.statvfs(stores.vault.root).f_bavail == 0:
        problems.append("The disk with the vault is full.")
    return Health(not problems, problems)


def _longest(stores: Stores) -> float:
    """For how many seconds the oldest event has lain in the inbox: by its file, since a name tells another time."""
    now = time.time()
    oldest = now
    with os.scandir(stores.inbox.new) as entries:
        for entry in entries:
            try:
                oldest = min(oldest, entry.stat(follow_symlinks=False).st_ctime)
            except FileNotFoundError:
                continue
    return now - oldest
