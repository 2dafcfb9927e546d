"""Changing files that belong to other programs: a plan that can be printed, and carrying it out.

A file is replaced whole by one rename, only when it still holds what the plan was made from, and with a copy of the old
content beside it when entries of ours go in. Links are followed: a file kept in a folder of dotfiles is written there.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from vaultd.agents import Agent
from vaultd.config import Places
from vaultd.engine.installed import Installed, Row
from vaultd.errors import ConflictError, RefusedError
from vaultd.store import fs

__all__ = [
    "FileChange",
    "Plan",
    "agent_path",
    "apply",
    "permissions",
    "read_foreign",
    "why_managed",
    "why_no_room",
]


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file of another program: the path it is known by, where its bytes are, and what it holds before and after.

    `before` None: there is no such file. `after` None: it goes. `entering`: entries of ours go in, so a copy is kept
    and the change is recorded.
    """

    agent: str
    path: Path
    target: Path
    before: bytes | None
    after: bytes | None
    mode: int
    entering: bool

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        old, new = (_lines(self.before), _lines(self.after))
        lines = difflib.unified_diff(old, new, str(self.path), str(self.path))
        return "".join(line if line.endswith("\n") else line + "\n\\ no newline at the end\n" for line in lines)


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be done, in this order.

    Files of others changed; copies of theirs that vaultd made removed; what is kept about `forget` dropped; files and
    trees of vaultd removed; folders removed that are empty by then. `notes` are for the person.
    """

    changes: tuple[FileChange, ...] = ()
    copies: tuple[Path, ...] = ()
    forget: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()
    trees: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing would be changed or removed."""
        return not (self.changes or self.copies or self.forget or self.files or self.trees)

    @property
    def summary(self) -> str:
        """The files that would be changed, a line each: how much comes in and goes out."""
        rows = []
        for change in self.changes:
            marks = [line[0] for line in change.diff.splitlines()[2:]]
            size = f"+{marks.count('+')}" + (f" -{marks.count('-')}" if "-" in marks else "")
            new = " (new)" if change.before is None else " (goes)" if change.after is None else ""
            rows.append(f"  {size:>9}  {change.path}{new}")
        return "\n".join(rows)

    @property
    def text(self) -> str:
        """The plan for a person to read: diffs, then what would be removed. A new file like another is told once."""
        parts, shown = [], dict[bytes, Path]()
        for change in self.changes:
            same = shown.get(change.after) if change.before is None and change.after is not None else None
            if same is not None:
                parts.append(f"+++ {change.path}: the same as {same}\n")
                continue
            parts.append(change.diff)
            if change.before is None and change.after is not None:
                shown[change.after] = change.path
        gone = [change.path for change in self.changes if change.after is None]
        parts += [f"remove {path}\n" for path in (*gone, *self.copies, *self.files, *self.trees)]
        return "".join(parts)


def agent_path(agent: Agent, places: Places, environ: Mapping[str, str], file: str, folder: str | None = None) -> Path:
    """A file in an agent's folder, or in another one below the home folder. A blank variable is none.

    Where a variable moves the agent's folder, `folder` moves with it.
    """
    home = agent.home
    moved = environ.get(home.env, "").strip() if home.env else ""
    if moved:
        return Path(os.path.abspath(moved)) / home.below / file  # noqa: PTH100  # keeps links
    usual = home.macos if home.macos and sys.platform == "darwin" else home.folder
    return places.home / (usual if folder is None else folder) / file


def read_foreign(path: Path) -> bytes | None:
    """The bytes of a file; None when there is none. RefusedError when it cannot be read."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise RefusedError(f"{path} is no file. Take it away and try again.")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RefusedError(f"{path} cannot be read ({error.strerror}). Mend that and try again.") from error


def why_managed(target: Path) -> str:
    """Why a file is not to be edited in place (read-only, made by something else); "" when it may be."""
    if str(target).startswith("/nix/store/"):
        return "it lies in the Nix store"
    there = target
    while not there.exists() and there.parent != there:
        there = there.parent
    if there == target and not target.is_file():
        return f"{target} is not a file"
    for path in (there, there.parent) if there == target else (there,):
        if not path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(path, os.W_OK):
            return f"{path} is read-only"
    return ""


def why_no_room(folder: Path) -> str:
    """Why no copy can be put into a folder; "" when one can."""
    return "" if os.access(folder, os.W_OK | os.X_OK) else f"{folder} is read-only, and a copy is to be kept there"


def permissions(target: Path) -> int:
    """The permissions a file keeps; a new one is its owner's alone."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        return 0o600


def apply(plan: Plan, places: Places, now: datetime) -> list[str]:
    """Carry out a plan; what was done, a line each. ConflictError when a file changed since the plan was made.

    Crash after a copy was made: a spare copy. After it was recorded: the record names a revision that no file has, and
    is passed over. After a file's rename: that file is done and others are not; a new plan goes on from there.
    """
    with _alone(places.data):  # two at once would lose each other's record
        return _applied(plan, Installed.of(places), now)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a folder, if it is there and the system can; it is let go when the process dies."""
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (ImportError, AttributeError, OSError):
        yield
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _applied(plan: Plan, record: Installed, now: datetime) -> list[str]:
    done: list[str] = []
    for change in plan.changes:
        _unchanged(change)
        done += _enter(change, record, now) if change.entering else []
        if change.after is None:
            _unchanged(change)
            fs.remove(change.target)
        else:
            _replace(change, change.after)
        word = "removed" if change.after is None else "made" if change.before is None else "changed"
        done.append(f"{word} {change.path}")
    done += _removed(plan.copies)
    for path in plan.forget:
        record.forget(path)
    done += _removed(plan.files)
    for tree in plan.trees:
        fs.remove_tree(tree)
        done.append(f"removed {tree}")
    for folder in plan.folders:
        try:
            folder.rmdir()
        except OSError:
            continue  # not empty, or gone
        done.append(f"removed {folder}")
    return done


def _unchanged(change: FileChange) -> None:
    """ConflictError when a file holds something else than the plan was made from."""
    if read_foreign(change.path) != change.before:
        raise ConflictError(f"{change.path} was changed by something else just now. Nothing was lost; try again.")


def _replace(change: FileChange, data: bytes) -> None:
    """Put a file's new content in its place, all of it ready beside it before it is looked at for the last time."""
    if not change.target.parent.is_dir():
        fs.make_folder(change.target.parent, mode=0o700, sync=True)
    temp = fs.temp_beside(change.target, data, mode=change.mode, sync=True)
    try:
        temp.chmod(change.mode)  # the umask may have cut it
        _unchanged(change)
        fs.replace(temp, change.target)
    except BaseException:
        fs.remove(temp)
        raise
    fs.sync_folder(change.target.parent)


def _enter(change: FileChange, record: Installed, now: datetime) -> list[str]:
    """Copy what a file holds and record the change that is about to be made; what was done."""
    backup = _copy(change.path, change.before, change.mode, now) if change.before is not None else None
    row = Row(
        agent=change.agent,
        file=str(change.path),
        before=fs.revision(change.before) if change.before is not None else None,
        after=fs.revision(change.after or b""),
        backup=str(backup) if backup else None,
        at=now.isoformat(timespec="seconds"),
        made=tuple(str(folder) for folder in change.target.parents if not folder.exists()),
    )
    record.add(row)
    return [f"kept a copy as {backup}"] if backup else []


def _copy(path: Path, data: bytes, mode: int, now: datetime) -> Path:
    """A copy beside a file, named by the second (the next free one)."""
    second = int(now.timestamp())
    while True:
        copy = path.with_name(f"{path.name}.bak-{second}")
        try:
            fs.publish(copy, data, mode=mode)
        except FileExistsError:
            second += 1
        else:
            return copy


def _removed(paths: tuple[Path, ...]) -> list[str]:
    """Remove files of ours; what was done."""
    there = [path for path in paths if path.exists() or path.is_symlink()]
    for path in there:
        fs.remove(path)
    return [f"removed {path}" for path in there]


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode("utf-8", "replace").splitlines(keepends=True)
