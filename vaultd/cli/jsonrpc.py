"""Lines of JSON-RPC: what a client said, and answers as lines. Pure; whatever comes in is told, never raised."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

__all__ = [
    "INTERNAL",
    "INVALID",
    "NO_METHOD",
    "PARSE",
    "Batch",
    "Fault",
    "Id",
    "Lines",
    "Note",
    "Request",
    "error",
    "read",
    "result",
    "written",
]

PARSE, INVALID, NO_METHOD, INTERNAL = -32700, -32600, -32601, -32603

_MOST_IN_BATCH = 100
_ENDS = 4096
"""Of a line that is too long, so many bytes at each end are looked at for its id."""

_ID = rb'"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\]|\\.){0,200}")'
_ID_FIRST = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID)
_ID_LAST = re.compile(_ID + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')

Id: TypeAlias = str | int | None


@dataclass(frozen=True, slots=True)
class Request:
    """A call that is owed an answer; `raw` is what was said, for passing it on."""

    id: Id
    method: str
    params: dict[str, Any]
    raw: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Note:
    """What is owed no answer: a notification, or a client's answer to something that nobody asked (method "")."""

    method: str
    params: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """What is no message, and the answer that says so."""

    answer: dict[str, Any]


Message: TypeAlias = Request | Note | Fault


@dataclass(frozen=True, slots=True)
class Batch:
    """Several messages at once, as protocols before 2025-06-18 allow; answered by one list."""

    messages: list[Message]


def read(line: bytes) -> Message | Batch | None:
    """What a line says; None for a blank one."""
    if not line.strip():
        return None
    try:
        value = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        return Fault(error(_salvaged(line), PARSE, "The line is not UTF-8."))
    except (ValueError, RecursionError):
        return Fault(error(None, PARSE, "The line is not JSON."))
    if not isinstance(value, list):
        return _message(value)
    if not 1 <= len(value) <= _MOST_IN_BATCH:
        return Fault(error(None, INVALID, f"A batch holds from 1 to {_MOST_IN_BATCH} messages."))
    return Batch([_message(part) for part in value])


def _message(value: Any) -> Message:
    if not isinstance(value, dict):
        return Fault(error(None, INVALID, "A message is a JSON object."))
    known = isinstance(value.get("id"), str | int) and not isinstance(value.get("id"), bool)
    ident: Id = value["id"] if known else None
    method, params = value.get("method"), value.get("params")
    if value.get("jsonrpc") != "2.0" or not isinstance(method, str | None) or not isinstance(params, dict | None):
        return Fault(error(ident, INVALID, "This is no JSON-RPC 2.0 message with an object for parameters."))
    if method is None:
        if "result" in value or "error" in value:
            return Note("", {})
        return Fault(error(ident, INVALID, "The message has no method."))
    if "id" not in value:
        return Note(method, params or {})
    if ident is None:
        return Fault(error(None, INVALID, "An id is a text or a whole number."))
    return Request(ident, method, params or {}, value)


def _salvaged(line: bytes) -> Id:
    """The id of a line that is not UTF-8, so that nobody waits for its answer."""
    try:
        value = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    ident = value.get("id") if isinstance(value, dict) else None
    return ident if isinstance(ident, str | int) and not isinstance(ident, bool) else None


def result(ident: Id, value: dict[str, Any]) -> dict[str, Any]:
    """An answer."""
    return {"jsonrpc": "2.0", "id": ident, "result": value}


def error(ident: Id, code: int, message: str) -> dict[str, Any]:
    """An answer that says what went wrong."""
    return {"jsonrpc": "2.0", "id": ident, "error": {"code": code, "message": message}}


def written(message: object) -> bytes:
    """A message as a line."""
    return json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"


@dataclass(slots=True)
class Lines:
    """Bytes as they come, cut into lines; a line of more than `most` bytes is passed over and told."""

    most: int
    _kept: bytearray = field(default_factory=bytearray)
    _head: bytes = b""
    _tail: bytes = b""
    _over: bool = False

    def feed(self, data: bytes) -> Iterator[bytes | Fault]:
        """The lines that are whole now."""
        *ends, rest = data.split(b"\n")
        for part in ends:
            self._add(part)
            yield self._taken()
        self._add(rest)

    def rest(self) -> Iterator[bytes | Fault]:
        """The last line, which nothing ended."""
        if self._kept or self._over:
            yield self._taken()

    def _add(self, part: bytes) -> None:
        if not self._over and len(self._kept) + len(part) > self.most:
            self._over = True
            self._head = bytes((self._kept + part)[:_ENDS])
            self._tail = bytes(self._kept[-_ENDS:])
            self._kept.clear()
        if self._over:
            self._tail = (self._tail + part)[-_ENDS:]
        else:
            self._kept += part

    def _taken(self) -> bytes | Fault:
        if not self._over:
            line, self._kept = bytes(self._kept), bytearray()
            return line
        found = _ID_FIRST.match(self._head) or _ID_LAST.search(self._tail)
        self._over, self._head, self._tail = False, b"", b""
        ident = json.loads(found[1].decode("utf-8", "replace")) if found else None
        return Fault(error(ident, INVALID, f"A message has at most {self.most} bytes."))
