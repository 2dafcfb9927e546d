"""Lists for clients: pages, projects, sessions, what was recorded of one. Reads only."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from vaultd.core import frontmatter
from vaultd.core.address import GLOBAL, page_path
from vaultd.core.cutting import bounded
from vaultd.core.event import Event
from vaultd.core.ids import Sid, session_id
from vaultd.core.kinds import kind_of, tier_of
from vaultd.core.lifecycle import in_order
from vaultd.core.markdown import title_of
from vaultd.core.query import fold
from vaultd.engine.projects import Project
from vaultd.engine.recall import find_page
from vaultd.engine.service import Reply
from vaultd.engine.stores import Stores
from vaultd.errors import NotFoundError, RefusedError, UsageError
from vaultd.store.inbox import SessionName
from vaultd.store.index import Index
from vaultd.store.vault import PageFile, PageStat

__all__ = [
    "all_projects",
    "bounds",
    "named_page",
    "one_row",
    "page_row",
    "page_stats",
    "parted",
    "pinned_rows",
    "recent_rows",
    "recorded",
    "session_rows",
]


def bounds(limit: int, most: int, offset: int = 0) -> None:
    """UsageError unless 1 <= limit <= most and offset is not negative."""
    if not 1 <= limit <= most:
        raise UsageError(f"limit must be from 1 to {most}, not {limit}.")
    if offset < 0:
        raise UsageError(f"offset must not be negative, as {offset} is.")


def page_stats(stores: Stores, folder: str | None) -> list[PageStat]:
    """The pages below a project's folder, or of the whole vault, by path."""
    stats = [s for s in stores.vault.scan() if folder is None or s.path.startswith(f"{folder}/")]
    return sorted(stats, key=lambda s: s.path)


def page_row(stores: Stores, stat: PageStat) -> Reply | None:
    """`{path, title, kind, tier, updated}` of a page; None when it is gone since. `updated` is the file's time."""
    page = stores.vault.read(stat.path)
    if page is None:
        return None
    meta, body = frontmatter.parse(page.data)
    when = datetime.fromtimestamp(stat.mtime_ns / 1e9, stores.clock().tzinfo)
    return {
        "path": stat.path,
        "title": title_of(meta.values, body, stat.path),
        "kind": kind_of(stat.path, meta.values),
        "tier": tier_of(stat.path, meta.values),
        "updated": when.isoformat(timespec="seconds"),
    }


def one_row(stores: Stores, path: str) -> Reply | None:
    """The same of a page by its path."""
    try:
        found = stores.vault.checked(path).stat()
    except FileNotFoundError:
        return None
    return page_row(stores, PageStat(path, found.st_ino, found.st_mtime_ns, found.st_size))


def pinned_rows(stores: Stores, index: Index, project: str) -> list[Reply]:
    """The pinned pages of a project (id, "" for none) and those that hold in every project, by path."""
    known = list(index.known().items())  # another thread may write the index meanwhile
    paths = [path for path, page in known if page.pinned and page.project in (project, GLOBAL)]
    return [row for path in sorted(paths) if (row := one_row(stores, path)) is not None]


def recent_rows(stores: Stores, folder: str | None, limit: int, but: frozenset[str] = frozenset()) -> list[Reply]:
    """Rows of the newest pages in a folder ("" for those in no project, None for all), without some kinds."""
    inside = [p.folder for p in stores.projects.known()] if folder == "" else []
    rows: list[Reply] = []
    for stat in sorted(page_stats(stores, folder or None), key=lambda s: (-s.mtime_ns, s.path)):
        if any(stat.path.startswith(f"{other}/") for other in inside):
            continue
        row = page_row(stores, stat)
        if row is not None and row["kind"] not in but:
            rows.append(row)
        if len(rows) == limit:
            break
    return rows


def parted(name: str, known: Collection[str]) -> tuple[str, str]:
    """A page's name, and the anchor behind it ("" for none). `known` are paths, which may have a `#` themselves."""
    told = name.strip()
    link = told.removeprefix("[[").removesuffix("]]").strip() if told.startswith("[[") else told
    page, sign, anchor = link.partition(".md#")
    if link in known:
        return link, ""
    if sign:
        return f"{page}.md", anchor
    page, _, anchor = link.partition("#")
    return page.strip(), anchor


def named_page(stores: Stores, project: Project | None, name: str, known: Collection[str] = ()) -> PageFile:
    """The page that a client names: in the project, from the vault's root, or by file name or session id. One of the
    `known` paths is always a page's, whatever signs a person gave it.

    NotFoundError, RefusedError; UsageError when several pages fit.
    """
    if name in known and (page := stores.vault.read(name)) is not None:
        return page
    project, name = _abroad(stores, project, name)
    for folder in (project.folder, "") if project else ("",):
        page = stores.vault.read(page_path(name, folder))
        if page is not None:
            return page
    if "/" in name:
        raise NotFoundError(f"There is no page {name}. Search for it, or list the recent ones.")
    found = find_page(stores, name)
    others = [p.folder for p in stores.projects.known()]
    inside = project is None or found.startswith((f"{project.folder}/", f"{GLOBAL}/"))
    if not inside and any(found.startswith(f"{other}/") for other in others):
        raise NotFoundError(f"There is no page {name!r} in this project. {found} is of another one.")
    page = stores.vault.read(found)
    if page is None:
        raise NotFoundError(f"The page {found} was removed this moment.")
    return page


def _abroad(stores: Stores, project: Project | None, name: str) -> tuple[Project | None, str]:
    """The project that `project:page` names, and the page in it; else both as they are."""
    slug, colon, page = name.partition(":")
    if not colon or not page:
        return project, slug
    other = next((p for p in stores.projects.known() if slug in (p.slug, p.folder)), None)
    return (other, page) if other is not None else (project, name)


def all_projects(stores: Stores) -> list[Reply]:
    """All projects, by folder."""
    return [
        {"slug": p.slug, "workspace": p.workspace, "id": p.id, "title": p.title, "folder": p.folder}
        for p in stores.projects.known()
    ]


def session_rows(stores: Stores, folder: str, limit: int) -> list[Reply]:
    """The session pages of a project's folder, the one that began last first."""
    keys = ("id", "agent", "session_id", "title", "started", "ended")
    rows: list[Reply] = []
    for path, values in stores.pages.folder(f"{folder}/sessions"):
        rows.append({**{key: _text(values.get(key)) for key in keys}, "path": path})
    return sorted(rows, key=lambda row: _instant(str(row["started"])), reverse=True)[:limit]


def recorded(
    stores: Stores,
    session: str,
    *,
    limit: int,
    offset: int,
    newest_first: bool,
    kinds: Sequence[str],
    text: str,
    most: int,
) -> Reply:
    """What was recorded of a session, and which it is; NotFoundError. Things reported twice are told once."""
    name = _session(stores, session)
    events = in_order(o.event for o in stores.inbox.observations(name))
    wanted = fold(text).casefold()
    rows = [
        row
        for event in (reversed(events) if newest_first else events)
        if (not kinds or event.kind.value in kinds)
        and (row := _row(event, most)) is not None
        and (not wanted or wanted in fold(event.words).casefold())
    ]
    page = next((p for project in stores.projects.known() if (p := _page(stores, project, name))), "")
    return {
        "session": str(name.sid),
        "agent": name.agent,
        "page": page,
        "total": len(rows),
        "observations": rows[offset : offset + limit],
    }


def _page(stores: Stores, project: Project, name: SessionName) -> str | None:
    """The page of a session in a project."""
    return stores.pages.session(project.folder, name.agent, name.sid)


def _session(stores: Stores, session: str) -> SessionName:
    """The session that a client means: by sid, `agent-sid`, native id, or the path of its page."""
    told = session.strip()
    if told.endswith(".md"):
        values = _page_named(stores, told) if "/" in told else None
        told = _text((values or {}).get("id")) or told.removesuffix(".md").rpartition("/")[2]
    known = {*stores.inbox.sessions(), *stores.inbox.packs()}
    named = SessionName.parse(told)
    fits = [name for name in known if name == named or str(name.sid) == told]
    fits = fits or [n for a in stores.agents if (n := SessionName(a, Sid(session_id(a, told)))) in known]
    if not fits:
        raise NotFoundError(
            f"Nothing is recorded on this machine of a session {session!r}. Its page may have more: search for it."
        )
    return fits[0]


def _page_named(stores: Stores, path: str) -> Mapping[str, object] | None:
    """The frontmatter of a page at a path that a client gave; None for one that is no page's."""
    try:
        return stores.pages.page(page_path(path, ""))
    except RefusedError:
        return None


def _row(event: Event, most: int) -> Reply | None:
    """One event for a client."""
    row: Reply = {"at": event.at.isoformat(timespec="seconds"), "kind": event.kind.value}
    said = event.text or (event.tool.error or event.tool.output if event.tool else "")
    if said:
        row["text"] = bounded(said, most, 0.5)
    if event.tool is not None:
        row["tool"] = event.tool.name
        if event.tool.files:
            row["files"] = [file.path for file in event.tool.files]
        if event.tool.command:
            row["command"] = bounded(event.tool.command, most, 0.5)
        if event.tool.ok is not None:
            row["ok"] = event.tool.ok
    return row


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _instant(text: str) -> float:
    """A time as epoch seconds, to sort by; 0 for none."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0
