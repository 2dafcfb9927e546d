"""From payloads that real clients sent, through normalisation and sanitiser, to what the next agent is given."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from vaultd.agents import Rejected, load_agents, normalise
from vaultd.core.event import Delivery, Event
from vaultd.core.handoff import HandoffFacts, handoff_page, injected, parse_handoff
from vaultd.core.ids import Key
from vaultd.core.sanitize import observe
from vaultd.core.session import Digest, digest

PAYLOADS = Path(__file__).parent.parent / "data" / "payloads"
START = datetime.fromisoformat("2026-11-29T19:50:00+01:00")

STORIES = {
    "claude-code": [
        *(
            "SessionStart",
            "UserPromptSubmit.prompt.multiline",
            "PostToolUse.read",
            "PostToolUse.edit",
            "PostToolUse.write",
        ),
        *("PostToolUseFailure.shell.fail", "PostToolUseFailure.shell.test_fail", "PostToolBatch.tool.denied"),
        *("UserPromptSubmit.prompt.background_done", "PostToolUse.in_subagent.edit", "Stop.next_steps", "SessionEnd"),
    ],
    "codex": [
        *("SessionStart", "UserPromptSubmit.prompt.multiline", "PostToolUse.read", "PostToolUse.apply_patch"),
        *("PostToolUse.shell.fail", "PostToolUse.shell.test_fail", "UserPromptSubmit.in_subagent"),
        *("PostToolUse.in_subagent.shell.fail", "Stop.next_steps", "SessionEnd"),
    ],
}


def told(agent: str) -> tuple[Digest, str]:
    events: list[Event] = []
    for number, name in enumerate(STORIES[agent]):
        at = START + timedelta(minutes=number)
        header = {"event": name.split(".")[0], "at": at.isoformat(), "root": "/home/dev/project"}
        payload = (PAYLOADS / agent / f"{name}.json").read_bytes()
        event = normalise(load_agents()[agent], Delivery(Key(f"{number + 1}-x"), header, payload), at)
        assert not isinstance(event, Rejected)
        events.append(observe(event).event)
    made = digest(events)
    page = handoff_page(made, HandoffFacts("0123456789-g1", "p-1", "", made.ended or made.last, provisional=False))
    return made, injected(parse_handoff(page.encode(), "h.md"), 9000, made.last)


@pytest.mark.parametrize("agent", STORIES)
def test_the_next_agent_learns_the_file_the_failure_and_what_is_left(agent: str) -> None:
    made, text = told(agent)
    for part in (
        "bitte die Begrüßung in `src/app.py` reparieren",
        "- `src/app.py` (edited)",
        "- `docs/notes.md` (created)",
        "ls: cannot access 'missing-dir': No such file or directory",
        "python3 -m pytest -q -p no:cacheprovider tests",
        "failing: `tests/test_app.py::test_greets_by_name`",
        "AssertionError: assert 'hello Ada' == 'hello, Ada'",
        "1 failed, 1 passed",
        "- Add the comma in `src/app.py`.",
        "The session ended",
    ):
        assert part in text
    assert len(made.prompts) == 1
    assert (made.closed, made.closed_by, made.hands_over, made.stopped.kind) == (True, "other", True, "complete")
    assert "task-notification" not in text
    assert "CHILD" not in text


def test_an_exit_code_is_given_only_by_the_client_that_reports_it() -> None:
    command = "python3 -m pytest -q -p no:cacheprovider tests"
    codes = {agent: {run.text: run.result for run in told(agent)[0].commands}[command] for agent in STORIES}
    assert codes == {"claude-code": "exit 1", "codex": "failed"}


def test_a_refused_command_is_told_as_refused() -> None:
    made, text = told("claude-code")
    assert {run.text: run.result for run in made.commands}["rm README.md"] == "refused"
    assert "refused: rm in '/home/dev/project/README.md' needs approval" in text
