"""The hook under each shell that it must run under, and a scratch vault."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.hook.room import SHELLS, Room, folder_with_git


@pytest.fixture(params=sorted(SHELLS))
def shell(request: pytest.FixtureRequest) -> list[str]:
    """The command line of a shell; the test is skipped, by name, where it is not installed."""
    name = str(request.param)
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    return SHELLS[name]


@pytest.fixture
def room(tmp_path: Path, shell: list[str]) -> Room:
    return Room(tmp_path, shell)


@pytest.fixture
def mount() -> Iterator[Callable[[Path, str], None]]:
    """Mounts a small file system of its own on a folder (or remounts it); skips where that is not allowed."""
    mounted: list[Path] = []

    def on(folder: Path, options: str) -> None:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], capture_output=True, check=False)
        if done.returncode:
            pytest.skip("mounting a small file system needs root")
        if "remount" not in options:
            mounted.append(folder)

    yield on
    for folder in reversed(mounted):
        subprocess.run(["umount", folder], check=True)


@pytest.fixture
def repo(room: Room) -> Path:
    """A checkout with an offer for sessions that start there."""
    repo = folder_with_git(room.base / "repo")
    room.offer(repo)
    return repo
