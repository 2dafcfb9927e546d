"""Times in words: what days a query names, what days a page is of, and whether a page's time is over.

    yesterday, last week, this month, 3 days ago, past two weeks, last Tuesday, in March, in March 2026, in 2025,
    since May, on 29 November, November 29th, 2026, 2026-11-29, 2026-11

A week begins on Monday. A month, or a day of one, without more is the last one that has begun, a weekday the last one
before today.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import PurePosixPath

from vaultd.core import query

__all__ = ["Span", "days_of", "expired", "span"]

_DAY = timedelta(days=1)
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "few": 3, "couple": 2}
_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_MONTH = "|".join(f"{name}|{name[:3]}" for name in _MONTHS) + "|sept"
_WEEKDAY = "|".join(_WEEKDAYS)
_COUNT = rf"\d{{1,3}}|{'|'.join(_NUMBERS)}"
_NTH = r"(?:st|nd|rd|th)?\b"
_WORDS = re.compile(
    rf"""\b(?a:
      (?P<day>today|yesterday|this\ morning|tonight)
    | (?P<which>this|last|past|previous)\ (?P<unit>week|month|year)
    | (?:in\ |over\ |during\ )?(?:the\ )?(?:last|past)\ (?:(?P<many>{_COUNT})\ )(?:of\ )?(?P<of>day|week|month|year)s?
    | (?P<ago>{_COUNT})\ (?:of\ )?(?P<back>day|week|month|year)s?\ ago
    | (?:on\ |last\ )(?P<weekday>{_WEEKDAY})
    | (?P<from>since\ )?(?P<iso>\d{{4}}-\d\d(?:-\d\d|(?!-\d)))(?:T[\d:.]*\dZ?)?
    | (?P<at>on\ |since\ |from\ |of\ )?(?:the\ )?(?:(?P<nth>\d{{1,2}}){_NTH}\ (?:of\ )?(?P<of_month>{_MONTH})\b\.?
      |(?P<month_of>{_MONTH})\b\.?\ (?P<of_nth>\d{{1,2}}){_NTH})(?:,?\ (?P<then>(?:19|20)\d\d))?
    | (?P<how>since|in|during|last|this|from|of)\ (?:(?P<month>{_MONTH})\b\.?(?:,?\ (?P<in>(?:19|20)\d\d))?
      | (?P<year>(?:19|20)\d\d)(?!-|\.\d))
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)
_DOINGS = frozenset({"happen", "done", "chang", "work", "went", "new", "anyth", "everyth", "stuff", "thing"})
_DOINGS |= {"decid", "decision", "learn", "learnt", "gotcha", "wrong"}
"""Terms that say nothing more where a time is named: "what was decided yesterday" asks for all of that day."""

_DATES = ("created", "started", "ended", "updated", "date")
"""The frontmatter keys that say of what days a page is."""

_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MOST_DAYS = 31


@dataclass(frozen=True, slots=True)
class Span:
    """Days from `first` up to `last`, both of them in it. `rest` is the query without the words for it, unless pages
    may hold these words too: "last week" goes, "March 2026" stays. `alone`: nothing else is asked for; then the words
    that stay are the whole rest.
    """

    first: date
    last: date
    rest: str
    alone: bool

    def names(self) -> Iterator[str]:
        """The days, months and years that are together the span, as `days_of` gives them; the longest ones."""
        day = self.first
        while day <= self.last:
            for name, end in ((day.isoformat()[:4], _year_end(day)), (day.isoformat()[:7], _month_end(day))):
                if day == (day.replace(month=1, day=1) if len(name) == 4 else day.replace(day=1)) and end <= self.last:
                    break
            else:
                name, end = day.isoformat(), day
            yield name
            if end == date.max:
                return
            day = end + _DAY


def span(text: str, now: datetime) -> Span | None:
    """The time that a query names first; None when it names none."""
    today = now.date()
    for found in _WORDS.finditer(text):
        try:
            days = _days(found, today)
        except (ValueError, OverflowError):  # no such day, or before the first one
            continue
        if days is not None and days[0] <= days[1]:
            said = any(found[name] for name in ("iso", "month", "year", "nth", "of_nth"))
            other = f"{text[: found.start()]} {text[found.end() :]}"
            alone = set(query.tokens(other)) <= query.STOP_FORMS | _DOINGS
            return Span(*days, (found[0] if alone else text) if said else "" if alone else other, alone)
    return None


def days_of(values: Mapping[str, object], path: str) -> list[str]:
    """The days that a page is of (its frontmatter's, and that in its file's name), with their months and years."""
    told = [str(values[key])[:10] for key in _DATES if values.get(key)]
    told += _ISO_DAY.findall(PurePosixPath(path).stem)[:1]
    return sorted({name for day in told if _is_day(day) for name in (day, day[:7], day[:4])})


def expired(value: object, now: datetime) -> bool:
    """Whether `expires_at` is over: a time with offset, or a day, which lasts until its end in UTC. Others never."""
    text = str(value).strip()
    try:
        if _ISO_DAY.fullmatch(text):
            return datetime.fromisoformat(text).replace(tzinfo=UTC) + _DAY <= now
        at = datetime.fromisoformat(text)
        return at.tzinfo is not None and at <= now
    except (ValueError, OverflowError):
        return False


def _days(found: re.Match[str], today: date) -> tuple[date, date] | None:
    """First and last day of what one expression names."""
    told = {name: value.lower() for name, value in found.groupdict().items() if value}
    if "day" in told:
        day = today - _DAY if told["day"] == "yesterday" else today
        return day, day
    if "unit" in told:
        return _unit(told["unit"], today, back=told["which"] != "this")
    if "many" in told:
        return today - _number(told["many"]) * _length(told["of"]), today
    if "ago" in told:
        middle = today - _number(told["ago"]) * _length(told["back"])
        around = _length(told["back"]) // 2 if told["back"] != "day" else timedelta()
        return middle - around, min(middle + around, today)
    if "weekday" in told:
        back = (today.weekday() - _WEEKDAYS.index(told["weekday"])) % 7 or 7
        return today - back * _DAY, today - back * _DAY
    if "iso" in told:
        first = date.fromisoformat(told["iso"] if len(told["iso"]) > 7 else f"{told['iso']}-01")
        last = first if len(told["iso"]) > 7 else _month_end(first)
        return first, today if "from" in told else last
    if "nth" in told or "of_nth" in told:
        return _day(told, today)
    if "year" in told:
        first = date(int(told["year"]), 1, 1)
        return first, today if told["how"] == "since" else _year_end(first)
    if (told["how"], found["month"]) == ("this", "may") and "in" not in told:
        return None  # "this may fail"
    month = _month(told["month"])
    year = int(told["in"]) if "in" in told else today.year - (month > today.month)
    first = date(year, month, 1)
    return first, today if told["how"] == "since" else _month_end(first)


def _day(told: Mapping[str, str], today: date) -> tuple[date, date] | None:
    """The day of a month, or all days since it; None where a number beside a word like "may" need not be one."""
    if "at" not in told and "then" not in told:
        return None
    month = _month(told.get("of_month") or told["month_of"])
    nth = int(told.get("nth") or told["of_nth"])
    year = int(told["then"]) if "then" in told else today.year - ((month, nth) > (today.month, today.day))
    day = date(year, month, nth)
    return day, today if told.get("at") == "since " else day


def _unit(unit: str, today: date, *, back: bool) -> tuple[date, date]:
    """This or the last week, month or year."""
    first = {
        "week": today - today.weekday() * _DAY,
        "month": today.replace(day=1),
        "year": today.replace(month=1, day=1),
    }[unit]
    if not back:
        return first, today
    last = first - _DAY
    return {
        "week": (first - 7 * _DAY, last),
        "month": (last.replace(day=1), last),
        "year": (last.replace(month=1, day=1), last),
    }[unit]


def _month(name: str) -> int:
    """Its number, by its name or the first three letters of it."""
    return next(number for number, full in enumerate(_MONTHS, 1) if full[:3] == name[:3])


def _number(text: str) -> int:
    return int(text) if text.isdigit() else _NUMBERS[text]


def _length(unit: str) -> timedelta:
    """About how long it is."""
    return {"day": 1, "week": 7, "month": 30, "year": 365}[unit] * _DAY


def _month_end(day: date) -> date:
    """The last day of a day's month."""
    if (day.year, day.month) == (date.max.year, 12):
        return date.max
    return (day.replace(day=1) + _MOST_DAYS * _DAY).replace(day=1) - _DAY


def _year_end(day: date) -> date:
    """The last day of a day's year."""
    return day.replace(month=12, day=31)


def _is_day(text: str) -> bool:
    try:
        return bool(_ISO_DAY.fullmatch(text)) and date.fromisoformat(text) is not None
    except ValueError:
        return False
