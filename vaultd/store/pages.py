"""What a vault gives back: pages as read or scanned, and what became of a change."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from vaultd.store.fs import Revision

__all__ = [
    "Busy",
    "Diverged",
    "Exists",
    "Gone",
    "Moved",
    "Outcome",
    "PageFile",
    "PageStat",
    "Presence",
    "Refused",
    "Scan",
    "Written",
    "flaw_of",
    "is_plain",
]

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""What no page's path may hold: control characters, line separators, and bytes that are not UTF-8 (as surrogates)."""


def flaw_of(rel: str) -> str | None:
    """Why `rel` cannot be a path inside a vault, in words for the person; None when it can be one."""
    segments = rel.split("/")
    if _CONTROL.search(rel) or any(not part or part.startswith(".") for part in segments):
        return f"{rel!r} is not a path inside the vault. Give it from the vault's root, as in notes/x.md."
    if any(len(part.encode()) > 255 for part in segments) or len(rel.encode()) > 3000:
        return f"{rel[:60]!r}... is too long for a file name. Shorten it."
    return None


def is_plain(root: str, rel: str) -> bool:
    """Whether a path below a folder is there, and no part of it a symlink."""
    path = root
    for part in rel.split("/"):
        path = f"{path}/{part}"
        try:
            if stat.S_ISLNK(os.lstat(path).st_mode):
                return False
        except OSError:
            return False
    return True


@dataclass(frozen=True, slots=True)
class PageFile:
    """A page as it was read."""

    path: str
    data: bytes
    revision: Revision


@dataclass(frozen=True, slots=True)
class PageStat:
    """What a scan knows of a page without reading it. `mtime_ns` is nanoseconds since 1970."""

    path: str
    inode: int
    mtime_ns: int
    size: int


@dataclass(frozen=True, slots=True)
class Written:
    """The page is on disk with this revision."""

    path: str
    revision: Revision


@dataclass(frozen=True, slots=True)
class Exists:
    """Something is there under this name; nothing was done."""

    path: str


@dataclass(frozen=True, slots=True)
class Diverged:
    """The page is no longer what was read: the person's text stands. Read it again and decide again.

    `kept` is where another text of the person's was put that a newer one had taken the place of.
    """

    path: str
    kept: str | None = None


@dataclass(frozen=True, slots=True)
class Busy:
    """Somebody has the page open or is saving it; nothing was changed. Come back later."""

    path: str


@dataclass(frozen=True, slots=True)
class Gone:
    """There is no such page."""

    path: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The frontmatter cannot be edited safely; `reason` is for the person. The page was left alone."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Moved:
    """The page has this path now."""

    path: str


@dataclass(frozen=True, slots=True)
class Presence:
    """Whether the vault is there; `reason` is why it counts as away, `id` the sentinel's."""

    here: bool
    reason: str | None = None
    id: str | None = None


Outcome: TypeAlias = Written | Diverged | Busy | Gone
"""What became of a change to a page."""


class Scan(Iterator[PageStat]):
    """One walk over pages, in no order; the counts are complete when it is exhausted.

    All pages, or with `only` those that are under these vault paths: pages, and folders with all that is below.
    `unnameable` counts pages and folders whose names are not UTF-8 or hold control characters: they are left
    out. What could not be looked at is in `unreadable` ("" for the vault itself): what it holds is unknown, not gone.
    """

    def __init__(self, root: str, only: Iterable[str] | None = None) -> None:
        self.unnameable = 0
        self.unreadable: list[str] = []
        self._root = root
        self._plain = {"": True}
        self._pages = self._walk("") if only is None else self._some(only)

    def __next__(self) -> PageStat:
        return next(self._pages)

    def knows(self, path: str) -> bool:
        """Whether the walk would have found the page, were it there."""
        return not any(not u or path == u or path.startswith(u + "/") for u in self.unreadable)

    def _walk(self, prefix: str) -> Iterator[PageStat]:
        folders = [prefix]
        while folders:
            prefix = folders.pop()
            try:
                entries = os.scandir(self._root + "/" + prefix)
            except OSError as error:
                self._missed(prefix.rstrip("/"), error)
                continue
            with entries:
                for entry in entries:
                    name = entry.name
                    if name.startswith("."):
                        continue
                    page = name[-3:].lower() == ".md"
                    if not page and not entry.is_dir(follow_symlinks=False):
                        continue
                    if _CONTROL.search(name):
                        self.unnameable += 1
                    elif page and entry.is_file(follow_symlinks=False):
                        try:
                            found = entry.stat(follow_symlinks=False)
                        except OSError as error:
                            self._missed(prefix + name, error)
                            continue
                        yield PageStat(prefix + name, found.st_ino, found.st_mtime_ns, found.st_size)
                    elif entry.is_dir(follow_symlinks=False):
                        folders.append(prefix + name + "/")

    def _some(self, only: Iterable[str]) -> Iterator[PageStat]:
        for path in (name.rstrip("/") for name in only):
            if not path:
                yield from self._walk("")
            elif not _CONTROL.search(path) and "/." not in f"/{path}" and self._is_plain(path.rpartition("/")[0]):
                try:
                    found = os.lstat(f"{self._root}/{path}")
                except OSError as error:
                    self._missed(path, error)
                    continue
                if stat.S_ISDIR(found.st_mode):
                    yield from self._walk(path + "/")
                elif stat.S_ISREG(found.st_mode) and path[-3:].lower() == ".md":
                    yield PageStat(path, found.st_ino, found.st_mtime_ns, found.st_size)

    def _is_plain(self, folder: str) -> bool:
        """Whether a walk from the root comes to a folder: no part of its path is a symlink."""
        if folder not in self._plain:
            try:
                own = stat.S_ISDIR(os.lstat(f"{self._root}/{folder}").st_mode)
            except OSError as error:
                self._missed(folder, error)
                own = False
            self._plain[folder] = own and self._is_plain(folder.rpartition("/")[0])
        return self._plain[folder]

    def _missed(self, path: str, error: OSError) -> None:
        """Something could not be looked at; what is not there is no such thing, but for the vault."""
        if not path or not isinstance(error, FileNotFoundError | NotADirectoryError):
            self.unreadable.append(path)
