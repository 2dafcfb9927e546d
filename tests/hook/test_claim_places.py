"""Where a session start finds what it may claim."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.hook.room import NAME, Room, checkout, claimed, folder_with_git, git


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
