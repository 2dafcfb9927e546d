"""What stands in an event file's header."""

from __future__ import annotations

import os
import re
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.hook.room import START, Room, checkout, folder_with_git, git

ODD_NAMES = {
    "quotes": b"a'b\"c`d$(e)\\f",
    "line ends": b"new\nline\rand return\n",
    "looks escaped": b"50%0A%25",
    "not UTF-8": b"caf\xe9 \xff\x81\x88",
    "UTF-8": "Grüße 日本".encode(),
    "dashes and globs": b"-n * ? [a-z] !",
    "every byte": bytes(b for b in range(1, 256) if b != ord("/")),
}


@pytest.mark.parametrize("name", ODD_NAMES.values(), ids=ODD_NAMES)
@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_a_directory_of_any_name_arrives_unchanged(room: Room, name: bytes, locale: str) -> None:
    root = folder_with_git(room.base / os.fsdecode(name))
    folder = root / "sub"
    folder.mkdir()
    room.run(payload=b"x", cwd=folder, env={"LANG": locale, "VAULTD_RUN_ID": "run%\n1"})
    [path] = (room.room / "inbox/new").iterdir()
    assert b"\r" not in path.read_bytes()
    assert len(path.read_bytes()) % 512 == len(b"x")
    delivery = room.only()
    assert (delivery.header["cwd"], delivery.header["root"]) == (str(folder), str(root))
    assert delivery.header["run"] == "run%\n1"
    assert delivery.payload == b"x"


def test_agent_event_time_and_run(room: Room) -> None:
    env = {"TZ": "XST-05:30", "VAULTD_RUN_ID": "r1", "VAULTD_WORKSTREAM_ID": "w1"}
    room.run("PostToolUse", agent="codex", env=env)
    delivery = room.only()
    header = delivery.header
    assert (header["agent"], header["event"], header["run"], header["workstream"]) == (
        "codex",
        "PostToolUse",
        "r1",
        "w1",
    )
    at = datetime.fromisoformat(header["at"])
    assert header["at"].endswith("+05:30")
    assert at.utcoffset() == timedelta(hours=5, minutes=30)
    assert int(delivery.key.partition("-")[0]) == at.timestamp()
    assert re.fullmatch(r"\d+-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", delivery.key)


def test_what_is_not_known_has_no_line(room: Room) -> None:
    room.run()
    known = {"agent", "event", "at", "cwd", "proc", "pproc", "boot"}
    assert set(room.only().header) == known


def test_header_is_a_whole_number_of_blocks(room: Room) -> None:
    for length in (0, *range(506, 516)):
        room.run(env={"VAULTD_RUN_ID": "r" * length})
        [path] = (room.room / "inbox/new").iterdir()
        data = path.read_bytes()
        assert data.index(b"\n\n") + 2 == len(data) - len(b"{}")
        assert (len(data) - len(b"{}")) % 512 == 0
        path.unlink()


def test_parent_and_grandparent_as_the_system_tells(room: Room) -> None:
    room.run(wrapper=["sh", "-c", '"$@"; exit $?', "sh"])
    header = room.only().header
    grandparent = f"{os.getpid()} ("
    assert re.match(r"\d+ \(sh\) [RSD] ", header["proc"])
    assert header["proc"].split(") ")[1].split()[1] == str(os.getpid())
    assert header["pproc"].startswith(grandparent)
    own = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    assert header["pproc"].rpartition(")")[2].split()[19] == own[19]
    assert header["boot"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_a_parent_with_brackets_in_its_name(room: Room, tmp_path: Path) -> None:
    odd = tmp_path / "a) S 1 (b%"
    odd.symlink_to("/bin/bash" if Path("/bin/bash").exists() else "/bin/sh")
    room.run(wrapper=[str(odd), "-c", '"$@"; exit $?', "sh"])
    header = room.only().header
    assert header["proc"].partition(" ")[2].startswith("(a) S 1 (b%) ")
    assert header["pproc"].startswith(f"{os.getpid()} (")


def test_root_is_the_nearest_of_checkout_and_marker(room: Room) -> None:
    repo = folder_with_git(room.home / "work/repo")
    (repo / "a/b").mkdir(parents=True)
    room.run(cwd=repo / "a/b")
    assert room.only().header["root"] == str(repo)
    (repo / "a/.vaultd.toml").write_text("")
    room.run(cwd=repo / "a/b")
    assert room.only().header["root"] == str(repo / "a")
    (room.home / "work/.vaultd.toml").write_text("")
    room.run(cwd=repo)
    assert room.only().header["root"] == str(repo)


def test_the_home_folder_is_no_root(room: Room) -> None:
    folder_with_git(room.home)
    (room.home / ".vaultd.toml").write_text("")
    (room.home / "notes").mkdir()
    link = room.base / "home-by-another-name"
    link.symlink_to(room.home)
    room.run(cwd=room.home / "notes", env={"HOME": str(link)})
    assert "root" not in room.only().header


def test_cwd_is_the_physical_path(room: Room) -> None:
    (room.base / "real").mkdir()
    (room.base / "link").symlink_to("real")
    room.run(cwd=room.base / "link", env={"PWD": str(room.base / "link")})
    assert room.only().header["cwd"] == str(room.base / "real")


def test_only_a_start_says_head_branch_and_remote(room: Room) -> None:
    repo = checkout(room.base / "repo")
    git(repo, "remote", "add", "origin", "https://me:pass@example.org/fork.git")
    head = git(repo, "rev-parse", "HEAD")
    room.run("PostToolUse", cwd=repo)
    assert not {"head", "branch", "remote"} & set(room.only().header)
    room.run("SessionStart", START, cwd=repo)
    header = room.only().header
    assert (header["head"], header["branch"]) == (head, "main")
    assert header["remote"] == "https://me:pass@example.org/fork.git"
    git(repo, "remote", "add", "upstream", "git@example.org:base.git")
    git(repo, "remote", "add", "zzz", "https://example.org/zzz.git")
    room.run("SessionStart", START, cwd=repo)
    assert room.only().header["remote"] == "git@example.org:base.git"


def test_head_when_detached_packed_and_unborn(room: Room) -> None:
    repo = checkout(room.base / "repo")
    head = git(repo, "rev-parse", "HEAD")
    git(repo, "branch", "a-branch-before")
    git(repo, "checkout", "-q", "-b", "topic/x")
    git(repo, "pack-refs", "--all")
    room.run("SessionStart", START, cwd=repo)
    header = room.only().header
    assert (header["head"], header["branch"]) == (head, "topic/x")
    git(repo, "checkout", "-q", "--detach")
    room.run("SessionStart", START, cwd=repo)
    header = room.only().header
    assert header["head"] == head
    assert "branch" not in header
    git(repo, "checkout", "-q", "--orphan", "new")
    room.run("SessionStart", START, cwd=repo)
    header = room.only().header
    assert "head" not in header
    assert header["branch"] == "new"


def test_head_never_shows_another_file(room: Room) -> None:
    repo = folder_with_git(room.base / "repo")
    (repo / ".git/refs/heads").mkdir(parents=True)
    (room.base / "secret").write_text("abcdef0123\n")
    (repo / ".git/HEAD").write_text("ref: refs/../../../secret\n")
    room.run("SessionStart", START, cwd=repo)
    assert "head" not in room.only().header
    (repo / ".git/refs/heads/odd").write_text("password=hunter2\n")
    (repo / ".git/HEAD").write_text("ref: refs/heads/odd\n")
    room.run("SessionStart", START, cwd=repo)
    assert "head" not in room.only().header


@pytest.mark.parametrize("relative", [False, True])
def test_a_linked_worktree_names_its_main_checkout(room: Room, relative: bool) -> None:
    repo = checkout(room.base / "main repo")
    git(repo, "remote", "add", "origin", "https://example.org/a.git")
    tree = room.base / "trees/topic"
    git(repo, "worktree", "add", "-q", "-b", "topic", str(tree))
    git(tree, "commit", "-q", "--allow-empty", "-m", "second")
    target = f"{repo}/.git/worktrees/topic"
    if relative:
        target = os.path.relpath(target, tree)
        (tree / ".git").write_text(f"gitdir: {target}\n")
    (tree / "sub").mkdir()
    room.run("SessionStart", START, cwd=tree / "sub")
    header = room.only().header
    assert (header["root"], header["gitfile"]) == (str(tree), f"gitdir: {target}")
    assert (header["head"], header["branch"]) == (git(tree, "rev-parse", "HEAD"), "topic")
    assert header["remote"] == "https://example.org/a.git"
    assert header["cwd"] == str(tree / "sub")


def test_a_submodule_is_a_checkout_of_its_own(room: Room) -> None:
    inner = checkout(room.base / "inner")
    outer = checkout(room.base / "outer")
    git(outer, "submodule", "--quiet", "add", str(inner), "sub")
    room.run("SessionStart", START, cwd=outer / "sub")
    header = room.only().header
    assert header["root"] == str(outer / "sub")
    assert header["gitfile"] == "gitdir: ../.git/modules/sub"
    assert header["head"] == git(inner, "rev-parse", "HEAD")
    assert header["remote"] == str(inner)


def test_a_deleted_directory(room: Room) -> None:
    gone = room.base / "gone"
    gone.mkdir()
    # A shell that starts in a deleted directory says so on stderr before the script's first line: not looked at.
    wrapper = ["sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh"]
    started = room.start(cwd=gone, wrapper=wrapper)
    assert started.finish(b"payload").code == 0
    delivery = room.only()
    assert delivery.payload == b"payload"
    assert delivery.header.get("cwd", str(gone)) == str(gone)


def test_without_the_kernel_files(room: Room, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    hide = ["unshare", "-m", "sh", "-c", f'mount --bind "{empty}" /proc/sys/kernel/random && exec "$@"', "sh"]
    if subprocess.run([*hide, "true"], capture_output=True, check=False).returncode:
        pytest.skip("hiding files of /proc needs root")
    room.run(payload=b"1", wrapper=hide)
    delivery = room.only()
    assert re.fullmatch(r"\d+-\d+-\d+", delivery.key)
    assert "boot" not in delivery.header


def test_a_taken_name_gets_a_suffix(room: Room, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    script = f'mount --bind "{empty}" /proc/sys/kernel/random && echo $$ && read -r go && exec "$@"'
    hide = ["unshare", "-m", "sh", "-c", script, "sh"]
    if subprocess.run([*hide[:4], "true"], capture_output=True, check=False).returncode:
        pytest.skip("hiding files of /proc needs root")
    started = room.start(wrapper=hide)
    assert started.process.stdout is not None
    pid = int(started.process.stdout.readline())
    now = int(datetime.now().timestamp())
    for second in range(now, now + 60):
        for box in ("new", "tmp"):
            (room.room / f"inbox/{box}/{second}-{os.getpid()}-{pid}").write_bytes(b"another's")
    assert started.finish(b"go\nthe payload").code == 0
    new = room.room / "inbox/new"
    [name] = [p.name for p in new.iterdir() if p.name.endswith("-1")]
    assert (new / name).read_bytes().endswith(b"\n\nthe payload")
    assert {p.read_bytes() for p in new.iterdir() if p.name != name} == {b"another's"}
    assert [p.read_bytes() for p in (room.room / "inbox/tmp").iterdir()] == [b"another's"] * 60
