"""What ranks where: a real index, a fixed Sunday, small pages among others that say nothing of the matter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.store.indexes import NOW, World, doc
from vaultd.core import fusion
from vaultd.core.fusion import FLOOR, OFTEN, STREAMS
from vaultd.core.question import Question
from vaultd.store.index import Drop, Found, Put
from vaultd.store.rarity import distance

FILLER = [doc(f"filler/{letter}.md", f"lorem ipsum dolor {4 * letter} sit amet") for letter in "abcdefghijklmnopqrst"]
YESTERDAY = {"meta": {"created": "2026-11-28T10:00:00+01:00"}}
LONG_AGO = {"meta": {"created": "2024-02-28T10:00:00+01:00"}}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.index.close()


def filled(world: World, *docs: Put) -> None:
    world.index.apply([*FILLER, *docs])


def lists(world: World, text: str, near: Mapping[str, float] | None = None, **more: object) -> list[list[Found]]:
    return world.index.search(Question(text, NOW, **more), near or {})  # type: ignore[arg-type]  # test's shorthand


def hits(world: World, text: str, near: Mapping[str, float] | None = None, **more: object) -> list[Found]:
    (found,) = lists(world, text, near, **more)
    return found


def paths(world: World, text: str, near: Mapping[str, float] | None = None, **more: object) -> list[str]:
    return [hit.path for hit in hits(world, text, near, **more)]


# Misspelt words


@pytest.mark.parametrize(
    ("query", "word"),
    [
        *(("reedis", "redis"), ("redsi", "redis"), ("rdeis", "redis"), ("mongod", "mongodb"), ("mongodbs", "mongodb")),
        *(("kuberentes", "kubernetes"), ("kubernets", "kubernetes"), ("postgers", "postgres"), ("Reddis", "redis")),
        *(("elastcsaerch", "elasticsearch"), ("authenticaton", "authentication")),
    ],
)
def test_a_misspelt_word_finds_the_known_one(world: World, query: str, word: str) -> None:
    filled(world, doc("a.md", f"the {word} server"), doc("b.md", "the other server"))
    assert paths(world, query) == ["a.md"]
    (hit,) = hits(world, query)
    assert list(hit.matched) == [word] or word.startswith(hit.matched[0])


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("redi", "redis"),  # too short for a slip
        ("reddiss", "redis"),  # two slips in a short word
        ("bedis", "redis"),  # another first letter
        ("e0309", "e0308"),  # no plain words
        ("#13", "#12"),
        ("respond", "response"),  # another ending is another word
    ],
)
def test_what_is_no_slip(world: World, query: str, word: str) -> None:
    filled(world, doc("a.md", f"the {word} server"))
    assert paths(world, query) == []


def test_a_known_word_is_never_taken_for_another(world: World) -> None:
    filled(world, doc("a.md", "redis"), doc("b.md", "redist of things"))
    assert paths(world, "redis") == ["a.md"]
    assert paths(world, "redist") == ["b.md"]


def test_a_misspelt_word_counts_less_than_one_that_is_there(world: World) -> None:
    filled(world, doc("a.md", "heron"), doc("b.md", "kestrel"))
    assert paths(world, "heron kestral") == ["a.md", "b.md"]
    assert paths(world, "heorn kestrel") == ["b.md", "a.md"]


def edits(one: str, other: str) -> int:
    """The same as `distance`, from its definition."""
    far: dict[tuple[int, int], int] = {}
    for i in range(len(one) + 1):
        for j in range(len(other) + 1):
            ways = [i + j] if not i or not j else [far[i - 1, j] + 1, far[i, j - 1] + 1]
            if i and j:
                ways.append(far[i - 1, j - 1] + (one[i - 1] != other[j - 1]))
            if i > 1 and j > 1 and one[i - 2 : i] == other[j - 2 : j][::-1]:
                ways.append(far[i - 2, j - 2] + 1)
            far[i, j] = min(ways)
    return far[len(one), len(other)]


NEARLY = st.text("abc", max_size=8)


@given(NEARLY, NEARLY, st.integers(0, 4))
@example("", "", 0)
@example("", "abc", 2)
@example("ab", "ba", 1)
@example("abcdef", "badcfe", 3)
def test_the_distance_of_two_words(one: str, other: str, most: int) -> None:
    assert distance(one, other, most) == min(edits(one, other), most + 1) == distance(other, one, most)


# What was replaced, and what is over


def test_what_was_replaced_comes_unasked_only_where_nothing_current_answers(world: World) -> None:
    old = doc("old.md", "the heron budget is ten", title="Heron budget", superseded=True)
    filled(world, old, doc("new.md", "the heron budget is twelve"), doc("weak.md", "lorem heron " * 3 + "ipsum " * 300))
    assert paths(world, "heron budget") == ["new.md"]
    assert paths(world, "heron budget", superseded=True) == ["new.md", "old.md"]
    world.index.apply([Drop("new.md")])
    assert paths(world, "heron budget") == ["weak.md", "old.md"]  # what is left of the present is no answer beside it
    world.index.apply([Drop("weak.md")])
    assert paths(world, "heron budget") == ["old.md"]


def test_what_was_replaced_comes_after_all_others_whatever_it_matches(world: World) -> None:
    filled(world, doc("old.md", "heron " * 9, title="heron", superseded=True), doc("new.md", "a heron"))
    assert paths(world, "heron", superseded=True) == ["new.md", "old.md"]
    assert paths(world, "heron", superseded=True, limit=1) == ["new.md"]


def test_a_question_for_the_past_has_what_was_replaced_since(world: World) -> None:
    filled(world, doc("old.md", "heron budget", superseded=True, **YESTERDAY), doc("new.md", "heron budget"))
    assert paths(world, "heron budget yesterday") == ["new.md", "old.md"]
    assert paths(world, "heron budget") == ["new.md"]


def test_a_page_is_replaced_where_another_one_says_so(world: World) -> None:
    old, other = doc("p/old.md", "heron kestrel osprey", title="heron"), doc("q/old.md", "heron", project="q")
    filled(world, old, other, doc("p/new.md", "heron", replaces=["p/old"]), doc("self.md", "soup", replaces=["self"]))
    world.index.apply([doc("hub.md", "lorem", links=["p/old"])])
    assert {hit.path: hit.superseded for hit in hits(world, "heron kestrel", superseded=True)} == {
        "p/new.md": False,
        "q/old.md": False,
        "p/old.md": True,
    }
    assert "p/old.md" not in paths(world, "heron kestrel")
    assert [hit.superseded for hit in hits(world, "soup")] == [False]
    (old_one,) = [hit for hit in hits(world, "heron kestrel", superseded=True) if hit.superseded]
    assert old_one.replaced_by == "p/new.md"
    for found in (world.index.record("p/old.md"), *world.index.linked("hub.md", 5)):
        assert found is not None and found.superseded, "however it is asked for"
    world.index.apply([Drop("p/new.md")])
    assert paths(world, "heron kestrel")[0] == "p/old.md"


def test_many_replaced_pages_hide_no_current_one(world: World) -> None:
    old = [doc(f"old/{n:03}.md", "heron budget", title="heron budget", superseded=True) for n in range(300)]
    filled(world, *old, doc("new.md", "the heron budget " + "and more of it " * 4))
    assert paths(world, "heron budget") == ["new.md"]


@pytest.mark.parametrize("expires", ["2026-11-28", "2026-11-29T12:00:00Z", "2020-01-01T00:00:00+05:00"])
def test_what_is_over_comes_only_when_asked_for(world: World, expires: str) -> None:
    filled(world, doc("over.md", "a heron", meta={"expires_at": expires}), doc("b.md", "a heron"))
    assert paths(world, "heron") == ["b.md"]
    assert sorted(paths(world, "heron", expired=True)) == ["b.md", "over.md"]


@pytest.mark.parametrize("expires", ["2026-11-29", "2026-11-29T12:00:01Z", "never", "", None, 20200101])
def test_what_is_not_over_comes(world: World, expires: object) -> None:
    filled(world, doc("a.md", "a heron", meta={"expires_at": expires}))
    assert paths(world, "heron") == ["a.md"]


def test_many_pages_that_are_over_hide_no_other(world: World) -> None:
    over = [doc(f"over/{n:03}.md", "heron", title="heron", meta={"expires_at": "2026-11-01"}) for n in range(300)]
    filled(world, *over, doc("a.md", "a heron " + "and more of it " * 4))
    assert paths(world, "heron") == ["a.md"]


# Filters and groups


def test_one_of_the_values_of_every_key(world: World) -> None:
    kinds = {"a": "decision", "b": "gotcha", "c": "note"}
    filled(
        world,
        *(doc(f"{n}.md", "heron", kind=k, meta={"state": s}) for (n, k), s in zip(kinds.items(), "xyx", strict=True)),
    )
    assert paths(world, "heron", where={"kind": ["Decision", "gotcha"]}) == ["a.md", "b.md"]
    assert paths(world, "heron", where={"kind": ["decision", "gotcha"], "state": ["x"]}) == ["a.md"]
    assert paths(world, "heron", where={"kind": ["note", "decision"], "state": ["x", "y", "z"]}) == ["a.md", "c.md"]
    assert paths(world, "heron", where={"kind": ["note"], "state": ["y"]}) == []
    assert paths(world, "heron", where={"kind": []}) == paths(world, "heron", where={"nothing": ["x"]}) == []


def test_no_page_says_that_it_is_of_another_project(world: World) -> None:
    filled(world, doc("a.md", "heron", project="p", meta={"\0project": "q", "\0day": "2026-11-28"}))
    assert lists(world, "heron", groups=[("q",), ("p",)])[0] == []
    assert paths(world, "what happened on 2026-11-28") == []


def test_filters_reach_behind_many_better_pages(world: World) -> None:
    filled(world, *(doc(f"b/{n:03}.md", "heron", title="heron") for n in range(300)), doc("a.md", "heron", kind="rule"))
    assert paths(world, "heron", where={"kind": ["rule"]}) == ["a.md"]


GROUPS = (("p",), ("g",), ("",))


def test_each_group_has_a_list_and_scores_compare_over_them(world: World) -> None:
    docs = [doc("p.md", "heron kestrel", project="p"), doc("g.md", "heron kestrel", project="g")]
    filled(world, *docs, doc("o.md", "heron kestrel"), doc("q.md", "heron kestrel", project="q"))
    found = lists(world, "heron kestrel", groups=GROUPS)
    assert [[hit.path for hit in each] for each in found] == [["p.md"], ["g.md"], ["o.md"]]
    assert len({hit.score for each in found for hit in each}) == 1
    assert [len(each) for each in lists(world, "heron", groups=[None, ("p", "q"), ()])] == [4, 2, 0]
    assert lists(world, "heron", groups=[]) == []


def test_weak_pages_of_other_groups_vanish_and_the_first_one_is_judged_by_itself(world: World) -> None:
    weak = "a heron " + "and a good deal of other words " * 20
    docs = [doc(f"{name}.md", weak, project=name) for name in ("p", "g")]
    filled(world, *docs, doc("best.md", "heron kestrel osprey", title="heron kestrel osprey"))
    found = lists(world, "heron kestrel osprey", groups=GROUPS)
    assert [[hit.path for hit in each] for each in found] == [["p.md"], [], ["best.md"]]
    assert found[0][0].score < found[2][0].score


def test_the_floor(world: World) -> None:
    weak = doc("weak.md", "an osprey " + "and a good deal of other words " * 20)
    filled(
        world,
        weak,
        doc("best.md", "heron kestrel osprey", title="heron kestrel osprey"),
        doc("two.md", "heron kestrel"),
    )
    assert paths(world, "heron kestrel osprey") == ["best.md", "two.md"]
    assert paths(world, "an osprey in a good deal of words")[0] == "weak.md"


def test_a_page_that_says_its_one_word_often_is_about_it(world: World) -> None:
    other = "and a good deal of other words " * 25
    for often, there in ((OFTEN - 1, False), (OFTEN, True)):
        said = doc("page.md", "osprey and more\n\n" * often + other)
        filled(world, doc("best.md", "heron osprey", title="heron osprey"), said)
        with patch.object(fusion, "FLOOR_OF_ONE", FLOOR):
            assert "page.md" in paths(world, "heron osprey")
        assert ("page.md" in paths(world, "heron osprey")) == there


def test_the_second_best_passage_counts_a_little(world: World) -> None:
    said, other = "heron kestrel", "many other words of another matter " * 20
    filled(
        world,
        doc("a.md", f"# H\n{said}\n# A\n{other}\n# B\n{said}"),
        doc("b.md", f"# H\n{said}\n# A\n{other}\n# B\nlorem ipsum"),
    )
    told = {hit.path: hit.why["passage"].score for hit in hits(world, "heron kestrel")}
    assert told["a.md"] == pytest.approx((1 + fusion.SECOND) * told["b.md"])


def test_no_words_no_hits(world: World) -> None:
    filled(world, doc("a.md", "heron"))
    for text in ("", "?!", "kestrel", "of the", "\ud800"):
        assert paths(world, text) == []


# Times


@pytest.mark.parametrize(
    "text", ["yesterday", "what happened yesterday?", "Where were we before, yesterday?", "2026-11-28"]
)
def test_a_time_alone_has_all_of_its_pages(world: World, text: str) -> None:
    other = doc("old.md", "what happened before: yesterday I said so", **LONG_AGO)
    filled(world, other, doc("a.md", "heron", **YESTERDAY), doc("b.md", "kestrel", kind="session", **YESTERDAY))
    assert paths(world, text) == ["a.md", "b.md"]
    assert paths(world, "yesterday", where={"kind": ["session"]}) == ["b.md"]
    assert paths(world, "last week") == []


def test_a_month_alone_has_its_pages_and_then_those_that_say_its_name(world: World) -> None:
    says = doc("says.md", "the plan for november", **LONG_AGO)
    filled(world, says, doc("a.md", "heron", **YESTERDAY), doc("b.md", "in november", **YESTERDAY))
    assert paths(world, "what did we do in November?") == ["b.md", "a.md", "says.md"]


def test_a_time_beside_words_lifts_the_page_of_that_time(world: World) -> None:
    docs = [doc("a.md", "heron", **LONG_AGO), doc("b.md", "heron", **YESTERDAY), doc("c.md", "osprey", **YESTERDAY)]
    filled(world, *docs)
    assert paths(world, "heron") == ["a.md", "b.md"]
    for text in ("heron yesterday", "heron in November 2026", "heron since 2026-11-01", "heron this month"):
        assert paths(world, text)[0] == "b.md"
    assert paths(world, "heron in February 2024")[0] == "a.md"
    assert "c.md" not in paths(world, "heron yesterday")


def test_words_that_no_page_has_do_not_hide_the_pages_of_the_time(world: World) -> None:
    filled(world, doc("new.md", "osprey", **YESTERDAY), doc("old.md", "what was decided", **LONG_AGO))
    for text in ("what was decided yesterday", "what did we learn yesterday", "the zebra yesterday"):
        assert paths(world, text) == ["new.md"], text
    assert paths(world, "the osprey yesterday") == ["new.md"]
    assert paths(world, "the zebra last year") == []


def test_pages_of_the_time_without_a_word_do_not_stand_before_a_page_that_answers(world: World) -> None:
    filled(world, doc("new.md", "soup", **YESTERDAY), doc("old.md", "osprey", **LONG_AGO))
    assert paths(world, "the osprey yesterday") == ["old.md"]
    assert paths(world, "the osprey in February 2024") == ["old.md"]


def test_the_days_of_a_page_are_those_of_its_file_name_too(world: World) -> None:
    filled(world, doc("a.md", "heron"), doc("log/2026-11-28.md", "heron"))
    assert paths(world, "heron yesterday") == ["log/2026-11-28.md", "a.md"]


# Links


def test_a_page_with_links_from_or_to_the_best_hit_stands_higher(world: World) -> None:
    best = doc("best.md", "heron kestrel osprey", title="Heron kestrel osprey", links=["z"])
    filled(world, best, doc("m.md", "heron kestrel"), doc("z.md", "heron kestrel"))
    assert paths(world, "heron kestrel osprey") == ["best.md", "z.md", "m.md"]
    world.index.apply([doc("z.md", "heron kestrel", links=["folder/best"]), doc("best.md", "heron kestrel osprey")])
    assert paths(world, "heron kestrel osprey") == ["best.md", "m.md", "z.md"]  # there is no such folder
    world.index.apply([doc("z.md", "heron kestrel", links=["best.md"])])
    assert paths(world, "heron kestrel osprey") == ["best.md", "z.md", "m.md"]


def test_a_page_that_only_a_link_leads_to_is_no_hit(world: World) -> None:
    filled(world, doc("best.md", "heron kestrel", links=["x"]), doc("x.md", "another matter", project="p"))
    assert lists(world, "heron kestrel", groups=[("p",), None])[0] == []
    assert paths(world, "heron kestrel") == ["best.md"]


def test_equal_names_in_two_projects_do_not_lead_astray(world: World) -> None:
    best = doc("projects/p/best.md", "heron kestrel osprey", title="heron kestrel osprey", links=["log"])
    logs = [doc(f"projects/{name}/log.md", "heron kestrel") for name in "op"]
    filled(world, best, *logs)
    assert paths(world, "heron kestrel osprey") == [best.path, "projects/p/log.md", "projects/o/log.md"]
    assert [page.path for page in world.index.linked(best.path, 20)] == ["projects/p/log.md"]
    assert world.index.linked("projects/o/log.md", 20) == []
    assert [page.path for page in world.index.linked("projects/p/log.md", 20)] == [best.path]


def test_a_list_of_everything_leads_nowhere(world: World) -> None:
    names = [doc(f"n{n:02}.md", "kestrel") for n in range(21)]
    hub = doc("hub.md", "heron kestrel", title="heron kestrel", links=[f"n{n:02}" for n in range(21)])
    filled(world, hub, *names)
    assert all("links" not in hit.why for hit in hits(world, "heron kestrel"))
    assert world.index.linked("hub.md", 20) == [] and len(world.index.linked("hub.md", 21)) == 21


def test_a_link_leads_to_no_page_that_is_gone_or_over(world: World) -> None:
    over = doc("over.md", "another matter", project="p", meta={"expires_at": "2026-01-01"})
    filled(
        world, doc("best.md", "heron kestrel", links=["gone", "over", "best"]), doc("gone.md", "x", project="p"), over
    )
    world.index.apply([Drop("gone.md")])
    assert lists(world, "heron kestrel", groups=[("p",), None])[0] == []
    assert [page.path for page in world.index.linked("best.md", 20)] == ["over.md"]


# Streams


@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_that_is_left_out_says_nothing(world: World, stream: str) -> None:
    filled(world, doc("a.md", "heron kestrel", links=["b"], **YESTERDAY), doc("b.md", "heron kestrel", **YESTERDAY))
    near = {"a.md": 0.9, "b.md": 0.8}
    assert all(set(hit.why) == {*STREAMS} for hit in hits(world, "heron kestrel yesterday", near))
    told = hits(world, "heron kestrel yesterday", near, without=[stream])
    assert {hit.path for hit in told} == {"a.md", "b.md"}
    assert all(set(hit.why) == {*STREAMS} - {stream} for hit in told)
    assert hits(world, "heron kestrel yesterday", near, without=list(STREAMS)) == []


def test_meaning_finds_a_page_without_a_shared_word(world: World) -> None:
    filled(world, doc("a.md", "heron"), doc("b.md", "large wading bird"), doc("c.md", "soup"))
    near = {"a.md": 0.8, "b.md": 0.79, "c.md": 0.1, "gone.md": 0.99} | {put.path: 0.1 for put in FILLER}
    assert paths(world, "heron") == ["a.md"]
    assert paths(world, "heron", near) == ["a.md", "b.md"]
    assert paths(world, "heron", near, without=["vector"]) == ["a.md"]
    assert paths(world, "zebra", near) == ["a.md", "b.md"]
    assert lists(world, "heron", near, groups=[("p",), None]) == [[], hits(world, "heron", near)]


def test_meaning_finds_nothing_that_may_not_answer(world: World) -> None:
    filled(world, doc("a.md", "heron", kind="rule"), doc("b.md", "bird", meta={"expires_at": "2020-01-01"}))
    near = {"a.md": 0.8, "b.md": 0.9}
    assert paths(world, "zebra", near) == ["a.md"]
    assert paths(world, "zebra", near, where={"kind": ["note"]}) == []


def test_explained_parts_add_up_to_the_score(world: World) -> None:
    docs = [
        doc("a.md", "heron kestrel", title="Heron", kind="decision", pinned=True, links=["b"], **YESTERDAY),
        doc("b.md", "kestrel osprey", kind="session", tier="episodic"),
        doc("c.md", "heron osprey", tags=["canonical"]),
        doc("d.md", "heron kestrel osprey", superseded=True),
    ]
    filled(world, *docs)
    found = hits(world, "heron kestrel yesterday", {"a.md": 0.3, "c.md": 0.9}, superseded=True)
    assert len(found) == 3
    for hit in found:
        assert hit.score == pytest.approx(sum(part.adds for part in hit.why.values()) * hit.authority)
        assert all(0 <= part.adds <= STREAMS[name] for name, part in hit.why.items())
    for name in STREAMS:
        parts = sorted((hit.why[name] for hit in found if name in hit.why), key=lambda part: part.rank)
        assert [part.rank for part in parts] == sorted(part.rank for part in parts)
        assert [part.score for part in parts] == sorted((part.score for part in parts), reverse=True)
        assert all(part.adds == STREAMS[name] for part in parts if part.rank == 1)


# Sessions


def test_sessions_step_back_unless_what_was_done_is_asked_for(world: World) -> None:
    session = doc("session.md", "heron loader, left to do", kind="session", tier="episodic", **YESTERDAY)
    filled(world, session, doc("note.md", "heron loader, left to do", kind="note", **LONG_AGO))
    found = {hit.path: hit.score for hit in hits(world, "heron loader")}
    assert found["session.md"] < found["note.md"]
    for text in (
        "what was left to do on the heron loader",
        "did we finish the heron loader",
        "heron loader next steps",
    ):
        found = {hit.path: hit.score for hit in hits(world, text)}
        assert found["session.md"] >= found["note.md"], text
    assert paths(world, "heron loader yesterday")[0] == "session.md"


# Passages


def passages(hit: Found) -> Sequence[int]:
    return [number for number, _ in hit.passages]


def test_the_passages_of_a_hit_are_numbered_and_the_best_come_first(world: World) -> None:
    parts = [
        "# One\nlorem",
        "# Two\nheron",
        "# Three\nheron kestrel",
        "# Four\nipsum",
        "# Five\nkestrel in a longer text",
    ]
    filled(world, doc("a.md", "\n\n".join(parts)))
    (hit,) = hits(world, "heron kestrel")
    assert passages(hit) == [3, 2, 5]
    scores = [score for _, score in hit.passages]
    assert scores == sorted(scores, reverse=True) and scores[-1] > 0
    assert passages(hits(world, "heron kestrel", without=["passage"])[0]) == []


def test_no_more_than_eight_passages(world: World) -> None:
    filled(world, doc("a.md", "\n".join(f"# heron\n{n}" for n in range(20))))
    assert passages(hits(world, "heron")[0]) == [*range(2, 10)]


@pytest.mark.parametrize("more", [{"title": "heron"}, {"aliases": ["heron"]}])
def test_a_page_found_by_its_name_shows_its_first_passage(world: World, more: Mapping[str, object]) -> None:
    filled(world, doc("a.md", "# One\nlorem\n# Two\nipsum", **more))
    assert passages(hits(world, "heron")[0]) == [1]


def test_a_page_found_by_file_name_or_tag_shows_its_first_passage_and_one_without_text_none(world: World) -> None:
    filled(world, doc("heron.md", "lorem"), doc("b.md", "ipsum", tags=["heron"]), doc("c.md", "", title="heron"))
    assert {hit.path: passages(hit) for hit in hits(world, "heron")} == {"heron.md": [1], "b.md": [1], "c.md": []}


def test_the_title_counts_in_every_passage(world: World) -> None:
    filled(
        world, doc("a.md", "# One\nlorem\n# Two\nkestrel", title="heron"), doc("b.md", "# One\nkestrel\n# Two\nheron")
    )
    assert passages(hits(world, "heron kestrel")[0]) == [2]
