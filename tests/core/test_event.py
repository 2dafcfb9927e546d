"""Event files: header and payload, byte for byte; whatever lies in the inbox, reading it raises nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vaultd.core.event import HEADER_LINE, Event, Kind, parse_delivery, why_no_event
from vaultd.core.ids import Key, session_id

KEY = Key("1795982852-a")


def escaped(value: bytes) -> bytes:
    """A header value as a hook writes it: these three and no others."""
    return value.replace(b"%", b"%25").replace(b"\n", b"%0A").replace(b"\r", b"%0D")


def written(header: dict[str, bytes], payload: bytes) -> bytes:
    rows = [HEADER_LINE, *(name.encode() + b"=" + escaped(value) for name, value in header.items())]
    return b"\n".join(rows) + b"\n\n" + payload


names = st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyz_"), min_size=1, max_size=12)
values = st.binary(max_size=60) | st.lists(
    st.sampled_from([b"%", b"25", b"0A", b"\n", b"\r", b"=", b"\xe9", b"%0"])
).map(b"".join)


@given(st.dictionaries(names, values, max_size=8), st.binary(max_size=200), st.integers(0, 2**63))
@example({"cwd": b"/w/100%0A\n%25\r"}, b"\n\n", 1)
def test_header_and_payload_come_back_as_they_were(header: dict[str, bytes], payload: bytes, mtime: int) -> None:
    found = parse_delivery(KEY, written(header, payload), mtime)
    assert found is not None
    assert {name: value.encode("utf-8", "surrogateescape") for name, value in found.header.items()} == header
    assert (found.key, found.payload, found.mtime_ns) == (KEY, payload, mtime)


@given(st.binary(max_size=300) | st.binary(max_size=100).map(lambda rest: HEADER_LINE + b"\n" + rest))
@example(b"")
@example(HEADER_LINE)
@example(HEADER_LINE + b"\n\n")
@example(b"vaultd-event 99999999999999999999\n\n")
@example(HEADER_LINE + b"\n=\n==\n\xff\xfe=\x00\n\n")
def test_no_bytes_raise(data: bytes) -> None:
    assert parse_delivery(KEY, data) is not None or why_no_event(data)


def test_a_value_that_is_not_utf8_is_kept() -> None:
    found = parse_delivery(KEY, b"vaultd-event 1\ncwd=/w/caf\xe9\n\n")
    assert found is not None
    assert found.header["cwd"].encode("utf-8", "surrogateescape") == b"/w/caf\xe9"


def test_lines_without_an_equals_sign_say_nothing_unknown_keys_stay_and_the_first_value_counts() -> None:
    data = b"vaultd-event 1\nagent=a\n" + b" " * 400 + b"\nfuture=x=y\nagent=b\nempty=\n\n{}"
    found = parse_delivery(KEY, data)
    assert found is not None
    assert found.header == {"agent": "a", "future": "x=y", "empty": ""}
    assert found.payload == b"{}"


def test_the_payload_may_hold_blank_lines_and_what_looks_like_a_header() -> None:
    payload = b"\n\nvaultd-event 1\nagent=b\n\n"
    found = parse_delivery(KEY, b"vaultd-event 1\nagent=a\n\n" + payload)
    assert found is not None and found.payload == payload and found.header == {"agent": "a"}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "the file is not an event"),
        (b"{}", "the file is not an event"),
        (b"vaultd-event", "the file is not an event"),
        (b"vaultd-event 0\n\n", "the file is not an event"),
        (b"vaultd-event 1x\n\n", "the file is not an event"),
        (b"vaultd-event 1", "the event's header is cut off"),
        (b"vaultd-event 1\nagent=a\n", "the event's header is cut off"),
        (b"vaultd-event 1\r\nagent=a\r\n\r\n", "the event's header is cut off"),
        (b"vaultd-event 2\nagent=a\n\n{}", "newer format 2, this vaultd reads up to 1: update vaultd"),
        (b"vaultd-event 17\r\n", "newer format 17"),
    ],
)
def test_what_is_no_event_says_why(data: bytes, why: str) -> None:
    assert parse_delivery(KEY, data) is None
    assert why in why_no_event(data)


def event(at: datetime, mtime_ns: int = 0, key: str = "1-a") -> Event:
    return Event(Key(key), "agent", "Stop", Kind.OTHER, at, session_id("agent", "x"), mtime_ns=mtime_ns)


def test_events_are_ordered_by_time_in_any_zone_then_file_time_then_name() -> None:
    noon = datetime(2026, 11, 29, 12, tzinfo=UTC)
    elsewhere = noon.astimezone(timezone(timedelta(hours=9)))
    wanted = [
        event(noon - timedelta(seconds=1), 9, "9-z"),
        event(elsewhere, 1, "9-z"),
        event(noon, 2, "1-a"),
        event(elsewhere, 2, "1-b"),
        event(noon + timedelta(microseconds=1)),
    ]
    wanted_from_the_end = wanted[::-1]
    assert sorted(wanted_from_the_end, key=lambda e: e.order) == wanted
