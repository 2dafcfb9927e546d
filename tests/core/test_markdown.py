from __future__ import annotations

import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaultd.core.frontmatter import parse
from vaultd.core.markdown import SNIPPET, Place, locate, plain, title_of
from vaultd.core.obsidian import outline, parsed_outline
from vaultd.core.outline import plain_outline

PAGE = """\
# Handling of `retries` ^top

An opening line about the parser.

## Deploying to *staging*

```sh
# retry count is a comment here ^not-an-id
echo MAX_RETRY
```

- item about MAX_RETRY_COUNT and **daemons** ^blk-1
- another [[Some/Page|alias]] and [text](http://example.org/kestrel) here

Set apart
---------

> # Quoted heading
> quoted finch

日本語のノートを検索する

    # indented code about herons

<!--
# hidden heading
-->
The last wagtail.
"""


@pytest.mark.parametrize(
    ("query", "anchor", "snippet"),
    [
        ("parser opening", "#Handling of `retries`", "An opening line about the parser."),
        ("retries", "#^top", "An opening line about the parser."),
        ("daemon", "#^blk-1", "item about MAX_RETRY_COUNT and daemons"),
        ("maxretrycount", "#^blk-1", "item about MAX_RETRY_COUNT and daemons"),
        ("comment", "#Deploying to *staging*", "# retry count is a comment here ^not-an-id"),
        ("deploying", "#Deploying to *staging*", "# retry count is a comment here ^not-an-id"),
        ("alias", "#Deploying to *staging*", "another alias and text here"),
        ("apart", "#Set apart", "Quoted heading"),
        ("finch", "#Set apart", "quoted finch"),
        ("ノート", "#Set apart", "日本語のノートを検索する"),
        ("heron", "#Set apart", "# indented code about herons"),
        ("wagtail", "#Set apart", "The last wagtail."),
        ("zebra", "", "An opening line about the parser."),
        ("", "", "An opening line about the parser."),
    ],
)
def test_the_place_of_an_answer(query: str, anchor: str, snippet: str) -> None:
    assert locate(PAGE, query) == Place(anchor, snippet)
    assert locate(PAGE.replace("\n", "\r\n"), query) == Place(anchor, snippet)


@pytest.mark.parametrize(
    "part", [" ", "\\`` ", "` `` ``` ", "``x` ", "`a``b", "猫犬", "x", "a# ", "**a ", "[[a ", "a: "]
)
def test_long_lines_take_time_in_proportion(part: str) -> None:
    def took(length: int) -> float:
        line = part * (length // len(part))
        begun = time.thread_time()
        title_of({}, f"# a{line}b", "a.md")
        locate(f"{line} kestrel", "猫犬 kestrel")
        parse(f"---\na{line}\nb: [\n---\nx".encode())
        return time.thread_time() - begun

    took(1000)
    assert took(60_000) < 40 * max(took(6_000), 0.001)


def test_below_a_heading_without_text_the_heading_is_shown() -> None:
    assert locate("# Herons\n", "herons") == Place("#Herons", "Herons")
    assert locate("# Birds\n## Herons\n## Soup\nof beans\n", "herons") == Place("#Herons", "Herons")


def test_the_line_with_more_and_rarer_words_wins_and_the_first_of_equals() -> None:
    page = "# H\n\ncommon\ncommon rare\ncommon other\ncommon rare\n"
    assert locate(page, "common rare").snippet == "common rare"
    assert locate("a word\n\n# One\n\nb word\n", "word") == Place("", "a word")
    lines = "x heron\n" + "y egret\n" * 5 + "z egret heron\n"
    assert locate(lines, "heron egret").snippet == "z egret heron"


def test_a_page_without_headings_or_ids_has_no_anchor() -> None:
    assert locate("just a line with a heron\nand more", "heron") == Place("", "just a line with a heron")
    assert locate("", "heron") == Place("", "")
    assert locate("---\n***\n", "heron") == Place("", "")
    assert locate("line about x^2 and herons", "heron").anchor == ""


def test_headings_as_commonmark_reads_them() -> None:
    found = outline(PAGE)
    assert [text for _, _, text in found.headings] == ["Handling of `retries`", "Deploying to *staging*", "Set apart"]
    assert [level for _, level, _ in found.headings] == [1, 2, 2]
    lines = PAGE.split("\n")
    assert {lines[number].strip() for number in found.verbatim} >= {"# hidden heading", "echo MAX_RETRY"}
    assert outline("- list\n  ```\n  # no\n  ```\n\n####### seven\n\n#tag\n").headings == []
    assert outline("~~~\n# no\n```\n# no\n~~~\n# yes #\n").headings == [(5, 1, "yes")]


def test_a_long_line_is_cut_around_the_words_that_match() -> None:
    line = "word " * 300 + "a needle beside the haystack " + "word " * 300 + "needle"
    place = locate(f"# H\n\n{line}\n", "needle haystack")
    assert place.anchor == "#H"
    assert "needle beside the haystack" in place.snippet
    assert place.snippet.startswith("…word")
    assert place.snippet.endswith("word…")
    assert len(place.snippet) <= SNIPPET
    tail = locate("word " * 300 + "final needle", "needle").snippet
    assert tail.endswith("final needle")
    head = locate("needle " + "word " * 300, "needle").snippet
    assert head.startswith("needle word")


def test_a_long_line_without_spaces_is_cut_too() -> None:
    text = "日本語" * 200 + "検索" + "東京都" * 200
    found = locate(text, "検索").snippet
    assert "検索" in found
    assert len(found) <= SNIPPET
    assert len(locate("x" * 5000, "zebra").snippet) <= SNIPPET


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("- [x] **done** with `code`", "done with code"),
        ("3. third ^id-9", "third"),
        ("> [!note]- Callout *text*", "Callout text"),
        ("see [[Page]] and [[Page#Part|part]] and ![[img.png]]", "see Page and part and img.png"),
        ("[text](http://x.y 'title') ![alt](a.png)", "text alt"),
        (r"\#not-a-tag and \*stars\*", "#not-a-tag and *stars*"),
        ("snake_case __init__ stays", "snake_case __init__ stays"),
        ("a\tb\u0000c\u2028d", "a b c d"),
        ("-- dashes - inside", "-- dashes - inside"),
        ("def f(*args, **kwargs): 2*3*4 and a * b * c", "def f(*args, **kwargs): 2*3*4 and a * b * c"),
    ],
)
def test_plain_text_of_a_line(line: str, text: str) -> None:
    assert plain(line) == text


@pytest.mark.parametrize(
    ("values", "body", "title"),
    [
        ({"title": " The\n title "}, "# Other", "The title"),
        ({"title": 2024}, "", "2024"),
        ({"title": ""}, "# Heading `x` ^id", "Heading x"),
        ({"title": ["a"]}, "\n\n# Heading #\r\n", "Heading"),
        ({"title": True}, "## Two\n\n# One\n", "One"),
        ({}, "Setext\n===\n", "Setext"),
        ({}, "text\n\n```\n# code\n```\n", "file name"),
        ({}, "", "file name"),
        ({}, "# \n", "file name"),
    ],
)
def test_titles(values: dict[str, object], body: str, title: str) -> None:
    assert title_of(values, body, "folder/file name.md") == title


def test_a_long_title_is_cut() -> None:
    assert len(title_of({"title": "é" * 1000}, "", "a.md").encode()) <= 300


TEXTS = st.text(alphabet=st.sampled_from(list("ab #>-*`~[]()|^!=\\<>\n\r\t1.:猫犬é\u0000\ud800")), max_size=80)


@given(TEXTS, st.one_of(TEXTS, st.text(max_size=20)))
def test_no_page_and_no_query_is_an_error(body: str, query: str) -> None:
    place = locate(body, query)
    assert len(place.snippet) <= SNIPPET
    assert "\n" not in place.snippet + place.anchor
    assert place.anchor == "" or place.anchor.startswith("#")
    title = title_of({}, body, "a.md")
    assert title
    assert "\n" not in title


def test_the_parser_is_loaded_only_when_needed() -> None:
    code = (
        "import sys; from vaultd.core.markdown import locate, title_of;"
        "title_of({}, '# T\\n', 'a.md'); title_of({}, 'no heading', 'a.md'); locate('# a\\nb', 'b');"
        "print('markdown_it' in sys.modules); locate('a\\n=\\nb', 'b'); print('markdown_it' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


_PIECES = [
    "# ",
    "## ",
    "#",
    "```",
    "~~~",
    "````",
    " ",
    "    ",
    "\t",
    "\n",
    "\n\n",
    "- ",
    "> ",
    "1. ",
    "a",
    "word",
    "<b>",
    "<!--",
]
_PIECES += ["-->", "---", "===", "[x]: y", "`", "* ", " #", "\\", " ^id", "|", "%%", "$$", "[^1]: ", "\r"]


@given(st.lists(st.sampled_from(_PIECES), max_size=40).map("".join))
def test_what_is_read_without_the_parser_is_what_the_parser_reads(body: str) -> None:
    told = plain_outline(body)
    if told is not None:
        parsed, lines = parsed_outline(body), body.split("\n")
        assert told.headings == parsed.headings
        blank = {number for number, line in enumerate(lines) if not line.strip()} | {len(lines)}
        assert set(told.verbatim) - blank == set(parsed.verbatim) - blank


def test_most_pages_need_no_parser() -> None:
    page = '# One\n\nText\n- a list\n- of two\n\n```python\nif x:\n    y = "# no"\n```\n\n## Two ##\n> a quote\n'
    told = plain_outline(page)
    assert told is not None
    assert told.headings == [(0, 1, "One"), (11, 2, "Two")]
    assert set(told.verbatim) == {6, 7, 8, 9}
