"""Lost fsync: nothing is acknowledged, packed or published before what it depends on is durable.

Shown twice: by rules on the order of a real run's steps, and by playing through what a power cut may leave after each
step (power.py). Events count as durable once they are in the inbox; what a cut takes of those that a hook wrote in the
last seconds is outside of this. So is git's own repository: it is taken to be as before the run.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.crash.oracle import acknowledged, faults
from tests.crash.power import CHOICES, State, load
from tests.crash.test_hook_killed import SHELLS, fire, states
from tests.crash.tracer import Request
from tests.crash.worlds import SYNCS, Step, World
from tests.scratch import ROOT

WorldOf = Callable[[str], World]
CHUNKS = 4


# -- by rules


def breaches(steps: Sequence[Step]) -> list[str]:
    """What in the order of steps a power cut could turn into a loss."""
    wrong = []
    loose: dict[str, str] = {}  # what is not durable yet: path to why it matters
    dirty: set[str] = set()
    for call, path, _ in steps:
        name, folder = path.rpartition("/")[2], path.rpartition("/")[0]
        page = path.startswith("vault/") and not path.startswith("vault/.") and name.endswith(".md")
        if call == "syncfs":
            loose.clear()
            dirty.clear()
        elif call in SYNCS:
            dirty.discard(path)
            loose = {p: why for p, why in loose.items() if p.rpartition("/")[0] != path}
        elif call in ("write", "pwrite64", "openat", "open"):
            dirty.add(path)
        elif call in ("link", "linkat", "rename", "renameat2", "renameat"):
            if page and any(d.startswith(f"{folder}/.vaultd-tmp-") for d in dirty):
                wrong.append(f"{path} got its name before its bytes were synced")
            if re.match(r"vault/\.vaultd/done/[^/]+(?:/|\.jsonl$)", path) and (
                pages := [p for p in loose if loose[p] == "page"]
            ):
                wrong.append(f"{path} was filed before {pages} was durable")
            if not name.startswith(".vaultd-tmp-"):
                loose[path] = "page" if page else "room"
        elif call in ("unlink", "unlinkat"):
            key = "/" + name
            if path.startswith("vault/.vaultd/inbox/new/"):
                filed = [p for p in loose if p.endswith((key, ".jsonl")) and re.search("/(done|failed)/", p)]
                if filed or any(loose[p] == "page" for p in loose):
                    wrong.append(f"{path} was acknowledged before {filed or 'the pages'} were durable")
            if path.startswith("vault/.vaultd/done/") and f"{folder}.jsonl" in loose:
                wrong.append(f"{path} was removed before its pack was durable")
            dirty.discard(path)
    return wrong


@pytest.mark.parametrize("plan", ["mixed", "claimed", "provisional", pytest.param("resumed", marks=pytest.mark.slow)])
def test_the_order_of_steps(world_of: WorldOf, plan: str) -> None:
    steps = world_of(plan).steps("vault")
    assert any("inbox/new" in path and call == "unlink" for call, path, _ in steps)
    assert breaches(steps) == []


def test_the_rules_bite(world_of: WorldOf) -> None:
    steps = world_of("mixed").steps("vault")
    assert any("acknowledged" in b for b in breaches([s for s in steps if s[0] != "syncfs"]))
    assert any("was filed" in b for b in breaches([s for s in steps if not _syncs(s, "sessions")]))
    assert any("its bytes" in b for b in breaches([s for s in steps if not _syncs(s, ".vaultd-tmp-")]))
    steps = world_of("provisional").steps("vault")
    assert any("its pack" in b for b in breaches([s for s in steps if not _syncs(s, ".vaultd/done")]))


def _syncs(step: Step, path: str) -> bool:
    return step[0] == "fsync" and path in step[1]


# -- by playing it through


def cut(world: World, tmp_path: Path) -> list[State]:
    """Every state that a power cut in the plan's command can leave."""
    world.restore()
    prefix = f"{world.place.resolve()}/"
    request = Request(
        [sys.executable, "-m", "vaultd", *world.plan.command],
        cwd=str(world.place / "project"),
        env=world.scratch.environ,
        below=[f"{prefix}vault", f"{prefix}home"],
        but=[f"{prefix}vault/.git/"],
    )
    out = tmp_path / "states"
    command = [sys.executable, "-m", "tests.crash.power", json.dumps(asdict(request)), prefix.rstrip("/"), str(out)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=200)
    return load(out)


def place(world: World, state: State) -> None:
    """Make the world what the cut left; git's folder is as before the run."""
    world.restore()
    for entry in world.place.rglob("*"):
        if entry.is_file() and ".git" not in entry.relative_to(world.place).parts:
            entry.unlink()
    for name in state.folders:
        (world.place / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    for folder in sorted(world.place.rglob("*"), reverse=True):
        rel = folder.relative_to(world.place)
        if folder.is_dir() and ".git" not in rel.parts and str(rel) not in state.folders:
            folder.rmdir()
    for name, data in state.files.items():
        (world.place / name).write_bytes(data)


def judge(world: World, state: State) -> list[str]:
    """Everything that is wrong after recovery from a cut."""
    place(world, state)
    found = acknowledged(world.scratch.vault, world.keys)
    try:
        world.recover()
        found += faults(world.scratch, world.keys, world.reference)
    except AssertionError as error:
        found.append(str(error))
    return [f"power cut ({state.choice}) before step {state.number} ({state.step}): {fault}" for fault in found]


def test_a_power_cut(world_of: WorldOf, tmp_path: Path) -> None:
    """In the everyday run: each choice right after the last acknowledgement of the first session's events."""
    world = world_of("first")
    assert world.reference
    states = cut(world, tmp_path)
    for choice in CHOICES:
        some = [s for s in states if s.choice == choice]
        waiting = [s for s in some if any("/inbox/new/" in name for name in s.files)]
        assert judge(world, next((s for s in some if s.number > waiting[-1].number), waiting[-1])) == []


@pytest.mark.slow
def test_no_handoff_is_spent_on_an_empty_text(world_of: WorldOf, tmp_path: Path) -> None:
    """A session starts after a cut and before any pass: it is given the text, or leaves the handoff open."""
    world = world_of("late")
    empty = [s for s in cut(world, tmp_path) if any(n.endswith("-json") and not d for n, d in s.files.items())]
    assert empty
    for state in empty:
        place(world, state)
        run = fire(world, "SessionStart", SHELLS[0])
        assert "Handoff" in run.out or states(world) == ["open"], f"{state.choice} before step {state.number}"


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("plan", ["first", "claimed", "resumed"])
def test_power_cuts_at_every_step(world_of: WorldOf, tmp_path: Path, plan: str, chunk: int) -> None:
    world = world_of(plan)
    assert world.reference
    found = []
    for state in cut(world, tmp_path)[chunk::CHUNKS]:
        found += judge(world, state)
    assert not found, "\n".join(found[:20])
