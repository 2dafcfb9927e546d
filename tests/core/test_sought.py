"""What is looked for in pages that no index knows: whatever makes a page an answer stands in it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaultd.core import query
from vaultd.core.sought import sought

NOW = datetime(2026, 3, 5, tzinfo=UTC)
STEMS = ["price", "retry", "fly", "cache", "run", "migrate", "index", "process", "class", "box", "day", "die"]
ENDS = ["", "s", "es", "d", "ed", "ing", "er"]


def found(text: str, page: str) -> bool:
    return any(string.lower() in page.lower() for strings in sought(text, NOW) for string in strings)


@pytest.mark.parametrize(
    ("text", "strings"),
    [
        ("why does the price loader retry", [("loader",), ("retry", "retrie"), ("pric",)]),
        ("(src/core/file.py:12)", [("src/core/file.py",), ("core",), ("file",)]),
        (
            "MAX_RETRY_COUNT error404",
            [("max_retry_count",), ("error404",), ("retry", "retrie"), ("count",), ("error",)],
        ),
        ("go db", [("go",), ("db",)]),
        ("Löschung", [("schung",)]),
        ("漢字の", [("漢字",), ("字の",)]),
        ("йод", [("йод", "Йод", "ЙОД", "и\u0306од", "И\u0306од", "И\u0306ОД", "иод", "Иод", "ИОД")]),
        ("what was yesterday", [("2026-03-04",)]),
        (
            "decisions since February",
            [("2026-02", "2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04", "2026-03-05")],
        ),
        ("the", [("the",)]),
        ("", []),
        ("?!", []),
    ],
)
def test_the_words_of_a_query_the_longest_first(text: str, strings: list[tuple[str, ...]]) -> None:
    told = sought(text, NOW)
    assert told[: len(strings)] == strings and (strings or not told)


def test_there_are_few_of_them() -> None:
    assert len(sought(" ".join(f"word{n}" for n in range(100)) + " since 1900", NOW)) == 9


@given(st.text())
def test_any_text_gives_strings_that_are_one_line(text: str) -> None:
    for strings in sought(text, NOW):
        assert strings and all(string and string.isprintable() and string.encode() for string in strings)


@given(st.sampled_from(STEMS), st.sampled_from(ENDS), st.sampled_from(ENDS))
def test_words_that_differ_in_their_ends_are_found(root: str, end: str, other: str) -> None:
    text, page = root + end, root.removesuffix("e") + other
    assert found(text, page) or not set(query.terms(text)) & set(query.tokens(page))


@given(st.lists(st.text("aByZ19/.:-_#+", min_size=1, max_size=12), min_size=1, max_size=4))
def test_a_page_with_the_querys_own_words_is_found(words: list[str]) -> None:
    text = " ".join(words)
    strings = sought(text, NOW)
    assert found(text, text.replace("-", "").replace("_", "")) or found(text, text) or not strings
