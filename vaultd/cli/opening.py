"""Opening the vault for a command: settings, stores, and who runs beside it."""

from __future__ import annotations

import argparse
from pathlib import Path

from vaultd.config import Config, load
from vaultd.engine.projects import Project
from vaultd.engine.stores import Stores, local_now, open_stores

__all__ = ["configured", "here", "opened"]


def configured(args: argparse.Namespace) -> Config:
    """Settings for this command line."""
    return load(getattr(args, "vault", None))


def opened(args: argparse.Namespace) -> Stores:
    """The stores of the configured vault. NoVaultError."""
    return open_stores(configured(args), local_now)


def here(stores: Stores) -> Project | None:
    """The project of the working directory; None outside every project (nothing is created)."""
    try:
        cwd = str(Path.cwd())
    except FileNotFoundError:
        return None
    found = stores.projects.find(cwd)
    return found if isinstance(found, Project) else None
