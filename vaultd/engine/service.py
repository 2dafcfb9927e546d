"""What the daemon's surfaces (HTTP, MCP) and its clients ask of vaultd: one protocol, answered here or over a socket.

Every call is synchronous, safe from several threads, and gives plain JSON-able values; whatever goes wrong on purpose
is a VaultdError. Reads create nothing. Every reply names in `project` what it answered from: a project's slug, or ""
for no project.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

__all__ = ["DEFAULT", "RECORDS", "Health", "Hook", "Page", "Reply", "Scope", "Search", "Service", "because"]

Reply: TypeAlias = dict[str, Any]
"""A JSON object."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a client says it is: a project by slug, title, alias, id or `workspace/slug`, which wins, else a folder.

    `cwd` is an absolute path on this machine. Neither: a call that needs a project is a UsageError that lists them.
    """

    project: str = ""
    cwd: str = ""


@dataclass(frozen=True, slots=True)
class Search:
    """How a client wants a query answered.

    `everywhere`: all projects in one list. `projects`: these too, or these where the scope names none. `where`: only
    pages whose frontmatter has one of the values of each key. `expired`, `superseded`: such pages too. `pinned_first`:
    the pinned pages in front. `explain`: why each hit stands where it does. `tokens`: about how long the hits may be
    all together (4 bytes each), 0 for any length. `as_of`: a day (its end) or time with
    offset; the vault as git had it then, "" for the present.
    """

    limit: int = 10
    everywhere: bool = False
    projects: Sequence[str] = ()
    where: Mapping[str, Sequence[str]] = field(default_factory=dict)
    expired: bool = False
    superseded: bool = False
    pinned_first: bool = False
    explain: bool = False
    tokens: int = 0
    as_of: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A page that a client wants written: its path in the project (`notes/x.md`, also from the vault's root), its text,
    and what its frontmatter shall say; None leaves a key as it is.

    `everywhere`: in `_global` instead of the project.
    """

    path: str
    body: str
    title: str | None = None
    tier: str | None = None
    pinned: bool | None = None
    tags: Sequence[str] | None = None
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class Hook:
    """An event that came over HTTP. `key` is the client's idempotency key, "" for none; `body` the payload's own bytes;
    `session` the agent's own session id where the payload has none; `at` RFC 3339 with offset, "" for now.
    """

    agent: str
    event: str
    body: bytes
    key: str = ""
    session: str = ""
    cwd: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the daemon does its work; each problem is a sentence without a path in it."""

    ok: bool
    problems: Sequence[str]


RECORDS = "From the records of sessions, as they were taken down:"
"""Stands above what answers where no page does."""

DEFAULT = Search()
"""A search as it is when nothing is said."""


class Service(Protocol):
    """The use cases of an open vault."""

    def query(self, scope: Scope, text: str, search: Search = DEFAULT) -> Reply:
        """Search: `search --json` of the format, its `project` the slug.

        A page written by this service, or saved before the call, is found. With `as_of` the reply is from git, and
        says so in `as_of`: `{commit, at}`; NotFoundError when the vault had no commit then.
        """

    def recent(self, scope: Scope, *, limit: int = 10, everywhere: bool = False) -> Reply:
        """`{project, pages: [{path, title, kind, tier, updated}]}`, newest first."""

    def read_page(
        self, scope: Scope, path: str = "", query: str = "", *, anchor: str = "", lines: str = "", related: int = 0
    ) -> Reply:
        """One page, by path (in the project, or from the vault's root), name, session id or `project:page`, or the best
        hit of a query.

        `{project, path, title, kind, tier, revision, updated, lines, of, text}`. Of the page comes the part that
        `anchor` (`#Heading`, `#^block`; it may also end the path) or `lines` (`12-40`) names; `lines` says which of
        the `of` lines those are. With `related` hops, 1 to 3, `related` has at most 50 pages that links lead to and
        from: `[{path, title, kind, hops, by}]`, nearest first. NotFoundError; UsageError when several fit.
        """

    def pages(self, scope: Scope, *, limit: int = 100, offset: int = 0, everywhere: bool = False) -> Reply:
        """`{project, total, pages: [{path, title, kind, tier, updated}]}` by path."""

    def projects(self) -> Reply:
        """`{projects: [{slug, workspace, id, title, folder}]}` by folder."""

    def sessions(self, scope: Scope, *, limit: int = 20) -> Reply:
        """`{project, sessions: [{id, agent, session_id, title, started, ended, path}]}`, newest first."""

    def status(self, scope: Scope) -> Reply:
        """`status --json` of the format, and `project`."""

    def briefing(self, scope: Scope) -> Reply:
        """`{project, handoffs: [...], recent: [...], pinned: [...]}`: open handoffs, ten recent pages, pinned ones."""

    def write_page(self, scope: Scope, page: Page) -> Reply:
        """Make a page, or replace its body: `{project, path, revision, created, redacted}`; `redacted` counts secrets.

        A person's text that is not in git yet is committed before it is replaced. RefusedError for a path that is not a
        page of the project; ConflictError when the page changes at this moment, or what it holds cannot be kept.
        """

    def delete_page(self, scope: Scope, path: str, *, everywhere: bool = False) -> Reply:
        """Delete a page, kept in git: `{project, path, commit}`. NotFoundError; RefusedError as for writing."""

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
        """Leave a handoff of `by` for the next session of the project: `{project, id, path, redacted}`."""

    def handoff_list(self, scope: Scope) -> Reply:
        """`{project, handoffs: [{id, title, from_agent, created, provisional, subdir, path}]}`, as they are given."""

    def handoff_accept(self, scope: Scope, handoff_id: str = "", *, by: str = "") -> Reply:
        """Take an open handoff, by id or the one that would be given next: `{project, id, path, text}`, `text` fenced.

        NotFoundError when there is none, ConflictError when it is not open any more.
        """

    def handoff_cancel(self, scope: Scope, handoff_id: str) -> Reply:
        """Nobody gets this handoff any more: `{project, id, path}`. NotFoundError, ConflictError."""

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
        """What was recorded of a session (by its native id, sid, or page): `{project, session, agent, total,
        observations: [{at, kind, text, tool, files, command, ok}]}`. `text` filters, `most` bounds each text (bytes).
        """

    def routing(self, scope: Scope) -> Reply:
        """`{project, text}`: for an agent's own instructions, so that it uses the memory; writes nothing."""

    def deliver(self, hook: Hook) -> str:
        """Put an event into the inbox, safe from the death of any process when this returns: its key.

        The same client key with the same body again changes nothing. ConflictError for the same key with another body;
        UsageError for an unknown agent or event, or an event that nothing can be made of.
        """

    def prepared(self, scope: Scope, agent: str) -> str:
        """The text that the next session there would be given, claimed by nobody; "" for none."""

    def health(self) -> Health:
        """Whether events are taken in, the index follows and the vault is there."""


def because(why: Mapping[str, Any]) -> str:
    """Why a hit stands where it does, in a line for a person or a model."""
    told = []
    for name, part in why.items():
        if isinstance(part, Mapping):
            told.append(f"{name} {part['adds']} (rank {part['rank']}, score {part['score']})")
        elif part:
            told.append(f"{name} {' '.join(map(str, part)) if isinstance(part, list) else part}")
    return f"because: {', '.join(told)}"
