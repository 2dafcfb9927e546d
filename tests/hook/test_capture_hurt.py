"""Capture where writing fails, descriptors are closed, or the hook is killed: the agent notices nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hook.room import START, Room, wait_for_temps
from tests.waiting import until

MIB = 1024 * 1024
Mount = Callable[[Path, str], None]


# -- where writing fails


def test_a_read_only_vault(room: Room, mount: Mount) -> None:
    mount(room.vault, "size=256k")
    room.make_vault()
    mount(room.vault, "remount,ro")
    room.run(payload=b"x" * MIB)
    assert room.only(room.spool).payload == b"x" * MIB


def test_a_read_only_home_and_vault(room: Room, mount: Mount) -> None:
    (room.base / "disk").mkdir()
    mount(room.base / "disk", "size=256k")
    room.home, room.vault = room.base / "disk/home", room.base / "disk/vault"
    room.room, room.handoffs = room.vault / ".vaultd", room.vault / "handoffs"
    room.home.mkdir()
    room.make_vault()
    mount(room.base / "disk", "remount,ro")
    room.run(payload=b"x" * MIB, env={"HOME": str(room.home), "VAULTD_VAULT": str(room.vault)})
    assert room.deliveries() == []


def test_a_person_who_may_write_no_byte(room: Room) -> None:
    for folder in ("tmp", "new"):
        (room.spool / folder).mkdir(parents=True)
    room.run(payload=b"x" * MIB, wrapper=["sh", "-c", 'ulimit -f 0 && exec "$@"', "sh"])
    assert room.deliveries() == []
    assert room.deliveries(room.spool) == []


def fill(folder: Path, leave: int) -> None:
    """Fill a disk up to so many bytes."""
    with (folder / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
        file.truncate(file.tell() - leave)


def test_a_full_disk(room: Room, mount: Mount) -> None:
    mount(room.vault, "size=256k")
    room.make_vault()
    fill(room.vault, 0)
    room.run(payload=b"x" * MIB)
    assert room.only(room.spool).payload == b"x" * MIB
    assert room.deliveries() == []


def test_a_full_disk_and_a_full_spool(room: Room, mount: Mount) -> None:
    mount(room.vault, "size=256k")
    room.make_vault()
    fill(room.vault, 0)
    for folder in ("tmp", "new"):
        (room.vault / "state/vaultd/spool" / folder).mkdir(parents=True)
    room.run(payload=b"x" * MIB, env={"XDG_STATE_HOME": str(room.vault / "state")})
    assert room.deliveries() == []
    assert room.deliveries(room.vault / "state/vaultd/spool") == []


def test_a_disk_that_fills_up_in_the_middle(room: Room, mount: Mount) -> None:
    mount(room.vault, "size=256k")
    room.make_vault()
    fill(room.vault, 4 * 4096)
    room.run(payload=b"x" * MIB)
    delivery = room.only()  # that it happened counts, though the payload is cut off
    assert delivery.header["event"] == "PostToolUse"
    assert 0 < len(delivery.payload) < MIB
    assert set(delivery.payload) == {ord("x")}


def test_an_inbox_that_takes_temps_but_no_links(room: Room) -> None:
    (room.room / "inbox/new").rmdir()
    (room.room / "inbox/new").write_text("a file in the way")
    room.run(payload=b"1")
    assert room.only(room.spool).payload == b"1"


# -- closed descriptors


@pytest.mark.parametrize("event", ["PostToolUse", "SessionStart"])
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_descriptors(room: Room, closed: str, event: str) -> None:
    room.run(event, START if "<" not in closed else b"", wrapper=["sh", "-c", f'exec "$@" {closed}', "sh"])
    assert room.only().payload == (START if "<" not in closed else b"")


# -- killed


def test_killed_halfway_leaves_no_half_event(room: Room) -> None:
    payload = b'{"x":"' + b"y" * 40_000 + b'"}'
    whole = 0
    turns = 200 if room.shell == ["dash"] else 50
    for turn in range(turns):
        started = room.start("PostToolUse", stdout=subprocess.DEVNULL)
        process = started.process
        assert process.stdin is not None
        if turn % 4 == 0:  # in the middle of the payload
            process.stdin.write(payload[:20_000])
            process.stdin.flush()
            wait_for_temps(room, 1, 20_000)
        else:  # somewhere between the start and the end
            process.stdin.write(payload)
            process.stdin.close()
            process.stdin = None
            if turn % 10 == 9:  # once it is delivered
                until(lambda: list((room.room / "inbox/new").iterdir()), every=0.001)
            else:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=(turn % 50) / 8000)
        if turn % 2 == 0:
            process.kill()  # the shell alone: the program that it waits for goes on
        elif process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
        if process.stdin is not None:
            process.stdin.close()
            process.stdin = None
        started.finish()
        for path in (room.room / "inbox/tmp").iterdir():
            path.unlink()
        for delivery in room.deliveries():
            assert delivery.payload == payload
            assert turn % 4 != 0
            whole += 1
            (room.room / "inbox/new" / delivery.key).unlink()
    assert turns / 10 <= whole < turns
