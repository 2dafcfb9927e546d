"""What edits of TOML and YAML texts share: whole lines in and out, and the value that must come of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

__all__ = [
    "NOTHING",
    "Path",
    "appended",
    "at",
    "insert_lines",
    "merged",
    "narrowed",
    "placed",
    "plain",
    "remove_lines",
    "same",
    "spelled",
    "without",
]

Path: TypeAlias = Sequence[str | int]

NOTHING: Final[Any] = object()
"""What stands at a place where nothing is."""


def insert_lines(text: str, place: int, rows: Sequence[str]) -> str:
    """The text with lines put in where a line starts or the text ends; a missing newline at its end stays missing."""
    newline = "\r\n" if "\r\n" in text else "\n"
    if text and place == len(text) and text[-1] not in "\r\n":
        return text + "".join(newline + row for row in rows)
    return text[:place] + "".join(row + newline for row in rows) + text[place:]


def remove_lines(text: str, start: int, end: int) -> str:
    """The text without some whole lines; where the last of them had no newline, the one before has none then."""
    left = text[:start]
    if end == len(text) and start < end and text[-1] not in "\r\n":
        left = left.removesuffix("\n").removesuffix("\r")
    return left + text[end:]


def spelled(path: Path) -> str:
    """A path as messages name it."""
    return ".".join(map(str, path)) or "the top level"


def at(value: Any, path: Path) -> Any:
    """What stands at a path; NOTHING where nothing does."""
    for step in path:
        if isinstance(step, str):
            value = value.get(step, NOTHING) if isinstance(value, dict) else NOTHING
        else:
            value = value[step] if isinstance(value, list) and 0 <= step < len(value) else NOTHING
    return value


def placed(value: Any, path: Path, new: Any) -> Any:
    """A copy with something else at a path, where maps that are missing are made; NOTHING where that cannot be."""
    if not path:
        return new
    step, rest = path[0], path[1:]
    old = at(value, [step])
    if isinstance(step, str):
        if value in (NOTHING, None, [], {}):
            value = {}
        inner = placed(old, rest, new) if isinstance(value, dict) else NOTHING
        return NOTHING if inner is NOTHING else {**value, step: inner}
    inner = NOTHING if old is NOTHING else placed(old, rest, new)
    return NOTHING if inner is NOTHING else [*value[:step], inner, *value[step + 1 :]]


def appended(value: Any, path: Path, item: Any) -> Any:
    """A copy with one more item in the list at a path; NOTHING where something else stands there."""
    old = at(value, path)
    if old in (NOTHING, None, {}):
        old = []
    return placed(value, path, [*old, plain(item)]) if path and isinstance(old, list) else NOTHING


def narrowed(value: Any, path: Path) -> Path:
    """The path of the outermost container that holds nothing but what is at a path; that itself when others do."""
    while len(path) > 1 and len(at(value, path[:-1])) == 1:
        path = path[:-1]
    return path


def without(value: Any, path: Path) -> Any:
    """A copy without what is at a path."""
    step, rest = path[0], path[1:]
    inner = [without(value[step], rest)] if rest else []
    if isinstance(step, int):
        return [*value[:step], *inner, *value[step + 1 :]]
    return {k: v if k != step else inner[0] for k, v in value.items() if k != step or inner}


def merged(old: Any, new: Any) -> Any:
    """A value put over an old one: keys of maps that the new one does not have stay."""
    if isinstance(new, Mapping) and isinstance(old, dict):
        return {**old, **{key: merged(old.get(key), value) for key, value in new.items()}}
    return plain(new)


def plain(value: Any) -> Any:
    """A value as a reader gives it back: maps and lists of Python's own kinds."""
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def same(one: Any, other: Any) -> bool:
    """Whether two values that were read say the same; 1, 1.0 and true do not, and not-a-number does."""
    try:
        return _same(one, other, {})
    except RecursionError:
        return False


def _same(one: Any, other: Any, seen: dict[tuple[int, int], Any]) -> bool:
    if type(one) is not type(other):
        return False
    if not isinstance(one, dict | list):
        return bool(one == other) or repr(one) == repr(other)
    pair = id(one), id(other)
    if pair in seen:
        return True  # it is being compared, or was: YAML's aliases make one value stand in many places, even in itself
    seen[pair] = one
    if len(one) != len(other):
        return False
    if isinstance(one, dict):
        return all(key in other and _same(value, other[key], seen) for key, value in one.items())
    return all(_same(value, other[n], seen) for n, value in enumerate(one))
