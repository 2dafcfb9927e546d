from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaultd.core.markdown import locate
from vaultd.core.passages import lines_of
from vaultd.core.sections import lines_named, section

PAGE = """\
intro
# Build
one ^first
## Linux
two
### Notes
three
## macOS
### Notes
four
# Deploy, *again*!
five
## Linux
six
## C# & `snake_case`
seven

Setext
------
eight
# ???
nine
```sh
# Code
```
# Build
ten
"""


def part(body: str, anchor: str) -> list[str] | None:
    """The lines that an anchor names."""
    found = section(body, anchor)
    return None if found is None else lines_of(body)[found.start : found.stop]


@pytest.mark.parametrize(
    ("anchor", "first", "last"),
    [
        ("#Build", "# Build", "four"),
        ("Build", "# Build", "four"),
        (" #build ", "# Build", "four"),
        ("#Linux", "## Linux", "three"),
        ("#Notes", "### Notes", "three"),
        ("#Build#Linux", "## Linux", "three"),
        ("#Deploy again#Linux", "## Linux", "six"),
        ("#deploy -- AGAIN", "# Deploy, *again*!", "eight"),
        ("#macOS#Notes", "### Notes", "four"),
        ("#Build#macOS#Notes", "### Notes", "four"),
        ("#Build#Notes", "### Notes", "three"),
        ("#C# & `snake_case`", "## C# & `snake_case`", ""),
        ("#C & snake case", "## C# & `snake_case`", ""),
        ("#c# snake_case", "## C# & `snake_case`", ""),
        ("#Deploy again#C snake_case", "## C# & `snake_case`", ""),
        ("#Setext", "Setext", "eight"),
        ("#???", "# ???", "```"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_headings(anchor: str, first: str, last: str, end: str) -> None:
    found = part(PAGE.replace("\n", end), anchor)
    assert found is not None and (found[0], found[-1]) == (first, last)


@pytest.mark.parametrize(
    "anchor",
    [
        *(
            "",
            "#",
            "##",
            "#Cod",
            "#Code",
            "#Linux#Build",
            "#Build#Windows",
            "#!!!",
            "#^",
            "#^none",
            "^Build",
        ),
        *("#Notes#Notes", "#macOS#Linux", "intro", "#^first x"),
    ],
)
def test_what_names_nothing(anchor: str) -> None:
    assert section(PAGE, anchor) is None


def test_of_several_with_one_name_the_one_that_has_the_rest() -> None:
    body = "# A\n## A\na\n# B\n# A\n## C\nc\n"
    assert part(body, "#A#A") == ["## A", "a"]
    assert part(body, "#A#C") == ["## C", "c", ""]
    assert part(body, "#A") == ["# A", "## A", "a"]


def test_a_heading_in_either_way_to_write_an_accent() -> None:
    for heading, anchor in (("Caf\u00e9", "#Cafe\u0301"), ("Cafe\u0301", "#CAF\u00c9")):
        assert part(f"# {heading}\nx", anchor) == [f"# {heading}", "x"]


def test_a_heading_in_a_quote_or_a_list_is_none() -> None:
    assert section("> # Quoted\n\n- # Listed\n", "#Quoted") is None
    assert section("> # Quoted\n\n- # Listed\n", "#Listed") is None


BLOCKS = """\
# A

before

said by one ^one

said by two
on two lines ^two

```
in code ^three
```

after ^three

last
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_block_comes_with_its_neighbours(end: str) -> None:
    body = BLOCKS.replace("\n", end)
    assert part(body, "#^one") == lines_of(body)[:8]
    assert part(body, "^two") == lines_of(body)[:14]
    three = part(body, "#^three")
    assert three is not None and three[0] == "said by two" and three[-1] == "last"
    assert section(body, "#^One") is None and section(body, "#^on") is None


def test_the_first_and_the_last_block_have_one_neighbour() -> None:
    assert part("x ^a\ny ^b\nz ^c", "#^a") == ["x ^a", "y ^b"]
    assert part("x ^a\ny ^b\nz ^c", "#^c") == ["y ^b", "z ^c"]
    assert part("x ^a", "#^a") == ["x ^a"]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("1", range(1)),
        (" 3 - 5 ", range(2, 5)),
        ("3:5", range(2, 5)),
        ("9-12", range(8, 10)),
        ("10", range(9, 10)),
        ("1-9999999", range(10)),
        *((text, None) for text in ("", "0", "0-3", "11", "11-12", "5-3", "-3", "3-", "a")),
        *((text, None) for text in ("1-2-3", "1,2", "1.5", "99999999")),
    ],
)
def test_lines(text: str, lines: range | None) -> None:
    assert lines_named(text, 10) == lines
    assert lines_named(text, 0) is None


LINES = [
    *("# A", "## A", "## B", "### B c", "A", "---", "===", "> # A", "```", "~~~", "# A #", "#", "# ", "#A", "x ^a"),
    *("^a", "", "    # A", "<!--", "-->", "- # A", "\t# A", "x\0", "# C# d", "# ??", "\ud800 ^a", "# ^a", "\u2028"),
]


def bodies(*more: str) -> st.SearchStrategy[str]:
    lines = st.lists(st.sampled_from([*LINES, *more]))
    return lines.map("\n".join) | lines.map("\r\n".join)


ANCHORS = st.text() | st.sampled_from(["#A", "#A#B", "#B c", "#^a", "C# d", "#A#A#A#A#A#A#A"])


@given(bodies("%%", "$$") | st.text(), ANCHORS, st.text() | st.from_regex(r"\d+-\d+"))
def test_nothing_raises_and_what_is_named_is_there(body: str, anchor: str, lines: str) -> None:
    found = section(body, anchor)
    assert found is None or 0 <= found.start < found.stop <= len(lines_of(body))
    told = lines_named(lines, len(lines_of(body)))
    assert told is None or 0 <= told.start < told.stop <= len(lines_of(body))


@given(bodies(), st.sampled_from(["a", "b c", "d", "x"]))
def test_the_anchor_of_a_hit_can_be_read(body: str, text: str) -> None:
    place = locate(body, text)
    assert not place.anchor or section(body, place.anchor) is not None


def test_many_headings_take_time_in_proportion() -> None:
    def took(headings: int) -> float:
        body = "# A\n" * headings
        begun = time.thread_time()
        assert section(body, "#A#A") is None and section(body, "#A#B#C") is None
        return time.thread_time() - begun

    assert took(20_000) < 40 * took(2_000)
