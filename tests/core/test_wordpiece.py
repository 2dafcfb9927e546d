from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaultd.core.wordpiece import Pieces

LINES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "her", "##on", "##ons", "heron", "e", "##s", ".", "$", "日", "cafe"]
PIECES = Pieces([line + "\n" for line in LINES])


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("the heron", "the heron"),
        ("The HERONS.", "the heron ##s ."),
        ("herons", "heron ##s"),
        ("heronx the", "[UNK] the"),
        ("café CAFÉ", "cafe cafe"),
        ("日日the", "日 日 the"),
        ("the\tthe\n\x00the\u200b", "the the the"),
        ("$e", "$ e"),
        ("x" * 101, "[UNK]"),
        ("", ""),
        ("😀 the", "[UNK] the"),
    ],
)
def test_pieces(text: str, pieces: str) -> None:
    told = [LINES[number] for number in PIECES.numbers(text, 50)]
    assert told == ["[CLS]", *pieces.split(), "[SEP]"]


def test_the_end_is_always_there() -> None:
    assert [LINES[number] for number in PIECES.numbers("the the the the", 4)] == ["[CLS]", "the", "the", "[SEP]"]


@given(st.text(max_size=300), st.integers(2, 40))
def test_any_text_has_a_bounded_number_of_known_pieces(text: str, most: int) -> None:
    numbers = PIECES.numbers(text, most)
    assert 2 <= len(numbers) <= most and all(0 <= number < len(LINES) for number in numbers)


def test_what_is_no_vocabulary() -> None:
    with pytest.raises(ValueError, match="no vocabulary"):
        Pieces(["a", "b"])
