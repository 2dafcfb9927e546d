"""Postings come back as they went in, whatever room there is for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.store.indexes import World, doc, paths
from vaultd.store import index as index_module
from vaultd.store.gathering import Gathering, listed, packed

POSTING = st.tuples(st.integers(1, 1 << 30), st.integers(1, 1 << 20), st.binary(max_size=300))


@given(st.lists(POSTING, min_size=1, max_size=50, unique_by=lambda posting: posting[0]).map(sorted))
def test_packed_postings_come_back(postings: list[tuple[int, int, bytes]]) -> None:
    data = packed([part for posting in postings for part in posting])
    assert list(listed(data, len(postings))) == postings


@given(st.binary(max_size=40), st.integers(0, 10))
def test_other_bytes_are_an_error(data: bytes, count: int) -> None:
    try:
        found = listed(data, count)
    except (ValueError, TypeError):
        return
    assert len(found.docs) == len(found.weights) == len(found.ends) == count


@pytest.mark.parametrize("room", [1, 1000, 1 << 20])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(pages=st.lists(st.dictionaries(st.text(max_size=3), st.integers(1, 300)), max_size=12))
def test_they_come_sorted_with_any_room(tmp_path: Path, room: int, pages: list[dict[str, int]]) -> None:
    gathering = Gathering(tmp_path, room)
    for number, weights in enumerate(pages):
        gathering.add("text", number, weights, dict.fromkeys(weights, bytes((number, 1))))
        gathering.add("path", number, {f"{number:03}": 1}, {})
    found = {(field, term): gathered for field, term, gathered in gathering.iter_postings()}
    assert list(found) == sorted(found)
    wanted: dict[tuple[str, str], list[int | bytes]] = {}
    for number, weights in enumerate(pages):
        wanted["path", f"{number:03}"] = [number, 1, b""]
        for term, weight in weights.items():
            wanted.setdefault(("text", term), []).extend((number, weight, bytes((number, 1))))
    assert found == wanted
    gathering.cleanup()
    assert not list(tmp_path.iterdir())


def test_an_index_made_with_little_memory_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = []
    for name, room in (("much", 1 << 26), ("little", 2000)):
        monkeypatch.setattr(index_module, "_MEMORY", room)
        (tmp_path / name).mkdir()
        world = World(tmp_path / name)
        world.index.rebuild(doc(f"{n}.md", f"kestrel word{n % 7} and lark{n} " * (n % 5 + 1)) for n in range(60))
        for number in range(12):
            world.index.apply([doc(f"{number}.md", "a kestrel again")])
        assert world.index.compact()
        answers.append([paths(world.index, query, 60) for query in ("kestrel", "word3 lark17", "again")])
        world.index.close()
    assert answers[0] == answers[1]
