"""A work tree as git shows it: its place, its status, what stands in the way of a commit."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from vaultd.store import gitdir, gitlocks
from vaultd.store.gitanswers import Ran, Status, parse_status
from vaultd.store.gitindex import is_ours

__all__ = ["COMMITTING", "Git", "WorkTree", "joined"]

COMMITTING = "a `git commit` is at work in the vault"
"""Why we wait: its message may be in an editor, and our commit would undo it."""

_LITERAL = "--literal-pathspecs"  # not by environment: check-ignore refuses to run with it
_FROM_STDIN = ("--pathspec-from-file=-", "--pathspec-file-nul")
_ARGUMENTS = 100_000  # bytes of paths that are given to git as arguments; more, and the whole tree is looked at


class Git(Protocol):
    """Runs git in the work tree; `patience`: how many times the usual time it has, `locks`: it changes the index,
    `index`: which is this file instead of the work tree's own.
    """

    def __call__(
        self, *args: str, stdin: bytes = b"", patience: float = 1.0, locks: bool = False, index: Path | None = None
    ) -> Ran:
        """Run git with these arguments to its end."""


class WorkTree:
    """The work tree whose top is `root`, a path without symlinks."""

    def __init__(self, root: str, git: Git) -> None:
        self.root = root
        self.git = git

    def place(self) -> gitdir.GitDir | None:
        """The repository of the vault itself, not of a folder around it."""
        place = gitdir.locate(self.root)
        return place if place is not None and place.top == self.root else None

    def status(self, paths: Sequence[str] = (), untracked: bool = True) -> Status | Ran:
        """The status of these paths or of the whole tree; the run itself when it failed."""
        kind = "all" if untracked else "no"
        flags = ("--porcelain=v2", "--branch", "-z", "--no-renames", "--no-ahead-behind", f"--untracked-files={kind}")
        ran = self.git(_LITERAL, "status", *flags, "--", *_few(paths), patience=1 + len(paths) / 1000)
        return parse_status(ran.out) if ran.ok else ran

    def head(self) -> str | None:
        """The last commit; None before the first one or without a repository."""
        ran = self.git("rev-parse", "-q", "--verify", "HEAD^{commit}")
        return ran.out.decode("ascii").strip() if ran.ok else None

    def names(self, *args: str, index: Path | None = None, paths: Sequence[str] = ()) -> set[str] | None:
        """The paths that a diff of git's (its name and arguments) tells of; None when it failed."""
        which = ("--", *_few(paths)) if paths else ()
        ran = self.git(_LITERAL, args[0], "-z", "--name-only", "--no-renames", *args[1:], *which, index=index)
        return {os.fsdecode(name) for name in ran.out.split(b"\0") if name} if ran.ok else None

    def level(self, index: Path, paths: Sequence[str]) -> bool:
        """Set the entries of these paths in an index to what the last commit has; whether they are.

        Only the index is written: no file of the work tree is looked at, so that no filter runs.
        """
        differing = self.names("diff-index", "--cached", "HEAD", index=index, paths=paths) if paths else set()
        if differing is None:
            return False
        names = [path for path in paths if path in differing]
        if not names:
            return True
        ran = self.git(_LITERAL, "ls-tree", "-r", "-z", "HEAD", "--", *_few(names))
        lines = {os.fsdecode(line.partition(b"\t")[2]): line for line in ran.out.split(b"\0") if line}
        gone = joined(name for name in names if name not in lines)
        there = b"".join(lines[name] + b"\0" for name in names if name in lines)
        return (
            ran.ok
            and self.git("update-index", "--force-remove", "-z", "--stdin", stdin=gone, locks=True, index=index).ok
            and self.git("update-index", "-z", "--index-info", stdin=there, locks=True, index=index).ok
        )

    def blocked(self, place: gitdir.GitDir, status: Status) -> str | None:
        """What the person is in the middle of."""
        if busy := gitdir.obstacle(place.own):
            return f"{busy} in the vault's repository"
        if status.branch is None:
            return "HEAD is detached in the vault's repository; check a branch out"
        if self.git("ls-files", "--unmerged", "-z").out:
            return "paths are in conflict in the vault's repository"
        # What a squashed merge or the like left for the person's own commit; git takes it away with anybody's.
        if gitdir.has_message(place.own) and not self.git("diff", "--cached", "--quiet").ok:
            return "a squashed merge or the like waits to be committed in the vault's repository"
        return None

    def held(self, place: gitdir.GitDir, now: float) -> str | None:
        """What a living git of somebody else's is at: a lock, or a commit. Our lock on the index goes by itself."""
        for lock in self.locks(place):
            if is_ours(lock):
                continue
            with contextlib.suppress(OSError):
                age = now - lock.stat().st_mtime
                if age < gitlocks.STALE_AFTER_S or gitlocks.is_live(lock, self.root):
                    return f"another git is at work in the vault ({lock.name} is held)"
        return COMMITTING if gitlocks.committing(self.root) else None

    def locks(self, place: gitdir.GitDir) -> list[Path]:
        """Lock files that stand in the way of a commit."""
        return gitlocks.held_locks(place.own, place.common, gitdir.branch(place.own))

    def with_paths(self, index: Path, paths: Sequence[str], *args: str) -> Ran:
        """Run a command that changes an index on exactly these paths."""
        patience = 1 + len(paths) / 1000
        return self.git(_LITERAL, *args, *_FROM_STDIN, stdin=joined(paths), patience=patience, locks=True, index=index)


def joined(paths: Iterable[str]) -> bytes:
    """Paths as git reads them from its standard input."""
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _few(paths: Sequence[str]) -> Sequence[str]:
    """The paths, if they can be given as arguments; else none, which stands for all there are."""
    return paths if sum(len(path) + 1 for path in paths) < _ARGUMENTS else ()
