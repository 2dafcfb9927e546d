"""The detached ingest pass that a turn's or session's end starts when no daemon runs."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.hook.room import Room
from tests.waiting import until

RECORD = """#!/bin/sh
mkdir {base}/pass.$$
printf '%s\\n' "$@" >{base}/pass.$$/arguments
env >{base}/pass.$$/env
umask >{base}/pass.$$/umask
ulimit -f >{base}/pass.$$/limit
: >{base}/pass.$$/written
"""


@pytest.fixture
def command(room: Room) -> Path:
    """A stand-in for `vaultd` that records how it was started, and that the outbox names."""
    command = room.base / "bin of mine/vaultd"
    command.parent.mkdir()
    command.write_text(RECORD.format(base=room.base))
    command.chmod(0o755)
    (room.room / "outbox/map/command").write_text(f"{command}\n")
    return command


def passes(room: Room) -> list[Path]:
    """What was recorded; everything that the hook started has ended by then."""
    return sorted(room.base.glob("pass.*"))


def test_a_turn_end_starts_exactly_one_pass(room: Room, command: Path) -> None:
    room.run(
        "Stop", b"1", env={"LC_ALL": "C.UTF-8", "FOO": "bar", "VAULTD_VAULT": None, "XDG_CONFIG_HOME": _config(room)}
    )
    [record] = passes(room)
    assert (record / "arguments").read_text().splitlines() == ["ingest", "--quiet"]
    env = (record / "env").read_text().splitlines()
    assert {f"VAULTD_VAULT={room.vault}", "LC_ALL=C.UTF-8", "FOO=bar", f"HOME={room.home}"} <= set(env)
    assert (record / "limit").read_text() == "unlimited\n"
    assert room.only().payload == b"1"


def _config(room: Room) -> str:
    """A configuration folder that names the vault."""
    (room.base / "config/vaultd").mkdir(parents=True)
    (room.base / "config/vaultd/vault").write_text(f"{room.vault}\n")
    return str(room.base / "config")


def test_a_pass_has_the_persons_own_umask_and_locale(room: Room, command: Path) -> None:
    room.run("Stop", wrapper=["sh", "-c", 'umask 027; exec "$@"', "sh"])
    [record] = passes(room)
    assert (record / "umask").read_text().strip() == "0027"
    assert not [line for line in (record / "env").read_text().splitlines() if line.startswith("LC_ALL")]


def test_the_hook_returns_while_the_pass_goes_on(room: Room, command: Path) -> None:
    os.mkfifo(room.base / "go")
    command.write_text(RECORD.format(base=room.base) + f"read -r line <{room.base}/go\n")
    started = room.start("Stop")
    out, err = started.process.communicate(
        b"1", timeout=20
    )  # returns only when nobody holds stdout and stderr any more
    assert (started.process.returncode, out, err) == (0, b"", b"")
    try:
        [record] = until(lambda: [r for r in passes(room) if (r / "written").exists()])
        pid = int(record.name.partition(".")[2])
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        if shutil.which("setsid"):
            assert int(fields[3]) == pid  # its own session: it survives what ends the agent's
        assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")
        assert {Path(f"/proc/{pid}/fd/{n}").readlink() for n in (0, 1, 2)} == {Path("/dev/null")}
        ignored = int(Path(f"/proc/{pid}/status").read_text().partition("SigIgn:")[2].split()[0], 16)
        if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # these tests run under nohup
            ignored &= ~1
        assert not ignored & (1 << 0 | 1 << 12 | 1 << 24)  # HUP, PIPE, XFSZ
    finally:
        (room.base / "go").write_text("\n")
    started.settle()
    room.only()


def test_a_command_that_is_gone_is_looked_for_in_path(room: Room, command: Path) -> None:
    (room.room / "outbox/map/command").write_text("/gone/vaultd\n")
    room.run("Stop", env={"PATH": f"{command.parent}:{os.environ['PATH']}"})
    assert len(passes(room)) == 1


def test_no_command_at_all(room: Room) -> None:
    room.run("Stop", env={"PATH": "/usr/bin:/bin"})
    room.only()


def test_without_a_map_ends_drain_all_the_same(room: Room, command: Path) -> None:
    shutil.rmtree(room.room / "outbox/map")
    for event in ("Stop", "SessionEnd", "PreCompact", "SessionStart", "PostToolUse"):
        room.run(event, env={"PATH": f"{command.parent}:{os.environ['PATH']}"})
    assert len(passes(room)) == 3


def test_only_events_that_say_so_drain(room: Room, command: Path) -> None:
    room.run("SessionStart")
    room.run("PostToolUse")
    room.run("Unknown")
    assert passes(room) == []


def test_autostart_can_be_switched_off(room: Room, command: Path) -> None:
    (room.room / "no-autostart").touch()
    room.run("Stop")
    assert passes(room) == []


def test_no_pass_when_the_event_went_to_the_spool(room: Room, command: Path) -> None:
    (room.room / "vault-id").unlink()
    room.run("Stop")
    assert passes(room) == []
    room.only(room.spool)


# -- a daemon that runs, and daemon.json of one that does not


def announce(room: Room, pid: int | None = None, late: int = 0, boot: str | None = None) -> None:
    """A daemon.json: of this process, or changed."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    known = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    told = {"vaultd-daemon": 1, "pid": pid or os.getpid(), "start": ticks + late, "boot": boot or known, "version": "1"}
    (room.room / "daemon.json").write_text(json.dumps({**told, "vault": str(room.vault)}, indent=2) + "\n")


def test_no_pass_while_a_daemon_runs(room: Room, command: Path) -> None:
    announce(room)
    room.run("Stop")
    assert passes(room) == []
    room.only()


@pytest.mark.parametrize("stale", ["dead", "later process of the number", "other boot", "empty", "garbage"])
def test_one_pass_when_the_daemon_is_gone(room: Room, command: Path, stale: str) -> None:
    if stale == "dead":
        announce(room, pid=2**22 + 1)
    elif stale == "later process of the number":
        announce(room, late=1)
    elif stale == "other boot":
        announce(room, boot="00000000-0000-4000-8000-000000000000")
    else:
        (room.room / "daemon.json").write_text("" if stale == "empty" else '{"pid": 1 "start"\n  "pid": -1,\n')
    room.run("Stop")
    assert len(passes(room)) == 1
