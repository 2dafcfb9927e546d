"""vaultd's entry among an agent's MCP servers: what it is, how it gets in and out. Pure, text to text.

Every byte that is not ours stays (see edits.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vaultd.agents import edits
from vaultd.agents.constants import only_constants, with_constants, without_constants
from vaultd.agents.edits import EditError
from vaultd.agents.model import Agent, McpFile

__all__ = ["SERVER", "McpEntry", "server_in", "server_snippet", "with_server", "without_server"]

SERVER = "vaultd"
"""The name of our entry."""


@dataclass(frozen=True, slots=True)
class McpEntry:
    """What an entry starts. `ours`: it is `vaultd mcp`, wherever the program lies."""

    command: str
    args: tuple[str, ...]

    @property
    def ours(self) -> bool:
        """Whether it starts our program."""
        name = self.command.replace("\\", "/").rpartition("/")[2]
        return name in ("vaultd", "vaultd.exe") and self.args[-1:] == ("mcp",)


def server_in(agent: Agent, text: str) -> McpEntry | None:
    """The entry with our name; None when there is none. One that starts nothing has the command ""."""
    mcp = _mcp(agent)
    value = edits.at(edits.read(mcp.format, text), (*mcp.path, SERVER))
    if not isinstance(value, Mapping):
        return None
    words: list[str] = []
    keys = {form: key for key, form in mcp.entry.items() if isinstance(form, str)}
    for form in ("{argv}", "{command}", "{args}"):
        told = value.get(keys[form]) if form in keys else None
        if form == "{command}" and form in keys and not isinstance(told, str):
            told = ""  # what follows is no command
        words += [told] if isinstance(told, str) else [str(word) for word in told] if isinstance(told, list) else []
    return McpEntry(words[0] if words else "", tuple(words[1:]))


def with_server(agent: Agent, text: str, command: str, args: Sequence[str]) -> str:
    """The text with our entry; as it was when it has it. What a person added to the entry stays.

    EditError, also when our name is taken by something else.
    """
    mcp, there = _mcp(agent), server_in(agent, text)
    if there is not None and not there.ours:
        raise EditError(f"it has an entry {SERVER!r} that is not ours")
    if there == McpEntry(command, tuple(args)):
        return text
    values = _values(mcp, command, args)
    if there is not None:  # what else it holds is as the person wants it
        values = {key: value for key, value in values.items() if mcp.entry[key] in ("{command}", "{args}", "{argv}")}
    result = edits.put(mcp.format, text, (*mcp.path, SERVER), values)
    return with_constants(mcp.format, result, mcp.constants)


def without_server(agent: Agent, text: str, before: str = "") -> str | None:
    """The text without our entry, nor maps that are empty then; None when nothing is left in it.

    What was in the text `before` there was anything of ours stays, empty or not.
    """
    mcp, there = _mcp(agent), server_in(agent, text)
    if there is None or not there.ours:
        return text
    result = edits.drop(mcp.format, text, (*mcp.path, SERVER), edits.read_or_none(mcp.format, before))
    result = without_constants(mcp.format, result, mcp.constants, before)
    if edits.read_or_none(mcp.format, before) is not None:
        return result
    return None if only_constants(mcp.format, result, mcp.constants) else result


def server_snippet(agent: Agent, command: str, args: Sequence[str]) -> str:
    """The entry, to be pasted by hand."""
    mcp = _mcp(agent)
    return edits.dump(mcp.format, (*mcp.path, SERVER), _values(mcp, command, args))


def _mcp(agent: Agent) -> McpFile:
    """The agent's file of servers, which it has."""
    if agent.mcp is None:
        raise EditError(f"{agent.title} has no file for MCP servers")
    return agent.mcp


def _values(mcp: McpFile, command: str, args: Sequence[str]) -> dict[str, Any]:
    """The keys of our entry, in their order."""
    forms: dict[str, Any] = {"{command}": command, "{args}": list(args), "{argv}": [command, *args]}
    return {key: forms[form] if isinstance(form, str) and form in forms else form for key, form in mcp.entry.items()}
