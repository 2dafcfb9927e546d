"""Edits of JSON as text: what is not edited stays, byte for byte."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from vaultd.agents.jsontext import JsonError, Text

calm = settings(
    max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)  # a busy machine
scalars = st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=6) | st.just(1.5)
values = st.recursive(scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=4), v, max_size=3))
objects = st.dictionaries(st.text(max_size=4), values, max_size=4)


def laid_out(value: Any, draw: Any, spaces: st.SearchStrategy[str]) -> str:
    """A value as JSON with any space between its tokens."""

    def space() -> str:
        return str(draw(spaces))

    if isinstance(value, dict):
        members = (
            f"{space()}{json.dumps(k)}{space()}:{space()}{laid_out(v, draw, spaces)}{space()}" for k, v in value.items()
        )
        return "{" + (",".join(members) if value else space()) + "}"
    if isinstance(value, list):
        return (
            "[" + (",".join(space() + laid_out(v, draw, spaces) + space() for v in value) if value else space()) + "]"
        )
    return json.dumps(value, ensure_ascii=bool(draw(st.booleans())))


plain = st.sampled_from(["", " ", "\n", "\n  ", "\r\n\t", "  \n"])
commented = plain | st.sampled_from([' // a "comment"\n', "/* [b */", " /* c */ \n", "//\n"])


@calm
@given(values, st.data())
def test_any_layout_is_read_as_it_is_meant(value: Any, data: st.DataObject) -> None:
    text = data.draw(plain) + laid_out(value, data.draw, plain) + data.draw(plain)
    assert Text(text).root.value == json.loads(text) == value
    assert Text(laid_out(value, data.draw, commented), lenient=True).root.value == value


@calm
@given(objects, values, st.data(), st.booleans())
def test_a_member_goes_in_and_out_without_a_trace(value: Any, new: Any, data: st.DataObject, lenient: bool) -> None:
    text = laid_out(value, data.draw, commented if lenient else plain)
    document = Text(text, lenient=lenient)
    longer = document.append(document.root, "a new key", new)
    after = Text(longer, lenient=lenient)
    assert after.root.value == {**value, "a new key": new}
    child = after.root.member("a new key")
    assert child is not None
    back = after.drop(after.root, child)
    assert Text(back, lenient=lenient).root.value == value
    if value:
        assert (without_space(back) if lenient else back) == (without_space(text) if lenient else text)


def without_space(text: str) -> str:
    return re.sub(r"\s", "", text)


@calm
@given(st.lists(values, min_size=1, max_size=4), st.data())
def test_any_child_can_be_dropped(value: list[Any], data: st.DataObject) -> None:
    lenient = data.draw(st.booleans())
    document = Text(laid_out(value, data.draw, commented if lenient else plain), lenient=lenient)
    index = data.draw(st.integers(0, len(value) - 1))
    result = document.drop(document.root, document.root.children[index])
    assert Text(result, lenient=lenient).root.value == value[:index] + value[index + 1 :]


def test_a_value_is_replaced_in_place() -> None:
    document = Text('{ "a" : [1,  2] ,"b":"x"}')
    assert document.replace(document.root.children[0].children[1], "two") == '{ "a" : [1,  "two"] ,"b":"x"}'


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("{}", '{\n  "k": [\n    1\n  ]\n}'),
        ("{\n}\n", '{\n  "k": [\n    1\n  ]\n}\n'),
        ('{"a":1}', '{"a":1,"k":[1]}'),
        ('{"a": 1}', '{"a": 1, "k": [1]}'),
        ('{\n    "a": 1\n}\n', '{\n    "a": 1,\n    "k": [\n        1\n    ]\n}\n'),
        ('{\r\n\t"a": {}\r\n}', '{\r\n\t"a": {},\r\n\t"k": [\r\n\t\t1\r\n\t]\r\n}'),
        ('\ufeff{\n "a": 1 }', '\ufeff{\n "a": 1,\n "k": [\n  1\n ] }'),
    ],
)
def test_what_is_new_is_laid_out_as_the_rest(text: str, result: str) -> None:
    document = Text(text)
    assert document.append(document.root, "k", [1]) == result


def test_comments_and_trailing_commas_stay_where_they_are_read() -> None:
    text = '{\n  "a": 1, // one\n  "b": [2,], /* two */\n}\n'
    document = Text(text, lenient=True)
    longer = document.append(document.root, "k", 3)
    assert longer == '{\n  "a": 1, // one\n  "b": [2,],\n  "k": 3, /* two */\n}\n'
    last = Text('{"a": 1 // one\n}', lenient=True)
    assert last.append(last.root, "k", 3) == '{"a": 1, // one\n  "k": 3\n}'


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"a"}', '{"a":}', "[1,]", '{"a":1,}', "// x\n{}", "{} {}", "[1 2]", '"a', "{'a': 1}", "[01]", "nul",
     "[" * 5000, '{"a": "\n"}', "{a: 1}", "[1", '{"a": 1,', "NaN", "["]
)  # fmt: skip
def test_what_is_no_json_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(JsonError, match=r"^line \d+: "):
        Text(text)


def test_a_key_that_stands_twice_is_refused_when_it_matters() -> None:
    document = Text('{"a": 1, "a": 2, "b": 3}')
    assert document.root.member("b") is not None
    with pytest.raises(JsonError, match="twice"):
        document.root.member("a")


@calm
@given(st.text(alphabet='{}[]",:/*\\ \n1aé', max_size=40), st.booleans())
def test_any_text_is_read_or_refused(text: str, lenient: bool) -> None:
    try:
        value = Text(text, lenient=lenient).root.value
    except JsonError:
        if not lenient:
            with pytest.raises(ValueError):
                json.loads(text)
    else:
        assert lenient or value == json.loads(text)
