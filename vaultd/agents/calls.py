"""A tool call in an agent's payload, in the words of every agent. Pure.

Contents of files stay out: of a patch only the names in its header lines are read, output is kept for shell commands
only, and of those only where it says something about success: a failed call, a test run, or an outcome that is not
certain and a text that looks like failure. Of a failed call that is no shell command the first line of the message is
kept; further ones may quote the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from vaultd.agents import commands
from vaultd.agents.model import Agent, EventSpec, ToolSpec
from vaultd.agents.payload import first_text, lookup, text
from vaultd.agents.transcripts import Outcome
from vaultd.core.event import FileTouch, ToolCall

__all__ = ["batch_call", "completed", "tool_call"]

_MESSAGE = 400  # characters of a message's first line
_REFUSED = "refused: "
_COMMAND = 8 * 1024 + 1  # characters of a command that are looked at: one more than `commands` takes apart
_SEEN = 64 * 1024  # characters at either end of a message that are


def tool_call(agent: Agent, spec: EventSpec, fields: Mapping[str, Any]) -> ToolCall | None:
    """The call that a tool event is about; None when the payload names no tool."""
    name = text(lookup(fields, agent.call.name))
    if not name:
        return None
    tool = agent.tool(name)
    command, call_id = text(lookup(fields, tool.command)), text(lookup(fields, agent.call.id))
    if commands.is_patch(command):
        call = ToolCall(name, "edit", call_id, commands.patch_files(command))
    else:
        call = ToolCall(name, tool.family, call_id, _files(tool, fields), commands.without_bodies(command[:_COMMAND]))
    output = "\n".join(part for part in (text(lookup(fields, path)) for path in tool.output) if part)
    message = first_text(fields, agent.call.error)
    if spec.outcome == "failed" or (message and spec.outcome in ("ok", "open")):
        return _failed(agent, call, message, output)
    if spec.outcome not in ("ok", "open"):
        return call
    code, ok = _outcome(tool, spec, fields)
    if ok is False and call.family != "shell":
        return replace(call, exit_code=code, ok=ok, error=_first(output))
    return _settled(call, output, code, ok)


def batch_call(agent: Agent, spec: EventSpec, fields: Mapping[str, Any]) -> ToolCall | None:
    """The first call of a batch that was refused or failed without an event of its own; None when there is none.

    Calls that failed while they ran are reported by themselves and passed over here. Others of the batch are counted in
    the message.
    """
    items = lookup(fields, spec.batch)
    found: list[ToolCall] = []
    for item in items if isinstance(items, list) else []:
        told = "\n".join(text(lookup(item, path)) for path in agent.call.response)
        message = _verdict(agent, told) if isinstance(item, Mapping) else ""
        call = tool_call(agent, replace(spec, outcome=""), item) if message else None
        if call is not None:
            found.append(replace(call, ok=False, error=message))
    if len(found) > 1:
        return replace(found[0], error=f"{found[0].error} (and {len(found) - 1} more calls)")
    return found[0] if found else None


def completed(call: ToolCall, outcome: Outcome) -> ToolCall:
    """A call with the outcome that a transcript tells."""
    files = call.files or outcome.files
    output = call.output or (outcome.output if call.family == "shell" else "")
    ok = None if outcome.failed is None else not outcome.failed
    call = replace(call, files=files, output="")
    if ok is False and call.family != "shell":
        return replace(call, exit_code=outcome.exit_code, ok=False, error=call.error or _first(outcome.output))
    return _settled(call, output, outcome.exit_code, ok)


def _settled(call: ToolCall, output: str, exit_code: int | None, ok: bool | None) -> ToolCall:
    """A call with its outcome, and with no more of its output than that outcome needs."""
    if call.family != "shell":
        return replace(call, exit_code=exit_code, ok=ok)
    reads = commands.prints_files(call.command)
    shown = commands.complaints(output) if reads else output
    if ok is False:
        error = commands.telling_line(shown)
        return replace(call, exit_code=exit_code, ok=ok, output="" if reads else shown, error=error)
    unsure = ok is None or commands.hides_exit_code(call.command)
    tells = commands.is_test_run(call.command) or (unsure and commands.looks_failed(shown))
    return replace(call, exit_code=exit_code, ok=ok, output=shown if tells else "")


def _failed(agent: Agent, call: ToolCall, message: str, output: str) -> ToolCall:
    """A call whose own event says that it failed; what it printed may stand in the message or apart."""
    if len(message) > 2 * _SEEN:
        message = f"{message[:_SEEN]}\n{message[-_SEEN:]}"
    found = agent.errors.exit_code.search(message) if agent.errors.exit_code else None
    refused = _verdict(agent, message)
    if refused.startswith(_REFUSED):
        return replace(call, ok=False, error=refused)
    if call.family == "shell":
        told = (message[: found.start()] + message[found.end() :]).strip("\n") if found else message
        inner = agent.errors.output.search(message) if agent.errors.output else None
        told = inner[1] if inner else told if told.strip() else output
        return _settled(call, told, _number(found[1]) if found else None, False)
    for pattern in agent.errors.failed:
        if (inner := pattern.match(message)) is not None:
            message = " ".join(group for group in inner.groups() if group)
            break
    return replace(call, exit_code=_number(found[1]) if found else None, ok=False, error=_first(message))


def _outcome(tool: ToolSpec, spec: EventSpec, fields: Mapping[str, Any]) -> tuple[int | None, bool | None]:
    """Exit code and success as a payload tells them."""
    if tool.exit_code is not None:
        path, pattern = tool.exit_code
        found = pattern.search(text(lookup(fields, path)))
        if found is not None and (code := _number(found[1])) is not None:
            return code, code == 0
        if tool.code_always:
            return None, None
    if tool.failed_when and isinstance(flag := lookup(fields, tool.failed_when), bool):
        return None, not flag
    if spec.outcome == "open" or any(lookup(fields, path) for path in tool.open_when):
        return None, None
    return (0 if tool.family == "shell" else None), True


def _verdict(agent: Agent, response: str) -> str:
    """What a batch's answer says about a call that was refused or malformed; "" for any other answer."""
    for patterns, word in ((agent.errors.refused, _REFUSED), (agent.errors.failed, "")):
        for pattern in patterns:
            if (found := pattern.match(response)) is not None:
                return word + _first(" ".join(group for group in found.groups() if group) or response)
    return ""


def _files(tool: ToolSpec, fields: Mapping[str, Any]) -> tuple[FileTouch, ...]:
    """The files that a call names, by path fields or in a patch."""
    if tool.patch:
        return commands.patch_files(text(lookup(fields, tool.patch)))
    action = tool.action
    if tool.created is not None and lookup(fields, tool.created[0]) == tool.created[1]:
        action = "create"
    found = [lookup(fields, where) for where in tool.files]
    named = [path for value in found for path in (value if isinstance(value, list) else [value])]
    return tuple(FileTouch(path, action) for path in map(text, named) if path)


def _first(message: str) -> str:
    """The first line of a message, short."""
    return message.strip().partition("\n")[0][:_MESSAGE].strip()


def _number(digits: str) -> int | None:
    """An exit code; None for a number that is none."""
    return int(digits) if digits.isdecimal() and len(digits) < 10 else None
