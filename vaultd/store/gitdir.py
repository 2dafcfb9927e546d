"""A repository's git folder, found and read as plain files: without git, whoever owns it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["GitDir", "branch", "first_line", "has_message", "is_folder", "locate", "obstacle", "resolve_gitfile"]

_LINE_LIMIT = 16_384

_OPERATIONS = (
    ("MERGE_HEAD", "a merge is in progress"),
    ("rebase-merge", "a rebase is in progress"),
    ("rebase-apply", "a rebase or `git am` is in progress"),
    ("CHERRY_PICK_HEAD", "a cherry-pick is in progress"),
    ("REVERT_HEAD", "a revert is in progress"),
    ("sequencer", "a cherry-pick or revert of several commits is in progress"),
    ("BISECT_LOG", "a bisect is in progress"),
)


@dataclass(frozen=True, slots=True)
class GitDir:
    """Where a work tree's git folder is: `top` holds `.git` ("" when the folder itself is the git folder), `own` is the
    work tree's own git folder, `common` the one that all work trees share (the same but in a linked one).
    """

    top: str
    own: str
    common: str

    @property
    def linked(self) -> bool:
        """Whether this is a linked work tree."""
        return self.own != self.common


def locate(folder: str) -> GitDir | None:
    """The repository that a folder belongs to, walking up as git does; None in none. `folder` has no symlinks."""
    for current in (Path(folder), *Path(folder).parents):
        own = resolve_gitfile(current)
        if own is not None and _is_git_folder(own):
            return GitDir(str(current), str(own), str(_common(own)))
        if _is_git_folder(current):
            return GitDir("", str(current), str(_common(current)))
    return None


def resolve_gitfile(folder: Path) -> Path | None:
    """The git folder that `folder/.git` is or names; None when there is no such entry."""
    entry = folder / ".git"
    if is_folder(entry):
        return entry
    line = first_line(entry)
    if not line.startswith("gitdir:"):
        return None
    return _joined(folder, line.removeprefix("gitdir:").strip())


def first_line(path: Path) -> str:
    """The first line of a small file without its end; "" when it cannot be read."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return os.fsdecode(file.readline(_LINE_LIMIT)).rstrip("\r\n")
    except (OSError, ValueError):
        return ""


def is_folder(path: Path) -> bool:
    """Whether there is a folder that we may look at."""
    try:
        return path.is_dir()
    except OSError:
        return False


def branch(own: str) -> str:
    """The branch that is checked out; "" when HEAD is detached or kept in another format."""
    head = first_line(Path(own, "HEAD"))
    name = head.removeprefix("ref:").strip().removeprefix("refs/heads/") if head.startswith("ref:") else ""
    return "" if name == ".invalid" else name


def obstacle(own: str) -> str | None:
    """What a person is in the middle of, in words; None when nothing is."""
    for name, words in _OPERATIONS:
        if os.path.lexists(f"{own}/{name}"):
            return words
    return None


def has_message(own: str) -> bool:
    """Whether git keeps a message for the next commit, as after `git merge --squash` or `git cherry-pick -n`."""
    return any(os.path.lexists(f"{own}/{name}") for name in ("SQUASH_MSG", "MERGE_MSG"))


def _is_git_folder(path: Path) -> bool:
    """What git takes for a git folder: HEAD, and objects and refs of its own or of the common folder."""
    if not os.path.lexists(path / "HEAD"):
        return False
    common = _common(path)
    return all(is_folder(common / name) for name in ("objects", "refs"))


def _common(own: Path) -> Path:
    """The git folder shared by all work trees."""
    line = first_line(own / "commondir")
    return _joined(own, line) if line else own


def _joined(folder: Path, path: str) -> Path:
    return Path(os.path.normpath(folder / path))
