"""Observations: nothing of an event reaches a store unredacted or unbounded, and what is stored is read back equal."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.secret_samples import MARK, R40, SECRETS, UUID, pieces
from tests.examples import examples
from vaultd.core.event import Event, FileTouch, Kind, Process, ToolCall
from vaultd.core.ids import Key, Sid, session_id
from vaultd.core.observation import Observation, observation_json, parse_observation
from vaultd.core.sanitize import Rules, observe

AT = datetime(2026, 11, 29, 10, 12, 13, tzinfo=timezone(timedelta(hours=1)))
TOKEN = "gh" + f"p_{R40}"
OWN = {"key", "sid"}
"""What vaultd itself made: names of files, not words of anybody."""

TEXTS = sorted(f.name for f in dataclasses.fields(Event) if f.type == "str")
TOOL_TEXTS = sorted(f.name for f in dataclasses.fields(ToolCall) if f.type == "str")


def event(**changes: Any) -> Event:
    base = Event(Key("1795943533-" + UUID), "claude-code", "UserPromptSubmit", Kind.PROMPT, AT, Sid("0123456789"))
    return replace(base, **changes)


def call(text: str, *files: FileTouch) -> ToolCall:
    changes: dict[str, Any] = dict.fromkeys(TOOL_TEXTS, text)
    return replace(ToolCall("", ""), files=files, **changes)


def test_the_lists_of_fields_are_the_event_s() -> None:
    others = {"key", "kind", "at", "sid", "client", "tool", "mtime_ns"}
    assert {f.name for f in dataclasses.fields(Event)} == {*TEXTS, *others}
    assert len(TEXTS) == 18
    assert {f.name for f in dataclasses.fields(ToolCall)} == {*TOOL_TEXTS, "files", "exit_code", "ok"}


@pytest.mark.parametrize("secret", ["github-p", "aws", "openai", "ssh-path", "pem-escaped"])
@pytest.mark.parametrize("kind", list(Kind))
def test_a_secret_is_in_no_field(kind: Kind, secret: str) -> None:
    planted = f"x {SECRETS[secret]}"
    tool = call(planted, FileTouch(planted, planted), FileTouch("a", "read"))
    full = event(**dict.fromkeys(TEXTS, planted), kind=kind, tool=tool, client=Process(1, 2, planted))
    data = observation_json(observe(full)).decode()
    assert not [piece for piece in pieces(SECRETS[secret]) if piece in data]
    assert data.count(MARK) == len(TEXTS) + len(TOOL_TEXTS) + 3


def test_a_remote_s_password_and_a_private_part_go() -> None:
    seen = observe(event(remote="https://me:" + "hunter2@example.org/a.git", text="a <private>b</private>c")).event
    assert seen.remote == f"https://me:{MARK}@example.org/a.git"
    assert seen.text == "a c"


def test_rules_of_a_person_hold_everywhere() -> None:
    tool = call("ACME-1", FileTouch("/w/ACME-1", "read"))
    seen = observe(event(**dict.fromkeys(TEXTS, "ACME-1"), tool=tool), Rules.compile([r"ACME-\d"]))
    assert b"ACME" not in observation_json(seen)


LIMITS = {
    **dict.fromkeys(("cwd", "root", "gitfile", "head", "remote", "transcript"), 1_024),
    **dict.fromkeys(("agent", "name", "native", "run", "workstream", "handoff", "source", "reason"), 128),
    **dict.fromkeys(("turn", "subagent", "body"), 128),
}


@pytest.mark.parametrize("letter", ["x", "é", "👩", "x\n"])
def test_every_text_is_bounded(letter: str) -> None:
    long = letter * 17_000
    tool = call(long, *[FileTouch(letter * 1_100, letter * 200)] * 300)
    for kind in Kind if letter == "x" else [Kind.PROMPT]:
        seen = observe(event(**dict.fromkeys(TEXTS, long), kind=kind, tool=tool, client=Process(1, 2, long))).event
        for name, most in LIMITS.items():
            assert most - 8 <= len(getattr(seen, name).encode()) <= most, name
        most = 16_384 if kind in {Kind.PROMPT, Kind.POST_COMPACT, Kind.TURN_END} else 2_000
        assert most - 60 <= len(seen.text.encode()) <= most
        assert seen.tool is not None and seen.client is not None
        limits = {"command": 400, "error": 2_000, "output": 2_000, "name": 128, "family": 128, "call_id": 128}
        for name, most in limits.items():
            assert most - 60 <= len(getattr(seen.tool, name).encode()) <= most, name
        assert len(seen.tool.files) == 256
        assert len(seen.tool.files[0].path.encode()) <= 1_024 and len(seen.tool.files[0].action.encode()) <= 128
        assert len(seen.client.boot.encode()) <= 128
        assert set(LIMITS) | {"text"} == set(TEXTS)


def test_an_output_keeps_its_end_and_something_of_its_start() -> None:
    output = "$ pytest\n" + "noise\n" * 5_000 + "E   AssertionError: 3 != 4\n1 failed in 0.1s"
    tool = observe(event(kind=Kind.TOOL, tool=ToolCall("Bash", "shell", output=output, error=output))).event.tool
    assert tool is not None
    for text in (tool.output, tool.error):
        head, _, tail = text.partition(" bytes cut ...]\n")
        assert head.startswith("$ pytest") and tail.endswith("3 != 4\n1 failed in 0.1s")
        assert len(tail) > 2 * len(head)


def test_a_secret_at_the_edge_of_a_bound_is_not_cut_in_half() -> None:
    for before in range(900, 1_100, 3):
        seen = observe(
            event(cwd="/" + "d" * before + "/ " + TOKEN, text="x" * (before + 15_200) + " " + TOKEN + "y" * 900)
        )
        assert TOKEN[:9] not in observation_json(seen).decode()


@pytest.mark.parametrize(
    "native", [UUID, "01a228dd-3f10-7d70-aadb-1ba0a51b10de", "ses_5f2a8c1e", "1795982852203_g5l8d"]
)
def test_ids_and_ordinary_paths_survive(native: str) -> None:
    one = event(
        native=native,
        sid=session_id("claude-code", native),
        turn=native,
        head="ref: refs/heads/fix/token-refresh",
        remote="git@github.com:owner/app.git",
        cwd="/home/dev/pro ject  two/'q\"\n",
        transcript=f"/home/dev/.claude/projects/-home-dev-project/{native}.jsonl",
        client=Process(123, 456_789, "5a7e1c44-9d3b-4a55-8f0e-2f1f6f0f4d11"),
        tool=ToolCall("Bash", "shell", call_id="toolu_01ABCdefGHIjklMNOpqrSTU", command="git log -3 9fceb02d0ae598e9"),
    )
    assert observe(one).event == one


def test_what_the_assistant_said_can_be_left_out() -> None:
    for kind in Kind:
        text = observe(event(kind=kind, text="words"), assistant=False).event.text
        assert text == ("" if kind in {Kind.TURN_END, Kind.SUBAGENT, Kind.POST_COMPACT} else "words")
        assert observe(event(kind=kind, text="words")).event.text == "words"


def test_a_time_without_an_offset_is_refused() -> None:
    with pytest.raises(ValueError, match="offset"):
        observe(event(at=datetime(2026, 11, 29)))


def test_the_bytes_are_these() -> None:
    tool = ToolCall("Bash", "shell", files=(FileTouch("a.py", "edit"),), command="make", exit_code=0, ok=False)
    full = event(native=UUID, text="a\u2028b — é\n", tool=tool, client=Process(7, 8, "b"), mtime_ns=9)
    assert observation_json(observe(full)).decode() == (
        f'{{"vaultd-observation":1,"key":"1795943533-{UUID}","agent":"claude-code","name":"UserPromptSubmit",'
        f'"kind":"prompt","at":"2026-11-29T10:12:13+01:00","sid":"0123456789","native":"{UUID}",'
        '"text":"a\\u2028b — é\\n","client":[7,8,"b"],"tool":{"name":"Bash","family":"shell","command":"make",'
        '"files":[["a.py","edit"]],"exit_code":0,"ok":false},"mtime_ns":9}'
    )


zones = st.builds(timezone, st.timedeltas(timedelta(hours=-23), timedelta(hours=23))).filter(
    lambda zone: zone.utcoffset(None).microseconds == 0
)
pieces_of_text = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["", TOKEN, "\u2028\u2029\x85", "\ud800", "\x00\r\n\t", "💥", '"\\', "x" * 3_000, "https://a:b@c"]),
)
touches = st.builds(FileTouch, pieces_of_text, st.sampled_from(["read", "edit", "create", "delete"]))
tools = st.builds(
    ToolCall,
    **dict.fromkeys(TOOL_TEXTS, pieces_of_text),
    files=st.lists(touches, max_size=3).map(tuple),
    exit_code=st.none() | st.integers(-(2**31), 2**63),
    ok=st.none() | st.booleans(),
)
events = st.builds(
    Event,
    key=st.sampled_from([Key("1-a"), Key("h" + "0" * 32)]),
    kind=st.sampled_from(Kind),
    at=st.datetimes(timezones=st.one_of(st.just(UTC), zones)),
    sid=st.just(Sid("0123456789")),
    client=st.none() | st.builds(Process, st.integers(0), st.integers(0), pieces_of_text),
    tool=st.none() | tools,
    mtime_ns=st.integers(0, 2**64),
    **dict.fromkeys(TEXTS, pieces_of_text),
)


@given(events)
@settings(deadline=None, max_examples=examples(200))
def test_what_was_written_is_read_back_equal(one: Event) -> None:
    seen = observe(one)
    data = observation_json(seen)
    back = parse_observation(data)
    assert back == seen
    assert observation_json(back) == data
    assert back.event.at.isoformat() == one.at.isoformat()
    assert len(data.splitlines()) == len(data.decode().splitlines()) == 1
    assert data.startswith(b'{"vaultd-observation":1,"key":"')
    assert parse_observation(data + b"\n") == seen
    assert observe(back.event) == seen


def test_one_that_was_cut_off_is_refused_wherever() -> None:
    data = observation_json(observe(event(text="é — 💥", tool=ToolCall("Bash", "shell", exit_code=1))))
    for end in range(len(data)):
        with pytest.raises(ValueError, match="not an observation"):
            parse_observation(data[:end])


def test_a_newer_format_is_refused_and_says_so() -> None:
    newer = observation_json(observe(event())).replace(b'observation":1', b'observation":2')
    with pytest.raises(ValueError, match="format 2, this vaultd reads up to 1"):
        parse_observation(newer)


def test_unknown_fields_are_ignored() -> None:
    seen = observe(event(text="x", tool=ToolCall("Bash", "shell")))
    fields = json.loads(observation_json(seen))
    fields["mood"] = {"good": True}
    fields["tool"]["colour"] = [1]
    assert parse_observation(json.dumps(fields).encode()) == seen


NO_CLIENTS: list[object] = [1, [1, 2], [1, 2, 3], ["1", 2, "b"], {}]
NO_TOOLS: list[object] = [
    *(1, [], "x", {"name": 1}, {"files": {}}, {"files": ["a"]}, {"files": [["a"]]}),
    *({"ok": 1}, {"exit_code": True}, {"exit_code": "1"}),
]


@pytest.mark.parametrize(
    "changes",
    [
        {"text": "\ud800"},
        *({"vaultd-observation": n} for n in (0, -1, True, "1", None, 1.0)),
        *({name: 1} for name in ("key", "agent", "kind", "at", "sid", "text", "native")),
        *({name: None} for name in ("key", "agent", "name", "kind", "at", "sid")),
        *({"client": value} for value in NO_CLIENTS),
        *({"tool": value} for value in NO_TOOLS),
        *({"mtime_ns": v} for v in (True, "1", 1.5)),
        *({"at": v} for v in ("", "yesterday", "2026-11-29T10:12:13", "2026-13-29T10:12:13+01:00")),
        *({"kind": v} for v in ("", "tools")),
    ],
    ids=str,
)
def test_a_field_of_a_wrong_type_is_refused(changes: dict[str, object]) -> None:
    fields = json.loads(observation_json(observe(event(text="x"))))
    fields.update(changes)
    with pytest.raises(ValueError):
        parse_observation(json.dumps(fields).encode())


@pytest.mark.parametrize("name", ["vaultd-observation", "key", "agent", "name", "kind", "at", "sid"])
def test_a_field_that_must_be_there_is_missed(name: str) -> None:
    fields = json.loads(observation_json(observe(event())))
    del fields[name]
    with pytest.raises(ValueError, match="no "):
        parse_observation(json.dumps(fields).encode())


values = st.recursive(st.none() | st.booleans() | st.text(max_size=5), st.lists)


@given(st.binary(max_size=60) | values.map(lambda value: json.dumps(value).encode()))
@settings(deadline=None)
def test_anything_else_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError):
        parse_observation(data)


def test_deep_nesting_and_huge_numbers_are_value_errors() -> None:
    for data in (b"[" * 200_000, b'{"vaultd-observation":' + b"9" * 10_000 + b"}", b'{"a":' * 100_000, b"\xff\xfe{}"):
        with pytest.raises(ValueError):
            parse_observation(data)


def test_an_observation_is_an_observation_wherever_it_is_imported_from() -> None:
    from vaultd.core import sanitize

    assert sanitize.Observation is Observation
    assert isinstance(observe(event()), Observation)
