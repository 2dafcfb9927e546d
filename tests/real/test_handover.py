"""One agent ends, another starts in the same checkout: the model is sent the handoff, once, and knows."""

from __future__ import annotations

import pytest

from tests.real.clients import CODEX_PLAIN_MODEL
from tests.real.memory import AGENTS, Memory
from tests.real.work import COMMAND, EDITED, FAILURE, LOOK, SILENT, word, work
from tests.waiting import until

pytestmark = pytest.mark.real

PAIRS = [("claude-code", "codex"), ("codex", "claude-code")]


def do_work(memory: Memory, agent: str, *more: str) -> str:
    """A whole session of the agent: a prompt with a word of its own, an edit, a failing command. The word."""
    mark, room = word(), memory.room
    room.model.load({"turns": work(agent, room.checkout)})
    room.agent(agent, f"Make the sum of the prices exact, see {mark}", *more)
    memory.settle()
    return mark


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_the_next_agent_is_told_once_where_the_last_one_stopped(memory: Memory, first: str, second: str) -> None:
    mark, since = do_work(memory, first), memory.requests()
    memory.room.model.load({"turns": LOOK})
    memory.room.agent(second, "What is left to do?")
    memory.assert_told(since, mark, EDITED, COMMAND, FAILURE)
    memory.settle()
    assert len(memory.handoffs("accepted", mark)) == 1
    assert memory.handoffs("open", mark) == []

    since = memory.requests()
    memory.room.agent(first, "What is left to do now?")
    memory.assert_not_told(since, mark)


def test_codex_without_code_mode_hands_over_too(unwatched: Memory) -> None:
    mark, since = do_work(unwatched, "codex", "-m", CODEX_PLAIN_MODEL), unwatched.requests()
    unwatched.room.model.load({"turns": LOOK})
    unwatched.room.claude("What is left to do?")
    unwatched.assert_told(since, mark, EDITED, COMMAND, FAILURE)


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_session_that_did_nothing_gives_the_handoff_back(memory: Memory, first: str, second: str) -> None:
    mark, since = do_work(memory, first), memory.requests()
    memory.room.model.load({"turns": SILENT})
    memory.room.agent(second, "Hello")
    memory.assert_told(since, mark, EDITED)
    memory.settle()
    assert len(memory.handoffs("open", mark)) == 1

    since = memory.requests()
    memory.room.model.load({"turns": LOOK})
    memory.room.agent(first, "What is left to do?")
    memory.assert_told(since, mark, EDITED, COMMAND, FAILURE)


@pytest.mark.parametrize("agent", AGENTS)
def test_the_same_agent_in_a_new_session_is_told_as_well(unwatched: Memory, agent: str) -> None:
    mark, since = do_work(unwatched, agent), unwatched.requests()
    unwatched.room.model.load({"turns": LOOK})
    unwatched.room.agent(agent, "What is left to do?")
    unwatched.assert_told(since, mark, EDITED, COMMAND, FAILURE)


@pytest.mark.parametrize("agent", AGENTS)
def test_five_seconds_after_the_end_without_a_daemon_no_process_is_left(unwatched: Memory, agent: str) -> None:
    mark, room = word(), unwatched.room
    room.model.load({"turns": work(agent, room.checkout)})
    room.agent(agent, f"Make the sum of the prices exact, see {mark}")
    until(lambda: not room.processes(), 5)
    assert unwatched.waiting() == []
    assert len(unwatched.handoffs("open", mark)) == 1


def test_an_agent_beside_a_live_one_is_told_nothing_until_that_one_quits(memory: Memory) -> None:
    mark, room = word(), memory.room
    room.model.load({"turns": work("claude-code", room.checkout)})
    claude = room.claude_terminal()
    claude.say(f"Make the sum of the prices exact, see {mark}")
    until(lambda: memory.handoffs("open", mark), 30)
    since = memory.requests()
    room.model.load({"turns": SILENT})
    room.codex("Hello")
    memory.assert_not_told(since, mark)

    claude.quit()
    memory.settle()
    since = memory.requests()
    room.model.load({"turns": LOOK})
    room.codex("What is left to do?")
    memory.assert_told(since, mark, EDITED, COMMAND, FAILURE)


def test_both_interactive(unwatched: Memory) -> None:
    """As people work: quit Claude, open Codex, and it knows from the first prompt on."""
    mark, room = word(), unwatched.room
    room.model.load({"turns": work("claude-code", room.checkout)})
    claude = room.claude_terminal()
    claude.say(f"Make the sum of the prices exact, see {mark}")
    until(lambda: unwatched.handoffs("open", mark), 30)
    claude.quit()
    unwatched.settle()

    since = unwatched.requests()
    room.model.load({"turns": LOOK})
    codex = room.codex_terminal()
    codex.say("Say what is left to do")
    until(lambda: len(unwatched.prompted("Say what is left")) == len(LOOK), 30)
    codex.quit()
    unwatched.assert_told(since, mark, EDITED, COMMAND, FAILURE)
