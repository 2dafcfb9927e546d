"""Putting vaultd's hooks into agents' configuration, and the hook program where they expect it.

The plan is printed by default and carried out by `foreign.apply`. A file that cannot be edited safely, or is read-only,
is refused, with the lines to paste by hand. Taking everything out again is `uninstall.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from vaultd.agents import Agent
from vaultd.agents.hookfile import added, entries, snippet
from vaultd.agents.jsontext import JsonError
from vaultd.config import Places
from vaultd.engine.foreign import FileChange, Plan, apply, config_path, permissions, read_foreign, why_managed
from vaultd.engine.installed import Installed
from vaultd.errors import RefusedError
from vaultd.store import fs

__all__ = [
    "FileChange",
    "Plan",
    "apply",
    "hook_is_current",
    "install_plan",
    "is_wired",
    "refresh_hook",
    "wired_agents",
]


def install_plan(agent: Agent, places: Places, environ: Mapping[str, str]) -> Plan:
    """What wiring an agent takes; no changes when it is wired. RefusedError when it cannot be done safely."""
    Installed.of(places).refuse_newer()
    path = config_path(agent, places, environ)
    by_hand = f"Add these entries to it yourself:\n{snippet(agent, places.hook)}"
    before = read_foreign(path)
    try:
        after = added(agent, (before or b"").decode("utf-8"), places.hook).encode("utf-8")
    except (UnicodeError, JsonError) as error:
        raise RefusedError(f"{path} cannot be edited safely ({error}).\n{by_hand}") from error
    if before == after:
        return Plan(notes=(f"{agent.title} is wired already ({path}).",))
    target = Path(os.path.realpath(path))
    reason = why_managed(target)
    if reason:
        raise RefusedError(f"{path} is looked after by something else: {reason}.\n{by_hand}")
    change = FileChange(agent.id, path, target, before, after, permissions(target), entering=True)
    return Plan(changes=(change,), notes=tuple(_notes(agent, change)))


def is_wired(agent: Agent, places: Places, environ: Mapping[str, str]) -> bool:
    """Whether an agent's configuration holds entries of ours, or should by our record."""
    if Installed.of(places).since(agent.id) is not None:
        return True
    try:
        text = (read_foreign(config_path(agent, places, environ)) or b"").decode("utf-8")
        return bool(entries(agent, text))
    except (RefusedError, UnicodeDecodeError, JsonError):
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


def _notes(agent: Agent, change: FileChange) -> Iterable[str]:
    """What a person should know about a change before it is made."""
    if change.before is None and not change.path.parent.is_dir():
        yield f"{agent.title} has not been used here yet: {change.path.parent} is made."
    if str(change.target) != os.path.abspath(change.path):  # noqa: PTH100  # to compare without following links
        yield f"{change.path} leads to {change.target}: the change is made there (commit it if you keep it in git)."
    if agent.trust.style:
        yield f"{agent.title} runs a new hook only once you trust it: {agent.trust.mend}."
    if agent.config.restart:
        yield f"It takes effect when you {agent.config.restart}."
