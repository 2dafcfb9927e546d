"""Days that a query names by their number and month."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from vaultd.core import when

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("what did we change on 25 May, 2022?", date(2022, 5, 25)),
        ("what broke March 13th 2025", date(2025, 3, 13)),
        ("on November 29", date(2026, 11, 29)),
        ("the outage of the 3rd of Dec.", date(2025, 12, 3)),  # the last one that has begun
        ("on 1 December", date(2026, 12, 1)),
        ("which 10 may fail, and what of 5 Mar 2024", date(2024, 3, 5)),
    ],
)
def test_a_day_is_named(text: str, day: date) -> None:
    found = when.span(text, NOW)
    assert found is not None and (found.first, found.last) == (day, day)
    assert found.alone or found.rest == text, "the words stay: pages may hold them"


def test_since_a_day_lasts_until_today() -> None:
    found = when.span("since 3 November", NOW)
    assert found is not None and (found.first, found.last) == (date(2026, 11, 3), NOW.date())


@pytest.mark.parametrize("text", ["the 10 may fail", "may 5 clients connect", "on 31 February 2026", "on 0 May"])
def test_a_number_beside_a_month_need_not_be_a_day(text: str) -> None:
    assert when.span(text, NOW) is None


def test_a_month_with_its_year_is_no_day() -> None:
    found = when.span("since May 2026", NOW)
    assert found is not None and found.first == date(2026, 5, 1)
