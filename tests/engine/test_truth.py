"""`status` and `doctor` are red when recording does not work, within one session, with the command that mends it."""

from __future__ import annotations

import json
import os

import pytest

from tests.scratch import Scratch


@pytest.fixture
def wired(scratch: Scratch) -> Scratch:
    """Claude Code wired, as `up` and `install-hooks` leave it, without a daemon."""
    scratch.run("up", check=True)
    scratch.run("down", check=True)
    scratch.run("install-hooks", "--agent", "claude-code", "--apply", check=True)
    return scratch


def problems(scratch: Scratch) -> list[str]:
    done = scratch.run("status", "--json")
    report = json.loads(done.stdout)
    assert (done.returncode == 0) == report["ok"] == (not report["problems"])
    doctor = scratch.run("doctor")
    assert doctor.returncode == (0 if report["ok"] else 7), doctor.stdout
    return list(report["problems"])


def test_green_when_all_is_well(wired: Scratch) -> None:
    cwd = wired.checkout()
    wired.session(cwd)
    wired.run("ingest", check=True)
    assert problems(wired) == []
    out = wired.run("doctor").stdout
    assert "claude-code" in out and "BAD" not in out


def test_the_hook_is_gone(wired: Scratch) -> None:
    (wired.home / ".local/share/vaultd/vaultd-hook").unlink()
    [problem] = problems(wired)
    assert "hook" in problem and "vaultd up" in problem
    wired.run("up", check=True)
    wired.run("down", check=True)
    assert problems(wired) == []


def test_the_hook_cannot_be_run(wired: Scratch) -> None:
    (wired.home / ".local/share/vaultd/vaultd-hook").chmod(0o600)
    assert any("vaultd up" in p for p in problems(wired))


def test_entries_are_gone_from_the_configuration(wired: Scratch) -> None:
    path = wired.home / ".claude/settings.json"
    settings = json.loads(path.read_text())
    del settings["hooks"]["PostToolUse"], settings["hooks"]["Stop"]
    path.write_text(json.dumps(settings))
    assert any("PostToolUse" in p and "vaultd connect claude-code" in p for p in problems(wired))


def test_the_vault_was_moved(wired: Scratch) -> None:
    wired.vault.rename(wired.base / "elsewhere")
    done = wired.run("doctor")
    assert done.returncode == 7 and "is not there" in done.stdout and "vaultd" in done.stdout
    status = wired.run("status")
    assert status.returncode == 3 and "--vault" in status.stderr


def test_an_untrusted_hook(scratch: Scratch) -> None:
    scratch.run("up", check=True)
    scratch.run("down", check=True)
    done = scratch.run("install-hooks", "--agent", "codex", "--apply", check=True)
    assert "trust" in done.stdout
    [problem] = problems(scratch)
    assert "trust" in problem and "/hooks" in problem


def test_a_transcript_grows_while_no_event_comes(wired: Scratch) -> None:
    cwd = wired.checkout()
    wired.session(cwd)
    wired.run("ingest", check=True)
    folder = wired.home / ".claude/projects/-x"
    folder.mkdir(parents=True)
    transcript = folder / "11111111-2222-4333-8444-555555555555.jsonl"
    transcript.write_text("{}\n" * 20)
    record = next(wired.home.rglob("installed.json"))
    text = record.read_text()
    rows = json.loads(text)
    long_ago = "2020-01-01T00:00:00+00:00"
    record.write_text(json.dumps(rows).replace(str(json.dumps(_at(rows))), json.dumps(long_ago)))
    later = wired.now.timestamp() + 1000
    os.utime(transcript, (later, later))
    found = problems(wired)
    assert any("transcript" in p for p in found), found


def _at(value: object) -> str:
    """The first `at` in a nested record."""
    if isinstance(value, dict):
        if isinstance(value.get("at"), str):
            return str(value["at"])
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            if found := _at(item):
                return found
    return ""


def test_events_wait_and_nobody_works_them_off(wired: Scratch) -> None:
    cwd = wired.checkout()
    wired.deliver("claude-code", "UserPromptSubmit", {"session_id": "s", "prompt": "x"}, cwd, key="1700000000-old")
    assert any("vaultd up" in p and "wait" in p for p in problems(wired))


def test_install_and_uninstall_leave_nothing(scratch: Scratch) -> None:
    settings = scratch.home / ".claude/settings.json"
    settings.parent.mkdir()
    mine = (
        b'{\n    "model":   "opus",\n  "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}\n}'
    )
    settings.write_bytes(mine)
    before = {str(p.relative_to(scratch.home)) for p in scratch.home.rglob("*")}
    scratch.extra["VAULTD_HTTP"] = "127.0.0.1:0"  # for which a token is made
    scratch.run("up", check=True)
    assert (scratch.home / ".config/vaultd/token").exists()
    shown = scratch.run("install-hooks", "--agent", "claude-code")
    assert settings.read_bytes() == mine and "+" in shown.stdout
    scratch.run("install-hooks", "--agent", "claude-code", "--apply", check=True)
    once = settings.read_bytes()
    assert b"say done" in once and b"vaultd-hook" in once
    assert "wired already" in scratch.run("install-hooks", "--agent", "claude-code", "--apply").stdout
    assert settings.read_bytes() == once
    assert [p for p in settings.parent.iterdir() if ".bak-" in p.name and p.read_bytes() == mine]
    scratch.run("install-hooks", "--agent", "codex", "--apply", check=True)
    cwd = scratch.checkout()
    scratch.session(cwd)
    scratch.run("ingest", check=True)
    scratch.run("search", "greeting")
    scratch.run("down", check=True)
    assert "claude-code, codex" in scratch.run("status").stdout
    scratch.run("uninstall", "--apply", check=True)
    assert settings.read_bytes() == mine
    assert "no agent, so no hook records" in scratch.run("status").stdout
    assert {str(p.relative_to(scratch.home)) for p in scratch.home.rglob("*")} == before
    assert len(list(scratch.vault.glob("*/*/sessions/*.md"))) == 1


def test_uninstall_stops_the_daemon(scratch: Scratch) -> None:
    scratch.run("up", check=True)
    try:
        assert "Stopped the daemon" in scratch.run("uninstall", "--apply", check=True).stdout
        assert not [p for p in scratch.home.rglob("*") if p.is_file()]
    finally:
        scratch.run("down")
