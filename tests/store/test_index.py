from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.store.indexes import World, doc, found, paths
from vaultd.store.index import Drop, Known

QUERIES = Path(__file__).parent.parent / "data/code-queries.json"
CJK = "日本語検索設計書東京都会議録한국어문서검색"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.index.close()


def test_no_index_is_no_error(world: World) -> None:
    assert world.index.doubt == "there is no index yet"
    assert found(world.index, "anything", 10) == []
    assert world.index.known() == {}
    assert (world.index.generation, world.index.pages) == (0, 0)
    assert not world.index.compact()
    assert not world.folder.exists()


def test_what_was_applied_is_found_at_once(world: World) -> None:
    other = world.again()
    first = world.index.apply([doc("a.md", "the heron stands", inode=7, mtime_ns=8, size=9, revision="r", kind="note")])
    assert paths(world.index, "heron") == ["a.md"]
    assert paths(other, "heron") == ["a.md"]
    assert other.known() == {"a.md": Known(7, 8, 9, "r", "", "note")}
    second = world.index.apply([doc("b.md", "a heron too")])
    assert 0 < first < second == other.generation
    assert set(paths(other, "heron")) == {"a.md", "b.md"}
    assert (other.pages, other.doubt) == (2, None)
    other.close()


def test_a_page_that_is_put_again_is_there_once(world: World) -> None:
    for state in ("first", "second", "third"):
        world.index.apply([doc("a.md", f"{state} version"), doc("b.md", "version")])
    assert paths(world.index, "first second") == []
    assert paths(world.index, "third") == ["a.md"]
    assert sorted(paths(world.index, "version")) == ["a.md", "b.md"]
    assert world.index.pages == 2


def test_the_last_change_of_a_path_in_a_batch_counts(world: World) -> None:
    world.index.apply([doc("a.md", "one"), doc("a.md", "two"), doc("b.md", "three"), Drop("b.md")])
    assert sorted(world.index.known()) == ["a.md"]
    assert paths(world.index, "one") == []
    assert paths(world.index, "two") == ["a.md"]


def test_a_dropped_page_is_gone_and_nothing_to_do_is_no_commit(world: World) -> None:
    world.index.apply([doc("a.md", "word"), doc("b.md", "word")])
    dropped = world.index.apply([Drop("a.md")])
    assert paths(world.index, "word") == ["b.md"]
    assert world.index.apply([Drop("a.md"), Drop("never.md")]) == dropped
    assert world.index.apply([]) == dropped
    world.index.apply([Drop("b.md")])
    assert (found(world.index, "word", 5), world.index.known(), world.index.doubt) == ([], {}, None)


def test_a_hit_tells_what_the_page_said(world: World) -> None:
    put = doc(
        "p/decisions/x.md",
        "body words",
        title="Choose sqlite",
        summary="One line.",
        kind="decision",
        tier="semantic",
        project="p-1",
        updated="2026-11-29T10:00:00+01:00",
    )
    world.index.apply([put])
    (hit,) = found(world.index, "sqlite", 3)
    assert (hit.path, hit.title, hit.summary) == ("p/decisions/x.md", "Choose sqlite", "One line.")
    assert (hit.kind, hit.tier, hit.project) == ("decision", "semantic", "p-1")
    assert (hit.updated, hit.superseded) == ("2026-11-29T10:00:00+01:00", False)
    assert hit.score > 0


def test_title_aliases_tags_summary_and_file_name_are_searched(world: World) -> None:
    put = doc("a/deploy-notes.md", "plain body", title="Kestrel", aliases=["Falcon"], tags=["raptor"], summary="swift")
    world.index.apply(
        [put, doc("b.md", "kestrel falcon raptor " * 2 + "swift plain body and a good deal of other words")]
    )
    for name in ("kestrel", "falcon"):
        assert paths(world.index, name)[0] == "a/deploy-notes.md"
    for name in ("raptor", "swift", "deploy-notes", "body"):
        assert "a/deploy-notes.md" in paths(world.index, name)


def test_code_queries(world: World) -> None:
    data = json.loads(QUERIES.read_text("utf-8"))
    world.index.apply(doc(f"{number:02}.md", line) for number, line in enumerate(data["lines"]))
    wrong = []
    for case in data["queries"]:
        got = paths(world.index, case["query"], 1)
        if got != ([f"{case['line']:02}.md"] if case["line"] >= 0 else []):
            wrong.append((case["query"], got))
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "other"), [("数据库 连接", "数据库连接"), ("設計 書", "設計書"), ("type error", "typeerror")]
)
def test_two_words_are_found_with_and_without_the_space(world: World, text: str, other: str) -> None:
    world.index.apply([doc("a.md", f"x {text} y"), doc("c.md", "nothing of it")])
    assert paths(world.index, text) == paths(world.index, other) == ["a.md"]
    world.index.apply([doc("a.md", f"x {other} y")])
    assert paths(world.index, text) == paths(world.index, other) == ["a.md"]


def test_a_word_that_is_nowhere_is_split_only_into_two_that_stand_together_in_a_page(world: World) -> None:
    world.index.apply([doc("a.md", "type of thing"), doc("b.md", "an error"), doc("c.md", "file.py")])
    assert paths(world.index, "typeerror") == []
    assert paths(world.index, "filepy") == []


def test_projects_are_kept_apart(world: World) -> None:
    world.index.apply([doc("a.md", "word", project="p-1"), doc("b.md", "word", project="p-2"), doc("c.md", "word")])
    assert sorted(paths(world.index, "word")) == ["a.md", "b.md", "c.md"]
    assert paths(world.index, "word", project="p-1") == ["a.md"]
    assert paths(world.index, "word", project="") == ["c.md"]
    assert paths(world.index, "word", project="p-3") == []


@pytest.mark.parametrize(
    "where",
    [
        {"status": "Draft"},
        {"status": " draft "},
        {"count": "3"},
        {"done": "true"},
        {"tags": "red"},
        {"aliases": "The A"},
        {"kind": "note"},
        {"tier": "Semantic", "superseded": "false"},
        {"pinned": "True"},
        {"owners": "ann"},
        {"status": "draft", "count": "3"},
        {"näme": "\udcffx"},
    ],
)
def test_where_filters_on_frontmatter(world: World, where: dict[str, str]) -> None:
    meta = {"status": "draft", "count": 3, "done": True, "owners": ["Ann", "Bob"], "näme": "\udcffX"}
    put = doc("a.md", "word", kind="note", tags=["red"], aliases=["the A"], pinned=True, meta=meta)
    world.index.apply([put, doc("b.md", "word", tier="working", meta={"status": "final", "count": 33})])
    assert paths(world.index, "word", where=where) == ["a.md"]
    assert paths(world.index, "word", where={**where, "absent": "x"}) == []


def test_a_filter_holds_for_pages_far_down(world: World) -> None:
    many = [doc(f"n{number}.md", "word " * 5) for number in range(200)]
    world.index.apply([*many, doc("z.md", "word and a long tail of other things", project="p-1")])
    assert paths(world.index, "word", 1, project="p-1") == ["z.md"]


def test_a_session_does_not_outrank_a_decision_that_matches_as_well(world: World) -> None:
    same = "the parser drops the last line"
    world.index.apply(
        [
            doc("a/sessions/1.md", same, kind="session", tier="episodic"),
            doc("b/notes/2.md", same, kind="note"),
            doc("c/decisions/3.md", same, kind="decision"),
        ]
    )
    assert paths(world.index, "parser line") == ["c/decisions/3.md", "b/notes/2.md", "a/sessions/1.md"]


def test_a_decision_that_matches_a_little_less_overtakes_a_row_of_sessions(world: World) -> None:
    sessions = [doc(f"{number}.md", "parser line", kind="session", tier="episodic") for number in range(30)]
    world.index.apply([*sessions, doc("z.md", "parser line " + "and some more", kind="decision")])
    assert paths(world.index, "parser line", 1) == ["z.md"]


def test_superseded_pages_come_after_current_ones_whatever_they_match(world: World) -> None:
    current = [doc(f"{number}.md", "budget in a page with many more words than that one") for number in range(3)]
    world.index.apply([doc("old.md", "budget budget budget", title="budget", superseded=True), *current])
    assert paths(world.index, "budget", 10)[-1] == "old.md"
    assert "old.md" not in paths(world.index, "budget", 3)
    assert len(paths(world.index, "budget", 3)) == 3


def test_scores_do_not_depend_on_how_pages_came_in(world: World) -> None:
    puts = [doc(f"{number}.md", f"alpha {'beta ' * (number % 3)} gamma{number % 2}") for number in range(12)]
    world.index.rebuild(puts)
    at_once = [(hit.path, round(hit.score, 6)) for hit in found(world.index, "beta gamma1", 20)]
    world.index.rebuild()
    for put in puts:
        world.index.apply([put])
    assert [(hit.path, round(hit.score, 6)) for hit in found(world.index, "beta gamma1", 20)] == at_once
    assert len(at_once) > 6


WORDS = ["alpha", "beta", "gamma", "delta", "file.py", "getUserById", "検索"]
DOCS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=12),
        st.sampled_from(["session", "decision", "note", "gotcha"]),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(docs=DOCS, limit=st.integers(1, 8), words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3))
def test_a_short_answer_is_the_head_of_the_long_one(
    world: World, docs: list[tuple[list[str], str, bool, bool]], limit: int, words: list[str]
) -> None:
    puts = [
        doc(f"{number:02}.md", " ".join(body), kind=kind, pinned=pinned, superseded=superseded)
        for number, (body, kind, pinned, superseded) in enumerate(docs)
    ]
    world.index.rebuild(puts)
    text = " ".join(words)
    everything = found(world.index, text, 1000)
    assert found(world.index, text, limit) == everything[:limit]
    assert [hit.superseded for hit in everything] == sorted(hit.superseded for hit in everything)


ODD = [
    "AND",
    "NOT",
    "OR (",
    "title:x",
    "a*",
    '"open',
    "🔥",
    "[[x]]",
    "^id",
    "path:*",
    "a~2",
    "[a TO b]",
    "\udcff",
    "a" * 9000,
    "x " * 3000,
]


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.text(max_size=40),
        st.text(alphabet=" ?!.,/#\"'-:*()[]{}&|<>~^\\\ud800word", max_size=40),
        st.sampled_from(ODD),
    )
)
def test_no_query_is_an_error(world: World, text: str) -> None:
    if world.index.doubt:
        for number in range(3):
            world.index.apply([doc(f"{number}.md", f"word w o r d number {number} not and or title x open")])
    found(world.index, text, 5)
    found(world.index, text, 5, project=text, where={text: text})
    assert world.index.doubt is None
    assert found(world.index, "word", 0) == found(world.index, "word", -1) == []


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_cjk_substring_is_found(world: World, data: st.DataObject) -> None:
    texts = data.draw(st.lists(st.text(alphabet=CJK + " 。x", min_size=2, max_size=20), min_size=1, max_size=4))
    world.index.rebuild(doc(f"{number}.md", text) for number, text in enumerate(texts))
    for number, text in enumerate(texts):
        start = data.draw(st.integers(0, len(text) - 2))
        part = text[start : start + data.draw(st.integers(2, 6))]
        if all(char in CJK for char in part):
            assert f"{number}.md" in paths(world.index, part)


def test_paths_and_titles_of_any_kind_come_back_as_they_are(world: World) -> None:
    odd = ["a b/ü.md", "日本/語.md", "-x/*.md", "\udcff.md", "Ü.md", "u\u0308.md"]
    world.index.apply(doc(path, "word", title=f"T {path}") for path in odd)
    world.index.apply([doc(odd[0], "word again")])
    assert sorted(paths(world.index, "word")) == sorted(odd)
    world.index.apply(Drop(path) for path in odd)
    assert world.index.known() == {}
