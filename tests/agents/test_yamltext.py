"""Edits of YAML as text: what is not edited stays, byte for byte."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from vaultd.agents.textedit import NOTHING, at, merged, same
from vaultd.agents.yamltext import YamlError, append, drop, put, read

calm = settings(max_examples=examples(120), deadline=None, suppress_health_check=[HealthCheck.too_slow])

OURS = {"command": "/x/vaultd-hook an_agent on_end", "timeout": 5}
SERVER = {"command": "/x/vaultd", "args": ["mcp"], "env": {"A": "1"}, "enabled": True}
TEXTS = [
    "model: x # c\n",
    "a: 1",
    "---\n# c",
    '\ufeffmodel: "x"\r\n\r\nmcp_servers:\r\n    other:\r\n        url: u\r\n',
    "hooks:\n  # theirs\n  on_end:\n  - command: x # y\n    z: [1]\n  # tail\n\n  on_start:\n  -\n    command: z\nq: 1",
    "hooks:\n    on_end:\n        - - 1\n          - 2\n# tail\n\n",
    "a: |\n  hooks:\n   on_end: []\n\n\n# tail\n",
    "a: &x\n  b: 1\nc: *x\nd:\n  <<: *x\nd2: !!str 1\n",
    "%YAML 1.1\n---\n? a\n: 1\n? b\n...\n",
]


@pytest.mark.parametrize("text", ["", "\ufeff", *TEXTS])
def test_what_is_put_in_goes_out_again_without_a_trace(text: str) -> None:
    longer = append(text, ("hooks", "on_end"), OURS)
    hooks = read(longer)["hooks"]["on_end"]
    assert hooks[-1] == OURS and stay(text, longer)
    assert drop(longer, ("hooks", "on_end", len(hooks) - 1)) == text
    longer = put(text, ("mcp_servers", "vaultd"), SERVER)
    assert read(longer)["mcp_servers"]["vaultd"] == SERVER and stay(text, longer)
    assert put(longer, ("mcp_servers", "vaultd"), SERVER) == longer
    assert drop(longer, ("mcp_servers", "vaultd")) == text
    assert longer.endswith("\n") == (text in ("", "\ufeff") or text.endswith("\n"))
    assert longer.count("\r\n") in (0, longer.count("\n"))


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("a:\n- 1\n", "a:\n- 1\nh:\n  e:\n  - k: w\n    l:\n    - on-end\n"),
        ("a:\n    b: 1\nh:\n", "a:\n    b: 1\nh:\n    e:\n        - k: w\n          l:\n              - on-end\n"),
        ("h: {} # c\n# d\nb: 1", "h: # c\n  e:\n    - k: w\n      l:\n        - on-end\n# d\nb: 1"),
        ("h:\n e: [ ]\n x:\n  - 1", "h:\n e:\n  - k: w\n    l:\n     - on-end\n x:\n  - 1"),
        ("h:\n  e: null\n", "h:\n  e:\n    - k: w\n      l:\n        - on-end\n"),
        ("{}\n", "h:\n  e:\n    - k: w\n      l:\n        - on-end\n"),
        ("h:\r\n  e:\r\n  - x", "h:\r\n  e:\r\n  - x\r\n  - k: w\r\n    l:\r\n    - on-end"),
    ],
)
def test_what_is_new_is_laid_out_as_its_neighbours(text: str, result: str) -> None:
    assert append(text, ("h", "e"), {"k": "w", "l": ["on-end"]}) == result


def test_ours_goes_from_between_those_of_others() -> None:
    theirs = "# top\nhooks:\n  e: # c\n  - command: a\n"
    after = "  # of b\n  -\n    # d\n    command: b\n  f:\n  - c: d\n"
    text = append(theirs, ("hooks", "e"), OURS) + after
    assert [hook["command"] for hook in read(text)["hooks"]["e"]] == ["a", OURS["command"], "b"]
    assert drop(text, ("hooks", "e", 1)) == theirs + after
    assert drop(text, ("hooks", "e", 2)).endswith("5\n  # of b\n  f:\n  - c: d\n")
    assert drop(text, ("hooks", "e", 3)) == drop(text, ("hooks", "x")) == drop(text, ("top", 0)) == text


def test_values_change_where_they_stand() -> None:
    text = "m:\n  v:\n    command: 'old' # c\n    args:\n    # of args\n    - a\n    - b\n    env: {}\n# end\n"
    value = {"command": "it's", "args": ["c"], "env": {"A": "yes"}, "new": True}
    rows = ["m:", "  v:", '    command: "it\'s" # c', "    args:", "    # of args", "    - c", "    env:"]
    rows += ['      A: "yes"', "    new: true", "# end", ""]
    assert put(text, ("m", "v"), value) == "\n".join(rows)
    assert put("a: [x, y] # c\n", ("a",), ["z z"]) == 'a: ["z z"] # c\n'
    assert put("a: |\n  x\n  y\nb: 1\n", ("a",), "w") == "a: w\nb: 1\n"
    assert put("a:\n- x\n- y: 1\n  z: 2\n", ("a", 1), {"z": 3, "q": 4}) == "a:\n- x\n- y: 1\n  z: 3\n  q: 4\n"
    assert put("a:\n- x # c\n", ("a", 0), "w") == "a:\n- w # c\n"


def test_what_is_empty_then_goes_too_but_for_comments_around_it() -> None:
    text = "a: 1\nh:\n  # mine\n  e:\n  - k: 1\n    # ours\n    l: 2\n# tail\n"
    assert drop(text, ("h", "e", 0)) == "a: 1\n  # mine\n# tail\n"
    assert drop("h: {e: {k: 1}}\nb: 1", ("h", "e", "k")) == "b: 1"
    assert drop("l:\n- a: 1\n  b: 2\n- c: 1\n", ("l", 0, "a")) == "l:\n- b: 2\n- c: 1\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [("h: {f: 1}", 1), ("a: 1\nh:\n  e: [x]\n", 3), ("h: &x\n  e: []\n", 1), ("h: !!map\n  e: []\n", 1),
     ("b: &x {e: []}\nh: *x\n", 2), ("b: &x {}\nh:\n  <<: *x\n  f: 1\n", 3), ("a: 1\nh:\n  f: 1\nh:\n  f: 2\n", 4),
     ("a: 1\n---\nb: 1\n", 2), ("h:\n\te: 1\n", 2), ("h:\n  e: 1\n", 2), ("h: text\n", 1), ("- a\n", 1),
     ("a: [\n", 2), ("h: { # c\n }\n", 1), ("h: {<<: *x}", 1)]
)  # fmt: skip
def test_other_forms_are_refused_with_their_line(text: str, line: int) -> None:
    with pytest.raises(YamlError, match=f"^line {line}: "):
        append(text, ("h", "e"), OURS)


@pytest.mark.parametrize("value", ["\ud800", {"a": object()}, {"a": {"b": 1}}, b"x", float("nan")])
def test_values_that_cannot_be_written_are_refused(value: Any) -> None:
    with pytest.raises(YamlError):
        put("a:\n  a: 1\n", ("a",), value)


_NOISE = st.lists(st.sampled_from(["", "# - a: 1", "      # k: 1", "  "]), max_size=2)
_VALUES = st.sampled_from(
    ["1", "x y # c", "'#'", '"é"', "[a, {b: c}]", "", "|\n             t\n", ">-\n              #\n", ".nan"]
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A YAML text with a mapping `h` of lists, a mapping `m` of mappings and others, in some order."""
    unit, dash, rows = draw(st.sampled_from([1, 2, 4])), draw(st.sampled_from([0, 2, 3])), []

    def add(column: int, text: str) -> None:
        rows.extend([*draw(_NOISE), " " * column + text])

    def members(column: int, lead: str = "") -> None:
        for n, key in enumerate(draw(st.lists(st.sampled_from(["k", '"q k"', "1"]), unique=True, min_size=1))):
            add(column - len(lead) * (n == 0), (lead if n == 0 else "") + f"{key}: {draw(_VALUES)}")

    for top in draw(st.permutations(["h", "m", "k", "'z'"])):
        add(0, f"{top}:" if top != "k" else f"k: {draw(_VALUES)}")
        for inner in {"h": ["e", "f"], "m": ["e", "g"]}.get(top, []):
            add(unit, f"{inner}:{draw(st.sampled_from(['', ' # c']))}")
            if top == "m":
                members(unit * 2)
            for _ in range(draw(st.integers(1, 3)) if top == "h" else 0):
                members(unit + dash + 2, "- ")
    text = draw(st.sampled_from(["", "\ufeff", "---\n"])) + "\n".join([*rows, "end: 1", *draw(_NOISE)])
    return (text + draw(st.sampled_from(["", "\n"]))).replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


_WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(["no", "1", "~", "<<"])
_SCALARS = _WORDS | st.booleans() | st.integers(-9, 9) | st.lists(_WORDS, max_size=2)
_MAPS = st.dictionaries(
    st.sampled_from(["k", "o p", 'é"', "", "on"]), _SCALARS | st.dictionaries(_WORDS, _WORDS, max_size=2), max_size=4
)


def stay(text: str, result: str) -> bool:
    """Whether all lines of a text are in another one, in order."""
    rows = iter(result.removeprefix("\ufeff").splitlines())
    return all(row in rows for row in text.removeprefix("\ufeff").splitlines())


@calm
@given(documents(), _MAPS | _WORDS, st.sampled_from([("h", "e"), ("h", "new"), ("m", "e", "n"), ("h", "f", 0, "n")]))
def test_an_item_goes_in_and_out_of_any_document(text: str, item: Any, path: tuple[str | int, ...]) -> None:
    longer = append(text, path, item)
    items = at(read(longer), path)
    assert items[-1] == item and stay(text, longer)
    assert drop(longer, (*path, len(items) - 1)) == text


@calm
@given(documents(), _MAPS, st.sampled_from([("new",), ("m", "new"), ("m", "e"), ("h", "e", 0), ("h", "f", 0, "o"), ()]))
def test_a_mapping_is_put_into_any_document(text: str, value: Mapping[str, Any], path: tuple[str | int, ...]) -> None:
    before = at(read(text), path)
    try:
        result = put(text, path, value)
    except YamlError:
        assert "k" in value
        return
    assert same(at(read(result), path), merged({} if before is NOTHING else before, value))
    assert put(result, path, value) == result and ("k" in value or stay(text, result))
    for gone in [path] if before is NOTHING else [(*path, key) for key in value if key not in before]:
        result = drop(result, gone)
    assert result == text or (before is not NOTHING and "k" in value)


@calm
@given(documents(), st.sampled_from([("h", "e", 0), ("h",), ("m", "e"), ("m", "g", "k"), ("k",), ("h", "e", 1, "k")]))
def test_anything_can_be_dropped(text: str, path: tuple[str | int, ...]) -> None:
    try:
        result = drop(text, path)
    except YamlError:
        assert path[-1] == "k" and "#" in text  # a comment between the dash's line and the next key
        return
    assert stay(result, text) or path[-2:] == (1, "k")
    assert at(read(result), path) is NOTHING or path[:2] == ("h", "e")  # the next item has that number then


@calm
@given(st.text("[]{}:-#&*!|>?%'\"\\ \n\r\tabk1<~\x85\ufeff", max_size=25) | st.text(max_size=20), st.text(max_size=2))
def test_any_text_is_edited_or_refused(text: str, key: str) -> None:
    for edit in (append, put):
        with contextlib.suppress(YamlError):
            assert yaml.safe_load(drop(edit(text, ("a", key), OURS), ("k",)).removeprefix("\ufeff"))
    with contextlib.suppress(YamlError):
        assert drop(text, ("a",)) == text or "a" in read(text)
