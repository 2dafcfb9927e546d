"""Real git repositories for tests, cut off from the settings of whoever runs them."""

from __future__ import annotations

import os
import secrets
import subprocess
from pathlib import Path

__all__ = ["environment", "git", "index_entries", "init", "run_git", "write"]


def environment(home: Path) -> dict[str, str]:
    """An environment whose home folder is `home` and that has a person's name for commits."""
    home.mkdir(parents=True, exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "ada@example.org",
        "GIT_COMMITTER_NAME": "Ada",
        "GIT_COMMITTER_EMAIL": "ada@example.org",
    }


def run_git(folder: Path, *args: str | bytes, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run git as the person would; the home folder is `home` beside the nearest folder that has one."""
    home = next(parent / "home" for parent in (folder, *folder.parents) if (parent / "home").is_dir())
    fixed = ["-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always"]
    return subprocess.run(
        ["git", *fixed, *args], cwd=folder, env=environment(home), input=stdin, capture_output=True, check=False
    )


def git(folder: Path, *args: str | bytes, stdin: bytes | None = None) -> str:
    """What git printed, without the last line end; AssertionError when it failed."""
    ran = run_git(folder, *args, stdin=stdin)
    assert ran.returncode == 0, f"git {args}: {os.fsdecode(ran.stderr)}"
    return os.fsdecode(ran.stdout).removesuffix("\n")


def init(folder: Path, *, bare: bool = False, commit: bool = True, remote: str = "") -> Path:
    """A new repository, with one commit that no other has unless told otherwise."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", *(["--bare"] if bare else []))
    if commit and not bare:
        write(folder / "README", f"{secrets.token_hex(16)}\n")
        git(folder, "add", "README")
        git(folder, "commit", "-q", "-m", "start")
    if remote:
        git(folder, "remote", "add", "origin", remote)
    return folder


def write(path: Path, text: str | bytes) -> Path:
    """A file with this content, its folders made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def index_entries(folder: Path) -> str:
    """All entries of the index with their blobs."""
    return git(folder, "ls-files", "--stage")
