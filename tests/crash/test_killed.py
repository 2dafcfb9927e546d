"""Killed at every durable step of ingest, claim, page write, commit and index update, half-written bytes included.

The everyday run takes a fixed sample; the slow suite all steps (see `worlds.points` for what "all" means). What must
hold afterwards is in oracle.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.crash.worlds import Step, World, points

WorldOf = Callable[[str], World]

SAMPLE = [
    # plan, area, call, path, how, whose death
    ("first", "vault", "write", r"\.vaultd/done/", "half", "all"),
    ("first", "vault", "unlink", r"\.vaultd/inbox/new/", "after", "all"),
    ("first", "vault", "linkat", r"sessions/", "after", "all"),
    ("first", "vault", "linkat", r"handoffs/open/.*-g1\.md", "before", "all"),
    ("provisional", "vault", "unlinkat", r"\.vaultd/done/", "after", "all"),
    ("first", "git", "write", r"vaultd-index\.lock", "half", "all"),
    ("first", "git", "rename", r"refs/heads/main", "after", "caller"),
    ("first", "index", "write", r"\.seg", "half", "all"),
    ("first", "index", "rename", r"meta\.json", "before", "all"),
    ("claimed", "vault", "renameat2", r"handoffs/open/", "after", "all"),
    ("claimed", "vault", "unlink", r"\.vaultd-tmp-swap-", "before", "all"),
]

ALL = [
    # plan, area, whose death, number of chunks (about sixty kills each)
    ("first", "vault", "all", 3),
    ("first", "git", "all", 2),
    ("first", "git", "caller", 2),
    ("first", "git", "root", 2),
    ("first", "index", "all", 2),
    ("resumed", "vault", "all", 3),
    ("resumed", "git", "all", 2),
    ("resumed", "index", "all", 1),
    ("claimed", "vault", "all", 1),
    ("given-back", "vault", "all", 1),
    ("worked-on", "vault", "all", 3),
    ("outdated", "vault", "all", 1),
    ("provisional", "vault", "all", 2),
    ("late", "vault", "all", 1),
    ("mixed", "vault", "all", 5),
    ("staged", "git", "all", 2),
    ("staged", "git", "caller", 2),
    ("reindex", "index", "all", 2),
    ("accept", "all", "all", 2),
    ("init", "all", "all", 6),
    ("init-notes", "pages", "all", 1),
]
CHUNKS = [(plan, area, who, n, of) for plan, area, who, of in ALL for n in range(of)]


def find(steps: list[Step], call: str, path: str) -> int:
    """The first step of this call on such a path."""
    found = [n for n, (name, where, _) in enumerate(steps) if name == call and re.search(path, where)]
    assert found, f"no {call} of {path} among {[step[:2] for step in steps]}"
    return found[0]


@pytest.mark.parametrize(("plan", "area", "call", "path", "how", "who"), SAMPLE)
def test_killed_at_a_step(world_of: WorldOf, plan: str, area: str, call: str, path: str, how: str, who: str) -> None:
    world = world_of(plan)
    found = world.killed(area, find(world.steps(area), call, path), how, who)
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.timeout(1200)  # many kills one after the other, each with processes of its own
@pytest.mark.parametrize(("plan", "area", "who", "chunk", "of"), CHUNKS)
def test_killed_at_every_step(world_of: WorldOf, plan: str, area: str, who: str, chunk: int, of: int) -> None:
    world = world_of(plan)
    found = []
    for number, how in list(points(world.steps(area)))[chunk::of]:
        found += world.killed(area, number, how, who)
    assert not found, "\n".join(found[:20])


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("plan", ["first", "claimed", "provisional", "staged"])
def test_killed_again_while_it_recovers(world_of: WorldOf, plan: str) -> None:
    world = world_of(plan)
    found = []
    for number, how in list(points(world.steps("all")))[::9]:
        found += world.killed("all", number, how, then=5 * number % len(world.steps("all")))
    assert not found, "\n".join(found[:20])
