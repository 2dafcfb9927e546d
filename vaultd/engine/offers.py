"""Offers: which handoff a session that starts in a folder may claim, prepared as files for the hook.

For each checkout of a project seen on this machine, and in it for the root and each folder that an open handoff names,
the best eligible handoff is chosen: one made by hand before automatic ones, a final one before a provisional one whose
client lives, then the newest. A handoff is eligible in its own folder and below, but not in another project's checkout.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from vaultd.agents import USUAL_LIMIT, Agent, render
from vaultd.core.checkout import below
from vaultd.core.event import Event, Kind
from vaultd.core.handoff import parse_handoff
from vaultd.core.ids import Sid
from vaultd.core.observation import Observation
from vaultd.core.received import injected, offered
from vaultd.core.sanitize import line, redact
from vaultd.engine.handoffs import Entry, Handoffs
from vaultd.engine.lifecycle import last_client
from vaultd.engine.processes import alive
from vaultd.engine.projects import Project
from vaultd.engine.stores import Stores
from vaultd.store.inbox import SessionName
from vaultd.store.outbox import Claim, Offer

__all__ = ["Fresh", "Offers", "event_map"]

Fresh = Mapping[SessionName, Sequence[Observation]]
"""Observations by session that were not filed yet."""

_NOTHING: Fresh = MappingProxyType({})
_ORIGIN_BYTES = 1_024
_UNKNOWN_CLIENT_SETTLE_S = 60  # a client that no hook could see: wait longer than for one known to hide


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An open handoff with what decides about it."""

    entry: Entry
    origin: str
    owner: str
    not_before: int

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """Higher is better: made by hand, not waiting for a live client, newest."""
        try:
            created = datetime.fromisoformat(self.entry.text("created")).timestamp()
        except ValueError:
            created = 0.0
        return (not self.entry.automatic, self.owner == "0" and self.not_before == 0, created)


def event_map(agents: Iterable[Agent]) -> dict[str, str]:
    """The lines of `outbox/map`: `<agent>.<Event>` to shape, moment and drain."""
    lines: dict[str, str] = {}
    for agent in agents:
        for name, event in agent.events.items():
            lines[f"{agent.id}.{name}"] = agent.map_line(event)
    return lines


class Offers:
    """Prepares the outbox. Everything it writes can be made again from the vault and the observations."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._handoffs = Handoffs(stores)

    def prepare_all(self) -> None:
        """Bring the whole outbox up to date, places that no project knows any more included."""
        places: set[tuple[str, str]] = set()
        for project in self._stores.projects.known():
            places |= self.prepare(project)
        self._stores.outbox.clear(keep=places)

    def prepare(self, project: Project, fresh: Fresh = _NOTHING) -> set[tuple[str, str]]:
        """Bring the offers of a project up to date; the places (checkout, subdir) that have one.

        `fresh` are observations that are not filed yet.
        """
        entries = self._handoffs.entries(project.folder, "open")
        candidates = [c for e in entries if (c := self._candidate(e, fresh)) is not None]
        outbox, offered = self._stores.outbox, set()
        others = {c for p in self._stores.projects.known() if p.id != project.id for c in self._checkouts(p)}
        for checkout in self._checkouts(project):
            inner = [rest for other in others if (rest := below(other, checkout))]
            wanted = {""} | {_subdir(c.entry) for c in candidates}
            subdirs = {
                s for s in wanted if outbox.takes(checkout, s) and not any(below(s, i) is not None for i in inner)
            }
            for subdir in outbox.offered(checkout, others) - subdirs:
                outbox.withdraw(checkout, subdir)
            for subdir in subdirs:
                eligible = [c for c in candidates if _eligible(c.entry, subdir)]
                if not eligible:
                    outbox.withdraw(checkout, subdir)
                    continue
                best = max(eligible, key=lambda c: c.rank)
                offer = self._offer(best)
                if offer is None:
                    outbox.withdraw(checkout, subdir)
                    continue
                outbox.offer(checkout, subdir, offer)
                offered.add((checkout, subdir))
        return offered

    def ranked(self, project: Project) -> list[Entry]:
        """The open handoffs of a project, the one that would be offered first in front."""
        entries = list(self._handoffs.entries(project.folder, "open"))
        candidates = [c for e in entries if (c := self._candidate(e, _NOTHING)) is not None]
        best = [c.entry for c in sorted(candidates, key=lambda c: c.rank, reverse=True)]
        return [*best, *(entry for entry in entries if entry not in best)]

    def best(self, project: Project) -> Entry | None:
        """The handoff that a session which starts where `project` stands now would be given; None for none."""
        entries = self._handoffs.entries(project.folder, "open")
        now = self._stores.clock().timestamp()
        ready = [
            c
            for e in entries
            if (c := self._candidate(e, _NOTHING)) and c.owner == "0" and c.not_before <= now
            if _eligible(e, project.subdir)
        ]
        return max(ready, key=lambda c: c.rank).entry if ready else None

    def _offer(self, candidate: _Candidate) -> Offer | None:
        """The claim and the prepared texts of a handoff; None when its page is gone."""
        entry, vault = candidate.entry, self._stores.vault
        page = vault.read(entry.path)
        if page is None:
            return None
        handoff = parse_handoff(page.data, entry.path)
        forms = {
            name: (agent, shape) for agent in self._stores.agents.values() for name, shape in agent.printed.items()
        }
        now, claims = self._stores.clock(), self._stores.config.claims
        rules = self._stores.config.rules
        texts = {}
        for name, (agent, shape) in forms.items():
            limit = min(agent.inject_limit, USUAL_LIMIT)
            text = injected(handoff, limit, now) if claims else offered(handoff, now)
            texts[name] = render(agent, shape, redact(text, rules))
        claim = Claim(
            open_path=str(vault.root / entry.path),
            accepted_path=str(vault.root / entry.folder / "handoffs/accepted" / f"{entry.id}.md") if claims else "-",
            origin=line(candidate.origin, _ORIGIN_BYTES, rules),
            owner=candidate.owner,
            not_before=candidate.not_before,
        )
        return Offer(claim, texts)

    def _candidate(self, entry: Entry, fresh: Fresh) -> _Candidate | None:
        """What decides about an open handoff; None when it cannot be offered now."""
        origin = entry.text("from_session")
        if not entry.provisional:
            return _Candidate(entry, origin, "0", 0)
        agent = self._stores.agents.get(entry.text("from_agent"))
        if agent is None:
            return _Candidate(entry, origin, "0", 0)
        name = SessionName(agent.id, Sid(entry.id.partition("-g")[0]))
        known = [*self._stores.inbox.observations(name), *fresh.get(name, [])]
        events = sorted((o.event for o in known), key=lambda e: e.order)
        if not events:
            return _Candidate(entry, origin, "0", 0)
        client = last_client(events)
        there = client is not None and client.boot == self._stores.boot and alive(client)
        if client is not None and not there:
            return _Candidate(entry, origin, "0", 0)
        if client is not None and agent.client.hook_process_is_client:
            return _Candidate(entry, origin, f"{client.pid} {client.start} {client.boot}", 0)
        return self._settling(entry, origin, events, agent.client.settle_s or _UNKNOWN_CLIENT_SETTLE_S)

    @staticmethod
    def _settling(entry: Entry, origin: str, events: list[Event], settle_s: int) -> _Candidate | None:
        """A provisional handoff whose client cannot be watched: some time after its last turn, and not in a turn."""
        ends = [e.at for e in events if e.kind is Kind.TURN_END]
        prompts = [e.at for e in events if e.kind is Kind.PROMPT and not e.subagent]
        if not ends or (prompts and prompts[-1] > ends[-1]):
            return None
        return _Candidate(entry, origin, "0", int(ends[-1].timestamp()) + settle_s)

    def _checkouts(self, project: Project) -> set[str]:
        """Absolute main checkout paths of a project that were seen on this machine."""
        return {c for c in (project.main, *project.checkouts) if self._stores.outbox.takes(c)}


def _subdir(entry: Entry) -> str:
    """The folder of a handoff, relative to its checkout; "" for the root or anything that is no plain path."""
    subdir = entry.text("subdir").strip("/")
    return "" if subdir == "." or ".." in subdir.split("/") else subdir


def _eligible(entry: Entry, subdir: str) -> bool:
    """Whether a session that starts in `subdir` may claim the handoff."""
    own = _subdir(entry)
    return own in ("", subdir) or subdir.startswith(own + "/")
