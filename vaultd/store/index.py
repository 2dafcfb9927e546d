"""The index: what is searched. Derived from the pages, never trusted, made anew on any doubt.

    <folder>/meta.json          formats, vault, whoosh's distribution and version; which build counts (builds.py)
    <folder>/build-N/           one whoosh index
    <folder>/build-N/sums.json  size and checksum of its files, written before the generation that needs them (sums.py)

whoosh reads its tables back through pickle and syncs nothing. So the folder is the owner's alone and outside the vault,
another version or distribution of whoosh starts anew, and every file is checked against its sum before it is read:
a torn one is doubt, not an answer. Readers never lock and never wait; a commit appears as a whole.

| crash after | on disk | what follows |
|---|---|---|
| a segment is written, or half of it | a file that nothing names | the old generation; removed with the next commit |
| the sums are written | sums of files that nothing names yet | the old generation |
| a table of contents or the sums have a temp name | a small file | the old generation; removed by the next rebuild |
| **the table of contents is renamed** | the new generation | old files are litter until the next commit |
| a new build is complete | two builds | the old one counts; the next rebuild removes the other |
| **`meta.json` is renamed** | two builds | the new one counts; the old one is litter until the next rebuild |

Of whoosh only what 2.7.4 and whoosh3 share is used, and neither `refresh()`, `reader(reuse=...)` nor `BufferedWriter`
(they return deleted documents, or fail) nor `update_document` (slow).
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from whoosh.filedb.filestore import FileStorage
from whoosh.index import TOC, LockError
from whoosh.reading import SegmentReader

from vaultd.core import query
from vaultd.core.question import Question
from vaultd.errors import HeldError, RefusedError, VaultdError
from vaultd.store import indexed
from vaultd.store.builds import Build, Builds
from vaultd.store.codec import Writer
from vaultd.store.entries import Drop, Found, IndexDoc, Known, Put
from vaultd.store.fs import remove_tree
from vaultd.store.gathering import ORDER
from vaultd.store.indexed import FIELDS
from vaultd.store.links import Links
from vaultd.store.matching import best_pages
from vaultd.store.postings import Postings, segments
from vaultd.store.schema import FORMAT, SCHEMA
from vaultd.store.sums import note_sums, torn

__all__ = ["Drop", "Found", "Index", "IndexDoc", "Known", "Put", "installed"]

T = TypeVar("T")

_SEGMENTS, _KEEP = 8, 4  # more segments than this slow a search down; compacting leaves so many
_MEMORY = 64 << 20  # bytes for postings while an index is written; more go to files
_TRIES = 10  # a writer may replace files while a reader looks; each try starts from what is there then
_TOC = re.compile(r"_MAIN_(\d+)\.toc\Z")
_DISTRIBUTIONS = ("whoosh3", "Whoosh", "whoosh-reloaded", "whoosh-ng", "whoosh-novo")


@dataclass(frozen=True, slots=True)
class _View:
    """One generation of one build, open for reading."""

    build: Build
    number: int
    index: Any
    searcher: Any


class _Folder(FileStorage):  # type: ignore[misc]  # whoosh has no types
    """whoosh's folder of files, which notes the sums of all of them before a table of contents appears."""

    def rename_file(self, oldname: str, newname: str, safe: bool = False) -> None:
        """Publish a file under its name."""
        if _TOC.match(newname):
            folder = Path(self.folder)
            kept = [path.name for path in folder.iterdir() if path.suffix == ".seg" or _TOC.match(path.name)]
            note_sums(folder, kept, {newname: folder / oldname})
        super().rename_file(oldname, newname, safe=safe)


class Index:
    """The index of one vault. Reading is safe from several threads, and in any process at any time.

    Writing (`apply`, `rebuild`, `compact`) is for one at a time: the caller holds the vault's write lock. An index that
    cannot be trusted knows nothing, finds nothing and says why in `doubt`; `apply` starts it anew with what it is
    given, `rebuild` makes it whole.
    """

    def __init__(self, folder: Path, vault_root: Path, *, patience: float = 10.0, room: int = 64 << 20) -> None:
        """Nothing is opened yet. `patience`: seconds to wait for another writer. `room`: bytes of postings that stay
        in memory. RefusedError inside the vault.
        """
        if folder.resolve().is_relative_to(vault_root.resolve()):
            raise RefusedError(f"The index may not lie inside the vault ({folder}). Put the cache folder elsewhere.")
        identity = {"format": f"{FORMAT}.{FIELDS}.{query.ANALYSIS}.{ORDER}", "whoosh": ", ".join(installed())}
        self._builds = Builds(folder, identity | {"vault": os.fspath(vault_root.resolve())})
        self._patience = patience
        self._lock = threading.RLock()
        self._view: _View | None = None
        self._room = room
        self._postings, self._postings_of = Postings(room), Path()
        self._checked: set[str] = set()  # segments, whose names are never used twice
        self._doubt: str | None = None
        self._known: tuple[Build, int, dict[str, Known]] | None = None  # of one generation

    @property
    def doubt(self) -> str | None:
        """Why the index cannot be trusted; None when it can."""
        with self._lock:
            return None if self._look() else self._doubt

    @property
    def generation(self) -> int:
        """Number of the last commit, which rises over rebuilds too; 0 when there is no index to trust."""
        with self._lock:
            view = self._look()
            return view.build.base + view.number if view else 0

    @property
    def pages(self) -> int:
        """How many pages can be found."""
        with self._lock:
            view = self._look()
            return int(view.searcher.doc_count()) if view else 0

    def known(self) -> Mapping[str, Known]:
        """What the index has of each page, by path; empty when the index cannot be trusted.

        Kept until another process writes the index: not to be changed, and it changes with `apply`.
        """
        with self._lock:
            view = self._look()
            if view is None or self._known is None or self._known[:2] != (view.build, view.number):
                self._known = self._read(lambda view: (view.build, view.number, _known(view)))
            return self._known[2] if self._known is not None else {}

    def search(self, question: Question, near: Mapping[str, float] = indexed.NOTHING) -> list[list[Found]]:
        """The pages that answer a question, for each of its groups: best first, superseded ones after all others.

        `near`: how similar pages are to it, by path, where something else than words tells. A question without a word
        finds nothing.
        """
        nothing: list[list[Found]] = [[] for _ in question.groups]
        if question.limit < 1 or not query.terms(question.text):
            return nothing
        with self._lock:
            postings = self._postings
            return self._read(lambda view: best_pages(view.searcher, postings, question, near)) or nothing

    def record(self, path: str) -> Found | None:
        """A page as a hit that nothing was asked of; None when the index does not have it."""

        def read(view: _View) -> Found | None:
            for number in view.searcher.document_numbers(path=indexed.key(path)):
                links = Links(segments(view.searcher), self._postings)
                return indexed.found(links.record(links.at(number)))
            return None

        with self._lock:
            return self._read(read)

    def linked(self, path: str, most: int) -> list[Found]:
        """The pages that a page links to, then those that link to it; none when the index does not have it, or when
        there are more than `most`.
        """

        def read(view: _View) -> list[Found]:
            links = Links(segments(view.searcher), self._postings)
            for number in view.searcher.document_numbers(path=indexed.key(path)):
                return [indexed.found(links.record(place)) for place in links.around(links.at(number), most)]
            return []

        with self._lock:
            return self._read(read) or []

    def apply(self, changes: Iterable[Put | Drop]) -> int:
        """Bring pages in and take them out in one commit; the last change of a path counts. The generation after it.

        HeldError when another writer does not end. OSError (a full disk) leaves the generation before. With a doubt
        there are two steps: a crash between them leaves an empty index, that knows no page.
        """
        last = {change.path: change for change in changes}
        if last and self.doubt:
            self.rebuild()
        if not last:
            return self.generation
        with self._writer(self._index()) as writer:
            with self._lock:  # only now: another writer may have ended while this one waited
                old = self._read(lambda view: _numbers(view, last))
            if old is None:
                raise VaultdError(f"The index cannot be written: {self._doubt}. Try `vaultd reindex`.")
            for number in old:
                writer.delete_document(number)
            puts = [change.doc for change in last.values() if isinstance(change, Put)]
            for doc in puts:
                writer.add(doc)
            if old or puts:
                writer.commit(merge=False)
        self._follow(last.values())
        return self.generation

    def rebuild(self, puts: Iterable[Put] = ()) -> int:
        """Make the index anew of these pages, then let it take the old one's place; the generation after it.

        Until then the old one answers. Of two pages with one path the first counts. On an error the old one stays.
        """
        base = self._builds.base() + max(map(_latest, self._builds.folders()), default=0)
        folder = self._builds.begin()
        try:
            with self._writer(_Folder(os.fspath(folder)).create_index(SCHEMA)) as writer:
                seen: set[str] = set()
                for put in puts:
                    if put.path not in seen:
                        seen.add(put.path)
                        writer.add(put.doc)
                writer.commit(merge=False)
        except BaseException:
            remove_tree(folder)
            raise
        self._builds.adopt(folder, max(base, 0))
        return self.generation

    def compact(self) -> bool:
        """Merge small segments, drop what was deleted; to be called when nothing else is to do. Whether it did."""
        with self._lock:
            view = self._look()
            if view is None:
                return False
            dead = view.searcher.doc_count_all() - view.searcher.doc_count()
            if len(view.searcher.leaf_searchers()) <= _SEGMENTS and dead <= max(100, view.searcher.doc_count()):
                return False
        with self._writer(view.index) as writer:
            writer.commit(mergetype=_merge)
        self._follow(())
        return True

    def close(self) -> None:
        """Let go of all files; the next call opens them again."""
        with self._lock:
            if self._view is not None:
                view, self._view = self._view, None
                view.searcher.close()
                view.index.close()

    def _look(self) -> _View | None:
        """The last generation, open and checked; None with the reason in `_doubt`."""
        for _ in range(_TRIES):
            build = self._builds.current()
            if isinstance(build, str):
                self.close()
                self._doubt = build
                return None
            number = _latest(build.folder)
            if self._view is None or (self._view.build, self._view.number) != (build, number):
                self.close()
                self._doubt = self._open(build, number)
            if self._view is not None:
                return self._view
        return None

    def _open(self, build: Build, number: int) -> str | None:
        """Open one generation; what is wrong with it. Nothing goes through pickle before its sum is right."""
        damage = torn(build.folder, [f"_MAIN_{number}.toc"], set())
        if damage:
            return damage
        try:
            folder = _Folder(os.fspath(build.folder))
            index = folder.open_index(schema=SCHEMA)
            segments = [f"{s.segment_id()}.seg" for s in TOC.read(folder, index.indexname, number, SCHEMA).segments]
            self._checked.intersection_update(segments)
            damage = torn(build.folder, segments, self._checked)
            if damage:
                return damage
            searcher = index.searcher()
        except Exception as error:  # noqa: BLE001  a table that is not what it was can raise anything
            return f"it cannot be opened ({type(error).__name__}: {error})"
        if _latest(build.folder) != number:
            searcher.close()
            return "it changes all the time"
        if self._postings_of != build.folder:
            self._postings, self._postings_of = Postings(self._room), build.folder
        self._view = _View(build, number, index, searcher)
        return None

    def _read(self, use: Callable[[_View], T]) -> T | None:
        """What `use` makes of the open generation; None when there is none, or when it failed twice: then it is
        condemned, in every process.
        """
        for last in (False, True):
            view = self._look()
            if view is None:
                return None
            try:
                return use(view)
            except Exception as error:  # noqa: BLE001  a posting that is not what it was can raise anything
                self.close()
                self._checked.clear()
                if last:
                    with contextlib.suppress(OSError):  # a cache that cannot be written: doubt for this call only
                        self._builds.condemn(view.build, f"it cannot be read ({type(error).__name__}: {error})")
        return None

    def _follow(self, changes: Iterable[Put | Drop]) -> None:
        """Bring what is known of all pages up to the generation that these changes made, unless others came between."""
        with self._lock:
            view, kept = self._look(), self._known
            if view is None or kept is None or (kept[0], kept[1] + 1) != (view.build, view.number):
                return
            for change in changes:
                kept[2].pop(change.path, None)
                if isinstance(change, Put):
                    path, state = indexed.state(change.doc)
                    kept[2][path] = Known(*state)  # type: ignore[arg-type]  # these are its fields
            self._known = (view.build, view.number, kept[2])

    def _index(self) -> Any:
        """whoosh's handle on the build that counts."""
        with self._lock:
            view = self._look()
        if view is None:
            raise VaultdError(f"The index cannot be written: {self._doubt}. Try `vaultd reindex`.")
        return view.index

    @contextlib.contextmanager
    def _writer(self, index: Any) -> Iterator[Any]:
        """A writer that is let go in any case, without a commit unless one was made."""
        try:
            writer = Writer(index, _MEMORY, timeout=self._patience, delay=0.05)
        except LockError:
            raise HeldError("Another process is writing the index. Try again when it has ended.") from None
        try:
            yield writer
        finally:
            writer.pool.cleanup()
            if not writer.is_closed:
                with contextlib.suppress(OSError):  # a full disk, of which the first error tells
                    writer.cancel()


def installed() -> list[str]:
    """The distributions that brought the package `whoosh`, with their versions; two of them overwrite each other."""
    found = []
    for name in _DISTRIBUTIONS:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found.append(f"{name} {importlib.metadata.version(name)}")
    return found


def _latest(build: Path) -> int:
    """Number of the last table of contents in a build; -1 when there is none."""
    try:
        return max((int(match[1]) for path in build.iterdir() if (match := _TOC.match(path.name))), default=-1)
    except (FileNotFoundError, NotADirectoryError):
        return -1


def _known(view: _View) -> dict[str, Known]:
    """The state of every page that can be found."""
    found = {}
    for part in segments(view.searcher):
        states = part.reader.column_reader("state", translate=False)
        for number in part.reader.all_doc_ids():
            path, state = states[number]
            found[path] = Known(*state)
    return found


def _numbers(view: _View, paths: Iterable[str]) -> list[int]:
    """The document numbers that the pages under these paths have now."""
    return [number for path in paths for number in view.searcher.document_numbers(path=indexed.key(path))]


def _merge(writer: Any, segments: Sequence[Any]) -> list[Any]:
    """whoosh's merge policy for `compact`: all small segments and the mostly deleted ones become one."""
    kept: list[Any] = []
    total = 0
    ranked = sorted((segment for segment in segments if segment.doc_count()), key=lambda s: s.doc_count())
    for position, segment in enumerate(ranked):
        pages = segment.doc_count()
        if len(ranked) - position < _KEEP and pages >= total and segment.deleted_count() <= pages:
            kept.append(segment)
            continue
        total += pages
        reader = SegmentReader(writer.storage, writer.schema, segment)
        try:
            writer.add_reader(reader)
        finally:
            reader.close()
    return kept
