"""Change the values of our own keys in a page's frontmatter, and nothing else.

`splice` replaces the value bytes of the named keys, adds missing keys before the closing fence, and refuses (ValueError
with the reason) when it could not do that without touching something else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

import yaml

from vaultd.core import yamltext
from vaultd.core.frontmatter import Meta, Parts, Value, is_unclosed, parse, split
from vaultd.core.keys import OWN_KEYS

__all__ = ["splice"]

_ITEM = re.compile(r"[ ]*-[ ]+\Z")


def splice(data: bytes, values: Mapping[str, Value]) -> bytes:
    """The page with these values under keys of ours; every other byte stays. Doing it again changes nothing.

    A value that is there already is left as it is written; a missing key is added before the closing fence (None adds
    nothing). ValueError, with the reason in words that can follow "the page was left alone:", where that is not
    safe: no frontmatter or one that does not parse, a key that stands twice, anchors, a value over several lines other
    than a plain list, a key that is not ours.
    """
    parts = split(data)
    meta = parse(data).meta
    text = _spliceable(parts, meta, values)
    eol = "\r\n" if parts.fence_open.endswith(b"\r\n") else "\n"
    old = {key.value: (key, node) for key, node in _pairs(text)}
    edits: list[_Edit] = []
    added = ""
    for key, value in values.items():
        if key not in old:
            added += "".join(line + eol for line in yamltext.lines({key: value})) if value is not None else ""
        elif not _same(meta.values[key], value):
            edits += _edits(text, *old[key], value, eol)
    inner = text
    for start, end, new in sorted(edits, reverse=True):
        inner = inner[:start] + new + inner[end:]
    result = b"".join(parts._replace(yaml=(inner + added).encode()))
    wanted = {**meta.values, **{key: value for key, value in values.items() if key in old or value is not None}}
    after = parse(result)
    if after.meta.error or not _same(after.meta.values, wanted) or split(result).body != parts.body:
        raise ValueError("the change cannot be made without touching other values")
    return result


_Edit: TypeAlias = tuple[int, int, str]


def _spliceable(parts: Parts, meta: Meta, values: Mapping[str, Value]) -> str:
    """The text between the fences; ValueError where nothing may be changed in it."""
    if not parts.fence_open:
        raise ValueError("the frontmatter is not closed" if is_unclosed(parts) else "there is no frontmatter")
    if not meta.has:
        raise ValueError("what stands between the rules at the top is no frontmatter")
    if meta.error:
        raise ValueError(meta.error)
    foreign = sorted(set(values) - OWN_KEYS)
    if foreign:
        raise ValueError(f"{foreign[0]!r} is not a key of ours")
    text = parts.yaml.decode()
    if any(getattr(event, "anchor", None) for event in yaml.parse(text, Loader=yaml.CSafeLoader)):
        raise ValueError("it uses anchors")
    return text


def _pairs(text: str) -> list[tuple[yaml.ScalarNode, yaml.Node]]:
    root = yamltext.compose(text)
    if root is None:
        return []
    if not isinstance(root, yaml.MappingNode) or root.flow_style or any(key.start_mark.column for key, _ in root.value):
        raise ValueError("the keys do not stand at the beginning of their lines")
    return list(root.value)


def _edits(text: str, key: yaml.Node, node: yaml.Node, value: Value, eol: str) -> list[_Edit]:
    """What to replace in `text` so that `key` has `value` instead of `node`."""
    known = {repr(_normal(yamltext.scalar(item))): _source(text, item) for item in _items(text, key, node)}
    if not _is_block_list(node):
        return [_one_line(text, node.start_mark.index, node.end_mark.index, _inline(value))]
    first = text.rindex("\n", 0, node.value[0].start_mark.index) + 1
    last = text.find("\n", node.value[-1].end_mark.index) + 1 or len(text)
    if isinstance(value, (list, tuple)) and value:
        lead = text[first : node.value[0].start_mark.index]
        items = [known.get(repr(_normal(item))) or yamltext.write(item) or "null" for item in value]
        return [(first, last, "".join(f"{lead}{item}{eol}" for item in items))]
    colon = text.index(":", key.end_mark.index) + 1
    return [_one_line(text, colon, colon, _inline(value)), (first, last, "")]


def _items(text: str, key: yaml.Node, node: yaml.Node) -> list[yaml.ScalarNode]:
    """The items of the list that `node` is (none for a word); ValueError where replacing it could destroy something."""
    name = f"the value of {key.value!r}"
    if isinstance(node, yaml.MappingNode):
        raise ValueError(f"{name} is a mapping")
    items = node.value if isinstance(node, yaml.SequenceNode) else []
    if any(not isinstance(item, yaml.ScalarNode) for item in items):
        raise ValueError(f"{name} is a list of more than words")
    if any("\n" in _source(text, part) for part in items or [node]):
        raise ValueError(f"{name} takes several lines")
    if not _is_block_list(node):
        if "\n" in _source(text, node):
            raise ValueError(f"{name} takes several lines")
        return list(items)
    position = text.find("\n", key.end_mark.index)
    between = text[key.end_mark.index : position]
    for item in items:
        line_end = text.find("\n", item.end_mark.index)
        lead, rest = text[position + 1 : item.start_mark.index], text[item.end_mark.index : line_end]
        if not _ITEM.match(lead) or rest.strip():
            raise ValueError(f"{name} is a list with more than its items in it")
        position = line_end
    if between.partition("#")[0].strip() != ":":
        raise ValueError(f"{name} is a list that does not start on a line of its own")
    return list(items)


def _is_block_list(node: yaml.Node) -> bool:
    return isinstance(node, yaml.SequenceNode) and not node.flow_style


def _source(text: str, node: yaml.Node) -> str:
    return text[node.start_mark.index : node.end_mark.index]


def _one_line(text: str, start: int, end: int, new: str) -> _Edit:
    """Put `new` where a value stands, or after the colon where none does; without a value no blank stays either."""
    if not new:
        start = len(text[:start].rstrip(" "))
    elif text[start - 1 : start] == ":":
        new = f" {new}"
    return start, end, new


def _inline(value: Value) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(yamltext.write(item, flow=True) for item in value) + "]"
    if value is None or isinstance(value, (str, int, float)):
        return yamltext.write(value)
    raise ValueError(f"a page cannot hold a {type(value).__name__}")


def _normal(value: object) -> object:
    """Plain strings and lists, so that `repr` tells apart what differs and nothing else (1 from true and from 1.0)."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [_normal(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _normal(item) for key, item in value.items()}
    return value


def _same(one: object, other: object) -> bool:
    return repr(_normal(one)) == repr(_normal(other))
