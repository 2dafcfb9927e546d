"""Records of trust, against what the agent itself lists for the hooks that vaultd writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.agents.recorded import DATA, an
from vaultd.agents.hookfile import added, entries
from vaultd.agents.trust import Verdict, trust_verdicts

HOOK = Path("/home/dev/.local/share/vaultd/vaultd-hook")
FILE = "/home/dev/.codex/hooks.json"
CODEX = an("codex")
TEXT = (DATA / "trust/codex-hooks.json").read_text("utf-8")
LISTED: list[dict[str, Any]] = json.loads((DATA / "trust/codex-hooks-list.json").read_bytes())


def record(rows: list[dict[str, Any]], more: str = "") -> str:
    return "\n".join(f'[hooks.state."{r["key"]}"]\ntrusted_hash = "{r["currentHash"]}"\n{more}' for r in rows)


def verdicts(text: str, files: tuple[str, ...] = (FILE,)) -> dict[str, Verdict]:
    return trust_verdicts(CODEX, files, entries(CODEX, TEXT), text)


def test_the_recording_is_of_what_is_installed_now() -> None:
    assert added(CODEX, "", HOOK) == TEXT
    assert {row["command"] for row in LISTED} == {entry.command for entry in entries(CODEX, TEXT)}
    assert all(row["timeoutSec"] == CODEX.events[row["command"].split()[-1]].timeout for row in LISTED)


def test_hooks_trusted_as_the_agent_hashes_them_are_trusted() -> None:
    assert set(verdicts(record(LISTED)).values()) == {Verdict.TRUSTED}
    assert len(verdicts(record(LISTED))) == len(CODEX.wired)
    assert set(verdicts(record(LISTED), ("/elsewhere/hooks.json", FILE)).values()) == {Verdict.TRUSTED}


@pytest.mark.parametrize("text", ["", "[hooks]\nstate = 1", "hooks = []", "[hooks.state]\n"])
def test_without_a_record_nothing_is_trusted(text: str) -> None:
    assert set(verdicts(text).values()) == {Verdict.UNTRUSTED}
    assert set(verdicts(record(LISTED), ("/elsewhere/hooks.json",)).values()) == {Verdict.UNTRUSTED}


def test_each_hook_has_its_own_verdict() -> None:
    rows = [row for row in LISTED if not row["command"].endswith(" Stop")]
    found = verdicts(record(rows))
    assert found.pop("Stop") is Verdict.UNTRUSTED
    assert set(found.values()) == {Verdict.TRUSTED}
    assert set(verdicts(record(LISTED, "enabled = false\n")).values()) == {Verdict.DISABLED}
    assert set(verdicts(record(LISTED).replace("sha256:", "sha256:0")).values()) == {Verdict.CHANGED}


def test_an_entry_that_a_person_added_to_is_not_second_guessed() -> None:
    value = json.loads(TEXT)
    value["hooks"]["Stop"][0]["matcher"] = ""
    found = trust_verdicts(CODEX, [FILE], entries(CODEX, json.dumps(value)), record(LISTED).replace("sha256:", "x"))
    assert found["Stop"] is Verdict.TRUSTED and found["SessionStart"] is Verdict.CHANGED


def test_a_record_that_cannot_be_read_says_nothing() -> None:
    assert set(verdicts("= broken").values()) == {Verdict.UNKNOWN}


def test_an_agent_that_asks_nobody_trusts() -> None:
    agent = an("claude-code")
    found = trust_verdicts(agent, [], entries(agent, added(agent, "", HOOK)), "")
    assert set(found.values()) == {Verdict.TRUSTED}
