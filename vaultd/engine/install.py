"""The hook program where agents' configuration expects it, and which agents start it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from vaultd.agents import Agent
from vaultd.agents.edits import EditError
from vaultd.config import Places
from vaultd.engine.foreign import read_foreign
from vaultd.engine.installed import Installed
from vaultd.engine.parts import hook_parts
from vaultd.errors import RefusedError
from vaultd.store import fs

__all__ = ["hook_is_current", "is_wired", "refresh_hook", "wired_agents"]


def is_wired(agent: Agent, places: Places, environ: Mapping[str, str]) -> bool:
    """Whether an agent's configuration holds entries of ours, or should by our record."""
    if Installed.of(places).since(agent.id) is not None:
        return True
    for part in hook_parts(agent, places, environ):
        try:
            if part.holds((read_foreign(part.path) or b"").decode("utf-8")):
                return True
        except (RefusedError, UnicodeDecodeError, EditError):
            continue
    return False


def wired_agents(agents: Iterable[Agent], places: Places, environ: Mapping[str, str]) -> list[str]:
    """The ids of those agents that are wired."""
    return [agent.id for agent in agents if is_wired(agent, places, environ)]


def hook_is_current(source: bytes, places: Places) -> bool:
    """Whether the installed hook is this program and can be run."""
    try:
        return places.hook.read_bytes() == source and os.access(places.hook, os.X_OK)
    except OSError:
        return False


def refresh_hook(source: bytes, places: Places) -> bool:
    """Install the hook program; whether it was not current. One rename: a hook that is just started is whole."""
    if hook_is_current(source, places):
        return False
    fs.write_private(places.hook, source, sync=True, mode=0o755)
    places.hook.chmod(0o755)  # the umask may have cut it
    return True
