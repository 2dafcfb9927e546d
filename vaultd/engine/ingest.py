"""Ingest: events in the inbox become observations, session pages, handoffs and prepared context.

A round of events, in this order (truth, acknowledgement; history and the index come afterwards):

    1. batch by batch: read, normalise, sanitise; what cannot be understood goes to failed/
    2. batch by batch: file the observations of all events but those with effects (turn end, pre-compact, session end, a
       claim, whatever comes after a session was packed) and those of sessions that end in this round; one sync; remove
       the batch from new/
    3. accept what was claimed; per session with closing or late events: session page, handoff, log line; then the
       offers of its project
    4. file the other observations, those of sessions that ended as packs; one sync; remove them from new/

A crash in 2 leaves events in new/ whose observations may exist: they are found complete, or filed again. After 3 the
page and the handoff exist while the closing event is still in new/: it is *resumed*, and making them again gives the
same names and texts. In 4 the closing event is found complete, and so is all that is in a pack; a folder that stands
beside its pack is packed by `repack` of the next process. Nothing in new/ is removed before a sync that followed all
its effects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

from vaultd.agents import Rejected, normalise
from vaultd.core.checkout import marker_ignores
from vaultd.core.event import CLOSE_EVENT, Delivery, Event, Kind, why_no_event
from vaultd.core.ignore import matches
from vaultd.core.observation import Observation
from vaultd.core.sanitize import clean, line, observe
from vaultd.core.session import digest
from vaultd.engine.completing import completed
from vaultd.engine.lifecycle import Lifecycle
from vaultd.engine.offers import Fresh, Offers
from vaultd.engine.projects import Project
from vaultd.engine.seen import Seen
from vaultd.engine.sessions import Refreshed, Sessions
from vaultd.engine.stores import Stores
from vaultd.errors import VaultdError
from vaultd.store.inbox import SessionName
from vaultd.store.places import is_marked, nearest_marker

__all__ = ["BATCH", "ROUND", "Ingest", "Outcome", "Round", "Tally"]

BATCH = 512
"""Events per batch: enough to share one sync among many, few enough to hold the write lock only briefly."""

ROUND = 16 * BATCH
"""Events per round: pages are made once for all of them."""

_CLOSING = frozenset({Kind.TURN_END, Kind.PRE_COMPACT, Kind.END})
_FAILED_LIMIT = 64 * 1024  # bytes of a rejected event that are kept for a person to look at


class Outcome(StrEnum):
    """What became of one event file."""

    INSERTED = "inserted"
    RESUMED = "resumed"
    COMPLETE = "already complete"
    FAILED = "failed"
    IGNORED = "ignored"
    POSTPONED = "postponed"


@dataclass(slots=True)
class Tally:
    """How many events had each outcome, the vault paths that were written, and what stood in the way of the rest."""

    outcomes: dict[Outcome, int] = field(default_factory=lambda: dict.fromkeys(Outcome, 0))
    written: set[str] = field(default_factory=set)
    troubles: set[str] = field(default_factory=set)

    def count(self, outcome: Outcome, number: int = 1) -> None:
        """Add to one outcome."""
        self.outcomes[outcome] += number

    @property
    def total(self) -> int:
        """Event files that were looked at."""
        return sum(self.outcomes.values())

    def add(self, other: Tally) -> None:
        """Add another tally to this one."""
        for outcome, number in other.outcomes.items():
            self.outcomes[outcome] += number
        self.written |= other.written
        self.troubles |= other.troubles


@dataclass(slots=True)
class Round:
    """What is known of a round while it is worked on."""

    tally: Tally = field(default_factory=Tally)
    acknowledge: list[str] = field(default_factory=list)
    plain: list[tuple[SessionName, Observation]] = field(default_factory=list)  # without effects
    held: dict[SessionName, list[Observation]] = field(default_factory=dict)  # with effects: filed after those
    ending: dict[SessionName, list[Observation]] = field(default_factory=dict)  # those without of sessions that end
    closing: set[SessionName] = field(default_factory=set)
    claims: list[Observation] = field(default_factory=list)
    filed: list[Observation] = field(default_factory=list)  # acknowledged with the next sync
    told: list[Event] = field(default_factory=list)  # acknowledged


class Ingest:
    """Takes events in. The caller holds the write lock."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._sessions = Sessions(stores)
        self._offers = Offers(stores)
        self._seen = Seen(stores.vault.room, stores.inbox)
        self.lifecycle = Lifecycle(stores)

    def take(self, keys: Sequence[str], whole: Round) -> None:
        """Step 1 for one batch of keys."""
        self.lifecycle.load()
        self._seen.prepare()
        for key in keys:
            self._admit(key, whole)

    def file(self, whole: Round) -> bool:
        """Step 2 for one batch, to be called until it says that there is none left."""
        batch, whole.plain = whole.plain[:BATCH], whole.plain[BATCH:]
        for name, observation in batch:
            if name in whole.ending:
                whole.ending[name].append(observation)
            else:
                self._file(name, observation, whole)
        whole.tally.count(Outcome.INSERTED, len(batch))
        if whole.acknowledge:
            self._acknowledge(whole)
        return bool(whole.plain)

    def finish(self, whole: Round) -> None:
        """Steps 3 and 4 for all batches of a round."""
        self._effects(whole)
        if whole.acknowledge:
            self._acknowledge(whole)

    def conclude(self, whole: Round) -> None:
        """Let the lifecycle see what was acknowledged, in the order in which it happened; also after a failed round."""
        self.lifecycle.saw(whole.told)
        whole.told.clear()

    def repack(self) -> None:
        """Pack the sessions that ended and that a crash left in their folders."""
        inbox = self._stores.inbox
        for name in inbox.sessions():
            events = [o.event for o in inbox.observations(name)]
            if events and digest(events).closed:
                inbox.pack(name)

    def _acknowledge(self, whole: Round) -> None:
        """Make durable what was filed, remove it from new/, and count it."""
        self._stores.inbox.sync()
        self._stores.inbox.acknowledge(whole.acknowledge)
        whole.acknowledge.clear()
        if whole.filed:
            self._seen.note(whole.filed)
        whole.told.extend(o.event for o in whole.filed)
        whole.filed.clear()

    def _admit(self, key: str, whole: Round) -> None:
        """Step 1 for one event."""
        stores = self._stores
        try:
            delivery = stores.inbox.read(key)
        except OSError as error:
            whole.tally.troubles.add(f"the event {key} cannot be read ({error.strerror})")
            whole.tally.count(Outcome.POSTPONED)
            return
        if delivery is None:
            return
        event = self._understand(delivery) if isinstance(delivery, Delivery) else Rejected(why_no_event(delivery))
        if isinstance(event, Rejected):
            self._fail(key, event.reason)
            whole.tally.count(Outcome.FAILED)
            return
        if self._ignored(event):
            whole.acknowledge.append(key)
            whole.tally.count(Outcome.IGNORED)
            return
        name = SessionName(event.agent, event.sid)
        if stores.inbox.is_done(name, key):
            whole.acknowledge.append(key)
            whole.tally.count(Outcome.COMPLETE)
            return
        observation = observe(event, stores.config.rules, assistant=stores.config.assistant)
        if event.kind in _CLOSING:
            whole.closing.add(name)
            if event.kind is Kind.END:
                whole.ending.setdefault(name, [])
        elif event.handoff:
            whole.claims.append(observation)
        if event.kind in _CLOSING or event.handoff or stores.inbox.has_pack(name):
            whole.held.setdefault(name, []).append(observation)
            return
        whole.plain.append((name, observation))

    def _understand(self, delivery: Delivery) -> Event | Rejected:
        """The event that a delivery means, completed from the transcript where the agent's payload lacks outcomes."""
        stores = self._stores
        agent = stores.agents.get(delivery.header.get("agent", ""))
        if agent is None:
            known = ", ".join(stores.agents)
            return Rejected(f"unknown agent {delivery.header.get('agent', '')!r}; known are {known}")
        event = normalise(agent, delivery, stores.clock())
        return completed(agent, event, stores.config) if isinstance(event, Event) else event

    def _ignored(self, event: Event) -> bool:
        """Whether `ignore_paths` keeps this event out, or `allow_list`: hooks may not have heard of that yet."""
        config, base = self._stores.config, event.root or event.cwd
        if config.allow_list and event.name != CLOSE_EVENT and not is_marked(base):
            return True
        files = event.tool.files if event.tool is not None else ()
        if any(matches(config.ignore_paths, touch.path, base) for touch in files):
            return True
        marker = nearest_marker(event.cwd or base) if files else None
        return marker is not None and any(matches(marker_ignores(marker[1]), touch.path, marker[0]) for touch in files)

    def _fail(self, key: str, reason: str) -> None:
        """Put an event aside, its header included: it may be understood one day."""
        rules = self._stores.config.rules
        raw = self._stores.inbox.raw(key)[: 4 * _FAILED_LIMIT]
        text = clean(raw.decode("utf-8", "replace"), _FAILED_LIMIT, rules)
        why = line(reason, 500, rules)
        self._stores.inbox.reject(key, text, why)

    def _file(self, name: SessionName, observation: Observation, whole: Round) -> None:
        """File one observation; its event may be acknowledged after the next sync."""
        self._stores.inbox.file(name, observation)
        whole.filed.append(observation)
        whole.acknowledge.append(observation.event.key)

    def _effects(self, whole: Round) -> None:
        """Step 3, and of step 4 the filing."""
        results: dict[SessionName, Refreshed] = {name: Refreshed() for name in whole.held}
        fresh = {name: [*held, *whole.ending.get(name, ())] for name, held in whole.held.items()}
        with self._stores.vault.together() as undone:
            for claim in whole.claims:
                name = SessionName(claim.event.agent, claim.event.sid)
                self._guarded(results[name], whole.tally, partial(self._sessions.accept, claim))
            for name in self._to_refresh(whole):
                refresh = partial(self._sessions.refresh, name, fresh[name], closing=name in whole.closing)
                self._guarded(results[name], whole.tally, refresh)
            projects = {r.project.id: r.project for r in results.values() if r.project is not None}
            for project in projects.values():
                affected = next(r for r in results.values() if r.project is not None and r.project.id == project.id)
                self._guarded(affected, whole.tally, partial(self._prepare, project, fresh))
        lost = {outcome.path for outcome in undone}
        for name, result in results.items():
            whole.tally.written |= result.written
            self._settle(name, result, fresh[name], whole, lost=bool(result.written & lost))

    def _settle(
        self, name: SessionName, result: Refreshed, fresh: Sequence[Observation], whole: Round, *, lost: bool
    ) -> None:
        """Of step 4 the filing for one session. What is postponed stays in new/: the events with effects."""
        held = whole.held[name]
        if result.postponed or lost:
            whole.tally.count(Outcome.POSTPONED, len(held))
            fresh = whole.ending.get(name, ())
        else:
            whole.tally.count(Outcome.RESUMED if result.resumed else Outcome.INSERTED, len(held))
            if result.closed:
                self._stores.inbox.pack(name, fresh)
                whole.filed.extend(fresh)
                whole.acknowledge.extend(o.event.key for o in fresh)
                return
        for observation in fresh:
            self._file(name, observation, whole)

    def _prepare(self, project: Project, fresh: Fresh) -> Refreshed:
        """Bring the offers of a project up to date."""
        self._offers.prepare(project, fresh)
        return Refreshed()

    @staticmethod
    def _guarded(result: Refreshed, tally: Tally, step: Callable[[], Refreshed]) -> None:
        """Take a step for one session; what stands in its way postpones this session and no other."""
        try:
            result.add(step())
        except (OSError, VaultdError) as error:
            result.postponed = True
            tally.troubles.add(str(error))

    def _to_refresh(self, whole: Round) -> list[SessionName]:
        """Sessions whose page or handoff may have to change, those that closed first before the others: those with
        closing events, and ended ones (they have a pack) that got a late event.
        """
        last = {name: max(o.event.order for o in held) for name, held in whole.held.items()}
        late = {name for name in whole.held if self._stores.inbox.has_pack(name)} - whole.closing
        return sorted(late) + sorted(whole.closing, key=lambda name: last[name])
