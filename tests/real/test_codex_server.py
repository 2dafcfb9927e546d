"""The interactive Codex, whose hooks run in a server that outlives it and tells of the end a minute late, or never."""

from __future__ import annotations

import time

import pytest

from tests.real.clients import VAULTD
from tests.real.memory import Memory
from tests.real.work import COMMAND, EDITED, FAILURE, LOOK, word, work
from tests.waiting import until

pytestmark = pytest.mark.real


def wait_since(moment: float, seconds: float) -> None:
    """Wait until so many seconds after a moment of the monotonic clock."""
    until(lambda: time.monotonic() >= moment + seconds, seconds + 5, 0.2)


@pytest.mark.slow
def test_claude_started_25_seconds_after_codex_was_quit_is_told_and_nobody_after_it(memory: Memory) -> None:
    mark, room = word(), memory.room
    room.model.load({"turns": work("codex", room.checkout)})
    codex = room.codex_terminal()
    codex.say(f"Make the sum of the prices exact, see {mark}")
    until(lambda: memory.handoffs("open", mark), 30)
    codex.quit()
    quit_at = time.monotonic()
    assert room.processes(containing="app-server"), "Codex ran without its server"

    wait_since(quit_at, 25)
    since = memory.requests()
    room.model.load({"turns": LOOK})
    room.claude("What is left to do?")
    memory.assert_told(since, mark, EDITED, COMMAND, FAILURE)
    memory.settle()

    # The server reports the end of the session only now: what was handed over is not offered again.
    assert not memory.ended("codex")
    until(lambda: memory.ended("codex"), 90, 0.5)
    memory.settle()
    assert len(memory.handoffs("accepted", mark)) == 1
    assert memory.handoffs("open", mark) == []
    since = memory.requests()
    room.claude("And now?")
    memory.assert_not_told(since, mark)


def test_hooks_that_codex_was_not_told_to_trust_are_reported(watched: Memory) -> None:
    """Codex does not run them and says nothing; `doctor` does, with the way to mend it."""
    room = watched.room
    room.model.load({"turns": LOOK})
    codex = room.codex_terminal(trust=False)
    codex.say("Look around")
    until(lambda: len(watched.prompted("Look around")) == 2, 30)
    codex.quit()
    code, said = room.finish([*VAULTD, "doctor"])
    assert code == 7, said
    assert "trust" in said and "/hooks" in said


def test_with_both_agents_wired_trusted_and_heard_doctor_finds_nothing(watched: Memory) -> None:
    room = watched.room
    room.model.load({"turns": LOOK})
    room.claude("Look around")
    codex = room.codex_terminal()
    codex.say("Look around")
    until(lambda: len(watched.prompted("Look around")) == 2 * len(LOOK), 30)
    codex.quit()
    watched.settle()
    code, said = room.finish([*VAULTD, "doctor"])
    assert code == 0, said
