"""Frontmatter: what is read, what is written, and every byte that is left alone."""

from __future__ import annotations

import base64
import json
import math
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from vaultd.core import yamltext
from vaultd.core.frontmatter import LIMIT, Value, body, body_hash, dump, parse, split
from vaultd.core.keys import OWN_KEYS
from vaultd.core.splicing import splice

RECORDED = Path(__file__).parents[1] / "data" / "frontmatter-cases.json"
CASES = {case["name"]: base64.b64decode(case["base64"]) for case in json.loads(RECORDED.read_text("utf-8"))["cases"]}

REFUSED = {
    "tab indent": "line 3",
    "no fm, hr at top": "no frontmatter",
    "no fm": "no frontmatter",
    "dup keys": "twice",
    "anchor/alias": "anchors",
    "colon in value": "line 2",
    "@ / backtick value": "line 2",
    "template {{x}}": "line 2",
}

ADDED: dict[str, Value] = {"salience": 1.5, "pinned": True, "entities": ["a b", "c: d"], "review": "it's # due"}
ADDED_LINES = [b"salience: 1.5", b"pinned: true", b"entities:", b"  - a b", b'  - "c: d"', b'review: "it\'s # due"']


def page(text: str) -> bytes:
    return text.encode()


def test_there_are_36_cases() -> None:
    assert len(CASES) == 36


@pytest.mark.parametrize("name", CASES)
def test_cut_at_the_fences_and_joined_again_it_is_the_page(name: str) -> None:
    assert b"".join(split(CASES[name])) == CASES[name]


@pytest.mark.parametrize("name", CASES)
def test_adding_keys_leaves_every_other_byte(name: str) -> None:
    data = CASES[name]
    if name in REFUSED:
        with pytest.raises(ValueError, match=REFUSED[name]):
            splice(data, ADDED)
        return
    changed = splice(data, ADDED)
    eol = b"\r\n" if b"\r\n" in data else b"\n"
    block = b"".join(line + eol for line in ADDED_LINES)
    assert changed.count(block) == 1
    assert changed.replace(block, b"") == data
    assert parse(changed).meta.values == {**parse(data).meta.values, **ADDED}
    assert splice(changed, ADDED) == changed


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("date", {"created": "2024-01-05"}),
        ("datetime T Z", {"at": "2024-01-05T10:20:30Z"}),
        ("time 12:30 sexagesimal", {"t": "12:30"}),
        ("CRLF", {"a": 1}),
        ("BOM", {"a": 1}),
        ("empty fm", {}),
        ("dup keys", {"a": 2}),
        ("wikilink unquoted", {"up": [["Parent Note"]]}),
        ("on/off/yes/no", {"a": "on", "b": "off", "c": "yes", "no": "NO"}),
        ("huge int", {"id": 20240105102030123456789, "oct": "0755", "z": "007"}),
        ("version float/exp", {"v": 1.1, "h": "1e3", "git": "12e45"}),
        ("null forms", {"a": None, "b": None, "c": None}),
        ("anchor/alias", {"a": [1, 2], "b": [1, 2]}),
        ("block scalar", {"desc": "l1\nl2\n", "f": "w1 w2"}),
        ("end with ...", {"a": 1}),
        ("--- with trailing space", {"a": 1}),
    ],
)
def test_what_is_read(name: str, values: dict[str, object]) -> None:
    meta = parse(CASES[name]).meta
    assert meta.has
    assert meta.values == values


def test_what_does_not_parse_has_a_reason_and_keeps_its_body() -> None:
    found = parse(CASES["colon in value"])
    assert found.meta.has
    assert found.meta.values == {}
    assert found.meta.error == "line 2: mapping values are not allowed in this context"
    assert found.body == "x\n"


def test_prose_between_two_rules_is_not_lost() -> None:
    for text in ("---\n\nJust text\n\n---\nmore\n", "---\nOnce upon a time\n\nfoo: bar: baz\n---\nx\n"):
        found = parse(page(text))
        assert found.body == text
        assert not found.meta.has
        assert found.meta.error is None


def test_a_list_between_two_rules_is_text() -> None:
    assert parse(b"---\n- a\n- b\n---\nx\n").body == "---\n- a\n- b\n---\nx\n"


def test_an_unclosed_fence_is_text_and_is_never_written() -> None:
    data = b"---\ntitle: x\n\nbody\n"
    assert not parse(data).meta.has
    assert parse(data).body == data.decode()
    with pytest.raises(ValueError, match="not closed"):
        splice(data, {"pinned": True})


@pytest.mark.parametrize(
    "bomb",
    [
        "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 10)}]\n" for n in range(9)),
        "a: &a [*a]\n",
        "a: " + "[" * 20_000 + "]" * 20_000 + "\n",
        "a:\n  " + "- " * 20_000 + "x\n",
        "a: " + "{b: " * 200 + "}" * 200 + "\n",
        "a: " + "x" * LIMIT + "\n",
        "a: !!python/object/apply:os.system\n",
        "a: \x00\n",
        "? [a]\n: b\n",
    ],
    ids=["aliases", "recursion", "flow depth", "block depth", "mapping depth", "length", "tag", "nul", "key"],
)
def test_hostile_frontmatter_gives_an_error_and_no_values(bomb: str) -> None:
    meta = parse(page(f"---\n{bomb}---\nx\n")).meta
    assert meta.has
    assert meta.error
    assert meta.values == {}


@given(
    st.binary(max_size=300).map(lambda data: b"---\n" + data)
    | st.text("-#:a \n\r\t[]{}&*!|>'\"%@`~").map(page)
    | st.text("-#:a \n\r\t[]{}&*!|>'\"%@`~.").map(lambda text: page(f"---\na: {text}\n---\nthe body"))
)
@settings(deadline=None)
def test_reading_never_fails(data: bytes) -> None:
    assert b"".join(split(data)) == data
    assert body(data) == parse(data).body
    parse(data + b"\n---\n")


# --- writing afresh

WORDS = """: # " ' @ - [ ] { } , & * ! | > % ` ~ ? = << yes no on y N null true 2026-01-01 2026-01-01T10:00:00+01:00
    0123 1e3 12e45 0x1F 0o7 1_000 12:30 .5 5. .inf .nan -1 +2 --- ... 🙂 日本 é"""
NASTY = st.sampled_from(
    [*WORDS.split(), "", "e\u0301", "\u2028", "\x85", "\xa0", "\ufeff", "\t", "\r", "\x00", "\x7f", " ", "\n"]
)
STRINGS = (
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
    | NASTY
    | st.lists(NASTY | st.sampled_from(["\n", " ", "a", "word"]), max_size=6).map("".join)
    | st.lists(NASTY, max_size=4).map(" ".join)
)
SCALARS = STRINGS | st.integers() | st.floats(allow_nan=False) | st.booleans() | st.none()
LISTS = st.lists(SCALARS, max_size=4)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(STRINGS, inner, max_size=3), max_leaves=6
)


def comes_back(values: dict[str, object]) -> None:
    text = dump(values)
    found = parse(page(text + "body\n"))
    assert found.meta.error is None
    assert repr(found.meta.values) == repr(values)
    assert found.body == "body\n"
    assert list(found.meta.values) == list(values)


@given(st.dictionaries(STRINGS, VALUES, max_size=5))
@settings(max_examples=examples(500), deadline=None)
def test_what_is_written_is_read_back(values: dict[str, object]) -> None:
    comes_back(values)


@pytest.mark.slow
@given(st.dictionaries(STRINGS, VALUES, max_size=5))
@settings(max_examples=10_000, deadline=None)
def test_what_is_written_is_read_back_ten_thousand_times(values: dict[str, object]) -> None:
    comes_back(values)


@given(STRINGS)
@settings(max_examples=examples(500), deadline=None)
def test_a_reader_of_yaml_1_1_reads_the_same_strings(text: str) -> None:
    if re.match(r"\d{4}-\d{2}-\d{2}", text):
        return  # a date there, on purpose
    block = dump({"key": text, "list": [text]}).removeprefix("---\n").removesuffix("---\n")
    assert yaml.safe_load(block) == {"key": text, "list": [text]}


LOOKS = """---
title: Fix the parser
created: 2026-11-29T10:12:13+01:00
session_id: "0123456789"
tags:
  - bug
  - core/parser
relations:
  causes:
    - gotchas/a.md
supersedes: []
summary:
salience: 1.0e-07
note: "a: b"
---
"""


def test_how_it_looks() -> None:
    values = {
        "title": "Fix the parser",
        "created": "2026-11-29T10:12:13+01:00",
        "session_id": "0123456789",
        "tags": ["bug", "core/parser"],
        "relations": {"causes": ["gotchas/a.md"]},
        "supersedes": [],
        "summary": None,
        "salience": 1e-07,
        "note": "a: b",
    }
    assert dump(values) == LOOKS


@pytest.mark.parametrize(
    "value", ["\ud800", 10**2000, object(), b"bytes", "x" * LIMIT], ids=["half", "number", "object", "bytes", "length"]
)
def test_what_a_page_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"hold|long"):
        dump({"a": value})
    with pytest.raises(ValueError, match="too long"):
        dump({"k" * 2000: 1})


def test_not_a_number_is_written_as_one() -> None:
    found = parse(page(dump({"a": math.nan}))).meta.values["a"]
    assert isinstance(found, float)
    assert math.isnan(found)


# --- changing values

OLD = """---
# about
title: 'Old title'   # why
tags: [a, "b c"]  # flow
aliases:
  - one
  - "two: 2"
  - three
pinned: false
summary:
custom: {keep: me}   # not ours
entities:
- x
---
body: stays
"""


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("title", "New: title", "'Old title'   # why", '"New: title"   # why'),
        ("title", None, "title: 'Old title'   # why", "title:   # why"),
        ("title", ["a", "b, c"], "'Old title'", '[a, "b, c"]'),
        ("pinned", True, "pinned: false", "pinned: true"),
        ("pinned", None, "pinned: false", "pinned:"),
        ("summary", "Said and done", "summary:", "summary: Said and done"),
        ("summary", 7, "summary:", "summary: 7"),
        ("tags", ["b c", "new"], '[a, "b c"]', "[b c, new]"),
        ("tags", [], '[a, "b c"]', "[]"),
        ("tags", None, 'tags: [a, "b c"]  # flow', "tags:  # flow"),
        ("aliases", ["two: 2", "four"], '  - one\n  - "two: 2"\n  - three\n', '  - "two: 2"\n  - four\n'),
        ("aliases", [], 'aliases:\n  - one\n  - "two: 2"\n  - three\n', "aliases: []\n"),
        ("aliases", None, 'aliases:\n  - one\n  - "two: 2"\n  - three\n', "aliases:\n"),
        ("aliases", "one", 'aliases:\n  - one\n  - "two: 2"\n  - three\n', "aliases: one\n"),
        ("entities", ["x", None], "- x\n", "- x\n- null\n"),
        ("updated", "2026-11-29T10:12:13Z", "- x\n---", "- x\nupdated: 2026-11-29T10:12:13Z\n---"),
        ("access_count", "2026-11-29", "- x\n---", '- x\naccess_count: "2026-11-29"\n---'),
    ],
)
def test_only_the_value_changes(key: str, value: object, old: str, new: str) -> None:
    for eol in ("\n", "\r\n"):
        for bom in ("", "\ufeff"):
            before = page(bom + OLD.replace("\n", eol))
            after = splice(before, {key: value})  # type: ignore[dict-item]  # the table holds every kind of value
            assert after == page(bom + OLD.replace(old, new).replace("\n", eol))
            assert splice(after, {key: value}) == after  # type: ignore[dict-item]  # as above


@pytest.mark.parametrize("key", ["title", "tags", "aliases", "pinned", "summary", "entities"])
def test_a_value_that_is_there_is_not_written_anew(key: str) -> None:
    values = parse(page(OLD)).meta.values
    assert splice(page(OLD), {key: values[key]}) == page(OLD)  # type: ignore[dict-item]  # read from a page


def test_nothing_is_added_for_none() -> None:
    assert splice(page(OLD), {"superseded_by": None}) == page(OLD)


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ("title: |\n  a\n  b\n", "several lines"),
        ("title: >-\n  a\n", "several lines"),
        ("title: a\n  b\n", "several lines"),
        ('title: "a\n  b"\n', "several lines"),
        ("title: [a,\n  b]\n", "several lines"),
        ("title: [[A]]\n", "more than words"),
        ("title:\n  - a: b\n", "more than words"),
        ("title: {a: b}\n", "mapping"),
        ("title:\n  a: b\n", "mapping"),
        ("title:\n  - a # why\n  - b\n", "more than its items"),
        ("title:\n  # why\n  - a\n", "more than its items"),
        ("title:\n  - a\n\n  - b\n", "more than its items"),
        ("title:\n  - |\n    a\n", "several lines"),
        ("title: x\nother: &a y\n", "anchors"),
        ("title: x\ntitle: y\n", "twice"),
        ("title: x\nother: !tag y\n", "tag"),
        ("{title: x}\n", "beginning of their lines"),
        ("  title: x\n  other: y\n", "beginning of their lines"),
        ("? title\n: x\n", "beginning of their lines"),
    ],
)
def test_what_would_destroy_something_is_refused(block: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        splice(page(f"---\n{block}---\nx\n"), {"title": "new"})


def test_foreign_keys_are_never_touched() -> None:
    with pytest.raises(ValueError, match="'custom' is not a key of ours"):
        splice(page(OLD), {"custom": "x"})


def test_a_frontmatter_that_would_grow_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="without touching"):
        splice(page(OLD), {"summary": "x" * LIMIT})


FOREIGN = [
    "# a comment",
    "custom: 'q'  # c",
    "up: [[A]]",
    "when: 12:30",
    "desc: |\n  l1\n\n  l2",
    "Ключ: é🙂",
    '"k: k": v',
    "",
]
OURS = st.sampled_from(sorted(OWN_KEYS))


@given(
    st.dictionaries(OURS, SCALARS | LISTS, max_size=4),
    st.dictionaries(OURS, SCALARS | LISTS, max_size=4),
    st.lists(st.sampled_from(FOREIGN), unique=True),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
@settings(max_examples=examples(300), deadline=None)
def test_any_values_are_changed_and_nothing_else(
    old: dict[str, object], new: dict[str, object], foreign: list[str], eol: str, first: bool
) -> None:
    ours = list(yamltext.lines(old))
    lines = [*foreign, *ours] if first else [*ours, *foreign]
    text = "".join(f"{line}\n" for line in lines).replace("\n", eol)
    before = page(f"---{eol}{text}---{eol}body{eol}{eol}")
    after = splice(before, new)  # type: ignore[arg-type]  # scalars and lists, as drawn
    assert parse(after).body == parse(before).body
    expected = {**parse(before).meta.values, **{k: v for k, v in new.items() if v is not None or k in old}}
    assert repr(parse(after).meta.values) == repr(expected)
    for line in foreign:
        assert page(line.replace("\n", eol) + eol) in after
    untouched = [line for key in old.keys() - new.keys() for line in yamltext.lines({key: old[key]})]
    assert all(page(line + eol) in after for line in untouched)
    assert splice(after, new) == after  # type: ignore[arg-type]  # as above


def test_the_hash_of_a_body_is_twelve_digits_of_its_sha256() -> None:
    assert body_hash("body\n") == "9e2ec912af5d"
