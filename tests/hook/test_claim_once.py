"""At most one session takes a handoff, and none is lost when a hook cannot print or is killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.hook.room import NAME, START, TEXT, Room, claimed, wait_for_temps
from tests.waiting import until

# -- when printing fails


def unclaimed(room: Room) -> None:
    """The handoff is on offer again, and the start event says so."""
    assert room.state() == "open"
    header = room.only().header
    assert header["offered"] == NAME
    assert "handoff" not in header


def test_stdout_closed(room: Room, repo: Path) -> None:
    room.run("SessionStart", START, cwd=repo, wrapper=["sh", "-c", 'exec "$@" >&-', "sh"])
    unclaimed(room)
    assert claimed(room, repo) == NAME


def test_nobody_reads_stdout(room: Room, repo: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    room.run("SessionStart", START, cwd=repo, stdout=write)
    os.close(write)
    unclaimed(room)


def test_reader_goes_away_in_the_middle(room: Room, repo: Path) -> None:
    room.offer(repo, text=b"x" * 200_000)
    read, write = os.pipe()
    started = room.start("SessionStart", cwd=repo, stdout=write)
    os.close(write)
    assert started.process.stdin is not None
    started.process.stdin.write(START)
    started.process.stdin.close()
    started.process.stdin = None
    assert os.read(read, 100) == b"x" * 100
    os.close(read)
    assert started.finish().code == 0
    unclaimed(room)


def test_stdout_is_full(room: Room, repo: Path) -> None:
    with open("/dev/full", "wb") as full:
        room.run("SessionStart", START, cwd=repo, stdout=full.fileno())
    unclaimed(room)


@pytest.mark.parametrize("group", [False, True])
def test_killed_between_the_claim_and_the_print(room: Room, repo: Path, group: bool) -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(write, b"." * 4096)
    os.set_blocking(write, True)
    started = room.start("SessionStart", cwd=repo, stdout=write)
    process = started.process
    assert process.stdin is not None
    process.stdin.write(START)
    process.stdin.close()
    process.stdin = None
    until(lambda: (room.handoffs / f"accepted/{NAME}.md").exists())
    if group:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
    os.close(write)
    os.close(read)
    started.finish()
    assert room.state() == "accepted"  # where the engine finds it, named by no start event
    assert list((room.room / "inbox/new").iterdir()) == []
    assert len(list((room.room / "inbox/tmp").iterdir())) == 1


# -- many at once


def race(room: Room, repo: Path, count: int = 16) -> None:
    """So many hooks wait for the end of their payload, which comes to all at once: exactly one is given the text."""
    hooks = [room.start("SessionStart", cwd=repo) for _ in range(count)]
    for number, hook in enumerate(hooks):
        assert hook.process.stdin is not None
        hook.process.stdin.write(START.replace(b"aaaa", b"%04d" % number))
        hook.process.stdin.flush()
    wait_for_temps(room, count, 512 + len(START))
    for hook in hooks:
        assert hook.process.stdin is not None
        hook.process.stdin.close()
        hook.process.stdin = None
    results = [hook.finish() for hook in hooks]
    assert {(r.code, r.err) for r in results} == {(0, b"")}
    assert sorted(r.out for r in results) == [b""] * (count - 1) + [TEXT]
    deliveries = room.deliveries()
    assert len(deliveries) == count
    [winner] = [d for d in deliveries if "handoff" in d.header]
    assert winner.header["handoff"] == NAME
    assert winner.payload == START.replace(b"aaaa", b"%04d" % [r.out for r in results].index(TEXT))
    assert room.state() == "accepted"


def race_rounds(room: Room, repo: Path, rounds: int) -> None:
    for _ in range(rounds):
        race(room, repo)
        (room.handoffs / f"accepted/{NAME}.md").unlink()
        room.offer(repo)
        for path in (room.room / "inbox/new").iterdir():
            path.unlink()


def test_one_of_sixteen_wins(room: Room, repo: Path) -> None:
    race_rounds(room, repo, 10)


@pytest.mark.slow
def test_one_of_sixteen_wins_200_times(room: Room, repo: Path) -> None:
    race_rounds(room, repo, 200)
