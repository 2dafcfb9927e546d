"""A compaction or a resume in between: no session is given its own handoff, and the next agent still gets it."""

from __future__ import annotations

import re
import uuid

import pytest

from tests.fake_wire import Json
from tests.real.memory import FENCE, Memory
from tests.real.work import COMMAND, EDITED, FAILURE, LOOK, word, work
from tests.waiting import until

pytestmark = pytest.mark.real

SUMMARY: Json = {"text": "<summary>The sum of the prices is to be exact; the check still fails.</summary>"}


def answered(memory: Memory, turn: Json) -> bool:
    """Whether the model gave that answer: without it there was no compaction."""
    return any(request["reply"]["text"] == turn["text"] for request in memory.room.model.requests())


def hand_over(memory: Memory, mark: str, agent: str) -> None:
    """No request so far was given a handoff; the next agent is given this one."""
    memory.settle()
    memory.assert_not_told(0, FENCE)
    since = memory.requests()
    memory.room.model.load({"turns": LOOK})
    memory.room.agent(agent, "What is left to do?")
    memory.assert_told(since, mark, EDITED, COMMAND, FAILURE)


def turns_across_a_compaction(tokens: int) -> Json:
    """A scenario whose context is full after the first call, so that the agent has it summed up before it goes on."""
    first = {"shell": "git diff --stat", "usage": {"input": tokens, "output": 100}}
    return {"turns": [first, SUMMARY, *LOOK], "by": "requests"}


def test_claude_told_to_compact_between_two_turns(memory: Memory) -> None:
    mark, room = word(), memory.room
    room.model.load({"turns": work("claude-code", room.checkout)})
    claude = room.claude_terminal()
    claude.say(f"Make the sum of the prices exact, see {mark}")
    until(lambda: memory.handoffs("open", mark), 30)
    room.model.load({"turns": [SUMMARY], "by": "requests"})
    claude.say("/compact")
    claude.wait_for("Compacted")
    room.model.load({"turns": LOOK})
    claude.say("Look once more")
    until(lambda: len(memory.prompted("Look once more")) == 2, 30)
    claude.quit()
    assert answered(memory, SUMMARY)
    hand_over(memory, mark, "codex")


def test_claude_resumed_and_out_of_room_in_the_middle_of_a_turn(memory: Memory) -> None:
    mark, room, session = word(), memory.room, str(uuid.uuid4())
    room.model.load({"turns": work("claude-code", room.checkout)})
    room.claude(f"Make the sum of the prices exact, see {mark}", "--session-id", session)
    memory.settle()
    room.model.load(turns_across_a_compaction(tokens=990_000))
    room.claude("Look once more", "--resume", session)
    assert answered(memory, SUMMARY)
    hand_over(memory, mark, "codex")


def test_codex_resumed_and_out_of_room_in_the_middle_of_a_turn(memory: Memory) -> None:
    mark, room = word(), memory.room
    room.model.load({"turns": work("codex", room.checkout)})
    said = room.codex(f"Make the sum of the prices exact, see {mark}")
    found = re.search(r"session id: (\S+)", said)
    assert found
    memory.settle()
    room.model.load(turns_across_a_compaction(tokens=5_000_000))
    said = room.codex("Look once more", "resume", found.group(1))
    assert "context compacted" in said
    hand_over(memory, mark, "claude-code")
