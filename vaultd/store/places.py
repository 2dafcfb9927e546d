"""Folders as the disk shows them: real paths, marker files, the pages that projects have in a vault."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from vaultd.core.checkout import MARKER
from vaultd.store.pages import PageStat

__all__ = [
    "deaf_file_system",
    "is_marked",
    "is_root",
    "marker_files",
    "names_taken",
    "nearest_marker",
    "project_pages",
    "real_folder",
]

_MARKER_LIMIT = 65_537
_PAGE = "project.md"
_DEAF = re.compile(r"(9p|drvfs|cifs|smb3|smbfs|nfs|nfs4|virtiofs|fakeowner|vboxsf|prl_fs|vmhgfs|fuse|fuse\..*)\Z")
"""File systems that tell nothing, or nothing of what others do: network drives, and a host's folders in a guest."""


def real_folder(path: str) -> str:
    """The folder's path without symlinks; "" when there is no such folder."""
    try:
        real = os.path.realpath(path, strict=True) if path.startswith("/") or Path(path).is_absolute() else ""
        return real if real and Path(real).is_dir() else ""
    except (OSError, ValueError):
        return ""


def deaf_file_system(folder: str, mounts: Path) -> str:
    """The type of the file system that a folder is on, if that does not tell of changes; "" when it does.

    `mounts`: /proc/self/mountinfo, or a file like it; where there is none, everything is said to tell.
    """
    try:
        rows = mounts.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    for row in rows:
        before, _, after = row.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), fields[4])
        if len(point) >= len(best) and (folder + "/").startswith(point.rstrip("/") + "/"):
            best, kind = point, after.split(" ")[0]
    return kind if _DEAF.match(kind) else ""


def is_root(folder: str) -> bool:
    """Whether a folder has `.git` or a marker: where a hook stops walking up."""
    return any(os.path.lexists(f"{folder}/{name}") for name in (".git", MARKER))


def is_marked(folder: str) -> bool:
    """Whether a marker lies in a folder or above it; true also of one that is gone, which can tell no more."""
    return not real_folder(folder) or nearest_marker(folder) is not None


def nearest_marker(folder: str) -> tuple[str, bytes] | None:
    """The marker that counts in a folder: where it lies, and its bytes; None for none."""
    real = real_folder(folder)
    return next(marker_files([real, *map(str, Path(real).parents)]), None) if real else None


def marker_files(folders: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """The marker files that lie in these folders: folder and bytes, in order. One that cannot be read is not there."""
    for folder in folders:
        path = Path(folder, MARKER)
        try:
            if path.is_file():
                with path.open("rb") as file:
                    yield folder, file.read(_MARKER_LIMIT)
        except (OSError, ValueError):
            continue


def project_pages(root: Path, others: Iterable[str] = ()) -> Iterator[PageStat]:
    """The `<workspace>/<project>/project.md` of a vault, by path, then those of `others` that are there.

    Hidden folders, folders that start with `_`, and symlinks are left out.
    """
    usual = (
        f"{workspace}/{project}/{_PAGE}"
        for workspace in _folders(root)
        if not workspace.startswith("_")
        for project in _folders(root / workspace)
    )
    for path in (*usual, *others):
        with contextlib.suppress(OSError):
            found = (root / path).lstat()
            if stat.S_ISREG(found.st_mode):
                yield PageStat(path, found.st_ino, found.st_mtime_ns, found.st_size)


def names_taken(workspace: Path) -> set[str]:
    """Names in a workspace that a new project cannot have: files, and folders that have a project's page."""
    try:
        entries = list(os.scandir(workspace))
    except OSError:
        return set()
    return {e.name for e in entries if not e.is_dir() or os.path.lexists(f"{e.path}/{_PAGE}")}


def _folders(parent: Path) -> list[str]:
    """Names of the visible folders in a folder, sorted."""
    try:
        with os.scandir(parent) as entries:
            names = [e.name for e in entries if not e.name.startswith(".") and e.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(names)
