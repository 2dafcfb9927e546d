"""The read-only interface under `/api/v1`: every route, its parameters, and the call that answers it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from vaultd.core.event import Kind
from vaultd.engine.service import Reply, Scope, Search, Service
from vaultd.http.values import Parameter

__all__ = ["BASE", "ROUTES", "SCOPE", "Route"]

BASE = "/api/v1"

SCOPE = (
    Parameter("project", str, "the project: slug, title, alias, id or workspace/slug"),
    Parameter("cwd", str, "else the folder that the client is in, an absolute path"),
)

_EVERYWHERE = Parameter("everywhere", bool, "in all projects", False)
_OFFSET = Parameter("offset", int, "how many to pass over", 0, 0, 1_000_000)

_LOST_PLUS = re.compile(r" (?=\d\d:?\d\d\Z)")
"""The sign of a time's offset, which means a blank in a query unless it is encoded."""

_Call = Callable[[Service, Scope, dict[str, Any]], Reply]


@dataclass(frozen=True, slots=True)
class Route:
    """One route: its path below `BASE` (`{name}` for a part of it), what it gives, its parameters, its call."""

    path: str
    summary: str
    call: _Call
    parameters: Sequence[Parameter] = field(default=())
    scoped: bool = True

    @property
    def query(self) -> tuple[Parameter, ...]:
        """All parameters of its query."""
        return (*(SCOPE if self.scoped else ()), *self.parameters)


def _limit(most: int, default: int) -> Parameter:
    return Parameter("limit", int, "at most so many", default, 1, most)


def _search(service: Service, scope: Scope, v: dict[str, Any]) -> Reply:
    names = ("limit", "everywhere", "expired", "superseded", "pinned_first", "explain", "tokens")
    as_of = _LOST_PLUS.sub("+", v["as_of"] or "")
    search = Search(projects=v["projects"] or (), as_of=as_of, **{name: v[name] for name in names})
    return service.query(scope, v["query"], search)


def _recent(service: Service, scope: Scope, v: dict[str, Any]) -> Reply:
    return service.recent(scope, limit=v["limit"], everywhere=v["everywhere"])


def _page(service: Service, scope: Scope, v: dict[str, Any]) -> Reply:
    return service.read_page(
        scope,
        v["path"] or "",
        v["query"] or "",
        anchor=v["anchor"] or "",
        lines=v["lines"] or "",
        related=v["related"],
    )


def _pages(service: Service, scope: Scope, v: dict[str, Any]) -> Reply:
    return service.pages(scope, limit=v["limit"], offset=v["offset"], everywhere=v["everywhere"])


def _sessions(service: Service, scope: Scope, v: dict[str, Any]) -> Reply:
    return service.sessions(scope, limit=v["limit"])


def _observations(service: Service, scope: Scope, v: dict[str, Any]) -> Reply:
    return service.observations(
        scope,
        v["session"],
        limit=v["limit"],
        offset=v["offset"],
        newest_first=v["newest_first"],
        kinds=v["kinds"] or (),
        text=v["text"] or "",
        most=v["most"],
    )


_KINDS = "|".join(kind.value for kind in Kind)

ROUTES: Sequence[Route] = (
    Route("/status", "What is recorded, what waits, and what is wrong", lambda s, where, v: s.status(where)),
    Route("/projects", "All projects", lambda s, where, v: s.projects(), scoped=False),
    Route(
        "/search",
        "The pages that answer a query, best first",
        _search,
        (
            Parameter("query", str, "the words to look for", required=True),
            _limit(100, 10),
            _EVERYWHERE,
            Parameter("projects", list, "these projects as well, with commas"),
            Parameter("expired", bool, "pages whose time is over, too", False),
            Parameter("superseded", bool, "pages that others replaced, too", False),
            Parameter("pinned_first", bool, "the pinned pages in front", False),
            Parameter("explain", bool, "why each hit stands where it does", False),
            Parameter("tokens", int, "about how long all hits may be together, 0 for any length", 0, 0, 100_000),
            Parameter("as_of", str, "as git had the vault at the end of this day, or at this time with offset"),
        ),
    ),
    Route("/recent", "The pages that changed last", _recent, (_limit(100, 10), _EVERYWHERE)),
    Route("/pages", "The pages, by path", _pages, (_limit(1000, 100), _OFFSET, _EVERYWHERE)),
    Route(
        "/page",
        "One page: by path, name or session id, or the one that answers a query best",
        _page,
        (
            Parameter("path", str, "its path or name"),
            Parameter("query", str, "or what it answers"),
            Parameter("anchor", str, "only this part: #Heading or #^block"),
            Parameter("lines", str, "only these lines, like 12-40"),
            Parameter("related", int, "so many links away, also the pages around it", 0, 0, 3),
        ),
    ),
    Route("/briefing", "Open handoffs, recent and pinned pages", lambda s, where, v: s.briefing(where)),
    Route("/handoffs", "The open handoffs, as they are given", lambda s, where, v: s.handoff_list(where)),
    Route("/sessions", "The sessions that have a page, newest first", _sessions, (_limit(100, 20),)),
    Route(
        "/sessions/{session}/observations",
        "What was recorded of a session",
        _observations,
        (
            _limit(200, 50),
            _OFFSET,
            Parameter("newest_first", bool, "the newest in front", False),
            Parameter("kinds", list, "only these kinds, with commas", pattern=f"(?:{_KINDS})(?:,(?:{_KINDS}))*"),
            Parameter("text", str, "only those with this text in them"),
            Parameter("most", int, "bytes of each text", 4000, 200, 16_384),
        ),
    ),
)
"""Every route."""
