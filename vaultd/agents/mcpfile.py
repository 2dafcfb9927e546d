"""vaultd's entry among an agent's MCP servers: what it is, how it gets in and out. Pure, text to text.

Every byte that is not ours stays. Each result is read back and compared with what it should mean; McpFileError where
that cannot be had.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vaultd.agents.jsontext import JsonError, Node, Text
from vaultd.agents.model import Agent
from vaultd.agents.tomltext import TomlError, with_table, without_table

__all__ = ["SERVER", "McpEntry", "McpFileError", "server_in", "server_snippet", "with_server", "without_server"]

SERVER = "vaultd"
"""The name of our entry."""


class McpFileError(ValueError):
    """The text cannot be read, or not be edited safely."""


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
    value = _read(agent, text)
    for key in (*agent.mcp.path, SERVER):
        value = value.get(key) if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping):
        return None
    command, args = value.get("command"), value.get("args")
    told = tuple(str(arg) for arg in args) if isinstance(args, list) else ()
    return McpEntry(command if isinstance(command, str) else "", told)


def with_server(agent: Agent, text: str, command: str, args: Sequence[str]) -> str:
    """The text with our entry; as it was when it has it. What a person added to the entry stays.

    McpFileError too when our name is taken by something else.
    """
    there = server_in(agent, text)
    if there is not None and not there.ours:
        raise McpFileError(f"it has an entry {SERVER!r} that is not ours")
    if there == McpEntry(command, tuple(args)):
        return text
    values = _values(agent, command, args)
    if agent.mcp.format == "toml":
        try:
            return with_table(text, (*agent.mcp.path, SERVER), values)
        except TomlError as error:
            raise McpFileError(str(error)) from error
    try:
        result = _put(agent, text if text.strip(" \t\r\n\ufeff") else "{}\n", values, new=there is None)
    except JsonError as error:
        raise McpFileError(str(error)) from error
    if server_in(agent, result) != McpEntry(command, tuple(args)) or _rest(agent, result) != _rest(agent, text):
        raise McpFileError("the result would change what others wrote")
    return result


def without_server(agent: Agent, text: str) -> str | None:
    """The text without our entry, nor maps that are empty then; None when nothing is left in it."""
    there = server_in(agent, text)
    if there is None or not there.ours:
        return text
    if agent.mcp.format == "toml":
        try:
            return without_table(text, (*agent.mcp.path, SERVER)) or None
        except TomlError as error:
            raise McpFileError(str(error)) from error
    try:
        document = Text(text, lenient=agent.mcp.format == "jsonc")
        chain = [document.root]
        for key in (*agent.mcp.path, SERVER):
            chain.append(_member(chain[-1], key))
        while len(chain) > 2 and len(chain[-2].children) == 1:
            chain.pop()
        result = document.drop(chain[-2], chain[-1])
    except JsonError as error:
        raise McpFileError(str(error)) from error
    if server_in(agent, result) is not None or _rest(agent, result) != _rest(agent, text):
        raise McpFileError("the result would change what others wrote")
    return result if result.strip("{} \t\r\n\ufeff") else None


def server_snippet(agent: Agent, command: str, args: Sequence[str]) -> str:
    """The entry, to be pasted by hand."""
    values = _values(agent, command, args)
    if agent.mcp.format == "toml":
        return with_table("", (*agent.mcp.path, SERVER), values).rstrip("\n")
    value: Any = {SERVER: values}
    for key in reversed(agent.mcp.path):
        value = {key: value}
    return json.dumps(value, indent=2, ensure_ascii=False)


def _values(agent: Agent, command: str, args: Sequence[str]) -> dict[str, Any]:
    """The keys of our entry, in their order."""
    first = {"type": agent.mcp.entry["type"]} if "type" in agent.mcp.entry else {}
    return {**first, "command": command, "args": list(args), **agent.mcp.entry}


def _put(agent: Agent, text: str, values: Mapping[str, Any], *, new: bool) -> str:
    """The JSON text with our entry made, or its command and arguments changed."""
    document = Text(text, lenient=agent.mcp.format == "jsonc")
    if not new:
        for key in ("command", "args"):
            node = document.root
            for name in (*agent.mcp.path, SERVER):
                node = _member(node, name)
            member = node.member(key)
            changed = (
                document.append(node, key, values[key]) if member is None else document.replace(member, values[key])
            )
            document = Text(changed, lenient=document.lenient)
        return document.text
    keys = [*agent.mcp.path, SERVER]
    node = document.root
    for depth, key in enumerate(keys):
        if not isinstance(node.value, dict):
            raise JsonError(f"{'.'.join(keys[:depth]) or 'the top level'} is not an object")
        child = node.member(key)
        if child is None:
            value: Any = values
            for inner in reversed(keys[depth + 1 :]):
                value = {inner: value}
            return document.append(node, key, value)
        node = child
    raise JsonError(f"{'.'.join(keys)} is not an object")


def _member(node: Node, key: str) -> Node:
    found = node.member(key)
    if found is None:
        raise JsonError(f"{key} is missing")
    return found


def _read(agent: Agent, text: str) -> Any:
    """What a configuration text says; {} for an empty one."""
    if not text.strip(" \t\r\n\ufeff"):
        return {}
    if agent.mcp.format == "toml":
        import tomllib

        try:
            return tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise McpFileError(str(error)) from error
    try:
        return Text(text, lenient=agent.mcp.format == "jsonc").root.value
    except JsonError as error:
        raise McpFileError(str(error)) from error


def _rest(agent: Agent, text: str) -> Any:
    """What a configuration says without our entry and the maps that are empty then."""
    return _without(_read(agent, text), [*agent.mcp.path, SERVER])


def _without(value: Any, path: Sequence[str]) -> Any:
    if not isinstance(value, dict) or path[0] not in value:
        return value
    copy = {key: inner for key, inner in value.items() if key != path[0]}
    if len(path) > 1:
        left = _without(value[path[0]], path[1:])
        if left != {}:
            copy[path[0]] = left
    return copy
