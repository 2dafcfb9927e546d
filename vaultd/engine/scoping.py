"""Which project a client means: the one it names, else the one of its folder. Never the one that was used last."""

from __future__ import annotations

from vaultd.core.ids import slug
from vaultd.engine.kept import kept_out
from vaultd.engine.projects import Project, Unsorted
from vaultd.engine.service import Scope
from vaultd.engine.stores import Stores
from vaultd.engine.whereabouts import Whereabouts
from vaultd.errors import NotFoundError, UsageError

__all__ = ["any_project", "needed", "readable"]

_SHOWN = 20


def readable(stores: Stores, scope: Scope) -> Project | None:
    """The project to read from; None for a folder that is in none. UsageError when nothing says where the client is."""
    if scope.project:
        return any_project(stores, scope.project)
    if not scope.cwd:
        raise UsageError(f"Say which project is meant (`project`). {_projects(stores)}")
    found = stores.projects.find(_absolute(scope.cwd))
    return found if isinstance(found, Project) else None


def needed(stores: Stores, scope: Scope) -> Project:
    """The project to write to, made when its folder is new. UsageError for a folder that has none."""
    if scope.project:
        return any_project(stores, scope.project)
    if not scope.cwd:
        raise UsageError(f"Say which project is meant (`project`). {_projects(stores)}")
    if reason := kept_out(stores, _absolute(scope.cwd)):
        raise UsageError(f"{scope.cwd} has no project, since it is {reason}. Name a project to write to another one.")
    with stores.write_lock:
        found = stores.projects.resolve(Whereabouts(_absolute(scope.cwd)))
    if isinstance(found, Unsorted):
        raise UsageError(f"{scope.cwd} is in no project: {found.reason}. Name a project. {_projects(stores)}")
    return found


def any_project(stores: Stores, name: str) -> Project:
    """The project of this name: id, folder, slug, title or alias. NotFoundError; UsageError when several have it."""
    known = stores.projects.known()
    wanted = slug(name.rpartition("/")[2])
    fits = [p for p in known if name in (p.id, p.folder)]
    fits = fits or [p for p in known if "/" not in name and p.slug == name]
    fits = fits or [p for p in known if "/" not in name and wanted in (p.slug, slug(p.title))]
    if not fits:
        raise NotFoundError(f"There is no project {name!r}. {_projects(stores)}")
    if len(fits) > 1:
        raise UsageError(f"Several projects are called {name!r}: name one of {', '.join(p.folder for p in fits)}.")
    return fits[0]


def _absolute(cwd: str) -> str:
    """The folder that a client names; UsageError when it is no absolute path."""
    if not cwd.startswith("/") or "\0" in cwd:
        raise UsageError(f"{cwd!r} is not an absolute path. Give the whole path of the folder you work in.")
    return cwd


def _projects(stores: Stores) -> str:
    """A sentence that lists the projects."""
    known = [p.slug if p.workspace == "projects" else p.folder for p in stores.projects.known()]
    if not known:
        return "There are no projects yet."
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"Projects: {', '.join(known[:_SHOWN])}{more}."
