"""Edits of configuration texts that belong to other programs: something in, something out, every other byte as it was.

One interface for all formats. A path is a sequence of keys, and of numbers in lists. Each result is read back and must
mean what was wanted; where it does not, and for every text that cannot be edited safely, EditError.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from vaultd.agents import tomltext, yamltext
from vaultd.agents.jsontext import JsonError, Node, Text

__all__ = ["EditError", "Path", "append", "at", "blank", "drop", "dump", "put", "read", "read_or_none"]

Path: TypeAlias = Sequence[str | int]


class EditError(ValueError):
    """The text cannot be read, or not be edited safely; says where and why."""


def read(kind: str, text: str) -> Any:
    """What a text of a format (json, jsonc, toml, yaml) says; {} for a blank one."""
    try:
        if kind == "toml":
            return tomltext.read(text)
        if kind == "yaml":
            return yamltext.read(text)
        return {} if blank(text) else Text(text, lenient=kind == "jsonc").root.value
    except (ValueError, RecursionError) as error:
        raise EditError(str(error)) from error


def read_or_none(kind: str, text: str) -> Any:
    """What a text says; None for a blank one or one that cannot be read."""
    try:
        return None if blank(text) else read(kind, text)
    except EditError:
        return None


def append(kind: str, text: str, path: Path, item: Any) -> str:
    """The text with one more item at the end of the list at a path; what is missing on the way is made."""
    wanted = _appended(copy.deepcopy(read(kind, text)), path, item)
    editor: Callable[..., str] = {"toml": tomltext.append, "yaml": yamltext.append}.get(kind, _json_append)
    return _checked(kind, wanted, lambda: _run(editor, kind, text, path, item))


def put(kind: str, text: str, path: Path, value: Any) -> str:
    """The text with a value at a path. Of a mapping that is there already, keys that `value` lacks stay."""
    wanted = _put(copy.deepcopy(read(kind, text)), path, value)
    if wanted == read(kind, text) and at(wanted, path) is not None:
        return text
    editor: Callable[..., str] = {"toml": tomltext.put, "yaml": yamltext.put}.get(kind, _json_put)
    return _checked(kind, wanted, lambda: _run(editor, kind, text, path, value))


def drop(kind: str, text: str, path: Path, kept: Any = None) -> str:
    """The text without what is at a path, nor what holds nothing else; as it was when there is nothing.

    A container that is in `kept` too (what the text said before there was anything of ours) stays, though it is empty.
    """
    value = read(kind, text)
    if at(value, path) is None:
        return text
    emptied = _emptied(value, path, kept)
    wanted = _without(copy.deepcopy(value), emptied)
    if kind not in ("toml", "yaml"):
        return _checked(kind, wanted, lambda: _run(_json_drop, kind, text, emptied))
    bare = _emptied(value, path, None)
    less = _without(copy.deepcopy(value), bare)
    editor = tomltext.drop if kind == "toml" else yamltext.drop
    result = _checked(kind, less, lambda: _run(editor, kind, text, bare))
    # These editors take empty parents along.
    return result if bare == emptied else put(kind, result, emptied[:-1], at(wanted, emptied[:-1]))


def dump(kind: str, path: Path, value: Any) -> str:
    """A text that says just this, to be pasted by hand."""
    text = append(kind, "", path, value) if not isinstance(value, Mapping) else put(kind, "", path, value)
    return text.rstrip("\n")


def at(value: Any, path: Path) -> Any:
    """What is at a path; None where there is nothing."""
    for key in path:
        if isinstance(key, int):
            value = value[key] if isinstance(value, list) and -1 < key < len(value) else None
        else:
            value = value.get(key) if isinstance(value, Mapping) else None
    return value


def blank(text: str) -> bool:
    """Whether a text says nothing at all."""
    return not text.strip(" \t\r\n\ufeff")


def _run(editor: Callable[..., str], kind: str, text: str, path: Path, *rest: Any) -> str:
    """Call the editor of a format."""
    if kind in ("toml", "yaml"):
        return editor(text, path, *rest)
    return editor(Text("{}\n" if blank(text) else text, lenient=kind == "jsonc"), path, *rest)


def _checked(kind: str, wanted: Any, edit: Callable[[], str]) -> str:
    """The result of an edit that means what was wanted."""
    try:
        result = edit()
        same = read(kind, result) == wanted
    except (ValueError, RecursionError) as error:
        raise EditError(str(error)) from error
    if not same:
        raise EditError("the result would change what others wrote")
    return result


def _json_append(document: Text, path: Path, item: Any) -> str:
    node, rest = _reached(document, path)
    if rest:
        return document.append(node, _key(rest[0]), _nested(rest[1:], [item]))
    if not isinstance(node.value, list):
        raise JsonError(f"{_named(path)} is not a list")
    return document.append(node, "", item)


def _json_put(document: Text, path: Path, value: Any) -> str:
    node, rest = _reached(document, path)
    if rest:
        return document.append(node, _key(rest[0]), _nested(rest[1:], value))
    if not isinstance(value, Mapping):
        return document.replace(node, value)
    if not isinstance(node.value, dict):
        raise JsonError(f"{_named(path)} is not an object")
    for key, inner in value.items():
        document = Text(_json_put(document, [*path, key], inner), lenient=document.lenient)
    return document.text


def _json_drop(document: Text, path: Path) -> str:
    parent, rest = _reached(document, path[:-1])
    child = None if rest else _child(parent, path[-1])
    if child is None:
        raise JsonError(f"{_named(path)} is missing")
    return document.drop(parent, child)


def _reached(document: Text, path: Path) -> tuple[Node, Path]:
    """The node as far along a path as there is one, and what of the path is left."""
    node = document.root
    for depth, key in enumerate(path):
        if not isinstance(node.value, list if isinstance(key, int) else dict):
            raise JsonError(f"{_named(path[:depth]) or 'the top level'} is not {_kind(key)}")
        child = _child(node, key)
        if child is None:
            return node, path[depth:]
        node = child
    return node, ()


def _child(node: Node, key: str | int) -> Node | None:
    if isinstance(key, str):
        return node.member(key)
    return node.children[key] if key < len(node.children) else None


def _key(key: str | int) -> str:
    if isinstance(key, int):
        raise JsonError(f"there is no number {key} in a list")
    return key


def _kind(key: str | int) -> str:
    return "a list" if isinstance(key, int) else "an object"


def _named(path: Path) -> str:
    return ".".join(map(str, path))


def _nested(path: Path, value: Any) -> Any:
    for key in reversed(path):
        value = {_key(key): value}
    return value


def _appended(value: Any, path: Path, item: Any) -> Any:
    """A value with one more item in the list at a path."""
    node = _opened(value, path[:-1]) if path else value
    found = at(value, path)
    if found is None and path:
        _own(node, path[-1], [item])
    elif isinstance(found, list):
        found.append(item)
    else:
        raise EditError(f"{_named(path)} is not a list")
    return value


def _put(value: Any, path: Path, new: Any) -> Any:
    """A value with another at a path."""
    node, there = _opened(value, path[:-1]), at(value, path)
    if isinstance(new, Mapping) and isinstance(there, dict):
        for key, inner in new.items():
            _put(value, [*path, key], inner)
    elif isinstance(new, Mapping) and there is not None:
        raise EditError(f"{_named(path)} is not an object")
    else:
        _own(node, path[-1], copy.deepcopy(new))
    return value


def _opened(value: Any, path: Path) -> Any:
    """The container at a path; mappings that are missing are made."""
    node = value
    for depth, key in enumerate(path):
        if isinstance(node, dict) and isinstance(key, str):
            if node.get(key) is None:
                node[key] = {}
            node = node[key]
        elif isinstance(node, list) and isinstance(key, int) and key < len(node):
            node = node[key]
        else:
            raise EditError(f"{_named(path[:depth]) or 'the top level'} is not {_kind(key)}")
    return node


def _own(node: Any, key: str | int, value: Any) -> None:
    if not (isinstance(node, dict) and isinstance(key, str)) and not (isinstance(node, list) and isinstance(key, int)):
        raise EditError(f"there is no place for {key!r}: what should hold it is not {_kind(key)}")
    holder: Any = node
    holder[key] = value


def _emptied(value: Any, path: Path, kept: Any) -> Path:
    """The path of the outermost container below the root that would be empty without what is at `path`, and was not
    there before.
    """
    while len(path) > 1 and len(at(value, path[:-1])) == 1 and not _has(kept, path[:-1]):
        path = path[:-1]
    return path


def _has(value: Any, path: Path) -> bool:
    """Whether there is something at a path, be it nothing (null)."""
    holder = at(value, path[:-1])
    return (
        isinstance(holder, Mapping) and path[-1] in holder if isinstance(path[-1], str) else at(value, path) is not None
    )


def _without(value: Any, path: Path) -> Any:
    node: Any = at(value, path[:-1])
    del node[path[-1]]
    return value
