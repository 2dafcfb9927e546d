"""Where a session ran: what its hook recorded, completed and corrected by what the disk shows now.

The disk has the last word while the place is still the one that the hook saw. A folder that is gone, or whose
repository is gone, is judged by what was recorded: the checkout's root, the `.git` file of a linked work tree, the
remote. A daemon that cannot see the person's folders at all works from these alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from vaultd.core.checkout import Marker, below, main_checkout, marker_folders, parse_marker, posix_path
from vaultd.core.event import Event
from vaultd.core.project import GitFacts
from vaultd.store.gitfacts import facts, orphaned
from vaultd.store.places import is_root, marker_files, real_folder

__all__ = ["View", "Whereabouts", "look"]


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """What a hook recorded of a place: absolute `cwd`; `root`, the first folder upwards with `.git` or a marker;
    `gitfile`, the `.git` file of a linked work tree; `remote` and `head` of a start event. Any may be "".
    """

    cwd: str
    root: str = ""
    gitfile: str = ""
    remote: str = ""
    head: str = ""

    @classmethod
    def of(cls, event: Event, others: Iterable[Event] = ()) -> Whereabouts:
        """The place of an event; what only another event of the same checkout recorded is taken from there."""
        place = cls(event.cwd, event.root, event.gitfile, event.remote, event.head)
        for other in others:
            if event.root and other.root == event.root:
                place = replace(
                    place,
                    gitfile=place.gitfile or other.gitfile,
                    remote=place.remote or other.remote,
                    head=place.head or other.head,
                )
        return place


@dataclass(frozen=True, slots=True)
class View:
    """A place as it is seen now.

    `main`: the main checkout, or the folder itself where there is no repository; `paths`: all paths it goes by,
    `main` first; `remotes`: name to address; `intact`: the disk shows it; `repository`: there is or was one.
    """

    main: str
    subdir: str
    paths: tuple[str, ...]
    git: GitFacts | None = None
    worktree: str = ""
    branch: str = ""
    remotes: Mapping[str, str] = field(default_factory=dict)
    repository: bool = False
    intact: bool = True
    marker: Marker | None = None
    problem: str = ""


def look(where: Whereabouts, home: str, environ: Mapping[str, str], known: Collection[str] = ()) -> View | str:
    """What is there; a reason in words when it can be no project. `known`: checkouts that projects are known by."""
    cwd = posix_path(where.cwd or where.root)
    if not _absolute(cwd):
        return "the event names no folder"
    root = posix_path(where.root)
    where = replace(where, cwd=cwd, root=root) if root and below(cwd, root) is not None else Whereabouts(cwd)
    homes = {path for path in (posix_path(home), real_folder(home), "/") if path}
    view = _repository(where, environ, known)
    if view is None or not homes.isdisjoint(view.paths[:1]):
        if cwd in homes or real_folder(cwd) in homes:
            return "the home folder and / are no projects"
        real = real_folder(cwd)
        view = View(main=cwd, subdir="", paths=_unique(cwd, real), intact=bool(real))
    return _marked(view, where, homes)


def _repository(where: Whereabouts, environ: Mapping[str, str], known: Collection[str]) -> View | None:
    """The repository that the place is or was in; None when neither the disk nor the hook saw one."""
    found = _facts(where.cwd, environ)
    if found is not None and not _replaced(where, found, known):
        rest = below(real_folder(where.cwd), found.top) if found.top else ""
        return _seen(where, found, rest or "")
    root, gitfile = where.root, where.gitfile
    if not root:
        gone = orphaned(where.cwd)
        if gone is None:
            return None
        root, gitfile = gone
    rest = below(where.cwd, root) or ""
    main = main_checkout(root, gitfile)
    found = _facts(main, environ)
    if found is not None and real_folder(main) in (found.main, found.top, found.common):
        view = _seen(where, found, rest)
        return replace(view, worktree=Path(root).name, branch="") if main != root else view
    return View(
        main=main,
        subdir=rest,
        paths=_unique(main),
        worktree=Path(root).name if main != root else "",
        remotes={"origin": where.remote} if where.remote else {},
        repository=bool(gitfile or where.remote or where.head),
        intact=False,
    )


def _facts(folder: str, environ: Mapping[str, str]) -> GitFacts | None:
    """What the disk shows; None also when the repository's settings cannot be read."""
    try:
        return facts(folder, environ)
    except OSError:
        return None


def _seen(where: Whereabouts, found: GitFacts, rest: str) -> View:
    """A repository that the disk shows; the path that the hook goes by is one of its names."""
    recorded = main_checkout(where.root, where.gitfile) if where.root else ""
    return View(
        main=found.main,
        subdir=rest,
        paths=_unique(found.main, recorded),
        git=found,
        worktree=found.worktree,
        branch=found.branch,
        remotes=found.remotes,
        repository=True,
    )


def _replaced(where: Whereabouts, found: GitFacts, known: Collection[str]) -> bool:
    """Whether the hook saw another repository, inside the one that the disk shows now, which is gone."""
    root = real_folder(where.root) if where.root else ""
    if not where.root or root == found.top or not found.top:
        return False
    if root and is_root(root):
        return False
    if below(root or where.root, found.top) in (None, ""):
        return False
    return bool(where.gitfile or where.remote or where.head) or where.root in known


def _marked(view: View, where: Whereabouts, homes: Collection[str]) -> View:
    """The place with what the nearest marker decides."""
    top = view.git.top if view.git else where.root
    start = real_folder(where.cwd) if view.git else where.cwd
    home = next((folder for folder in homes if folder != "/" and below(start, folder) is not None), "")
    folders = marker_folders(start, top, view.main, home)
    for folder, data in marker_files(folders):
        marker = parse_marker(folder, data)
        if marker is None:
            continue
        if marker.problem:
            view = replace(view, problem=view.problem or marker.problem)
            continue
        if folder in homes:
            marker = replace(marker, project="")
        return _named(view, where, marker, start, top) if marker.project else replace(view, marker=marker)
    return view


def _named(view: View, where: Whereabouts, marker: Marker, start: str, top: str) -> View:
    """The place of a project that a marker names: the marker's folder, in the main checkout."""
    inside = below(marker.folder, top) if top else None
    main = f"{view.main}/{inside}".rstrip("/") if view.git and inside is not None else marker.folder
    rest = below(start, marker.folder)
    if rest is None:  # the marker lies in the main checkout, the session ran in a linked work tree
        mapped = below(f"{view.main}/{view.subdir}".rstrip("/"), marker.folder)
        rest = mapped or ""
    recorded = where.root if real_folder(where.root) == marker.folder else ""
    return replace(view, main=main, subdir=rest, paths=_unique(main, marker.folder, recorded), marker=marker)


def _absolute(path: str) -> bool:
    return path.startswith("/") or path[1:3] == ":/"


def _unique(*paths: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for path in paths if path))
