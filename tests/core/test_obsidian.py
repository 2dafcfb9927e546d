"""A page as Obsidian reads it: every form of link, tag, task and block id, and what only looks like one."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from vaultd.core import obsidian
from vaultd.core.link import Link
from vaultd.core.obsidian import LINES, Code, Parsed, Task, outline, parse
from vaultd.core.outline import Heading
from vaultd.core.properties import property_links, relations


def told(link: Link) -> str:
    """A link in short: `!` an embed, `>` an external one, then target, anchor and text."""
    marks = "!" * link.embed + ">" * link.external
    return f"{marks}{link.target}{link.anchor}" + (f"|{link.text}" if link.text else "")


WIKILINKS = {
    "[[Page]]": ["Page"],
    "[[ Page ]] and [[folder/Page.md]]": ["Page", "folder/Page.md"],
    "[[Page|shown text]]": ["Page|shown text"],
    "[[Page|a [b] c]]": ["Page|a [b] c"],
    "[[Page#Heading]] [[Page#A#B|x]]": ["Page#Heading", "Page#A#B|x"],
    "[[Page#^id-1]] ![[Page#^id-1]]": ["Page#^id-1", "!Page#^id-1"],
    "[[#Heading]] [[#^id]]": ["#Heading", "#^id"],
    "![[x.png]] ![[x.png|100]]": ["!x.png", "!x.png|100"],
    "| a | b |\n|---|---|\n| [[a\\|b]] | ![[c.png\\|9]] |": ["a|b", "!c.png|9"],
    "[[猫|犬]] [[Cafe\u0301]] [[Café]]": ["猫|犬", "Cafe\u0301", "Café"],
    "**[[a]]** ==[[b]]== ~~[[c]]~~ _[[d]]_ ([[e]])": ["a", "b", "c", "d", "e"],
    "> [!note]- See [[a]]\n> and [[b]]": ["a", "b"],
    "- [[a]]\n  - [ ] [[b]]\n1. [[c]]": ["a", "b", "c"],
    "# [[a]]\n\n[[b]]\n---": ["a", "b"],
    "<b>[[a]]</b> and Vec<[[b]]>": ["a", "b"],
    "[[[a]]] and [x [[b]] y](c.md)": ["a", "c.md|x [[b]] y", "b"],
    "wow![[a]] and \\![[b]]": ["!a", "b"],
    "[[]] [[ ]] [[|x]] [[#]] [[a\nb]] [[a] ]": [],
    "\\[[a]] [\\[b]] \\\\[[c]]": ["c"],
}

MARKDOWN_LINKS = {
    "[text](page.md)": ["page.md|text"],
    "[t](my%20page.md#a%20b) [t](C%23.md)": ["my page.md#a b|t", "C#.md|t"],
    "[t](<my page.md>) [t](<a(b.md> 'title')": ["my page.md|t", "a(b.md|t"],
    '[t](a.md "title") [t](a.md (title)) [t]( a.md )': ["a.md|t"] * 3,
    "[t](a_(b).md) [t](a\\).md) [t](a&amp;b.md)": ["a_(b).md|t", "a).md|t", "a&b.md|t"],
    "[t](#part) [t](../up.md) [t](/root.md)": ["#part|t", "../up.md|t", "/root.md|t"],
    "![alt](pic.png) [![alt](pic.png)](page.md)": ["!pic.png|alt", "page.md|![alt](pic.png)", "!pic.png|alt"],
    "[a [b](in.md) c](out.md)": ["in.md|b"],
    "[a][r] [r][] [r] [R ] ![r]\n\n[r]: <x y.md> 'title'": [
        "x y.md|a",
        "x y.md|r",
        "x y.md|r",
        "x y.md|R ",
        "!x y.md|r",
    ],
    "[a][none] [none] [x] [1]": [],
    "[a]() [a](b c.md) [a] (b.md) [a](b.md": [],
    "\\[a](b.md) [a\\](b.md)": [],
    "[%zz](%zz.md) [t](%ff.md)": ["%zz.md|%zz", "\ufffd.md|t"],
    "[^1] and [^1]: no\n\n[^1]: [[a]] [t](b.md)\n\n    [[c]]\n\n[^2]: x": ["a", "b.md|t", "c"],
}

EXTERNAL = {
    "[t](https://x.org/a#b)": [">https://x.org/a#b|t"],
    "[t](mailto:a@b.org) [t](//host/x) [t](api:x.md)": [">mailto:a@b.org|t", ">//host/x|t", ">api:x.md|t"],
    "<https://x.org/#a> https://x.org/b#tag, and (http://y.org/c).": [
        ">https://x.org/#a",
        ">https://x.org/b#tag",
        ">http://y.org/c",
    ],
    "[https://x.org](https://x.org)": [">https://x.org|https://x.org"],
    "[[https://x.org/a]] [[C:\\notes\\x]] [[C:/x]]": [">https://x.org/a", ">C:\\notes\\x", ">C:/x"],
    "a :// b ://c": [],
}

HIDDEN = {
    "`[[a]] #b` ``[[a]] ` #b`` [[c]]": ["c"],
    "```\n[[a]]\n#b ^c\n- [ ] d\n```\n[[e]]": ["e"],
    "~~~md\n[[a]]": [],
    "text\n\n    [[a]] #b ^c\n\n\t[[a]]": [],
    "x <!-- [[a]] #b --> [[c]]": ["c"],
    "<!-- [[a]] --> [[b]] is of the same block": [],
    "<!--\n[[a]]\n\n# b\n-->\n\n[[c]]": ["c"],
    "<div>\n[[a]] #b\n</div>\n\n[[c]]": ["c"],
    '<a href="#x" title=\'[[a]]\'> <img alt="x #b">': [],
    "%% [[a]] #b %% [[c]]": ["c"],
    "x %%[[a]]\n#b%% [[c]]": ["c"],
    "%%\n[[a]] #b\n\n# c\n```\n- [ ] d\n%% [[e]]\n": ["e"],
    "- item\n  %%\n  [[a]]\n  %%\n- [[b]]": ["b"],
    "> %%\n> [[a]]\n> %%\n\n[[b]]": ["b"],
    "%%\n[[a]] is not hidden": ["a"],
    "`%%` [[a]] `%%`": ["a"],
    "```\n%%\n```\n[[a]]\n\n%%": ["a"],
    "$x [[a]] #b$ $$[[a]]$$ [[c]]": ["c"],
    "$$\n[[a]] #b\n$$\n[[c]]": ["c"],
    "costs $5 [[a]] or $6": ["a"],
    "\\$5 [[a]] \\`[[b]]\\` \\%% [[c]]": ["a", "b", "c"],
    "`[[a` [[b]] `": ["b"],
}


@pytest.mark.parametrize(("body", "links"), [*WIKILINKS.items(), *MARKDOWN_LINKS.items(), *EXTERNAL.items()])
def test_links(body: str, links: list[str]) -> None:
    assert [told(link) for link in parse(body).links] == links


@pytest.mark.parametrize(("body", "links"), HIDDEN.items())
def test_nothing_hidden_counts(body: str, links: list[str]) -> None:
    page = parse(body)
    assert [told(link) for link in page.links] == links
    assert (page.tags, page.tasks, page.blocks, page.headings) == ([], [], [], [])


def test_wiki_and_markdown_links_are_told_apart() -> None:
    assert [link.wiki for link in parse("[[a]] ![[b]] [c](c) ![d](d)").links] == [True, True, False, False]


@pytest.mark.parametrize(
    ("inner", "project", "page"),
    [
        ("api:notes/x", "api", "notes/x"),
        ("API:x.md#H|text", "API", "x.md"),
        ("work/api:x", "work/api", "x"),
        ("日本:猫", "日本", "猫"),
        ("notes/x", "", "notes/x"),
        ("My note: part", "", "My note: part"),
        ("a: b", "", "a: b"),
        ("a b:c", "", "a b:c"),
        ("api:", "", "api:"),
        (":x", "", ":x"),
        ("C:\\x", "", "C:\\x"),
        ("https://x.org", "", "https://x.org"),
    ],
)
def test_links_into_other_projects(inner: str, project: str, page: str) -> None:
    (link,) = parse(f"[[{inner}]]").links
    assert (link.project, link.page) == (project, page)
    assert link.target == (f"{project}:{page}" if project else page)


@pytest.mark.parametrize(
    ("body", "tags"),
    [
        ("#tag and #nested/tag, #y1984. #a_b-c", ["tag", "nested/tag", "y1984", "a_b-c"]),
        ("#猫 #über #🎉 #x🎉", ["猫", "über", "🎉", "x🎉"]),
        ("#1984 #12/3 # a ## b ##c #- #/ #", []),
        ("#2024-w1 #a/ #a//b", ["2024-w1", "a", "a//b"]),
        ("a#b x/#c &#35; (#d) url(#e) [[p#f]] [g #h](i) https://x.org/#j", []),
        ("\\#a \\\\#b `#c`", []),
        ("**#a** ==#b== ~~#c~~ <b>#d</b> |#e|", ["a", "b", "c", "d", "e"]),
        ("> #a\n\n- #b\n\n# Heading #c\n\n- [x] #d", ["a", "b", "c", "d"]),
        ("#a #b\n#c", ["a", "b", "c"]),
        ("#one[[x]] #two(x) #three.", ["one", "two", "three"]),
    ],
)
def test_tags(body: str, tags: list[str]) -> None:
    assert [tag.name for tag in parse(body).tags] == tags


@pytest.mark.parametrize(
    ("body", "tasks"),
    [
        ("- [ ] open\n- [x] done ^id\n- [/] half", [(0, " ", "open"), (1, "x", "done"), (2, "/", "half")]),
        ("1. [X] a\n   - [-] b\n\n* [ ] two\n  lines", [(0, "X", "a"), (1, "-", "b"), (3, " ", "two lines")]),
        ("> - [?] quoted [[x]]", [(0, "?", "quoted [[x]]")]),
        ("- [ ]\n- [x]", [(0, " ", ""), (1, "x", "")]),
        ("- [] a\n- [xx] b\n- [x](y.md)\n- [x]y\n\n[ ] c\n- \\[ ] d\n- a [ ] b", []),
    ],
)
def test_tasks(body: str, tasks: list[Task]) -> None:
    assert parse(body).tasks == tasks


@pytest.mark.parametrize(
    ("body", "blocks"),
    [
        ("text ^a-1\nmore ^b \nnot ^c here\nnor^d\n\\^e", [(0, "a-1"), (1, "b")]),
        ("# Heading ^h\n\n- item ^i\n\n| a |\n|---|\n\n^table", [(0, "h"), (2, "i"), (7, "table")]),
        ("`code ^a`\n^a_b ^é", []),
    ],
)
def test_block_ids(body: str, blocks: list[tuple[int, str]]) -> None:
    assert parse(body).blocks == blocks


PAGE = """\
# One ^top

text [[a]]
and [[b]] #tag

```py title="x"
# no
```

Two
---

%%
# hidden
%%
- [ ] task [t](c.md)
  ~~~
  [[no]]
  ~~~

> # Quoted

$$
x
$$

<div>
</div>
[[in html]]
"""


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_count_from_the_first(end: str) -> None:
    page = parse(PAGE.replace("\n", end))
    assert page.headings == [Heading(0, 1, "One"), Heading(9, 2, "Two")]
    assert [(link.target, link.line) for link in page.links] == [("a", 2), ("b", 3), ("c.md", 15)]
    assert page.code == [Code("py", 5, 7), Code("", 16, 18)]
    assert page.tasks == [(15, " ", "task [t](c.md)")]
    assert page.tags == [(3, "tag")]
    assert page.blocks == [(0, "top")]
    assert set(page.verbatim) == {5, 6, 7, 12, 13, 14, 16, 17, 18, *range(22, 25), *range(26, 29)}
    seen = outline(PAGE)
    assert (seen.headings, seen.verbatim) == (page.headings, page.verbatim)


def test_odd_white_space_at_the_start_moves_no_line() -> None:
    assert [link.line for link in parse("\u00a0\n\x0c\n[[a]]\n[[b]]").links] == [2, 3]


def test_deep_lists_are_read() -> None:
    body = "".join(f"{'  ' * depth}- [[{depth}]]\n" for depth in range(20))
    assert [link.target for link in parse(body).links] == [str(depth) for depth in range(20)]


def test_links_of_properties() -> None:
    values = {
        "up": "[[Home|x]]",
        "related": ["[[a#H]]", "b", " [[api:c]] ", 3, None],
        "nested": {"x": ["[[d]]"]},
        "summary": "prose with a [[link]] in it",
        "relations": {"fixes": "[[e]]"},
    }
    found = [(key, told(link), link.project, link.line) for key, link in property_links(values)]
    assert found == [
        ("up", "Home|x", "", -1),
        ("related", "a#H", "", -1),
        ("related", "api:c", "api", -1),
        ("nested", "d", "", -1),
    ]


@pytest.mark.parametrize(
    "told_relations",
    [
        [{"type": "fixes", "target": "[[a]]"}, {"type": "causes", "target": ["[[b|x]]", "work/api:c.md"]}],
        {"fixes": "[[a]]", "causes": ["[[b|x]]", "work/api:c.md"]},
        [{"fixes": ["[[a]]"]}, {" causes ": ["[[b]]", "work/api:c.md"]}, "text", 3, {"type": "fixes"}],
        {"fixes": ["a", 7, None, " "], "causes": {"x": "b", "y": "work/api:c.md"}, "": "d"},
    ],
)
def test_relations(told_relations: object) -> None:
    found = [(kind, link.project, link.page) for kind, link in relations({"relations": told_relations})]
    assert [entry for entry in found if entry[2] != "fixes"] == [
        ("fixes", "", "a"),
        ("causes", "", "b"),
        ("causes", "work/api", "c.md"),
    ]
    assert relations({}) == relations({"relations": "[[a]]"}) == []


SIGNS = "[[ ]] [ ] ( ) ![ | # ^ %% ` ~~~ $ $$ < > <!-- --> \\ : :// r a %20 https://x.org é 猫 &amp; \" ' * == / ---"
ODD = ["```\n", "\n", "\n\n", " ", "\t", "    ", "- ", "- [ ] ", "> ", "1. ", "[^1]: ", "[r]: "]
ODDER = ["\u00a0", "\x0c", "\0", "\ud800", "\r\n", "\r"]
PIECES = st.sampled_from([*SIGNS.split(), *ODD, *ODDER])


@settings(max_examples=examples(2000), deadline=None)
@given(st.one_of(st.lists(PIECES, max_size=40).map("".join), st.text(max_size=60)))
@example("[^1]:")
@example("[r]: \ud800\n\n[r]")
@example("- %%\n%%")
@example("```\n ")
def test_no_page_is_an_error(body: str) -> None:
    page = parse(body)
    lines = body.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd").split("\n")
    for link in page.links:
        assert link.target or link.anchor
        assert 0 <= link.line < len(lines)
        assert "[" in lines[link.line] or "://" in lines[link.line] or "<" in lines[link.line]
        assert not (link.project and link.external)
    for tag in page.tags:
        assert f"#{tag.name}" in lines[tag.line]
        assert not tag.name.isdecimal()
    for block in page.blocks:
        assert lines[block.line].rstrip().endswith(f"^{block.id}")
    for task in page.tasks:
        assert f"[{task.state}]" in lines[task.line]
    for code in page.code:
        assert 0 <= code.first <= code.last < len(lines)
    assert all(number < len(lines) for number in page.verbatim)
    seen = outline(body)
    assert (seen.headings, seen.verbatim) == (page.headings, page.verbatim)


NAMES = st.text(st.characters(exclude_characters="[]|#^\\:\r\n\0", exclude_categories=["Cs", "Cc"]), min_size=1)


@given(NAMES.filter(str.strip), NAMES)
def test_a_link_that_is_written_is_read(name: str, text: str) -> None:
    (link,) = parse(f"x [[{name}|{text}]]").links
    assert (link.target, link.text) == (name.strip(), text.strip())


def test_a_page_that_is_made_to_take_long_is_left_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(obsidian, "_TOKENS", 50)
    page = parse("- [[a]]\n" + "- b\n" * 10 + "\n[[c]]")
    assert [link.target for link in page.links] == ["a"]


def test_what_stands_far_down_is_left_out() -> None:
    page: Parsed = parse("\n" * (LINES - 1) + "[[a]]\n[[b]]")
    assert [link.target for link in page.links] == ["a"]


PATHOLOGICAL = [
    "[",
    "[ ",
    "]",
    "![",
    "[[",
    "[]",
    "[a](",
    "](<",
    '](a "',
    "%%",
    "%% ",
    "`",
    "` ",
    "#",
    "# ",
    "#\n",
    "$a",
]
PATHOLOGICAL += ["<a", "<!--", '<a b="', "://", "^", "[\n", "`\n", "%%\n", "> ", "- ", "[^a]:\n", "\\[", "a\n", "\t"]
PATHOLOGICAL += ["".join("`" * n + " " for n in range(1, 300)), "[r]: b\n\n" + "[" * 60_000 + "]" * 60_000]


@pytest.mark.parametrize("piece", PATHOLOGICAL)
def test_time_grows_with_length(piece: str) -> None:
    # A page that took the square of its length would need a hundred times as long for ten times the text.
    def seconds(size: int) -> float:
        body = (piece * (size // len(piece) + 1))[:size]
        start = time.process_time()
        parse(body)
        return time.process_time() - start

    assert seconds(131_072) < 40 * seconds(13_108) + 0.2
