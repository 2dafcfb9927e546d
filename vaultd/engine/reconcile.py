"""Reconcile: the index follows the disk.

A scan is the truth: each page's inode, time and size are compared with what the index knows; what differs is read
again, what is gone is dropped. Deleting the index folder loses nothing: the next pass makes it anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from vaultd.core import frontmatter
from vaultd.core.kinds import kind_of, tier_of
from vaultd.core.markdown import title_of
from vaultd.engine.stores import Stores
from vaultd.store import fs
from vaultd.store.fs import Lock, revision
from vaultd.store.index import Drop, Index, IndexDoc, Known, Put
from vaultd.store.vault import PageStat

__all__ = ["Behind", "Reconcile", "document", "open_index", "rebuild"]

_CHUNK = 200  # pages per commit of the index: a reader sees progress, a crash loses little
_HUGE = 512 * 1024  # bytes
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


def open_index(stores: Stores) -> Index:
    """The vault's index, made if there is none."""
    return Index(stores.config.places.index(stores.vault.root), stores.vault.root)


def index_lock(stores: Stores) -> Lock:
    """The lock that is held by whoever writes the index."""
    folder = stores.config.places.index(stores.vault.root).parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Lock(folder / "index.lock")


class Reconcile:
    """Brings one index up to date."""

    def __init__(self, stores: Stores, index: Index) -> None:
        self._stores = stores
        self._index = index
        self._ids = {project.folder: project.id for project in stores.projects.known()}
        self.failed: set[str] = set()

    def behind(self) -> Behind:
        """Compare disk and index. A vault that is away has lost nothing: nothing is behind then."""
        if not self._stores.vault.presence().here:
            return Behind((), ())
        known = self._index.known()
        scan, changed, seen = self._stores.vault.scan(), [], set()
        for stat in scan:
            seen.add(stat.path)
            if self._differs(stat, known.get(stat.path)):
                changed.append(stat)
        hidden = tuple(f"{folder}/" if folder else "" for folder in scan.unreadable)  # unknown, not gone
        return Behind(changed, [path for path in known if path not in seen and not path.startswith(hidden)])

    def behind_at(self, paths: Iterable[str]) -> Behind:
        """The same for these paths only; for a project's page, of all that its folder holds."""
        if not self._stores.vault.presence().here:
            return Behind((), ())
        known = self._index.known()
        wanted = set(paths)
        if any(path.endswith("/project.md") for path in wanted):
            return self.behind()
        stats = {path: self._stores.vault.stat(path) for path in wanted}
        changed = [stat for path, stat in stats.items() if stat is not None and self._differs(stat, known.get(path))]
        return Behind(changed, [path for path, stat in stats.items() if stat is None and path in known])

    def _differs(self, stat: PageStat, have: Known | None) -> bool:
        """Whether a page is to be read again: it is another file, or its folder is another project's by now."""
        if have is None or (have.inode, have.mtime_ns, have.size) != (stat.inode, stat.mtime_ns, stat.size):
            return True
        return have.project != self._project(stat.path)

    def run(self, behind: Behind, progress: Callable[[int, int], None] | None = None, *, blocking: bool = True) -> bool:
        """Bring the index up to date; False when another process is at it and `blocking` is not wanted.

        Pages that could not be read or understood are in `failed`, and the others are brought in.
        """
        if not behind.count:
            return True
        lock = index_lock(self._stores)
        if not lock.acquire(blocking=blocking):
            return False
        try:
            places, now = self._stores.config.places, self._stores.clock().timestamp()
            fs.sweep_temps(places.index(self._stores.vault.root), _LITTER_S, now)
            if self._index.doubt:
                self.make_anew(progress)
                return True
            done = 0
            for chunk in _chunks(behind):
                self._index.apply([change for item in chunk if (change := self._tried(item)) is not None])
                done += len(chunk)
                if progress is not None:
                    progress(done, behind.count)
        finally:
            lock.release()
        return True

    def make_anew(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Make the whole index anew of the pages on disk; the old one answers until then. The caller holds its lock."""
        stats = sorted(self._stores.vault.scan(), key=lambda s: -s.mtime_ns)

        def puts() -> Iterator[Put]:
            for number, stat in enumerate(stats, 1):
                change = self._tried(stat)
                if isinstance(change, Put):
                    yield change
                if progress is not None:
                    progress(number, len(stats))

        self._index.rebuild(puts())

    def _tried(self, item: PageStat | str) -> Put | Drop | None:
        """What the index is told about one page; None when that fails, whatever the reason."""
        path = item if isinstance(item, str) else item.path
        try:
            return self._change(item)
        except OSError as error:
            log.warning("%s cannot be read and is not searched: %s", path, error.strerror)
        except Exception:  # one odd page must not keep the others out
            log.exception("%s cannot be indexed", path)
        self.failed.add(path)
        return None

    def _change(self, item: PageStat | str) -> Put | Drop:
        """What the index is told about one page."""
        if isinstance(item, str):
            return Drop(item)
        page = self._stores.vault.read(item.path)
        if page is None:
            return Drop(item.path)
        return Put(document(item, page.data, self._project(item.path)))

    def _project(self, path: str) -> str:
        """The id of the project whose folder a page lies in; "" for a page outside all of them."""
        parts = PurePosixPath(path).parts
        if parts[0] == "_global":
            return "_global"
        return self._ids.get("/".join(parts[:2]), "")


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
        superseded=bool(values.get("superseded_by")),
        revision=revision(data),
        inode=stat.inode,
        mtime_ns=stat.mtime_ns,
        size=stat.size,
        meta=values,
        unparsable=meta.error is not None,
    )


def _texts(value: object) -> tuple[str, ...]:
    """A frontmatter value that may be one text or a list of them."""
    if isinstance(value, list):
        return tuple(str(item) for item in value if item is not None)
    return (str(value),) if isinstance(value, str) and value else ()


def _chunks(behind: Behind) -> Iterator[list[PageStat | str]]:
    """Gone paths and changed pages in commits of a bounded size; newest pages first, a person looks for those.

    Huge pages come last, each by itself: they take as long as a thousand others.
    """
    newest = sorted(behind.changed, key=lambda s: -s.mtime_ns)
    items: list[PageStat | str] = [*behind.gone, *(s for s in newest if s.size <= _HUGE)]
    for start in range(0, len(items), _CHUNK):
        yield items[start : start + _CHUNK]
    for stat in newest:
        if stat.size > _HUGE:
            yield [stat]


def rebuild(stores: Stores, progress: Callable[[int, int], None] | None = None) -> int:
    """Throw the index away and make it anew; how many pages it holds then."""
    index = open_index(stores)
    try:
        with index_lock(stores):
            Reconcile(stores, index).make_anew(progress)
        return index.pages
    finally:
        index.close()
