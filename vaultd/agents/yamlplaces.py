"""Where the parts of a YAML text in block style stand. Pure.

An offset is one of the text without a mark at its start. Nodes that could mean more than they show (anchors, aliases,
tags, merge keys, keys that stand twice) are refused on the way to a place, and left alone elsewhere.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml
from yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from vaultd.agents.textedit import Path, spelled

__all__ = ["FAULTS", "Document", "Place", "YamlError", "fault"]

_TAG = "tag:yaml.org,2002:"
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_KEEPS = re.compile(r"[|>][1-9]?\+")

FAULTS = (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, OverflowError, RecursionError)
"""What the reader raises for texts that are no YAML, and for tags whose values are not theirs."""


class YamlError(ValueError):
    """The text is not YAML, or not in a form that can be edited safely."""


class _Loader(yaml.SafeLoader):
    """Composes nodes that know their own place: an alias is a node of its own."""

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        if not self.check_event(yaml.AliasEvent):
            return super().compose_node(parent, index)
        event = self.get_event()  # type: ignore[no-untyped-call]  # the stubs lack its type
        return ScalarNode("alias", event.anchor, event.start_mark, event.end_mark)


def fault(error: BaseException) -> YamlError:
    """What the reader found, with its line."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    what = getattr(error, "problem", None) or str(error) or type(error).__name__
    return YamlError(f"line {mark.line + 1}: {what}" if mark else what)


class Place(NamedTuple):
    """A key (None at the top level and for an item of a list) and the node of its value (None in an empty text)."""

    key: Any
    node: Any


class Document:
    """A text and its nodes; they belong to the text they were made from."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(found.end() for found in _BREAK.finditer(text))]
        loader: Any = None
        try:
            loader = _Loader(text)
            self.root: Node | None = loader.get_single_node()
        except FAULTS as error:
            raise fault(error) from error
        finally:
            if loader is not None:
                loader.dispose()
        if self.root is not None and self.root.start_mark.index == self.root.end_mark.index:
            self.root = None  # nothing but `---`

    def walk(self, path: Path) -> list[Place]:
        """The places from the top level towards a path, as far as they are there."""
        places = [Place(None, self.root)]
        for step in path:
            node = places[-1].node
            self._check(node)
            if isinstance(step, str) and isinstance(node, MappingNode):
                found = [Place(*pair) for pair in node.value if pair[0].tag == _TAG + "str" and pair[0].value == step]
            elif isinstance(step, int) and isinstance(node, SequenceNode):
                found = [Place(None, inner) for n, inner in enumerate(node.value) if n == step]
            else:
                found = []
            if not found:
                return places
            places.append(found[0])
        self._check(places[-1].node)
        return places

    def form(self, path: Path, node: Node | None, what: str = "is written in a form that is not edited") -> YamlError:
        """The fault of a path at a node."""
        return YamlError(f"line {node.start_mark.line + 1 if node else 1}: {spelled(path)} {what}")

    def is_empty(self, node: Any) -> bool:
        """Whether a node stands for nothing: null, {} or []."""
        if isinstance(node, ScalarNode):
            return node.tag == _TAG + "null" and not node.style
        return not node.value

    def is_commented(self, node: Any) -> bool:
        """Whether a comment may stand within a node (or a `#` that is none: the two are not told apart)."""
        start, end = self.span(node)
        style = getattr(node, "style", None)
        if style in ("|", ">"):
            end = start + len(self.text[start:end].partition("\n")[0])
        return "#" in self.text[start:end] and (isinstance(node, CollectionNode) or style in ("|", ">"))

    def span(self, node: Any) -> tuple[int, int]:
        """Where a value starts and ends."""
        return int(node.start_mark.index), self.end(node)

    def _check(self, node: Any) -> None:
        """Refuses a node on the path that could mean more than it shows."""
        if node is None:
            return
        if self.text[node.start_mark.index : node.start_mark.index + 1] in ("&", "!", "*"):
            raise YamlError(f"line {node.start_mark.line + 1}: an anchor, an alias or a tag is not edited")
        seen = set()
        for key, _ in node.value if isinstance(node, MappingNode) else ():
            name = key.tag, key.value if isinstance(key, ScalarNode) else id(key)
            if name in seen or key.tag in (_TAG + "merge", "alias"):
                raise self.form((key.value,), key, "stands twice" if name in seen else "stands for other keys")
            seen.add(name)

    def end(self, node: Any, key: Node | None = None) -> int:
        """Where a value really ends: marks of collections in block style lie after the comments that follow."""
        while isinstance(node, CollectionNode) and not node.flow_style and node.value:
            key, node = node.value[-1] if isinstance(node, MappingNode) else (None, node.value[-1])
        start, end = node.start_mark.index, node.end_mark.index
        if start == end and key is not None and self.text[start - 1 : start] != ":":
            return int(key.end_mark.index)
        if getattr(node, "style", None) in ("|", ">") and not _KEEPS.match(self.text, start):
            end = start + len(self.text[start:end].rstrip(" \t\r\n"))
        return int(end)

    def start(self, places: list[Place], path: Path) -> int:
        """Where the key at a path stands, or the dash of an item."""
        key, parent, step = places[len(path)].key, places[len(path) - 1].node, path[-1]
        if isinstance(step, str):
            return int(key.start_mark.index)
        column, place = parent.start_mark.column, parent.start_mark.index
        if step:
            before, line = self.end(parent.value[step - 1]), self.line_start(parent.value[step].start_mark.index)
            while line > before and self.text[line + column : line + column + 1] != "-":
                line = self.line_start(line - 1)
            place = line + column
        return int(place)

    def line_start(self, place: int) -> int:
        """The start of the line that a place is on."""
        return self.starts[bisect.bisect_right(self.starts, place) - 1]

    def line_after(self, place: int) -> int:
        """The start of the line after a place; the place itself when it starts a line."""
        index = bisect.bisect_left(self.starts, place)
        return self.starts[index] if index < len(self.starts) else len(self.text)

    def steps(self, near: Any) -> tuple[int, int]:
        """How far mappings and lists are indented below their key: as next to a place, else as anywhere."""
        found: dict[bool, int] = {}
        for mapping in [*([near] if isinstance(near, MappingNode) else []), *self._mappings()]:
            for key, value in mapping.value:
                step = value.start_mark.column - key.start_mark.column
                is_list = isinstance(value, SequenceNode)
                block = isinstance(value, CollectionNode) and not value.flow_style
                if block and step >= (not is_list) and self.text[value.start_mark.index] not in "&!":
                    found.setdefault(is_list, step)
        unit = found.get(False, 2)
        return unit, found.get(True, unit)

    def _mappings(self) -> Iterator[MappingNode]:
        stack: list[Any] = [self.root]
        while stack:
            node = stack.pop()
            if isinstance(node, MappingNode):
                yield node
                stack.extend(inner for pair in reversed(node.value) for inner in reversed(pair))
            elif isinstance(node, SequenceNode):
                stack.extend(reversed(node.value))
