"""Outcomes of calls from a recorded rollout."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tests.agents.recorded import DATA
from vaultd.agents.transcripts.rollout import Outcome, outcomes
from vaultd.core.event import FileTouch

ROLLOUT = (DATA / "transcripts/codex/tools.excerpt.no_code_mode.jsonl").read_bytes()


def line(item: dict[str, object], kind: str = "item_completed") -> bytes:
    return json.dumps({"type": "event_msg", "payload": {"type": kind, "item": item}}).encode() + b"\n"


def test_recorded_outcomes() -> None:
    found = outcomes(ROLLOUT)
    assert {call: (o.exit_code, o.failed) for call, o in found.items()} == {
        "call_f4ee40d9c4964c0fa7e626c5": (0, False),
        "call_bec3868831b94d538bedce1e": (None, False),
        "call_dfe5440532664ac9be8a9019": (2, True),
        "call_8967fe3de128419f95e50b90": (1, True),
        "call_833d261b8d8346e992d7e111": (0, False),
        "call_9e96f8348b9d4a1192be2696": (0, False),
    }
    assert set(found["call_bec3868831b94d538bedce1e"].files) == {
        FileTouch("/home/dev/project/docs/notes.md", "create"),
        FileTouch("/home/dev/project/src/app.py", "edit"),
    }


def test_bad_lines_are_passed_over() -> None:
    lines = ROLLOUT.splitlines(keepends=True)
    damaged = b"".join([b'{"broken\n', lines[0][:50] + b"\n", b"\xff\xfe\n", *lines, b"[1]\n", lines[1][:80]])
    assert outcomes(damaged) == outcomes(ROLLOUT)


def test_what_is_no_completed_call_is_none() -> None:
    call = {"type": "CommandExecution", "id": "c", "status": "completed", "exit_code": 0}
    assert outcomes(line(call)) == {"c": Outcome(0, False)}
    assert outcomes(line(call, kind="item_started")) == {}
    assert outcomes(line({**call, "type": "AgentMessage"})) == {}
    assert outcomes(line({**call, "id": None})) == {}
    assert outcomes(line({**call, "exit_code": None, "status": "in_progress"})) == {"c": Outcome()}
    assert outcomes(line({**call, "exit_code": None, "status": "declined"})) == {"c": Outcome(None, True)}


def test_a_move_is_a_deletion_and_a_creation() -> None:
    change: dict[str, object] = {"type": "FileChange", "id": "c", "status": "failed", "stderr": "no"}
    change["changes"] = {"/w/a": {"type": "update", "move_path": "/w/b"}, "/w/c": {"type": "delete"}}
    assert outcomes(line(change)) == {
        "c": Outcome(
            None,
            True,
            (FileTouch("/w/a", "delete"), FileTouch("/w/b", "create"), FileTouch("/w/c", "delete")),
            "no",
        )
    }


@given(st.binary(max_size=200), st.integers(0, len(ROLLOUT)))
def test_any_bytes(junk: bytes, at: int) -> None:
    assert isinstance(outcomes(ROLLOUT[at:] + junk + ROLLOUT[:at]), dict)
