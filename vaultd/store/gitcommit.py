"""Commits beside a person who stages, merges, rebases and signs.

What is committed: the paths that are named, as they lie in the work tree, and nothing else. `git commit --only` keeps
whatever the person has staged out of the commit and in the index; paths with staged changes are left for the person.
The person's filters and line-end settings apply, hooks and signing do not. Nothing is committed in the middle of a
merge or the like, and no git process outlives its time.

A new path has to be known to git before `--only` takes it, so a commit has two steps, `add -N` and `commit`. Both are
made in a copy of the index while we hold the lock on the index itself (gitindex.py): what fails or is killed leaves the
index as it was. Index entries can differ from the commit nevertheless: when its copy was not put in place any more, or
when a page came, went or changed under git, which reads the paths of `--only` twice. Such entries are set to HEAD, at
once, or by whoever takes the lock next.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from vaultd.errors import RefusedError
from vaultd.store import gitdir, gitlocks
from vaultd.store.gitanswers import Ran, locked_path, passing, says_nothing, standstill, words
from vaultd.store.gitindex import IndexLock
from vaultd.store.gittree import COMMITTING, WorkTree, joined

if TYPE_CHECKING:
    from vaultd.core.sanitize import Clean

__all__ = ["AUTHOR", "Blocked", "Committed", "Committer", "Failed", "Nothing", "Outcome"]

AUTHOR = ("vaultd", "vaultd@localhost")
"""Name and address that vaultd's commits carry."""


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit was made. `staged`: paths left to the person, who has them in the index; `ignored`: by .gitignore."""

    sha: str
    paths: tuple[str, ...]
    staged: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Nothing:
    """There was nothing to commit: a success. The left-out paths as in `Committed`."""

    staged: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Blocked:
    """The person is in the middle of something; come back when they are done."""

    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """git could not do it, or not in time; the pages are as they were. Come back later."""

    reason: str


Outcome: TypeAlias = Committed | Nothing | Blocked | Failed
"""What became of a commit."""


@dataclass(frozen=True, slots=True)
class _Passing:
    """Something that goes by itself stood in the way."""

    reason: str


@dataclass(frozen=True, slots=True)
class _Plan:
    """The paths to commit, those of them that git does not know yet, and the left-out ones as in `Committed`."""

    paths: tuple[str, ...]
    new: tuple[str, ...]
    staged: tuple[str, ...]
    ignored: tuple[str, ...]


_TAKE_S = 0.5
"""How long the lock on the index is waited for before everything is looked at again."""


class Committer:
    """Commits named paths of a work tree; `patience`: seconds for which a lock of somebody else's is waited for."""

    def __init__(self, tree: WorkTree, patience: float, now: Callable[[], float]) -> None:
        self._tree = tree
        self._patience = patience
        self._now = now

    def commit(self, paths: Iterable[str], message: Clean) -> Outcome:
        """Commit these paths, deleted ones included, as they lie in the work tree.

        Paths are relative to the vault; RefusedError for one that leads out of it or into `.vaultd` or `.git`. Those
        that have not changed are passed over. See the module for what a killed git leaves.
        """
        wanted = [_checked(path) for path in dict.fromkeys(paths)]
        if not wanted:
            return Nothing()
        deadline, pause = time.monotonic() + self._patience, 0.05
        while True:
            outcome = self._attempt(wanted, message)
            if not isinstance(outcome, _Passing):
                return outcome
            if time.monotonic() + pause > deadline:
                return Failed(outcome.reason)
            time.sleep(pause)
            pause = min(2 * pause, 1.0)

    def clear_locks(self) -> None:
        """Remove what a dead git, or a dead process of ours, left in everybody's way."""
        if (place := self._tree.place()) is not None:
            self._clear_locks(place)

    def _attempt(self, wanted: Sequence[str], message: Clean) -> Outcome | _Passing:
        """One try."""
        place = self._tree.place()
        if place is None:
            return Failed("the vault is not a git repository")
        if gitlocks.committing(self._tree.root):
            return _Passing(COMMITTING)
        lock = IndexLock(place.own)
        try:
            self._clear_locks(place)
            return self._looked(lock, place, wanted, message)
        except OSError as error:
            return Failed(f"git's index cannot be locked: {error.strerror or error}")
        finally:
            lock.release()

    def _looked(
        self, lock: IndexLock, place: gitdir.GitDir, wanted: Sequence[str], message: Clean
    ) -> Outcome | _Passing:
        """One try: what is to be done is found out before the lock is taken, since nobody's git waits for it."""
        before = lock.stamp
        plan = self._plan(place, wanted)
        if not isinstance(plan, _Plan):
            return plan
        until = time.monotonic() + _TAKE_S
        while not lock.take():
            if time.monotonic() > until:
                return _Passing("another git holds index.lock")
            time.sleep(0.01)
        if lock.unsettled:
            self._catch_up(lock)
            return _Passing("the index lagged behind a commit")
        if lock.stamp != before or gitdir.obstacle(place.own):
            plan = self._plan(place, wanted)
            if not isinstance(plan, _Plan):
                return plan
        if plan.new:
            added = self._tree.with_paths(lock.copy, plan.new, "add", "-N")
            if not added.ok:
                return _failure(added, "git add")
        outcome = self._record(lock, place, plan.paths, message)
        if isinstance(outcome, Committed | Nothing):
            return replace(outcome, staged=plan.staged, ignored=plan.ignored)
        return outcome

    def _plan(self, place: gitdir.GitDir, wanted: Sequence[str]) -> _Plan | Outcome | _Passing:
        """What a commit of these paths is about, or why there is none."""
        status = self._tree.status(wanted)
        if isinstance(status, Ran):
            return _failure(status, "git status")
        if blocked := self._tree.blocked(place, status):
            return Blocked(blocked)
        by_path = {change.path: change for change in status.changes}
        found = [by_path[path] for path in wanted if path in by_path]
        staged = tuple(change.path for change in found if change.staged)
        ignored = self._ignored([path for path in wanted if path not in by_path])
        todo = [change for change in found if not change.staged]
        if not todo:
            return Nothing(staged, ignored)
        paths = tuple(change.path for change in todo)
        return _Plan(paths, tuple(change.path for change in todo if not change.known), staged, ignored)

    def _record(
        self, lock: IndexLock, place: gitdir.GitDir, paths: Sequence[str], message: Clean
    ) -> Outcome | _Passing:
        """The commit itself."""
        flags = ("-q", "--no-verify", "--no-status", "--no-gpg-sign", "--cleanup=whitespace")
        ran = self._tree.with_paths(lock.copy, paths, "commit", "--only", *flags, "-m", message)
        lock.unsettled = not says_nothing(ran)  # one that failed may have moved the branch, on a full disk
        if ran.ok:
            outcome: Outcome | _Passing = Committed(self._tree.head() or "", tuple(paths))
            if self._tree.level(lock.copy, paths):
                with contextlib.suppress(OSError):
                    lock.put_in_place()
        else:
            outcome = Nothing() if says_nothing(ran) else _failure(ran, "git commit")
        if ran.late or ran.code < 0:
            # The git that held them is dead, and the lock on the index is not its own.
            left = [lock for lock in self._tree.locks(place) if lock.name != "index.lock"]
            gitlocks.clear_stale(left + gitlocks.litter(place.own), self._tree.root, self._now(), older_than_s=0)
        if lock.unsettled:
            self._settle(lock, paths)
        return outcome

    def _settle(self, lock: IndexLock, paths: Sequence[str]) -> None:
        """Set entries of the index to what HEAD has; what cannot be done now is left to the next who takes the lock."""
        for pause in (0.0, 0.1, 0.3, 1.0):
            time.sleep(pause)
            with contextlib.suppress(OSError):
                if lock.take():
                    if self._tree.level(lock.copy, paths):
                        lock.put_in_place()
                    return

    def _clear_locks(self, place: gitdir.GitDir) -> None:
        """Remove locks of a git that died, and bring the index up to a commit of ours that it may have died in."""
        lock = IndexLock(place.own)
        gitlocks.clear_stale(gitlocks.litter(place.own), self._tree.root, self._now())
        if not gitlocks.clear_stale(self._tree.locks(place), self._tree.root, self._now()) and not lock.orphaned:
            return
        try:
            if lock.take():
                self._catch_up(lock)
        finally:
            lock.release()

    def _catch_up(self, lock: IndexLock) -> None:
        """Bring the index up to the last commit, if that is one of ours that a dead owner of the lock may have made."""
        lock.unsettled = True
        commit = self._tree.git("cat-file", "commit", "HEAD")
        if commit.late or commit.code < 0:
            return
        ours = f"\ncommitter {AUTHOR[0]} <{AUTHOR[1]}> ".encode() in commit.out.partition(b"\n\n")[0]
        lagging = self._lagging(commit.out) if ours else set()
        if lagging is None:
            return
        if not lagging:
            lock.unsettled = False
        elif self._tree.level(lock.copy, sorted(lagging)):
            lock.put_in_place()

    def _lagging(self, commit: bytes) -> set[str] | None:
        """Paths of the last commit whose index entries are still those of the commit before; None: git did not say."""
        parents = [line[7:].decode() for line in commit.split(b"\n") if line.startswith(b"parent ")]
        before = parents[0] if parents else self._tree.git("hash-object", "-t", "tree", "--stdin").out.decode().strip()
        touched = self._tree.names("diff-tree", "-r", "--no-commit-id", "--root", "HEAD")
        differing = self._tree.names("diff-index", "--cached", "--ita-invisible-in-index", before)
        status = self._tree.status()
        if touched is None or differing is None or isinstance(status, Ran):
            return None
        return (touched & {change.path for change in status.changes if change.staged}) - differing

    def _ignored(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Those of the paths that exist, that git does not know and is told to ignore."""
        there = [path for path in paths if os.path.lexists(f"{self._tree.root}/{path}")]
        if not there:
            return ()
        # With `./` no name is taken for a pattern.
        ran = self._tree.git("check-ignore", "-z", "--stdin", stdin=joined(f"./{path}" for path in there))
        names = {os.fsdecode(name).removeprefix("./") for name in ran.out.split(b"\0")}
        return tuple(path for path in there if path in names)


def _failure(ran: Ran, doing: str) -> Blocked | Failed | _Passing:
    """What a failed run means."""
    if standstill(ran):
        return Blocked("the vault's repository is in the middle of a merge or the like")
    if passing(ran):
        lock = locked_path(ran)
        return _Passing(f"another git holds {lock}" if lock else words(ran, doing))
    return Failed(words(ran, doing))


def _checked(path: str) -> str:
    """The path, if it is plainly one of the vault's."""
    names = path.split("/")
    if not path or "\0" in path or any(name in ("", ".", "..") for name in names):
        raise RefusedError(f"{path!r} is not a path inside the vault.")
    if names[0] == ".vaultd" or any(name.lower() == ".git" for name in names):
        raise RefusedError(f"{path!r} is never committed.")
    return path
