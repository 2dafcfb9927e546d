"""A client that is killed in the middle of a turn hands over all the same: no end event ever comes."""

from __future__ import annotations

import pytest

from tests.real.memory import Memory
from tests.real.work import COMMAND, EDITED, FAILURE, LOOK, word, work
from tests.waiting import until

pytestmark = pytest.mark.real


def kill_in_first_turn(memory: Memory) -> str:
    """SIGKILL a headless Claude while its model thinks, after an edit and a failing command; the prompt's word."""
    mark, room = word(), memory.room
    steps = work("claude-code", room.checkout)
    room.model.load({"turns": [*steps[:-1], {**steps[-1], "delay": 100}]})
    claude = room.start(room.claude_command(f"Make the sum of the prices exact, see {mark}"))
    until(lambda: len(memory.prompted(mark)) == len(steps), 30)
    claude.kill()
    claude.wait(10)
    return mark


def kill_in_second_turn(memory: Memory) -> tuple[str, str]:
    """SIGKILL an interactive Claude in its second turn, after the whole work in its first; both prompts' words."""
    first, second, room = word(), word(), memory.room
    room.model.load({"turns": work("claude-code", room.checkout)})
    claude = room.claude_terminal()
    claude.say(f"Make the sum of the prices exact, see {first}")
    until(lambda: memory.handoffs("open", first), 30)
    room.model.load({"turns": [{"shell": "git diff --stat"}, {"text": "It is small.", "delay": 100}]})
    claude.say(f"How big is the change, see {second}")
    until(lambda: len(memory.prompted(second)) == 2, 30)
    claude.process.kill()
    claude.wait_end()
    return first, second


def test_killed_in_a_later_turn(memory: Memory) -> None:
    first, second = kill_in_second_turn(memory)
    if memory.daemon:
        until(lambda: memory.handoffs("open", second), 5)
    since = memory.requests()
    memory.room.model.load({"turns": LOOK})
    memory.room.codex("What is left to do?")
    memory.assert_told(since, first, EDITED, COMMAND, FAILURE, *([second] if memory.daemon else []))
    memory.settle()
    until(lambda: memory.sessions(second), 5)


def test_killed_in_its_very_first_turn(watched: Memory) -> None:
    mark = kill_in_first_turn(watched)
    until(lambda: watched.handoffs("open", mark), 5)
    since = watched.requests()
    watched.room.model.load({"turns": LOOK})
    watched.room.codex("What is left to do?")
    watched.assert_told(since, mark, EDITED, COMMAND, FAILURE)


def test_killed_in_its_very_first_turn_without_a_daemon_nothing_is_lost(unwatched: Memory) -> None:
    """Nothing ran that could have prepared a text, so the next agent's end works the events off."""
    mark = kill_in_first_turn(unwatched)
    unwatched.room.model.load({"turns": LOOK})
    unwatched.room.codex("What is left to do?")
    unwatched.settle()
    assert len(unwatched.sessions(mark)) == 1
    assert len(unwatched.handoffs("open", mark)) == 1
