"""Times in words, from a fixed day: a Sunday, the 29th of November 2026, unless a test says another one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vaultd.core import query
from vaultd.core.when import Span, days_of, expired, span

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def told(text: str, now: str = "2026-11-29") -> str:
    """First and last day, as `first..last`; "" for no time."""
    found = span(text, datetime.fromisoformat(f"{now}T12:00:00+00:00"))
    return f"{found.first}..{found.last}" if found else ""


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("yesterday", "2026-11-28..2026-11-28"),
        ("today", "2026-11-29..2026-11-29"),
        ("this morning", "2026-11-29..2026-11-29"),
        ("tonight", "2026-11-29..2026-11-29"),
        ("this week", "2026-11-23..2026-11-29"),
        ("last week", "2026-11-16..2026-11-22"),
        ("past week", "2026-11-16..2026-11-22"),
        ("previous month", "2026-10-01..2026-10-31"),
        ("this month", "2026-11-01..2026-11-29"),
        ("last month", "2026-10-01..2026-10-31"),
        ("this year", "2026-01-01..2026-11-29"),
        ("last year", "2025-01-01..2025-12-31"),
        ("3 days ago", "2026-11-26..2026-11-26"),
        ("a few days ago", "2026-11-26..2026-11-26"),
        ("a couple of weeks ago", "2026-11-12..2026-11-18"),
        ("a week ago", "2026-11-19..2026-11-25"),
        ("a month ago", "2026-10-15..2026-11-14"),
        ("0 days ago", "2026-11-29..2026-11-29"),
        ("past two weeks", "2026-11-15..2026-11-29"),
        ("over the last 3 days", "2026-11-26..2026-11-29"),
        ("in the past six months", "2026-06-02..2026-11-29"),
        ("last Tuesday", "2026-11-24..2026-11-24"),
        ("on monday", "2026-11-23..2026-11-23"),
        ("on Sunday", "2026-11-22..2026-11-22"),
        ("in March", "2026-03-01..2026-03-31"),
        ("in Dec.", "2025-12-01..2025-12-31"),
        ("during november", "2026-11-01..2026-11-30"),
        ("this May", "2026-05-01..2026-05-31"),
        ("in sept", "2026-09-01..2026-09-30"),
        ("in March 2025", "2025-03-01..2025-03-31"),
        ("in Mar, 2025", "2025-03-01..2025-03-31"),
        ("in 2025", "2025-01-01..2025-12-31"),
        ("since May", "2026-05-01..2026-11-29"),
        ("since December", "2025-12-01..2026-11-29"),
        ("since May 2024", "2024-05-01..2026-11-29"),
        ("since 2025", "2025-01-01..2026-11-29"),
        ("since 2026-11-20", "2026-11-20..2026-11-29"),
        ("since 2026-02", "2026-02-01..2026-11-29"),
        ("2026-11-29", "2026-11-29..2026-11-29"),
        ("2026-11", "2026-11-01..2026-11-30"),
        ("at 2026-11-28T10:15:00Z", "2026-11-28..2026-11-28"),
        ("at 2026-11-28T10:15:00+01:00", "2026-11-28..2026-11-28"),
        ("sessions/2026-11-28-codex-1.md", "2026-11-28..2026-11-28"),
        ("YESTERDAY'S work", "2026-11-28..2026-11-28"),
        ("bugs 2026-13-45, then 2026-11-02", "2026-11-02..2026-11-02"),
    ],
)
def test_times_in_words(text: str, days: str) -> None:
    for whole in (text, f"what broke {text}?", f"({text})", text.upper()):
        assert told(whole) == days, whole


@pytest.mark.parametrize(
    ("text", "now", "days"),
    [
        ("yesterday", "2024-03-01", "2024-02-29..2024-02-29"),
        ("yesterday", "2026-01-01", "2025-12-31..2025-12-31"),
        ("last month", "2026-03-31", "2026-02-01..2026-02-28"),
        ("last month", "2024-03-30", "2024-02-01..2024-02-29"),
        ("last month", "2026-01-15", "2025-12-01..2025-12-31"),
        ("this month", "2026-03-01", "2026-03-01..2026-03-01"),
        ("in february", "2024-02-29", "2024-02-01..2024-02-29"),
        ("last year", "2024-02-29", "2023-01-01..2023-12-31"),
        ("a year ago", "2024-02-29", "2022-08-31..2023-08-30"),
        ("this week", "2026-01-01", "2025-12-29..2026-01-01"),
        ("last week", "2026-01-01", "2025-12-22..2025-12-28"),
        ("last week", "2027-01-04", "2026-12-28..2027-01-03"),
        ("this week", "2026-11-23", "2026-11-23..2026-11-23"),
        ("last monday", "2026-11-23", "2026-11-16..2026-11-16"),
        ("in january", "2026-01-01", "2026-01-01..2026-01-31"),
        ("in february", "2026-01-31", "2025-02-01..2025-02-28"),
        ("since january", "2026-01-01", "2026-01-01..2026-01-01"),
        ("2024-02-29", "2026-11-29", "2024-02-29..2024-02-29"),
        ("2026-02-29", "2026-11-29", ""),
        ("9999-12", "2026-11-29", "9999-12-01..9999-12-31"),
        ("yesterday", "0001-01-01", ""),
        ("999 years ago", "0500-01-01", ""),
        ("since 2027", "2026-11-29", ""),
    ],
)
def test_ends_of_months_years_and_of_the_calendar(text: str, now: str, days: str) -> None:
    assert told(text, now) == days


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "march of progress", "may", "it may break", "this may fail", "mayor of London", "decimal", "sun"),
        *("version 2.2026", "upgrade in 2025.3", "in 2026-rc1", "2026-13-45", "2026-00", "0000-01-01", "2026-1-1"),
        *("CVE-2026-12345", "2026-11-295", "12026-11-29", "in 1234", "last minute", "past tense", "the last one"),
        *("yesterdays", "lastweek", "in marching", "of marché", "port 2026", "1234 days ago", "since forever"),
        *("ſix days ago", "in ſep", "sıx days ago", "٢٠٢٦-١١-٢٩", "again may"),
    ],
)
def test_what_only_looks_like_a_time(text: str) -> None:
    assert told(text) == ""


@pytest.mark.parametrize(
    ("text", "rest", "alone"),
    [
        ("zebra bug last week", "zebra bug", False),
        ("in the past two weeks: zebra", "zebra", False),
        ("zebra in March 2026", "zebra in March 2026", False),
        ("zebra 2026-11-29", "zebra 2026-11-29", False),
        ("yesterday", "", True),
        ("where were we before yesterday?", "", True),
        ("What happened last week?", "", True),
        ("what was done in March 2026?", "in March 2026", True),
        ("what changed since 2026-11-01", "since 2026-11-01", True),
    ],
)
def test_the_rest_is_what_is_left_to_search_for(text: str, rest: str, alone: bool) -> None:
    found = span(text, NOW)
    assert found is not None and found.alone == alone
    assert query.terms(found.rest) == query.terms(rest)


def all_days(names: list[str]) -> list[date]:
    days: list[date] = []
    for name in names:
        first = date.fromisoformat((name + "-01-01")[:10])
        day = first
        while day.isoformat().startswith(name):
            days.append(day)
            if day == date.max:
                break
            day += DAY
    return days


@given(st.dates(), st.integers(0, 1200))
@example(date(1, 1, 1), 800)
@example(date(9998, 12, 31), 1200)
@example(date(2024, 2, 1), 28)
def test_names_cover_the_span_and_nothing_else(first: date, more: int) -> None:
    last = date.fromordinal(min(first.toordinal() + more, date.max.toordinal()))
    names = list(Span(first, last, "", alone=False).names())
    assert all_days(names) == [date.fromordinal(n) for n in range(first.toordinal(), last.toordinal() + 1)]
    assert len(names) <= 2 * 30 + 2 * 11 + more // 365 + 1


def test_names_are_those_that_pages_have() -> None:
    for day in ("0007-03-02", "2026-11-29"):
        one = date.fromisoformat(day)
        month = one.replace(day=1), one.replace(day=31 if one.month == 3 else 30)
        year = one.replace(month=1, day=1), one.replace(month=12, day=31)
        ends = [(one, one), month, year]
        assert [list(Span(*each, "", alone=False).names()) for each in ends] == [[day], [day[:7]], [day[:4]]]
        assert sorted([day, day[:7], day[:4]]) == days_of({"created": day}, "x.md")


@pytest.mark.parametrize(
    ("values", "path", "days"),
    [
        ({"created": "2026-11-29T23:30:00+01:00"}, "a.md", ["2026-11-29"]),
        ({"created": date(2026, 11, 29), "updated": NOW}, "a.md", ["2026-11-29"]),
        ({"date": datetime(2026, 11, 30, tzinfo=UTC)}, "a.md", ["2026-11-30"]),
        ({"started": "2026-11-29 10:00", "ended": "2026-12-01"}, "a.md", ["2026-11-29", "2026-12-01"]),
        ({"expires_at": "2026-11-29", "due": "2026-11-29"}, "a.md", []),
        ({"created": "yesterday", "date": 20261129, "updated": None, "ended": ["2026-11-29"]}, "a.md", []),
        ({"created": "2026-02-30"}, "2026-13-01.md", []),
        ({}, "log/2026-11-29-codex.md", ["2026-11-29"]),
        ({}, "2026-11-29/x.md", []),
        ({"date": "2026-11-28"}, "2026-11-29.md", ["2026-11-28", "2026-11-29"]),
        ({"date": "٢٠٢٦-١١-٢٩"}, "٢٠٢٦-١١-٢٩.md", []),
    ],
)  # fmt: skip
def test_the_days_of_a_page(values: Mapping[str, object], path: str, days: list[str]) -> None:
    assert days_of(values, path) == sorted({name for day in days for name in (day, day[:7], day[:4])})


NEVER: list[object] = [
    *("", None, True, 0, 20200101, "never", "2020", "2020-13-01", [], "2020-01-01x", "٢٠٢٠-٠١-٠١"),
    *("9999-12-31", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00"),
]


@pytest.mark.parametrize(
    ("value", "over"),
    [
        ("2026-11-28", True),
        ("2026-11-29", False),
        (date(2026, 11, 28), True),
        (" 2026-11-28 ", True),
        ("2026-11-29T12:00:00Z", True),
        ("2026-11-29T12:00:01Z", False),
        ("2026-11-29T13:00:00+01:00", True),
        ("2026-11-29T12:30:00+01:00", True),
        ("2026-11-29T11:30:00-01:00", False),
        (datetime(2026, 11, 29, 11, tzinfo=UTC), True),
        ("2026-11-28T12:00:00", False),
        (datetime(2020, 1, 1), False),
        *((value, False) for value in NEVER),
        ("0001-01-01T00:00:00+23:59", True),
    ],
)  # fmt: skip
def test_expired(value: object, over: bool) -> None:
    assert expired(value, NOW) == over
    assert expired(value, NOW.astimezone(timezone(timedelta(hours=-9)))) == over


def test_a_day_lasts_until_its_end_in_utc() -> None:
    end = datetime(2026, 11, 30, tzinfo=UTC)
    assert not expired("2026-11-29", end - timedelta(microseconds=1)) and expired("2026-11-29", end)


WORDS = [
    *("since", "in", "last", "past", "this", "the", "on", "of", "few", "couple", "two", "999", "0", "days", "week"),
    *("months", "years", "ago", "march", "may", "Sept.", "2026", "0000", "9999-12", "2026-02-30", "tuesday", "ſ", "ı"),
    *("ſix", "sıx", "ſep", "auguſt", "frıday", "K", "\ud800", "٣", "yesterday", "T10:00", "-", "zebra"),
]
TEXTS = st.text() | st.lists(st.sampled_from(WORDS)).map(" ".join)


@given(TEXTS, st.datetimes(timezones=st.just(UTC)))
@example("sıx days ago", NOW)
@example("in ſep", NOW)
@example("on tueſday", NOW)
def test_no_text_raises(text: str, now: datetime) -> None:
    found = span(text, now)
    if found is not None:
        assert found.first <= found.last
        assert not found.alone or len(found.rest) <= len(text)
    assert isinstance(expired(text, now), bool)
    assert days_of({"created": text}, f"{text}.md") == sorted(set(days_of({"created": text}, f"{text}.md")))


@pytest.mark.parametrize(
    "part", ["in ", "in the past ", "2026-13-45 ", "last 3 ", "a few of ", "since may20", "1", "2026-11-29T1:"]
)
def test_long_texts_take_time_in_proportion(part: str) -> None:
    def took(length: int) -> float:
        text = part * (length // len(part))
        begun = time.thread_time()
        for _ in range(5):
            span(text, NOW)
        return time.thread_time() - begun

    assert took(100_000) < 40 * took(10_000)
