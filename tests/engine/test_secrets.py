"""A planted secret of each class reaches no store: no file of the vault or the cache, no git object, no log."""

from __future__ import annotations

import subprocess
import uuid
from pathlib import Path

import pytest

from tests.core.secret_samples import SECRETS, pieces
from tests.scratch import Scratch


def plant(scratch: Scratch, cwd: Path, secret: str, name: str) -> None:
    """One session that says the secret in every field that an agent fills."""
    base = {"session_id": str(uuid.uuid4()), "cwd": str(cwd), "transcript_path": f"/x/t {secret}.jsonl"}
    facts = (
        {"root": str(cwd), "remote": f"https://user:{secret}@example.org/x.git"}
        if len(secret) < 200 and "\n" not in secret
        else {"root": str(cwd)}
    )
    agent = "claude-code"
    scratch.deliver(agent, "SessionStart", {**base, "source": "startup"}, cwd, **facts)
    scratch.deliver(
        agent,
        "UserPromptSubmit",
        {**base, "prompt": f"{secret} is the key of {name}, remember the word marker-{name}", "prompt_id": secret},
        cwd,
        **facts,
    )
    scratch.deliver(
        agent, "UserPromptSubmit", {**base, "prompt": "x " * 8180 + secret}, cwd
    )  # cut where the secret stands
    bash = {
        "tool_name": "Bash",
        "tool_use_id": f"a-{name}",
        "tool_input": {"command": f"curl -H 'X: {secret}' host # {name}"},
    }
    scratch.deliver(
        agent, "PostToolUse", {**base, **bash, "tool_response": {"stdout": f"{secret}\nok", "stderr": secret}}, cwd
    )
    failed = {**bash, "tool_use_id": f"b-{name}", "error": f"Exit code 1\nbad key {secret}\nError: {secret} refused"}
    scratch.deliver(agent, "PostToolUseFailure", {**base, **failed}, cwd)
    edit = {"tool_name": "Edit", "tool_use_id": f"c-{name}", "tool_input": {"file_path": f"{cwd}/{secret[:60]}.py"}}
    if "/" not in secret and "\n" not in secret:
        scratch.deliver(
            agent, "PostToolUse", {**base, **edit, "tool_response": {"filePath": f"{cwd}/{secret[:60]}.py"}}, cwd
        )
    says = (
        f"I used {secret}.\n\nDecision: we keep {secret}.\n\nNext steps:\n1. Rotate {secret}.\n\nShould {secret} stay?"
    )
    scratch.deliver(agent, "PreCompact", base, cwd)
    scratch.deliver(agent, "PostCompact", {**base, "compact_summary": says}, cwd)
    scratch.deliver(agent, "Stop", {**base, "last_assistant_message": says}, cwd)
    scratch.deliver(agent, "SessionEnd", {**base, "reason": secret[:80]}, cwd)
    scratch.deliver("nobody", "Whatever", {**base, "prompt": secret}, cwd)  # ends in failed/


def stored(scratch: Scratch) -> dict[str, bytes]:
    """Everything that is kept: files of vault and home (cache, state), and each git object unpacked."""
    found = {str(p): p.read_bytes() for base in (scratch.vault, scratch.home) for p in base.rglob("*") if p.is_file()}
    listed = subprocess.run(
        ["git", "cat-file", "--batch-all-objects", "--batch"], cwd=scratch.vault, capture_output=True, check=True
    )
    found["git objects"] = listed.stdout
    found["git log"] = subprocess.run(
        ["git", "log", "--all", "-p"], cwd=scratch.vault, capture_output=True, check=True
    ).stdout
    found["names"] = "\n".join(str(p) for p in scratch.vault.rglob("*")).encode()
    return found


def test_no_planted_secret_is_kept_anywhere(scratch: Scratch) -> None:
    scratch.init()
    cwd = scratch.checkout()
    for name, secret in SECRETS.items():
        plant(scratch, cwd, secret, name)
    scratch.run("ingest", check=True)
    scratch.run(
        "handoffs",
        "begin",
        f"the key is {SECRETS['aws']}",
        "--next",
        SECRETS["openai"],
        "--file",
        SECRETS["aws"],
        cwd=cwd,
        check=True,
    )
    scratch.run("search", SECRETS["aws"], cwd=cwd)
    kept = stored(scratch)
    assert any(b"marker-jwt" in data for data in kept.values())  # the sessions did arrive
    leaks = [
        f"{name} in {where}"
        for name, secret in SECRETS.items()
        for piece in ([secret] if name.endswith("-path") else pieces(secret))
        for where, data in kept.items()
        if piece.encode() in data
    ]
    assert leaks == []


def test_private_text_is_removed_whole(scratch: Scratch) -> None:
    scratch.init()
    cwd = scratch.checkout()
    base = {"session_id": "s", "cwd": str(cwd)}
    scratch.deliver(
        "claude-code",
        "UserPromptSubmit",
        {**base, "prompt": "Keep this. <private>my diagnosis is grumblosis</private> And this."},
        cwd,
    )
    scratch.deliver(
        "claude-code", "Stop", {**base, "last_assistant_message": "Noted <PRIVATE>\ngrumblosis, and what follows"}, cwd
    )
    scratch.deliver("claude-code", "SessionEnd", {**base, "reason": "other"}, cwd)
    scratch.run("ingest", check=True)
    kept = stored(scratch)
    assert not [where for where, data in kept.items() if b"grumblosis" in data]
    assert any(b"And this." in data for data in kept.values())


@pytest.mark.parametrize(
    "text", ["The key idea is that a token ring passes a token.", "def f(password: str) -> None: ...", "sk-ip the test"]
)
def test_ordinary_text_is_kept_as_it_is(scratch: Scratch, text: str) -> None:
    scratch.init()
    cwd = scratch.checkout()
    base = {"session_id": "s", "cwd": str(cwd)}
    scratch.deliver("claude-code", "UserPromptSubmit", {**base, "prompt": text}, cwd)
    scratch.deliver("claude-code", "SessionEnd", {**base, "reason": "other"}, cwd)
    scratch.run("ingest", check=True)
    [page] = scratch.vault.glob("*/*/sessions/*.md")
    assert "[REDACTED]" not in page.read_text("utf-8")
