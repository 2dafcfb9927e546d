"""Passages: every line is in one, each is short, and block ids and headings set them apart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vaultd.core.passages import MOST_WORDS, passages

LINES = st.sampled_from(
    ["", "   ", "# Heading", "## Two", "a plain line", "- an item ^id-1", "```", "# a comment", "word " * 70, "字" * 40]
)


@given(st.lists(LINES | st.text(max_size=30)), st.sampled_from(["\n", "\r\n", "\r"]))
def test_every_line_is_in_one_passage_in_its_order(lines: list[str], end: str) -> None:
    body = end.join(lines)
    found = passages(body)
    parts = body.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    told = [line for text in found for line in text.split("\n") if line.split()]
    assert told == [line for line in parts if line.split()]
    for text in found:
        filled = [line for line in text.split("\n") if line.split()]
        assert len(filled) == 1 or len(text.split()) <= MOST_WORDS


def test_a_conversation_is_cut_into_turns() -> None:
    body = "# Day\n\nAda: hello there ^D1-1\n\nGrace: good morning ^D1-2\nmore of it ^D1-3\n"
    assert passages(body) == [
        "# Day\n\nAda: hello there ^D1-1",
        "Grace: good morning ^D1-2",
        "more of it ^D1-3",
    ]


def test_headings_begin_passages_but_comments_in_code_do_not() -> None:
    body = "One.\n# Two\ntext\n```sh\n# not a heading\nmake ^not-an-id\n```\nafter\n## Three\n"
    assert [text.split("\n")[0] for text in passages(body)] == ["One.", "# Two", "## Three"]


def test_paragraphs_share_a_passage_until_it_is_long_enough() -> None:
    short, long = "five words are in here", "word " * 70
    body = f"{short}\n\n{short}\n\n{long}\n\n{short}\n"
    assert [len(text.split()) for text in passages(body)] == [80, 5]
