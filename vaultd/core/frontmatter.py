"""Frontmatter: read leniently, write by changing only the bytes of our own values.

Reading never fails: what does not parse gives no values and the reason. What values mean: core/yamltext.py.

Writing never formats a page anew. `splice` replaces the value bytes of the named keys, adds missing keys before the
closing fence, and refuses (ValueError with the reason) when it could not do that without touching something else.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import yaml

from vaultd.core import yamltext
from vaultd.core.keys import OWN_KEYS
from vaultd.core.yamltext import Scalar

__all__ = [
    "LIMIT",
    "Meta",
    "Page",
    "Parts",
    "Scalar",
    "Value",
    "body",
    "body_hash",
    "dump",
    "parse",
    "splice",
    "split",
]

LIMIT = 65_536
"""Bytes of frontmatter that are read; a longer one counts as unparsable."""

Value: TypeAlias = Scalar | Sequence[Scalar]

_BOM = b"\xef\xbb\xbf"
_OPEN = re.compile(rb"---[ \t]*\r?\n")
_CLOSE = re.compile(rb"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_KEY_LINE = re.compile(rb"\s*(?:\"[^\"]*\"|'[^']*'|[^\s:#][^:]*)\s*:(?:\s|\Z)")
_KEY_FIRST = re.compile(rb"[A-Za-z_][\w-]*:[ \r\n]")
_ITEM = re.compile(r"[ ]*-[ ]+\Z")


class Parts(NamedTuple):
    """A page cut at its fences; joined again it is the page, byte for byte.

    Without frontmatter (also when the closing fence is missing) everything after the BOM is `body`.
    """

    bom: bytes
    fence_open: bytes
    yaml: bytes
    fence_close: bytes
    body: bytes


@dataclass(frozen=True, slots=True)
class Meta:
    """What the frontmatter says. `error` is why it could not be read, `has` whether there is one at all."""

    values: dict[str, object]
    error: str | None
    has: bool


class Page(NamedTuple):
    """A page as read: its frontmatter and the text after it."""

    meta: Meta
    body: str


def split(data: bytes) -> Parts:
    """Cut a page at its fences: `---` alone on the first line, `---` or `...` alone on a later one."""
    bom = _BOM if data.startswith(_BOM) else b""
    start = len(bom)
    opening = _OPEN.match(data, start)
    closing = _CLOSE.search(data, opening.end()) if opening else None
    if opening is None or closing is None:
        return Parts(bom, b"", b"", b"", data[start:])
    inner = data[opening.end() : closing.start()]
    return Parts(bom, opening.group(), inner, closing.group(), data[closing.end() :])


def parse(data: bytes) -> Page:
    """Read a page; never raises.

    Bytes that are not UTF-8 become U+FFFD in the body. Two rules over prose at the top are no frontmatter: the body is
    then the whole page. With an `error` the values are empty, save for a key that stands twice (the last one counts).
    """
    parts = split(data)
    if not parts.fence_open:
        return Page(Meta({}, None, False), _text(parts.body))
    root = None
    try:
        root = yamltext.compose(_decode(parts.yaml))
        if root is not None and not isinstance(root, yaml.MappingNode):
            return Page(Meta({}, None, False), _text(data[len(parts.bom) :]))
        values, twice = yamltext.mapping(root) if root is not None else ({}, None)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if root is None and _is_prose(parts.yaml):
            return Page(Meta({}, None, False), _text(data[len(parts.bom) :]))
        return Page(Meta({}, _reason(error), True), _text(parts.body))
    return Page(Meta(values, f"the key {twice!r} stands twice" if twice else None, True), _text(parts.body))


def body(data: bytes) -> str:
    """The body of a page as `parse` gives it, in a fraction of the time where a key opens the frontmatter: then it is
    one, whatever follows.
    """
    parts = split(data)
    return _text(parts.body) if not parts.fence_open or _KEY_FIRST.match(parts.yaml) else parse(data).body


def dump(values: Mapping[str, object]) -> str:
    """A fresh frontmatter block, fences included; `parse` gives the same values back, in the same order.

    Values are scalars, lists and mappings of such. ValueError for anything else, for text no file can hold and for
    more than `LIMIT` bytes.
    """
    block = "".join(f"{line}\n" for line in yamltext.lines(values))
    if len(block.encode()) > LIMIT:
        raise ValueError(f"the frontmatter would be longer than {LIMIT} bytes")
    return f"---\n{block}---\n"


def body_hash(body: str) -> str:
    """The value of `generated` for a page whose body, as `parse` gives it, is this: twelve hex digits of its sha256."""
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()[:12]


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
        raise ValueError("the frontmatter is not closed" if _OPEN.match(parts.body) else "there is no frontmatter")
    if not meta.has:
        raise ValueError("what stands between the rules at the top is no frontmatter")
    if meta.error:
        raise ValueError(meta.error)
    foreign = sorted(set(values) - OWN_KEYS)
    if foreign:
        raise ValueError(f"{foreign[0]!r} is not a key of ours")
    text = _decode(parts.yaml)
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


def _decode(inner: bytes) -> str:
    if len(inner) > LIMIT:
        raise ValueError(f"it is longer than {LIMIT} bytes")
    return inner.decode()


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace")


def _is_prose(inner: bytes) -> bool:
    """Whether text between two rules was meant as text: its first line that is not blank or a comment has no key."""
    for line in inner.splitlines():
        if line.strip() and not line.lstrip().startswith(b"#"):
            return _KEY_LINE.match(line) is None
    return False


def _reason(error: Exception) -> str:
    """One line for the person; line numbers count from the opening fence."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    if isinstance(error, yaml.MarkedYAMLError):
        where = f"line {error.problem_mark.line + 2}: " if error.problem_mark else ""
        return where + (error.problem or "not YAML")
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    return str(error).partition("\n")[0]
