"""Which project a folder belongs to: the decision, made from facts that were looked up elsewhere.

What speaks for "the same project", strongest first:

    marker      `.vaultd.toml` names the project: nothing else is asked
    id          it is the hash of the deciding remote (`upstream`, else `origin`)
    same place  a checkout path that the project is known by, if the repository there still is the same one: it has a
                remote or a root commit of the project, or one of its root commits among its objects
    remote      `upstream`, else `origin`, is among the project's `repos`
    root        without a remote: the first commit is hashed in the id, or is in the `repos` of one project only
    neighbour   one was cloned from the other on this disk

So a renamed remote keeps its project in the same place, a second clone finds it by its remote, a fork elsewhere is
another project, and clones of one remote always come together. Nothing is decided by what was used last.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from vaultd.core import frontmatter
from vaultd.core.checkout import text_path
from vaultd.core.ids import project_id, slug
from vaultd.core.remotes import LOCAL, normalise_remote

__all__ = [
    "RESERVED",
    "ROOT",
    "WORKSPACE",
    "GitFacts",
    "Identity",
    "Known",
    "Seen",
    "choose",
    "free_folder",
    "identity",
    "known_project",
]

WORKSPACE = "projects"
"""The workspace of projects that no marker puts elsewhere."""

ROOT = "root:"
"""How an entry of `repos` begins that is a root commit instead of a remote."""

RESERVED = frozenset({"unsorted"})
"""Folder names of the default workspace that are no project's."""

_ID_LINE = re.compile(r"^id:[ \t]*[\"']?(p-[0-9a-z]{6,40})[\"']?[ \t]*\r?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class GitFacts:
    """What a repository on disk says of itself; paths are absolute, with symlinks resolved.

    `main`: the main checkout, or the bare repository; `top`: the work tree that was asked about ("" in a bare one);
    `common`: the git folder shared by all worktrees; `gitdir`: this work tree's own; `worktree`: the name of a linked
    work tree, "" in the main one; `branch`: "" when detached; `remotes`: name to address as configured.
    """

    main: str
    top: str
    common: str
    gitdir: str
    worktree: str = ""
    branch: str = ""
    remotes: Mapping[str, str] = field(default_factory=dict)
    shallow: bool = False
    bare: bool = False
    submodule: bool = False


@dataclass(frozen=True, slots=True)
class Identity:
    """What a repository is known by: its remotes in normal form, the deciding one first, and its root commit or ""."""

    remotes: tuple[str, ...] = ()
    root: str = ""

    @property
    def id(self) -> str | None:
        """The id that a new project of this repository gets; None when there is nothing to make one from."""
        if self.remotes:
            return project_id(self.remotes[0])
        return project_id(self.root) if self.root else None

    @property
    def repos(self) -> tuple[str, ...]:
        """The entries that the project's `repos` should hold."""
        return self.remotes + ((ROOT + self.root,) if self.root else ())


@dataclass(frozen=True, slots=True)
class Known:
    """A project that has a page: `folder` is its path in the vault, `page` that of its `project.md`.

    `checkouts` are paths on this machine, `elsewhere` the entries of other machines as they stand.
    """

    id: str
    folder: str
    title: str = ""
    aliases: tuple[str, ...] = ()
    repos: tuple[str, ...] = ()
    checkouts: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The folder's own name."""
        return self.folder.rpartition("/")[2]

    @property
    def workspace(self) -> str:
        """The folder that the project's lies in."""
        return self.folder.partition("/")[0] if "/" in self.folder else ""

    @property
    def page(self) -> str:
        """Path of the project's page."""
        return f"{self.folder}/project.md"


@dataclass(frozen=True, slots=True)
class Seen:
    """A place as seen now: the paths it goes by, and what is known of the repository there.

    `held` are root commits of candidates that are among the repository's objects. `intact` is false when the place is
    gone from the disk, so that its path is all there is. `repository` says whether there is (or was) one.
    """

    paths: frozenset[str]
    identity: Identity = Identity()
    held: frozenset[str] = frozenset()
    repository: bool = False
    intact: bool = True


def identity(remotes: Mapping[str, str], root: str, base: str) -> Identity:
    """What a repository is known by. `base` is what its relative remotes are relative to."""
    forms = (normalise_remote(remotes.get(name, ""), base) for name in ("upstream", "origin"))
    return Identity(tuple(dict.fromkeys(form for form in forms if form)), root)


def choose(known: Sequence[Known], seen: Seen) -> Known | None:
    """The project that a place belongs to; None when it is none of these. The order of `known` breaks ties."""
    if seen.identity.remotes:
        for candidate in known:
            if candidate.id == seen.identity.id:
                return candidate
    for candidate in known:
        if seen.paths.intersection(candidate.checkouts) and _same_repository(candidate, seen):
            return candidate
    for remote in seen.identity.remotes:
        for candidate in known:
            if remote in candidate.repos or candidate.id == project_id(remote):
                return candidate
    return _by_root(known, seen) or _neighbour(known, seen)


def _same_repository(project: Known, seen: Seen) -> bool:
    """Whether what lies in a place that a project is known by can still be that project's repository."""
    if not project.repos or not seen.repository:
        return True
    if project.id == seen.identity.id or set(seen.identity.repos).intersection(project.repos):
        return True
    if any(ROOT + sha in project.repos for sha in seen.held):
        return True
    return not seen.intact and not seen.identity.remotes


def _by_root(known: Sequence[Known], seen: Seen) -> Known | None:
    """The project of a repository without a remote, by its root commit."""
    if seen.identity.remotes or not seen.identity.root:
        return None
    for candidate in known:
        if candidate.id == seen.identity.id:
            return candidate
    having = [k for k in known if ROOT + seen.identity.root in k.repos]
    return having[0] if len(having) == 1 else None


def _neighbour(known: Sequence[Known], seen: Seen) -> Known | None:
    """The project that this repository was cloned from on this disk, or that was cloned from it."""
    origins = {remote for remote in seen.identity.remotes if remote.startswith(LOCAL)}
    own = {normalise_remote(path) for path in seen.paths} if seen.repository else set()
    for candidate in known:
        if origins and origins.intersection(normalise_remote(path) for path in candidate.checkouts):
            return candidate
        if own.intersection(candidate.repos):
            return candidate
    return None


def known_project(folder: str, data: bytes, host: str) -> Known | None:
    """What a `project.md` says; None when it has no id of ours. One that does not parse still gives its id."""
    page = frontmatter.parse(data)
    values = page.meta.values
    if not values:
        head = data[: frontmatter.LIMIT].decode("utf-8-sig", "replace")
        found = _ID_LINE.search(head) if head.startswith("---") else None
        return Known(found[1], folder) if found else None
    number = values.get("id")
    if not isinstance(number, str) or not number.startswith("p-"):
        return None
    entries = _texts(values.get("checkouts"))
    mine = tuple(text_path(e.removeprefix(f"{host}:")) for e in entries if e.startswith(f"{host}:"))
    title = values.get("title")
    return Known(
        id=number,
        folder=folder,
        title=title if isinstance(title, str) else "",
        aliases=_texts(values.get("aliases")),
        repos=_texts(values.get("repos")),
        checkouts=mine,
        elsewhere=tuple(e for e in entries if not e.startswith(f"{host}:")),
    )


def _texts(value: object) -> tuple[str, ...]:
    """The strings of a frontmatter list, or the one string that stands in its place."""
    items = value if isinstance(value, list) else [value]
    return tuple(item for item in items if isinstance(item, str) and item)


def free_folder(workspace: str, name: str, project: str, taken: Collection[str]) -> str:
    """The vault folder for a new project: the name's slug, with hex digits of the id when that is `taken`.

    `taken`: names in the workspace that belong to another project; case does not count, since vaults travel.
    """
    names = {n.casefold() for n in taken}
    if workspace == WORKSPACE:
        names |= RESERVED
    base, digits = slug(name), project.removeprefix("p-")
    candidates = [base, *(f"{base}-{digits[:n]}" for n in range(4, len(digits) + 1, 4))]
    return f"{workspace}/{next((c for c in candidates if c.casefold() not in names), candidates[-1])}"
