"""What git answered: a finished run, the status of a work tree, and what a failure means."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

__all__ = ["Change", "Ran", "Status", "locked_path", "parse_status", "passing", "says_nothing", "standstill", "words"]

_LOCKED = re.compile(r"Unable to create '(?P<lock>[^\n]+?\.lock)': File exists")
_PASSING = (
    ".lock': File exists",
    "cannot lock ref",
    "did not match any file",  # a page came or went while we worked
    "unable to stat",
    "short read while indexing",
)
_STANDSTILL = ("cannot do a partial commit during", "unmerged files", "not concluded your merge", "needs merge")
_ADVICE = re.compile(r"^(?:hint|warning):.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Ran:
    """A git run that ended: `code` as of a process (negative: the signal that killed it; 127: no git), both outputs.

    `late` is true when it was stopped because its time was over.
    """

    code: int
    out: bytes
    err: str
    late: bool = False

    @property
    def ok(self) -> bool:
        """Whether git said yes."""
        return self.code == 0 and not self.late


@dataclass(frozen=True, slots=True)
class Change:
    """One path of the work tree that differs from the last commit.

    `status`: A new, M changed, D deleted, T of another type, U unmerged. `staged`: the person has put (part of) the
    change into the index.
    """

    status: str
    path: str
    staged: bool = False
    known: bool = True


@dataclass(frozen=True, slots=True)
class Status:
    """A work tree's status: `head` None before the first commit, `branch` None when HEAD is detached."""

    head: str | None
    branch: str | None
    changes: tuple[Change, ...]


def parse_status(out: bytes) -> Status:
    """Read `git status --porcelain=v2 --branch -z --no-renames`; submodules and repositories inside are passed over.

    Names keep their bytes (surrogate escapes). An "intent to add" entry counts as a new path that is not staged.
    """
    head: str | None = None
    branch: str | None = None
    changes: dict[str, Change] = {}
    for raw in out.split(b"\0"):
        text = os.fsdecode(raw)
        if text.startswith("# branch.oid "):
            oid = text.removeprefix("# branch.oid ")
            head = None if oid == "(initial)" else oid
        elif text.startswith("# branch.head "):
            name = text.removeprefix("# branch.head ")
            branch = None if name == "(detached)" else name
        elif (change := _change(text)) is not None:
            # A path that the person took out of the index and left on disk stands twice: it is theirs.
            changes.setdefault(change.path, change)
    return Status(head, branch, tuple(changes.values()))


def _change(text: str) -> Change | None:
    """One entry of the status; None for headers, ignored paths, submodules and repositories inside this one."""
    match text[:2]:
        case "? ":
            return None if text.endswith("/") else Change("A", text[2:], known=False)
        case "u ":
            return Change("U", text.split(" ", 10)[10], staged=True)
        case "1 ":
            _, state, sub, _, _, _, _, _, path = text.split(" ", 8)
            if sub != "N...":
                return None
            return Change(state[1] if state[1] != "." else state[0], path, staged=state[0] != ".")
    return None


def locked_path(ran: Ran) -> str | None:
    """The lock file that stood in the way, if that is why git failed."""
    found = _LOCKED.search(ran.err)
    return found["lock"] if found else None


def passing(ran: Ran) -> bool:
    """Whether the failure is one that goes by itself: a lock, a ref or page that somebody else changed meanwhile."""
    return not ran.ok and any(mark in ran.err for mark in _PASSING)


def says_nothing(ran: Ran) -> bool:
    """Whether a commit ended because there was nothing to commit."""
    return ran.code == 1 and not ran.late and not _ADVICE.sub("", ran.err).strip()


def standstill(ran: Ran) -> bool:
    """Whether git refused because the person is in the middle of something."""
    return not ran.ok and any(mark in ran.err for mark in _STANDSTILL)


def words(ran: Ran, doing: str) -> str:
    """Why a run failed, in a sentence or two for the person."""
    if ran.code == 127:
        return "git is not installed or not in PATH; install it and try again"
    if ran.late:
        return f"{doing} did not end in time and was stopped; look for a filter or a disk that hangs"
    if ran.code < 0:
        return f"{doing} was killed by signal {-ran.code}"
    if "dubious ownership" in ran.err:
        return "the vault's folder belongs to another user, so git refuses it; see `git help config`, safe.directory"
    text = " ".join(_ADVICE.sub("", ran.err).split()) or " ".join(os.fsdecode(ran.out[:500]).split())
    return f"{doing} failed: {text[:500] or f'exit code {ran.code}'}"
