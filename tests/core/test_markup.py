"""Raw text inside Markdown: nothing of it becomes structure, and nothing of it is lost."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.examples import examples
from vaultd.core.markup import clip, code, escape, fold, size, squash, unescape

MARKDOWN = MarkdownIt("commonmark").enable("table").enable("strikethrough")
CHARACTERS = st.text(alphabet=st.sampled_from(list("ab1 `\\[]()!#%<>/-+*=~_|^$:x.&\n\tä日")), max_size=30)
HARMLESS = {
    "text",
    "text_special",
    "code_inline",
    "em_open",
    "em_close",
    "strong_open",
    "strong_close",
    "s_open",
    "s_close",
}


@settings(max_examples=examples(1500), deadline=None)
@given(st.one_of(CHARACTERS, st.text(max_size=40)))
@example("\\`a`b`")
@example("`` ` ``` x")
@example("1. `a")
@example("![[x]] [[y|z]] [a](b) ![c](d) %%hidden%%")
def test_escaped_text_is_one_paragraph_of_plain_words_and_comes_back(text: str) -> None:
    escaped = escape(text)
    assert unescape(escaped) == fold(text)
    tokens = MARKDOWN.parse(f"- x\n- {escaped}\n- y\n")
    item = ["list_item_open", "paragraph_open", "inline", "paragraph_close", "list_item_close"]
    middle = item if escaped else [item[0], item[-1]]
    assert [token.type for token in tokens] == ["bullet_list_open", *item, *middle, *item, "bullet_list_close"]
    inside = {child.type for token in tokens if token.type == "inline" for child in token.children or ()}
    assert inside <= HARMLESS


@settings(max_examples=examples(1000), deadline=None)
@given(CHARACTERS)
def test_escaped_text_holds_no_link_embed_or_comment_of_obsidian(text: str) -> None:
    # A program that looks for these signs and knows no escapes finds none either (outside code spans).
    escaped = escape(text.replace("`", ""))
    assert not [sign for sign in ("[[", "![", "%%", "$$", "](") if sign in escaped]


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("# Heading", "\\# Heading"),
        ("#tag and #42 and a#b", "\\#tag and #42 and a#b"),
        ("> [!note] hi", "\\> [!note] hi"),
        ("- [ ] task", "\\- [ ] task"),
        ("[x] done", "\\[x] done"),
        ("1. one", "1\\. one"),
        ("~~~", "\\~~~"),
        ("---", "\\---"),
        ("| a | b |", "\\| a | b |"),
        ("<!-- x --> <b>", "\\<!-- x --> \\<b>"),
        ("a < b and Vec<u8>", "a < b and Vec\\<u8>"),
        ("[[Page]] ![[Page]]", "[\\[Page]] !\\[\\[Page]]"),
        ("%%secret%%", "%\\%secret%\\%"),
        ("ends with ^block-id", "ends with \\^block-id"),
        ("use `a_b` and *stars*", "use `a_b` and *stars*"),
        ("one ` tick", "one \\` tick"),
        ("C:\\[x", "C:\\\\[x"),
        ("two\nlines\u2028three", "two lines three"),
        ("snake_case_name - fine", "snake_case_name - fine"),
    ],
)
def test_escape(text: str, escaped: str) -> None:
    assert escape(text) == escaped


@settings(max_examples=examples(500), deadline=None)
@given(CHARACTERS)
def test_a_code_span_cannot_be_closed_from_inside(text: str) -> None:
    span = code(text)
    children = MARKDOWN.parseInline(f"a {span} b")[0].children or []
    if fold(text):
        assert [child.type for child in children] == ["text", "code_inline", "text"]
        assert children[1].content == fold(text)
    else:
        assert span == ""


@settings(max_examples=examples(500), deadline=None)
@given(st.text(max_size=60), st.integers(0, 80))
def test_clip_never_exceeds_its_limit_nor_cuts_a_character(text: str, limit: int) -> None:
    cut = clip(text, limit)
    assert size(cut) <= max(limit, 0)
    if cut != text:
        assert cut in ("", "…") or (cut.endswith("…") and text.startswith(cut[:-1]))


def test_clip_prefers_the_end_of_a_word() -> None:
    assert clip("alpha beta gamma delta epsilon", 28) == "alpha beta gamma delta…"
    assert clip("日本語日本語", 11) == "日本…"


def test_lone_surrogates_and_controls_are_folded() -> None:
    assert fold("a\ud800b\x00c\x1b[31md") == "a\ufffdb c [31md"


def test_squash_compares_words_only() -> None:
    assert squash("**We** decided: `x_1`!") == squash("we decided x1")
