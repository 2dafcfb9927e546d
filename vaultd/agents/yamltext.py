"""YAML as text: members and items put in, changed and taken out, with every other byte left alone. Pure.

For configurations in block style. A path names a place: keys, and numbers for the items of a list. Whole lines go in
and out, indented as their neighbours are. Each result is read back and must say what it should; where it does not,
YamlError, and nothing is done.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml
from yaml.nodes import CollectionNode, MappingNode, SequenceNode

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
from vaultd.agents.yamlplaces import FAULTS, Document, Place, YamlError, fault

__all__ = ["YamlError", "append", "drop", "put", "read"]

_BOM = "\ufeff"
_COLON = re.compile(" *:")
_WORD = re.compile(r"(?!(?:y|n|yes|no|on|off|true|false|null)\Z)[A-Za-z][A-Za-z0-9_-]*", re.IGNORECASE)
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def read(text: str) -> dict[str, Any]:
    """What a text says; {} for one that says nothing."""
    try:
        value = yaml.safe_load(text.removeprefix(_BOM))
    except FAULTS as error:
        raise fault(error) from error
    if value is not None and not isinstance(value, dict):
        raise YamlError("line 1: the top level is not a mapping")
    return value or {}


def append(text: str, path: Path, item: Any) -> str:
    """The text with one more item in a list; a list that is missing or empty is made."""
    path = tuple(path)
    wanted = appended(read(text), path, item)
    bom, body = _parted(text)
    document = Document(body)
    places = document.walk(path)
    node = places[-1].node
    if wanted is NOTHING:
        raise document.form(path, node)
    if len(places) <= len(path):
        result = _added(document, path, places, [item])
    elif isinstance(node, SequenceNode) and node.value:
        result = _extended(document, path, node, [item])
    else:
        result = _replaced(document, path, places, [item])
    return _checked(bom + result, wanted, path)


def put(text: str, path: Path, value: Any) -> str:
    """The text with a value at a path; keys of mappings that the value does not name stay."""
    path = tuple(path)
    before = read(text)
    old = at(before, path)
    wanted = placed(before, path, merged(old, value))
    bom, body = _parted(text)
    if wanted is NOTHING or not (path or isinstance(value, Mapping)):
        document = Document(body)
        raise document.form(path, document.walk(path)[-1].node)
    return _checked(bom + _put(body, path, value, old), wanted, path)


def drop(text: str, path: Path) -> str:
    """The text without what is at a path, nor containers that are empty then; as it was when nothing is there.

    Comments go that stand between the lines of the value itself; those of a container around it stay.
    """
    path = tuple(path)
    before = read(text)
    if at(before, path) is NOTHING:
        return text
    if not path:
        raise YamlError("line 1: the top level cannot be dropped")
    outer = tuple(narrowed(before, path))
    bom, body = _parted(text)
    return _checked(bom + _dropped(Document(body), path, outer), without(before, outer), path)


def _checked(result: str, wanted: Any, path: Path) -> str:
    try:
        right = same(read(result), wanted)
    except YamlError:
        right = False
    if not right:
        raise YamlError(f"{spelled(path)} is written in a form that is not edited")
    return result


def _parted(text: str) -> tuple[str, str]:
    """The mark at the start, if there is one, and the rest."""
    body = text.removeprefix(_BOM)
    return text[: len(text) - len(body)], body


def _put(body: str, path: tuple[str | int, ...], value: Any, old: Any) -> str:
    """The body with a value at a path, one change after another."""
    if old is not NOTHING and same(merged(old, value), old):
        return body
    document = Document(body)
    places = document.walk(path)
    node = places[-1].node
    if len(places) <= len(path):
        return _added(document, path, places, value)
    if isinstance(value, Mapping) and (not path or (isinstance(node, MappingNode) and node.value)):
        for name, inner in value.items():
            body = _put(body, (*path, name), inner, at(old, [name]))
        return body
    return _replaced(document, path, places, value)


def _added(document: Document, path: Path, places: list[Place], value: Any) -> str:
    """The text with a value at a path that is there in part only."""
    node = places[-1].node
    for step in reversed(path[len(places) - 1 :]):
        if isinstance(step, int):
            raise document.form(path, node)
        value = {step: value}
    if node is None:
        return insert_lines(document.text, len(document.text), _rows(value, 0, document.steps(None)))
    if isinstance(node, MappingNode) and node.value:
        return _extended(document, path, node, value)
    return _replaced(document, path, places, value)


def _extended(document: Document, path: Path, node: CollectionNode, value: Any) -> str:
    """The text with more members or items at the end of a collection in block style."""
    if node.flow_style:
        raise document.form(path, node)
    rows = _rows(value, node.start_mark.column, document.steps(node))
    return insert_lines(document.text, document.line_after(document.end(node)), rows)


def _replaced(document: Document, path: Path, places: list[Place], value: Any) -> str:
    """The text with another value at the last place, which is no mapping that holds something."""
    key, node = places[-1].key, places[-1].node
    start, end = document.span(node)
    text, listed = document.text, isinstance(node, SequenceNode) and bool(node.value)
    block = listed and not node.flow_style
    if not document.is_empty(node) and (isinstance(node, MappingNode) or isinstance(value, Mapping)):
        raise document.form(path, node)
    if document.is_commented(node):
        raise document.form(path, node, "holds a comment that would be lost")
    if start < end == document.line_start(end):
        raise document.form(path, node)  # a text that ends with blank lines of its own
    if not _has_parts(value):
        inline = _inline(value)
    elif listed and not block and not any(map(_has_parts, value)):
        inline = f"[{', '.join(map(_inline, value))}]"  # it stays a list on one line
    else:
        inline = ""
    if inline and not block:
        return text[:start] + (" " if start == end else "") + inline + text[end:]
    if len(places) == 1:
        return _refilled(document, path, value)
    colon = _COLON.match(text, key.end_mark.index) if key else None
    if key is None or colon is None or (not block and "#" in text[colon.end() : start]):
        raise document.form(path, node)
    steps = document.steps(places[-2].node)
    column = key.start_mark.column + steps[not isinstance(value, Mapping)]
    if block:
        column, place = node.start_mark.column, document.line_start(start)
        text = remove_lines(text, place, document.line_after(end))
        place = min(place, len(text))
    else:
        place = document.line_after(end) - (end - colon.end())
        text = text[: colon.end()] + text[end:]
    if inline:
        return text[: colon.end()] + " " + inline + text[colon.end() :]
    return insert_lines(text, place, _rows(value, column, steps))


def _refilled(document: Document, path: Path, value: Any) -> str:
    """The text with another value instead of an empty top level that stands on lines of its own."""
    start, end = document.span(document.root)
    first, last = document.line_start(start), document.line_after(end)
    if document.text[first:start].strip() or document.text[end:last].strip():
        raise document.form(path, document.root)
    rest = remove_lines(document.text, first, last)
    return insert_lines(rest, min(first, len(rest)), _rows(value, 0, document.steps(None)))


def _dropped(document: Document, own: Path, path: Path) -> str:
    """The text without a place and those around it that hold nothing else; comments between them stay."""
    places = document.walk(own)
    if len(places) <= len(own) or places[len(path) - 1].node.flow_style:
        raise document.form(path, places[-1].node)
    text, (key, node) = document.text, places[len(path)]
    start, end = document.start(places, path), document.end(node, key)
    first, inner = document.line_start(start), document.line_start(document.start(places, own))
    comments = [line for line in text[start:inner].splitlines() if line.lstrip().startswith("#")]
    if not text[first:start].strip(" "):
        rest = remove_lines(text, first, document.line_after(end))
        return insert_lines(rest, min(first, len(rest)), comments) if comments else rest
    # The first key of an item, on the dash's line: the next key moves up to where it was.
    parent = places[len(path) - 1].node
    keys = [pair[0] for pair in parent.value] if isinstance(parent, MappingNode) else []
    after = keys[1].start_mark.index if len(keys) > 1 and keys[0] is key else start
    if text[first:start].strip(" -") or after == start or text[end:after].strip() or comments:
        raise document.form(path, node)
    return text[:start] + text[after:]


def _has_parts(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple) and bool(value)


def _rows(value: Any, column: int, steps: tuple[int, int]) -> list[str]:
    """The lines of a mapping or a list in block style from a column on; `steps`: how far those inside are indented."""
    rows: list[str] = []
    for key, inner in value.items() if isinstance(value, Mapping) else ((None, item) for item in value):
        lead = " " * column + ("-" if key is None else _inline(key) + ":")
        if not _has_parts(inner):
            rows.append(f"{lead} {_inline(inner)}")
        elif key is not None:
            rows += [lead, *_rows(inner, column + steps[not isinstance(inner, Mapping)], steps)]
        else:
            first, *more = _rows(inner, column + 2, steps)
            rows += [f"{lead} {first.lstrip(' ')}", *more]
    return rows


def _inline(value: Any) -> str:
    """A value without parts, on one line."""
    if isinstance(value, str):
        if _WORD.fullmatch(value):
            return value
        if any("\ud800" <= char <= "\udfff" for char in value):
            raise YamlError("a text holds half a character")
        return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04X}", json.dumps(value, ensure_ascii=False))
    if value is None or isinstance(value, bool | int | float) or value in ([], (), {}):
        return json.dumps(value)
    raise YamlError(f"YAML has no {type(value).__name__} here")
