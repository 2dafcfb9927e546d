"""What was recorded, searched as it lies: for a query that no page answers. Bounded in time; newest sessions first."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from vaultd.core import query
from vaultd.core.event import Event
from vaultd.core.ids import Sid, session_id
from vaultd.core.markdown import locate
from vaultd.engine.projects import Project
from vaultd.engine.service import Reply
from vaultd.engine.stores import Stores
from vaultd.store.inbox import SessionName

__all__ = ["search_records"]

_SESSIONS, _SECONDS = 50, 0.5  # that are looked at, at most
_SHOWN = 5


def search_records(stores: Stores, projects: Sequence[str] | None, text: str) -> list[Reply]:
    """The records that have most words of a query, the newest of equals first: `[{session, agent, at, kind, text}]`.

    `projects` are ids, "" for sessions outside all of them; None for all sessions.
    """
    wanted = set(query.terms(text)) - query.STOP_FORMS
    if not wanted:
        return []
    until = time.monotonic() + _SECONDS
    needles = [term[: max(3, len(term) - 2)] for term in wanted]
    found: list[tuple[int, float, Event]] = []
    for name in _sessions(stores, projects):
        if time.monotonic() > until:
            break
        for observation in stores.inbox.observations(name):
            event = observation.event
            said = event.words
            lowered = query.fold(said).casefold()
            if any(needle in lowered for needle in needles):
                count = len(wanted.intersection(query.tokens(said)))
                if count:
                    found.append((count, event.at.timestamp(), event))
    found.sort(key=lambda item: (-item[0], -item[1]))
    least = (found[0][0] + 1) // 2 if found else 0  # fewer than half of the best one's words: noise
    return [
        {
            "session": event.sid,
            "agent": event.agent,
            "at": event.at.isoformat(timespec="seconds"),
            "kind": event.kind.value,
            "text": locate(event.words, text).snippet,
        }
        for count, _, event in found[:_SHOWN]
        if count >= least
    ]


def _sessions(stores: Stores, projects: Sequence[str] | None) -> Iterator[SessionName]:
    """The sessions of some projects, those at work first, then by when they began, the last first."""
    known = {project.id: project for project in stores.projects.known()}
    told = [known[id_] for id_ in projects if id_ in known] if projects is not None else list(known.values())
    paged = [name for project in told for name in _paged(stores, project)]
    paged.sort(key=lambda item: item[0], reverse=True)
    there = {name for _, name in paged}
    at_work = [n for n in stores.inbox.sessions() if n not in there and _belongs(stores, n, projects)]
    yield from [*at_work, *(name for _, name in paged)][:_SESSIONS]


def _paged(stores: Stores, project: Project) -> Iterator[tuple[str, SessionName]]:
    """The sessions that have a page in a project, with when they began."""
    for _, values in stores.pages.folder(f"{project.folder}/sessions"):
        agent, native = str(values.get("agent") or ""), str(values.get("session_id") or "")
        if agent and native:
            yield str(values.get("started") or ""), SessionName(agent, Sid(session_id(agent, native)))


def _belongs(stores: Stores, name: SessionName, projects: Sequence[str] | None) -> bool:
    """Whether a session without a page is one of these projects, by the folder that it is in."""
    if projects is None:
        return True
    observations = stores.inbox.observations(name)
    found = stores.projects.find(observations[-1].event.cwd) if observations and observations[-1].event.cwd else None
    return (found.id if isinstance(found, Project) else "") in projects
