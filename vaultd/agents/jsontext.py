"""JSON as text: where its values stand, and edits that leave every other byte alone. Pure.

For configuration files of other programs, which are theirs and a person's to lay out. `lenient` also reads `//` and
`/* */` comments and trailing commas; without it they are faults, as they are for a program that reads strict JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = ["JsonError", "Node", "Text"]

_DEPTH = 100
_SPACE = re.compile(r"[ \t\r\n]*+")
_SKIP = re.compile(r"(?:[ \t\r\n]++|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_LITERAL = re.compile(r"-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?|true|false|null")


class JsonError(ValueError):
    """The text is not JSON, or not in a form that can be edited safely; says where and why."""


@dataclass(slots=True)
class Node:
    """A value and where it stands: from `start` up to `end`. A member of an object has its `key`, and `at` is the key's
    start; in a list `at` is the value's own start.
    """

    start: int
    end: int
    value: Any
    children: list[Node] = field(default_factory=list)
    key: str = ""
    at: int = 0

    def member(self, key: str) -> Node | None:
        """The member of an object; JsonError when the key stands there twice."""
        found = [child for child in self.children if child.key == key] if isinstance(self.value, dict) else []
        if len(found) > 1:
            raise JsonError(f"the key {key!r} stands twice in one object")
        return found[0] if found else None


class Text:
    """A JSON text and its tree. Edits give a new text; the tree belongs to the text it was made from."""

    def __init__(self, text: str, *, lenient: bool = False) -> None:
        self.text = text
        self.lenient = lenient
        self._skip = _SKIP if lenient else _SPACE
        start = self._after_space(1 if text.startswith("\ufeff") else 0)
        self.root = self._value(start, 0)
        if self._after_space(self.root.end) != len(text):
            raise self._fault(self._after_space(self.root.end), "more after the end")
        self.newline = "\r\n" if "\r\n" in text else "\n"

    def append(self, container: Node, key: str, value: Any) -> str:
        """The text with a new last member in a container of this tree, laid out as the rest; `key` is "" for a list."""
        label = self._dump(key) + self._colon if isinstance(container.value, dict) else ""
        if container.children:
            last = container.children[-1]
            comma, place = self._place_after(last)
            indent = self._line_indent(last.at) if self._is_broken(container.start, last.at) else None
            if indent is None and "//" in self.text[last.end : place]:
                indent = self._indent_at(container.start) + self._unit  # a line comment ends with its line
            separator = " " if self._colon == ": " else ""
            lead = separator if indent is None else self.newline + indent
            end = "," if comma is None else ""  # a trailing one stays one
            text = self._inserted(place, lead + label + self._render(value, indent) + end)
            return text if comma is None else text[:comma] + "," + text[comma:]
        broken = "\n" in self.text[self.root.start : self.root.end] or not self.root.children
        if not broken:
            return self._inserted(container.start + 1, label + self._render(value, None))
        outer = self._indent_at(container.start)
        indent = outer + self._unit
        inside = self.text[container.start + 1 : container.end - 1].rstrip(" \t\r\n")
        new = inside + self.newline + indent + label + self._render(value, indent) + self.newline + outer
        return self.text[: container.start + 1] + new + self.text[container.end - 1 :]

    def drop(self, container: Node, child: Node) -> str:
        """The text without one child of a container, and without the comma that goes with it."""
        index = next(i for i, other in enumerate(container.children) if other is child)
        following = container.children[index + 1] if index + 1 < len(container.children) else None
        before = container.children[index - 1] if index else None
        if before is not None and not self.text[before.end : child.at].strip(" \t\r\n,"):
            return self.text[: before.end] + self.text[child.end :]
        if following is not None and not self.text[child.end : following.at].strip(" \t\r\n,"):
            return self.text[: child.at] + self.text[following.at :]
        return self._drop_between_comments(child, before)

    def replace(self, node: Node, value: Any) -> str:
        """The text with one value instead of another."""
        return self.text[: node.start] + self._render(value, None) + self.text[node.end :]

    @property
    def _colon(self) -> str:
        """How this text separates key and value: `: `, but `:` where it has no such space."""
        return ":" if '":' in self.text and '": ' not in self.text else ": "

    @property
    def _unit(self) -> str:
        """One step of indentation: the first member's, else two spaces."""
        for child in self.root.children[:1]:
            if self._is_broken(self.root.start, child.at):
                return self._line_indent(child.at) or "  "
        return "  "

    def _render(self, value: Any, indent: str | None) -> str:
        """A value as text: broken into lines from a given indentation, or on one line."""
        if indent is None:
            comma = ", " if self._colon == ": " else ","
            return json.dumps(value, ensure_ascii=False, separators=(comma, self._colon))
        text = json.dumps(value, ensure_ascii=False, indent=self._unit, separators=(",", self._colon))
        return text.replace("\n", self.newline + indent)

    def _dump(self, key: str) -> str:
        return json.dumps(key, ensure_ascii=False)

    def _inserted(self, place: int, new: str) -> str:
        return self.text[:place] + new + self.text[place:]

    def _place_after(self, last: Node) -> tuple[int | None, int]:
        """Where a comma must go after the last child (None: there is one), and where the new child may follow."""
        gap = self._after_space(last.end)
        if self.text[gap] == ",":
            return None, gap + 1
        comments = self.text[last.end : gap].rstrip(" \t\r\n")
        return last.end, last.end + len(comments)

    def _drop_between_comments(self, child: Node, before: Node | None) -> str:
        """Comments stand around a child: only the child goes, and one comma."""
        after = self._after_space(child.end)
        rest = self.text[child.end : after] + self.text[after:].removeprefix(",")
        alone = rest.lstrip(" \t").startswith(("\n", "\r\n"))  # else the next would end up in a line comment before it
        begin = self._line_start(child.at) if alone else child.at
        if self.text[after] == ",":
            return self.text[:begin] + self.text[child.end : after] + self.text[after + 1 :]
        text = self.text[:begin] + self.text[child.end :]
        if before is not None:
            comma = self._after_space(before.end)
            text = text[:comma] + text[comma + 1 :]
        return text

    def _line_start(self, place: int) -> int:
        """Where the line end before a place is, if nothing else stands between the two; else the place."""
        end = self.text.rfind("\n", 0, place)
        if end < 0 or self.text[end + 1 : place].strip(" \t"):
            return place
        return end - 1 if self.text[:end].endswith("\r") else end

    def _is_broken(self, start: int, end: int) -> bool:
        """Whether a line ends between two places."""
        return "\n" in self.text[start:end]

    def _line_indent(self, place: int) -> str:
        """What stands before a place on its line, if that is blank."""
        before = self.text[self.text.rfind("\n", 0, place) + 1 : place]
        return before if not before.strip(" \t") else self._indent_at(place)

    def _indent_at(self, place: int) -> str:
        """The indentation of the line that a place is on."""
        line = self.text[self.text.rfind("\n", 0, place) + 1 : place].lstrip("\ufeff")
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _after_space(self, place: int) -> int:
        """The place after space (and, when lenient, comments)."""
        found = self._skip.match(self.text, place)
        return found.end() if found else place

    def _value(self, start: int, depth: int) -> Node:
        """The value that starts at a place."""
        if depth > _DEPTH:
            raise self._fault(start, "nested too deep")
        first = self.text[start : start + 1]
        if first == "{":
            return self._container(start, depth, {}, "}")
        if first == "[":
            return self._container(start, depth, [], "]")
        if first == '"':
            value, end = self._string(start)
            return Node(start, end, value, at=start)
        found = _LITERAL.match(self.text, start)
        if found is None:
            raise self._fault(start, "a value is missing")
        try:
            return Node(start, found.end(), json.loads(found[0]), at=start)
        except ValueError as error:
            raise self._fault(start, str(error)) from error

    def _container(self, start: int, depth: int, value: Any, closer: str) -> Node:
        """An object or a list."""
        node = Node(start, 0, value, at=start)
        place = self._after_space(start + 1)
        while self.text[place : place + 1] != closer:
            if node.children:
                place = self._comma(place, closer)
                if self.text[place] == closer:
                    break
            for child in self._children(place, depth, closer):
                node.children.append(child)
                if closer == "}":
                    value[child.key] = child.value
                else:
                    value.append(child.value)
                place = self._after_space(child.end)
        node.end = place + 1
        return node

    def _children(self, place: int, depth: int, closer: str) -> Iterator[Node]:
        """The one child at a place, with its key if it has one."""
        if closer == "]":
            yield self._value(place, depth + 1)
            return
        if self.text[place : place + 1] != '"':
            raise self._fault(place, "a key is missing")
        key, end = self._string(place)
        colon = self._after_space(end)
        if self.text[colon : colon + 1] != ":":
            raise self._fault(colon, "a colon is missing")
        child = self._value(self._after_space(colon + 1), depth + 1)
        child.key, child.at = key, place
        yield child

    def _comma(self, place: int, closer: str) -> int:
        """The place after a comma; a trailing one is allowed only where comments are."""
        if self.text[place : place + 1] != ",":
            raise self._fault(place, "a comma or a closing bracket is missing")
        after = self._after_space(place + 1)
        if self.text[after : after + 1] == closer and not self.lenient:
            raise self._fault(place, "a comma too many")
        if after >= len(self.text):
            raise self._fault(after, "it ends too early")
        return after

    def _string(self, start: int) -> tuple[str, int]:
        """The string at a place, and where it ends."""
        try:
            return json.decoder.scanstring(self.text, start + 1, True)  # type: ignore[attr-defined, no-any-return]  # not in the stubs
        except ValueError as error:
            raise self._fault(start, "a string never ends or is broken") from error

    def _fault(self, place: int, what: str) -> JsonError:
        line = self.text.count("\n", 0, place) + 1
        return JsonError(f"line {line}: {what}")
