"""One repository is one project, and never another's: with real git, real folders, and what a hook records of them."""

from __future__ import annotations

import itertools
import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.repositories import environment, git, init, write
from vaultd.core.event import Event, Kind
from vaultd.core.ids import Key, Sid, project_id
from vaultd.core.project import known_project
from vaultd.engine.projects import Project, Projects, Unsorted, Whereabouts
from vaultd.store import gitfacts
from vaultd.store.fs import Lock
from vaultd.store.vault import Vault

ROOT = os.geteuid() == 0


@dataclass
class World:
    """A home folder, a vault, and folders that agents work in."""

    tmp: Path
    host: str = "box"
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.env = environment(self.tmp / "home")
        self.home = self.tmp / "home"
        self.work = self.tmp / "w"
        self.work.mkdir()
        self.vault = Vault(self.tmp / "vault", sync=False, quiet=0.0)  # nobody else edits here
        self.vault.initialise("a" * 32)

    def projects(self, host: str | None = None) -> Projects:
        """As a fresh process would have them."""
        return Projects(
            self.vault,
            home=str(self.home),
            environ=self.env,
            new_id=lambda: f"p-{next(self.numbers):012d}",
            host=host or self.host,
        )

    def at(self, cwd: Path | str, **facts: str) -> Project:
        found = self.projects().resolve(Whereabouts(str(cwd), **facts))
        assert isinstance(found, Project), found
        return found

    def unsorted(self, cwd: Path | str) -> Unsorted:
        found = self.projects().resolve(Whereabouts(str(cwd)))
        assert isinstance(found, Unsorted), found
        return found

    def page(self, project: Project) -> str:
        return (self.vault.root / project.folder / "project.md").read_text("utf-8")

    def pages(self) -> list[str]:
        return sorted(p.relative_to(self.vault.root).as_posix() for p in self.vault.root.rglob("project.md"))

    def all_bytes(self) -> bytes:
        return b"".join(p.read_bytes() for p in sorted(self.vault.root.rglob("*")) if p.is_file())


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def event(cwd: Path | str, number: int = 0, kind: Kind = Kind.PROMPT, **facts: str) -> Event:
    at = datetime(2026, 11, 29, 10, number, tzinfo=UTC)
    return Event(Key(f"{number}-x"), "claude-code", kind.value, kind, at, Sid("0123456789"), cwd=str(cwd), **facts)  # type: ignore[arg-type] # header texts only


def clone(source: Path | str, to: Path, *flags: str) -> Path:
    to.parent.mkdir(parents=True, exist_ok=True)
    git(to.parent, "clone", "-q", *flags, str(source), str(to))
    return to


# --- one repository, many folders


def test_worktrees_and_subfolders_are_their_main_checkout(world: World) -> None:
    app = init(world.work / "app", remote="git@example.org:me/app.git")
    git(app, "worktree", "add", "-q", "-b", "fix", str(world.work / "app-fix"))
    (app / "src/deep").mkdir(parents=True)
    (world.work / "app-fix/src").mkdir()
    main, sub = world.at(app), world.at(app / "src/deep")
    tree, treesub = world.at(world.work / "app-fix"), world.at(world.work / "app-fix/src")
    assert {p.id for p in (main, sub, tree, treesub)} == {project_id("example.org/me/app")}
    assert world.pages() == ["projects/app/project.md"]
    assert [p.subdir for p in (main, sub, tree, treesub)] == ["", "src/deep", "", "src"]
    assert [(p.worktree, p.branch) for p in (main, tree)] == [("", "main"), ("app-fix", "fix")]
    assert {p.main for p in (main, sub, tree, treesub)} == {str(app)}
    assert (main.workspace, main.folder, main.slug, main.title) == ("projects", "projects/app", "app", "app")


def test_a_worktree_that_is_seen_first(world: World) -> None:
    app = init(world.work / "app")
    git(app, "worktree", "add", "-q", str(world.home / ".codex/worktrees/1a4b/app"))
    first = world.at(world.home / ".codex/worktrees/1a4b/app")
    assert (first.folder, first.main) == ("projects/app", str(app))
    assert world.at(app).id == first.id


def test_a_bare_repository_and_its_worktrees(world: World) -> None:
    bare = clone(init(world.work / "source"), world.work / "app.git", "--bare")
    git(bare, "remote", "remove", "origin")
    git(bare, "worktree", "add", "-q", "-b", "one", str(world.work / "one"))
    assert world.at(bare).main == str(bare)
    assert world.at(bare / "refs").id == world.at(bare).id == world.at(world.work / "one").id
    assert world.at(bare).folder == "projects/app"


def test_a_bare_repository_beside_its_worktrees(world: World) -> None:
    place = world.work / "app"
    place.mkdir()
    clone(init(world.work / "source"), place / ".bare", "--bare")
    git(place / ".bare", "remote", "set-url", "origin", "git@example.org:me/app.git")
    write(place / ".git", "gitdir: ./.bare\n")
    git(place, "worktree", "add", "-q", "-b", "one", str(place / "one"))
    found = [world.at(place), world.at(place / "one"), world.at(place / ".bare")]
    assert {(p.folder, p.main) for p in found} == {("projects/app", str(place))}
    recorded = world.at(place / "one", root=str(place / "one"), gitfile=f"gitdir: {place}/.bare/worktrees/one")
    assert str(place / ".bare") in recorded.checkouts, "where a hook, which reads only the .git file, looks"


def test_inside_the_git_folder(world: World) -> None:
    app = init(world.work / "app")
    assert world.at(app / ".git/refs").id == world.at(app).id


def test_a_submodule_is_a_project_of_its_own(world: World) -> None:
    library = init(world.work / "library")
    app = init(world.work / "app", remote="git@example.org:me/app.git")
    git(app, "submodule", "--quiet", "add", str(library), "lib")
    git(app, "commit", "-q", "-m", "lib")
    own = world.at(app / "lib")
    assert own.id != world.at(app).id
    assert (own.main, own.subdir) == (str(app / "lib"), "")
    git(app, "worktree", "add", "-q", "-b", "fix", str(world.work / "fix"))
    git(world.work / "fix", "submodule", "--quiet", "update", "--init")
    assert world.at(world.work / "fix/lib").id == own.id == world.at(library).id


def test_clones_with_one_remote_are_one(world: World) -> None:
    source = init(world.work / "source")
    one, two = clone(source, world.work / "one"), clone(source, world.work / "two")
    shallow = clone(f"file://{source}", world.work / "three", "--depth=1")
    urls = [
        "git@example.org:me/app.git",
        "https://me:hunter2hunter2@example.org/me/app",
        "ssh://git@example.org:22/me/app",
    ]
    for folder, url in zip((one, two, shallow), urls, strict=True):
        git(folder, "remote", "set-url", "origin", url)
    found = [world.at(folder) for folder in (one, two, shallow)]
    assert {p.id for p in found} == {project_id("example.org/me/app")}
    assert {p.folder for p in found} == {"projects/one"}
    assert b"hunter2" not in world.all_bytes()
    assert set(found[-1].checkouts) == {str(one), str(two), str(shallow)}


def test_a_shallow_clone_without_a_remote_is_only_its_place(world: World) -> None:
    source = init(world.work / "source")
    git(source, "commit", "-q", "--allow-empty", "-m", "two")
    shallow = clone(f"file://{source}", world.work / "app", "--depth=1")
    git(shallow, "remote", "remove", "origin")
    found = world.at(shallow)
    assert "root:" not in world.page(found)
    assert found.id == "p-000000000001"
    assert world.at(shallow).id == found.id != world.at(source).id


def test_the_same_repository_on_two_machines(world: World) -> None:
    app = init(world.work / "app", remote="git@example.org:me/app.git")
    here = world.at(app)
    there = world.projects("laptop").resolve(
        Whereabouts("/Users/me/app", "/Users/me/app", remote="https://example.org/me/app")
    )
    assert isinstance(there, Project)
    assert (there.id, there.folder) == (here.id, here.folder)
    assert there.checkouts == ("/Users/me/app",)
    assert world.at(app).checkouts == (str(app),)
    assert {"  - box:" + str(app), "  - laptop:/Users/me/app"} <= set(world.page(here).splitlines())


def test_clones_of_one_local_repository(world: World) -> None:
    bare = clone(init(world.work / "source"), world.work / "hub/app.git", "--bare")
    one, two = clone(bare, world.work / "one"), clone(bare, world.work / "two")
    assert world.at(one).id == world.at(two).id
    assert world.at(bare).id != ""


@pytest.mark.parametrize("first", ["source", "copy"])
def test_a_clone_of_a_checkout_is_the_same_project(world: World, first: str) -> None:
    source = init(world.work / "source")
    copy = clone(source, world.work / "copy")
    order = [source, copy] if first == "source" else [copy, source]
    assert len({world.at(folder).id for folder in order}) == 1


# --- remotes that change


def test_a_renamed_remote_keeps_its_project(world: World) -> None:
    app = init(world.work / "app", remote="git@example.org:me/old.git")
    before = world.at(app)
    git(app, "remote", "set-url", "origin", "https://example.org/team/new")
    projects = world.projects()
    after = projects.resolve(Whereabouts(str(app)))
    assert after.id == before.id
    assert projects.take_written() == {"projects/app/project.md"}
    assert projects.take_written() == set()
    fresh = clone(app, world.work / "fresh")
    for url in ("git@example.org:team/new.git", "git@example.org:me/old.git"):
        git(fresh, "remote", "set-url", "origin", url)
        assert world.at(fresh).id == before.id
    assert world.pages() == ["projects/app/project.md"]


def test_remotes_that_come_and_go_keep_the_project(world: World) -> None:
    app = init(world.work / "app", commit=False)
    unborn = world.at(app)
    git(app, "commit", "-q", "--allow-empty", "-m", "first")
    born = world.at(app)
    git(app, "remote", "add", "origin", "git@example.org:me/app.git")
    pushed = world.at(app)
    git(app, "remote", "add", "upstream", "git@example.org:team/app.git")
    forked = world.at(app)
    git(app, "remote", "remove", "upstream")
    git(app, "remote", "remove", "origin")
    git(app, "checkout", "-q", "--orphan", "pages")
    git(app, "commit", "-q", "--allow-empty", "-m", "another root")
    orphan = world.at(app)
    assert len({p.id for p in (unborn, born, pushed, forked, orphan)}) == 1
    elsewhere = init(world.work / "elsewhere", remote="git@example.org:me/app.git")
    assert world.at(elsewhere).id == unborn.id


def test_a_history_that_was_rewritten_keeps_the_project(world: World) -> None:
    app = init(world.work / "app", remote="git@example.org:me/app.git")
    before = world.at(app)
    git(app, "commit", "-q", "--amend", "-m", "rewritten")
    git(app, "remote", "set-url", "origin", "git@example.org:me/renamed.git")
    assert world.at(app).id == before.id


def test_a_fork_elsewhere_is_another_project_unless_upstream_says_so(world: World) -> None:
    app = init(world.work / "app", remote="git@example.org:team/app.git")
    fork = clone(app, world.work / "fork")
    git(fork, "remote", "set-url", "origin", "git@example.org:me/app.git")
    assert world.at(fork).id != world.at(app).id
    tracked = clone(app, world.work / "tracked")
    git(tracked, "remote", "set-url", "origin", "git@example.org:you/app.git")
    git(tracked, "remote", "add", "upstream", "git@example.org:team/app.git")
    assert world.at(tracked).id == world.at(app).id


def test_clones_that_were_split_by_a_renamed_remote_come_together(world: World) -> None:
    app = init(world.work / "app", remote="git@example.org:me/old.git")
    fresh = clone(app, world.work / "fresh")
    git(fresh, "remote", "set-url", "origin", "git@example.org:me/new.git")
    assert world.at(app).id != world.at(fresh).id
    git(app, "remote", "set-url", "origin", "git@example.org:me/new.git")
    assert world.at(app).id == world.at(fresh).id


def test_another_repository_in_the_same_place_is_another_project(world: World) -> None:
    app = world.work / "app"
    first = world.at(init(app, remote="git@example.org:me/one.git"))
    shutil.rmtree(app)
    second = world.at(init(app, remote="git@example.org:you/two.git"))
    assert second.id != first.id
    assert second.folder == f"projects/app-{second.id[2:6]}"
    assert str(app) not in world.page(first), "the place is the other's now"
    assert str(app) in world.page(second)
    shutil.rmtree(app)
    third = world.at(init(app, commit=False))
    assert third.id not in (first.id, second.id)


def test_two_repositories_of_one_name_stay_two(world: World) -> None:
    folders = [
        init(world.work / "a/app", remote="git@example.org:a/app.git"),
        init(world.work / "b/app", remote="git@example.org:b/app.git"),
        init(world.work / "c/app"),
        init(world.work / "d/App"),
    ]
    for _ in range(2):
        found = [world.at(folder) for folder in folders]
        assert len({p.id for p in found}) == len({p.folder.casefold() for p in found}) == 4
        assert not set(found[0].checkouts) & set(found[1].checkouts)
    assert [p.folder == f"projects/app-{p.id[2:6]}" for p in found] == [False, True, True, True]


# --- no repository


def test_without_git_the_folder_itself(world: World) -> None:
    one, two = world.work / "a/notes", world.work / "b/notes"
    for folder in (one, two):
        folder.mkdir(parents=True)
    first, second = world.at(one), world.at(two)
    assert first.id != second.id
    assert (first.folder, second.folder) == ("projects/notes", f"projects/notes-{second.id[2:6]}")
    assert (first.main, first.subdir, first.branch) == (str(one), "", "")
    init(one, remote="git@example.org:me/notes.git")
    assert world.at(one).id == first.id, "it became a repository"
    shutil.rmtree(one / ".git")
    assert world.at(one).id == first.id


def test_the_home_folder_and_the_root_are_no_projects(world: World) -> None:
    link = world.tmp / "link"
    link.symlink_to(world.home)
    for place in (world.home, f"{world.home}/", "/", "", "relative/path", link):
        nowhere = world.unsorted(place)
        assert (nowhere.id, nowhere.folder) == ("", "projects/unsorted")
        assert nowhere.reason
    assert world.pages() == []


def test_a_home_folder_that_is_a_repository_swallows_nothing(world: World) -> None:
    init(world.home, remote="git@example.org:me/dotfiles.git")
    (world.home / "notes").mkdir()
    app = init(world.home / "app", remote="git@example.org:me/app.git")
    assert isinstance(world.unsorted(world.home), Unsorted)
    assert world.at(world.home / "notes").main == str(world.home / "notes")
    assert world.at(app).id == project_id("example.org/me/app")


# --- places that are gone, or cannot be seen


def test_a_repository_that_was_deleted_is_found_by_what_the_hook_recorded(world: World) -> None:
    app = init(world.work / "app", remote="git@example.org:me/app.git")
    before = world.at(app)
    shutil.rmtree(app)
    assert world.at(app, root=str(app), remote="git@example.org:me/app.git").id == before.id
    assert world.at(app / "src", root=str(app)).id == before.id
    assert world.at(app / "src", root=str(app)).subdir == "src"
    other = world.at(app, root=str(app), remote="git@example.org:you/other.git")
    assert other.id == project_id("example.org/you/other")
    assert world.at(app, root=str(app)).id == before.id, "the place still is the first one's"


def test_a_subfolder_that_was_deleted_is_its_checkouts(world: World) -> None:
    app = init(world.work / "app", remote="git@example.org:me/app.git")
    found = world.at(app / "src/deep", root=str(app))
    assert (found.id, found.subdir, found.branch) == (project_id("example.org/me/app"), "src/deep", "main")
    assert world.at(app).id == found.id


def test_a_worktree_that_was_deleted_is_its_main_checkout(world: World) -> None:
    app = init(world.work / "app")
    tree = world.work / "app-fix"
    git(app, "worktree", "add", "-q", "-b", "fix", str(tree))
    gitfile = (tree / ".git").read_text().strip()
    before = world.at(app)
    shutil.rmtree(tree)
    gone = world.at(tree / "src", root=str(tree), gitfile=gitfile)
    assert (gone.id, gone.worktree, gone.subdir) == (before.id, "app-fix", "src")
    shutil.rmtree(app)
    assert world.at(tree, root=str(tree), gitfile=gitfile).id == before.id


def test_a_worktree_whose_repository_is_gone(world: World) -> None:
    app = init(world.work / "app")
    tree = world.work / "app-fix"
    git(app, "worktree", "add", "-q", "-b", "fix", str(tree))
    before = world.at(app)
    shutil.rmtree(app)
    assert world.at(tree).id == before.id
    (tree / "src").mkdir()
    assert world.at(tree / "src").subdir == "src"


def test_a_deleted_repository_inside_another_is_not_the_other(world: World) -> None:
    outer = init(world.work / "outer", remote="git@example.org:me/outer.git")
    inner = init(outer / "vendor/inner", remote="git@example.org:me/inner.git")
    first = world.at(inner)
    shutil.rmtree(inner / ".git")
    assert world.at(inner, root=str(inner), remote="git@example.org:me/inner.git").id == first.id
    assert world.at(inner, root=str(inner)).id == first.id, "known by its place"
    assert world.at(inner).id == world.at(outer).id, "nothing says that it was one"
    shutil.rmtree(inner)
    assert world.at(inner, root=str(inner)).id == first.id


def test_a_deleted_plain_folder(world: World) -> None:
    first = world.at(world.work / "gone/notes")
    assert first.folder == "projects/notes"
    assert world.at(world.work / "gone/notes").id == first.id


def test_a_daemon_that_sees_no_folders_uses_what_was_recorded(world: World) -> None:
    """A daemon in a container: no path of the events exists."""
    app = {"root": "/host/w/app", "remote": "git@example.org:me/app.git"}
    fix = {"root": "/host/w/fix", "gitfile": "gitdir: /host/w/app/.git/worktrees/fix", "remote": app["remote"]}
    main, tree = world.at("/host/w/app/src", **app), world.at("/host/w/fix", **fix)
    assert main.id == tree.id == project_id("example.org/me/app")
    assert (main.main, main.subdir, tree.main, tree.worktree) == ("/host/w/app", "src", "/host/w/app", "fix")
    assert world.at("/host/w/app", root="/host/w/app").id == main.id, "an event that is no start event"
    assert world.at("/host/w/fix", root="/host/w/fix", gitfile=fix["gitfile"]).id == main.id


def test_windows_paths_as_recorded(world: World) -> None:
    main = world.at(r"C:\Projects\My-Repo", root=r"C:\Projects\My-Repo")
    tree = world.at(
        r"C:\Users\u\.codex\worktrees\1a4b\My-Repo\src",
        root=r"C:\Users\u\.codex\worktrees\1a4b\My-Repo",
        gitfile=r"gitdir: C:\Projects\My-Repo\.git\worktrees\My-Repo",
    )
    assert (main.folder, main.title, main.main) == ("projects/my-repo", "My-Repo", "C:/Projects/My-Repo")
    assert (tree.id, tree.subdir) == (main.id, "src")


def test_facts_of_another_folder_do_not_count(world: World) -> None:
    """The payload's cwd beats the header's, whose root and remote then say nothing about it."""
    app = init(world.work / "app", remote="git@example.org:me/app.git")
    other = world.at(world.work / "other", root=str(app), remote="git@example.org:me/app.git")
    assert other.id != world.at(app).id
    assert other.main == str(world.work / "other")


# --- sessions


def test_a_sessions_project_is_that_of_its_first_event_in_one(world: World) -> None:
    app, other = init(world.work / "app"), init(world.work / "other")
    session = [event(world.home), event("", 1), event(app, 2), event(other, 3)]
    found = world.projects().place(session)
    assert isinstance(found, Project)
    assert found.main == str(app)
    assert isinstance(world.projects().place([event(world.home), event("/", 1)]), Unsorted)
    assert isinstance(world.projects().place([]), Unsorted)


def test_what_only_the_start_event_recorded_counts_for_all(world: World) -> None:
    root = "/host/w/app"
    start = event(root, 1, Kind.START, root=root, remote="git@example.org:me/app.git", head="ref: refs/heads/main")
    found = world.projects().place([event(f"{root}/src", 0, root=root), start])
    assert isinstance(found, Project)
    assert (found.id, found.subdir) == (project_id("example.org/me/app"), "src")


# --- markers


def test_the_nearest_marker_wins(world: World) -> None:
    app = init(world.work / "app", remote="git@example.org:me/app.git")
    (app / "apps/a/src").mkdir(parents=True)
    plain = world.at(app)
    write(app / "apps/a/.vaultd.toml", 'project = "Part A"\n')
    write(app / ".vaultd.toml", 'project = "whole"\nworkspace = "work"\n')
    part, whole = world.at(app / "apps/a/src"), world.at(app / "apps")
    assert (part.folder, part.main, part.subdir) == ("projects/part-a", str(app / "apps/a"), "src")
    assert (whole.folder, whole.main, whole.subdir) == ("work/whole", str(app), "apps")
    assert len({plain.id, part.id, whole.id}) == 3
    (app / ".vaultd.toml").unlink()
    assert world.at(app).id == plain.id


def test_a_marker_joins_repositories_and_survives_a_renamed_folder(world: World) -> None:
    front, back = init(world.work / "front"), init(world.work / "back")
    for folder in (front, back):
        write(folder / ".vaultd.toml", 'project = "suite"\n')
    one = world.at(front)
    assert world.at(back).id == one.id
    (world.vault.root / one.folder).rename(world.vault.root / "projects/Our suite")
    assert (world.at(front).id, world.at(back).folder) == (one.id, "projects/Our suite")


def test_a_marker_names_a_project_that_is_there(world: World) -> None:
    app = world.at(init(world.work / "app", remote="git@example.org:me/app.git"))
    write(world.work / "scripts/.vaultd.toml", 'project = "app"\n')
    assert world.at(world.work / "scripts").id == app.id


def test_a_marker_that_is_only_in_the_main_checkout_counts_in_its_worktrees(world: World) -> None:
    app = init(world.work / "app")
    write(app / "part/.vaultd.toml", 'project = "part"\n')
    git(app, "worktree", "add", "-q", "-b", "fix", str(world.work / "fix"))
    for folder in (app, world.work / "fix"):
        (folder / "part/src").mkdir(parents=True)
    main, tree = world.at(app / "part/src"), world.at(world.work / "fix/part/src")
    assert (main.id, main.main, main.subdir) == (tree.id, tree.main, tree.subdir)
    assert (tree.main, tree.subdir, tree.worktree) == (str(app / "part"), "src", "fix")


def test_a_workspace_alone_says_where_new_projects_go(world: World) -> None:
    old = world.at(init(world.work / "old", remote="git@example.org:me/old.git"))
    write(world.home / "jobs/.vaultd.toml", 'workspace = "jobs"\n')
    for name in ("plain", "plain/deep"):
        (world.home / "jobs" / name).mkdir()
    assert world.at(world.home / "jobs/plain").folder == "jobs/plain"
    assert world.at(world.home / "jobs/plain/deep").folder == "jobs/deep"
    write(world.work / "old/.vaultd.toml", 'workspace = "jobs"\n')
    assert world.at(world.work / "old").folder == old.folder, "a project is where its folder is"


def test_a_marker_in_the_home_folder_names_no_project(world: World) -> None:
    write(world.home / ".vaultd.toml", 'project = "everything"\nworkspace = "mine"\n')
    (world.home / "a").mkdir()
    assert world.at(world.home / "a").folder == "mine/a"
    assert isinstance(world.unsorted(world.home), Unsorted)


def test_a_broken_marker_is_told_and_passed_over(world: World) -> None:
    app = init(world.work / "app", remote="git@example.org:me/app.git")
    write(app / ".vaultd.toml", "project = \n")
    found = world.at(app)
    assert found.id == project_id("example.org/me/app")
    assert ".vaultd.toml" in found.problem


# --- the vault's side


@pytest.mark.parametrize("where", ["projects/My App", "archive/app", "projects/old/2025/app", "app", "_done/x/app"])
def test_a_folder_that_a_person_moved_stays_the_project(world: World, where: str) -> None:
    app = init(world.work / "app", remote="git@example.org:me/app.git")
    before = world.at(app)
    target = world.vault.root / where
    target.parent.mkdir(parents=True, exist_ok=True)
    (world.vault.root / before.folder).rename(target)
    if where.startswith("_"):
        return  # folders with an underscore are vaultd's own; what lies there is no project
    for _ in range(2):
        after = world.at(app)
        assert (after.id, after.folder) == (before.id, where)
    projects = world.projects()
    assert isinstance(projects.find(str(app)), Project)
    assert [p.folder for p in projects.known()] == [where]
    assert len(world.pages()) == 1


def test_a_page_that_does_not_parse_is_the_project_still_and_never_written(world: World) -> None:
    app = init(world.work / "app", remote="git@example.org:me/app.git")
    before = world.at(app)
    broken = world.page(before).replace("title: app", "title: a: b: c")
    write(world.vault.root / before.folder / "project.md", broken)
    git(app, "remote", "add", "upstream", "git@example.org:team/app.git")
    assert world.at(app).id == before.id
    assert world.page(before) == broken


def test_a_persons_additions_to_the_page_stay(world: World) -> None:
    app = init(world.work / "app", remote="git@example.org:me/old.git")
    before = world.at(app)
    text = world.page(before).replace("kind: project", "kind: project # mine\ncolour: blue") + "\nMy own words.\n"
    write(world.vault.root / before.folder / "project.md", text)
    git(app, "remote", "set-url", "origin", "git@example.org:me/new.git")
    world.at(app)
    after = world.page(before)
    assert set(text.splitlines()) < set(after.splitlines())
    assert [line for line in after.splitlines() if line not in text.splitlines()] == ["  - example.org/me/new"]


def test_an_existing_folder_is_adopted_and_a_foreign_page_respected(world: World) -> None:
    write(world.vault.root / "projects/app/notes/mine.md", "mine\n")
    app = world.at(init(world.work / "app"))
    assert app.folder == "projects/app"
    write(world.vault.root / "projects/site/project.md", "# The person's own page\n")
    site = world.at(init(world.work / "site"))
    assert site.folder == f"projects/site-{site.id[2:6]}"
    assert (world.vault.root / "projects/site/project.md").read_text() == "# The person's own page\n"


def test_a_repository_called_unsorted_is_not_mixed_with_the_unsorted(world: World) -> None:
    found = world.at(init(world.work / "unsorted"))
    assert found.folder == f"projects/unsorted-{found.id[2:6]}"


def test_a_copied_folder_changes_nothing(world: World) -> None:
    app = init(world.work / "app")
    before = world.at(app)
    shutil.copytree(world.vault.root / "projects/app", world.vault.root / "projects/app 1")
    assert {world.at(app).folder for _ in range(3)} == {before.folder}


def test_seeing_it_again_writes_nothing(world: World) -> None:
    app = init(world.work / "app", remote="git@example.org:me/app.git")
    found = world.at(app)
    page = world.vault.root / found.folder / "project.md"
    before = page.stat()
    projects = world.projects()
    projects.resolve(Whereabouts(str(app)))
    assert projects.take_written() == set()
    world.projects().place([event(app, 1, root=str(app), remote="git@example.org:me/app.git")])
    assert (page.stat().st_ino, page.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_reading_makes_and_learns_nothing(world: World) -> None:
    app = init(world.work / "app", remote="git@example.org:me/app.git")
    projects = world.projects()
    assert projects.find(str(app)) is None
    assert world.pages() == []
    made = world.at(app)
    git(app, "worktree", "add", "-q", "-b", "fix", str(world.work / "fix"))
    git(app, "remote", "add", "upstream", "git@example.org:team/app.git")
    before = world.all_bytes()
    found = projects.find(str(world.work / "fix"))
    assert isinstance(found, Project)
    assert (found.id, found.worktree) == (made.id, "fix")
    assert isinstance(projects.find(str(world.home)), Unsorted)
    assert world.all_bytes() == before
    listed = projects.get(made.id)
    assert listed is not None
    assert (listed.folder, listed.checkouts) == (made.folder, made.checkouts)
    assert projects.get("p-nothing") is None


def test_a_git_that_hangs_is_waited_for_once_and_for_its_repository_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, other = init(world.work / "app"), init(world.work / "other", remote="git@example.org:me/other.git")
    calls = world.tmp / "calls"
    real = shutil.which("git")
    script = f'#!/bin/sh\necho "$*" >>{calls}\ncase "$*" in *w/app/*) exec sleep 1000 ;; esac\nexec {real} "$@"\n'
    write(world.tmp / "bin/git", script).chmod(0o755)
    monkeypatch.setattr(gitfacts, "_PATIENCE_S", 1.0)
    world.env["PATH"] = f"{world.tmp / 'bin'}:{os.environ['PATH']}"
    for _ in range(3):
        assert isinstance(world.projects().resolve(Whereabouts(str(app), root=str(app))), Project)
    assert len([row for row in calls.read_text().splitlines() if "w/app/" in row]) == 1
    found = world.at(other)
    page = (world.vault.root / found.folder / "project.md").read_text()
    assert "example.org/me/other" in page


def test_many_at_once_make_one_project(world: World) -> None:
    app = init(world.work / "app")
    found: list[Project] = []
    gate = threading.Barrier(4)

    def start(projects: Projects) -> None:
        gate.wait()
        with Lock(world.tmp / "write.lock"):  # as all who write
            place = projects.resolve(Whereabouts(str(app)))
        assert isinstance(place, Project)
        found.append(place)

    threads = [threading.Thread(target=start, args=(world.projects(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len({p.id for p in found}) == 1
    assert world.pages() == ["projects/app/project.md"]


def test_the_list_of_checkouts_stays_short(world: World) -> None:
    app = init(world.work / "app", remote="git@example.org:me/app.git")
    page = world.vault.root / world.at(app).folder / "project.md"
    lines = "".join(f"  - box:/ci/{number}/app\n" for number in range(70))
    write(page, page.read_text().replace("checkouts:\n", "checkouts:\n" + lines))
    world.at("/ci/new/app", root="/ci/new/app", remote="git@example.org:me/app.git")
    known = known_project("projects/app", page.read_bytes(), "box")
    assert known is not None
    assert len(known.checkouts) == 64
    assert known.checkouts[-2:] == (str(app), "/ci/new/app"), "what is there and what was seen last stays"


# --- names, owners, traps


@pytest.mark.parametrize(
    "name",
    [
        b"Caf\xc3\xa9",
        b"Cafe\xcc\x81",
        "漢字 🙂".encode(),
        b"raw-\xff\xfe",
        b"new\nline",
        b"a'b\"c",
        b"%41",
        b"  two  blanks  ",
        b"[REDACTED]",
    ],
)
def test_folders_of_any_name(world: World, name: bytes) -> None:
    folder = init(world.work / os.fsdecode(name))
    plain = world.work / "x" / os.fsdecode(name)
    plain.mkdir(parents=True)
    found, bare = world.at(folder), world.at(plain)
    assert found.main == str(folder)
    assert (world.at(folder).id, world.at(plain).id) == (found.id, bare.id)
    assert found.id != bare.id
    assert str(folder) in world.at(folder).checkouts
    shutil.rmtree(folder)
    assert world.at(folder, root=str(folder)).id == found.id


def test_a_symlinked_folder_is_its_target(world: World) -> None:
    app = init(world.work / "app")
    link = world.work / "link"
    link.symlink_to(app)
    (app / "src").mkdir()
    found = world.at(link / "src", root=str(link))
    assert (found.main, found.subdir) == (str(app), "src")
    assert set(found.checkouts) == {str(app), str(link)}, "the hook may go by either name"


@pytest.mark.skipif(not ROOT, reason="only root can give a folder to somebody else")
def test_a_repository_of_another_user(world: World) -> None:
    app = init(world.work / "app", remote="git@example.org:me/app.git")
    own = init(world.work / "own")
    sha = git(own, "rev-parse", "HEAD")
    for top in (app, own):
        for path in (top, *top.rglob("*")):
            os.chown(path, 65534, 65534)
    assert world.at(app).id == project_id("example.org/me/app")
    assert world.at(own).id == project_id(sha)


def test_a_repository_that_sets_traps_runs_nothing(world: World) -> None:
    app = init(world.work / "app")
    git(app, "commit", "-q", "--allow-empty", "-m", "two")
    trap = write(world.tmp / "trap", f"#!/bin/sh\ntouch {world.tmp}/sprung\n")
    trap.chmod(0o755)
    settings = {
        "core.fsmonitor": str(trap),
        "core.sshCommand": str(trap),
        "core.pager": str(trap),
        "pager.rev-list": str(trap),
        "protocol.ext.allow": "always",
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "evil",
        "remote.evil.url": f"ext::{trap} %S",
        "remote.evil.promisor": "true",
    }
    for key, value in settings.items():
        git(app, "config", key, value)
    first = git(app, "rev-list", "--max-parents=0", "HEAD")
    (app / ".git/objects" / first[:2] / first[2:]).unlink()
    world.at(app)
    assert not (world.tmp / "sprung").exists()


def test_a_git_entry_that_would_block_is_passed_over(world: World) -> None:
    (world.work / "app").mkdir()
    os.mkfifo(world.work / "app/.git")
    os.mkfifo(world.work / "app/.vaultd.toml")
    assert world.at(world.work / "app").folder == "projects/app"


def test_a_git_that_runs_around_us_is_not_asked(world: World) -> None:
    app, other = init(world.work / "app"), init(world.work / "other")
    world.env |= {"GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other)}
    assert world.at(app).id == project_id(git(app, "rev-parse", "HEAD"))
