"""What happens to a whole vault or project under a daemon: search follows, and nothing is mistaken for a deletion."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.watching import Kept, kept
from tests.scratch import Scratch, git
from tests.store.indexes import found
from tests.waiting import until
from vaultd.config import load
from vaultd.core import frontmatter
from vaultd.engine import daemon as daemon_module
from vaultd.engine.history import History
from vaultd.engine.projects import Project
from vaultd.engine.reconcile import Reconcile
from vaultd.engine.stores import local_now, open_stores
from vaultd.store.index import Index
from vaultd.store.pages import PageFile
from vaultd.store.vault import Vault


@pytest.fixture(params=["watched", "scanned"])
def watch(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "watched")


@pytest.fixture
def world(tmp_path: Path, watch: bool) -> Iterator[Kept]:
    with kept(tmp_path, watch=watch) as made:
        yield made


def looked(world: Kept) -> None:
    """Wait until everything was looked at, twice: once may have begun before."""
    for _ in range(2):
        before = world.scans
        world.daemon.live._everything = True
        world.daemon.live.woken.set()
        until(lambda before=before: world.scans > before)  # type: ignore[misc]  # of this round


def test_a_vault_that_is_away_has_lost_nothing(tmp_path: Path, watch: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon_module, "_AWAY_S", 60.0)
    pages = {f"notes/n{n}.md": "aardvark" for n in range(40)}
    with kept(tmp_path, watch=watch, pages=pages) as world:
        world.becomes("aardvark", *pages)
        sentinel, away = world.vault / ".vaultd/vault-id", tmp_path / "away"
        text = sentinel.read_bytes()
        sentinel.write_bytes(b"")  # as on a disk that fails
        (world.vault / "notes").rename(away)
        looked(world)
        assert world.daemon.live.catch_up() >= 0 and world.found("aardvark") == set(pages)
        away.rename(world.vault / "notes")
        (world.vault / "notes/n0.md").write_text("wombat")
        sentinel.write_bytes(text)
        world.becomes("wombat", "notes/n0.md")
        world.becomes("aardvark", *(set(pages) - {"notes/n0.md"}))


def test_a_folder_that_cannot_be_listed_has_lost_nothing(world: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    room = world.room()
    (room.path / "locked").mkdir()
    room.write("locked/page.md", room.word("inside"))
    world.becomes(room.word("inside"), room.at("locked/page.md"))
    real = os.scandir

    def scandir(path: str) -> object:
        if str(path).rstrip("/").endswith("/locked"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", scandir)  # as for a folder without rights: the test may run as root
        world.daemon.live.touched([f"{room.folder}/locked/"])
        looked(world)
        assert world.found(room.word("inside")) == {room.at("locked/page.md")}


def test_when_a_tenth_of_the_pages_is_gone_search_follows_and_commits_wait(tmp_path: Path, watch: bool) -> None:
    pages = {f"notes/n{n}.md": "aardvark" for n in range(120)}
    with kept(tmp_path, watch=watch, pages=pages, commit=True) as world:
        kept_on = {f"notes/n{n}.md" for n in range(40, 120)}
        for path in set(pages) - kept_on:
            (world.vault / path).unlink()
        world.becomes("aardvark", *kept_on)
        head = git("rev-parse", "HEAD", cwd=world.vault)
        history = History(world.stores)
        done = history.record_edits(world.stores.clock().timestamp(), at_once=True)
        assert "accept-deletions" in done.left[""] and git("rev-parse", "HEAD", cwd=world.vault) == head
        history.accept_deletions()
        assert History(world.stores).record_edits(world.stores.clock().timestamp(), at_once=True).commits


def test_a_renamed_page_keeps_its_identity_and_its_history(world: Kept) -> None:
    room = world.room()
    body = "".join(f"Line {n} of what was decided.\n" for n in range(20))
    page = room.page("first name.md", room.word("decided"))
    page.write_text(f"---\nid: n-12\ncreated: 2026-01-02\n---\n{room.word('decided')}\n{body}")
    history = History(world.stores)
    history.record_edits(world.stores.clock().timestamp(), at_once=True)
    page.rename(room.path / "second name.md")
    with room.untouched():
        world.becomes(room.word("decided"), room.at("second name.md"))
        history.record_edits(world.stores.clock().timestamp(), at_once=True)
    told = git("log", "--follow", "--format=%H", "--", room.at("second name.md"), cwd=world.vault).split()
    assert len(told) >= 2
    assert frontmatter.parse((room.path / "second name.md").read_bytes()).meta.values["id"] == "n-12"


def test_a_renamed_project_folder_stays_the_project(world: Kept) -> None:
    checkout = world.scratch.checkout("shop")
    world.scratch.session(checkout, prompts=("Feed the okapi",))
    until(lambda: world.found("okapi"), 20)
    until(lambda: not git("status", "--porcelain", "--", "projects", cwd=world.vault), 20)
    [project] = [p for p in world.stores.projects.known() if p.folder == "projects/shop"]
    assert {world.project(path) for path in world.found("okapi")} == {project.id}
    (world.vault / "projects/shop").rename(world.vault / "projects/The Shop")
    until(lambda: world.found("okapi") and all(p.startswith("projects/The Shop/") for p in world.found("okapi")), 20)
    until(lambda: {world.project(path) for path in world.found("okapi")} == {project.id})
    assert not (world.vault / "projects/shop").exists()
    now = open_stores(load(None, world.scratch.environ), local_now).projects.find(str(checkout))
    assert isinstance(now, Project) and (now.id, now.folder) == (project.id, "projects/The Shop")
    assert world.daemon.live.catch_up() == 0
    hits = found(world.daemon.live.index, "okapi", 10, project=project.id)
    assert {hit.path for hit in hits} == world.found("okapi")


def test_pages_go_with_the_id_of_their_folder(world: Kept) -> None:
    folder = world.vault / "projects/app"
    folder.mkdir(parents=True)
    (folder / "early.md").write_text("platypus")
    page = folder / "project.md"

    def scoped(project: str) -> set[str]:
        return {hit.path for hit in found(world.daemon.live.index, "platypus", 10, project=project)}

    until(lambda: scoped("") == {"projects/app/early.md"})
    page.write_text("---\nid: p-0123456789ab\nkind: project\n---\n# App\n")
    until(lambda: scoped("p-0123456789ab") == {"projects/app/early.md"})
    page.write_text("---\nid: p-ba9876543210\nkind: project\n---\n# App\n")
    until(lambda: scoped("p-ba9876543210") == {"projects/app/early.md"})
    page.write_text("---\nid: [p-ba\nkind: project\n---\n# A person is at it\n")
    world.becomes("person", "projects/app/project.md")
    (folder / "late.md").write_text("platypus")
    until(lambda: scoped("p-ba9876543210") == {"projects/app/early.md", "projects/app/late.md"})
    page.unlink()
    until(lambda: scoped("") == {"projects/app/early.md", "projects/app/late.md"})


def test_a_page_that_cannot_be_read_once_keeps_nobody_out_and_is_read_again(
    world: Kept, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    room = world.room()
    faults = [PermissionError(errno.EACCES, "Permission denied"), RuntimeError("a fault of ours")]
    real = Vault.read

    def read(self: Vault, rel: str) -> PageFile | None:
        if faults and rel == room.at("bad.md"):
            raise faults.pop()
        return real(self, rel)

    monkeypatch.setattr(Vault, "read", read)
    room.write("bad.md", room.word("bad"))
    room.write("good.md", room.word("good"))
    world.becomes(room.word("good"), room.at("good.md"))
    world.becomes(room.word("bad"), room.at("bad.md"))
    assert not faults and any("bad.md" in record.getMessage() for record in caplog.records)
    until(lambda: world.daemon.live.catch_up() == 0)


def test_a_page_that_can_never_be_read_is_counted_and_told(world: Kept) -> None:
    room = world.room()
    deep = "/".join(["d" * 250] * 12)  # a path longer than a page's may be
    base = room.path / deep
    base.mkdir(parents=True)
    (base / "page.md").write_text(room.word("deep"))
    room.page("good.md", room.word("good"))
    looked(world)
    assert until(lambda: world.daemon.live.catch_up()) == 1
    assert world.found(room.word("deep")) == set()
    report = world.scratch.json("status", "--json")
    assert report["index"] == {"generation": report["index"]["generation"], "pending": 1}
    assert any("cannot be read" in problem for problem in report["problems"])
    shutil.rmtree(room.path / ("d" * 250))
    until(lambda: world.daemon.live.catch_up() == 0)


def test_a_page_that_the_index_chokes_on_keeps_nobody_out(world: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    from vaultd.store import indexed

    room = world.room()
    real = indexed.words

    def words(doc: object) -> indexed.Words:
        if room.word("bad") in doc.body:  # type: ignore[attr-defined]  # a page's document
            raise ValueError("no words")
        return real(doc)  # type: ignore[arg-type]  # as it came

    with monkeypatch.context() as patch:
        patch.setattr(indexed, "words", words)
        room.write("bad.md", room.word("bad"))
        room.write("good.md", room.word("good"))
        world.becomes(room.word("good"), room.at("good.md"))
        until(lambda: world.daemon.live.catch_up() == 1)
    world.becomes(room.word("bad"), room.at("bad.md"))


def test_an_index_that_was_deleted_comes_back(world: Kept) -> None:
    room = world.room()
    room.page("page.md", room.word("found"))
    cache = world.scratch.home / ".cache/vaultd"
    gone = world.scratch.base / "gone"
    cache.rename(gone)  # at once: it may be written this moment
    shutil.rmtree(gone, ignore_errors=True)
    world.becomes(room.word("found"), room.at("page.md"), timeout=30)
    assert world.found(room.bystander) == {room.at("beside.md")}


def test_pages_that_another_process_indexed_are_not_read_again(world: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    room = world.room()
    page = room.page("page.md", room.word("before"))
    page.write_text(room.word("after"))
    # Where the daemon is at the index this moment, the command says that a page is not in yet.
    hits = until(lambda: world.scratch.json("search", "--json", "--all", room.word("after"))["hits"])
    assert [hit["path"] for hit in hits] == [room.at("page.md")]
    world.becomes(room.word("after"), room.at("page.md"))
    fresh = Index(world.stores.config.places.index(world.vault), world.vault)
    assert Reconcile(world.stores, fresh).behind().count == 0
    fresh.close()


def checked_out(world: Kept, files: int, timeout: float) -> None:
    """Switch a vault of so many pages to a branch where all differ, and back."""
    pages = [f"notes/{n % 50}/n{n}.md" for n in range(files)]
    first = git("branch", "--show-current", cwd=world.vault).strip()
    git("checkout", "-q", "-b", "other", cwd=world.vault)
    for path in pages:
        (world.vault / path).write_text(f"wombat {path}")
    git("commit", "-qam", "other", cwd=world.vault)
    git("checkout", "-q", first, cwd=world.vault)
    index = world.daemon.live.index
    for branch, word, other in (("other", "wombat", "aardvark"), (first, "aardvark", "wombat")):
        git("checkout", "-q", branch, cwd=world.vault)
        until(lambda word=word: len(found(index, word, files + 1)) == files, timeout, 0.2)  # type: ignore[misc]  # its own
        assert found(index, other, 5) == []
    assert git("status", "--porcelain", "--", "notes", cwd=world.vault) == ""


@pytest.mark.parametrize("files", [60, pytest.param(5_000, marks=pytest.mark.slow)])
def test_a_checkout_of_many_files(tmp_path: Path, watch: bool, files: int) -> None:
    pages = {f"notes/{n % 50}/n{n}.md": f"aardvark notes/{n % 50}/n{n}.md" for n in range(files)}
    with kept(tmp_path, watch=watch, pages=pages, commit=True) as world:
        checked_out(world, files, 15 if files < 1000 else 250)


@pytest.mark.slow
def test_searches_are_answered_while_many_pages_come_in(tmp_path: Path, watch: bool) -> None:
    with kept(tmp_path, watch=watch) as world:
        room = world.room()
        for number in range(3_000):
            room.write(f"n{number}.md", "wombat " * 100)
        live = world.daemon.live
        for number in range(10):
            word = room.word("asked" + "abcdefghij"[number])
            room.write("asked.md", word)
            until(lambda word=word: live.catch_up() >= 0 and world.found(word) == {room.at("asked.md")}, 10)  # type: ignore[misc]  # its own
        until(lambda: len(found(live.index, "wombat", 4_000)) == 3_000, 120)


def test_through_the_whole_program(scratch: Scratch) -> None:
    scratch.run("up", check=True)
    try:
        (scratch.vault / "notes").mkdir(exist_ok=True)
        (scratch.vault / "notes/page.md").write_text("quokka")
        hits = until(lambda: scratch.json("search", "--json", "--all", "quokka")["hits"])
        assert [hit["path"] for hit in hits] == ["notes/page.md"]
    finally:
        scratch.run("down")
