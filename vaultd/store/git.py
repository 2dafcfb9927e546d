"""The vault's git repository. The only module that runs git.

A git that vaultd runs never asks anybody, starts none of the person's hooks, signs nothing, talks to no remote, looks
at no environment of a git around it (vaultd may run inside a hook), and ends in bounded time together with all that it
started. How commits are made beside a person is told in `gitcommit`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from vaultd.errors import HeldError
from vaultd.store import gitsetup
from vaultd.store.gitanswers import Change, Ran, Status, words
from vaultd.store.gitcommit import AUTHOR, Blocked, Committed, Committer, Failed, Nothing, Outcome
from vaultd.store.gitpast import Past
from vaultd.store.gitsetup import Ensured
from vaultd.store.gittree import WorkTree

if TYPE_CHECKING:
    from vaultd.core.sanitize import Clean

__all__ = ["Blocked", "Change", "Committed", "Failed", "GitState", "Hung", "Nothing", "Outcome", "Repo", "run"]

_KEPT = frozenset(
    {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES"}
)
_DROPPED = frozenset({"SSH_ASKPASS", "LANGUAGE", "EDITOR", "VISUAL", "PAGER"})
_SET = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": ":",
    "GIT_PAGER": "cat",
    "GIT_NO_REPLACE_OBJECTS": "1",
    # Nothing here talks to a remote, not even to fetch what a partial clone lacks.
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_AUTHOR_NAME": AUTHOR[0],
    "GIT_AUTHOR_EMAIL": AUTHOR[1],
    "GIT_COMMITTER_NAME": AUTHOR[0],
    "GIT_COMMITTER_EMAIL": AUTHOR[1],
}
_SETTINGS = (
    f"core.hooksPath={os.devnull}",
    "core.fsmonitor=false",
    "core.quotePath=false",
    # A person's line-end conversion applies to our pages; that it cannot be undone is no reason to leave them out.
    "core.safecrlf=false",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "i18n.commitEncoding=UTF-8",
    "advice.statusHints=false",
)
_FLAGS = tuple(word for setting in _SETTINGS for word in ("-c", setting))
_ATTACHED = (b".png", b".jpg", b".jpeg", b".gif", b".svg", b".webp", b".pdf", b".mp3", b".mp4", b".canvas")
_HUNG_S = 30.0  # after a git that did not answer, so long none is asked
_HANGS = "git did not answer in time; it is asked again in half a minute"
_GRACE_S = 1.0  # from the polite signal to the other one


@dataclass(frozen=True, slots=True)
class GitState:
    """How the vault's repository stands. `blocked`: why nothing is committed at present, in words, or None.

    `head` is None before the first commit, `branch` when HEAD is detached.
    """

    repository: bool
    blocked: str | None = None
    head: str | None = None
    branch: str | None = None


def run(
    args: Sequence[str],
    environ: Mapping[str, str],
    *,
    cwd: str | None = None,
    stdin: bytes = b"",
    timeout: float = 10.0,
    locks: bool = False,
    index: Path | None = None,
) -> Ran:
    """Run git to its end; after `timeout` seconds it and everything it started is stopped. Never raises OSError.

    `environ` is what the child inherits, without what would point git elsewhere. Without `locks` no optional lock is
    taken; `index` is the file that is the index, by default the work tree's own. Output goes through files, so that
    a background process that a filter leaves behind holds nothing up.
    """
    with contextlib.ExitStack() as stack:
        try:
            given, out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
            given.write(stdin)
            given.seek(0)
            process = subprocess.Popen(
                ["git", *_FLAGS, *args],
                stdin=given,
                stdout=out,
                stderr=err,
                cwd=cwd,
                env=_child_environment(environ, locks, index),
                start_new_session=sys.platform != "win32",
            )
        except FileNotFoundError as error:
            missing = error.filename == "git" or not error.filename
            return Ran(127 if missing else 126, b"", f"{error.strerror}: {error.filename}")
        except (OSError, ValueError) as error:
            return Ran(126, b"", str(error))
        late = _wait(process, timeout)
        return Ran(process.returncode, _content(out), os.fsdecode(_content(err))[:8192], late)


def _child_environment(environ: Mapping[str, str], locks: bool, index: Path | None) -> dict[str, str]:
    """The environment of a git that looks at nothing but the folder it is run in and never asks anybody."""
    kept = {
        name: value
        for name, value in environ.items()
        if name not in _DROPPED and (not name.startswith("GIT_") or name in _KEPT)
    }
    own = {"GIT_INDEX_FILE": os.fspath(index)} if index is not None else {}
    return {**kept, **_SET, **own, "GIT_OPTIONAL_LOCKS": "1" if locks else "0"}


def _wait(process: subprocess.Popen[bytes], timeout: float) -> bool:
    """Wait for the end; whether it had to be stopped. First asked, so that git removes its locks, then killed."""
    try:
        process.wait(timeout)
        return False
    except subprocess.TimeoutExpired:
        return True
    finally:
        if process.returncode is None:
            _signal(process, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE_S)
            _signal(process, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
            process.wait()


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send a signal to git and to all that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.send_signal(number)
        else:
            os.killpg(process.pid, number)


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


class Hung:
    """Remembers that git did not answer: then none is asked for half a minute, so that nobody waits again and again."""

    def __init__(self) -> None:
        self._until = 0.0

    def note(self, late: bool) -> None:
        """Take note of whether a run had to be stopped."""
        if late:
            self._until = time.monotonic() + _HUNG_S

    @property
    def lately(self) -> bool:
        """Whether git did not answer a moment ago."""
        return time.monotonic() < self._until


class Repo:
    """The repository whose top is the vault's root.

    `environ` is what git inherits. `timeout`: seconds for one git run (longer for many paths); `patience`: seconds for
    which a commit is tried again while somebody else holds a lock. `now` gives epoch seconds.
    """

    def __init__(
        self,
        root: Path,
        environ: Mapping[str, str],
        *,
        timeout: float = 10.0,
        patience: float = 10.0,
        now: Callable[[], float] = time.time,
    ) -> None:
        top = os.path.realpath(root)
        self._environ = {**environ, "GIT_CEILING_DIRECTORIES": os.path.dirname(top)}  # noqa: PTH120 - text path
        self._timeout = timeout
        self._now = now
        self._hung = Hung()
        self._tree = WorkTree(top, self._git)
        self._committer = Committer(self._tree, patience, now)

    def ensure(self) -> Ensured:
        """Make the vault a repository that leaves `.vaultd` out; see `gitsetup.ensure`. VaultdError."""
        return gitsetup.ensure(Path(self._tree.root), self._git, self._now())

    def state(self) -> GitState:
        """How the repository stands; `blocked` holds for `commit` too. Takes no lock."""
        if self._hung.lately:
            return GitState(True, _HANGS)
        place = self._tree.place()
        if place is None:
            return GitState(False, "the vault is not a git repository")
        status = self._tree.status(untracked=False)
        if isinstance(status, Ran):
            return GitState(True, words(status, "git status"))
        blocked = self._tree.blocked(place, status) or self._tree.held(place, self._now())
        return GitState(True, blocked, status.head, status.branch)

    def head(self) -> str | None:
        """The last commit; None before the first one or without a repository."""
        return None if self._hung.lately else self._tree.head()

    def head_time(self) -> str | None:
        """When the last commit was made, RFC 3339 with offset; None before the first one."""
        if self._hung.lately:
            return None
        ran = self._git("show", "-s", "--no-show-signature", "--format=%cI", "HEAD")
        return ran.out.decode("ascii").strip() if ran.ok else None

    def changed(self) -> list[Change]:
        """What differs from the last commit, new and deleted paths included; `.vaultd` and ignored paths are not.

        Empty when git cannot tell; `state` says why.
        """
        if self._hung.lately:
            return []
        status = self._tree.status() if self._tree.place() is not None else None
        changes = status.changes if isinstance(status, Status) else ()
        return [change for change in changes if not change.path.startswith(".vaultd/")]

    def holds(self, path: str) -> bool:
        """Whether the last commit has a file under this path."""
        return self._git("cat-file", "-e", f"HEAD:./{path}").ok

    def staged(self) -> set[str]:
        """Paths that the person has in the index and not committed yet; empty when git cannot tell."""
        return {change.path for change in self.changed() if change.staged}

    def tracked(self) -> tuple[int, int]:
        """How many pages (`*.md`) git knows, and how many files in all, pictures and hidden ones left out."""
        if self._hung.lately:
            return 0, 0
        ran = self._git("ls-files", "-z")
        names = [n for n in ran.out.split(b"\0") if n and not n.startswith(b".") and not n.lower().endswith(_ATTACHED)]
        return sum(n.endswith(b".md") for n in names), len(names)

    def tracked_count(self) -> int:
        """How many pages (`*.md`) git knows; 0 when it cannot tell."""
        if self._hung.lately:
            return 0
        ran = self._git("ls-files", "-z")
        return sum(name.endswith(b".md") for name in ran.out.split(b"\0")) if ran.ok else 0

    def past(self) -> Past | None:
        """What git has of the vault's past; None without a repository. HeldError while git does not answer."""
        if self._hung.lately:
            raise HeldError(f"{_HANGS[0].upper()}{_HANGS[1:]}.")
        return Past(self._tree) if self._tree.place() is not None else None

    def commit(self, paths: Iterable[str], message: Clean) -> Outcome:
        """Commit exactly these paths as they lie in the work tree; see `gitcommit.Committer.commit`."""
        if self._hung.lately:
            return Failed(_HANGS)
        return self._committer.commit(paths, message)

    def clear_locks(self) -> None:
        """Remove locks that a dead git left a minute ago or longer, so that nobody finds the repository locked."""
        if not self._hung.lately:
            self._committer.clear_locks()

    def _git(
        self, *args: str, stdin: bytes = b"", patience: float = 1.0, locks: bool = False, index: Path | None = None
    ) -> Ran:
        seconds = self._timeout * patience
        top = self._tree.root
        ran = run(args, self._environ, cwd=top, stdin=stdin, timeout=seconds, locks=locks, index=index)
        self._hung.note(ran.late)
        return ran
