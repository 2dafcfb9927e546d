"""Frontmatter, read leniently. What values mean: core/yamltext.py; how they are changed in place: core/splicing.py.

Reading never fails: what does not parse gives no values and the reason.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import yaml

from vaultd.core import yamltext
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
    "is_unclosed",
    "parse",
    "split",
]

LIMIT = 65_536
"""Bytes of frontmatter that are read; a longer one counts as unparsable."""

Value: TypeAlias = Scalar | Sequence[Scalar]

_BOM = b"\xef\xbb\xbf"
_OPEN = re.compile(rb"---[ \t]*\r?\n")
_CLOSE = re.compile(rb"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_KEY_LINE = re.compile(rb"\s*(?:(?:\"[^\"]*\"|'[^']*')\s*|[^\s:#][^:]*):(?:\s|\Z)")
_KEY_FIRST = re.compile(rb"[A-Za-z_][\w-]*:[ \r\n]")


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


def is_unclosed(parts: Parts) -> bool:
    """Whether a page begins as one with frontmatter, but nothing ends that."""
    return not parts.fence_open and _OPEN.match(parts.body) is not None


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
