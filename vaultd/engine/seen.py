"""What was heard from which agent: per event name, when last and how often. Derived from the observations.

Kept as `.vaultd/runs/seen.json` so that `status` need not read every observation; made anew from them when it is
missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from vaultd.core.event import CLOSE_EVENT, Event
from vaultd.core.observation import Observation
from vaultd.store import fs
from vaultd.store.inbox import Inbox

__all__ = ["Seen"]


class Seen:
    """The counts of one vault on this machine."""

    def __init__(self, room: Path, inbox: Inbox) -> None:
        self._path = room / "runs/seen.json"
        self._inbox = inbox

    def read(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Agent to event name to {last, count}; `last` is RFC 3339."""
        kept = self._kept()
        return self._recount() if kept is None else kept

    def prepare(self) -> None:
        """Count what there is, where that was not done yet: `note` then adds to it and reads nothing again."""
        if self._kept() is None:
            self._write(self._recount())

    def note(self, observations: Iterable[Observation]) -> None:
        """Count observations that were just filed."""
        agents = self._kept()
        if agents is None:
            agents = self._recount()
        else:
            _add(agents, (o.event for o in observations))
        self._write(agents)

    def _write(self, agents: dict[str, dict[str, dict[str, Any]]]) -> None:
        text = json.dumps({"vaultd-seen": 1, "agents": agents}, ensure_ascii=False)
        fs.write_private(self._path, text.encode())

    def _kept(self) -> dict[str, dict[str, dict[str, Any]]] | None:
        """The counts as kept; None when there are none to trust."""
        try:
            told = json.loads(self._path.read_bytes())
            return dict(told["agents"]) if told.get("vaultd-seen") == 1 else None
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            return None

    def _recount(self) -> dict[str, dict[str, dict[str, Any]]]:
        """The counts from all observations."""
        agents: dict[str, dict[str, dict[str, Any]]] = {}
        for name in {*self._inbox.sessions(), *self._inbox.packs()}:
            _add(agents, (o.event for o in self._inbox.observations(name)))
        return agents

    def last(self) -> Mapping[str, str]:
        """When each agent was heard of last (RFC 3339)."""
        return {
            a: max((row["last"] for row in events.values()), key=_moment) for a, events in self.read().items() if events
        }


def _add(agents: dict[str, dict[str, dict[str, Any]]], events: Iterable[Event]) -> None:
    """Add events to the counts; our own closing events are not the agent's."""
    fresh: dict[tuple[str, str], tuple[int, datetime]] = {}
    for event in events:
        if event.name != CLOSE_EVENT:
            count, last = fresh.get((event.agent, event.name), (0, event.at))
            fresh[event.agent, event.name] = (count + 1, max(last, event.at))
    for (agent, name), (count, last) in fresh.items():
        row = agents.setdefault(agent, {}).setdefault(name, {"last": "", "count": 0})
        row["count"] += count
        if not row["last"] or last.timestamp() >= _moment(row["last"]):
            row["last"] = last.isoformat(timespec="seconds")


def _moment(text: str) -> float:
    """Seconds since 1970 of an RFC 3339 time."""
    return datetime.fromisoformat(text).timestamp()
