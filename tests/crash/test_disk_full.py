"""The disk gets full in the middle of ingest: nothing is lost, and with room again everything is made."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.oracle import acknowledged, faults
from tests.crash.plans import PLANS
from tests.crash.worlds import Server, World

KIB = 1024
ROOM = range(0, 170, 12)
"""KiB that are free when the pass begins; it needs about 170."""


@pytest.fixture(scope="module")
def small(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world on a file system of its own, of 8 MiB."""
    base = tmp_path_factory.mktemp("full")
    place = base / "w"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m,mode=0700", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small file system can be mounted by root only")
    try:
        yield World(PLANS["first"], place, base / "t", server)
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(folder: Path, left: int) -> Path:
    """A file that takes all room but `left` bytes."""
    ballast = folder / "ballast"
    free = os.statvfs(folder)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - left)
    return ballast


def survives(world: World, left: int) -> None:
    reference = world.reference
    world.restore()
    ballast = fill(world.place, left)
    run = world.run(trace=False)
    assert run.code in (0, 1) and "Traceback" not in run.err, run.err
    assert run.code == 0 or "No space left" in run.err
    assert run.code == 1 or left > ROOM[-3] * KIB
    assert acknowledged(world.scratch.vault, world.keys) == []
    assert world.run(trace=False).code in (0, 1)  # tried again while it is full
    assert acknowledged(world.scratch.vault, world.keys) == []
    ballast.unlink()
    world.recover()
    assert faults(world.scratch, world.keys, reference) == []


@pytest.mark.parametrize("left", [ROOM[2], ROOM[8]])
def test_a_full_disk(small: World, left: int) -> None:
    survives(small, left * KIB)


@pytest.mark.slow
@pytest.mark.parametrize("left", ROOM)
def test_a_disk_that_gets_full_anywhere(small: World, left: int) -> None:
    survives(small, left * KIB)
