"""vaultd among an agent's MCP servers: putting it in, taking it out, and whether what stands there can be started."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from vaultd.agents import Agent
from vaultd.agents.mcpfile import McpFileError, server_in, server_snippet, with_server, without_server
from vaultd.config import Config, Places, vault_path
from vaultd.engine.foreign import FileChange, Plan, mcp_path, permissions, read_foreign, why_managed
from vaultd.engine.installed import Installed
from vaultd.errors import RefusedError
from vaultd.store import fs

__all__ = ["mcp_plan", "mcp_problem", "mcp_removal", "record_name", "started_with"]


def record_name(agent: Agent) -> str:
    """Under which name our changes for an agent's MCP servers are recorded: they do not count as its hooks."""
    return f"{agent.id} mcp"


def started_with(config: Config) -> tuple[str, tuple[str, ...]]:
    """The command and arguments of an entry.

    Clients start servers in an environment of few variables: a vault that only this environment leads to is named.
    """
    bare = {name: value for name, value in config.environ.items() if name in ("HOME", "USERPROFILE")}
    found = vault_path(None, bare, replace(config.places, config=config.places.home / ".config/vaultd"))
    named = () if found == config.vault else ("--vault", str(config.vault))
    return config.command, (*named, "mcp")


def mcp_plan(agent: Agent, config: Config) -> Plan:
    """What it takes to make vaultd one of an agent's MCP servers; no changes when it is. RefusedError."""
    Installed.of(config.places).refuse_newer()
    path = mcp_path(agent, config.places, config.environ)
    command, args = started_with(config)
    by_hand = f"Add this entry to it yourself:\n{server_snippet(agent, command, args)}"
    before = read_foreign(path)
    try:
        after = with_server(agent, (before or b"").decode("utf-8"), command, args).encode("utf-8")
    except (UnicodeError, McpFileError) as error:
        raise RefusedError(f"{path} cannot be edited safely ({error}).\n{by_hand}") from error
    if before == after:
        return Plan(notes=(f"vaultd is one of {agent.title}'s MCP servers already ({path}).",))
    target = Path(os.path.realpath(path))
    if reason := why_managed(target):
        raise RefusedError(f"{path} is looked after by something else: {reason}.\n{by_hand}")
    change = FileChange(record_name(agent), path, target, before, after, permissions(target), entering=True)
    notes = [f"It takes effect when you {agent.config.restart}."] if agent.config.restart else []
    return Plan(changes=(change,), notes=tuple(notes))


def mcp_removal(agent: Agent, path: Path, record: Installed) -> FileChange | None:
    """The change that takes our entry out of a file; None when it holds none. RefusedError."""
    before = read_foreign(path)
    by_hand = "Take the MCP server `vaultd` out of it yourself and try again."
    if before is None:
        return None
    try:
        text = before.decode("utf-8")
        there = server_in(agent, text)
        if there is None or not there.ours:
            return None
        after = _without(agent, path, before, record)
    except (UnicodeError, McpFileError) as error:
        if b"vaultd" not in before:
            return None
        raise RefusedError(f"{path} cannot be edited safely ({error}). {by_hand}") from error
    target = Path(os.path.realpath(path))
    if reason := why_managed(target):
        raise RefusedError(f"{path} is looked after by something else: {reason}. {by_hand}")
    return FileChange(record_name(agent), path, target, before, after, permissions(target), entering=False)


def _without(agent: Agent, path: Path, before: bytes, record: Installed) -> bytes | None:
    """What a file holds once our entry is out; None when it goes because it was ours alone."""
    known, original = record.original(path, before)
    if known and (original is None or server_in(agent, original.decode("utf-8")) is None):
        return original
    text = without_server(agent, before.decode("utf-8"))
    revisions = {row.before for row in record.rows if row.file == str(path)}
    if text is None:
        return None if None in revisions else b"{}\n" if agent.mcp.format != "toml" else b""
    left = text.encode("utf-8")
    # We ended a last line that nothing ended: that goes too.
    return left[:-1] if fs.revision(left[:-1]) in revisions else left


def mcp_problem(agent: Agent, places: Places, environ: Mapping[str, str]) -> str:
    """What is wrong with our entry among an agent's MCP servers, a sentence or two; "" for nothing, or no entry."""
    path = mcp_path(agent, places, environ)
    try:
        there = server_in(agent, (read_foreign(path) or b"").decode("utf-8"))
    except (RefusedError, UnicodeDecodeError, McpFileError):
        return ""  # it is not ours to judge, and the agent says so itself
    if there is None or not there.ours or _can_start(there.command, environ):
        return ""
    mend = f"Run `vaultd install-mcp --client {agent.id} --apply`."
    return f"{agent.title}: its MCP server vaultd starts {there.command}, which is not there. {mend}"


def _can_start(command: str, environ: Mapping[str, str]) -> bool:
    """Whether a program is there and may be run."""
    return shutil.which(command, path=environ.get("PATH")) is not None
