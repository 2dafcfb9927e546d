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
from vaultd.agents import Agent, load_agents, render
from vaultd.agents.tables import parse_agent
from vaultd.core.event import Kind
from vaultd.core.sanitize import redact

FOLDER = Path(vaultd.agents.__file__).parent


def table() -> dict[str, Any]:
    return tomllib.loads((FOLDER / "codex.toml").read_text("utf-8"))


AGENTS = list(load_agents().values())
WIRED = [agent.id for agent in AGENTS if agent.hooks is not None]
PROVEN = [agent.id for agent in AGENTS if agent.hooks is not None and agent.evidence["hooks"].version]


def test_every_agent_that_can_be_wired_is_known() -> None:
    assert {agent.id for agent in AGENTS} >= {
        *("claude-code", "codex", "cursor", "gemini-cli", "opencode", "pi", "qwen-code", "kimi-code", "copilot-cli"),
        *("cline", "devin", "oh-my-pi", "openclaw", "command-code", "kiro-cli", "kiro-cli-v3", "grok", "zero", "zcode"),
        *("antigravity-cli", "pool", "hermes", "crush", "swival", "claude-desktop", "vscode-copilot", "zed", "muse"),
    }


@pytest.mark.parametrize("agent", WIRED)
def test_an_agent_is_wired_for_what_a_page_needs_and_never_before_a_tool_call(agent: str) -> None:
    kinds = {spec.kind for spec in an(agent).wired}
    assert {Kind.TOOL} <= kinds and kinds & {Kind.START, Kind.PROMPT} and kinds & {Kind.TURN_END, Kind.END}
    assert Kind.PRE_TOOL not in kinds


@pytest.mark.parametrize("agent", PROVEN)
def test_what_was_run_is_wired_for_prompts_too(agent: str) -> None:
    kinds = {spec.kind for spec in an(agent).wired}
    assert {Kind.PROMPT, Kind.TOOL} <= kinds and kinds & {Kind.TURN_END, Kind.END}


@pytest.mark.parametrize("agent", WIRED)
def test_what_hooks_are_told(agent: str) -> None:
    for spec in an(agent).wired:
        shape, moment, drain, *once = an(agent).map_line(spec).split()
        assert (drain == "drain") == (spec.kind in (Kind.TURN_END, Kind.END, Kind.PRE_COMPACT)), spec.name
        assert (moment == "start") == (spec.kind is Kind.START)
        assert bool(once) == (moment in ("prompt", "tool"))
        assert shape == "-" or moment != "-"


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.id)
def test_each_capability_has_its_evidence_and_none_more(agent: Agent) -> None:
    raw = tomllib.loads((FOLDER / f"{agent.id}.toml").read_text("utf-8"))
    told: set[str] = {name for name in ("hooks", "mcp", "instructions") if name in raw}
    told |= {"context"} if any("shape" in spec for spec in raw.get("events", {}).values()) else set()
    assert told == raw["evidence"].keys(), "a capability without evidence, or evidence of nothing"
    for name, evidence in agent.evidence.items():
        assert evidence.sources or evidence.version
        assert bool(evidence.version) == bool(evidence.date), name
        recorded = FOLDER.parent.parent / "tests/data/payloads" / agent.id
        if evidence.version and name in ("hooks", "context"):
            assert len(list(recorded.glob("*.json"))) > 5, "what was seen was recorded"


def test_what_is_told_of_a_capability_without_evidence_is_off() -> None:
    for name in ("hooks", "mcp", "instructions"):
        told = table()
        del told["evidence"][name]
        assert getattr(parse_agent(told), name) is None and getattr(an("codex"), name) is not None
    told = table()
    del told["evidence"]["context"]
    assert not parse_agent(told).printed and an("codex").printed


def test_a_file_copied_from_another_without_sources_of_its_own_is_found() -> None:
    told = table()
    told["evidence"]["hooks"] = {}
    with pytest.raises(ValueError, match="neither a version and date nor a source"):
        parse_agent(told)
    seen: dict[tuple[str, ...], str] = {}
    for agent in AGENTS:
        for name, evidence in agent.evidence.items():
            if evidence.sources:
                other = seen.setdefault((name, *evidence.sources), agent.id)
                assert other == agent.id or {other, agent.id} <= SAME_PAGES, f"{agent.id} cites what {other} does"


SAME_PAGES = {"kiro-cli", "kiro-cli-v3"}
"""Agents that one page tells about."""


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.id)
def test_bounds(agent: Agent) -> None:
    assert 1000 <= agent.inject_limit <= 64_000
    assert all(1 <= spec.timeout <= (spec.timeout_max or 15) for spec in agent.events.values())


def test_a_clamped_event_asks_for_no_more_than_it_gets() -> None:
    assert {name: spec.timeout for name, spec in an("codex").events.items() if spec.timeout_max} == {
        "SessionEnd": 3,
        "Interrupt": 3,
    }


def test_the_output_of_a_session_start_is_one_line_of_json() -> None:
    printed = render(an("codex"), "session-start-json", redact('Überblick "x"\nzwei'))
    assert printed.endswith(b"\n") and printed.count(b"\n") == 1
    assert json.loads(printed) == {
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": 'Überblick "x"\nzwei'}
    }


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
    t["hooks"]["timeout_unit"] = "minutes"


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
