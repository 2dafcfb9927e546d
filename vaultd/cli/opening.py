"""Opening the vault for a command: settings, stores, and who runs beside it."""

from __future__ import annotations

import argparse
from pathlib import Path

from vaultd.config import Config, load
from vaultd.core.checkout import marker_flaw
from vaultd.engine.projects import Project, Unsorted
from vaultd.engine.stores import Stores, local_now, open_stores
from vaultd.errors import UsageError
from vaultd.store.places import nearest_marker

__all__ = ["configured", "folder", "here", "kept_out", "opened", "project_here"]


def configured(args: argparse.Namespace, *, forgiving: bool = False) -> Config:
    """Settings for this command line; `forgiving` where a wrong one must not stop a person, and nothing is stored."""
    return load(getattr(args, "vault", None), forgiving=forgiving)


def opened(args: argparse.Namespace, *, forgiving: bool = False) -> Stores:
    """The stores of the configured vault. NoVaultError."""
    return open_stores(configured(args, forgiving=forgiving), local_now)


def here(stores: Stores) -> Project | None:
    """The project of the working directory; None outside every project (nothing is created)."""
    try:
        cwd = str(Path.cwd())
    except FileNotFoundError:
        return None
    found = stores.projects.find(cwd)
    return found if isinstance(found, Project) else None


def kept_out(stores: Stores) -> str:
    """Why nothing is recorded of a session in the working directory, in words; "" when it is."""
    from vaultd.engine import kept

    try:
        return kept.kept_out(stores, str(Path.cwd()))
    except FileNotFoundError:
        return "gone"


def folder(stores: Stores) -> str:
    """What is recorded of a session in the working directory, in words."""
    if reason := kept_out(stores):
        return reason + _flaw()
    found = stores.projects.find(str(Path.cwd()))
    if isinstance(found, Unsorted):
        return f"recorded, in no project: {found.reason}" + _flaw()
    return ("recorded; no session was here yet" if found is None else f"recorded in {found.folder}") + _flaw()


def _flaw() -> str:
    """What is wrong with the marker that counts here, to follow what is said of the folder."""
    marker = nearest_marker(str(Path.cwd())) if Path.cwd().is_dir() else None
    flaw = marker_flaw(marker[1]) if marker is not None else ""
    return f" (but {marker[0]}/.vaultd.toml: {flaw})" if marker is not None and flaw else ""


def project_here(stores: Stores) -> Project:
    """The project of the working directory, made when it is new. UsageError where nothing is recorded."""
    from vaultd.engine.whereabouts import Whereabouts

    if reason := kept_out(stores):
        raise UsageError(f"This folder has no project, since it is {reason}.")
    with stores.write_lock:
        found = stores.projects.resolve(Whereabouts(str(Path.cwd())))
    if isinstance(found, Unsorted):
        raise UsageError(f"This folder is in no project: {found.reason}.")
    return found
