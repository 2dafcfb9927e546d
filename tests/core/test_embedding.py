from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaultd.core.embedding import Choice, texts, unit


def test_short_passages_are_taken_together_below_the_title() -> None:
    body = "\n".join(f"turn {number} ^t{number}" for number in range(100))
    found = texts("Talk", body)
    assert 1 < len(found) < 10
    assert all(text.startswith("Talk\nturn ") for text in found)
    assert "\n".join(text.removeprefix("Talk\n") for text in found) == body


@pytest.mark.parametrize(("title", "body", "text"), [("T", "", "T"), ("", "", "-"), ("T", " \n\n", "T")])
def test_a_page_without_text_has_one_all_the_same(title: str, body: str, text: str) -> None:
    assert texts(title, body) == [text]


@given(st.text(max_size=200), st.text(max_size=5000))
def test_texts_are_bounded_and_never_none(title: str, body: str) -> None:
    found = texts(title, body)
    assert found and all(len(text) <= 1251 and text.strip() for text in found)


def test_an_endless_page_has_a_bounded_number_of_texts() -> None:
    assert len(texts("log", "x" * 2_000_000)) == 256
    assert len(texts("log", "a word\n\n" * 100_000)) == 256


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=50))
def test_a_vector_has_length_one_or_is_none(values: list[float]) -> None:
    length = math.hypot(*values)
    if not length or not math.isfinite(length):
        with pytest.raises(ValueError, match="without a direction"):
            unit(values)
    elif length > 1e-300:
        assert math.isclose(math.hypot(*unit(values)), 1.0, rel_tol=1e-5)


@pytest.mark.parametrize("values", [[], [0.0], [float("nan")], [float("inf"), 1.0]])
def test_no_direction(values: list[float]) -> None:
    with pytest.raises(ValueError, match="without a direction"):
        unit(values)


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:11434/v1",
        "https://api.example.org/v1/",
        "http://[::1]:80/x/embeddings",
    ],
)
def test_addresses(url: str) -> None:
    assert Choice("endpoint", url, "m").flaws() == []


@pytest.mark.parametrize(
    "url",
    [
        "localhost:11434",
        "ftp://x/v1",
        "http://",
        "http://me:key@x/v1",
        "http://x/v1?key=1",
        "http://x:99999999/",
        "http://x/a b",
        "http://[x/",
        "http://x/\n",
    ],
)
def test_what_is_no_address(url: str) -> None:
    assert Choice("endpoint", url, "m").flaws() == [
        "`vectors.url` must be like http://localhost:11434/v1, without a name or a key in it"
    ]


def test_all_flaws_are_told_at_once() -> None:
    assert Choice("maybe").flaws() == ["`vectors.provider` must be one of off, local, endpoint"]
    assert len(Choice("endpoint", "", "", "A", "b", -1).flaws()) == 4
    assert len(Choice("local", "http://x/v1", "m", "A", "", 5).flaws()) == 4
    assert Choice("local").flaws() == Choice().flaws() == []
