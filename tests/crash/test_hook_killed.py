"""The hook killed at every durable step: an event is delivered whole or not at all, and no handoff is lost.

A claimed handoff is afterwards either open; or accepted, with the start event that names it delivered; or it comes back
with the next pass once its hook has been dead for ten minutes.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.oracle import offers
from tests.crash.plans import FIRST, sid
from tests.crash.worlds import Run, World, points
from tests.scratch import ROOT
from vaultd.core import frontmatter
from vaultd.core.event import parse_delivery
from vaultd.core.ids import Key
from vaultd.engine.handoffs import CLAIM_GRACE_S
from vaultd.store.fs import TEMP_PREFIX
from vaultd.store.inbox import Inbox

WorldOf = Callable[[str], World]
NAME = f"{sid(FIRST)}-g1"
EVENTS = {
    "SessionStart": {"session_id": "99999999-aaaa", "source": "startup", "hook_event_name": "SessionStart"},
    "PostToolUse": {"session_id": "99999999-aaaa", "tool_name": "Bash", "tool_input": {"command": "x" * 9000}},
}
SHELLS = [name for name in ("dash", "bash") if any(os.access(f"{d}/{name}", os.X_OK) for d in ("/bin", "/usr/bin"))]
TWIN = "vaultd hook"


def fire(world: World, event: str, shell: str, kill_at: int | None = None, how: str = "before") -> Run:
    """The hook as an agent runs it, in one of the shells, or its twin in Python."""
    payload = world.place / "payload"
    payload.write_text(json.dumps(EVENTS[event]))
    runs = {
        "dash": ["dash", str(ROOT / "hooks/vaultd-hook")],
        "bash": ["bash", "--posix", str(ROOT / "hooks/vaultd-hook")],
        TWIN: [sys.executable, "-m", "vaultd", "hook"],
    }
    words = [*runs[shell], "claude-code", event]
    return world.execute(words, area="room", stdin=str(payload), kill_at=kill_at, how=how, fork=shell == TWIN)


def inbox(world: World, folder: str) -> list[Path]:
    """Files in a folder of the inbox; unfinished ones of the twin's are left out."""
    files = (world.scratch.vault / ".vaultd/inbox" / folder).iterdir()
    return sorted(file for file in files if not file.name.startswith(TEMP_PREFIX))


def states(world: World) -> list[str]:
    """The folders that the handoff lies in."""
    return [p.parent.name for p in sorted(world.scratch.vault.glob(f"*/*/handoffs/*/{NAME}.md"))]


def accepted_by(world: World) -> object:
    [page] = world.scratch.vault.glob(f"*/*/handoffs/*/{NAME}.md")
    return frontmatter.parse(page.read_bytes()).meta.values.get("accepted_by")


def claimed(world: World, event: str) -> str:
    """The handoff that the delivered event names, "" for none or when there is no event. What is delivered is whole."""
    names = ""
    files = inbox(world, "new")
    assert len(files) <= 1
    for file in files:
        delivery = parse_delivery(Key(file.name), file.read_bytes(), 0)
        assert delivery is not None and json.loads(delivery.payload) == EVENTS[event]
        assert delivery.header["agent"] == "claude-code" and delivery.header["boot"]
        names = delivery.header.get("handoff", "")
    return names


def ingest(world: World) -> None:
    run = world.run(("ingest",), trace=False)
    assert run.code == 0, run.err


def judge(world: World, event: str) -> None:
    """What must hold after a kill, at once and later."""
    named = claimed(world, event)
    [state] = states(world)
    assert not named or (named == NAME and state == "accepted")
    before = offers(world.scratch.vault)
    if named:
        assert Inbox(world.scratch.vault / ".vaultd").unprinted(time.time() + 1) == []
    ingest(world)
    assert inbox(world, "new") == [] and inbox(world, "failed") == []
    if named:
        assert states(world) == ["accepted"] and accepted_by(world)
        return
    if state == "accepted":
        assert states(world) == ["accepted"], "a claim that may still print came back too soon"
        for temp in inbox(world, "tmp"):
            os.utime(temp, (time.time() - CLAIM_GRACE_S - 60,) * 2)
        ingest(world)
    assert states(world) == ["open"] and not accepted_by(world)
    assert offers(world.scratch.vault) == before
    assert f"Handoff {NAME}" in fire(world, "SessionStart", SHELLS[0]).out


def attempt(world: World, event: str, shell: str, number: int, how: str) -> None:
    world.restore()
    run = fire(world, event, shell, number, how)
    try:
        judge(world, event)
    except AssertionError as error:
        step = " ".join(run.steps[number]) if run.killed else "the end"
        raise AssertionError(f"{shell} {event}: killed {how} step {number} ({step}): {error}") from error


def everywhere(world: World, event: str, shell: str) -> list[tuple[int, str]]:
    world.restore()
    run = fire(world, event, shell)
    assert run.code == 0 and bool(run.out) == (event == "SessionStart")
    assert claimed(world, event) == (NAME if event == "SessionStart" else "")
    return list(points(run.steps))


def test_killed_in_the_claim(world_of: WorldOf) -> None:
    world = world_of("done")
    world.restore()
    steps = fire(world, "SessionStart", SHELLS[0]).steps
    rename = next(n for n, (call, path, _) in enumerate(steps) if "rename" in call and path.endswith(f"{NAME}.md"))
    for how in ("before", "after"):
        attempt(world, "SessionStart", SHELLS[0], rename, how)


@pytest.mark.slow
@pytest.mark.parametrize("shell", [*SHELLS, TWIN])
@pytest.mark.parametrize("event", EVENTS)
def test_killed_at_every_step(world_of: WorldOf, event: str, shell: str) -> None:
    world = world_of("done")
    for number, how in everywhere(world, event, shell):
        attempt(world, event, shell, number, how)
