"""Whether sessions in a folder are recorded: what keeps a folder out, in words."""

from __future__ import annotations

import os

from vaultd.engine.stores import Stores
from vaultd.store.surroundings import checkout_of, switched_off

__all__ = ["kept_out"]


def kept_out(stores: Stores, cwd: str) -> str:
    """Why nothing is recorded of a session in this folder, in words that can follow "it is"; "" when it is."""
    if (stores.vault.room / "paused").exists():
        return "not recorded: `vaultd pause` holds"
    if stores.config.problems:
        return "held back until the settings are mended"
    _, _, marker = checkout_of(os.fsencode(cwd), os.fsencode(stores.config.places.home))
    if switched_off(marker):
        return f"kept out by {os.fsdecode(marker)}"
    if stores.config.allow_list and not marker:
        return "kept out: `allow_list` is set, and there is no `.vaultd.toml` here or above"
    return ""
