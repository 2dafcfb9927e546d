"""vaultd's entries in an agent's configuration file: what they are, how they get in and out. Pure, text to text.

An agent's file says how an entry looks and into which list it goes. An entry of the list is a *group*: it is the
handler itself, or holds a list of handlers, of which ours is one. A handler that starts our hook program for this agent
is ours.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vaultd.agents import edits
from vaultd.agents.constants import only_constants, with_constants, without_constants
from vaultd.agents.edits import EditError
from vaultd.agents.model import UNITS, Agent, EventSpec, HookFile

__all__ = ["HOOK_NAME", "Entry", "added", "command_line", "entries", "later_groups", "removed", "snippet"]

HOOK_NAME = "vaultd-hook"
"""Name of the hook program: a command that starts it, for a known agent, is ours."""

_GROUP_KEYS = frozenset({"matcher"})  # what a person may have set on a group of ours


@dataclass(frozen=True, slots=True)
class Entry:
    """One of our handlers: for which event, what it starts, and its place among the event's groups and handlers.

    `timeout` is in seconds. `plain` means that nothing was added to it since it was written. `list` is the path of the
    list that its group is in, `text` the path of the command in the handler. `off`: somebody switched it off.
    """

    event: str
    command: str
    program: str
    timeout: float | None
    group: int
    handler: int
    plain: bool
    list: tuple[str, ...]
    text: tuple[str, ...]
    off: bool = False


def command_line(agent: Agent, hook: Path, event: str) -> str:
    """What an agent's configuration says to run; the same in every release, for agents tie a person's trust to it."""
    return f"{shlex.quote(str(hook))} {agent.id} {event}"


def entries(agent: Agent, text: str) -> tuple[Entry, ...]:
    """Our handlers in a configuration text, in its order. EditError when it cannot be read."""
    hooks = _hooks(agent)
    value = edits.read(hooks.format, text)
    found: list[Entry] = []
    for path, event in _lists(hooks, value):
        groups = edits.at(value, path)
        for g, group in enumerate(groups if isinstance(groups, list) else ()):
            inner = _inner(hooks.entry, group)
            for h, handler in enumerate(group[inner] if inner else [group]):
                found += _ours(agent, handler, path, event, group=g, at=h, inner=inner, whole=group)
    return tuple(found)


def added(agent: Agent, text: str, hook: Path) -> str:
    """The text with an entry for every wired event; as it was when it has them all. "" stands for no file.

    An entry of ours that starts another path is mended in place; one for an event that is no longer wired goes, as does
    a second one for the same event. EditError when the text cannot be edited safely.
    """
    hooks = _hooks(agent)
    wanted = {spec.name: _command(agent, spec, hook) for spec in agent.wired}
    result = _without(agent, text, lambda entry, seen: entry.event not in wanted or entry.event in seen)
    result = with_constants(hooks.format, result, hooks.constants)
    for spec in agent.wired:
        found = [entry for entry in entries(agent, result) if entry.event == spec.name]
        if found and found[0].command != wanted[spec.name]:
            result = _mended(agent, result, found[0], spec, hook)
        elif not found:
            result = edits.append(hooks.format, result, _list_of(hooks, spec.name), _group(agent, spec, hook))
    if {e.event: e.command for e in entries(agent, result)} != wanted:
        raise EditError("the result would not hold the right entries")
    return result


def removed(agent: Agent, text: str, before: str = "") -> str | None:
    """The text without our entries and without containers that are empty then; None when nothing is left in it.

    What was in the text `before` there was anything of ours stays, empty or not.
    """
    hooks = _hooks(agent)
    if not entries(agent, text):
        return text
    result = _without(agent, text, lambda entry, seen: True, before)
    result = without_constants(hooks.format, result, hooks.constants, before)
    if edits.read_or_none(hooks.format, before) is not None:
        return result
    return None if only_constants(hooks.format, result, hooks.constants) else result


def later_groups(agent: Agent, text: str) -> tuple[str, ...]:
    """Events in which groups of others stand after ours: their numbers change when ours go."""
    value = edits.read(_hooks(agent).format, text)
    ours: dict[str, Entry] = {}
    for entry in entries(agent, text):
        ours.setdefault(entry.event, entry)
    return tuple(e.event for e in ours.values() if len(edits.at(value, e.list)) > e.group + 1)


def snippet(agent: Agent, hook: Path) -> str:
    """The entries as text, to be pasted by hand."""
    return added(agent, "", hook).rstrip("\n")


def _hooks(agent: Agent) -> HookFile:
    """The agent's hook file, which it has."""
    if agent.hooks is None or agent.hooks.template:
        raise EditError(f"{agent.title} has no file for entries")
    return agent.hooks


def _lists(hooks: HookFile, value: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """Path and event of each list that may hold entries of ours; the event is "" where the list is for all."""
    if hooks.path[-1] != "{event}":
        yield hooks.path, ""
        return
    events = edits.at(value, hooks.path[:-1])
    for event in events if isinstance(events, Mapping) else ():
        yield (*hooks.path[:-1], str(event)), str(event)


def _list_of(hooks: HookFile, event: str) -> tuple[str, ...]:
    return tuple(event if part == "{event}" else part for part in hooks.path)


def _inner(form: Mapping[str, Any], group: Any) -> str:
    """The key under which a group holds its handlers; "" when it is one itself."""
    for key, value in form.items():
        if isinstance(value, list) and isinstance(group, Mapping) and isinstance(group.get(key), list):
            return key
    return ""


def _ours(
    agent: Agent, handler: Any, path: tuple[str, ...], event: str, *, group: int, at: int, inner: str, whole: Any
) -> Iterator[Entry]:
    """A handler as an entry, when it is ours."""
    found = _started(agent, handler, (), _prefixes(agent))
    if found is None:
        return
    program, named, command, where = found
    form = _form(agent, event or named)
    plain_form = form[inner][0] if inner and isinstance(form.get(inner), list) else form
    plain = set(handler) == set(plain_form) and (not inner or set(whole) == set(form))
    unit = UNITS[_hooks(agent).timeout_unit]
    seconds = next((value for key, value in handler.items() if plain_form.get(key) == "{timeout}"), None)
    off = handler.get("enabled") is False or (inner != "" and whole.get("enabled") is False)
    timeout = seconds / unit if isinstance(seconds, int | float) else None
    yield Entry(event or named, command, program, timeout, group, at, plain, path, where, off)


def _started(
    agent: Agent, handler: Any, path: tuple[str, ...], prefixes: Sequence[str]
) -> tuple[str, str, str, tuple[str, ...]] | None:
    """Program, event, command and where that stands, of a handler that starts our hook; None for another's."""
    for key, value in handler.items() if isinstance(handler, Mapping) else ():
        if isinstance(value, Mapping) and (inside := _started(agent, value, (*path, key), prefixes)) is not None:
            return inside
        if not isinstance(value, str) or HOOK_NAME not in value or len(value) > 4096:
            continue
        lists = [o for o in handler.values() if isinstance(o, list) and all(isinstance(word, str) for word in o)]
        apart = bool(lists) and value.endswith(HOOK_NAME)
        prefix = next((p for p in prefixes if value.startswith(p)), "")
        try:
            words = [value, *lists[0]] if apart else shlex.split(value[len(prefix) :])
        except ValueError:
            continue
        if len(words) == 3 and words[0].rpartition("/")[2] == HOOK_NAME and words[1] == agent.id:
            return words[0], words[2], shlex.join(words) if apart else value, (*path, key)
    return None


def _prefixes(agent: Agent) -> list[str]:
    """What stands before our command in the entries of an agent, the longest first; "" where it stands alone."""

    def texts(form: Any) -> Iterator[str]:
        for value in form.values() if isinstance(form, Mapping) else form if isinstance(form, list) else ():
            if isinstance(value, str):
                yield value
            else:
                yield from texts(value)

    found = {text.removesuffix("{command}") for text in texts(_hooks(agent).entry) if text.endswith("{command}")}
    return sorted(found, key=len, reverse=True)


def _command(agent: Agent, spec: EventSpec, hook: Path) -> str:
    """The whole command of an event's entry, as `Entry.command` tells it."""
    group = _group(agent, spec, hook)
    inner = _inner(_form(agent, spec.name), group)
    found = _started(agent, group[inner][0] if inner else group, (), _prefixes(agent))
    if found is None:
        raise EditError(f"the entry of {spec.name} starts nothing")
    return found[2]


def _form(agent: Agent, event: str) -> Mapping[str, Any]:
    """How an event's entry looks."""
    spec = agent.events.get(event)
    return spec.entry if spec is not None and spec.entry is not None else _hooks(agent).entry


def _group(agent: Agent, spec: EventSpec, hook: Path) -> Any:
    """The entry of one event."""
    values = {
        "{command}": command_line(agent, hook, spec.name),
        "{hook}": str(hook),
        "{args}": [agent.id, spec.name],
        "{timeout}": spec.timeout * UNITS[_hooks(agent).timeout_unit],
    }

    def filled(form: Any) -> Any:
        if isinstance(form, Mapping):
            return {key: filled(value) for key, value in form.items()}
        if isinstance(form, list):
            return [filled(value) for value in form]
        if isinstance(form, str):
            if form in values:
                return values[form]
            return form.replace("{event}", spec.name).replace("{command}", command_line(agent, hook, spec.name))
        return form

    return filled(_form(agent, spec.name))


def _mended(agent: Agent, text: str, entry: Entry, spec: EventSpec, hook: Path) -> str:
    """The text with the right command in one of our handlers; where it cannot be set there, a new one at the end."""
    hooks = _hooks(agent)
    value = edits.read(hooks.format, text)
    inner = _inner(hooks.entry, edits.at(value, (*entry.list, entry.group)))
    place = (*entry.list, entry.group, *((inner, entry.handler) if inner else ()), *entry.text)
    apart = edits.at(value, place) == entry.program
    try:
        return edits.put(hooks.format, text, place, str(hook) if apart else _command(agent, spec, hook))
    except EditError:
        text = _dropped(hooks, text, entry)
        return edits.append(hooks.format, text, _list_of(hooks, spec.name), _group(agent, spec, hook))


def _without(agent: Agent, text: str, goes: Callable[[Entry, set[str]], bool], before: str = "") -> str:
    """The text without the entries for which `goes(entry, events already kept)` holds."""
    there = edits.read_or_none(_hooks(agent).format, before)
    kept: set[str] = set()
    skip = 0
    while found := entries(agent, text)[skip:]:
        if goes(found[0], kept):
            text = _dropped(_hooks(agent), text, found[0], there)
        else:
            kept.add(found[0].event)
            skip += 1
    return text


def _dropped(hooks: HookFile, text: str, entry: Entry, kept: Any = None) -> str:
    """The text without one entry, nor the group, list and maps that held nothing else."""
    value = edits.read(hooks.format, text)
    place: tuple[str | int, ...] = (*entry.list, entry.group)
    group = edits.at(value, place)
    inner = _inner(hooks.entry, group)
    if inner and len(group[inner]) > 1:
        place = (*place, inner, entry.handler)
    elif inner and set(group) - {*hooks.entry, *_GROUP_KEYS}:
        return edits.put(hooks.format, text, (*place, inner), [])  # a group without its list may be no group
    return edits.drop(hooks.format, text, place, kept)
