"""What an open index knows of all pages is kept between looks, and is what a fresh one would read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.indexes import World, doc
from vaultd.store import index as module
from vaultd.store.index import Drop


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.index.close()


def same(world: World) -> None:
    fresh = world.again()
    assert world.index.known() == fresh.known()
    fresh.close()


def test_it_follows_every_change(world: World) -> None:
    index, other = world.index, world.again()
    same(world)
    index.apply(doc(f"{n}.md", "word", mtime_ns=n, revision=f"r{n}") for n in range(30))
    same(world)
    index.apply(
        [doc("3.md", "anew", mtime_ns=99, meta={"tags": ["x"]}, unparsable=True), Drop("4.md"), Drop("none.md")]
    )
    same(world)
    assert index.known()["3.md"].mtime_ns == 99 and index.known()["3.md"].unparsable
    index.apply([Drop("none.md")])
    same(world)
    other.apply([doc("other.md", "by another process"), Drop("5.md")])
    same(world)
    assert "5.md" not in index.known()
    other.apply([Drop("6.md")])
    index.apply([doc("7.md", "both at once", mtime_ns=7_000)])
    same(world)
    for number in range(40):
        index.apply([doc("8.md", f"version {number}", mtime_ns=number)])
    assert index.compact()
    same(world)
    index.apply([Drop("9.md")])
    same(world)
    index.rebuild([doc("only.md", "one page")])
    assert list(index.known()) == ["only.md"]
    same(world)
    other.close()


def test_it_is_not_read_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.index.apply(doc(f"{n}.md", "word") for n in range(5))
    reads = 0
    whole = module._known

    def counted(view: module._View) -> dict[str, module.Known]:
        nonlocal reads
        reads += 1
        return whole(view)

    monkeypatch.setattr(module, "_known", counted)
    for number in range(5):
        assert len(world.index.known()) == 5
        world.index.apply([doc("0.md", f"version {number}")])
    assert reads == 1
