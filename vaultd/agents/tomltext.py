"""TOML as text: tables and keys put in, changed and taken out, with every other byte left alone. Pure.

A path names a place: keys, and numbers for the tables of an array. Each result is read back and must say what it
should; where it does not, TomlError, and nothing is done.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vaultd.agents.textedit import (
    NOTHING,
    Path,
    appended,
    at,
    insert_lines,
    merged,
    narrowed,
    placed,
    remove_lines,
    same,
    spelled,
    without,
)

__all__ = ["TomlError", "append", "drop", "put", "read"]

_BOM = "\ufeff"
_NO_STATEMENT = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\r?\n|\Z)")
_BLANK = re.compile(r"[ \t]*\r?\n\Z")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_KEY = re.compile(r"""[ \t]*("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[A-Za-z0-9_-]+)[ \t]*(\.?)""")
_BRACKET = re.compile(r"[ \t]*(\[{1,2})")
_EQUALS = re.compile(r"=[ \t]*")
_TOKEN = re.compile(
    r"""\"\"\"(?:\\.|[^\\])*?\"{3,5}|'''.*?'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|\#[^\n]*|[\[\]{}]|\s|[^\s"'\#\[\]{}]+""",
    re.DOTALL,
)


class TomlError(ValueError):
    """The text is not TOML, or not in a form that can be edited safely."""


@dataclass(frozen=True, slots=True)
class _Statement:
    """A header or a key with its value: whole lines, the path they stand for, and where a key's value lies."""

    start: int
    end: int
    path: tuple[str | int, ...]
    header: bool
    value: slice


def read(text: str) -> dict[str, Any]:
    """What a text says."""
    try:
        return tomllib.loads(text.removeprefix(_BOM))
    except (ValueError, RecursionError) as error:  # numbers that are too long are a plain ValueError
        raise TomlError(str(error)) from error


def append(text: str, path: Path, item: Mapping[str, Any]) -> str:
    """The text with one more table in an array of tables, as its own block."""
    path = tuple(path)
    wanted = appended(read(text), path, item)
    if wanted is NOTHING:
        raise _form(path)
    bom, body = _parted(text)
    return _checked(bom + _with_block(body, path, "[[{}]]", item), wanted, path)


def put(text: str, path: Path, value: Any) -> str:
    """The text with a key's value, or with a table that has these keys; keys of the table that are not named stay."""
    path = tuple(path)
    if not isinstance(value, Mapping):
        if not path or not isinstance(path[-1], str):
            raise _form(path)
        path, value = path[:-1], {path[-1]: value}
    before = read(text)
    old = at(before, path)
    if old is not NOTHING and not isinstance(old, dict):
        raise _form(path)
    bom, body = _parted(text)
    return _checked(bom + _put(body, path, value), placed(before, path, merged(old, value)), path)


def drop(text: str, path: Path) -> str:
    """The text without what is at a path, nor containers that are empty then; as it was when nothing is there.

    Comments go with a table that stand between its lines; those after its last line stay.
    """
    path = tuple(path)
    before = read(text)
    if at(before, path) is NOTHING:
        return text
    if not path:
        raise _form(path)
    path = tuple(narrowed(before, path))
    bom, body = _parted(text)
    for start, end in reversed(_spans(body, path)):
        body = remove_lines(body, start, end)
    return _checked(bom + body, without(before, path), path)


def _checked(result: str, wanted: Any, path: Path) -> str:
    try:
        right = same(read(result), wanted)
    except TomlError:
        right = False
    if not right:
        raise _form(path)
    return result


def _form(path: Path) -> TomlError:
    return TomlError(f"{spelled(path)} is written in a form that is not edited")


def _parted(text: str) -> tuple[str, str]:
    """The mark at the start, if there is one, and the rest."""
    body = text.removeprefix(_BOM)
    return text[: len(text) - len(body)], body


def _put(body: str, path: tuple[str | int, ...], values: Mapping[str, Any]) -> str:
    """The body with these keys in a table: those that differ changed where they are, the others added."""
    there = at(read(body), path)
    missing = {}
    for key, new in values.items():
        old = at(there, [key])
        if old is NOTHING:
            missing[key] = new
        elif not same(merged(old, new), old):
            body = _changed(body, (*path, key), old, new)
    return _added(body, path, missing) if missing or there is NOTHING else body


def _changed(body: str, path: tuple[str | int, ...], old: Any, new: Any) -> str:
    """The body with another value for a key, on the line where it stands."""
    found = next((line for line in _statements(body) if line.path == path and not line.header), None)
    if found is None and isinstance(old, dict) and isinstance(new, Mapping):
        return _put(body, path, new)  # it is a table with a header
    if found is None or isinstance(old, dict) != isinstance(new, Mapping):
        raise _form(path)
    if isinstance(old, dict) and not old.keys() <= new.keys():
        raise _form(path)  # an inline table that others have keys in
    return body[: found.value.start] + _value(new) + body[found.value.stop :]


def _added(body: str, path: tuple[str | int, ...], values: Mapping[str, Any]) -> str:
    """The body with more keys in a table: right below its header, or in a block of its own."""
    statements = _statements(body)
    header = next((line for line in statements if line.header and line.path == path), None)
    if header is not None:
        return insert_lines(body, header.end, _rows(values))
    if not path:
        place = 0
        for line in statements:
            if line.header:
                break
            place = line.end
        return insert_lines(body, place, _rows(values))
    return _with_block(body, path, "[{}]", values)


def _with_block(body: str, path: tuple[str | int, ...], header: str, values: Mapping[str, Any]) -> str:
    """The body with a block at its end, or at the end of the array's table that it belongs to."""
    place = len(body)
    numbers = [n for n, step in enumerate(path) if isinstance(step, int)]
    if numbers:
        owner = path[: numbers[-1] + 1]
        place = max((line.end for line in _statements(body) if line.path[: len(owner)] == owner), default=-1)
    if not path or place < 0 or isinstance(path[-1], int):
        raise _form(path)
    name = ".".join(_key(step) for step in path if isinstance(step, str))
    return insert_lines(body, place, [*([""] if body else []), header.format(name), *_rows(values)])


def _spans(body: str, path: tuple[str | int, ...]) -> list[tuple[int, int]]:
    """The lines that stand for a path: blocks of tables with the blank line in front, and lines of keys."""
    spans: list[tuple[int, int]] = []
    in_block = False
    for line in _statements(body):
        ours = line.path[: len(path)] == path
        in_block = ours and (in_block or line.header)
        if not ours:
            continue
        start = line.start
        if line.header:
            above = body.rfind("\n", 0, max(start - 1, 0)) + 1
            start = above if _BLANK.match(body[above:start]) else start
        if spans and (spans[-1][1] == start or (in_block and not line.header)):
            start = spans.pop()[0]
        spans.append((start, line.end))
    return spans


def _statements(body: str) -> list[_Statement]:
    """The headers and keys of a body that is known to be TOML."""
    found: list[_Statement] = []
    counts: dict[tuple[str | int, ...], int] = {}
    table: tuple[str | int, ...] = ()
    place = 0
    while place < len(body):
        if blank := _NO_STATEMENT.match(body, place):
            place = blank.end()
            continue
        start = place
        bracket = _BRACKET.match(body, place)
        opening = len(bracket[1]) if bracket else 0
        keys, place = _keys(body, bracket.end() if bracket else place)
        value = slice(place, place)
        if opening:
            table = _resolved(keys, counts, array=opening == 2)
        else:
            equals = _EQUALS.match(body, place)
            first = equals.end() if equals else place
            value = slice(first, _value_end(body, first))
        place = body.find("\n", value.stop) + 1 or len(body)
        found.append(_Statement(start, place, table if opening else (*table, *keys), opening > 0, value))
    return found


def _resolved(keys: list[str], counts: dict[tuple[str | int, ...], int], *, array: bool) -> tuple[str | int, ...]:
    """The path that a header stands for; `counts` tells how many tables each array has so far."""
    path: tuple[str | int, ...] = ()
    for n, key in enumerate(keys):
        path = (*path, key)
        if array and n == len(keys) - 1:
            counts[path] = counts.get(path, 0) + 1
        if path in counts:
            path = (*path, counts[path] - 1)
    return path


def _keys(body: str, place: int) -> tuple[list[str], int]:
    """The dotted key at a place, and where it ends."""
    keys: list[str] = []
    while found := _KEY.match(body, place):
        raw = found[1]
        keys.append(tomllib.loads(f"key = {raw}")["key"] if raw[0] in "\"'" else raw)
        place = found.end()
        if not found[2]:
            break
    return keys, place


def _value_end(body: str, start: int) -> int:
    """Where the value ends that starts at a place."""
    depth, end = 0, start
    for token in _TOKEN.finditer(body, start):
        first = token[0][0]
        if first in "#\n" and depth == 0:
            break
        depth += (first in "[{") - (first in "]}")
        if first != "#" and not first.isspace():
            end = token.end()
    return end


def _rows(values: Mapping[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_value(value)}" for key, value in values.items()]


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)


def _value(value: Any) -> str:
    """A value as TOML, on one line."""
    if isinstance(value, str):
        if any("\ud800" <= char <= "\udfff" for char in value):
            raise TomlError("a text holds half a character")
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")  # JSON's texts are TOML's but for this
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(_rows(value))}}}"
    raise TomlError(f"TOML has no {type(value).__name__}")
