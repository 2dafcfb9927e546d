"""Lines of JSON-RPC: every one is a message, or is answered with what is wrong about it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaultd.cli.jsonrpc import INVALID, PARSE, Batch, Fault, Lines, Note, Request, read, written

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def test_a_request_a_notification_and_an_answer_are_told_apart() -> None:
    assert read(PING) == Request(1, "ping", {}, json.loads(PING))
    assert read(b'{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":1}}') == Request(
        "a", "m", {"x": 1}, {"jsonrpc": "2.0", "id": "a", "method": "m", "params": {"x": 1}}
    )
    assert read(b'{"jsonrpc":"2.0","method":"notifications/initialized"}') == Note("notifications/initialized", {})
    assert read(b'{"jsonrpc":"2.0","id":7,"result":{}}') == Note("", {})
    assert read(b"  \r") is None


@pytest.mark.parametrize(
    ("line", "ident", "code"),
    [
        (b"\xff\xfe", None, PARSE),
        (b'{"jsonrpc":"2.0","id":4,"method":"ping","params":{"x":"\xff"}}', 4, PARSE),
        (b"{", None, PARSE),
        (b"[" * 100_000, None, PARSE),
        (b"1" * 5000, None, PARSE),
        (b"3", None, INVALID),
        (b'"ping"', None, INVALID),
        (b"null", None, INVALID),
        (b"[]", None, INVALID),
        (json.dumps([1] * 101).encode(), None, INVALID),
        (b'{"id":1,"method":"ping"}', 1, INVALID),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', 1, INVALID),
        (b'{"jsonrpc":"2.0","id":1}', 1, INVALID),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', 1, INVALID),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, INVALID),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', None, INVALID),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', None, INVALID),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', 1, INVALID),
    ],
)
def test_what_is_no_message_is_answered(line: bytes, ident: Any, code: int) -> None:
    said = read(line)
    assert isinstance(said, Fault)
    assert (said.answer["id"], said.answer["error"]["code"]) == (ident, code)


def test_a_batch_is_its_messages() -> None:
    assert read(b"[" + PING + b',3,{"jsonrpc":"2.0","method":"n"}]') == Batch(
        [
            Request(1, "ping", {}, json.loads(PING)),
            Fault({"jsonrpc": "2.0", "id": None, "error": {"code": INVALID, "message": "A message is a JSON object."}}),
            Note("n", {}),
        ]
    )


@given(st.binary(max_size=200))
def test_any_line_is_read(line: bytes) -> None:
    read(line)


@given(st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b""))), st.lists(st.integers(1, 40)))
def test_lines_are_the_same_however_they_arrive(lines: list[bytes], sizes: list[int]) -> None:
    data, cut = b"".join(line + b"\n" for line in lines), Lines(1000)
    found: list[Any] = []
    while data:
        size = sizes.pop() if sizes else 7
        found += cut.feed(data[:size])
        data = data[size:]
    assert [*found, *cut.rest()] == lines


def test_a_last_line_that_nothing_ends_counts() -> None:
    cut = Lines(100)
    assert list(cut.feed(b"a\nb")) == [b"a"]
    assert list(cut.rest()) == [b"b"]
    assert list(cut.rest()) == []


@pytest.mark.parametrize("chunk", [10, 999, 1 << 20])
@pytest.mark.parametrize(
    ("before", "after", "ident"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"m","params":"', b'"}', 7),
        (b'{"method":"m","params":{"id":3,"x":"', b'"},"jsonrpc":"2.0","id":"last"}', "last"),
        (b'{"method":"m","params":"', b'","id":9,"jsonrpc":"2.0"}', 9),
        (b'{"method":"m","params":{"id":3,"x":"', b'"}}', None),
    ],
)
def test_a_line_that_is_too_long_is_answered_by_its_id_and_the_next_one_counts(
    before: bytes, after: bytes, ident: Any, chunk: int
) -> None:
    data, cut = before + b"x" * 20_000 + after + b"\nnext\n", Lines(10_000)
    found: list[Any] = []
    for start in range(0, len(data), chunk):
        found += cut.feed(data[start : start + chunk])
    fault, line = found
    assert (fault.answer["id"], fault.answer["error"]["code"]) == (ident, INVALID)
    assert line == b"next"


def test_a_written_message_is_one_line() -> None:
    assert written({"text": "a\nb\u2028c\ud800"}) == b'{"text":"a\\nb\\u2028c\\ud800"}\n'
