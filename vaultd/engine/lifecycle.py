"""Closing sessions that nobody closed: the client is gone, or nothing was heard for half an hour.

A close is an event like any other: a `@close` file in the inbox, so that what follows from it survives a crash. A
client counts as gone when its process, seen by a hook on this boot, is no longer there (pid and start time). A session
whose client was never seen is closed by quiet time, and so is one from before a reboot.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from vaultd.core.event import CLOSE_EVENT, HEADER_LINE, Event, Kind, Process
from vaultd.engine.processes import alive
from vaultd.engine.stores import Stores
from vaultd.store import fs
from vaultd.store.inbox import SessionName

__all__ = ["QUIET", "Lifecycle", "closing_time", "deliver_close", "last_client"]

QUIET = timedelta(minutes=30)
"""A session of which nothing was heard for so long is over."""

_TELLING = frozenset({Kind.START, Kind.PROMPT, Kind.END})
_REMEMBERED = 4096  # ended sessions and clients that are kept in mind; older ones can only cause a needless look


@dataclass(frozen=True, slots=True)
class _Open:
    """What is remembered of an open session."""

    last: datetime
    client: Process | None
    native: str
    cwd: str


def last_client(events: Iterable[Event]) -> Process | None:
    """The client process of the newest event that knows it."""
    found = None
    for event in events:
        found = event.client or found
    return found


def deliver_close(
    stores: Stores, name: SessionName, native: str, cwd: str, reason: str, key: str, at: datetime | None = None
) -> None:
    """Put a closing event for a session into the inbox, as of `at` or now. FileExistsError when the key is taken."""
    header = [
        HEADER_LINE.decode(),
        f"agent={name.agent}",
        f"event={CLOSE_EVENT}",
        f"at={(at or stores.clock()).isoformat(timespec='seconds')}",
        f"cwd={cwd.replace('%', '%25').replace(chr(10), '%0A').replace(chr(13), '%0D')}",
    ]
    payload = json.dumps({"session_id": native, "sid": name.sid, "reason": reason})
    fs.publish(stores.inbox.new / key, ("\n".join(header) + "\n\n" + payload).encode("utf-8", "surrogateescape"))


def closing_time(stores: Stores, last: datetime) -> datetime:
    """When a session is closed that was heard of at `last`: now, or right after that when the clock was set back."""
    now = stores.clock()
    return now if now >= last else last + timedelta(seconds=1)


class Lifecycle:
    """Which sessions are open, and which of them are over. Fed with every observation, in any order."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._open: dict[SessionName, _Open] = {}
        self._ended: dict[SessionName, datetime] = {}
        self._clients: dict[Process, SessionName] = {}
        self._loaded = False

    def saw(self, events: Iterable[Event]) -> None:
        """Take note of events; a new conversation of a client ends the client's earlier one."""
        for event in sorted(events, key=lambda e: e.order):
            name = SessionName(event.agent, event.sid)
            if event.kind is Kind.END:
                self._open.pop(name, None)
                self._ended[name] = max(event.at, self._ended.get(name, event.at))
                while len(self._ended) > _REMEMBERED:
                    self._ended.pop(next(iter(self._ended)))
                continue
            if name in self._ended and event.at <= self._ended[name]:
                continue
            before = self._open.get(name)
            client = event.client or (before.client if before else None)
            last = max(event.at, before.last) if before else event.at
            self._open[name] = _Open(last, client, event.native, event.cwd or (before.cwd if before else ""))
            begins = event.kind in (Kind.START, Kind.PROMPT) and not event.subagent
            if client is not None and begins and self._has_one(event.agent):
                self._replace(client, name, event.at)

    def load(self) -> None:
        """Take note of what was filed before this process began; once, and before it files anything itself."""
        if self._loaded:
            return
        self._loaded = True
        telling: list[Event] = []
        for name in self._stores.inbox.sessions():
            events = [o.event for o in self._stores.inbox.observations(name)]
            telling += [e for e in events if e.kind in _TELLING]
            telling += [e for e in events if e.client][-1:] + events[-1:]
        self.saw(telling)  # in the order in which it happened, or an old session would end a client's new one

    def sweep(self) -> int:
        """Deliver a close for each session that is over; how many."""
        self.load()
        now = self._stores.clock()
        over = [(name, reason) for name, state in self._open.items() if (reason := self._verdict(state, now))]
        for name, reason in over:
            self._deliver(name, reason)
        return len(over)

    def _verdict(self, state: _Open, now: datetime) -> str:
        """Why a session is over; "" when it goes on."""
        if state.client is not None and state.client.boot == self._stores.boot and not alive(state.client):
            return "dead"
        return "quiet" if now - state.last > QUIET else ""

    def _has_one(self, agent: str) -> bool:
        """Whether a client process of the agent stands for one conversation at a time."""
        known = self._stores.agents.get(agent)
        return known is None or known.client.hook_process_is_client

    def _replace(self, client: Process, name: SessionName, at: datetime) -> None:
        """A client begins or goes on with a conversation: the one it had before is over. One that is heard of late,
        after a newer one, is over itself.
        """
        before = self._clients.get(client)
        other = self._open.get(before) if before is not None and before != name else None
        if other is not None and other.last > at:
            self._deliver(name, "replaced")
            return
        self._clients[client] = name
        while len(self._clients) > _REMEMBERED:
            self._clients.pop(next(iter(self._clients)))
        if before is not None and before != name and before in self._open:
            self._deliver(before, "replaced")

    def _deliver(self, name: SessionName, reason: str) -> None:
        """Deliver the close of an open session and forget it."""
        state = self._open[name]
        key = f"{int(self._stores.clock().timestamp())}-close-{name.sid}"
        with suppress(FileExistsError):  # delivered in this very second already
            at = closing_time(self._stores, state.last)
            deliver_close(self._stores, name, state.native, state.cwd, reason, key, at)
        del self._open[name]
