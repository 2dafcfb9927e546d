"""Claims: a session start takes the handoff prepared for its place, unless it is one that may not."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.hook.room import NAME, ORIGIN, START, TEXT, Room, claimed


def test_a_start_is_given_the_prepared_text_and_names_the_handoff(room: Room, repo: Path) -> None:
    assert claimed(room, repo) == NAME
    assert (room.handoffs / f"accepted/{NAME}.md").read_text() == f"handoff {NAME}\n"
    assert claimed(room, repo) == ""


def test_a_long_text_is_whole(room: Room, repo: Path) -> None:
    text = "".join(f"line {n} €\\n" for n in range(2000)).encode() + b"\n"
    room.offer(repo, text=text)
    assert room.run("SessionStart", START, cwd=repo) == text


def test_handoff_names_are_escaped(room: Room, repo: Path) -> None:
    room.offer(repo, "Fix 50%0A é")
    assert claimed(room, repo) == "Fix 50%0A é"


def test_other_events_and_agents_without_a_shape_claim_nothing(room: Room, repo: Path) -> None:
    (room.room / "no-autostart").touch()
    room.map("mute.SessionStart", "- start -")
    room.map("other.SessionStart", "another-shape start -")
    room.map("odd.SessionStart", "../@vaultd/session-start-json start -")
    for event in ("PostToolUse", "Stop", "SessionEnd", "Unknown"):
        assert claimed(room, repo, event=event) == ""
    for agent in ("mute", "other", "odd", "unknown"):
        assert room.run("SessionStart", START, agent=agent, cwd=repo) == b""
        assert "handoff" not in room.only().header
    assert room.state() == "open"


def test_a_prompt_claims_when_the_map_says_so(room: Room, repo: Path) -> None:
    room.map("late.Prompt", "session-start-json prompt -")
    assert room.run("Prompt", b'{"prompt":"hi"}', agent="late", cwd=repo) == TEXT
    header = room.only().header
    assert header["handoff"] == NAME
    assert "head" not in header


# -- who may not claim


@pytest.mark.parametrize("space", [b"", b" "])
@pytest.mark.parametrize("source", [b"compact", b"clear"])
def test_a_start_after_compaction_claims_nothing(room: Room, repo: Path, source: bytes, space: bytes) -> None:
    payload = b'{"session_id":"x",\n "source":' + space + b'"' + source + b'"}'
    assert claimed(room, repo, payload) == ""
    assert room.state() == "open"
    assert claimed(room, repo, payload.replace(source, b"resume")) == NAME


def test_a_session_never_claims_its_own_handoff(room: Room, repo: Path) -> None:
    own = START.replace(b"5e551011-aaaa", ORIGIN.encode())
    assert claimed(room, repo, own) == ""
    printed = room.run("SessionStart", own, cwd=repo)
    assert (printed, room.only().header["offered"]) == (b"", NAME)
    assert claimed(room, repo) == NAME


def test_only_the_first_4_kib_of_a_payload_are_looked_at(room: Room, repo: Path) -> None:
    native = ORIGIN.encode()
    assert claimed(room, repo, b"x" * (4096 - len(native)) + native + b"y" * 5000) == ""
    assert claimed(room, repo, b"x" * (4097 - len(native)) + native + b"y" * 5000) == NAME


def test_an_offer_without_a_native_id(room: Room, repo: Path) -> None:
    room.offer(repo, native="")
    assert claimed(room, repo) == NAME


def test_a_living_client_keeps_its_handoff(room: Room, repo: Path) -> None:
    room.offer(repo, owner=str(os.getpid()))
    assert claimed(room, repo) == ""
    ended = subprocess.Popen(["true"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # ended, and not waited for by its parent
    room.offer(repo, owner=str(ended.pid))
    assert claimed(room, repo) == NAME
    ended.wait()
    (room.handoffs / f"accepted/{NAME}.md").unlink()
    room.offer(repo, owner=str(ended.pid))
    assert claimed(room, repo) == NAME


def test_a_client_can_be_told_from_a_later_process_of_its_number(room: Room, repo: Path) -> None:
    ticks = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    room.offer(repo, owner=f"{os.getpid()} {ticks} {boot}")
    assert claimed(room, repo) == ""
    room.offer(repo, owner=f"{os.getpid()} {int(ticks) + 1} {boot}")
    assert claimed(room, repo) == NAME
    (room.handoffs / f"accepted/{NAME}.md").unlink()
    room.offer(repo, owner=f"{os.getpid()} {ticks} 00000000-0000-4000-8000-000000000000")
    assert claimed(room, repo) == NAME


def test_nothing_is_offered_before_its_time(room: Room, repo: Path) -> None:
    room.offer(repo, after=str(int(time.time()) + 3600))
    assert claimed(room, repo) == ""
    room.offer(repo, after=str(int(time.time())))
    assert claimed(room, repo) == NAME


def test_a_claim_of_four_lines(room: Room, repo: Path) -> None:
    room.offer(repo, after=None)
    assert claimed(room, repo) == NAME


@pytest.mark.parametrize(("owner", "after"), [("", "0"), ("-1", "0"), ("x", "0"), ("0", "soon"), ("0", "-5")])
def test_a_claim_that_is_not_understood_is_left_alone(room: Room, repo: Path, owner: str, after: str) -> None:
    room.offer(repo, owner=owner, after=after)
    assert claimed(room, repo) == ""
    assert room.state() == "open"


@pytest.mark.parametrize("lines", [0, 1])
def test_a_cut_off_claim(room: Room, repo: Path, lines: int) -> None:
    claim = room.place(repo) / "claim"
    claim.write_text("".join(claim.read_text().splitlines(keepends=True)[:lines]))
    assert claimed(room, repo) == ""
    assert room.state() == "open"


def test_an_accepted_handoff_is_never_written_over(room: Room, repo: Path) -> None:
    accepted = room.handoffs / f"accepted/{NAME}.md"
    accepted.write_text("taken before\n")
    assert room.run("SessionStart", START, cwd=repo) == b""
    assert "handoff" not in room.only().header
    assert accepted.read_text() == "taken before\n"
    assert (room.handoffs / f"open/{NAME}.md").exists()
