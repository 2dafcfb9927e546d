"""`doctor`: a row for each agent, its exit code, and the same as JSON."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from tests.scratch import Scratch


def doctor(scratch: Scratch) -> tuple[int, dict[str, Any]]:
    scratch.run("reindex", check=True)
    done = scratch.run("doctor", "--json")
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["ok"] == (done.returncode == 0), done.stdout
    return done.returncode, {row["agent"]: row for row in told["agents"]}


def test_what_is_not_here_has_no_row_and_what_is_but_not_wired_is_no_fault(scratch: Scratch) -> None:
    scratch.init()
    (scratch.home / ".gemini").mkdir()
    scratch.run("connect", "claude-code", "--yes", check=True)
    code, rows = doctor(scratch)
    assert code == 0 and rows.keys() == {"claude-code", "gemini-cli"}
    assert (rows["gemini-cli"]["installed"], rows["gemini-cli"]["wired"]) == (True, False)
    ours = rows["claude-code"]
    assert (ours["wired"], ours["mcp"], ours["instructions"], ours["trusted"], ours["heard"]) == (
        *(True, True, True),
        None,
        {},
    )
    said = scratch.run("doctor").stdout
    assert "Gemini CLI: not wired (`vaultd connect gemini-cli`)" in said
    assert "Claude Code: wired, MCP, instructions; nothing was heard of it yet" in said


def test_an_agent_that_nobody_trusts_is_red_with_what_mends_it(scratch: Scratch) -> None:
    scratch.init()
    scratch.run("connect", "codex", "--yes", check=True)
    code, rows = doctor(scratch)
    assert code == 7 and rows["codex"]["trusted"] is False
    assert "/hooks" in rows["codex"]["problems"][0]["mend"]
    said = scratch.run("doctor")
    assert said.returncode == 7 and "BAD  Codex: wired, not trusted" in said.stdout


def test_what_was_heard_is_told_by_kind_with_its_age(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    scratch.run("connect", "gemini-cli", "--yes", check=True)
    for event, more in (("SessionStart", {}), ("BeforeAgent", {"prompt": "a"}), ("BeforeAgent", {"prompt": "b"})):
        scratch.hook("gemini-cli", event, {"session_id": "s", "cwd": str(cwd), **more}, cwd)
    scratch.run("ingest", check=True)
    _, rows = doctor(scratch)
    heard = rows["gemini-cli"]["heard"]
    assert (heard["prompt"]["count"], heard["session-start"]["count"]) == (2, 1)
    assert 0 <= heard["prompt"]["ago_s"] < 60 and stores.inbox.pending() == []
    assert "prompt 0 s ago (2)" in scratch.run("doctor").stdout or "s ago (2)" in scratch.run("doctor").stdout


def test_a_transcript_that_grows_without_events_is_red_and_an_empty_one_is_not(scratch: Scratch) -> None:
    scratch.init()
    scratch.run("connect", "qwen-code", "--yes", check=True)
    path = scratch.home / ".qwen/projects/-w/chats/s.jsonl"
    path.parent.mkdir(parents=True)
    path.touch()
    later = time.time() + 3600
    os.utime(path, (later, later))
    code, rows = doctor(scratch)
    assert code == 0 and rows["qwen-code"]["transcript"] is None
    path.write_text("{}\n")
    os.utime(path, (later, later))
    code, rows = doctor(scratch)
    assert code == 7 and rows["qwen-code"]["transcript"]["bytes"] == 3
    problem = rows["qwen-code"]["problems"][0]
    assert "grew" in problem["text"] and "no event ever came" in problem["text"]
    assert "vaultd connect qwen-code" in problem["mend"]


def test_files_of_ours_that_somebody_changed_are_told(scratch: Scratch) -> None:
    scratch.init()
    scratch.run("connect", "opencode", "cline", "--yes", check=True)
    assert doctor(scratch)[0] == 0
    plugin = scratch.home / ".config/opencode/plugins/vaultd.ts"
    plugin.write_text(plugin.read_text() + "// mine\n")
    (scratch.home / ".cline/hooks/TaskStart").unlink()
    (scratch.home / ".cline/hooks/PostToolUse").chmod(0o644)
    code, rows = doctor(scratch)
    assert code == 7
    assert "not as this release writes it" in rows["opencode"]["problems"][0]["text"]
    told = " ".join(problem["text"] for problem in rows["cline"]["problems"])
    assert "TaskStart is gone" in told and "cannot be run" in told
    scratch.run("connect", "opencode", "cline", "--yes", check=True)
    code, rows = doctor(scratch)
    assert not rows["opencode"]["problems"] and len(rows["cline"]["problems"]) == 1, "the mode is a person's to mend"


def test_an_entry_that_somebody_broke_and_hooks_that_are_gone_are_told(scratch: Scratch) -> None:
    scratch.init()
    scratch.run("connect", "claude-code", "gemini-cli", "--yes", check=True)
    path = scratch.home / ".claude/settings.json"
    path.write_text(path.read_text().replace("claude-code Stop", "claude-code Stopp"))
    code, rows = doctor(scratch)
    assert code == 7 and "not as this release writes them" in rows["claude-code"]["problems"][0]["text"]
    scratch.run("connect", "claude-code", "--yes", check=True)
    assert doctor(scratch)[0] == 0
    gemini = scratch.home / ".gemini/settings.json"
    told = json.loads(gemini.read_text())
    del told["hooks"]
    gemini.write_text(json.dumps(told))
    (scratch.home / ".local/share/vaultd/installed.json").unlink()
    code, rows = doctor(scratch)
    assert code == 7 and "its hooks are not there" in rows["gemini-cli"]["problems"][0]["text"]


def test_silence_while_paused_is_no_fault_and_hooks_that_are_off_are_one(scratch: Scratch) -> None:
    scratch.init()
    scratch.run("connect", "qwen-code", "zero", "--yes", check=True)
    path = scratch.home / ".qwen/projects/-w/chats/s.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("{}\n")
    later = time.time() + 3600
    os.utime(path, (later, later))
    assert doctor(scratch)[1]["qwen-code"]["problems"]
    scratch.run("pause", check=True)
    assert not doctor(scratch)[1]["qwen-code"]["problems"]
    hooks = scratch.home / ".config/zero/hooks.json"
    hooks.write_text(hooks.read_text().replace('"enabled": true\n    }', '"enabled": false\n    }'))
    assert "switched off" in doctor(scratch)[1]["zero"]["problems"][0]["text"]


def test_a_vault_in_disorder_is_a_finding(scratch: Scratch) -> None:
    stores = scratch.init()
    stores.inbox.new.rmdir()
    stores.inbox.new.write_text("")
    done = scratch.run("doctor")
    assert done.returncode == 7 and "BAD" in done.stdout and "Traceback" not in done.stderr
