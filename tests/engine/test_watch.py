"""Search follows the disk by itself, whatever a person does there; with hints from the file system and without.

Nothing that is edited here is written again by vaultd, and nothing counts as deleted that was only moved.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
import subprocess
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.engine.watched import Watched, watching
from tests.scratch import Scratch, git
from tests.waiting import until
from vaultd.core import frontmatter
from vaultd.engine.history import History
from vaultd.engine.live import Live
from vaultd.engine.passes import Passes
from vaultd.store.watch import Watch


@pytest.fixture(params=[True, False], ids=["watched", "scanned"])
def world(scratch: Scratch, request: pytest.FixtureRequest) -> Iterator[Watched]:
    with watching(scratch, request.param) as world:
        yield world


def test_switched_off_no_observer_is_made(scratch: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr(Watch, "__init__", lambda self, *_: made.append(self))
    live = Live(scratch.init(), watch=False)
    live.step(0)
    live.close()
    assert live.watch is None and not made


def test_saved_in_place(world: Watched) -> None:
    page = world.page("notes/a.md", "An ibex.\n")
    world.finds("ibex", "notes/a.md")
    with page.open("r+b") as file:  # as Obsidian does
        file.truncate()
        file.write(b"A quagga.\n")
    world.finds("quagga", "notes/a.md")
    assert world.paths("ibex") == []


def test_saved_by_rename(world: Watched) -> None:
    page = world.page("notes/a.md", "An ibex.\n")
    world.finds("ibex", "notes/a.md")
    temp = page.with_name(".a.md.tmp")
    temp.write_text("A quagga.\n")
    temp.rename(page)
    world.finds("quagga", "notes/a.md")
    assert world.paths("ibex") == []


@pytest.mark.parametrize("copied", [False, True], ids=["renaming", "backupcopy"])
def test_saved_as_vim_does(world: Watched, copied: bool) -> None:
    page = world.page("notes/a.md", "An ibex.\n")
    world.finds("ibex", "notes/a.md")
    probe, backup = page.with_name("4913"), page.with_name("a.md~")
    probe.touch()
    probe.unlink()
    if copied:
        shutil.copy2(page, backup)
        page.write_text("A quagga.\n")
    else:
        page.rename(backup)
        page.write_text("A quagga.\n")
    backup.unlink()
    world.finds("quagga", "notes/a.md")
    assert world.paths("ibex") == []


@pytest.mark.parametrize("copied", ["no", "yes"])
def test_saved_by_vim_itself(world: Watched, copied: str) -> None:
    vim = shutil.which("vim") or shutil.which("vim.tiny")
    if vim is None:
        pytest.skip("there is no vim here")
    page = world.page("notes/a.md", "An ibex.\n")
    world.finds("ibex", "notes/a.md")
    for number in range(3):
        command = [vim, "-u", "NONE", "-N", "-es", "-c", f"set backupcopy={copied} backupskip="]
        word = "quagga" + "abc"[number] * 4
        subprocess.run([*command, "-c", f"%s/.*/A {word}./", "-c", "wq", str(page)], check=True, timeout=60)
        world.finds(word, "notes/a.md")


def test_a_new_folder_is_written_to_at_once(world: Watched) -> None:
    for number in range(10):
        deep = world.vault / f"new{number}/b/c"
        deep.mkdir(parents=True)
        (deep / "page.md").write_text("An okapi.\n")
    world.finds("okapi", *(f"new{number}/b/c/page.md" for number in range(10)))
    (world.vault / "new3/b/c/later.md").write_text("A bongo.\n")
    world.finds("bongo", "new3/b/c/later.md")


def test_a_folder_is_renamed_moved_in_and_moved_out(world: Watched) -> None:
    world.page("one/a.md", "An ibex.\n")
    world.page("one/deep/b.md", "An ibex.\n")
    world.finds("ibex", "one/a.md", "one/deep/b.md")
    (world.vault / "one").rename(world.vault / "two")
    world.finds("ibex", "two/a.md", "two/deep/b.md")
    outside = world.scratch.base / "outside"
    (world.vault / "two").rename(outside)
    world.finds("ibex")
    (outside / "a.md").write_text("An ibex of elsewhere.\n")  # whose folder was watched
    world.page("notes/last.md", "A bongo.\n")
    world.finds("bongo", "notes/last.md")
    assert world.paths("ibex") == []
    outside.rename(world.vault / "notes/three")
    world.finds("ibex", "notes/three/a.md", "notes/three/deep/b.md")
    (world.vault / "notes/three/a.md").write_text("A quagga.\n")
    world.finds("quagga", "notes/three/a.md")


def test_many_files_of_a_checkout(world: Watched, files: int = 600) -> None:
    _checkout(world, files)


@pytest.mark.slow
def test_five_thousand_files_of_a_checkout(world: Watched) -> None:
    _checkout(world, 5_000, 250)


def _checkout(world: Watched, files: int, timeout: float = 60) -> None:
    for number in range(files):
        world.page(f"notes/{number % 20}/n{number}.md", f"An ibex, number {number}.\n")
    git("add", "-A", cwd=world.vault)
    git("commit", "-q", "-m", "one", cwd=world.vault)
    before = git("branch", "--show-current", cwd=world.vault).strip()
    git("checkout", "-q", "-b", "other", cwd=world.vault)
    for number in range(files):
        world.page(f"notes/{number % 20}/n{number}.md", f"A quagga, number {number}.\n")
    git("rm", "-q", "--cached", "Home.md", cwd=world.vault)
    git("commit", "-q", "-a", "-m", "two", cwd=world.vault)
    git("checkout", "-q", "-f", before, cwd=world.vault)
    until(lambda: len(world.live.index.search("ibex", files)) == files, timeout)
    assert world.live.index.search("quagga", 10) == []
    git("checkout", "-q", "-f", "other", cwd=world.vault)
    until(lambda: len(world.live.index.search("quagga", files)) == files, timeout)
    assert world.live.index.search("ibex", 10) == []


def test_odd_pages_are_found_and_left_as_they_are(world: Watched) -> None:
    pages = {
        "notes/broken.md": b"---\ntitle: [\n---\nA numbat in broken frontmatter.\n",
        "notes/bom.md": b"\xef\xbb\xbf---\ntitle: With a mark\n---\nA numbat after a mark.\n",
        "notes/crlf.md": b"---\r\ntitle: Lines\r\n---\r\nA numbat\r\nof two lines\r\n",
        "notes/latin.md": "Ein Numbat für alle.\n".encode("latin-1") + b"numbat\n",
        "notes/\U0001f98a\u200d\U0001f33f fox.md": b"A numbat with a face.\n",
        f"notes/{'ü' * 126}.md": b"A numbat of a long name.\n",
        "notes/empty.md": b"",
    }
    for path, data in pages.items():
        world.page(path, data)
    assert max(len(os.fsencode(Path(path).name)) for path in pages) == 255
    before = world.snapshot()
    world.finds("numbat", *(path for path in pages if path != "notes/empty.md"))
    assert world.snapshot() == before


def test_a_page_of_five_megabytes_holds_no_other_up(world: Watched) -> None:
    line = "the quick numbat jumps over the lazy numbat again\n"
    world.page("notes/huge.md", line * (5 * 1024 * 1024 // len(line)) + "a takin at the end\n")
    world.page("notes/small.md", "A bongo.\n")
    world.finds("bongo", "notes/small.md")
    world.finds("takin", "notes/huge.md", timeout=60)


def test_names_that_are_equal_but_for_case_or_form_are_pages_of_their_own(world: Watched) -> None:
    world.page("notes/Readme.md", "A numbat, large.\n")
    world.page("notes/README.md", "A numbat, larger.\n")
    composed = unicodedata.normalize("NFC", "notes/Café.md")
    other = unicodedata.normalize("NFD", composed)
    page = world.page(composed, "A takin.\n")
    world.finds("numbat", "notes/README.md", "notes/Readme.md")
    world.finds("takin", composed)
    page.rename(world.vault / other)
    world.finds("takin", other)


def test_a_vault_that_is_away_has_lost_nothing(world: Watched) -> None:
    world.page("notes/a.md", "An ibex.\n")
    world.finds("ibex", "notes/a.md")
    away = world.scratch.base / "away"
    world.vault.rename(away)
    passes = world.passes
    world.live.woken.set()
    until(lambda: world.passes > passes + 1)
    assert world.live.catch_up() == 0 and world.paths("ibex") == ["notes/a.md"]
    world.vault.mkdir()  # an empty folder, as under a mount that is gone
    assert world.live.catch_up() == 0 and world.paths("ibex") == ["notes/a.md"]
    world.vault.rmdir()
    away.rename(world.vault)
    assert world.live.catch_up() == 0 and world.paths("ibex") == ["notes/a.md"]


def test_when_a_tenth_of_the_pages_is_gone_search_follows_and_commits_wait(world: Watched) -> None:
    for number in range(60):
        world.page(f"notes/n{number}.md", "An ibex.\n")
    git("add", "-A", cwd=world.vault)
    git("commit", "-q", "-m", "pages", cwd=world.vault)
    until(lambda: len(world.live.index.search("ibex", 100)) == 60)
    for number in range(30):
        (world.vault / f"notes/n{number}.md").unlink()
    until(lambda: len(world.live.index.search("ibex", 100)) == 30)
    history = History(world.stores)
    done = history.record_edits(world.scratch.now.timestamp() + 120, at_once=True)
    assert not done.commits and "accept-deletions" in history.trouble


def test_a_renamed_page_keeps_its_identity_and_its_history(world: Watched) -> None:
    text = "---\nid: n-1\ntitle: Of okapis\n---\n" + "The okapi eats leaves.\n" * 20
    page = world.page("notes/okapi.md", text)
    git("add", "-A", cwd=world.vault)
    git("commit", "-q", "-m", "the first of it", cwd=world.vault)
    world.finds("okapi", "notes/okapi.md")
    page.rename(world.vault / "notes/leaf eater.md")
    world.finds("okapi", "notes/leaf eater.md")
    History(world.stores).record_edits(world.scratch.now.timestamp() + 120, at_once=True)
    told = git("log", "--follow", "--format=%s", "--", "notes/leaf eater.md", cwd=world.vault)
    assert "the first of it" in told
    assert frontmatter.parse((world.vault / "notes/leaf eater.md").read_bytes()).meta.values["id"] == "n-1"


def test_a_renamed_project_folder_stays_the_project(world: Watched) -> None:
    checkout = world.scratch.checkout("shop")
    world.scratch.session(checkout, prompts=("Feed the okapi",))
    Passes(world.stores).drain()
    until(lambda: world.paths("okapi"))
    [project] = world.stores.projects.known()
    assert {world.live.index.known()[path].project for path in world.paths("okapi")} == {project.id}
    (world.vault / "projects/shop").rename(world.vault / "projects/The Shop")
    until(lambda: world.paths("okapi") and all("The Shop" in path for path in world.paths("okapi")))
    assert {world.live.index.known()[path].project for path in world.paths("okapi")} == {project.id}
    found = world.scratch.stores().projects.find(str(checkout))
    assert found is not None and found.id == project.id


def test_pages_whose_folder_becomes_a_project_later_are_found_in_it(world: Watched) -> None:
    world.page("projects/farm/notes/a.md", "An okapi.\n")
    world.finds("okapi", "projects/farm/notes/a.md")
    assert world.live.index.known()["projects/farm/notes/a.md"].project == ""
    world.page("projects/farm/project.md", "---\nid: p-0123456789ab\nkind: project\ntitle: Farm\n---\n# Farm\n")
    until(lambda: world.live.index.known()["projects/farm/notes/a.md"].project == "p-0123456789ab")


def test_a_page_that_cannot_be_read_keeps_no_other_out_and_is_tried_again(
    world: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, locked = type(world.stores.vault).read, {"on": True}

    def refusing(self: object, rel: str) -> object:
        if locked["on"] and rel == "notes/locked.md":
            raise PermissionError(errno.EACCES, "Permission denied")
        return read(self, rel)  # type: ignore[arg-type]  # a vault

    monkeypatch.setattr(type(world.stores.vault), "read", refusing)
    world.page("notes/locked.md", "An ibex.\n")
    world.page("notes/open.md", "A quagga.\n")
    world.finds("quagga", "notes/open.md")
    assert world.live.catch_up() == 1
    locked["on"] = False
    until(lambda: world.live.catch_up() == 0)
    world.finds("ibex", "notes/locked.md")


def test_a_page_that_is_saved_again_and_again_is_never_written(world: Watched) -> None:
    page = world.page("notes/a.md", "An ibex.\n")
    for number in range(10):
        text = f"An ibex, saved {'abcdefghij'[number] * 5}.\n"
        page.write_text(text)
        state = page.stat()
        world.finds("abcdefghij"[number] * 5, "notes/a.md")
        assert (page.read_text(), page.stat().st_mtime_ns, page.stat().st_ino) == (
            text,
            state.st_mtime_ns,
            state.st_ino,
        )


def test_a_question_is_answered_with_what_was_saved_before_it(world: Watched) -> None:
    for number in range(10):
        world.page("notes/a.md", f"An {'abcdefghij'[number] * 6}.\n")
        until(lambda n=number: world.live.catch_up() == 0 and world.paths("abcdefghij"[n] * 6), 2)  # type: ignore[misc]  # this round's


def test_after_an_overflow_everything_is_looked_at(scratch: Scratch) -> None:
    with watching(scratch, True) as world:
        world.live.watch._observer.unschedule_all()  # type: ignore[union-attr]  # nothing is told any more
        world.page("notes/a.md", "An ibex.\n")
        passes = world.passes
        world.live.woken.set()
        until(lambda: world.passes > passes)
        assert world.paths("ibex") == []
        logging.getLogger("watchdog.observers.inotify_c").warning("Inotify queue overflowed")
        world.finds("ibex", "notes/a.md")


@pytest.mark.slow
def test_a_real_overflow_of_the_queue_loses_nothing(scratch: Scratch) -> None:
    most = Path("/proc/sys/fs/inotify/max_queued_events")
    if not most.exists():
        pytest.skip("there is no inotify here")
    with watching(scratch, True) as world:
        folder = world.vault / "notes"
        folder.mkdir(exist_ok=True)
        for number in range(int(most.read_text()) + 4_000):
            path = folder / f"n{number % 50}.md"
            path.write_text(f"An ibex, time {number}.\n")
            path.unlink()
        world.page("notes/last.md", "A quagga.\n")
        world.finds("quagga", "notes/last.md", timeout=60)
        world.finds("ibex", timeout=60)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE])
def test_where_the_system_has_no_more_watches_it_scans_and_says_why(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    from watchdog.observers import Observer

    def full(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Observer, "schedule", full)
    live = Live(scratch.init(), watch=True)
    assert "fs.inotify.max_user_" in live.rearm() and not live.hinted
    live.step(3600)
    (scratch.vault / "a.md").write_text("An ibex.\n")
    assert live.catch_up() == 0
    assert [hit.path for hit in live.index.search("ibex", 5)] == ["a.md"]
    assert "fs.inotify.max_user_" in live.rearm()
    live.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # watchdog's thread, on purpose
def test_a_new_folder_that_is_one_too_many_is_scanned(scratch: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    from watchdog.observers.inotify_c import InotifyFD

    with watching(scratch, True) as world:
        (world.vault / "notes").mkdir(exist_ok=True)
        world.page("notes/first.md", "A takin.\n")
        world.finds("takin", "notes/first.md")

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(InotifyFD, "add_callback", full)
        world.page("notes/deep/a.md", "An ibex.\n")
        world.finds("ibex", "notes/deep/a.md")
        world.page("notes/deep/b.md", "A quagga.\n")
        world.finds("quagga", "notes/deep/b.md")
        assert world.live.watch is not None and "fs.inotify.max_user_watches" in world.live.watch.reason


@pytest.mark.parametrize("kind", ["9p", "cifs", "nfs4", "fuse.sshfs"])
def test_a_file_system_that_does_not_tell_is_scanned(tmp_path: Path, kind: str) -> None:
    mounts = tmp_path / "mountinfo"
    (tmp_path / "a b").mkdir()
    point = str(tmp_path / "a b").replace(" ", "\\040")
    mounts.write_text(f"20 1 8:1 / / rw - ext4 /dev/x rw\n21 20 0:1 / {point} rw - {kind} host rw\n")
    watch = Watch(tmp_path / "a b", lambda: None, mounts)
    assert not watch.start() and kind in watch.reason and not watch.works
    assert Watch(tmp_path, lambda: None, mounts).start()


def test_an_error_in_a_notification_ends_nothing(scratch: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    with watching(scratch, True) as world:
        (world.vault / "notes").mkdir(exist_ok=True)
        world.page("notes/first.md", "A takin.\n")
        world.finds("takin", "notes/first.md")
        told, failed = Watch._note, list[object]()

        def failing(self: Watch, paths: Iterable[str] = (), everything: bool = False) -> None:
            if paths and not failed:
                failed.append(paths)
                raise RuntimeError("once")
            told(self, paths, everything)

        monkeypatch.setattr(Watch, "_note", failing)
        world.page("notes/a.md", "An ibex.\n")
        world.finds("ibex", "notes/a.md")
        assert failed
        world.page("notes/b.md", "A quagga.\n")
        world.finds("quagga", "notes/b.md")


def test_a_watch_that_broke_off_is_begun_anew(scratch: Scratch) -> None:
    with watching(scratch, True) as world:
        world.live.watch._observer.stop()  # type: ignore[union-attr]  # its thread dies
        until(lambda: not world.live.hinted or world.passes)
        world.page("notes/a.md", "An ibex.\n")
        world.live.woken.set()
        world.finds("ibex", "notes/a.md")
        until(lambda: world.live.hinted)
        world.page("notes/b.md", "A quagga.\n")
        world.finds("quagga", "notes/b.md")


def test_its_own_reading_wakes_nothing(scratch: Scratch) -> None:
    with watching(scratch, True) as world:
        world.page("notes/a.md", "An ibex.\n")
        world.finds("ibex", "notes/a.md")
        world.live.catch_up()
        until(lambda: not world.live.woken.is_set())
        scans = world.scans
        for _ in range(20):
            world.stores.vault.read("notes/a.md")
            list(world.stores.vault.scan())
        for _ in range(3):
            assert world.live.catch_up() == 0
        assert world.scans == scans and world.live.watch is not None and not world.live.watch.take().paths
