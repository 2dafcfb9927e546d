"""Claims: a session start takes the handoff prepared for its place, at most one takes it, and none is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.hook.room import ORIGIN, START, TEXT, Room, checkout, folder_with_git, git, wait_for_temps
from tests.waiting import until

NAME = "0123456789-g1"


@pytest.fixture
def repo(room: Room) -> Path:
    """A checkout with an offer."""
    repo = folder_with_git(room.base / "repo")
    room.offer(repo)
    return repo


def claimed(room: Room, cwd: Path | bytes, payload: bytes = START, event: str = "SessionStart") -> str:
    """The id that a start claims, "" for none; what was printed, where the handoff lies and the event must agree."""
    printed = room.run(event, payload, cwd=cwd)
    delivery = room.only()
    assert delivery.payload == payload
    name = delivery.header.get("handoff", "")
    assert printed == (TEXT if name else b"")
    assert name == "" or room.state(name) == "accepted"
    assert "handoff" not in delivery.header or "offered" not in delivery.header
    return name


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


# -- where


def test_a_subfolder_finds_the_claim_above_it(room: Room, repo: Path) -> None:
    deep = repo / "a/b/c"
    deep.mkdir(parents=True)
    room.offer(repo / "a", "nearer-g1")
    assert claimed(room, deep) == "nearer-g1"
    assert claimed(room, deep) == NAME
    assert claimed(room, deep) == ""


def test_a_claim_whose_handoff_is_gone_hides_no_other(room: Room, repo: Path) -> None:
    (repo / "a").mkdir()
    room.offer(repo / "a", "nearer-g1")
    (room.handoffs / "open/nearer-g1.md").unlink()
    assert claimed(room, repo / "a") == NAME
    room.offer(repo / "a", "nearer-g1")
    room.offer(repo, "above-g1")
    (room.place(repo / "a") / "session-start-json").unlink()
    assert claimed(room, repo / "a") == "above-g1"


def test_a_claim_below_is_not_found_from_above(room: Room, repo: Path) -> None:
    (repo / "sub").mkdir()
    assert claimed(room, repo) == NAME
    room.offer(repo / "sub", "below-g1")
    assert claimed(room, repo) == ""


def test_a_claim_outside_the_checkout_is_not_taken(room: Room) -> None:
    inner = folder_with_git(room.base / "work/inner")
    (inner / "sub").mkdir()
    room.offer(room.base / "work", "outer-g1")
    room.offer(room.base / "work/inner2", "other-g1")
    assert claimed(room, inner) == ""
    assert claimed(room, inner / "sub") == ""


def test_a_marker_ends_the_way_up(room: Room, repo: Path) -> None:
    (repo / "part/sub").mkdir(parents=True)
    (repo / "part/.vaultd.toml").write_text('project = "part"\n')
    assert claimed(room, repo / "part/sub") == ""
    room.offer(repo / "part", "part-g1")
    assert claimed(room, repo / "part/sub") == "part-g1"


def test_outside_any_checkout_only_the_folder_itself_counts(room: Room) -> None:
    (room.home / "notes/sub").mkdir(parents=True)
    (room.home / ".git").mkdir()  # a home folder under git makes no project of all that is below it
    room.offer(room.home / "notes")
    assert claimed(room, room.home / "notes/sub") == ""
    assert claimed(room, room.home / "notes") == NAME


@pytest.mark.parametrize("relative", [False, True])
def test_a_linked_worktree_takes_its_main_checkouts_claim(room: Room, relative: bool) -> None:
    repo = checkout(room.base / "repo")
    room.offer(repo)
    tree = room.base / "trees/topic"
    git(repo, "worktree", "add", "-q", "-b", "topic", str(tree))
    if relative:
        (tree / ".git").write_text(f"gitdir: {os.path.relpath(repo / '.git/worktrees/topic', tree)}\n")
    (tree / "a/b").mkdir(parents=True)
    (repo / "a").mkdir()
    room.offer(repo / "a", "sub-g1")
    assert claimed(room, tree / "a/b") == "sub-g1"
    assert claimed(room, tree) == NAME


def test_a_submodule_does_not_take_the_outer_checkouts_claim(room: Room) -> None:
    repo = checkout(room.base / "repo")
    room.offer(repo)
    inner = checkout(room.base / "inner")
    git(repo, "submodule", "--quiet", "add", str(inner), "sub")
    assert claimed(room, repo / "sub") == ""
    room.offer(repo / "sub", "inner-g1")
    assert claimed(room, repo / "sub") == "inner-g1"
    tree = room.base / "tree of the submodule"
    git(repo / "sub", "worktree", "add", "-q", "-b", "topic", str(tree))
    room.offer(tree, "tree-g1")
    assert claimed(room, tree) == "tree-g1"


def test_a_worktree_of_a_bare_repository_takes_the_repositorys_claim(room: Room) -> None:
    bare = room.base / "project/.bare"
    git(checkout(room.base / "seed"), "clone", "-q", "--bare", ".", str(bare))
    tree = room.base / "project/topic"
    git(bare, "worktree", "add", "-q", "-b", "topic", str(tree))
    room.offer(bare)
    assert claimed(room, tree) == NAME


def test_a_checkout_of_an_odd_name(room: Room) -> None:
    name = bytes(b for b in range(1, 256) if b != ord("/"))
    path = room.base / os.fsdecode(name)
    repo = folder_with_git(path)
    (repo / "sub").mkdir()
    room.offer(repo)
    assert claimed(room, repo / "sub") == NAME


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
