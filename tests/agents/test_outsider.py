"""Somebody adds an agent: one TOML file and a folder of recordings, and no Python."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

TABLE = """\
# Tinker, an agent of somebody's own. Seen with version 0.3.

id = "tinker"
title = "Tinker"

[evidence.hooks]
version = "0.3"
date = 2026-11-30

[evidence.context]
version = "0.3"
date = 2026-11-30

[evidence.mcp]
sources = ["https://tinker.example/docs/mcp"]

[client]
programs = ["tinker"]
comm = ["tinker"]

[home]
folder = ".tinker"
env = "TINKER_HOME"

[hooks]
file = "hooks.yaml"
format = "yaml"
path = ["on", "{event}"]
entry = { run = "{command}", limit_ms = "{timeout}" }
timeout_unit = "ms"

[mcp]
file = "servers.toml"
format = "toml"
path = ["servers"]

[fields]
session = "conversation.id"
cwd = "where"

[call]
name = "tool"
error = "problem"

[shapes]
tinker-say = { say = ["{text}"] }

[events.open]
kind = "session-start"
wired = true
shape = "tinker-say"
moment = "start"

[events.ask]
kind = "prompt"
wired = true
text = "words"

[events.did]
kind = "tool"
wired = true
outcome = "ok"

[events.close]
kind = "session-end"
wired = true
drain = true

[[tools]]
names = ["sh"]
family = "shell"
command = "line"
exit_code = { path = "status", pattern = '\\A(\\d+)\\Z' }
"""
PAYLOADS: dict[str, dict[str, object]] = {
    "open": {},
    "ask": {"words": "Make it exact"},
    "did": {"tool": "sh", "line": "make check", "status": 2},
    "did.fine": {"tool": "sh", "line": "make", "status": 0},
    "did.refused": {"tool": "sh", "line": "rm x", "problem": "not allowed"},
    "close": {},
}


def run(tree: Path, *command: str, home: Path | None = None) -> str:
    environ = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "VAULTD_HTTP": "off"}
    if home is not None:
        environ |= {"HOME": str(home), "PATH": f"{home}/bin:/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, *command], cwd=tree, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_one_file_and_a_folder_of_recordings_make_an_agent(tmp_path: Path) -> None:
    tree, home = tmp_path / "tree", tmp_path / "home"
    for name in ("vaultd", "tests/agents", "tests/data", "hooks", "vault-template"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", "sessions", "formats"))
    for name in (
        "pyproject.toml",
        "tests/__init__.py",
        *(f"tests/{one}.py" for one in ("conftest", "examples", "scratch", "zygote", "waiting")),
    ):
        shutil.copy(ROOT / name, tree / name)
    before = {path: path.read_bytes() for path in tree.rglob("*.py")}
    (tree / "vaultd/agents/tinker.toml").write_text(TABLE)
    recordings = tree / "tests/data/payloads/tinker"
    recordings.mkdir()
    for name, more in PAYLOADS.items():
        told: dict[str, object] = {"conversation": {"id": "c-1"}, "where": "/home/dev/project", **more}
        (recordings / f"{name}.json").write_text(json.dumps(told, indent=2))

    run(tree, "-m", "tests.agents.expected", "tinker")
    meant = json.loads((recordings / "expected.json").read_text())
    assert meant["ask"] == {"kind": "prompt", "text": "Make it exact"}
    assert meant["did"]["tool"]["exit_code"] == 2 and meant["did"]["tool"]["ok"] is False
    assert meant["did.refused"]["tool"]["error"] == "not allowed"

    checks = ["test_tables.py", "test_normalise_recorded.py", "test_hookfile.py", "test_mcpfile.py"]
    paths = [f"tests/agents/{name}" for name in checks]
    said = run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", *paths, "-k", "tinker or every_agent or sources")
    assert " passed" in said and "failed" not in said

    home.mkdir()
    (home / ".tinker").mkdir()
    (home / ".tinker/hooks.yaml").write_text("# mine\ncolour: blue\n")
    assert "Tinker: is recorded" in run(tree, "-m", "vaultd", "connect", "--yes", home=home)
    text = (home / ".tinker/hooks.yaml").read_text()
    assert text.startswith("# mine\ncolour: blue\n") and "vaultd-hook tinker ask" in text and "5000" in text
    assert "[servers.vaultd]" in (home / ".tinker/servers.toml").read_text()
    line = (home / "vaultd/.vaultd/outbox/map/tinker.open").read_text()
    assert line == "tinker-say start -\n"
    run(tree, "-m", "vaultd", "disconnect", "--yes", home=home)
    assert (home / ".tinker/hooks.yaml").read_text() == "# mine\ncolour: blue\n"
    assert {path: path.read_bytes() for path in before} == before, "no Python was touched"
