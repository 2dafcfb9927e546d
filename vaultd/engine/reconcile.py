"""Reconcile: the index follows the disk.

A scan is the truth: each page's inode, time, size and project are compared with what the index knows; what differs is
read again, what is gone is dropped. Hints (store/watch.py) say where to look first, no more. Deleting the index folder
loses nothing: the next pass makes it anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from vaultd.core import frontmatter
from vaultd.core.address import GLOBAL
from vaultd.core.kinds import kind_of, tier_of
from vaultd.core.markdown import title_of
from vaultd.core.obsidian import parse
from vaultd.core.properties import property_links, relations, replaced
from vaultd.engine.stores import Stores
from vaultd.errors import VaultdError
from vaultd.store import fs
from vaultd.store.fs import Lock, revision
from vaultd.store.index import Drop, Index, IndexDoc, Known, Put
from vaultd.store.vault import PageStat

__all__ = ["Behind", "Reconcile", "document", "open_index", "project_of", "rebuild"]

_CHUNK = 200  # pages per commit of the index: a reader sees progress, a crash loses little
_HUGE = 256 * 1024  # bytes; such a page comes last, in a commit of its own: others do not wait for it
_YOUNG_S = 2.0
_LITTER_S = 60.0  # a temporary file this old in the index's folder was left by a crash: who writes holds the lock


log = logging.getLogger("vaultd")


@dataclass(frozen=True, slots=True)
class Behind:
    """What the index does not know yet: pages to read again, and paths that are gone."""

    changed: Sequence[PageStat]
    gone: Sequence[str]

    @property
    def count(self) -> int:
        """Pages that a search may answer wrongly about."""
        return len(self.changed) + len(self.gone)

    @property
    def huge(self) -> Sequence[str]:
        """The changed pages that take long to read, the smallest first."""
        return [s.path for s in sorted(self.changed, key=lambda s: s.size) if s.size >= _HUGE]

    def chunks(self) -> Iterator[Sequence[str]]:
        """Paths in commits of a bounded size: what is gone, the newest pages (a person looks for those), huge ones."""
        recent = sorted(self.changed, key=lambda s: -s.mtime_ns)
        paths = [*self.gone, *(stat.path for stat in recent if stat.size < _HUGE)]
        for start in range(0, len(paths), _CHUNK):
            yield paths[start : start + _CHUNK]
        for path in self.huge:
            yield [path]


def open_index(stores: Stores) -> Index:
    """The vault's index, made if there is none."""
    return Index(stores.config.places.index(stores.vault.root), stores.vault.root)


def index_lock(stores: Stores) -> Lock:
    """The lock that is held by whoever writes the index."""
    folder = stores.config.places.index(stores.vault.root).parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Lock(folder / "index.lock")


class Reconcile:
    """Brings one index up to date, with the projects as they are when it is made.

    `projects` are their ids by folder, `failed` the pages that could not be brought in, with the reasons: whatever is
    wrong with one page, the others do not wait for it, and the next pass tries it again.
    """

    def __init__(self, stores: Stores, index: Index) -> None:
        self._stores = stores
        self._index = index
        self.projects: Mapping[str, str] = {project.folder: project.id for project in stores.projects.known()}
        self.failed: dict[str, str] = {}
        self._formers: dict[str, str] = {}

    def behind(self, only: Iterable[str] | None = None) -> Behind:
        """Compare disk and index; with `only`, what is under these vault paths (pages, and folders with all below).

        A vault that is away has lost nothing: nothing is behind then. Nor is what could not be looked at.
        """
        vault = self._stores.vault
        if not vault.presence().here:
            return Behind((), ())
        paths = None if only is None else {path.rstrip("/") for path in only}
        known, now = self._index.known(), self._stores.clock().timestamp()
        changed, seen = [], set()
        scan = vault.scan(paths)
        for stat in scan:
            if stat.path in seen:
                continue
            seen.add(stat.path)
            if self._differs(stat, known.get(stat.path), now):
                changed.append(stat)
        gone = [path for path in _under(known, paths, seen) if path not in seen and scan.knows(path)]
        if gone and not vault.presence().here:  # it went away meanwhile
            return Behind((), ())
        return Behind(changed, gone)

    def _differs(self, stat: PageStat, have: Known | None, now: float) -> bool:
        """Whether a page is to be read again: it is another, or its folder is another project's by now.

        Two saves of one size can have one time, which is that of the system's last tick: while a page is young, its
        bytes are compared.
        """
        if have is None or (have.inode, have.mtime_ns, have.size) != (stat.inode, stat.mtime_ns, stat.size):
            return True
        if have.project != self._project(stat.path):
            return True
        if abs(now - stat.mtime_ns / 1e9) > _YOUNG_S or stat.size > _HUGE:
            return False
        try:
            page = self._stores.vault.read(stat.path)
        except (OSError, VaultdError):
            return False
        return page is not None and page.revision != have.revision

    def run(self, behind: Behind, progress: Callable[[int, int], None] | None = None, *, blocking: bool = True) -> bool:
        """Bring the index up to date; False when another process is at it and `blocking` is not wanted."""
        if not behind.count:
            return True
        lock = index_lock(self._stores)
        if not lock.acquire(blocking=blocking):
            return False
        try:
            if self._index.doubt:
                self.make_anew(progress)
                return True
            self.clear_litter()
            done = 0
            for chunk in behind.chunks():
                self.bring_in(chunk)
                done += len(chunk)
                if progress is not None:
                    progress(done, behind.count)
        finally:
            lock.release()
        return True

    def bring_in(self, paths: Sequence[str]) -> None:
        """Let the index have these pages as they are on disk now, in one commit. The caller holds its lock."""
        changes = [change for path in paths if (change := self._change(path)) is not None]
        try:
            self._index.apply(changes)
        except (OSError, VaultdError):
            raise  # a full disk, another writer: no fault of a page's
        except Exception:
            if len(changes) == 1:
                log.exception("a fault while a page was indexed")
                self.failed[changes[0].path] = "a fault, see the log"
                return
            for change in changes:
                self.bring_in([change.path])

    def clear_litter(self) -> None:
        """Remove what a crash left in the index's folder. The caller holds its lock."""
        folder = self._stores.config.places.index(self._stores.vault.root)
        fs.sweep_temps(folder, _LITTER_S, self._stores.clock().timestamp())

    def make_anew(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Make the whole index anew of the pages on disk; the old one answers until then. The caller holds its lock."""
        self.clear_litter()
        stats = sorted(self._stores.vault.scan(), key=lambda s: -s.mtime_ns)

        def puts() -> Iterator[Put]:
            for number, stat in enumerate(stats, 1):
                change = self._change(stat.path)
                if isinstance(change, Put):
                    yield change
                if progress is not None:
                    progress(number, len(stats))

        self._index.rebuild(puts())

    def _change(self, path: str) -> Put | Drop | None:
        """What the index is told about one page; None when it cannot be read, or makes us fail."""
        self.failed.pop(path, None)
        try:
            scan = self._stores.vault.scan([path])  # the state before it is read: a save in between is seen next time
            stat = next(scan, None)
            page = self._stores.vault.read(path) if stat is not None and stat.path == path else None
            if stat is None or page is None:
                return Drop(path) if scan.knows(path) and self._stores.vault.presence().here else None
            return Put(document(stat, page.data, self._project(path)))
        except OSError as error:
            self.failed[path] = error.strerror or "it cannot be read"
        except Exception:  # a page that we cannot deal with must not keep others out
            log.exception("a fault while a page was read")
            self.failed[path] = "a fault, see the log"
        return None

    def _project(self, path: str) -> str:
        """The id of the project whose folder a page lies in; "" for a page outside all of them."""
        return project_of(self.projects, path) or ((folder := _folder_of(path)) and self._former(folder))

    def _former(self, folder: str) -> str:
        """The project of a folder whose page is there but does not say its id now: a person is at it."""
        if folder not in self._formers:
            page = f"{folder}/project.md"
            have = self._index.known().get(page)
            there = have is not None and have.project and next(self._stores.vault.scan([page]), None) is not None
            self._formers[folder] = have.project if have is not None and there else ""
        return self._formers[folder]


def _under(known: Mapping[str, Known], paths: Collection[str] | None, seen: Collection[str]) -> Iterable[str]:
    """The known pages that are one of the paths, or below one that is no page that was seen."""
    if paths is None:
        return list(known)
    pages = [path for path in paths if path in known]
    folders = tuple(path + "/" for path in paths if path not in known and path not in seen)
    return [*pages, *(path for path in known if path.startswith(folders))] if folders else pages


def document(stat: PageStat, data: bytes, project: str) -> IndexDoc:
    """What the index keeps of a page. A page whose frontmatter does not parse is found by its text all the same."""
    meta, body = frontmatter.parse(data)
    values = meta.values
    return IndexDoc(
        path=stat.path,
        title=title_of(values, body, stat.path),
        aliases=_texts(values.get("aliases")),
        tags=_texts(values.get("tags")),
        body=body,
        summary=str(values.get("summary") or ""),
        kind=kind_of(stat.path, values),
        tier=tier_of(stat.path, values),
        project=project,
        updated=str(values.get("updated") or values.get("created") or ""),
        pinned=values.get("pinned") is True,
        superseded=_superseded(values),
        entities=_texts(values.get("entities")),
        links=_links(values, body),
        replaces=[link.target for link in replaced(values)],
        revision=revision(data),
        inode=stat.inode,
        mtime_ns=stat.mtime_ns,
        size=stat.size,
        meta=values,
        unparsable=meta.error is not None,
    )


def _links(values: Mapping[str, object], body: str) -> list[str]:
    """The pages that a page links to: in its text, its properties and its relations, as they are written there."""
    may = "[[" in body or "](" in body or "]:" in body  # what a link needs; the parser takes as long as all else
    told = [
        *(parse(body).links if may else ()),
        *(found.link for found in (*property_links(values), *relations(values))),
    ]
    return list(dict.fromkeys(link.target for link in told if link.target and not link.external))


def _superseded(values: Mapping[str, object]) -> bool:
    """Whether a page says that another one took its place; as decision records do, its status may say it."""
    return bool(values.get("superseded_by")) or str(values.get("status")).strip().casefold().startswith("superseded")


def project_of(projects: Mapping[str, str], path: str) -> str:
    """The id of the project that a page is of, of these ids by folder; "" for a page outside all of them."""
    return GLOBAL if path.startswith(f"{GLOBAL}/") else projects.get(_folder_of(path), "")


def _folder_of(path: str) -> str:
    """The folder that is a project's if the page is in one: the first two parts of its path."""
    slash = path.find("/", path.find("/") + 1)
    return path[:slash] if slash > 0 else ""


def _texts(value: object) -> tuple[str, ...]:
    """A frontmatter value that may be one text or a list of them."""
    if isinstance(value, list):
        return tuple(str(item) for item in value if item is not None)
    return (str(value),) if isinstance(value, str) and value else ()


def rebuild(stores: Stores, progress: Callable[[int, int], None] | None = None) -> int:
    """Throw the index away and make it anew; how many pages it holds then."""
    index = open_index(stores)
    try:
        with index_lock(stores):
            Reconcile(stores, index).make_anew(progress)
        return index.pages
    finally:
        index.close()
