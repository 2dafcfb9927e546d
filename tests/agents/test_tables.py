"""The agent files: sound, complete, and refused when they are not."""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vaultd.agents
from tests.agents.recorded import an
from vaultd.agents import load_agents, render
from vaultd.agents.tables import parse_agent
from vaultd.core.event import Kind
from vaultd.core.sanitize import redact

FOLDER = Path(vaultd.agents.__file__).parent


def table() -> dict[str, Any]:
    return tomllib.loads((FOLDER / "codex.toml").read_text("utf-8"))


def test_two_agents_are_known() -> None:
    assert list(load_agents()) == ["claude-code", "codex"]


@pytest.mark.parametrize("agent", list(load_agents()))
def test_an_agent_is_wired_for_what_a_page_needs_and_never_before_a_tool_call(agent: str) -> None:
    kinds = {spec.kind for spec in an(agent).wired}
    assert {Kind.START, Kind.PROMPT, Kind.TOOL, Kind.PRE_COMPACT, Kind.TURN_END, Kind.END} <= kinds
    assert Kind.PRE_TOOL not in kinds


@pytest.mark.parametrize("agent", list(load_agents()))
def test_what_hooks_are_told(agent: str) -> None:
    lines = {spec.name: spec.map_line for spec in an(agent).wired}
    assert lines["SessionStart"] == "session-start-json start -"
    assert lines["UserPromptSubmit"] == lines["PostToolUse"] == "- - -"
    assert lines["Stop"] == lines["SessionEnd"] == lines["PreCompact"] == "- - drain"


@pytest.mark.parametrize("agent", list(load_agents()))
def test_bounds(agent: str) -> None:
    assert 1000 <= an(agent).inject_limit <= 10_000
    assert all(1 <= spec.timeout <= (spec.timeout_max or 15) for spec in an(agent).events.values())


def test_a_clamped_event_asks_for_no_more_than_it_gets() -> None:
    assert {name: spec.timeout for name, spec in an("codex").events.items() if spec.timeout_max} == {
        "SessionEnd": 3,
        "Interrupt": 3,
    }


def test_the_output_of_a_session_start_is_one_line_of_json() -> None:
    printed = render("session-start-json", redact('Überblick "x"\nzwei'))
    assert printed.endswith(b"\n") and printed.count(b"\n") == 1
    assert json.loads(printed) == {
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": 'Überblick "x"\nzwei'}
    }
    assert {shape for agent in load_agents().values() for shape in agent.shapes} == {"session-start-json"}


def break_id(t: dict[str, Any]) -> None:
    t["id"] = "Not An Id"


def break_key(t: dict[str, Any]) -> None:
    t["events"]["Stop"]["drian"] = True


def break_top(t: dict[str, Any]) -> None:
    t["evnets"] = {}


def break_kind(t: dict[str, Any]) -> None:
    t["events"]["Stop"]["kind"] = "halt"


def break_timeout(t: dict[str, Any]) -> None:
    t["events"]["SessionEnd"]["timeout"] = 4


def break_milliseconds(t: dict[str, Any]) -> None:
    t["events"]["Stop"]["timeout"] = 5000


def break_before_tool(t: dict[str, Any]) -> None:
    t["events"]["PreToolUse"]["wired"] = True


def break_shape(t: dict[str, Any]) -> None:
    t["events"]["SessionStart"]["shape"] = "yaml"


def break_family(t: dict[str, Any]) -> None:
    t["tools"][0]["family"] = "bash"


def break_transcript(t: dict[str, Any]) -> None:
    t["transcripts"]["outcome"] = "tape"


def break_trust(t: dict[str, Any]) -> None:
    t["trust"]["style"] = "handshake"


def break_unit(t: dict[str, Any]) -> None:
    t["config"]["timeout_unit"] = "minutes"


@pytest.mark.parametrize(
    "damage",
    [
        break_id,
        break_key,
        break_top,
        break_kind,
        break_timeout,
        break_milliseconds,
        break_before_tool,
        break_shape,
        break_family,
        break_transcript,
        break_trust,
        break_unit,
    ],
)
def test_a_file_with_a_fault_is_refused(damage: Callable[[dict[str, Any]], None]) -> None:
    sound = table()
    assert parse_agent(copy.deepcopy(sound)).id == "codex"
    damage(sound)
    with pytest.raises(ValueError):
        parse_agent(sound)
