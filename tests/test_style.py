"""Types, lint and layout of the whole repository, held as tests so that they run with the tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """A tool of this interpreter's environment, run over the repository with the repository's settings."""
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=280)


def test_types() -> None:
    # The cache makes a second run fast; where the checkout cannot be written mypy does without.
    ran = run("mypy", "--no-error-summary", "--cache-dir", str(ROOT / ".mypy_cache"))
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stdout + ran.stderr


def test_lint() -> None:
    ran = run("ruff", "check", "--no-cache", "--quiet", "--output-format", "concise", ".")
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stdout + ran.stderr


def test_layout() -> None:
    ran = run("ruff", "format", "--no-cache", "--check", "--quiet", ".")
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stdout + ran.stderr


BAD = {
    "mypy": "def f(x: int) -> str:\n    return x\n",
    "ruff check": "import os\n",
    "ruff format": "x = {  'a':1 }\n",
}


@pytest.mark.parametrize("tool", BAD)
def test_the_tools_see_what_is_wrong(tool: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text(BAD[tool], "utf-8")
    words = {
        "mypy": ["mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(tmp_path / "c")],
        "ruff check": ["ruff", "check", "--no-cache", "--config", str(ROOT / "pyproject.toml")],
        "ruff format": ["ruff", "format", "--no-cache", "--check", "--config", str(ROOT / "pyproject.toml")],
    }
    ran = run(*words[tool], str(bad))
    assert ran.returncode == 1 and "bad.py" in ran.stdout + ran.stderr
