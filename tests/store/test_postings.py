"""What is kept of postings changes no answer, and passages are found through pages however long."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.indexes import World, doc, found, paths
from vaultd.store.index import Drop, Index
from vaultd.store.indexed import packed, unpacked


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.index.close()


@given(st.lists(st.integers(0, 1 << 40)))
def test_packed_numbers_come_back(numbers: list[int]) -> None:
    assert unpacked(packed(numbers)) == numbers
    assert len(packed(range(128))) == 128


def test_with_and_without_room_the_answers_are_the_same(world: World) -> None:
    chance = random.Random(5)
    words = [f"w{number}" for number in range(60)]

    def text() -> str:
        return "\n\n".join(
            " ".join(chance.choices(words, k=chance.randint(3, 80))) for _ in range(chance.randint(1, 6))
        )

    cramped = Index(world.folder, world.vault, room=0)
    queries = [" ".join(chance.choices(words, k=count)) for count in (1, 2, 5, 12) for _ in range(3)]
    for round_number in range(5):
        changes = [doc(f"{chance.randrange(120)}.md", text(), project=f"p-{chance.randrange(2)}") for _ in range(25)]
        world.index.apply([*changes, Drop(f"{chance.randrange(120)}.md")])
        if round_number == 3:
            world.index.compact()
        for query in queries:
            for project in (None, "p-1")[round_number % 2 :]:
                assert found(world.index, query, 10, project=project) == found(cramped, query, 10, project=project)
    cramped.close()


def test_a_long_page_is_found_by_the_turn_that_matters(world: World) -> None:
    turns = [f"Ada: number {number} is about nothing much at all today ^T-{number}" for number in range(300)]
    together, apart = turns.copy(), turns.copy()
    together[217] = "Grace: the crossing was painted on Tuesday ^T-217"
    apart[5], apart[280] = "Grace: a crossing was seen on Tuesday ^T-5", "Ada: it was painted ^T-280"
    world.index.apply([doc("together.md", "\n\n".join(together)), doc("apart.md", "\n\n".join(apart))])
    assert paths(world.index, "when was the crossing painted") == ["together.md", "apart.md"]


def test_a_page_whose_name_alone_matches_is_found(world: World) -> None:
    world.index.apply(
        [doc("a.md", "first\n\n# second\n\nthird", title="Kestrel"), doc("empty.md", "", title="Kestrel")]
    )
    assert sorted(paths(world.index, "kestrel")) == ["a.md", "empty.md"]


def test_many_superseded_pages_hide_no_current_one(world: World) -> None:
    old = [doc(f"old/{number}.md", "kestrel", superseded=True) for number in range(200)]
    world.index.apply([*old, doc("new.md", "a kestrel among " + "many other words " * 50)])
    assert paths(world.index, "kestrel", 3)[0] == "new.md"
