"""Lock files that a killed git left behind, told from those that a living one holds."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from vaultd.store import fs
from vaultd.store.gitindex import is_ours_here

__all__ = ["clear_stale", "committing", "held_locks", "is_live", "litter"]

STALE_AFTER_S = 60.0
"""A younger lock of somebody else's is never taken for stale: its owner may be where we cannot see it."""

_PROC = Path("/proc")
_NAMES = ("index.lock", "HEAD.lock")


def held_locks(own: str, common: str, branch: str | None) -> list[Path]:
    """Lock files that stand in the way of a commit on `branch`."""
    paths = [Path(own, name) for name in _NAMES]
    paths.append(Path(common, "packed-refs.lock"))
    if branch:
        paths.append(Path(common, "refs", "heads", branch + ".lock"))
    return [path for path in paths if os.path.lexists(path)]


def litter(own: str) -> list[Path]:
    """Half-made indexes of commits; they stand in nobody's way."""
    return sorted(Path(own).glob("next-index-*.lock"))


def clear_stale(locks: list[Path], top: str, now: float, older_than_s: float = STALE_AFTER_S) -> list[Path]:
    """Remove the locks that are old and that no living git can own; those that were removed. `now`: epoch seconds.

    One of ours that was taken here need not be old: its owner would have it open. Where processes cannot be looked at,
    nothing is removed. A lock that is not the one looked at any more stays.
    """
    removed = []
    for lock in locks:
        try:
            before = lock.lstat()
        except OSError:
            continue
        young = before.st_mtime > now - older_than_s and not is_ours_here(lock)
        if young or is_live(lock, top):
            continue
        try:
            after = lock.lstat()
        except OSError:
            continue
        if (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns):
            fs.remove(lock)
            removed.append(lock)
    return removed


def is_live(lock: Path, top: str) -> bool:
    """Whether a process may own the lock: it has the file open, or it is a git at work in `top` or below, or one whose
    place cannot be seen. True where processes cannot be looked at.
    """
    if not Path(_PROC, "self", "fd").exists():
        return True
    target = os.path.realpath(lock)
    return any(_opens(process, target) or _is_git_in(process, top) for process in _processes())


def committing(top: str) -> bool:
    """Whether somebody's `git commit` is seen at work in `top` or below: its message may be in an editor."""
    if not Path(_PROC, "self", "fd").exists():
        return False
    return any(_is_git_in(process, top) and _commits(process) for process in _processes())


def _commits(process: Path) -> bool:
    """Whether a git process is a commit, and not one of ours."""
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"commit" in words and b"--cleanup=whitespace" not in words


def _processes() -> list[Path]:
    return [Path(_PROC, name) for name in os.listdir(_PROC) if name.isdigit()]  # noqa: PTH208 - bare names do


def _opens(process: Path, target: str) -> bool:
    """Whether a process has the file open; False when that cannot be seen."""
    try:
        names = os.listdir(process / "fd")  # noqa: PTH208 - thousands of these
    except OSError:
        return False
    for name in names:
        with contextlib.suppress(OSError):  # that one was closed meanwhile
            if os.readlink(f"{process}/fd/{name}") == target:  # noqa: PTH115 - likewise
                return True
    return False


def _is_git_in(process: Path, top: str) -> bool:
    """Whether a process is a git program whose folder is `top` or below, or cannot be seen."""
    try:
        name = (process / "comm").read_bytes().strip()
    except OSError:
        return False
    if name != b"git" and not name.startswith(b"git-"):
        return False
    try:
        folder = str((process / "cwd").readlink())
        command = (process / "cmdline").read_bytes()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return folder == top or folder.startswith(top + "/") or os.fsencode(top) in command
