"""Reads what an agent wrote to its hook, whole or cut off, and looks things up in it. Pure; never raises.

A payload that ends in the middle (a full disk, a killed client, the size limit) is closed where it ends: complete
members are kept, and of the member that was cut only a text that is worth something in part.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["first_text", "lookup", "parse", "plain", "text"]

_DEPTH = 64  # deeper nesting than any agent's; bounds the work on hostile bytes
_TOKEN = re.compile(r'\s*+([{}\[\],:]|"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^\s{}\[\],:"]++)', re.DOTALL)
_CUT_STRING = re.compile(r'\s*+("[^"\\]*+(?:\\(?:u[0-9a-fA-F]{4}|[^u])[^"\\]*+)*+)', re.DOTALL)
_LITERAL = re.compile(r"(?:true|false|null|-?\d{1,400}(?:\.\d{1,400})?(?:[eE][+-]?\d{1,9})?)\Z")
_SURROGATE = re.compile("[\ud800-\udfff]")
_CLOSER = {"{": "}", "[": "]"}


def parse(payload: bytes, keep_cut: Iterable[str] = ()) -> dict[str, Any]:
    """The payload's top object; {} when there is none.

    `keep_cut` names the members whose text is kept when the payload ends inside it; of any other the beginning could be
    taken for the whole (half an id, half a path). It is looked at only then.
    """
    data = payload.removeprefix(b"\xef\xbb\xbf")
    value = _loads(data.decode("utf-8", "replace"))
    if value is None:
        cut = codecs.getincrementaldecoder("utf-8")("replace").decode(data)  # leaves off half a character at the end
        value = _loads(_closed(cut, keep_cut))
    return value if isinstance(value, dict) else {}


def lookup(fields: Any, path: str) -> Any:
    """The value at a dotted path; None when any part of it is missing or not an object. "" leads nowhere.

    `name[]` goes through all of a list: the value is then the list of what is found, None for nothing.
    """
    if not path:
        return None
    if "." not in path and "[" not in path:
        return fields.get(path) if isinstance(fields, Mapping) else None
    name, _, rest = path.partition(".")
    value = fields.get(name.removesuffix("[]")) if isinstance(fields, Mapping) else None
    if name.endswith("[]"):
        if not isinstance(value, list):
            return None
        found = [lookup(item, rest) if rest else item for item in value]
        return [item for item in found if item is not None] or None
    return lookup(value, rest) if rest else value


def first_text(fields: Any, paths: Iterable[str]) -> str:
    """The text at the first of these paths that leads to some."""
    return next((found for path in paths if (found := text(lookup(fields, path))).strip()), "")


def text(value: Any) -> str:
    """A value as text: a string, a number, the texts of a list of blocks a line each; "" for anything else."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, bool):
        return ""
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, Mapping):
        return text(value.get("text")) if isinstance(value.get("text"), str) else ""
    if isinstance(value, list):
        return "\n".join(part for part in map(_block, value) if part)
    return ""


def plain(value: str) -> str:
    """A string without lone surrogates, which no UTF-8 file can hold."""
    return value if value.isascii() or _SURROGATE.search(value) is None else _SURROGATE.sub("\ufffd", value)


def _block(value: Any) -> str:
    """One block of a list: a string, or an object with a text."""
    return "" if isinstance(value, list) else text(value)


def _loads(content: str) -> Any:
    """The JSON value of a text; None when it is none (or too deep, or with a number too long to be one)."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _closed(content: str, keep_cut: Iterable[str]) -> str:
    """A JSON text that ends in the middle, with what is open closed; "" when nothing can be saved.

    Goes over the tokens once. `safe` is the end of the last complete value and what was open there.
    """
    stack: list[str] = []
    at_key, key = False, ""
    position, safe, open_there = 0, 0, ""
    while (found := _TOKEN.match(content, position)) is not None:
        token = found[1]
        if token in _CLOSER:
            if len(stack) == _DEPTH:
                break
            stack.append(_CLOSER[token])
            at_key = token == "{"
        elif token in "}]":
            if not stack or stack.pop() != token:
                break
            at_key = False
        elif token == ",":
            at_key = bool(stack) and stack[-1] == "}"
        elif token == ":":
            at_key = False
        elif at_key:
            key = token[1:-1]
        elif token[0] != '"' and (found.end() == len(content) or not _LITERAL.match(token)):
            break  # a number or word at the very end may go on
        position = found.end()
        if token == "{" or (token not in ",:" and not at_key):
            safe, open_there = position, "".join(reversed(stack))
        if not stack:
            break
    if stack and not at_key and key in keep_cut and (cut := _CUT_STRING.match(content, position)) is not None:
        return content[: cut.end()] + '"' + "".join(reversed(stack))
    return content[:safe] + open_there
