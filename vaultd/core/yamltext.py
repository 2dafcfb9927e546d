"""The YAML of frontmatter: text to values, values to text.

Reading follows YAML 1.2, made narrower where text would be lost: only true, false, null and plain decimal numbers are
more than strings; dates, times, `yes`, `0123` and `1e3` stay strings.

Writing quotes whatever YAML 1.1 or 1.2 could take for something else (`yes`, `12:30`, `0x1F`, `1e3`), so that other
programs read our pages as we do. Times stay plain, as Obsidian writes them; programs of YAML 1.1 take them for times,
which they are. A bare date may be a title, so it is quoted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import yaml

__all__ = ["Scalar", "compose", "lines", "mapping", "quote", "resolve", "scalar", "write"]

Scalar: TypeAlias = str | int | float | bool | None

_MAX_DEPTH = 64
_MAX_NODES = 40_000  # more than 64 KiB can hold without aliases
_MAX_KEY = 1000  # libyaml reads no longer key in this notation

NULL = re.compile(r"(?:~|null|Null|NULL|)\Z")
BOOL = re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")
INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,999})\Z")
FLOAT = re.compile(
    r"(?:[-+]?(?:(?:0|[1-9][0-9]*)\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
)

_PLAIN = re.compile(r"[^\W\d_](?:[\w\u0300-\u036f ./+()'&%=^$;@*!?<>~|-]|:(?=\S)|(?<=\S)#)*\Z")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[-+]\d{2}:\d{2})\Z")
_OTHER_1_1 = re.compile(r"(?:y|n|yes|no|on|off|true|false|null)\Z", re.IGNORECASE)
_ESCAPE = re.compile('["\\\\\x00-\x1f\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


class _Loader(yaml.CSafeLoader):
    """libyaml without the implicit types of YAML 1.1."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - PyYAML's own attribute, which its type stubs declare mutable


class _Budget:
    """Counts the nodes that are built: aliases can make few bytes into very many."""

    def __init__(self) -> None:
        self.left = _MAX_NODES

    def take(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise ValueError("the aliases make it too large")


def compose(text: str) -> yaml.Node | None:
    """The nodes of one YAML document, with their places in `text`; None for an empty one, else yaml.YAMLError."""
    loader = _Loader(text)
    try:
        node: yaml.Node | None = loader.get_single_node()
        return node
    finally:
        loader.dispose()


def mapping(node: yaml.MappingNode) -> tuple[dict[str, object], str | None]:
    """The values of a mapping, keys as they are written, and the last key that stands in it twice.

    Of such a key the last value counts. ValueError for tags on words, for keys that are not words, and for what is too
    deep or, through aliases, too large.
    """
    return _mapping(node, _Budget(), 0)


def scalar(node: yaml.ScalarNode) -> Scalar:
    """What a word means, by its quotes, its tag or itself; ValueError for a tag that is not YAML's own."""
    tag = node.tag.removeprefix("tag:yaml.org,2002:")
    if tag == "str":
        return str(node.value) if node.style else resolve(node.value)
    if tag in ("null", "bool", "int", "float", "timestamp"):
        return resolve(node.value)
    raise ValueError(f"line {node.start_mark.line + 2}: the tag {node.tag} is not read")


def _mapping(node: yaml.MappingNode, budget: _Budget, depth: int) -> tuple[dict[str, object], str | None]:
    values: dict[str, object] = {}
    twice = None
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise ValueError(f"line {key.start_mark.line + 2}: a key that is not a word")
        if key.value in values:
            twice = str(key.value)
        values[str(key.value)] = _build(value, budget, depth + 1)
    return values, twice


def _build(node: yaml.Node, budget: _Budget, depth: int) -> object:
    budget.take()
    if depth > _MAX_DEPTH:
        raise ValueError(f"it is nested more than {_MAX_DEPTH} deep")
    if isinstance(node, yaml.SequenceNode):
        return [_build(item, budget, depth + 1) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, budget, depth)[0]
    assert isinstance(node, yaml.ScalarNode)
    return scalar(node)


def resolve(text: str) -> Scalar:
    """What a plain (unquoted) word means: `text` itself unless it is null, a boolean or a plain decimal number."""
    if NULL.match(text):
        return None
    if BOOL.match(text):
        return text.lower() == "true"
    if INT.match(text):
        return int(text)
    if FLOAT.match(text):
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text


def lines(values: Mapping[str, object]) -> Iterator[str]:
    """The lines of a block mapping, without line ends: scalars, lists and mappings of such, in the order given.

    ValueError for values of other types, for text that no file can hold and for keys of more than 1,000 characters.
    """
    for key, value in values.items():
        yield from _entry(key, value, "")


def write(value: Scalar, *, flow: bool = False) -> str:
    """One line of YAML that reads back as `value`; the empty string for None outside a `flow` list.

    ValueError for a string with lone surrogates and for an integer of more than 1,000 digits.
    """
    if value is None:
        return "null" if flow else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if abs(value) >= 10**1000:
            raise ValueError("the number is too long for a page")
        return str(value)
    if isinstance(value, float):
        return _write_float(value)
    return str(value) if _is_plain(value, flow) else quote(value)


def quote(text: str) -> str:
    """`text` in double quotes on one line; ValueError when it holds lone surrogates, which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("the text holds half a character (a lone surrogate)") from error
    return '"' + _ESCAPE.sub(lambda found: _SHORT.get(found.group()) or f"\\u{ord(found.group()):04x}", text) + '"'


def _write_float(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    mantissa, exponent, power = repr(value).partition("e")
    return mantissa + ("" if "." in mantissa else ".0") + exponent + power


def _is_plain(text: str, flow: bool) -> bool:
    """Whether every YAML reader takes the unquoted text for this string.

    What starts with a digit is a number, a time or a hash in one dialect or another, so only times stay plain.
    """
    if _TIME.match(text):
        return not flow
    if not _PLAIN.match(text) or text.endswith(" ") or _OTHER_1_1.match(text):
        return False
    return not flow or text.replace(" ", "").isalnum()


def _entry(key: str, value: object, indent: str) -> Iterator[str]:
    """The lines of one key of a block mapping."""
    name = write(key)
    if len(name) > _MAX_KEY:
        raise ValueError("a key is too long")
    if isinstance(value, Mapping) and value:
        yield f"{indent}{name}:"
        for inner_key, inner in value.items():
            yield from _entry(inner_key, inner, indent + "  ")
    elif isinstance(value, (list, tuple)) and value:
        yield f"{indent}{name}:"
        yield from _items(value, indent + "  ")
    else:
        yield f"{indent}{name}: {_inline(value)}".rstrip(" ")


def _items(values: Sequence[object], indent: str) -> Iterator[str]:
    for value in values:
        if isinstance(value, Mapping) and value:
            block = list(lines(value))
        elif isinstance(value, (list, tuple)) and value:
            block = list(_items(value, ""))
        else:
            block = ["null" if value is None else _inline(value)]
        yield f"{indent}- {block[0]}"
        yield from (f"{indent}  {line}" for line in block[1:])


def _inline(value: object) -> str:
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, (list, tuple)):
        return "[]"
    if value is None or isinstance(value, (str, int, float)):
        return write(value)
    raise ValueError(f"a page cannot hold a {type(value).__name__}")
