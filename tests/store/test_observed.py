"""Observations that are kept in mind answer as those on disk do, whoever changed what meanwhile."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vaultd.core.event import Event, Kind
from vaultd.core.ids import Key, Sid
from vaultd.core.observation import Observation, observation_json, parse_observation
from vaultd.core.sanitize import observe
from vaultd.store.inbox import Inbox, SessionName
from vaultd.store.observed import Observed

SESSIONS = [SessionName("claude-code", Sid(f"{n:010x}")) for n in range(3)]


def observation(session: int, number: int, text: str = "") -> Observation:
    at = datetime.fromtimestamp(1_800_000_000 + number, UTC)
    name = SESSIONS[session]
    key = Key(f"{1_800_000_000 + number}-{session}")
    return observe(
        Event(key, name.agent, "UserPromptSubmit", Kind.PROMPT, at, name.sid, text=text or f"prompt {number}")
    )


def texts(observations: list[Observation]) -> list[str]:
    return [o.event.text for o in observations]


def test_what_was_filed_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox, name = Inbox(tmp_path), SESSIONS[0]
    for number in range(5):
        inbox.file(name, observation(0, number))
    read: list[bytes] = []
    whole = parse_observation

    def parse(data: bytes) -> Observation:
        read.append(data)
        return whole(data)

    monkeypatch.setattr("vaultd.store.observed.parse_observation", parse)
    for _ in range(3):
        assert texts(inbox.observations(name)) == [f"prompt {n}" for n in range(5)]
    assert read == []
    Inbox(tmp_path).file(name, observation(0, 5))
    assert len(inbox.observations(name)) == 6
    assert len(read) == 1


def test_a_file_that_was_replaced_removed_or_is_torn_is_seen_as_it_is(tmp_path: Path) -> None:
    inbox, other, name = Inbox(tmp_path), Inbox(tmp_path), SESSIONS[0]
    for number in range(3):
        inbox.file(name, observation(0, number))
    assert len(inbox.observations(name)) == 3
    other.file(name, observation(0, 1, "said anew"))
    assert texts(inbox.observations(name)) == ["prompt 0", "said anew", "prompt 2"]
    folder = inbox.done / f"{name}"
    (folder / observation(0, 0).event.key).unlink()
    assert texts(inbox.observations(name)) == ["said anew", "prompt 2"]
    torn = observation(0, 7)
    (folder / torn.event.key).write_bytes(observation_json(torn)[:50])
    assert len(inbox.observations(name)) == 2
    assert not inbox.is_done(name, torn.event.key)
    (folder / torn.event.key).write_bytes(observation_json(torn))
    assert len(inbox.observations(name)) == 3
    assert inbox.is_done(name, torn.event.key)


def test_a_pack_of_another_process_is_seen(tmp_path: Path) -> None:
    inbox, other, name = Inbox(tmp_path), Inbox(tmp_path), SESSIONS[0]
    inbox.file(name, observation(0, 0))
    assert not inbox.is_done(name, observation(0, 1).event.key)
    other.file(name, observation(0, 1))
    other.pack(name)
    assert texts(inbox.observations(name)) == ["prompt 0", "prompt 1"]
    assert inbox.is_done(name, observation(0, 1).event.key)
    inbox.file(name, observation(0, 2))
    assert texts(inbox.observations(name)) == ["prompt 0", "prompt 1", "prompt 2"]
    assert not other.is_done(name, "1800000009-0")
    (inbox.done / "keys-2027-01-15").write_text("1800000009-0\n")
    assert other.is_done(name, "1800000009-0")


def test_what_is_kept_is_bounded_and_answers_are_whole(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    observed = Observed(inbox.done, most=10)
    for session, count in enumerate((4, 7, 12)):
        for number in range(count):
            seen = observation(session, number)
            inbox.file(SESSIONS[session], seen)
            observed.filed(f"{SESSIONS[session]}", seen)
    for _ in range(2):
        for session, count in ((0, 4), (2, 12), (1, 7)):
            assert len(observed.all(f"{SESSIONS[session]}")) == count
            assert observed.kept <= 10


def test_long_ones_count_as_several(tmp_path: Path) -> None:
    observed = Observed(tmp_path, most=10)
    for number in range(6):
        observed.filed(f"{SESSIONS[number % 2]}", observation(number % 2, number, "long " * 800))
        assert 0 < observed.kept <= 10


class Action:
    """Something that happens to observations, by this process or behind its back."""

    def __init__(self, what: str, session: int, number: int) -> None:
        self.what, self.session, self.number = what, session, number

    def __repr__(self) -> str:
        return f"{self.what} {self.session} {self.number}"

    def run(self, here: Inbox, there: Inbox) -> None:
        name = SESSIONS[self.session]
        inbox = there if self.what.startswith("other") else here
        file = here.done / f"{name}" / observation(self.session, self.number).event.key
        if self.what.endswith("files"):
            inbox.file(name, observation(self.session, self.number))
        elif self.what.endswith("packs"):
            inbox.pack(name)
        elif self.what == "a file goes":
            file.unlink(missing_ok=True)
        elif self.what == "all goes":
            shutil.rmtree(file.parent, ignore_errors=True)


ACTIONS = st.builds(
    Action,
    st.sampled_from(["files", "files", "packs", "other files", "other packs", "a file goes", "all goes", "looks"]),
    st.integers(0, 2),
    st.integers(0, 5),
)


@settings(deadline=None, max_examples=50)
@given(st.lists(ACTIONS, max_size=25), st.integers(1, 12))
def test_answers_are_those_of_a_fresh_look(
    tmp_path_factory: pytest.TempPathFactory, actions: list[Action], most: int
) -> None:
    room = tmp_path_factory.mktemp("room")
    here, there = Inbox(room), Inbox(room)
    here._observed = Observed(here.done, most)
    for action in actions:
        action.run(here, there)
        for name in SESSIONS:
            assert here.observations(name) == Inbox(room).observations(name)
            assert 0 <= here._observed.kept <= most
            for number in range(6):
                key = observation(action.session, number).event.key
                assert here.is_done(name, key) == Inbox(room).is_done(name, key)
