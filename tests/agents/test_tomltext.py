"""Edits of TOML as text: what is not edited stays, byte for byte."""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from vaultd.agents.textedit import NOTHING, at, merged, same
from vaultd.agents.tomltext import TomlError, append, drop, put, read

calm = settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])

OURS = {"event": "Stop", "command": "/x/vaultd-hook an_agent Stop", "timeout": 5}
SERVER = {"command": "/x/vaultd", "args": ["mcp"], "env": {"A": "1"}, "enabled": True}
TEXTS = [
    'model = "x" # c\n',
    "# only a comment\n",
    "a = 1",
    '\ufeffmodel = "x"\r\n\r\n[features]\r\nhooks = true\r\n',
    "[[hooks]] # theirs\nevent = 'x'\n\n  [hooks.env] # more\n  a = 1\n# tail\n\n[z]\nq = 1",
    '[mcp_servers.other]\nargs = [\n  "a", # ]\n  "b",\n]\n\n\n',
    'text = """\n[[hooks]]\n[mcp_servers.vaultd]\n"""\n',
    "\n\n",
]


@pytest.mark.parametrize("text", ["", "\ufeff", *TEXTS])
def test_what_is_put_in_goes_out_again_without_a_trace(text: str) -> None:
    longer = append(text, ("hooks",), OURS)
    hooks = read(longer)["hooks"]
    assert hooks == [*read(text).get("hooks", []), OURS] and longer.startswith(text)
    assert drop(longer, ("hooks", len(hooks) - 1)) == text
    longer = put(text, ("mcp_servers", "vaultd"), SERVER)
    assert read(longer)["mcp_servers"]["vaultd"] == SERVER and longer.startswith(text)
    assert put(longer, ("mcp_servers", "vaultd"), SERVER) == longer
    assert drop(longer, ("mcp_servers", "vaultd")) == text
    assert longer.endswith("\n") == (text in ("", "\ufeff") or text.endswith("\n"))
    assert longer.count("\r\n") in (0, longer.count("\n"))


def test_ours_goes_from_between_those_of_others() -> None:
    theirs = '[[hooks]]\nevent = "a"\n\n# next\n'
    after = '\n# of b\n[[hooks]]\nevent = "b"\n[hooks.env]\nx = 1\n'
    text = append(theirs, ("hooks",), {**OURS, "env": {"k": "v"}}) + "[hooks.more]\ny = 1\n" + after
    assert [hook["event"] for hook in read(text)["hooks"]] == ["a", "Stop", "b"]
    assert drop(text, ("hooks", 1)) == theirs + after
    assert drop(text, ("hooks", 3)) == text
    assert drop(drop(drop(text, ("hooks", 0)), ("hooks", 0)), ("hooks", 0)) == "\n# next\n\n# of b\n"


def test_values_change_on_their_own_lines() -> None:
    text = '[a]\nargs = [ # old\n  "x",\n]\n# mine\n"on"   =  1 # why\nenv = {A = "1"}\n[a.sub]\nk = 1'
    told = put(text, ("a",), {"args": ["y"], "on": False, "env": {"A": "2", "B": "3"}, "sub": {"k": 2}, "n w": -1})
    assert told == (
        '[a]\n"n w" = -1\nargs = ["y"]\n# mine\n"on"   =  false # why\nenv = {A = "2", B = "3"}\n[a.sub]\nk = 2'
    )
    assert put("[a]", ("a", "k"), "v") == '[a]\nk = "v"'
    assert put('[x]\ny = 1 # "\n', ("k",), "v") == 'k = "v"\n[x]\ny = 1 # "\n'
    assert put("[[h]]\n[[h]]\n[z]\n", ("h", 0, "env"), {"k": "v"}) == '[[h]]\n\n[h.env]\nk = "v"\n[[h]]\n[z]\n'


def test_what_is_empty_then_goes_too() -> None:
    text = "a = 1\n\n[features]\n# about\nhooks = true # ours\n\n[b]\n"
    assert drop(text, ("features", "hooks")) == "a = 1\n\n[b]\n"
    assert drop(text.replace("[b]", "[features.b]"), ("features", "hooks")) == (
        "a = 1\n\n[features]\n# about\n\n[features.b]\n"
    )
    assert drop("x = { y = { z = 1 } }\n", ("x", "y", "z")) == ""
    assert drop("[m]\n# theirs\n[m.v]\nk = 1\n", ("m", "v")) == "# theirs\n"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("hooks = []", ("hooks",)),
        ("hooks = [{a = 1}]", ("hooks",)),
        ("hooks = 1", ("hooks",)),
        ("[hooks]\na = 1", ("hooks",)),
        ("hooks.a = 1", ("hooks",)),
        ("a = {hooks = []}", ("a", "hooks")),
        ("a = 1", ()),
        ("a = [1]", ("a", 0)),
        ("a = ", ("hooks",)),
        ("a = 1\na = 2", ("hooks",)),
    ],
)
def test_other_forms_are_refused(text: str, path: tuple[str | int, ...]) -> None:
    with pytest.raises(TomlError):
        append(text, path, OURS)


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("a = {b = 1, c = 2}", ("a", "b"), 3),
        ("a = {b = {x = 1}}", ("a",), {"b": {"y": "z"}}),
        ("a.b.c = 1", ("a", "b"), {"d": "x"}),
        ("a = 1", ("a",), {"b": "x"}),
        ("", ("a", 0), "x"),
        ("", ("a",), {"b": None}),
        ("", ("a",), {"b": "\ud800"}),
    ],
)
def test_forms_that_cannot_be_changed_are_refused(text: str, path: tuple[str | int, ...], value: Any) -> None:
    with pytest.raises(TomlError):
        put(text, path, value)


_NOISE = st.lists(st.sampled_from(["", "# [[hooks]]", "  # k = 1", "\t"]), max_size=2)
_VALUES = st.sampled_from(
    ["1", "nan", "'[x]' # c", '"\\" # ]"', "[1, # ]\n  2\n]", '"""\n[t]\n\\""" # """', "{ a = [1] }", "'''\n#'''''"]
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A TOML text with an array `hooks`, a table `t` and others, in some order."""
    heads = draw(st.permutations(["[[hooks]]", "[ t ] # c", '["t".sub]', "[[hooks]]", " [u.v]", "[[w.x]]"]))
    if draw(st.booleans()):
        heads = [part for head in heads for part in ([head, "[hooks.env]"] if head == "[[hooks]]" else [head])]
    rows = []
    for head in ["", *heads]:
        rows += [*draw(_NOISE), head]
        for key in draw(st.lists(st.sampled_from(["k", '"q k"', "d . e", "'l'"]), unique=True, max_size=3)):
            rows += [*draw(_NOISE), f"{draw(st.sampled_from(['', '  ']))}{key} = {draw(_VALUES)}"]
    rows += [draw(st.sampled_from(["[z]", "[t.z]", "[hooks.z]"])), "last = 1", *draw(_NOISE)]
    text = draw(st.sampled_from(["", "\ufeff"])) + "\n".join(rows) + draw(st.sampled_from(["", "\n"]))
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


_WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
_SCALARS = _WORDS | st.booleans() | st.integers(-9, 9) | st.lists(_WORDS, max_size=2)
_TABLES = st.dictionaries(
    st.sampled_from(["k", "o p", 'é"', ""]), _SCALARS | st.dictionaries(_WORDS, _WORDS, max_size=2), max_size=4
)


def stay(text: str, result: str) -> bool:
    """Whether all lines of a text are in another one, in order."""
    rows = iter(result.removeprefix("\ufeff").splitlines())
    return all(row in rows for row in text.removeprefix("\ufeff").splitlines())


@calm
@given(documents(), _TABLES, st.sampled_from([("hooks",), ("new",), ("t", "new"), ("n.w", "x")]))
def test_an_item_goes_in_and_out_of_any_document(text: str, item: Mapping[str, Any], path: tuple[str, ...]) -> None:
    longer = append(text, path, item)
    items = at(read(longer), path)
    assert items[-1] == item and longer.startswith(text)
    assert drop(longer, (*path, len(items) - 1)) == text


@calm
@given(documents(), _TABLES, st.sampled_from([("new",), ("t", "new"), ("t", "sub"), ("hooks", 0, "o"), ("u",), ()]))
def test_a_table_is_put_into_any_document(text: str, table: Mapping[str, Any], path: tuple[str | int, ...]) -> None:
    before = at(read(text), path)
    wanted = merged({} if before is NOTHING else before, table)
    try:
        result = put(text, path, table)
    except TomlError:
        assert isinstance(table["k"], dict) or isinstance(before["k"], dict)  # a table in place of a value, or back
        return
    assert same(at(read(result), path), wanted) and put(result, path, table) == result
    if "k" not in table:
        assert stay(text, result)
    if before is NOTHING and at(read(text), path[:-1]):
        assert drop(result, path) == text
    elif before is not NOTHING and before and path != ("u",):  # that one had no header of its own
        for key in table.keys() - before.keys():
            result = drop(result, (*path, key))
        assert result == text or "k" in table


@calm
@given(documents(), st.sampled_from([("hooks", 0), ("hooks",), ("t",), ("t", "sub"), ("u", "v"), ("k",), ("t", "k")]))
def test_anything_can_be_dropped(text: str, path: tuple[str | int, ...]) -> None:
    result = drop(text, path)
    assert stay(result, text)
    gone = read(text)
    if len(path) == 1:
        gone.pop(str(path[0]), None)
        assert same(read(result), gone)


@calm
@given(st.text("[]{}=.\"'#\\ \n\r\tabk1\ufeff", max_size=30) | st.text(max_size=20), st.text(max_size=2))
def test_any_text_is_edited_or_refused(text: str, key: str) -> None:
    for edit in (append, put):
        with contextlib.suppress(TomlError):
            tomllib.loads(drop(edit(text, ("a", key), OURS), ("b",)).removeprefix("\ufeff"))
    with contextlib.suppress(TomlError):
        assert drop(text, ("b",)) == text or "b" in read(text)
