"""The service answered here, beside the daemon: each call has stores of its own, the index is the daemon's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from vaultd.core.address import GLOBAL, page_path
from vaultd.core.sanitize import line
from vaultd.engine import authoring, listing, passing, reading, scoping
from vaultd.engine.answers import Wanted, answer, present
from vaultd.engine.health import AWAY, Pulse, health
from vaultd.engine.live import Live
from vaultd.engine.nearby import Nearby, nothing
from vaultd.engine.past import answer_as_of
from vaultd.engine.projects import Project
from vaultd.engine.receive import receive
from vaultd.engine.routing import ROUTING
from vaultd.engine.service import DEFAULT, Health, Hook, Page, Reply, Scope, Search
from vaultd.engine.status import status
from vaultd.engine.stores import Stores, require
from vaultd.errors import HeldError, NotFoundError, NoVaultError, UsageError
from vaultd.store.vault import PageFile

__all__ = ["LocalService"]

_BACKLOG, _BACKLOG_S = 50_000, 1.0  # events that may wait; for how long a count of them counts
_RECENT = 10
_QUIET_KINDS = frozenset({"handoff", "log", "project"})  # pages that say nothing new in a list of recent ones


class LocalService:
    """The use cases, safe from several threads. See `service.Service` for what each call gives."""

    def __init__(
        self,
        open_: Callable[[], Stores],
        live: Live,
        pulse: Pulse,
        written: Callable[[set[str]], None],
        nearby: Nearby = nothing,
    ) -> None:
        """`open_` gives stores of their own for a call; `written` is told of pages that are to be committed; `nearby`
        finds pages by meaning.
        """
        self._open = open_
        self._live = live
        self._pulse = pulse
        self._written = written
        self._nearby = nearby
        self._backlog = (0.0, 0)
        self._guard = threading.Lock()
        self._spare: list[Stores] = []

    @contextmanager
    def _stores(self) -> Iterator[Stores]:
        """Stores that nobody else uses meanwhile; what they remember of pages is kept for a later call."""
        with self._guard:
            stores = self._spare.pop() if self._spare else None
        stores = stores or self._open()
        try:
            require(stores.vault)  # it may be away since, and would look empty
            yield stores
        finally:
            with self._guard:
                self._spare.append(stores)

    def query(self, scope: Scope, text: str, search: Search = DEFAULT) -> Reply:
        """Search."""
        listing.bounds(search.limit, 100)
        with self._stores() as stores:
            projects = self._asked(stores, scope, search)
            wanted = Wanted(
                None if projects is None else [project.id if project else "" for project in projects],
                search.limit,
                search.where,
                search.expired,
                search.superseded,
                search.pinned_first,
                search.explain,
                search.tokens,
            )
            slugs = {p.id: p.slug for p in stores.projects.known()}
            if search.as_of:
                told: Reply = answer_as_of(stores, text, wanted, search.as_of).as_dict()
            else:
                told = self._now(stores, text, wanted)
            told["project"] = _slug(projects[0]) if projects else ""
        for name in ("hits", "global_hits", "other_hits"):
            told[name] = [{**hit, "project": slugs.get(hit["project"], hit["project"])} for hit in told[name]]
        return told

    def _now(self, stores: Stores, text: str, wanted: Wanted) -> Reply:
        """The answer of the present."""
        pending = self._live.catch_up()
        told = answer(present(stores, self._live.index), text, wanted, self._nearby)
        return {**told.as_dict(), "pending": pending + len(stores.inbox.pending())}

    def _asked(self, stores: Stores, scope: Scope, search: Search) -> list[Project | None] | None:
        """The projects that are asked, the scope's first, None for no project; None for all of them."""
        if search.everywhere:
            return None
        named: list[Project | None] = [scoping.any_project(stores, name) for name in search.projects]
        if named and not (scope.project or scope.cwd):
            return named
        own = scoping.readable(stores, scope)
        return [own, *(project for project in named if project != own)]

    def recent(self, scope: Scope, *, limit: int = 10, everywhere: bool = False) -> Reply:
        """Newest pages."""
        listing.bounds(limit, 100)
        with self._stores() as stores:
            project = None if everywhere else scoping.readable(stores, scope)
            folder = None if everywhere else _folder(project)
            return {"project": _slug(project), "pages": listing.recent_rows(stores, folder, limit)}

    def read_page(
        self, scope: Scope, path: str = "", query: str = "", *, anchor: str = "", lines: str = "", related: int = 0
    ) -> Reply:
        """One page, or a part of it."""
        if not path.strip() and not query.strip():
            raise UsageError("Say which page: its `path` (or name), or a `query` that it answers best.")
        if not 0 <= related <= reading.HOPS:
            raise UsageError(f"related must be from 0 to {reading.HOPS} hops, not {related}.")
        known = self._live.index.known()
        path, place = listing.parted(path, known)
        with self._stores() as stores:
            project = scoping.readable(stores, scope) if scope.project or scope.cwd else None
            found = listing.named_page(stores, project, path, known) if path else self._best(stores, scope, query)
            told = {
                "project": _owner(stores, found.path),
                **_stat(stores, found.path),
                **reading.part(found, anchor or place, lines),
            }
            if related:
                self._live.catch_up()
                told["related"] = reading.related(self._live.index, found.path, related)
            return told

    def pages(self, scope: Scope, *, limit: int = 100, offset: int = 0, everywhere: bool = False) -> Reply:
        """Pages by path."""
        listing.bounds(limit, 1000, offset)
        with self._stores() as stores:
            project = None if everywhere else scoping.readable(stores, scope)
            stats = listing.page_stats(stores, None if everywhere else _folder(project))
            rows = [row for s in stats[offset : offset + limit] if (row := listing.page_row(stores, s)) is not None]
            return {"project": _slug(project), "total": len(stats), "pages": rows}

    def projects(self) -> Reply:
        """All projects."""
        with self._stores() as stores:
            return {"projects": listing.all_projects(stores)}

    def sessions(self, scope: Scope, *, limit: int = 20) -> Reply:
        """Sessions that have a page."""
        listing.bounds(limit, 100)
        with self._stores() as stores:
            project = scoping.readable(stores, scope)
            folder = project.folder if project else "projects/unsorted"
            return {"project": _slug(project), "sessions": listing.session_rows(stores, folder, limit)}

    def status(self, scope: Scope) -> Reply:
        """The status report, and the project of the scope ("" where it names none)."""
        with self._stores() as stores:
            project = scoping.readable(stores, scope) if scope.project or scope.cwd else None
            return {"project": _slug(project), **status(stores)}

    def briefing(self, scope: Scope) -> Reply:
        """What a session should know at its start."""
        with self._stores() as stores:
            project = scoping.readable(stores, scope)
            rows = listing.recent_rows(stores, _folder(project), _RECENT, but=_QUIET_KINDS)
            return {
                "project": _slug(project),
                "handoffs": passing.handoff_rows(stores, project) if project else [],
                "recent": rows,
                "pinned": listing.pinned_rows(stores, self._live.index, project.id if project else ""),
            }

    def write_page(self, scope: Scope, page: Page) -> Reply:
        """Make or replace a page."""
        with self._stores() as stores:
            project, folder = self._room(stores, scope, page.everywhere)
            path = self._address(stores, page.path, folder)
            done = authoring.write(stores, path, folder, page)
            self._note(stores, {path})
            told = {"path": done.path, "revision": done.revision, "created": done.created, "redacted": done.redacted}
            return {"project": project, **told}

    def delete_page(self, scope: Scope, path: str, *, everywhere: bool = False) -> Reply:
        """Delete a page that git keeps."""
        with self._stores() as stores:
            project, folder = self._room(stores, scope, everywhere)
            where = self._address(stores, path, folder)
            commit = authoring.delete(stores, where, folder)
            self._note(stores, {where})
            return {"project": project, "path": where, "commit": commit}

    def handoff_begin(
        self,
        scope: Scope,
        summary: str,
        *,
        questions: Sequence[str] = (),
        next_steps: Sequence[str] = (),
        files: Sequence[str] = (),
        shared: bool = False,
        by: str = "",
    ) -> Reply:
        """Leave a handoff."""
        wanted = passing.Wanted(summary, questions, next_steps, files, shared)
        with self._stores() as stores:
            project = scoping.needed(stores, scope)
            who = line(by or "agent", 100, stores.config.rules)
            return self._changed(stores, project, passing.begin_handoff(stores, project, wanted, who))

    def handoff_list(self, scope: Scope) -> Reply:
        """Open handoffs."""
        with self._stores() as stores:
            project = scoping.readable(stores, scope)
            return {"project": _slug(project), "handoffs": passing.handoff_rows(stores, project) if project else []}

    def handoff_accept(self, scope: Scope, handoff_id: str = "", *, by: str = "") -> Reply:
        """Take a handoff."""
        with self._stores() as stores:
            project = _there(scoping.readable(stores, scope))
            who = line(by or "agent", 100, stores.config.rules)
            return self._changed(stores, project, passing.accept_handoff(stores, project, handoff_id, who))

    def handoff_cancel(self, scope: Scope, handoff_id: str) -> Reply:
        """Take a handoff out of the way."""
        with self._stores() as stores:
            project = _there(scoping.readable(stores, scope))
            return self._changed(stores, project, passing.cancel_handoff(stores, project, handoff_id))

    def observations(
        self,
        scope: Scope,
        session: str,
        *,
        limit: int = 50,
        offset: int = 0,
        newest_first: bool = False,
        kinds: Sequence[str] = (),
        text: str = "",
        most: int = 4000,
    ) -> Reply:
        """What was recorded of a session; `project` is the session's own."""
        listing.bounds(limit, 200, offset)
        if not 200 <= most <= 16_384:
            raise UsageError(f"A text has from 200 to 16384 bytes, not {most}.")
        with self._stores() as stores:
            told = listing.recorded(
                stores,
                session,
                limit=limit,
                offset=offset,
                newest_first=newest_first,
                kinds=kinds,
                text=text,
                most=most,
            )
            return {"project": _owner(stores, str(told["page"])), **told}

    def routing(self, scope: Scope) -> Reply:
        """Words for an agent's own instructions."""
        with self._stores() as stores:
            project = scoping.readable(stores, scope) if scope.project or scope.cwd else None
            return {"project": _slug(project), "text": ROUTING}

    def prepared(self, scope: Scope, agent: str) -> str:
        """What the next session would be given."""
        with self._stores() as stores:
            if agent and agent not in stores.agents:
                raise UsageError(f"Unknown agent {agent!r}. Known are: {', '.join(stores.agents)}.")
            project = scoping.readable(stores, scope)
            return passing.prepared_text(stores, project) if project else ""

    def deliver(self, hook: Hook) -> str:
        """Put an event into the inbox; HeldError while so many wait that more would only pile up."""
        with self._stores() as stores:
            at, count = self._backlog
            if time.monotonic() - at > _BACKLOG_S:
                self._backlog = (time.monotonic(), count := len(stores.inbox.pending()))
            if count > _BACKLOG:
                raise HeldError(f"{count} events wait already.")
            return receive(stores, hook)

    def health(self) -> Health:
        """Whether the daemon does its work."""
        try:
            with self._stores() as stores:
                return health(stores, self._pulse)
        except NoVaultError:
            return AWAY

    def _best(self, stores: Stores, scope: Scope, query: str) -> PageFile:
        """The page that answers a query best."""
        told = self.query(scope, query, Search(limit=1))
        hits = [*told["hits"], *told["global_hits"], *told["other_hits"]]
        for hit in sorted(hits, key=lambda hit: (hit.get("superseded", False), -hit["score"])):
            page = stores.vault.read(hit["path"])
            if page is not None:
                return page
        raise NotFoundError(f"No page answers {query!r}.")

    def _room(self, stores: Stores, scope: Scope, everywhere: bool) -> tuple[str, str]:
        """The slug to tell and the folder to write in."""
        if everywhere:
            return "", GLOBAL
        project = scoping.needed(stores, scope)
        self._note(stores, set())
        return project.slug, project.folder

    def _address(self, stores: Stores, path: str, folder: str) -> str:
        """The vault path of a page that a client wants changed."""
        return page_path(path, folder, [*(p.folder for p in stores.projects.known()), GLOBAL])

    def _changed(self, stores: Stores, project: Project, told: Reply) -> Reply:
        """A reply about a handoff; what changed is told on."""
        self._note(stores, {str(told["path"])})
        return {"project": project.slug, **told}

    def _note(self, stores: Stores, paths: set[str]) -> None:
        """Tell of pages that were changed, a project's new page among them."""
        changed = paths | stores.projects.take_written()
        if changed:
            self._live.touched(changed)
            self._written(changed)


def _there(project: Project | None) -> Project:
    """A project that is needed."""
    if project is None:
        raise NotFoundError("The folder is in no project yet, so no handoff waits.")
    return project


def _slug(project: Project | None) -> str:
    return project.slug if project else ""


def _folder(project: Project | None) -> str:
    return project.folder if project else ""


def _owner(stores: Stores, path: str) -> str:
    """The slug of the project whose folder a page lies in; "" for none."""
    return next((p.slug for p in stores.projects.known() if path.startswith(f"{p.folder}/")), "")


def _stat(stores: Stores, path: str) -> Reply:
    """`{path, title, kind, tier, updated}` of one page."""
    row = listing.one_row(stores, path)
    if row is None:
        raise NotFoundError(f"The page {path} was removed this moment.")
    return row
