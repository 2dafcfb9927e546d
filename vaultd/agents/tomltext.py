"""TOML as text: a table put at its end, changed, or taken out, with every other byte left alone. Pure.

Each result is read back and must say what it should; where it does not, TomlError, and nothing is done.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

__all__ = ["TomlError", "with_table", "without_table"]

Values: TypeAlias = Mapping[str, str | Sequence[str]]

_HEADER = re.compile(r"[ \t]*\[{1,2}[^\[\]]+\]{1,2}[ \t]*(?:#.*)?\r?\n?\Z")
_SPAN = re.compile(
    r"""#[^\n]*|(?P<long>\"\"\"(?:[^\\]|\\.)*?\"{3,5}|'''.*?'{3,5})|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""", re.DOTALL
)


class TomlError(ValueError):
    """The text is not TOML, or not in a form that can be edited safely."""


def with_table(text: str, path: Sequence[str], values: Values) -> str:
    """The text with a table that holds these values: appended, or with these keys changed where there is one."""
    before = _loaded(text)
    there = _at(before, path)
    if there is None:
        newline = "\r\n" if "\r\n" in text else "\n"
        gap = "" if not text else newline if text.endswith("\n") else newline * 2
        rows = [f"[{'.'.join(path)}]", *(f"{key} = {_value(value)}" for key, value in values.items())]
        result = text + gap + "".join(row + newline for row in rows)
    else:
        result = _changed(text, path, {key: value for key, value in values.items() if there.get(key) != _plain(value)})
    wanted = {**(there or {}), **{key: _plain(value) for key, value in values.items()}}
    after = _loaded(result)
    if _at(after, path) != wanted or _without(after, path) != _without(before, path):
        raise TomlError(f"{'.'.join(path)} is written in a form that is not edited")
    return result


def without_table(text: str, path: Sequence[str]) -> str:
    """The text without a table, the tables below it, and the blank line before each; as it was when it has none."""
    before = _loaded(text)
    if _at(before, path) is None:
        return text
    lines = _lines(text)
    kept: list[str] = []
    place = 0
    while place < len(lines):
        if _is_header(lines[place], path, below=True):
            if kept and not kept[-1].strip():
                kept.pop()
            place = _end(lines, place)
        else:
            kept.append(lines[place])
            place += 1
    result = "".join(kept)
    after = _loaded(result)
    if _at(after, path) is not None or _without(after, path) != _without(before, path):
        raise TomlError(f"{'.'.join(path)} is written in a form that is not edited")
    return result


def _changed(text: str, path: Sequence[str], values: Values) -> str:
    """The text with other values for keys of a table, each on the line where it stands."""
    lines = _lines(text)
    start = next((n for n, line in enumerate(lines) if _is_header(line, path)), None)
    if start is None:
        raise TomlError(f"{'.'.join(path)} is written in a form that is not edited")
    for key, value in values.items():
        own = re.compile(rf"([ \t]*{re.escape(key)}[ \t]*=[ \t]*)(?:[^\r\n]*)")
        for place in range(start + 1, _end(lines, start)):
            if found := own.match(lines[place]):
                lines[place] = found[1] + _value(value) + lines[place][found.end() :]
                break
        else:
            newline = "\r\n" if lines[start].endswith("\r\n") else "\n"
            lines.insert(start + 1, f"{key} = {_value(value)}{newline}")
    return "".join(lines)


def _lines(text: str) -> list[str]:
    """The text in lines; one that ends within a text of several lines goes on with the next."""
    inside: set[int] = set()
    for found in _SPAN.finditer(text):
        if found["long"]:
            inside.update(range(*found.span()))
    lines: list[str] = []
    start = 0
    for end in (place + 1 for place, char in enumerate(text) if char == "\n" and place not in inside):
        lines.append(text[start:end])
        start = end
    return [*lines, text[start:]] if start < len(text) else lines


def _end(lines: Sequence[str], start: int) -> int:
    """Where a table ends that starts at a header: after its last line that is neither blank nor a comment."""
    place = end = start + 1
    while place < len(lines) and not _HEADER.match(lines[place]):
        place += 1
        if lines[place - 1].strip() and not lines[place - 1].lstrip().startswith("#"):
            end = place
    return end


def _is_header(line: str, path: Sequence[str], *, below: bool = False) -> bool:
    """Whether a line opens this table (or one below it)."""
    dot = r"[ \t]*\.[ \t]*"
    names = dot.join(f"[\"']?{re.escape(name)}[\"']?" for name in path)
    more = rf"(?:{dot}[^\]]+)?" if below else ""
    return re.match(rf"[ \t]*\[[ \t]*{names}{more}[ \t]*\][ \t]*(?:#.*)?\r?\n?\Z", line) is not None


def _loaded(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise TomlError(str(error)) from error


def _at(value: Any, path: Sequence[str]) -> dict[str, Any] | None:
    """The table at a path."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else None


def _without(value: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """A copy without what is at a path, nor the tables that are empty then."""
    copy = {key: inner for key, inner in value.items() if key != path[0]}
    if len(path) > 1 and path[0] in value:
        inner = value[path[0]]
        left = _without(inner, path[1:]) if isinstance(inner, dict) else inner
        if left or not isinstance(inner, dict):
            copy[path[0]] = left
    return copy


def _plain(value: str | Sequence[str]) -> Any:
    return value if isinstance(value, str) else list(value)


def _value(value: str | Sequence[str]) -> str:
    """A value as TOML: JSON's texts and lists of texts are TOML's, but for one control character."""
    return json.dumps(_plain(value), ensure_ascii=False).replace("\x7f", "\\u007F")
