"""Capture: the event arrives, the agent is never hurt, and a switched-off hook writes nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.hook.room import HOOK, START, Room, folder_with_git
from tests.waiting import until
from vaultd.store import surroundings

MIB = 1024 * 1024


@pytest.mark.parametrize("payload", [b"", b"{}", b"\0\xff\r\n\n\n", bytes(range(256)) * 300], ids=len)
def test_payload_is_kept_byte_for_byte(room: Room, payload: bytes) -> None:
    room.run(payload=payload)
    assert room.only().payload == payload
    room.run("SessionStart", payload)
    assert room.only().payload == payload


@pytest.mark.parametrize("size", [8 * MIB, 8 * MIB + 1, 10_000_000], ids=["all of it", "one byte more", "10 MB"])
def test_a_payload_is_cut_at_8_mib_and_its_writer_never_cut_off(room: Room, size: int) -> None:
    payload = os.urandom(4096) * (size // 4096 + 1)
    room.run(payload=payload[:size])
    assert room.only().payload == payload[: 8 * MIB]


def test_files_are_the_persons_alone(room: Room) -> None:
    room.run()
    [path] = (room.room / "inbox/new").iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    (room.room / "vault-id").unlink()
    room.run()
    assert {p.stat().st_mode & 0o077 for p in room.spool.rglob("*")} == {0}


def test_vault_by_variable_file_and_default(room: Room, tmp_path: Path) -> None:
    config = tmp_path / "config"
    (config / "vaultd").mkdir(parents=True)
    (config / "vaultd/vault").write_text(str(tmp_path / "elsewhere"))  # no newline at the end
    room.run(env={"XDG_CONFIG_HOME": str(config)})
    room.only()
    room.vault.rename(tmp_path / "elsewhere")
    room.room = tmp_path / "elsewhere/.vaultd"
    room.run(env={"VAULTD_VAULT": "", "XDG_CONFIG_HOME": str(config)})
    room.only()
    (room.home / ".config").mkdir()
    (config / "vaultd").rename(room.home / ".config/vaultd")
    room.run(env={"VAULTD_VAULT": None})
    room.only()
    shutil.rmtree(room.home / ".config")
    (tmp_path / "elsewhere").rename(room.home / "vaultd")
    room.room = room.home / "vaultd/.vaultd"
    room.run(env={"VAULTD_VAULT": None})
    room.only()


@pytest.mark.parametrize("vault", ["/nowhere/at/all", "relative/vault", "no vault-id"])
def test_a_missing_vault_is_spooled_for(room: Room, vault: str) -> None:
    if vault == "relative/vault":
        (room.base / "relative").mkdir()
        (room.base / vault).symlink_to(room.vault)
    if vault == "no vault-id":
        (room.room / "vault-id").unlink()
        vault = str(room.vault)
    room.offer(room.base)
    assert room.run("SessionStart", START, env={"VAULTD_VAULT": vault}) == b""
    delivery = room.only(room.spool)
    assert delivery.payload == START
    assert delivery.header["event"] == "SessionStart"
    assert room.state() == "open"
    assert room.deliveries() == []


def test_the_spool_follows_the_state_folder(room: Room, tmp_path: Path) -> None:
    env = {"VAULTD_VAULT": "/nowhere", "XDG_STATE_HOME": str(tmp_path / "state"), "HOME": None}
    room.run(payload=b"1", env=env)
    assert room.only(tmp_path / "state/vaultd/spool").payload == b"1"


def test_no_home_and_nothing_else(room: Room) -> None:
    before = sorted(room.base.rglob("*"))
    for home in (None, ""):
        room.run(payload=b"x" * MIB, env={"HOME": home, "VAULTD_VAULT": None})
    assert sorted(room.base.rglob("*")) == before
    room.run(env={"HOME": None})
    assert room.only().payload == b"{}"


def test_missing_arguments(room: Room) -> None:
    for agent, event in (("", "Stop"), ("claude-code", ""), ("", "")):
        room.run(event, b"x" * MIB, agent=agent)
    done = subprocess.run([*room.shell, HOOK], env=room.env, input=b"", capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert room.deliveries() == []


def test_odd_arguments_are_header_values_and_never_paths(room: Room) -> None:
    room.offer(room.base)
    (room.room / "outbox/secret.Stop").write_text("session-start-json start -\n")
    assert room.run("Stop", agent="../secret") == b""
    assert room.only().header["agent"] == "../secret"
    room.run("Sto\np")
    assert room.only().header["event"] == "Sto\np"


def test_without_a_map_everything_is_captured(room: Room) -> None:
    shutil.rmtree(room.room / "outbox")
    repo = folder_with_git(room.base / "repo")
    assert room.run("SessionStart", START, cwd=repo) == b""
    assert room.only().header["branch"] == "main"


def test_an_event_that_the_map_does_not_know(room: Room) -> None:
    room.run("Novelty", b"1")
    assert room.only().payload == b"1"


def test_installed_copy_alone_by_its_first_line(room: Room, tmp_path: Path) -> None:
    copy = tmp_path / "a folder/vaultd-hook"
    copy.parent.mkdir()
    shutil.copy(HOOK, copy)
    done = subprocess.run([copy, "claude-code", "Stop"], env=room.env, input=b"1", capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    until(lambda: not list((room.room / "inbox/tmp").iterdir()))
    assert room.only().payload == b"1"


def test_an_ordinary_event_runs_four_programs(room: Room, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    log = tmp_path / "log"
    for name in ("date", "cat", "ln", "rm"):
        (programs / name).write_text(f'#!/bin/sh\necho {name} >>{log}\nexec {shutil.which(name)} "$@"\n')
        (programs / name).chmod(0o755)
    shell = shutil.which(room.shell[0])
    assert shell is not None
    room.shell = [shell, *room.shell[1:]]
    room.run(payload=b"1", env={"PATH": str(programs)})
    assert room.only().payload == b"1"
    expected = ["cat", "ln", "rm"] if "bash" in shell else ["cat", "date", "ln", "rm"]
    assert sorted(log.read_text().split()) == expected


def test_no_programs_at_all(room: Room, tmp_path: Path) -> None:
    shell = shutil.which(room.shell[0])
    assert shell is not None
    room.shell = [shell, *room.shell[1:]]
    started = room.start(env={"PATH": str(tmp_path / "nothing")}, stdin=subprocess.DEVNULL)
    result = started.finish()
    assert (result.code, result.out, result.err) == (0, b"", b"")


# -- switched off


def switched_off(room: Room, cwd: Path) -> bool:
    """Whether a start and a turn end leave nothing at all."""
    before = sorted(room.base.rglob("*"))
    printed = room.run("SessionStart", START, cwd=cwd) + room.run("Stop", b"x" * MIB, cwd=cwd)
    if sorted(room.base.rglob("*")) == before and not printed:
        return True
    for path in (room.room / "inbox/new").iterdir():
        path.unlink()
    return False


@pytest.fixture
def repo(room: Room) -> Path:
    """A checkout with something to claim, and no ingest passes."""
    (room.room / "no-autostart").touch()
    repo = folder_with_git(room.base / "repo")
    room.offer(repo)
    (repo / "sub").mkdir()
    return repo


def test_paused(room: Room, repo: Path) -> None:
    (room.room / "paused").touch()
    assert switched_off(room, repo)
    (room.room / "paused").unlink()
    assert not switched_off(room, repo)


OFF = [
    *("enabled = false\n", "a = 1\nenabled=false", "  enabled  =  false  # why\r\n", "\tenabled = false"),
    # What is not understood keeps out as well.
    *("enabled = fals\n", 'enabled = "false"', "enabled: false", "Enabled = False", "enabled = no", "enabled ="),
    *("enabled = falsehood\n", 'enabled = "x" # = false', "enabled = trueish"),
]
ON = ["", "enabled = true\n", "  enabled=true # yes\r\n", "enabled:true", "# enabled = false\n", "enabled_x = false"]


@pytest.mark.parametrize("text", OFF)
def test_disabled_by_the_nearest_marker(room: Room, repo: Path, text: str) -> None:
    (room.base / ".vaultd.toml").write_text("enabled = true\n")
    (repo / ".vaultd.toml").write_text(text)
    assert switched_off(room, repo)
    assert switched_off(room, repo / "sub")
    (repo / "sub/.vaultd.toml").write_text("enabled = true\n")
    assert not switched_off(room, repo / "sub")


@pytest.mark.parametrize(("text", "off"), [*((text, True) for text in OFF), *((text, False) for text in ON)])
def test_the_twin_says_the_same(tmp_path: Path, text: str, off: bool) -> None:
    (tmp_path / ".vaultd.toml").write_bytes(text.encode())
    assert surroundings.switched_off(os.fsencode(tmp_path / ".vaultd.toml")) is off


@pytest.mark.parametrize("text", ON)
def test_not_disabled(room: Room, repo: Path, text: str) -> None:
    (repo / ".vaultd.toml").write_text(text)
    assert not switched_off(room, repo)


def test_a_marker_above_the_checkout_counts_for_both(room: Room, repo: Path) -> None:
    (room.base / ".vaultd.toml").write_text("enabled = false\n")
    assert switched_off(room, repo / "sub")
    _, _, marker = surroundings.checkout_of(os.fsencode(repo / "sub"), b"/nowhere")
    assert marker == os.fsencode(room.base / ".vaultd.toml") and surroundings.switched_off(marker)


def test_allow_list_mode(room: Room, repo: Path) -> None:
    (room.room / "allow-list").touch()
    assert switched_off(room, repo / "sub")
    (repo / ".vaultd.toml").write_text('project = "x"\n')
    assert not switched_off(room, repo / "sub")
    (repo / ".vaultd.toml").write_text("enabled = false\n")
    assert switched_off(room, repo / "sub")
