"""vaultd's entries in an agent's configuration file: what they are, how they get in and out. Pure, text to text.

Style `matcher-groups`: the map of events leads from an event's name to a list of groups, each with a list `hooks` of
handlers `{type, command, timeout}`. Every byte that is not ours stays; each result is read back and compared with what
it should mean, and refused (JsonError) when it differs.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vaultd.agents.jsontext import JsonError, Node, Text
from vaultd.agents.model import UNITS, Agent, EventSpec

__all__ = ["HOOK_NAME", "Entry", "added", "command_line", "entries", "later_groups", "removed", "snippet"]

HOOK_NAME = "vaultd-hook"
"""Name of the hook program: a command that starts it, for a known agent, is ours."""

_GROUP_KEYS = frozenset({"hooks", "matcher"})


@dataclass(frozen=True, slots=True)
class Entry:
    """One of our handlers: for which event, what it starts, and its place among the event's groups and handlers.

    `timeout` is in seconds. `plain` means that nothing was added to it since it was written.
    """

    event: str
    command: str
    program: str
    timeout: float | None
    group: int
    handler: int
    plain: bool


def command_line(agent: Agent, hook: Path, event: str) -> str:
    """What an agent's configuration says to run; the same in every release, for agents tie a person's trust to it."""
    return f"{shlex.quote(str(hook))} {agent.id} {event}"


def entries(agent: Agent, text: str) -> tuple[Entry, ...]:
    """Our handlers in a configuration text, in its order. JsonError when it cannot be read."""
    found: list[Entry] = []
    for event, groups in _events(agent, _read(agent, text)).items():
        for g, group in enumerate(groups if isinstance(groups, list) else ()):
            for h, handler in enumerate(_handlers(group)):
                program = _program(agent, handler)
                if program:
                    timeout = handler.get("timeout")
                    seconds = timeout / UNITS[agent.config.timeout_unit] if isinstance(timeout, int | float) else None
                    plain = set(group) == {"hooks"} and set(handler) == {"type", "command", "timeout"}
                    found.append(Entry(event, handler["command"], program, seconds, g, h, plain))
    return tuple(found)


def added(agent: Agent, text: str, hook: Path) -> str:
    """The text with an entry for every wired event; as it was when it has them all. "" stands for no file.

    An entry of ours that starts another path is mended in place; one for an event that is no longer wired goes, as does
    a second one for the same event. JsonError when the text cannot be edited safely.
    """
    text = text if text.strip(" \t\r\n\ufeff") else "{}\n"
    wanted = {spec.name: command_line(agent, hook, spec.name) for spec in agent.wired}
    result = _without(agent, text, lambda entry, seen: entry.event not in wanted or entry.event in seen)
    for spec in agent.wired:
        found = [entry for entry in entries(agent, result) if entry.event == spec.name]
        if not found:
            result = _appended(agent, result, spec, wanted[spec.name])
        elif found[0].command != wanted[spec.name]:
            document = _document(agent, result)
            result = document.replace(_handler_node(agent, document, found[0], "command"), wanted[spec.name])
    _compare(agent, text, result)
    if {e.event: e.command for e in entries(agent, result)} != wanted:
        raise JsonError("the result would not hold the right entries")
    return result


def removed(agent: Agent, text: str) -> str | None:
    """The text without our entries and without containers that are empty then; None when nothing is left in it."""
    if not entries(agent, text):
        return text
    result = _without(agent, text, lambda entry, seen: True)
    _compare(agent, text, result)
    document = _document(agent, result)
    return None if document.root.value == {} and not result.strip("{} \t\r\n\ufeff") else result


def later_groups(agent: Agent, text: str) -> tuple[str, ...]:
    """Events in which groups of others stand after ours: their numbers change when ours go."""
    ours: dict[str, int] = {}
    for entry in entries(agent, text):
        ours.setdefault(entry.event, entry.group)
    events = _events(agent, _read(agent, text))
    return tuple(event for event, group in ours.items() if len(events[event]) > group + 1)


def snippet(agent: Agent, hook: Path) -> str:
    """The entries as JSON, to be pasted by hand."""
    events = {spec.name: [_group(agent, spec, command_line(agent, hook, spec.name))] for spec in agent.wired}
    value: Any = events
    for key in reversed(agent.config.path):
        value = {key: value}
    return json.dumps(value, indent=2, ensure_ascii=False)


def _appended(agent: Agent, text: str, spec: EventSpec, command: str) -> str:
    """The text with a new group at the end of an event's list; containers that are missing are made."""
    document = _document(agent, text)
    group = _group(agent, spec, command)
    node, keys = document.root, [*agent.config.path, spec.name]
    for depth, key in enumerate(keys):
        if not isinstance(node.value, dict):
            raise JsonError(f"{'.'.join(keys[:depth]) or 'the top level'} is not an object")
        child = node.member(key)
        if child is None:
            value: Any = [group]
            for inner in reversed(keys[depth + 1 :]):
                value = {inner: value}
            return document.append(node, key, value)
        node = child
    if not isinstance(node.value, list):
        raise JsonError(f"{'.'.join(keys)} is not a list")
    return document.append(node, "", group)


def _group(agent: Agent, spec: EventSpec, command: str) -> dict[str, Any]:
    """One group with our one handler."""
    timeout = spec.timeout * UNITS[agent.config.timeout_unit]
    return {"hooks": [{"type": "command", "command": command, "timeout": timeout}]}


def _without(agent: Agent, text: str, goes: Any) -> str:
    """The text without the entries for which `goes(entry, events already kept)` holds."""
    kept: set[str] = set()
    skip = 0
    while True:
        found = entries(agent, text)[skip:]
        if not found:
            return text
        if goes(found[0], kept):
            text = _dropped(agent, text, found[0])
        else:
            kept.add(found[0].event)
            skip += 1


def _dropped(agent: Agent, text: str, entry: Entry) -> str:
    """The text without one entry, nor the group, list and maps that held nothing else."""
    document = _document(agent, text)
    chain = [document.root]
    for key in (*agent.config.path, entry.event):
        chain.append(_member(chain[-1], key))
    group = chain[-1].children[entry.group]
    handlers = _member(group, "hooks")
    if len(handlers.children) > 1 or set(group.value) - _GROUP_KEYS:
        return document.drop(handlers, handlers.children[entry.handler])
    chain.append(group)
    while len(chain) > 2 and len(chain[-2].children) == 1:
        chain.pop()
    return document.drop(chain[-2], chain[-1])


def _compare(agent: Agent, before: str, after: str) -> None:
    """JsonError unless two texts mean the same apart from our entries and containers that are empty without them."""
    if _pruned(agent, _read(agent, before)) != _pruned(agent, _read(agent, after)):
        raise JsonError("the result would change what others wrote")


def _pruned(agent: Agent, value: Any) -> Any:
    """A configuration without our handlers and without what is empty then."""
    path = list(agent.config.path)
    if not isinstance(value, dict) or not path or path[0] not in value:
        return value
    events = _events(agent, value)
    left: dict[str, Any] = {}
    for event, groups in events.items():
        if not isinstance(groups, list):
            left[event] = groups
            continue
        rest = []
        for group in groups:
            handlers = _handlers(group)
            others = [handler for handler in handlers if not _program(agent, handler)]
            if len(others) == len(handlers):
                rest.append(group)
            elif others or set(group) - _GROUP_KEYS:
                rest.append({**group, "hooks": others})
        if rest:
            left[event] = rest
    return _put(value, path, left)


def _put(value: dict[str, Any], path: list[str], new: dict[str, Any]) -> dict[str, Any]:
    """A copy of a value with another map at a path; an empty map goes, and so do the parents that it leaves empty."""
    inner = value.get(path[0])
    replaced = new if len(path) == 1 else _put(inner if isinstance(inner, dict) else {}, path[1:], new)
    copy = {key: old for key, old in value.items() if key != path[0]}
    if replaced or not isinstance(inner, dict):
        copy[path[0]] = replaced if isinstance(inner, dict) else inner
    return copy


def _events(agent: Agent, value: Any) -> Mapping[str, Any]:
    """The map of events in a configuration; empty when there is none."""
    for key in agent.config.path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _handlers(group: Any) -> list[Any]:
    """The handlers of a group."""
    handlers = group.get("hooks") if isinstance(group, dict) else None
    return handlers if isinstance(handlers, list) else []


def _program(agent: Agent, handler: Any) -> str:
    """The program that a handler of ours starts; "" for a handler of somebody else."""
    command = handler.get("command") if isinstance(handler, dict) else None
    if not isinstance(command, str) or HOOK_NAME not in command or len(command) > 4096:
        return ""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    ours = len(words) == 3 and words[0].rpartition("/")[2] == HOOK_NAME and words[1] == agent.id
    return words[0] if ours else ""


def _document(agent: Agent, text: str) -> Text:
    """A configuration text with its tree."""
    return Text(text, lenient=agent.config.format == "jsonc")


def _read(agent: Agent, text: str) -> Any:
    """What a configuration text says; {} for an empty one."""
    return _document(agent, text).root.value if text.strip(" \t\r\n\ufeff") else {}


def _member(node: Node, key: str) -> Node:
    """A member that must be there."""
    found = node.member(key)
    if found is None:
        raise JsonError(f"{key} is missing")
    return found


def _handler_node(agent: Agent, document: Text, entry: Entry, key: str) -> Node:
    """A member of one of our handlers."""
    node = document.root
    for name in (*agent.config.path, entry.event):
        node = _member(node, name)
    handlers = _member(node.children[entry.group], "hooks")
    return _member(handlers.children[entry.handler], key)
