"""What must stand in a file besides our entries: a version, a switch. Pure, text to text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vaultd.agents import edits

__all__ = ["only_constants", "with_constants", "without_constants"]


def with_constants(kind: str, text: str, constants: Mapping[str, Any]) -> str:
    """The text with these values where there are none."""
    value = edits.read(kind, text)
    for path, constant in _leaves(constants):
        if edits.at(value, path) is None:
            text = edits.put(kind, text, path, constant)
    return text


def without_constants(kind: str, text: str, constants: Mapping[str, Any], before: str) -> str:
    """The text without these values where the text `before` had none; as it is where `before` says nothing."""
    there = edits.read_or_none(kind, before)
    for path, constant in _leaves(constants) if there is not None else ():
        if edits.at(there, path) is None and edits.at(edits.read(kind, text), path) == constant:
            text = edits.drop(kind, text, path, there)
    return text


def only_constants(kind: str, text: str, constants: Mapping[str, Any]) -> bool:
    """Whether a text says nothing but these values, and holds no comment either."""
    for path, constant in _leaves(constants):
        if edits.at(edits.read(kind, text), path) == constant:
            text = edits.drop(kind, text, path)
    return edits.read(kind, text) == {} and not text.strip("{} \t\r\n\ufeff")


def _leaves(values: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Path and value of everything in nested maps."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key), value
