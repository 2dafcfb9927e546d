"""The ground that the other tests stand on: the real clients run on the fake model and their hooks reach it.

The hook here is five lines of shell, not the product: when these fail, a client or the harness changed.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.real.clients import CODEX_PLAIN_MODEL, Room
from tests.real.memory import AGENTS
from tests.real.work import COMMAND, EDITED, FAILURE, main_requests, pieces, word, work
from tests.waiting import until

pytestmark = pytest.mark.real

EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "PreCompact", "Stop", "SessionEnd")
SETTINGS = {"claude-code": ".claude/settings.json", "codex": ".codex/hooks.json"}


def wire_plain(room: Room, agent: str, sentinel: str) -> Path:
    """Wire a hook that keeps each payload and prints a sentinel at a session's start; the file of the payloads."""
    log = room.folder / f"{agent}.log"
    hooks = {}
    for event in EVENTS:
        inject = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": sentinel}}
        said = f"; printf %s {shlex.quote(json.dumps(inject))}" if event == "SessionStart" else ""
        command = f"(cat; echo) >> {shlex.quote(str(log))}{said}"
        hooks[event] = [{"hooks": [{"type": "command", "command": command, "timeout": 3}]}]
    (room.home / SETTINGS[agent]).write_text(json.dumps({"hooks": hooks}))
    return log


def events(log: Path) -> list[str]:
    """Names of the events that the hook had, in order."""
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    return [json.loads(line)["hook_event_name"] for line in lines if line]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_headless_session_fires_its_hooks_and_is_given_what_they_print(room: Room, agent: str) -> None:
    sentinel = word()
    log = wire_plain(room, agent, sentinel)
    room.model.load({"turns": work(agent, room.checkout)})
    room.agent(agent, "Fix the price")
    seen = events(log)
    assert seen[:2] == ["SessionStart", "UserPromptSubmit"]
    assert seen[-2:] == ["Stop", "SessionEnd"]
    assert "float(sum(prices))" in (room.checkout / EDITED).read_text()
    assert COMMAND in log.read_text() and FAILURE in log.read_text()
    asked = main_requests(room.model.requests())
    assert asked and all(len(pieces(request, sentinel)) == 1 for request in asked)


def test_codex_without_code_mode_is_scripted_the_same_way(room: Room) -> None:
    log = wire_plain(room, "codex", word())
    room.model.load({"turns": work("codex", room.checkout)})
    room.codex("Fix the price", "-m", CODEX_PLAIN_MODEL)
    assert "float(sum(prices))" in (room.checkout / EDITED).read_text()
    assert FAILURE in log.read_text()


def test_an_interactive_claude_is_typed_to_and_quits(room: Room) -> None:
    sentinel = word()
    log = wire_plain(room, "claude-code", sentinel)
    room.model.load({"turns": work("claude-code", room.checkout)})
    claude = room.claude_terminal()
    claude.say("Fix the price")
    until(lambda: "Stop" in events(log), 30)
    claude.quit()
    assert events(log)[-1] == "SessionEnd"
    assert all(pieces(request, sentinel) for request in main_requests(room.model.requests()))


def test_an_interactive_codex_asks_for_trust_and_leaves_its_server_behind(room: Room) -> None:
    sentinel = word()
    log = wire_plain(room, "codex", sentinel)
    room.model.load({"turns": work("codex", room.checkout)})
    codex = room.codex_terminal()
    codex.say("Fix the price")
    until(lambda: "Stop" in events(log), 30)
    codex.quit()
    assert "SessionEnd" not in events(log)
    assert room.processes(containing="app-server")
    assert all(pieces(request, sentinel) for request in main_requests(room.model.requests()))
