"""Agents that take text at a prompt or after a tool: the first of each session claims, and no later one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hook.room import NAME, TEXT, Room

LATE = "session-start-json {moment} - session_id"


def prompt(session: str, text: str = "hi", space: str = "") -> bytes:
    return f'{{"session_id":{space}"{session}",\n "prompt":"{text}"}}'.encode()


@pytest.mark.parametrize("moment", ["prompt", "tool"])
def test_the_first_of_a_session_claims(room: Room, repo: Path, moment: str) -> None:
    room.map("late.Prompt", LATE.format(moment=moment))
    (room.room / "outbox/given").mkdir()
    assert room.run("Prompt", prompt("s-1", space=" "), agent="late", cwd=repo) == TEXT
    assert room.only().header["handoff"] == NAME
    assert [path.name for path in (room.room / "outbox/given").iterdir()] == ["late-s-1"]


def test_a_later_one_claims_nothing_however_late_the_offer_came(room: Room, repo: Path) -> None:
    room.map("late.Prompt", LATE.format(moment="prompt"))
    (room.room / "outbox/given").mkdir()
    elsewhere = room.base / "elsewhere"
    elsewhere.mkdir()
    assert room.run("Prompt", prompt("s-1"), agent="late", cwd=elsewhere) == b"", "nothing was offered there"
    assert room.run("Prompt", prompt("s-1"), agent="late", cwd=repo) == b""
    assert room.state() == "open"
    assert room.run("Prompt", prompt("s-2"), agent="late", cwd=repo) == TEXT, "another session"


@pytest.mark.parametrize("payload", [b"", b"{}", b'{"session_id":""}', b'{"session_id":"../x"}', b'{"session_id":3}'])
def test_one_that_names_no_session_claims_nothing_and_is_recorded(room: Room, repo: Path, payload: bytes) -> None:
    room.map("late.Prompt", LATE.format(moment="prompt"))
    (room.room / "outbox/given").mkdir()
    assert room.run("Prompt", payload, agent="late", cwd=repo) == b""
    assert room.only().payload == payload
    assert list((room.room / "outbox/given").iterdir()) == [] and room.state() == "open"


def test_where_moments_cannot_be_kept_nothing_is_claimed(room: Room, repo: Path) -> None:
    room.map("late.Prompt", LATE.format(moment="prompt"))
    assert room.run("Prompt", prompt("s-1"), agent="late", cwd=repo) == b""
    assert "handoff" not in room.only().header


def test_the_agents_of_one_session_id_are_kept_apart(room: Room, repo: Path) -> None:
    for agent in ("late", "later"):
        room.map(f"{agent}.Prompt", LATE.format(moment="prompt"))
    (room.room / "outbox/given").mkdir()
    assert room.run("Prompt", prompt("s-1"), agent="late", cwd=room.base) == b""
    assert room.run("Prompt", prompt("s-1"), agent="later", cwd=repo) == TEXT


def test_what_is_only_offered_is_told_to_each_and_stays_open(room: Room, repo: Path) -> None:
    place = next((room.room / "outbox/at").rglob("claim"))
    lines = place.read_text().split("\n")
    place.write_text("\n".join([lines[0], "-", *lines[2:]]))
    for session in ("a", "b"):
        payload = f'{{"session_id":"{session}","source":"startup"}}'.encode()
        assert room.run("SessionStart", payload, cwd=repo) == TEXT
    assert all("handoff" not in event.header for event in room.deliveries())
    assert room.state() == "open"
    payload = b'{"session_id":"c","source":"compact"}'
    assert room.run("SessionStart", payload, cwd=repo) == b""
