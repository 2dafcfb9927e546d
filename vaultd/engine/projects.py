"""Which project a session belongs to: looked up, decided (`core.project`), and kept in the project's page.

A project is known by its `project.md`: its id, the repositories that it has had (`repos`: remotes in normal form, and
`root:<commit>`), the checkouts of each machine (`checkouts`: `host:path`), the names it goes by (`aliases`). Whatever a
person calls the folder, the id keeps it together. Nothing else is remembered, and nothing is guessed: a session without
a folder, or one in `/` or the home folder, is unsorted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from vaultd.core import frontmatter
from vaultd.core.checkout import path_text, title_of
from vaultd.core.event import Event
from vaultd.core.ids import project_id, slug
from vaultd.core.project import ROOT, WORKSPACE, Known, Seen, choose, free_folder, identity, known_project
from vaultd.core.sanitize import Clean, line, redact
from vaultd.engine.whereabouts import View, Whereabouts, look
from vaultd.errors import RefusedError
from vaultd.store.gitfacts import held_commits, root_commit
from vaultd.store.pages import PageStat, Written
from vaultd.store.places import names_taken, project_pages, real_folder
from vaultd.store.vault import Vault

__all__ = ["Project", "Projects", "Unsorted", "Whereabouts"]

_CHECKOUTS = 64
"""Paths per machine that a project is known by; those that are gone from the disk make room first."""

_ATTEMPTS = 4
_TITLE_LIMIT = 120
_ENTRY_LIMIT = 1_500
_BODY = """
# {title}

What vaultd remembers of this project lies in this folder. Rename or move the folder as you like: the `id` above keeps
it together.
"""


@dataclass(frozen=True, slots=True)
class Project:
    """A project, and where in it a session ran.

    `folder`: its path in the vault; `main`: the main checkout; `subdir`: relative to the checkout, "" at its top;
    `worktree`: name of the linked work tree, "" in the main one; `checkouts`: paths on this machine that the hook may
    look under; `problem`: what is wrong with the place's marker, in words, or "".
    """

    id: str
    workspace: str
    folder: str
    title: str
    main: str = ""
    subdir: str = ""
    worktree: str = ""
    branch: str = ""
    checkouts: tuple[str, ...] = ()
    problem: str = ""

    @property
    def slug(self) -> str:
        """The name of its folder."""
        return self.folder.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Unsorted:
    """The place of a session that belongs to no project; nothing is ever handed over from or to it."""

    reason: str
    id: str = ""
    folder: str = f"{WORKSPACE}/unsorted"
    subdir: str = ""
    branch: str = ""


class Projects:
    """The projects of a vault. Writers hold the write lock.

    `home`: the person's home folder; `environ`: what git inherits; `new_id`: gives a fresh `p-` and twelve hex digits;
    `host`: this machine's name.
    """

    def __init__(
        self, vault: Vault, *, home: str, environ: Mapping[str, str], new_id: Callable[[], str], host: str
    ) -> None:
        self._vault = vault
        self._home = home
        self._environ = environ
        self._new_id = new_id
        self._host = host
        self._pages: dict[str, tuple[PageStat, Known | None]] = {}
        self._strays: set[str] = set()
        self._written: set[str] = set()
        self._roots: dict[str, str] = {}

    def place(self, events: Iterable[Event]) -> Project | Unsorted:
        """The project of a session: that of its first event that is in one. Made when it is new."""
        all_events = list(events)
        result: Project | Unsorted = Unsorted("the session has no events")
        for event in all_events:
            result = self.resolve(Whereabouts.of(event, all_events))
            if isinstance(result, Project):
                break
        return result

    def resolve(self, where: Whereabouts) -> Project | Unsorted:
        """The project of a place. A new one gets its page; a known one's page learns new remotes and checkouts.

        Crash after a new page is made: it stands, and another project may still name the same checkout; the next
        session there puts that right.
        """
        for _ in range(_ATTEMPTS):
            known = self._known()
            view = self._look(where, known)
            if isinstance(view, str):
                return Unsorted(view)
            seen = self._seen(view, known)
            found = _decide(known, view, seen)
            if found is None and self._elsewhere():
                continue
            if found is None:
                found = self._create(view, seen, known)
            if found is not None:
                return _project(self._learn(found, view, seen, known), view)
        return Unsorted("the project's page could not be made")

    def find(self, cwd: str) -> Project | Unsorted | None:
        """The project of a folder, for reading: nothing is made or learned. None when it is not known yet."""
        known = self._known()
        view = self._look(Whereabouts(cwd), known)
        if isinstance(view, str):
            return Unsorted(view)
        found = _decide(known, view, self._seen(view, known))
        if found is None and self._elsewhere():
            return self.find(cwd)
        return _project(found, view) if found is not None else None

    def take_written(self) -> set[str]:
        """Vault paths of project pages that were made or changed since this was asked last."""
        taken, self._written = self._written, set()
        return taken

    def known(self) -> list[Project]:
        """All projects that have a page, by folder; each at its first checkout on this machine, if there is one."""
        return [
            Project(k.id, k.workspace, k.folder, k.title or k.name, next(iter(k.checkouts), ""), checkouts=k.checkouts)
            for k in self._known()
        ]

    def get(self, project: str) -> Project | None:
        """The project with this id."""
        return next((p for p in self.known() if p.id == project), None)

    def _look(self, where: Whereabouts, known: Sequence[Known]) -> View | str:
        return look(where, self._home, self._environ, {path for k in known for path in k.checkouts})

    def _known(self) -> list[Known]:
        """What the projects' pages say; those that changed are read again."""
        pages: dict[str, tuple[PageStat, Known | None]] = {}
        for stat in project_pages(self._vault.root, self._strays):
            before = self._pages.get(stat.path)
            pages[stat.path] = before if before and before[0] == stat else (stat, self._read(stat.path))
        self._pages = pages
        return [known for _, known in pages.values() if known is not None]

    def _read(self, path: str) -> Known | None:
        try:
            page = self._vault.read(path)
        except (OSError, RefusedError):
            return None
        return known_project(path.rpartition("/")[0], page.data, self._host) if page is not None else None

    def _elsewhere(self) -> bool:
        """Look for project pages in unusual depths, where a person may have moved them; whether there are new ones."""
        usual = {path for path in self._pages if path not in self._strays}
        strays = {s.path for s in self._vault.scan() if s.path.endswith("/project.md")} - usual
        strays = {path for path in strays if not path.startswith("_")}
        new, self._strays = strays - self._strays, strays
        return bool(new)

    def _seen(self, view: View, known: Sequence[Known]) -> Seen:
        """The place as the decision wants it; git is asked for the root commit, and for others if that says nothing."""
        if view.git is None:
            recorded = identity(view.remotes, "", view.main)
            return Seen(frozenset(view.paths), recorded, repository=view.repository, intact=view.intact)
        root = self._roots.get(view.git.common) or root_commit(view.git, self._environ)
        if root:
            self._roots[view.git.common] = root
        now = identity(view.remotes, root, view.git.main)
        here = [k for k in known if not set(view.paths).isdisjoint(k.checkouts) and not set(now.repos) & set(k.repos)]
        roots = [entry.removeprefix(ROOT) for k in here for entry in k.repos if entry.startswith(ROOT)]
        held = held_commits(view.git, roots, self._environ)
        return Seen(frozenset(view.paths), now, held, repository=True)

    def _create(self, view: View, seen: Seen, known: Sequence[Known]) -> Known | None:
        """Make the page of a new project; None when somebody else made one meanwhile."""
        marker = view.marker
        workspace = (marker.workspace if marker else "") or WORKSPACE
        name = (marker.project if marker else "") or title_of(view.main)
        wanted = project_id(f"{workspace}/{name}") if marker and marker.project else seen.identity.id
        number = wanted if wanted and all(k.id != wanted for k in known) else self._new_id()
        folder = free_folder(workspace, name, number, names_taken(self._vault.root / workspace))
        title = line(name, _TITLE_LIMIT)
        made = _grown(Known(number, folder, title, (title,)), view, seen)
        values = {"id": made.id, "kind": "project", "title": made.title, "aliases": list(made.aliases)}
        values |= {"repos": list(made.repos), "checkouts": _checkouts(made, self._host)}
        text = frontmatter.dump(values) + _BODY.format(title=made.title)
        if not isinstance(self._vault.create(made.page, redact(text)), Written):
            return None
        self._written.add(made.page)
        return made

    def _learn(self, found: Known, view: View, seen: Seen, known: Sequence[Known]) -> Known:
        """Let the project's page say what was seen, and no other page the same checkout. A page that cannot be changed
        now (a person has it open, it does not parse) is left; the next session tries again.
        """
        taken = {path: k for k in known if k.id != found.id for path in k.checkouts if path in seen.paths}
        if not view.intact:
            seen = replace(seen, paths=seen.paths - set(taken))
        else:
            for other in set(taken.values()):
                left = tuple(path for path in other.checkouts if path not in seen.paths)
                self._write(other, replace(other, checkouts=left))
        grown = _grown(found, view, seen)
        if grown != found:
            self._write(found, grown)
        return grown

    def _write(self, before: Known, after: Known) -> None:
        """Change the lists of a project's page, if it still says what was read."""
        page = self._vault.read(before.page)
        if page is None or known_project(before.folder, page.data, self._host) != before:
            return
        values = {"repos": _clean(after.repos), "checkouts": _clean(_checkouts(after, self._host))}
        if isinstance(self._vault.splice(before.page, values, page.revision), Written):
            self._written.add(before.page)


def _decide(known: Sequence[Known], view: View, seen: Seen) -> Known | None:
    """The project of a place: the one that its marker names, else by what it is."""
    marker = view.marker
    if marker is None or not marker.project:
        return choose(known, seen)
    workspace = marker.workspace or WORKSPACE
    there = [k for k in known if k.workspace == workspace]
    candidates = [
        *(k for k in known if k.id == project_id(f"{workspace}/{marker.project}")),
        *(k for k in there if slug(k.name) == marker.project),
        *(k for k in there if marker.project in map(slug, k.aliases)),
    ]
    return candidates[0] if candidates else None


def _grown(found: Known, view: View, seen: Seen) -> Known:
    """The project with what was seen added to it."""
    repos = tuple(dict.fromkeys((*found.repos, *filter(_storable, seen.identity.repos))))
    paths = [path for path in view.paths if path in seen.paths and _storable(path_text(path))]
    checkouts = list(dict.fromkeys((*found.checkouts, *paths)))
    for path in [p for p in checkouts if p not in paths and not real_folder(p)] + checkouts:
        if len(checkouts) > _CHECKOUTS and path not in paths:
            checkouts.remove(path)
    return replace(found, repos=repos, checkouts=tuple(checkouts))


def _storable(entry: str) -> bool:
    """Whether a page can hold the entry as it is: one line, not too long, nothing in it that is redacted."""
    return line(entry, _ENTRY_LIMIT) == entry


def _checkouts(project: Known, host: str) -> list[str]:
    """The page's list: other machines' entries as they stand, then this one's."""
    return [*project.elsewhere, *(f"{host}:{path_text(path)}" for path in project.checkouts)]


def _clean(entries: Iterable[str]) -> list[Clean]:
    return [line(entry, _ENTRY_LIMIT * 2) for entry in entries]


def _project(found: Known, view: View) -> Project:
    """A known project as it is in a place."""
    return Project(
        id=found.id,
        workspace=found.workspace,
        folder=found.folder,
        title=found.title or found.name,
        main=view.main,
        subdir=view.subdir,
        worktree=view.worktree,
        branch=view.branch,
        checkouts=tuple(dict.fromkeys((*view.paths, *found.checkouts))),
        problem=view.problem,
    )
