"""What doctor and status say about agents that do not record."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.agents.recorded import DATA
from tests.engine.test_install import SCRIPT, file_of, home, install_plan, put
from vaultd.agents import Agent, load_agents
from vaultd.config import Places
from vaultd.engine.foreign import apply
from vaultd.engine.install import is_wired, refresh_hook
from vaultd.engine.wiring import Problem, check

NOW = datetime(2026, 11, 29, 21, 0, tzinfo=timezone(timedelta(hours=1)))
CLAUDE, CODEX = load_agents()["claude-code"], load_agents()["codex"]
BY_ID = pytest.mark.parametrize("agent", [CLAUDE, CODEX], ids=lambda agent: agent.id)


def wired(agent: Agent, tmp_path: Path, at: datetime = NOW - timedelta(days=2)) -> Places:
    """A home in which an agent is wired, trusted and was heard of."""
    where = home(tmp_path)
    refresh_hook(SCRIPT, where)
    apply(install_plan(agent, where, {}), where, at)
    os.utime(file_of(agent, where), (at.timestamp(), at.timestamp()))
    if agent.trust.style:
        trust(agent, where)
    return where


def trust(agent: Agent, where: Places, more: str = "") -> Path:
    """The agent's record that its hooks are trusted, as it would write it."""
    from vaultd.agents.hookfile import entries
    from vaultd.agents.trust import _hash

    path = file_of(agent, where)
    text = ""
    for entry in entries(agent, path.read_text()):
        label = "".join(f"_{c.lower()}" if c.isupper() else c for c in entry.event).strip("_")
        text += f'[hooks.state."{path}:{label}:{entry.group}:{entry.handler}"]\n'
        text += f'trusted_hash = "{_hash(agent, entry, label)}"\n{more}'
    return put(where.home / agent.home.folder / agent.trust.file, text.encode())


def heard(agent: Agent, ago: timedelta, **counts: int) -> dict[str, dict[str, Any]]:
    at = (NOW - ago).isoformat()
    return {spec.name: {"last": at, "count": counts.get(spec.name, 50)} for spec in agent.wired}


def problems(
    agent: Agent, where: Places, seen: Mapping[str, Mapping[str, Any]] | None = None, now: datetime = NOW
) -> list[Problem]:
    return check(agent, where, {}, now, heard(agent, timedelta(minutes=5)) if seen is None else seen)


def transcript(agent: Agent, where: Places, at: datetime) -> Path:
    name = {"claude-code": "projects/-w-app/s1.jsonl", "codex": "sessions/2026/11/29/rollout-x.jsonl"}[agent.id]
    source = DATA / "transcripts" / agent.id / "session.jsonl"
    path = put(where.home / agent.home.folder / name, source.read_bytes())
    os.utime(path, (at.timestamp(), at.timestamp()))
    return path


@BY_ID
def test_an_agent_that_is_well_has_no_problem(agent: Agent, tmp_path: Path) -> None:
    where = wired(agent, tmp_path)
    transcript(agent, where, NOW - timedelta(minutes=4))
    assert is_wired(agent, where, {})
    assert problems(agent, where) == []


@BY_ID
def test_a_fresh_wiring_without_any_event_is_no_problem(agent: Agent, tmp_path: Path) -> None:
    where = wired(agent, tmp_path, NOW - timedelta(seconds=30))
    transcript(agent, where, NOW - timedelta(hours=3))
    assert problems(agent, where, {}) == []


@BY_ID
def test_a_hook_that_is_gone_or_cannot_run_is_told(agent: Agent, tmp_path: Path) -> None:
    where = wired(agent, tmp_path)
    where.hook.chmod(0o644)
    assert problems(agent, where) == [
        Problem(f"the hook {where.hook} cannot be run (not executable)", "Run `vaultd up`.")
    ]
    where.hook.unlink()
    assert problems(agent, where) == [Problem(f"the hook {where.hook} is missing", "Run `vaultd up`.")]


@BY_ID
def test_hooks_that_start_another_program_are_told(agent: Agent, tmp_path: Path) -> None:
    where = wired(agent, tmp_path)
    path = file_of(agent, where)
    at = path.stat().st_mtime
    path.write_text(path.read_text().replace(str(where.hook), "/old/vaultd-hook"))
    os.utime(path, (at, at))
    (found,) = [p for p in problems(agent, where) if "/old/" in p.text]
    assert found == Problem("the hook /old/vaultd-hook is missing", f"Run `vaultd connect {agent.id}`.")


@BY_ID
def test_entries_that_are_gone_are_told_one_by_one(agent: Agent, tmp_path: Path) -> None:
    where = wired(agent, tmp_path)
    path = file_of(agent, where)
    value = json.loads(path.read_bytes())
    del value["hooks"]["Stop"], value["hooks"]["SessionEnd"]
    path.write_text(json.dumps(value))
    (found,) = problems(agent, where)
    assert found.text == f"{path} lacks the hooks for Stop, SessionEnd"
    assert found.mend == f"Run `vaultd connect {agent.id}`."
    path.write_text("{}")
    (found,) = problems(agent, where)
    assert found.text == f"its hooks are gone from {path}"
    path.unlink()
    assert is_wired(agent, where, {})
    assert [p.text for p in problems(agent, where)] == [f"its hooks are gone from {path}"]


@BY_ID
def test_a_configuration_that_no_program_can_read_is_told(agent: Agent, tmp_path: Path) -> None:
    where = wired(agent, tmp_path)
    path = file_of(agent, where)
    path.write_text(path.read_text().replace('"timeout": 10', '"timeout": 10,', 1))
    (found,) = problems(agent, where)
    assert found.text.startswith(f"{path} cannot be read, by {agent.title} neither: line ")


@BY_ID
def test_a_switch_that_keeps_hooks_from_running_is_told(agent: Agent, tmp_path: Path) -> None:
    where = wired(agent, tmp_path)
    if agent is CLAUDE:
        path = file_of(agent, where)
        path.write_text(path.read_text().replace("{", '{"disableAllHooks": true, ', 1))
    else:
        path = where.home / ".codex/config.toml"
        path.write_text(path.read_text() + "[features]\nhooks = false\n")
    (found,) = problems(agent, where)
    assert found.text.startswith("all its hooks are switched off") and str(path) in found.text


def test_hooks_that_nobody_trusted_are_told(tmp_path: Path) -> None:
    where = wired(CODEX, tmp_path)
    record = where.home / ".codex/config.toml"
    whole = record.read_text()
    record.unlink()
    (found,) = problems(CODEX, where)
    assert found.text == "its hooks are not trusted, so it does not run them and says nothing"
    assert found.mend.startswith("Start `codex`, type /hooks")
    record.write_text(whole.replace(":stop:", ":other:"))
    (found,) = problems(CODEX, where)
    assert found.text == "its hooks for Stop are not trusted, so it does not run them and says nothing"
    trust(CODEX, where, "enabled = false\n")
    (found,) = problems(CODEX, where)
    assert "switched off" in found.text
    record.write_text("= broken")
    (found,) = problems(CODEX, where)
    assert found.text == f"whether its hooks are trusted is unknown: {record} cannot be read"


def test_hooks_that_changed_since_they_were_trusted_are_told_until_they_are_heard_of(tmp_path: Path) -> None:
    where = wired(CODEX, tmp_path)
    record = where.home / ".codex/config.toml"
    record.write_text(record.read_text().replace("sha256:", "sha256:00"))
    (found,) = problems(CODEX, where, heard(CODEX, timedelta(days=3)))
    assert "changed since it was trusted" in found.text
    assert problems(CODEX, where, heard(CODEX, timedelta(minutes=5))) == []


def test_a_home_that_is_a_link_is_trusted_under_either_name(tmp_path: Path) -> None:
    where = wired(CODEX, tmp_path)
    (tmp_path / "link").symlink_to(where.home)
    environ = {"CODEX_HOME": str(tmp_path / "link/.codex")}
    assert check(CODEX, where, environ, NOW, heard(CODEX, timedelta(minutes=5))) == []


@BY_ID
def test_a_transcript_that_grows_while_no_event_comes_is_told(agent: Agent, tmp_path: Path) -> None:
    where = wired(agent, tmp_path)
    path = transcript(agent, where, NOW)
    (found,) = problems(agent, where, heard(agent, timedelta(hours=1)))
    size = path.stat().st_size
    assert found.text == (
        f"a transcript grew 2026-11-29 21:00:00 to {size} bytes but the last event came 2026-11-29 20:00:00 ({path})"
    )
    assert f"vaultd connect {agent.id}" in found.mend
    (never,) = problems(agent, where, {})
    assert "no event ever came" in never.text


@BY_ID
def test_a_step_that_takes_minutes_is_no_silence(agent: Agent, tmp_path: Path) -> None:
    where = wired(agent, tmp_path)
    seen = heard(agent, timedelta(seconds=300))
    transcript(agent, where, NOW - timedelta(seconds=10))
    assert problems(agent, where, seen) == []
    transcript(agent, where, NOW - timedelta(seconds=90))
    assert len(problems(agent, where, seen)) == 1
    transcript(agent, where, NOW - timedelta(seconds=200))
    assert problems(agent, where, seen) == []


@BY_ID
def test_a_transcript_from_before_the_wiring_is_no_silence(agent: Agent, tmp_path: Path) -> None:
    where = wired(agent, tmp_path)
    transcript(agent, where, NOW - timedelta(days=3))
    assert problems(agent, where, {}) == []


@BY_ID
def test_an_event_that_never_comes_is_told(agent: Agent, tmp_path: Path) -> None:
    where = wired(agent, tmp_path)
    seen = heard(agent, timedelta(minutes=5))
    del seen["Stop"], seen["PostToolUse"]
    assert {p.text for p in problems(agent, where, seen)} == {
        "50 prompts came and never a Stop",
        "50 prompts came and never a PostToolUse",
    }
    seen["UserPromptSubmit"]["count"] = 4
    assert problems(agent, where, seen) == []


@BY_ID
def test_an_event_that_ceased_to_come_is_told(agent: Agent, tmp_path: Path) -> None:
    where = wired(agent, tmp_path)
    seen = heard(agent, timedelta(hours=2))
    seen["Stop"]["last"] = (NOW - timedelta(days=30)).isoformat()
    (found,) = problems(agent, where, seen)
    assert found.text.startswith("no Stop came since 2026-10-30 21:00:00, though prompts did until")
