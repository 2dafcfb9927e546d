"""The inbox and the observations: what waits, what was taken in, what failed; complete or not at all."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from vaultd.core.event import Delivery, Event, Kind
from vaultd.core.ids import Key, Sid, session_id
from vaultd.core.observation import Observation, observation_json, parse_observation
from vaultd.core.sanitize import line, observe, redact
from vaultd.store import fs
from vaultd.store.inbox import MAX_EVENT, Inbox, SessionName

NAME = SessionName("claude-code", session_id("claude-code", "n-1"))
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
FOLDERS = ("inbox/new", "inbox/tmp", "inbox/failed", "done")


def inbox_in(room: Path) -> Inbox:
    for folder in FOLDERS:
        (room / folder).mkdir(parents=True, exist_ok=True)
    return Inbox(room)


@pytest.fixture
def inbox(tmp_path: Path) -> Inbox:
    return inbox_in(tmp_path)


def observation(key: str, seconds: int = 0, text: str = "said") -> Observation:
    at = NOON + timedelta(seconds=seconds)
    return observe(Event(Key(key), "claude-code", "Stop", Kind.TURN_END, at, NAME.sid, native="n-1", text=text))


def newer(key: str) -> bytes:
    return json.dumps({"vaultd-observation": 2, "key": key, "whatever": ["a", 1]}).encode()


def keys(inbox: Inbox, name: SessionName = NAME) -> list[str]:
    return [o.event.key for o in inbox.observations(name)]


def deliver(inbox: Inbox, key: str, data: bytes = b"vaultd-event 1\nagent=a\n\n{}") -> None:
    (inbox.new / key).write_bytes(data)


# What waits


def test_pending_events_come_by_epoch_then_name_and_nothing_else_is_one(inbox: Inbox) -> None:
    for key in ("10-b", "9-z", "10-a", "h" + "0" * 32):
        deliver(inbox, key)
    for other in (f"{fs.TEMP_PREFIX}0123", "README", "10-a.reason.json", "²-a", "-1-a"):
        (inbox.new / other).write_bytes(b"")
    (inbox.new / "11-folder").mkdir()
    assert inbox.pending() == ["h" + "0" * 32, "9-z", "10-a", "10-b"]
    assert sorted(inbox.strangers()) == ["-1-a", "10-a.reason.json", "11-folder", "README", "²-a"]


def test_without_a_room_there_is_nothing(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "nowhere")
    assert not (inbox.pending() or inbox.strangers() or inbox.failures() or inbox.sessions() or inbox.packs())
    assert inbox.read("1-a") is None and inbox.unprinted(1e12) == [] and inbox.raw("1-a") == b""
    assert inbox.observations(NAME) == [] and not inbox.has_pack(NAME) and not inbox.is_done(NAME, "1-a")
    waiting = inbox.waiting(100.0)
    assert (waiting.new, waiting.oldest_s, waiting.failed) == (0, 0.0, 0)


def test_a_delivery_is_read_with_its_time(inbox: Inbox) -> None:
    deliver(inbox, "1-a", b"vaultd-event 1\nagent=a\ncwd=/caf\xe9\n\n\xff\x00")
    os.utime(inbox.new / "1-a", ns=(5, 7))
    found = inbox.read("1-a")
    assert isinstance(found, Delivery)
    assert (found.key, found.payload, found.mtime_ns) == ("1-a", b"\xff\x00", 7)
    assert found.header == {"agent": "a", "cwd": "/caf\udce9"}
    assert inbox.raw("1-a") == b"vaultd-event 1\nagent=a\ncwd=/caf\xe9\n\n\xff\x00"


def test_what_is_no_event_comes_as_it_is(inbox: Inbox) -> None:
    deliver(inbox, "1-a", b"something else")
    deliver(inbox, "2-a", b"")
    assert (inbox.read("1-a"), inbox.read("2-a"), inbox.read("3-a")) == (b"something else", b"", None)


def test_only_plain_files_are_opened(inbox: Inbox, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"vaultd-event 1\n\nsecret")
    (inbox.new / "1-link").symlink_to(tmp_path / "secret")
    (inbox.new / "2-dangling").symlink_to("nowhere")
    os.mkfifo(inbox.new / "3-pipe")  # opening it would wait for a writer
    (inbox.new / "4-folder").mkdir()
    for key in ("1-link", "2-dangling", "3-pipe", "4-folder"):
        assert inbox.read(key) == b"" == inbox.raw(key)


def test_an_event_longer_than_any_hook_writes_is_cut(inbox: Inbox) -> None:
    deliver(inbox, "1-a", b"vaultd-event 1\n\n" + b"x" * (MAX_EVENT + 1000))
    found = inbox.read("1-a")
    assert isinstance(found, Delivery) and len(found.payload) == MAX_EVENT - len(b"vaultd-event 1\n\n")
    assert len(inbox.raw("1-a")) == MAX_EVENT


def test_acknowledging_removes_and_may_be_done_again(inbox: Inbox) -> None:
    deliver(inbox, "1-a")
    deliver(inbox, "2-a")
    inbox.acknowledge(["1-a", "never"])
    inbox.acknowledge(["1-a"])
    assert inbox.pending() == ["2-a"]


def test_waiting_counts_and_tells_the_age_of_the_oldest(inbox: Inbox) -> None:
    for key in ("1000-a", "1010-a", "h" + "0" * 32):
        deliver(inbox, key)
    inbox.reject("1000-a", redact("x"), line("why", 100))
    waiting = inbox.waiting(1030.0)
    assert (waiting.new, waiting.oldest_s, waiting.failed) == (2, 20.0, 1)
    assert inbox.waiting(1000.0).oldest_s == 0.0  # a clock that was set back


# Claims whose hook died


def mark(inbox: Inbox, name: str, first: bytes, age: int = 1000) -> Path:
    path = inbox.tmp / name
    path.write_bytes(b"vaultd-event 1\n" + first + b"\nagent=a\n\noffered=payload")
    os.utime(path, (10_000 - age, 10_000 - age))
    return path


def test_what_a_dead_hook_meant_to_claim_is_told(inbox: Inbox) -> None:
    mark(inbox, "1-a", b"offered=h-1")
    mark(inbox, "2-a", b"handoff=h-2")
    mark(inbox, "3-a", b"handred=h-3")  # killed while it wrote one word over the other
    mark(inbox, "4-a", b"offered=young", age=10)
    mark(inbox, "5-a", b"other=h-5")
    delivered = mark(inbox, "6-a", b"handoff=delivered")
    os.link(delivered, inbox.new / "6-a")
    (inbox.tmp / "7-a").symlink_to(mark(inbox, "8-a", b"offered=h-8"))
    (inbox.tmp / "folder").mkdir()
    assert sorted(inbox.unprinted(10_000 - 600)) == ["h-1", "h-2", "h-3", "h-8"]


# What failed


def test_a_rejected_event_lies_beside_its_reason(inbox: Inbox) -> None:
    deliver(inbox, "1-a", b"raw")
    inbox.reject("1-a", redact("what was said"), line('why "so"\nand ünd', 100))
    assert inbox.pending() == [] and inbox.failures() == ["1-a"]
    assert (inbox.failed / "1-a").read_text("utf-8") == "what was said"
    reason = (inbox.failed / "1-a.reason.json").read_text("utf-8")
    assert json.loads(reason) == {"vaultd-failed": 1, "reason": 'why "so" and ünd'}
    assert inbox.failure_reason("1-a") == 'why "so" and ünd'
    assert {p.stat().st_mode & 0o777 for p in inbox.failed.iterdir()} == {0o600}


def test_the_reason_stands_before_the_event_goes(inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    write, remove = fs.write_private, fs.remove

    def written(path: Path, data: bytes, *, sync: bool) -> None:
        assert sync
        steps.append(path.name)
        write(path, data, sync=sync)

    def removed(path: Path) -> None:
        steps.append(f"-{path.name}")
        remove(path)

    monkeypatch.setattr(fs, "write_private", written)
    monkeypatch.setattr(fs, "remove", removed)
    inbox.reject("1-a", redact("x"), line("why", 100))
    assert steps == ["1-a.reason.json", "1-a", "-1-a"]


@pytest.mark.parametrize("data", [None, b"", b"{}", b"[]", b"\xff", b'{"vaultd-failed": 1}'])
def test_a_failed_event_whose_reason_is_lost_is_listed_all_the_same(inbox: Inbox, data: bytes | None) -> None:
    inbox.reject("1-a", redact("x"), line("why", 100))
    (inbox.failed / "1-a.reason.json").unlink()
    if data is not None:
        (inbox.failed / "1-a.reason.json").write_bytes(data)
    (inbox.failed / f"{fs.TEMP_PREFIX}x").write_bytes(b"")
    assert inbox.failures() == ["1-a"]
    assert inbox.failure_reason("1-a") == "no reason was kept"


def test_a_failed_event_is_tried_again_or_dropped(inbox: Inbox) -> None:
    for key in ("1-a", "2-a"):
        inbox.reject(key, redact(key), line("why", 100))
    inbox.retry("1-a")
    assert inbox.pending() == ["1-a"] and inbox.read("1-a") == b"1-a"
    inbox.drop("2-a")
    assert list(inbox.failed.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        inbox.retry("2-a")


def test_trying_again_takes_no_other_events_place(inbox: Inbox) -> None:
    inbox.reject("1-a", redact("old"), line("why", 100))
    deliver(inbox, "1-a", b"new")
    with pytest.raises(FileExistsError):
        inbox.retry("1-a")
    assert inbox.read("1-a") == b"new" and inbox.failures() == ["1-a"]


# What was taken in


def test_session_names() -> None:
    assert SessionName.parse("claude-code-0123456789") == SessionName("claude-code", Sid("0123456789"))
    assert SessionName.parse("codex-0123456789.jsonl") == SessionName("codex", Sid("0123456789"))
    assert str(SessionName("a-b", Sid("0123456789"))) == "a-b-0123456789"
    for other in ("0123456789", "-0123456789", "a-012345678", "a-01234567890", "a-012345678G", "a-ABCDEF0123", ""):
        assert SessionName.parse(other) is None
    assert SessionName.parse("keys-2026-11-29") is None


def test_an_observation_is_filed_whole_for_its_owner_alone(inbox: Inbox) -> None:
    made = observation("1-a", text="with ünicode")
    inbox.file(NAME, made)
    [path] = (inbox.done / str(NAME)).iterdir()
    assert path.name == "1-a" and path.read_bytes() == observation_json(made)
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert inbox.is_done(NAME, "1-a") and not inbox.is_done(NAME, "1-b")
    assert inbox.observations(NAME) == [made]
    assert inbox.sessions() == [NAME] and inbox.packs() == []


def test_observations_come_by_event_time(inbox: Inbox) -> None:
    for key, seconds in (("3-a", 1), ("1-a", 3), ("2-a", 2)):
        inbox.file(NAME, observation(key, seconds))
    assert keys(inbox) == keys(Inbox(inbox.done.parent)) == ["3-a", "2-a", "1-a"]


@pytest.mark.parametrize("torn", [b"", b"{", observation_json(observation("2-a"))[:-1], b"not json", b'{"key": "2-a"}'])
def test_a_torn_observation_counts_for_nothing_and_is_replaced(inbox: Inbox, torn: bytes) -> None:
    inbox.file(NAME, observation("1-a"))
    (inbox.done / str(NAME) / "2-a").write_bytes(torn)
    assert keys(inbox) == ["1-a"] and not inbox.is_done(NAME, "2-a")
    inbox.file(NAME, observation("2-a", 5))
    assert keys(inbox) == ["1-a", "2-a"] and inbox.is_done(NAME, "2-a")


def test_a_session_is_packed_into_lines_and_its_folder_goes(inbox: Inbox) -> None:
    made = [observation("1-a", 2), observation("2-a", 1, "two\nlines\u2028and more")]
    for each in made:
        inbox.file(NAME, each)
    inbox.pack(NAME)
    assert not (inbox.done / str(NAME)).exists()
    path = inbox.done / f"{NAME}.jsonl"
    assert path.read_bytes() == observation_json(made[1]) + b"\n" + observation_json(made[0]) + b"\n"
    assert path.stat().st_mode & 0o777 == 0o600
    for other in (inbox, Inbox(inbox.done.parent)):
        assert other.observations(NAME) == [made[1], made[0]]
        assert other.has_pack(NAME) and other.packs() == [NAME] and other.sessions() == []
        assert other.is_done(NAME, "1-a") and not other.is_done(NAME, "3-a")


def test_what_comes_after_the_pack_joins_it(inbox: Inbox) -> None:
    inbox.file(NAME, observation("1-a"))
    inbox.pack(NAME)
    inbox.file(NAME, observation("2-a", 5))
    assert keys(inbox) == ["1-a", "2-a"] and inbox.sessions() == inbox.packs() == [NAME]
    inbox.pack(NAME)
    assert keys(inbox) == ["1-a", "2-a"] and inbox.sessions() == []


def test_observations_that_were_never_filed_go_into_the_pack_at_once(inbox: Inbox) -> None:
    inbox.pack(NAME, [observation("2-a", 2), observation("1-a", 1)])
    assert keys(inbox) == keys(Inbox(inbox.done.parent)) == ["1-a", "2-a"] and inbox.sessions() == []
    inbox.file(NAME, observation("3-a", 3, "filed"))
    inbox.pack(NAME, [observation("3-a", 3, "fresh"), observation("4-a", 0)])
    assert keys(inbox) == ["4-a", "1-a", "2-a", "3-a"] and inbox.sessions() == []
    assert inbox.observations(NAME)[-1].event.text == "fresh"


def test_folder_and_pack_side_by_side_after_a_crash_are_one_set(inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("1-a", "2-a"):
        inbox.file(NAME, observation(key))

    def killed(path: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fs, "remove_tree", killed)
        with pytest.raises(KeyboardInterrupt):
            inbox.pack(NAME)
    after = Inbox(inbox.done.parent)
    assert keys(after) == ["1-a", "2-a"] and after.sessions() == after.packs() == [NAME]
    after.pack(NAME)
    assert keys(after) == ["1-a", "2-a"] and after.sessions() == []


def test_the_folder_counts_where_both_have_a_key(inbox: Inbox) -> None:
    inbox.file(NAME, observation("1-a", text="old"))
    inbox.pack(NAME)
    inbox.file(NAME, observation("1-a", text="new"))
    [found] = Inbox(inbox.done.parent).observations(NAME)
    assert found.event.text == "new"


def test_a_pack_that_is_damaged_gives_what_is_whole(inbox: Inbox) -> None:
    whole = observation_json(observation("1-a"))
    (inbox.done / f"{NAME}.jsonl").write_bytes(b"\xff\n" + whole + b"\n\n" + whole.replace(b"1-a", b"2-a")[:-5])
    assert keys(inbox) == ["1-a"] and inbox.is_done(NAME, "1-a") and not inbox.is_done(NAME, "2-a")


def test_nothing_to_pack_makes_no_pack(inbox: Inbox) -> None:
    inbox.pack(NAME)
    (inbox.done / str(NAME)).mkdir()
    (inbox.done / str(NAME) / "1-a").write_bytes(b"torn")
    inbox.pack(NAME)
    assert not inbox.has_pack(NAME) and (inbox.done / str(NAME) / "1-a").exists()


def test_keys_of_pruned_observations_are_remembered(inbox: Inbox) -> None:
    assert not inbox.is_done(NAME, "1-a")
    (inbox.done / "keys-2026-11-29").write_text("1-a\n2-a\n", "utf-8")
    (inbox.done / "keys-2026-11-30").write_text("3-a", "utf-8")
    for key in ("1-a", "2-a", "3-a"):
        assert Inbox(inbox.done.parent).is_done(NAME, key)
    assert not Inbox(inbox.done.parent).is_done(NAME, "4-a")
    assert inbox.sessions() == inbox.packs() == []


# What a newer vaultd wrote


def test_an_observation_of_a_newer_format_is_left_out_but_known_and_kept(inbox: Inbox) -> None:
    with pytest.raises(ValueError, match="format 2, this vaultd reads up to 1: update vaultd"):
        parse_observation(newer("2-a"))
    inbox.file(NAME, observation("1-a"))
    (inbox.done / str(NAME) / "2-a").write_bytes(newer("2-a"))
    assert keys(inbox) == ["1-a"] and inbox.is_done(NAME, "2-a")
    inbox.pack(NAME)
    packed = (inbox.done / f"{NAME}.jsonl").read_bytes()
    assert packed == observation_json(observation("1-a")) + b"\n" + newer("2-a") + b"\n"
    inbox.file(NAME, observation("3-a", 5))
    (inbox.done / str(NAME) / "4-a").write_bytes(newer("4-a"))
    inbox.pack(NAME)
    after = Inbox(inbox.done.parent)
    assert keys(after) == ["1-a", "3-a"]
    assert {key for key in ("1-a", "2-a", "3-a", "4-a") if after.is_done(NAME, key)} == {"1-a", "2-a", "3-a", "4-a"}
    assert (inbox.done / f"{NAME}.jsonl").read_bytes().splitlines()[2:] == [newer("2-a"), newer("4-a")]


def test_a_session_of_newer_observations_alone_is_left_as_it_is(inbox: Inbox) -> None:
    (inbox.done / str(NAME)).mkdir()
    (inbox.done / str(NAME) / "1-a").write_bytes(newer("1-a"))
    inbox.pack(NAME)
    assert not inbox.has_pack(NAME) and (inbox.done / str(NAME) / "1-a").read_bytes() == newer("1-a")
