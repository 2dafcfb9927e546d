"""A call of a tool, from what a client sent to what it is answered. Whatever happens is an answer.

Arguments are checked here, once for all tools. A fault of ours is a short answer and a line in the log, which never
holds what was sent.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vaultd.core.fence import defuse
from vaultd.engine.service import Reply, Scope, Service
from vaultd.errors import UsageError, VaultdError
from vaultd.mcp.tool import Call, Schema, Tool
from vaultd.mcp.tools import TOOLS

__all__ = ["Outcome", "call", "checked"]

_WORDS = {"string": "a text", "integer": "a whole number", "boolean": "true or false", "array": "a list of texts"}
_MOST_DIGITS = 9

log = logging.getLogger("vaultd.mcp")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a client gets: words, data, and whether it is an error that its model should read."""

    text: str
    data: Reply = field(default_factory=dict)
    failed: bool = False


def call(service: Service, name: str, arguments: Mapping[str, Any], *, cwd: str = "", client: str = "") -> Outcome:
    """Answer a call. `cwd` is where the client says it is; its arguments win."""
    tool = TOOLS.get(name)
    if tool is None:
        return Outcome(f"There is no tool {_quoted(name)}. There are: {', '.join(TOOLS)}.", failed=True)
    try:
        values = checked(tool, arguments)
        scope = Scope(values.pop("project", ""), values.pop("cwd", "") or cwd)
        answer = tool.run(Call(service, scope, values, client))
    except VaultdError as error:
        return Outcome(defuse(str(error)), failed=True)
    except Exception as error:  # noqa: BLE001  # whatever it is, the client must have an answer
        log.error("%s failed: %s %s", name, type(error).__name__, _where(error))
        return Outcome(f"{name} failed inside vaultd ({type(error).__name__}); its log says where.", failed=True)
    return Outcome(_whole(answer.text), _whole(answer.data))


def checked(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A tool's arguments under their own names; UsageError says which are wrong, and what is right.

    Null counts as not given. `workspace` beside `project` becomes `workspace/project`; `cwd` is taken by every tool.
    """
    known = {**{name: name for name in tool.properties}, **tool.aliases, "workspace": "workspace", "cwd": "cwd"}
    values: dict[str, Any] = {}
    for given, value in arguments.items():
        if value is None or given in tool.ignored:
            continue
        name = known.get(given)
        if name is None:
            raise UsageError(f"{tool.name} has no argument {_quoted(given)}. It takes: {', '.join(tool.properties)}.")
        if name in values:
            raise UsageError(f"{tool.name} was given `{name}` twice, once as {_quoted(given)}.")
        values[name] = _value(given, value, tool.properties.get(name, {"type": "string"}))
    missing = [name for name in tool.required if not values.get(name)]
    if missing:
        raise UsageError(f"{tool.name} needs {', '.join(f'`{name}`' for name in missing)}.")
    workspace = values.pop("workspace", "")
    if workspace and values.get("project"):
        values["project"] = f"{workspace}/{values['project']}"
    return values


def _value(name: str, value: Any, schema: Schema) -> Any:
    """One value as its type; UsageError."""
    kind = schema["type"]
    if kind == "integer" and (number := _number(value)) is not None:
        return number
    if kind == "boolean" and isinstance(value, bool):
        return value
    if kind == "array" and isinstance(value, list) and all(isinstance(part, str) for part in value):
        return tuple(_text(name, part) for part in value)
    if kind == "array" and isinstance(value, str):
        return (_text(name, value),)  # what a model meant by it is plain
    if kind == "string" and isinstance(value, str):
        if "enum" in schema and value not in schema["enum"]:
            raise UsageError(f"`{name}` must be one of {', '.join(schema['enum'])}.")
        return _text(name, value)
    raise UsageError(f"{_quoted(name)} must be {_WORDS[kind]}.")


def _number(value: Any) -> int | None:
    """A whole number, also one that was written `5.0` or "5"."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _MOST_DIGITS:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and abs(value) < 10**_MOST_DIGITS else None


def _text(name: str, value: str) -> str:
    """A text that can be kept; UsageError for what no file or index takes."""
    if "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
        raise UsageError(f"{_quoted(name)} holds characters that are no text (NUL, half of a surrogate pair).")
    return value


def _whole(value: Any) -> Any:
    """A value that any JSON writer takes: half characters (of names that are not UTF-8) are shown as such."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, Mapping):
        return {str(key): _whole(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(inner) for inner in value]
    return value


def _quoted(name: object) -> str:
    """What a client sent, short enough to be said again."""
    return f"`{_whole(str(name)[:60])}`"


def _where(error: BaseException) -> str:
    """The place of a fault, without any value."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return f"at {frame.tb_frame.f_code.co_filename.rpartition('/')[2]}:{frame.tb_lineno}" if frame is not None else ""
