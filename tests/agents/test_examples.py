"""Payloads made up from what agents' documentation says: for those that were never run here."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.agents.recorded import DATA, NOW, an, delivery
from vaultd.agents import normalise
from vaultd.core.event import Event

EXAMPLES = DATA / "examples"
CHECKS: list[tuple[str, str, dict[str, Any]]] = json.loads((EXAMPLES / "checks.json").read_text("utf-8"))


def told(event: Event) -> dict[str, Any]:
    """What an event says, in the words of `checks.json`."""
    found: dict[str, Any] = {"kind": str(event.kind), "session": event.native, "cwd": event.cwd}
    found |= {"text": event.text, "turn": event.turn, "source": event.source, "reason": event.reason}
    found |= {"subagent": event.subagent, "transcript": event.transcript}
    if event.tool is not None:
        call = event.tool
        found |= {"tool": call.name, "family": call.family, "command": call.command, "call": call.call_id}
        found |= {"code": call.exit_code, "ok": call.ok, "error": call.error}
        found |= {"files": [touch.path for touch in call.files], "output": call.output}
    return found


@pytest.mark.parametrize(("agent", "event", "wanted"), CHECKS, ids=[f"{agent}-{event}" for agent, event, _ in CHECKS])
def test_an_example_means_what_the_documentation_says(agent: str, event: str, wanted: dict[str, Any]) -> None:
    data = (EXAMPLES / agent / f"{event}.json").read_bytes()
    found = normalise(an(agent), delivery(agent, event, data, {"cwd": "/from/header"}), NOW)
    assert isinstance(found, Event)
    assert {name: value for name, value in told(found).items() if name in wanted} == wanted


@pytest.mark.parametrize("agent", sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir()))
def test_no_example_is_of_an_unknown_event(agent: str) -> None:
    for path in (EXAMPLES / agent).glob("*.json"):
        assert path.stem.partition("@")[0] in an(agent).events, path.name
