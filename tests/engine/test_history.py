"""Commits beside a person who edits, stages, merges, rebases and signs."""

from __future__ import annotations

import subprocess

import pytest

from tests.scratch import Scratch, git
from vaultd.engine.history import EDIT_QUIET_S, History, is_ours
from vaultd.engine.passes import Passes
from vaultd.engine.stores import Stores


def worked(scratch: Scratch) -> Stores:
    """A vault with one session in it, taken in and committed."""
    stores, cwd = scratch.init(), scratch.checkout()
    scratch.session(cwd)
    scratch.run("ingest", check=True)
    assert git("status", "--porcelain", cwd=scratch.vault) == ""
    return stores


def subject(scratch: Scratch) -> str:
    return git("log", "-1", "--format=%s", cwd=scratch.vault).strip()


def test_our_commits_name_what_they_hold(scratch: Scratch) -> None:
    worked(scratch)
    assert subject(scratch).startswith("session: ")
    assert git("log", "-1", "--format=%an <%ae>", cwd=scratch.vault).strip() == "vaultd <vaultd@localhost>"


def test_edits_are_committed_after_a_quiet_minute(scratch: Scratch) -> None:
    stores = worked(scratch)
    history = History(stores)
    (scratch.vault / "Idea.md").write_text("# An idea\n")
    session = next(scratch.vault.glob("*/*/sessions/*.md"))
    session.write_text(session.read_text("utf-8") + "\nMy remark.\n", "utf-8")
    edited = session.stat().st_mtime
    assert history.record_edits(edited + 1).commits == []
    assert history.record_edits(edited + EDIT_QUIET_S - 1).commits == []
    (scratch.vault / "Idea.md").write_text("# A better idea\n")
    later = (scratch.vault / "Idea.md").stat().st_mtime
    assert history.record_edits(later + EDIT_QUIET_S - 1).commits == []
    assert len(history.record_edits(later + EDIT_QUIET_S + 1).commits) == 1
    assert subject(scratch).startswith("edit: ") and "Idea" in subject(scratch)
    (scratch.vault / "Idea.md").unlink()
    assert history.record_edits(later + 200).commits == []
    assert len(history.record_edits(later + 200 + EDIT_QUIET_S).commits) == 1
    assert subject(scratch) == "delete: Idea"
    assert git("status", "--porcelain", cwd=scratch.vault) == ""


def test_edits_are_left_when_the_person_wants_it(scratch: Scratch) -> None:
    worked(scratch)
    (scratch.vault / "vaultd.toml").write_text("[git]\ncommit_edits = false\n")
    stores = scratch.stores()
    (scratch.vault / "Idea.md").write_text("# An idea\n")
    assert History(stores).record_edits(scratch.now.timestamp() + 1e6).commits == []


def test_what_a_person_staged_stays_theirs(scratch: Scratch) -> None:
    worked(scratch)
    (scratch.vault / "Mine.md").write_text("half a thought\n")
    git("add", "Mine.md", cwd=scratch.vault)
    session = next(scratch.vault.glob("*/*/sessions/*.md"))
    git("rm", "-q", "--cached", str(session), cwd=scratch.vault)
    scratch.session(scratch.base / "project")
    scratch.run("ingest", check=True)
    assert subject(scratch).startswith("session: ")
    assert "Mine.md" not in git("log", "--name-only", cwd=scratch.vault)
    staged = git("diff", "--cached", "--name-status", cwd=scratch.vault)
    assert "A\tMine.md" in staged and f"D\t{session.relative_to(scratch.vault)}" in staged


@pytest.mark.parametrize("state", ["merge", "rebase", "detached"])
def test_nothing_is_committed_in_the_middle_of_something(scratch: Scratch, state: str) -> None:
    worked(scratch)
    note = scratch.vault / "Note.md"
    for branch, text in (("other", "theirs\n"), ("main", "ours\n")):
        if branch == "other":
            git("checkout", "-q", "-b", "other", cwd=scratch.vault)
        else:
            git("checkout", "-q", "main", cwd=scratch.vault)
        note.write_text(text)
        git("add", "Note.md", cwd=scratch.vault)
        git("commit", "-q", "-m", branch, cwd=scratch.vault)
    if state == "detached":
        git("checkout", "-q", "--detach", cwd=scratch.vault)
    else:
        command = ["git", "-c", "user.name=P", "-c", "user.email=p@example.org", state, "other"]
        assert subprocess.run(command, cwd=scratch.vault, capture_output=True, check=False).returncode != 0
    head = git("rev-parse", "HEAD", cwd=scratch.vault)
    scratch.session(scratch.base / "project", prompts=("While you are at it",))
    done = scratch.run("ingest")
    assert done.returncode == 0 and "not committed" in done.stderr
    assert git("rev-parse", "HEAD", cwd=scratch.vault) == head
    assert len(list(scratch.vault.glob("*/*/sessions/*.md"))) == 2
    assert scratch.json("status", "--json")["git"]["blocked"]
    if state == "detached":
        git("checkout", "-q", "main", cwd=scratch.vault)
    else:
        git(state, "--abort", cwd=scratch.vault)
    scratch.run("ingest", check=True)
    assert git("status", "--porcelain", cwd=scratch.vault) == ""


def test_signing_and_hooks_never_hang_or_block(scratch: Scratch) -> None:
    worked(scratch)
    signer = scratch.base / "signer"
    signer.write_text("#!/bin/sh\nexec sleep 600\n")
    signer.chmod(0o755)
    git("config", "commit.gpgsign", "true", cwd=scratch.vault)
    git("config", "gpg.program", str(signer), cwd=scratch.vault)
    hook = scratch.vault / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    scratch.session(scratch.base / "project")
    scratch.run("ingest", check=True)
    assert git("status", "--porcelain", cwd=scratch.vault) == ""


def test_a_renamed_project_folder_goes_on(scratch: Scratch) -> None:
    worked(scratch)
    (scratch.vault / "projects/project").rename(scratch.vault / "projects/Greeter")
    scratch.session(scratch.base / "project", prompts=("The next task",))
    scratch.run("ingest", check=True)
    assert len(list(scratch.vault.glob("projects/Greeter/sessions/*.md"))) == 2
    assert not (scratch.vault / "projects/project").exists()


def test_a_vault_that_is_away_is_no_mass_deletion(scratch: Scratch) -> None:
    worked(scratch)
    before = scratch.json("search", "--json", "greeting")["hits"]
    away = scratch.base / "away"
    scratch.vault.rename(away)
    scratch.vault.mkdir()
    assert scratch.run("search", "greeting").returncode == 3
    assert scratch.run("ingest").returncode == 3
    assert list(scratch.vault.iterdir()) == []
    scratch.vault.rmdir()
    away.rename(scratch.vault)
    assert scratch.json("search", "--json", "greeting")["hits"] == before


def test_leftovers_of_a_crash_are_committed(scratch: Scratch) -> None:
    stores = worked(scratch)
    scratch.session(scratch.base / "project", prompts=("Left by a crash",))
    Passes(stores).drain()  # pages written, the process dies before the commit
    assert git("status", "--porcelain", cwd=scratch.vault) != ""
    scratch.run("ingest", check=True)
    assert git("status", "--porcelain", cwd=scratch.vault) == ""


def test_what_counts_as_ours() -> None:
    assert is_ours("projects/app/sessions/2026-11-29-claude-code-0123456789.md")
    assert is_ours("projects/app/handoffs/open/0123456789-g1.md")
    assert is_ours("projects/app/log-2026-11.md") and is_ours("projects/app/project.md")
    assert not is_ours("projects/app/sessions/My notes.md")
    assert not is_ours("projects/app/decisions/one.md") and not is_ours("Home.md")


def test_a_renamed_folder_of_many_pages_is_no_deletion(scratch: Scratch) -> None:
    stores = worked(scratch)
    folder = scratch.vault / "projects/project/notes"
    folder.mkdir()
    for number in range(40):
        (folder / f"note {number}.md").write_text(f"note {number}\n")
    git("add", ".", cwd=scratch.vault)
    git("commit", "-q", "-m", "mine", cwd=scratch.vault)
    (scratch.vault / "projects/project").rename(scratch.vault / "projects/Greeter")
    assert History(stores).gone()[0] == 0
    scratch.session(scratch.base / "project", prompts=("The next task",))
    assert scratch.run("ingest").stderr == ""


def test_consent_to_some_deletions_is_none_to_others(scratch: Scratch) -> None:
    stores = worked(scratch)
    for number in range(60):
        (scratch.vault / f"p{number}.md").write_text(f"page {number}\n")
    git("add", ".", cwd=scratch.vault)
    git("commit", "-q", "-m", "mine", cwd=scratch.vault)
    for number in range(30):
        (scratch.vault / f"p{number}.md").unlink()
    assert History(stores).accept_deletions() == 30
    for number in range(30):
        (scratch.vault / f"p{number}.md").write_text(f"page {number}\n")
        (scratch.vault / f"p{number + 30}.md").unlink()
    scratch.session(scratch.base / "project", prompts=("The next task",))
    assert "accept-deletions" in scratch.run("ingest").stderr
