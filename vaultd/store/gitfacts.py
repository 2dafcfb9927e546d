"""What a repository that a session ran in says of itself. Nothing is changed.

The repositories here are other people's work: their git folder is read as files, and git is run on it for three things
only, none of which starts a program or opens a connection: the configured remotes, the root commit, and whether
certain commits are there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from vaultd.core.project import GitFacts
from vaultd.store import gitdir
from vaultd.store.git import Hung, run
from vaultd.store.gitanswers import Ran
from vaultd.store.places import real_folder

__all__ = ["facts", "held_commits", "orphaned", "root_commit"]

_PATIENCE_S = 10.0  # seconds for one answer: on a machine that is busy git is slow, and no answer is another identity
_hung: dict[tuple[str, str], Hung] = {}
"""By git folder and question whether git hung on it: waiting for an answer holds up all events. One dead disk is not
all of them, and a history too long to walk says nothing of the settings.
"""

_WANTED = r"^(remote\..*\.url|core\.(bare|worktree))$"


def facts(cwd: str, environ: Mapping[str, str]) -> GitFacts | None:
    """What the repository that a folder belongs to says of itself; None where there is none (any more).

    Works in worktrees, subfolders, submodules, bare and shallow repositories, inside a git folder, and whoever owns it.
    """
    real = real_folder(cwd)
    place = gitdir.locate(real) if real else None
    if place is None:
        return None
    config = _config(place.common, environ)
    bare = config.get("core.bare", "").lower() in ("true", "yes", "on", "1")
    return GitFacts(
        main=_main(place, config.get("core.worktree", ""), bare),
        top=place.top,
        common=place.common,
        gitdir=place.own,
        worktree=Path(place.own).name if place.linked else "",
        branch=gitdir.branch(place.own),
        remotes={key[7:-4]: value for key, value in config.items() if key.startswith("remote.")},
        shallow=Path(place.common, "shallow").exists(),
        bare=bare,
        submodule=not place.linked and "/modules/" in place.own.removeprefix(place.top),
    )


def orphaned(folder: str) -> tuple[str, str] | None:
    """The nearest folder upwards whose `.git` leads nowhere, and what it says: a work tree whose repository is gone."""
    real = real_folder(folder)
    for current in (Path(real), *Path(real).parents) if real else ():
        line = gitdir.first_line(current / ".git")
        if line.startswith("gitdir:"):
            return str(current), line
        if gitdir.is_folder(current / ".git"):
            return None
    return None


def root_commit(found: GitFacts, environ: Mapping[str, str]) -> str:
    """The first commit of the main checkout's first-parent history, else of this work tree's.

    "" in a shallow repository, before the first commit, or when the history is too long to walk in ten seconds.
    """
    if found.shallow:
        return ""
    for folder in dict.fromkeys((found.common, found.gitdir)):
        args = [f"--git-dir={folder}", "rev-list", "--max-parents=0", "--first-parent", "HEAD"]
        ran = _ask((folder, "history"), args, environ)
        if ran.ok and ran.out:
            return ran.out.split()[-1].decode("ascii")
    return ""


def held_commits(found: GitFacts, commits: Iterable[str], environ: Mapping[str, str]) -> frozenset[str]:
    """Those of the commits that are among the repository's objects."""
    wanted = [commit for commit in commits if commit.isalnum()]
    if not wanted:
        return frozenset()
    lines = "\n".join(wanted).encode() + b"\n"
    ran = _ask((found.common, "objects"), [f"--git-dir={found.common}", "cat-file", "--batch-check"], environ, lines)
    return frozenset(line.split()[0] for line in ran.out.decode("ascii", "replace").splitlines() if " commit " in line)


def _ask(about: tuple[str, str], args: list[str], environ: Mapping[str, str], stdin: bytes = b"") -> Ran:
    """Run git, unless it hung on this folder and question a moment ago."""
    hung = _hung.setdefault(about, Hung())
    if hung.lately:
        return Ran(-1, b"", "git did not answer a moment ago", late=True)
    ran = run(args, environ, cwd="/", stdin=stdin, timeout=_PATIENCE_S)
    hung.note(ran.late)
    return ran


def _config(common: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The few settings that matter; the first address of a remote. OSError when they cannot be read."""
    args = ["config", "--file", f"{common}/config", "-z", "--get-regexp", _WANTED]
    ran = _ask((common, "settings"), args, environ)
    if not ran.ok and ran.code != 1:
        raise OSError(f"{common}/config cannot be read: {ran.err.strip()[:200]}")
    values: dict[str, str] = {}
    for entry in os.fsdecode(ran.out).split("\0"):
        name, _, value = entry.partition("\n")
        if name:
            values.setdefault(name, value)
    return values


def _main(place: gitdir.GitDir, worktree: str, bare: bool) -> str:
    """The main checkout's path."""
    common = Path(place.common)
    if not place.linked and place.top:
        return place.top
    if worktree:
        return os.path.normpath(common / worktree)
    return str(common.parent) if common.name == ".git" or (bare and common.name == ".bare") else place.common
