"""Commits beside a person, with real git: exactly what was named, in bounded time, and nothing of theirs touched."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.repositories import environment, git, index_entries, init, run_git, write
from tests.waiting import until
from vaultd.core.sanitize import redact
from vaultd.errors import RefusedError, VaultdError
from vaultd.store import gitlocks
from vaultd.store.git import Blocked, Change, Committed, Failed, Nothing, Repo, run
from vaultd.store.gitanswers import Ran, parse_status, words
from vaultd.store.gitindex import IndexLock

MESSAGE = redact("notes: one page")
ROOT = os.geteuid() == 0


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """A vault that is a repository with one commit of a person's and a page of theirs."""
    (tmp_path / "home").mkdir()
    folder = tmp_path / "vault"
    folder.mkdir()
    repo_of(folder).ensure()
    write(folder / "mine.md", "a person's\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "mine")
    return folder


def repo_of(folder: Path, **settings: float) -> Repo:
    home = next(parent / "home" for parent in (folder, *folder.parents) if (parent / "home").is_dir())
    return Repo(folder, environment(home), **settings)  # type: ignore[arg-type] # only the two numbers are given


def committed(folder: Path) -> list[str]:
    """Paths of the last commit."""
    out = git(folder, "show", "-z", "--name-only", "--format=", "--no-renames", "HEAD")
    return sorted(name for name in out.split("\0") if name)


def clean(folder: Path) -> bool:
    return git(folder, "status", "--porcelain") == ""


# --- making the repository


def test_a_folder_becomes_a_repository_that_leaves_the_room_out(tmp_path: Path) -> None:
    environment(tmp_path / "home")
    vault = tmp_path / "vault"
    write(vault / ".vaultd/inbox/new/x", "secret")
    write(vault / "notes/a.md", "a\n")
    done = repo_of(vault).ensure()
    assert done.created
    assert done.enclosing is None
    assert [line.partition(":")[0] for line in done.added] == [".gitignore", ".gitattributes"]
    assert git(vault, "symbolic-ref", "HEAD") == "refs/heads/main"
    assert [c.path for c in repo_of(vault).changed()] == [".gitattributes", ".gitignore", "notes/a.md"]
    assert git(vault, "check-attr", "merge", "projects/x/log-2026-11.md").endswith(": union")
    again = repo_of(vault).ensure()
    assert (again.created, again.added) == (False, ())


def test_a_persons_repository_keeps_every_byte(tmp_path: Path) -> None:
    environment(tmp_path / "home")
    vault = init(tmp_path / "vault")
    for name in (".gitignore", ".gitattributes", ".git/info/exclude", ".git/info/attributes"):
        write(vault / name, "# mine, no newline at the end")
    write(vault / "staged.md", "s\n")
    git(vault, "add", "staged.md")
    before = {p: p.read_bytes() for p in vault.rglob("*") if p.is_file()}
    done = repo_of(vault).ensure()
    assert not done.created
    assert [line.partition(":")[0] for line in done.added] == [".git/info/exclude", ".git/info/attributes"]
    changed = {p.relative_to(vault).as_posix() for p, data in before.items() if p.read_bytes() != data}
    assert changed == {".git/info/exclude", ".git/info/attributes"}
    assert (vault / ".git/info/exclude").read_text() == "# mine, no newline at the end\n/.vaultd/\n.vaultd-tmp-*\n"
    write(vault / ".vaultd/x", "x")
    assert all(not c.path.startswith(".vaultd") for c in repo_of(vault).changed())
    assert run_git(vault, "check-ignore", "-q", ".vaultd/x").returncode == 0
    assert git(vault, "check-attr", "merge", "log-2026-11.md").endswith(": union")
    assert repo_of(vault).ensure().added == ()


def test_what_a_repository_says_already_is_left(tmp_path: Path) -> None:
    environment(tmp_path / "home")
    vault = init(tmp_path / "vault")
    write(vault / ".gitignore", ".*\n")
    write(vault / ".gitattributes", "*.md merge=union\n")
    assert repo_of(vault).ensure().added == ()


def test_a_vault_inside_a_bigger_repository_is_its_own(tmp_path: Path) -> None:
    environment(tmp_path / "home")
    outer = init(tmp_path / "outer")
    vault = outer / "notes/vault"
    write(vault / "a.md", "a\n")
    head = git(outer, "rev-parse", "HEAD")
    assert isinstance(repo_of(vault).commit(["a.md"], MESSAGE), Failed), "it must not go into the bigger one"
    done = repo_of(vault).ensure()
    assert done.enclosing == str(outer)
    assert isinstance(repo_of(vault).commit(["a.md"], MESSAGE), Committed)
    assert git(outer, "rev-parse", "HEAD") == head
    assert git(vault, "rev-parse", "--show-toplevel") == str(vault)


def test_a_broken_git_entry_is_said_and_left(tmp_path: Path) -> None:
    environment(tmp_path / "home")
    vault = tmp_path / "vault"
    write(vault / ".git", "gitdir: /nowhere/at/all\n")
    with pytest.raises(VaultdError, match="git"):
        repo_of(vault).ensure()
    assert (vault / ".git").read_text() == "gitdir: /nowhere/at/all\n"


def test_without_git_it_is_said(tmp_path: Path) -> None:
    repo = Repo(tmp_path, {"PATH": str(tmp_path)})
    with pytest.raises(VaultdError, match="not installed"):
        repo.ensure()
    assert (repo.changed(), repo.tracked_count(), repo.head()) == ([], 0, None)


# --- what is committed


def test_new_changed_and_deleted_pages_and_nothing_else(vault: Path) -> None:
    for name in ("a.md", "b.md", "other.md"):
        write(vault / name, f"{name}\n")
    first = repo_of(vault).commit(["a.md", "b.md"], MESSAGE)
    assert isinstance(first, Committed)
    assert first.sha == git(vault, "rev-parse", "HEAD") == repo_of(vault).head()
    assert repo_of(vault).head_time() == git(vault, "log", "-1", "--format=%cI")
    assert committed(vault) == ["a.md", "b.md"]
    write(vault / "a.md", "changed\n")
    (vault / "b.md").unlink()
    (vault / "mine.md").unlink()
    second = repo_of(vault).commit(["a.md", "b.md", "never-was.md"], MESSAGE)
    assert isinstance(second, Committed)
    assert second.paths == ("a.md", "b.md")
    assert committed(vault) == ["a.md", "b.md"]
    assert git(vault, "status", "--porcelain").splitlines() == [" D mine.md", "?? other.md"]
    assert git(vault, "log", "-1", "--format=%an <%ae> %cn <%ce> %s") == (
        "vaultd <vaultd@localhost> vaultd <vaultd@localhost> notes: one page"
    )


def test_the_first_commit_of_a_repository(tmp_path: Path) -> None:
    environment(tmp_path / "home")
    vault = tmp_path / "vault"
    write(vault / "empty.md", "")
    repo = repo_of(vault)
    repo.ensure()
    assert (repo.head(), repo.head_time(), repo.state().head, repo.state().blocked) == (None, None, None, None)
    assert isinstance(repo.commit(["empty.md"], MESSAGE), Committed)
    assert committed(vault) == ["empty.md"]


def test_nothing_to_commit_is_a_success(vault: Path) -> None:
    head = git(vault, "rev-parse", "HEAD")
    os.utime(vault / "mine.md")
    assert repo_of(vault).commit(["mine.md", "never-was.md"], MESSAGE) == Nothing()
    assert repo_of(vault).commit([], MESSAGE) == Nothing()
    assert git(vault, "rev-parse", "HEAD") == head


@pytest.mark.parametrize(
    "name",
    [
        b":(top)x.md",
        b"-A",
        b"*.md",
        b"[a-z].md",
        b"sp ace.md",
        b"new\nline.md",
        b'q"uote\\.md',
        "Café 漢字.md".encode(),
        b"not-utf8-\xff\xfe.md",
        b"!x.md",
        b"deep/er/x.md",
    ],
)
def test_any_name_is_only_itself(vault: Path, name: bytes) -> None:
    path = os.fsdecode(name)
    for other in ("x.md", "a.md", "z.md"):
        write(vault / other, "not asked for\n")
    write(vault / path, "page\n")
    assert isinstance(repo_of(vault).commit([path], MESSAGE), Committed)
    assert committed(vault) == [path]
    (vault / path).unlink()
    assert Change("D", path) in repo_of(vault).changed()
    assert isinstance(repo_of(vault).commit([path], MESSAGE), Committed)
    assert committed(vault) == [path]


def test_a_thousand_long_names_in_one_commit(vault: Path) -> None:
    names = [f"{'folder' * 20}/{number:04}.md" for number in range(1000)]
    for name in names:
        write(vault / name, f"{name}\n")
    done = repo_of(vault).commit(names, MESSAGE)
    assert isinstance(done, Committed)
    assert committed(vault) == names
    assert clean(vault)


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../x", "a/../b", ".git/config", "sub/.GIT/x", ".vaultd/x", "a\0b", "a//b"]
)
def test_paths_that_lead_elsewhere_are_refused(vault: Path, path: str) -> None:
    with pytest.raises(RefusedError):
        repo_of(vault).commit([path], MESSAGE)


def test_the_message_is_kept_as_it_is(vault: Path) -> None:
    write(vault / "a.md", "a\n")
    git(vault, "config", "commit.cleanup", "scissors")
    repo_of(vault).commit(["a.md"], redact("Titel: ž\n\n# not a comment\n"))
    assert git(vault, "log", "-1", "--format=%B").rstrip() == "Titel: ž\n\n# not a comment"


def test_ignored_pages_are_told_and_not_committed(vault: Path) -> None:
    write(vault / ".gitignore", "/.vaultd/\nprivate/\n")
    write(vault / "private/a.md", "a\n")
    write(vault / "b.md", "b\n")
    done = repo_of(vault).commit(["private/a.md", "b.md"], MESSAGE)
    assert isinstance(done, Committed)
    assert (done.paths, done.ignored) == (("b.md",), ("private/a.md",))
    assert repo_of(vault).commit(["private/a.md"], MESSAGE) == Nothing(ignored=("private/a.md",))


def test_a_repository_inside_the_vault_is_left_alone(vault: Path) -> None:
    inner = init(vault / "clone")
    write(inner / "x.md", "x\n")
    assert all(not change.path.startswith("clone") for change in repo_of(vault).changed())
    assert repo_of(vault).commit(["clone/x.md"], MESSAGE) == Nothing()
    assert git(inner, "status", "--porcelain") == "?? x.md"


def test_changed_tells_what_differs(vault: Path) -> None:
    for name in ("gone.md", "staged.md", "both.md", "type.md"):
        write(vault / name, "1\n")
    git(vault, "add", "-A")
    git(vault, "commit", "-q", "-m", "more")
    (vault / "gone.md").unlink()
    write(vault / "mine.md", "changed\n")
    write(vault / "new.md", "new\n")
    write(vault / "staged.md", "2\n")
    write(vault / "both.md", "2\n")
    git(vault, "add", "staged.md", "both.md")
    write(vault / "both.md", "3\n")
    write(vault / "intended.md", "i\n")
    git(vault, "add", "-N", "intended.md")
    (vault / "type.md").unlink()
    (vault / "type.md").symlink_to("mine.md")
    write(vault / ".vaultd/x.md", "x\n")
    repo = repo_of(vault)
    assert sorted(repo.changed(), key=lambda c: c.path) == [
        Change("M", "both.md", staged=True),
        Change("D", "gone.md"),
        Change("A", "intended.md"),
        Change("M", "mine.md"),
        Change("A", "new.md", known=False),
        Change("M", "staged.md", staged=True),
        Change("T", "type.md"),
    ]
    assert repo.staged() == {"both.md", "staged.md"}
    assert repo.tracked_count() == 6


@given(st.binary(min_size=1, max_size=40).filter(lambda name: b"\0" not in name and not name.endswith(b"/")))
def test_a_status_gives_names_back_byte_for_byte(name: bytes) -> None:
    oid = b"1" * 40
    out = b"\0".join(
        [
            b"# branch.oid " + oid,
            b"# branch.head topic/x",
            b"1 .M N... 100644 100644 100644 " + oid + b" " + oid + b" " + name,
            b"1 MD N... 100644 100644 000000 " + oid + b" " + oid + b" d" + name,
            b"1 .M SC.. 160000 160000 160000 " + oid + b" " + oid + b" " + name,
            b"u UU N... 100644 100644 100644 100644 " + oid + b" " + oid + b" " + oid + b" u" + name,
            b"? n" + name,
            b"? d" + name,
            b"? " + name + b"/",
            b"",
        ]
    )
    status = parse_status(out)
    assert (status.head, status.branch) == (oid.decode(), "topic/x")
    assert [(c.status, c.staged, os.fsencode(c.path)) for c in status.changes] == [
        ("M", False, name),
        ("D", True, b"d" + name),
        ("U", True, b"u" + name),
        ("A", False, b"n" + name),
    ]


# --- beside a person


def test_staged_changes_survive_and_are_left_out(vault: Path) -> None:
    write(vault / "staged.md", "staged\n")
    write(vault / "mine.md", "half\n")
    git(vault, "add", "staged.md", "mine.md")
    write(vault / "mine.md", "whole\n")
    git(vault, "mv", "-f", "staged.md", "renamed.md")
    write(vault / "page.md", "page\n")
    before = index_entries(vault)
    done = repo_of(vault).commit(["mine.md", "page.md", "renamed.md"], MESSAGE)
    assert isinstance(done, Committed)
    assert (done.paths, done.staged) == (("page.md",), ("mine.md", "renamed.md"))
    assert committed(vault) == ["page.md"]
    after = [line for line in index_entries(vault).splitlines() if not line.endswith("page.md")]
    assert after == before.splitlines()
    assert git(vault, "diff", "--cached", "--name-only").splitlines() == ["mine.md", "renamed.md"]
    assert repo_of(vault).commit(["mine.md"], MESSAGE) == Nothing(staged=("mine.md",))
    git(vault, "commit", "-q", "-m", "a person's own")
    assert committed(vault) == ["mine.md", "renamed.md"]
    assert git(vault, "show", "HEAD:mine.md") == "half"


def _conflict(vault: Path) -> None:
    git(vault, "checkout", "-q", "-b", "other")
    write(vault / "mine.md", "theirs\n")
    git(vault, "commit", "-q", "-am", "theirs")
    git(vault, "checkout", "-q", "main")
    write(vault / "mine.md", "ours\n")
    git(vault, "commit", "-q", "-am", "ours")


def _start(vault: Path, what: str) -> None:
    """Bring the repository into the middle of something."""
    _conflict(vault)
    match what:
        case "merge":
            run_git(vault, "merge", "other")
        case "merge without conflict":
            git(vault, "merge", "-q", "--no-commit", "-s", "ours", "other")
        case "rebase":
            run_git(vault, "rebase", "other")
        case "rebase by mail":
            run_git(vault, "rebase", "--apply", "other")
        case "cherry-pick":
            run_git(vault, "cherry-pick", "other")
        case "revert":
            run_git(vault, "revert", "--no-edit", "HEAD~1")
        case "bisect":
            git(vault, "bisect", "start")
        case "detached":
            git(vault, "checkout", "-q", "--detach")
        case "conflict":
            write(vault / "mine.md", "stashed\n")
            git(vault, "stash", "-q")
            write(vault / "mine.md", "and again\n")
            git(vault, "commit", "-q", "-am", "again")
            run_git(vault, "stash", "pop")


@pytest.mark.parametrize(
    "what",
    [
        "merge",
        "merge without conflict",
        "rebase",
        "rebase by mail",
        "cherry-pick",
        "revert",
        "bisect",
        "detached",
        "conflict",
    ],
)
def test_in_the_middle_of_something_nothing_is_committed(vault: Path, what: str) -> None:
    _start(vault, what)
    write(vault / "page.md", "page\n")
    head, index, status = git(vault, "rev-parse", "HEAD"), index_entries(vault), git(vault, "status", "--porcelain")
    state = repo_of(vault).state()
    outcome = repo_of(vault).commit(["page.md"], MESSAGE)
    assert isinstance(outcome, Blocked), outcome
    assert state.blocked, "state() must say so before anybody tries"
    word = what.partition(" ")[0] if what != "revert" else "revert"
    assert word in state.blocked
    assert (git(vault, "rev-parse", "HEAD"), index_entries(vault)) == (head, index)
    assert git(vault, "status", "--porcelain") == status


def test_a_signer_that_never_answers_is_not_asked(vault: Path, tmp_path: Path) -> None:
    signer = write(tmp_path / "signer", f"#!/bin/sh\ntouch {tmp_path}/asked\nexec sleep 1000\n")
    signer.chmod(0o755)
    for key, value in {"commit.gpgsign": "true", "gpg.program": str(signer), "log.showSignature": "true"}.items():
        git(vault, "config", key, value)
    write(vault / "page.md", "page\n")
    assert isinstance(repo_of(vault).commit(["page.md"], MESSAGE), Committed)
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize(
    "hook", ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "reference-transaction"]
)
def test_a_persons_hooks_are_not_run(vault: Path, tmp_path: Path, hook: str) -> None:
    for folder in (vault / ".git/hooks", tmp_path / "own-hooks"):
        write(folder / hook, f"#!/bin/sh\necho >>{tmp_path}/ran\nexit 1\n").chmod(0o755)
    git(vault, "config", "core.hooksPath", str(tmp_path / "own-hooks"))
    write(vault / "page.md", "page\n")
    assert isinstance(repo_of(vault).commit(["page.md"], MESSAGE), Committed)
    assert not (tmp_path / "ran").exists()


def test_filters_and_line_ends_of_the_person_apply(vault: Path) -> None:
    git(vault, "config", "filter.upper.clean", "tr a-z A-Z")
    git(vault, "config", "core.autocrlf", "true")
    git(vault, "config", "core.safecrlf", "true")
    write(vault / ".git/info/attributes", "secret.md filter=upper\n")
    write(vault / "secret.md", "plain text\n")
    write(vault / "crlf.md", b"one\r\ntwo\r\n")
    write(vault / "lf.md", b"one\ntwo\n")
    assert isinstance(repo_of(vault).commit(["secret.md", "crlf.md", "lf.md"], MESSAGE), Committed)
    blobs = {name: run_git(vault, "cat-file", "blob", f"HEAD:{name}").stdout for name in committed(vault)}
    assert blobs == {"secret.md": b"PLAIN TEXT\n", "crlf.md": b"one\ntwo\n", "lf.md": b"one\ntwo\n"}
    assert (vault / "lf.md").read_bytes() == b"one\ntwo\n"
    assert clean(vault)


def test_the_environment_of_a_git_around_it_counts_for_nothing(vault: Path, tmp_path: Path) -> None:
    other = init(tmp_path / "other")
    entries, head = index_entries(other), git(other, "rev-parse", "HEAD")
    around = {
        **environment(tmp_path / "home"),
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / ".git/index"),
        "GIT_PREFIX": "notes/",
        "GIT_AUTHOR_DATE": "2001-01-01T00:00:00",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.bare",
        "GIT_CONFIG_VALUE_0": "true",
        "GIT_QUARANTINE_PATH": str(tmp_path),
    }
    write(vault / "page.md", "page\n")
    assert isinstance(Repo(vault, around).commit(["page.md"], MESSAGE), Committed)
    assert (index_entries(other), git(other, "rev-parse", "HEAD")) == (entries, head)
    assert git(vault, "log", "-1", "--format=%ad", "--date=format:%Y") != "2001"


@pytest.mark.skipif(not ROOT, reason="only root can give a folder to somebody else")
def test_a_vault_of_another_user_is_said_to_be_one(vault: Path, tmp_path: Path) -> None:
    os.chown(vault, 65534, 65534)
    os.chown(vault / ".git", 65534, 65534)
    write(vault / "page.md", "page\n")
    blocked = repo_of(vault).state().blocked
    assert blocked is not None
    assert "another user" in blocked
    assert repo_of(vault).changed() == []
    assert isinstance(repo_of(vault).commit(["page.md"], MESSAGE), Failed)
    write(tmp_path / "home/.gitconfig", f"[safe]\n\tdirectory = {vault}\n")
    assert isinstance(repo_of(vault).commit(["page.md"], MESSAGE), Committed)


@pytest.mark.parametrize("kind", ["worktree", "submodule", "sha256"])
def test_a_vault_may_be_any_kind_of_work_tree(tmp_path: Path, kind: str) -> None:
    environment(tmp_path / "home")
    vault = tmp_path / "vault"
    if kind == "worktree":
        git(init(tmp_path / "main"), "worktree", "add", "-q", "-b", "notes", str(vault))
    elif kind == "submodule":
        git(init(tmp_path / "main"), "submodule", "--quiet", "add", str(init(tmp_path / "source")), "vault")
        vault = tmp_path / "main/vault"
    else:
        vault.mkdir()
        git(vault, "init", "-q", "--object-format=sha256")
    repo = repo_of(vault)
    assert not repo.ensure().created
    write(vault / "a.md", "a\n")
    assert isinstance(repo.commit(["a.md"], MESSAGE), Committed)
    assert committed(vault) == ["a.md"]
    assert repo.state().blocked is None


# --- locks, killed and slow gits, others who commit


def test_a_lock_that_goes_away_is_waited_for(vault: Path) -> None:
    lock = write(vault / ".git/index.lock", "")
    write(vault / "page.md", "page\n")
    state = repo_of(vault).state()
    assert state.blocked is not None
    assert "index.lock" in state.blocked
    timer = threading.Timer(0.4, lock.unlink)
    timer.start()
    assert isinstance(repo_of(vault).commit(["page.md"], MESSAGE), Committed)
    timer.join()


def test_a_lock_that_stays_fails_in_time_and_is_never_broken(vault: Path) -> None:
    lock = write(vault / ".git/index.lock", "theirs")
    write(vault / "page.md", "page\n")
    began = time.monotonic()
    outcome = repo_of(vault, patience=0.5).commit(["page.md"], MESSAGE)
    assert isinstance(outcome, Failed)
    assert "index.lock" in outcome.reason
    assert time.monotonic() - began < 5
    assert lock.read_text() == "theirs"
    lock.unlink()
    assert git(vault, "status", "--porcelain") == "?? page.md"


@pytest.fixture
def living_git(vault: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A git program of the person's at work in the vault."""
    process = subprocess.Popen(["git", "cat-file", "--batch"], cwd=vault, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    yield process
    process.communicate()


def test_an_old_lock_of_a_living_git_is_left(vault: Path, living_git: subprocess.Popen[bytes]) -> None:
    lock = write(vault / ".git/index.lock", "")
    os.utime(lock, (time.time() - 3600,) * 2)
    write(vault / "page.md", "page\n")
    assert living_git.poll() is None
    assert isinstance(repo_of(vault, patience=0.1).commit(["page.md"], MESSAGE), Failed)
    assert lock.exists()


def test_an_old_lock_that_a_process_has_open_is_left(vault: Path) -> None:
    lock = write(vault / ".git/index.lock", "")
    os.utime(lock, (time.time() - 3600,) * 2)
    write(vault / "page.md", "page\n")
    with lock.open("rb") as file:
        holder = subprocess.Popen(["sleep", "1000"], stdin=file)
    try:
        assert isinstance(repo_of(vault, patience=0.1).commit(["page.md"], MESSAGE), Failed)
        assert lock.exists()
    finally:
        holder.kill()
        holder.wait()


def test_a_commit_of_ours_at_work_is_no_obstacle_and_keeps_its_lock(vault: Path) -> None:
    git(vault, "commit", "-q", "--allow-empty", "-m", "first")
    git(vault, "reset", "-q")  # there is an index
    write(vault / "page.md", "page\n")
    lock = IndexLock(f"{vault}/.git")
    assert lock.take()
    try:
        os.utime(vault / ".git/index.lock", (time.time() - 3600,) * 2)
        assert repo_of(vault).state().blocked is None
        assert isinstance(repo_of(vault, patience=0.1).commit(["page.md"], MESSAGE), Failed)
        assert (vault / ".git/index.lock").exists()
    finally:
        lock.release()
    assert isinstance(repo_of(vault).commit(["page.md"], MESSAGE), Committed)


def test_a_lock_of_ours_whose_owner_died_is_in_nobodys_way(vault: Path) -> None:
    write(vault / "page.md", "page\n")
    script = "import os, sys\nfrom vaultd.store.gitindex import IndexLock\nIndexLock(sys.argv[1]).take()\nos._exit(0)\n"
    subprocess.run([sys.executable, "-c", script, str(vault / ".git")], check=True)
    left = (vault / ".git/index.lock").read_bytes()
    assert repo_of(vault).state().blocked is None
    assert isinstance(repo_of(vault, patience=0).commit(["page.md"], MESSAGE), Committed)
    assert not (vault / ".git/index.lock").exists()
    write(vault / "page.md", "another\n")
    (vault / ".git/index.lock").write_bytes(left.replace(b"-", b"0"))  # of another boot
    assert isinstance(repo_of(vault, patience=0).commit(["page.md"], MESSAGE), Failed)


_DIES_BEFORE_PLACING = """
import os, sys
from pathlib import Path
from vaultd.core.sanitize import redact
from vaultd.store import gitindex
from vaultd.store.git import Repo
gitindex.IndexLock.put_in_place = lambda self: os._exit(9)
Repo(Path(sys.argv[1]), dict(os.environ)).commit(["page.md"], redact("m"))
"""


def test_a_lock_that_a_person_removed_after_a_crash_leaves_no_index_behind_the_commit(vault: Path) -> None:
    write(vault / "page.md", "page\n")
    assert isinstance(repo_of(vault).commit(["page.md"], MESSAGE), Committed)
    write(vault / "page.md", "another\n")
    env = environment(vault.parent / "home") | {"PYTHONPATH": str(Path.cwd())}
    assert subprocess.run([sys.executable, "-c", _DIES_BEFORE_PLACING, str(vault)], env=env).returncode == 9
    (vault / ".git/index.lock").unlink()  # as git tells people to
    assert git(vault, "diff", "--cached", "--name-only") != ""
    repo_of(vault).clear_locks()
    assert git(vault, "status", "--porcelain") == ""
    assert list((vault / ".git").glob("vaultd-index*")) == []


def test_a_lock_that_is_taken_away_meanwhile_is_nobodys(vault: Path) -> None:
    write(vault / "page.md", "page\n")
    lock = IndexLock(f"{vault}/.git")
    assert lock.take()
    (vault / ".git/index.lock").unlink()
    other = write(vault / ".git/index.lock", "of somebody else")
    assert not lock.put_in_place()
    lock.release()
    assert other.read_text() == "of somebody else"


def test_a_lock_is_seen_held_while_its_owner_opens_and_closes_other_files(vault: Path) -> None:
    lock, done = IndexLock(f"{vault}/.git"), threading.Event()

    def churn() -> None:
        while not done.is_set():
            files = [os.open("/dev/null", os.O_RDONLY) for _ in range(20)]
            for file in files:
                os.close(file)

    busy = threading.Thread(target=churn)
    busy.start()
    try:
        assert lock.take()
        for _ in range(100):
            assert gitlocks.clear_stale([vault / ".git/index.lock"], str(vault), time.time(), 0) == []
    finally:
        done.set()
        busy.join()
        lock.release()


def test_a_git_folder_that_cannot_be_written_is_a_failure_in_words(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(vault / "page.md", "page\n")
    real = os.open

    def refused(path: str | Path, flags: int, mode: int = 0o777) -> int:
        if os.fspath(path).endswith("index.lock"):
            raise OSError(errno.EROFS, "Read-only file system")
        return real(path, flags, mode)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refused)
        outcome = repo_of(vault).commit(["page.md"], MESSAGE)
    assert isinstance(outcome, Failed) and "Read-only" in outcome.reason
    assert isinstance(repo_of(vault).commit(["page.md"], MESSAGE), Committed)


def test_a_person_whose_message_is_in_an_editor_is_let_finish(vault: Path, tmp_path: Path) -> None:
    write(vault / "own.md", "own\n")
    git(vault, "add", "own.md")
    editor = write(tmp_path / "editor", f'#!/bin/sh\necho mine >"$1"; touch {tmp_path}/open\nread x <{tmp_path}/go\n')
    editor.chmod(0o755)
    os.mkfifo(tmp_path / "go")
    env = environment(vault.parent / "home") | {"GIT_EDITOR": str(editor)}
    person = subprocess.Popen(["git", "commit", "-q"], cwd=vault, env=env)
    until((tmp_path / "open").exists)
    write(vault / "page.md", "page\n")
    outcome = repo_of(vault, patience=0.1).commit(["page.md"], MESSAGE)
    blocked = repo_of(vault).state().blocked
    (tmp_path / "go").write_text("\n")
    assert person.wait(20) == 0
    assert isinstance(outcome, Failed) and "`git commit`" in outcome.reason and blocked == outcome.reason
    assert git(vault, "log", "-1", "--format=%s").strip() == "mine"
    assert isinstance(repo_of(vault).commit(["page.md"], MESSAGE), Committed)


def test_the_message_of_a_squashed_merge_is_left_for_the_person(vault: Path) -> None:
    git(vault, "commit", "-q", "--allow-empty", "-m", "first")
    git(vault, "checkout", "-q", "-b", "topic")
    write(vault / "topic.md", "topic\n")
    git(vault, "add", "topic.md")
    git(vault, "commit", "-q", "-m", "topic")
    git(vault, "checkout", "-q", "main")
    git(vault, "merge", "-q", "--squash", "topic")
    write(vault / "page.md", "page\n")
    assert isinstance(repo_of(vault).commit(["page.md"], MESSAGE), Blocked)
    assert (vault / ".git/SQUASH_MSG").exists()
    git(vault, "commit", "-q", "--no-edit")
    assert isinstance(repo_of(vault).commit(["page.md"], MESSAGE), Committed)


@pytest.mark.parametrize("name", ["index.lock", "HEAD.lock", "refs/heads/main.lock"])
def test_an_old_lock_of_a_dead_git_is_removed(vault: Path, name: str) -> None:
    lock = write(vault / ".git" / name, "")
    litter = write(vault / ".git/next-index-1.lock", "")
    for path in (lock, litter):
        os.utime(path, (time.time() - 61,) * 2)
    write(vault / "page.md", "page\n")
    assert repo_of(vault).state().blocked is None
    assert isinstance(repo_of(vault).commit(["page.md"], MESSAGE), Committed)
    assert not lock.exists()
    assert not litter.exists()


def _hanging_filter(vault: Path, tmp_path: Path) -> Path:
    """Make git hang when it looks into page.md, until the given file is there; the file that says that it does."""
    script = f"#!/bin/sh\necho $$ >>{tmp_path}/hanging\nwhile test ! -e {tmp_path}/go; do sleep 0.05; done\nexec cat\n"
    write(tmp_path / "filter", script).chmod(0o755)
    git(vault, "config", "filter.slow.clean", str(tmp_path / "filter"))
    write(vault / ".git/info/attributes", "page.md filter=slow\n")
    write(vault / "page.md", "page\n")
    return tmp_path / "hanging"


def _pids(hanging: Path) -> list[int]:
    return [int(pid) for pid in hanging.read_text().split()] if hanging.exists() else []


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _person_commits_only_their_own(vault: Path) -> None:
    write(vault / "own.md", "own\n")
    git(vault, "add", "own.md")
    git(vault, "commit", "-q", "-m", "own")
    assert committed(vault) == ["own.md"]


def test_a_git_that_does_not_end_is_stopped_with_all_it_started(vault: Path, tmp_path: Path) -> None:
    hanging = _hanging_filter(vault, tmp_path)
    outcome = repo_of(vault, timeout=1.0).commit(["page.md"], MESSAGE)
    assert isinstance(outcome, Failed)
    assert "did not end in time" in outcome.reason
    assert _pids(hanging), "the filter must have been reached"
    assert not any(_alive(pid) for pid in _pids(hanging))
    assert list((vault / ".git").glob("**/*.lock")) == []
    assert git(vault, "diff", "--cached", "--name-only") == ""
    assert "page.md" not in index_entries(vault)
    _person_commits_only_their_own(vault)
    (tmp_path / "go").touch()
    assert isinstance(repo_of(vault).commit(["page.md"], MESSAGE), Committed)
    assert clean(vault)


def test_a_git_killed_in_the_middle_leaves_nothing_staged(vault: Path, tmp_path: Path) -> None:
    hanging = _hanging_filter(vault, tmp_path)
    outcomes: list[object] = []
    worker = threading.Thread(target=lambda: outcomes.append(repo_of(vault).commit(["page.md"], MESSAGE)))
    worker.start()
    pid = until(lambda: _pids(hanging), 60)[0]
    os.killpg(os.getpgid(pid), signal.SIGKILL)
    worker.join(60)
    assert isinstance(outcomes[0], Failed)
    assert "page.md" not in index_entries(vault)
    _person_commits_only_their_own(vault)
    (tmp_path / "go").touch()
    assert isinstance(repo_of(vault).commit(["page.md"], MESSAGE), Committed)
    assert committed(vault) == ["page.md"]


_COMMIT_FOREVER = """
import os, sys
from pathlib import Path
from vaultd.core.sanitize import redact
from vaultd.store.git import Repo
Repo(Path(sys.argv[1]), dict(os.environ)).commit(["page.md"], redact("page"))
"""


def test_a_whole_process_killed_in_the_middle(vault: Path, tmp_path: Path) -> None:
    hanging = _hanging_filter(vault, tmp_path)
    child = subprocess.Popen(
        [sys.executable, "-c", _COMMIT_FOREVER, str(vault)],
        env=environment(tmp_path / "home") | {"PYTHONPATH": str(Path.cwd())},
    )
    pid = until(lambda: _pids(hanging), 60)[0]
    child.kill()
    os.killpg(os.getpgid(pid), signal.SIGKILL)
    child.wait()
    for lock in (vault / ".git").glob("**/*.lock"):
        os.utime(lock, (time.time() - 61,) * 2)
    (tmp_path / "go").touch()
    assert isinstance(repo_of(vault).commit(["mine.md"], MESSAGE), Nothing)
    _person_commits_only_their_own(vault)
    assert isinstance(repo_of(vault).commit(["page.md"], MESSAGE), Committed)
    assert committed(vault) == ["page.md"]
    assert clean(vault)


def test_an_index_that_lags_behind_our_own_commit_is_brought_up(vault: Path) -> None:
    """The state that git leaves when it dies between moving the branch and putting the new index in place."""
    write(vault / "old.md", "1\n")
    repo_of(vault).commit(["old.md"], MESSAGE)
    write(vault / "old.md", "2\n")
    write(vault / "new.md", "new\n")
    write(vault / "staged.md", "theirs\n")
    git(vault, "add", "staged.md")
    git(vault, "add", "-N", "new.md")
    index = (vault / ".git/index").read_bytes()
    assert isinstance(repo_of(vault).commit(["old.md", "new.md"], MESSAGE), Committed)
    write(vault / ".git/index", index)
    assert git(vault, "diff", "--cached", "--name-only").splitlines() == ["new.md", "old.md", "staged.md"]
    os.utime(write(vault / ".git/index.lock", ""), (time.time() - 61,) * 2)
    repo_of(vault).commit(["mine.md"], MESSAGE)
    assert git(vault, "diff", "--cached", "--name-only").splitlines() == ["staged.md"]
    git(vault, "commit", "-q", "-m", "own")
    assert committed(vault) == ["staged.md"]
    assert clean(vault)


_DIES_CATCHING_UP = """
import os, sys
from pathlib import Path
from vaultd.core.sanitize import redact
from vaultd.store import git, gitindex
real, left = git.run, int(sys.argv[2])
def run(args, *rest, **more):
    global left
    left -= 1
    return real(args, *rest, **more) if left >= 0 else os._exit(9)
git.run = run
git.Repo(Path(sys.argv[1]), dict(os.environ)).clear_locks()
"""


def test_a_death_while_the_index_is_brought_up_is_made_good_by_the_next(vault: Path) -> None:
    write(vault / "page.md", "page\n")
    assert isinstance(repo_of(vault).commit(["page.md"], MESSAGE), Committed)
    write(vault / "page.md", "another\n")
    env = environment(vault.parent / "home") | {"PYTHONPATH": str(Path.cwd())}
    dies = [sys.executable, "-c", _DIES_BEFORE_PLACING, str(vault)]
    assert subprocess.run(dies, env=env).returncode == 9
    codes = []
    for calls in range(20):
        dies = [sys.executable, "-c", _DIES_CATCHING_UP, str(vault), str(calls)]
        codes.append(subprocess.run(dies, env=env).returncode)
        if codes[-1] == 0:
            break
        assert git(vault, "diff", "--cached", "--name-only") != ""
    assert len(codes) > 5
    assert set(codes[:-1]) == {9}
    assert codes[-1] == 0
    assert git(vault, "status", "--porcelain") == ""
    assert list((vault / ".git").glob("*.lock")) + list((vault / ".git").glob("vaultd-index*")) == []


def test_a_death_before_the_first_commit_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    vault = init(tmp_path / "vault", commit=False)
    write(vault / "page.md", "page\n")
    assert not (vault / ".git/index").exists()
    write(vault / ".git/vaultd-index", "")
    assert isinstance(repo_of(vault).commit(["page.md"], MESSAGE), Committed)
    assert committed(vault) == ["page.md"]
    assert clean(vault)


def test_a_commit_that_fails_after_it_was_made_leaves_nothing_staged(vault: Path, tmp_path: Path) -> None:
    """As git does when the disk is full: the branch has moved, the new index could not be written."""
    write(vault / "page.md", "page\n")
    shim, real = tmp_path / "bin/git", shutil.which("git")
    write(
        shim,
        f'#!/bin/sh\ncase " $* " in *" commit "*) cp "$GIT_INDEX_FILE" "{tmp_path}/kept"; {real} "$@"\n'
        f'cp "{tmp_path}/kept" "$GIT_INDEX_FILE"; echo "fatal: unable to write new index file" >&2; exit 128 ;; esac\n'
        f'exec {real} "$@"\n',
    )
    shim.chmod(0o755)
    env = environment(tmp_path / "home")
    repo = Repo(vault, env | {"PATH": f"{shim.parent}:{env['PATH']}"})
    assert isinstance(repo.commit(["page.md"], MESSAGE), Failed)
    assert committed(vault) == ["page.md"]
    assert git(vault, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("rm -f page.md", ""),
        ("mv page.md moved.md", "?? moved.md"),
        ("test -e done || { echo more >> page.md; : > done; }", "?? done"),
    ],
)
def test_a_page_that_moves_under_gits_hands_is_not_taken_for_staged(vault: Path, command: str, shown: str) -> None:
    """git reads the paths of a partial commit twice, for its index and for the commit."""
    git(vault, "config", "filter.busy.clean", f"cat; {command}")
    write(vault / ".git/info/attributes", "page.md filter=busy\n")
    write(vault / "page.md", "page\n")
    write(vault / "other.md", "other\n")
    assert isinstance(repo_of(vault).commit(["page.md", "other.md"], MESSAGE), Committed)
    git(vault, "config", "filter.busy.clean", "cat")
    assert git(vault, "diff", "--cached", "--name-only") == ""
    assert isinstance(repo_of(vault).commit(["page.md", "other.md"], MESSAGE), Committed | Nothing)
    assert git(vault, "status", "--porcelain").strip() == shown


def test_a_background_process_of_a_filter_holds_nothing_up(vault: Path, tmp_path: Path) -> None:
    script = f"#!/bin/sh\nsleep 1000 >/dev/null &\necho $! >>{tmp_path}/left\nexec cat\n"
    write(tmp_path / "filter", script).chmod(0o755)
    git(vault, "config", "filter.slow.clean", str(tmp_path / "filter"))
    write(vault / ".git/info/attributes", "page.md filter=slow\n")
    write(vault / "page.md", "page\n")
    ran = run(["hash-object", "--path=page.md", "page.md"], environment(tmp_path / "home"), cwd=str(vault), timeout=5)
    try:
        assert ran.ok, "git must not be waited for longer than it runs"
    finally:
        for pid in (tmp_path / "left").read_text().split():
            os.kill(int(pid), signal.SIGKILL)


_COMMIT_MANY = """
import os, sys
from pathlib import Path
from vaultd.core.sanitize import redact
from vaultd.store.git import Committed, Repo
root, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for number in range(count):
    path = f"{name}/{number}.md"
    (root / path).write_text(path)
    outcome = Repo(root, dict(os.environ), patience=60).commit([path], redact(path))
    assert isinstance(outcome, Committed), outcome
"""


def _commit_at_once(vault: Path, count: int) -> None:
    env = environment(vault.parent / "home") | {"PYTHONPATH": str(Path.cwd())}
    for name in ("one", "two", "person"):
        (vault / name).mkdir()
    writers = [
        subprocess.Popen([sys.executable, "-c", _COMMIT_MANY, str(vault), name, str(count)], env=env)
        for name in ("one", "two")
    ]
    for number in range(count):
        path = f"person/{number}.md"
        write(vault / path, path)
        until(lambda path=path: run_git(vault, "add", path).returncode == 0, 60, 0.05)  # type: ignore[misc] # bound now
        until(lambda: run_git(vault, "commit", "-q", "-m", "own").returncode == 0, 60, 0.05)
    assert [writer.wait(120) for writer in writers] == [0, 0]
    assert clean(vault)
    subjects = git(vault, "log", "--format=%an %s").splitlines()
    assert len(subjects) == 3 * count + 1
    assert git(vault, "ls-tree", "-r", "--name-only", "HEAD").count("/") == 3 * count


def test_two_of_ours_and_a_person_commit_at_once(vault: Path) -> None:
    _commit_at_once(vault, 4)


@pytest.mark.slow
def test_many_commits_at_once(vault: Path) -> None:
    _commit_at_once(vault, 60)


def test_nothing_that_a_person_stages_meanwhile_is_lost(vault: Path) -> None:
    """`git commit` itself reads the index before it locks it, and writes back what it read."""
    env = environment(vault.parent / "home") | {"PYTHONPATH": str(Path.cwd())}
    for name in ("one", "two", "person"):
        (vault / name).mkdir()
    writers = [
        subprocess.Popen([sys.executable, "-c", _COMMIT_MANY, str(vault), name, "15"], env=env)
        for name in ("one", "two")
    ]
    staged: list[str] = []
    try:
        while any(writer.poll() is None for writer in writers):
            staged.append(f"person/{len(staged)}.md")
            write(vault / staged[-1], staged[-1])
            until(lambda: run_git(vault, "add", staged[-1]).returncode == 0, 60, 0.005)
    finally:
        assert [writer.wait(120) for writer in writers] == [0, 0]
    assert len(staged) > 10
    assert sorted(git(vault, "diff", "--cached", "--name-only").splitlines()) == sorted(staged)


def test_failures_are_told_in_words() -> None:
    assert "not installed" in words(Ran(127, b"", ""), "git status")
    assert words(Ran(128, b"", "hint: try\nfatal: bad object\n"), "git log") == "git log failed: fatal: bad object"
    assert "signal 9" in words(Ran(-9, b"", ""), "git commit")
