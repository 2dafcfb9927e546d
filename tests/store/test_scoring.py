"""What is left out while pages are scored is never one of the best."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from whoosh.query import Or, Term
from whoosh.scoring import BM25F

from tests.store.indexes import World, doc
from vaultd.core import query
from vaultd.store import scoring
from vaultd.store.postings import Postings, segments
from vaultd.store.rarity import rarities

WORDS = [f"w{number}" for number in range(40)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A few hundred pages in three segments, some of them deleted; common words and rare ones."""
    made, chance = World(tmp_path), random.Random(3)
    weights = [1 / (1 + number) for number in range(len(WORDS))]
    for _ in range(3):
        texts = (" ".join(chance.choices(WORDS, weights, k=chance.randint(2, 60))) for _ in range(150))
        made.index.apply(doc(f"{chance.randrange(400)}.md", text) for text in texts)
    return made


def test_the_best_pages_are_the_same_whether_others_are_left_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "_LONG", 3)
    chance, closed = random.Random(4), 0
    view = world.index._look()
    assert view is not None
    parts, postings = segments(view.searcher), Postings(1 << 20)
    assert sum(part.reader.has_deletions() for part in parts)
    for _ in range(150):
        text = " ".join(chance.choices(WORDS, k=chance.randint(1, 8)))
        rarity = rarities(view.searcher, query.terms(text), set(query.tokens(text)))
        for part in parts:
            some = scoring.scores(part, postings, rarity, None, 10)
            everything = scoring.scores(part, postings, rarity, frozenset(range(part.pages)), 10)
            closed += len(some) < len(everything)
            told, wanted = (scoring.best(part, scores, None, 10) for scores in (some, everything))
            assert [number for number, _ in told] == [number for number, _ in wanted]
            assert [score for _, score in told] == pytest.approx([score for _, score in wanted])
    assert closed > 20, "pages were left out"
    world.index.close()


def test_it_ranks_as_whoosh_does_by_itself(world: World) -> None:
    """whoosh's own search over the same segments, with the usual length that we have rounded."""
    view, chance, postings = world.index._look(), random.Random(5), Postings(1 << 20)
    assert view is not None
    searcher = view.index.searcher(weighting=BM25F(B=0.75, K1=1.2))
    parts = segments(searcher)
    for each in (searcher, *(leaf for leaf, _ in searcher.leaf_searchers())):
        each.avg_field_length = lambda *_: parts[0].usual
    for _ in range(150):
        text = " ".join(chance.choices(WORDS, k=chance.randint(1, 8)))
        wanted = searcher.search(Or([Term("text", word) for word in set(text.split())]), limit=10)
        rarity = rarities(searcher, text.split(), set(text.split()))
        told = [
            (score, number + part.offset)
            for part in parts
            for number, score in scoring.best(part, scoring.scores(part, postings, rarity, None, 10), None, 10)
        ]
        best = sorted(told, key=lambda hit: (-hit[0], hit[1]))[:10]
        assert [number for _, number in best] == [hit.docnum for hit in wanted]
        assert [score for score, _ in best] == pytest.approx([hit.score for hit in wanted], rel=1e-5)
    searcher.close()
    world.index.close()


def test_only_allowed_pages_are_scored(world: World) -> None:
    view = world.index._look()
    assert view is not None
    part, rarity = segments(view.searcher)[0], {("w0",): 1.0, ("w1", "w2"): 1.0}
    allowed = frozenset(range(0, part.pages, 2))
    found = scoring.scores(part, Postings(0), rarity, allowed, 5)
    assert found and set(found) <= allowed
    assert {number for number, _ in scoring.best(part, found, frozenset({2, 4}), 5)} <= {2, 4}
    world.index.close()
