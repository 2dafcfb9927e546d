"""Where the file system cannot tell of changes, or stops telling, scans find them, and `status` says why."""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from watchdog.observers.api import BaseObserver
from watchdog.observers.inotify_c import InotifyConstants, InotifyEvent, InotifyFD

from tests.engine.watching import Kept, kept
from tests.scratch import Scratch
from tests.waiting import until
from vaultd.engine import following
from vaultd.store import watch as module
from vaultd.store.watch import ON, Watch


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A vault as far as a watch needs one."""
    path = tmp_path / "vault"
    for name in ("notes", ".vaultd", ".git/refs/heads", ".obsidian"):
        (path / name).mkdir(parents=True)
    return path


@pytest.fixture
def watch(root: Path) -> Iterator[Watch]:
    made = Watch(root, threading.Event().set)
    made.arm(0.0)
    assert made.state == ON
    yield made
    made.close()


def hints(watch: Watch) -> set[str] | None:
    """What happened up to now."""
    watch.settle()
    return watch.take()


def test_hints_name_pages_and_folders(root: Path, watch: Watch) -> None:
    assert hints(watch) == set()
    (root / "notes/a.md").write_text("x")
    assert hints(watch) == {"notes/a.md"}
    (root / "notes/a.md").rename(root / "b.md")
    assert hints(watch) == {"notes/a.md", "b.md"}
    (root / "new/folder").mkdir(parents=True)
    (root / "new/folder/c.md").write_text("x")
    assert hints(watch) == {"new/", "new/folder/", "new/folder/c.md"}
    (root / "new").rename(root / "old")
    assert hints(watch) == {"new/", "old/", "new/folder/", "old/folder/", "new/folder/c.md", "old/folder/c.md"}
    (root / "old/folder/c.md").unlink()
    assert hints(watch) == {"old/folder/c.md"}


def test_what_is_no_page_or_hidden_is_no_hint(root: Path, watch: Watch) -> None:
    for name in ("notes/a.txt", "notes/a.md~", "notes/4913", ".obsidian/a.md", ".vaultd/a.md", ".git/refs/heads/a.md"):
        (root / name).write_text("x")
    (root / ".git/objects").mkdir()
    (root / ".git/objects/a.md").write_text("x")
    (root / "notes/.a.md.tmp").write_text("x")
    assert hints(watch) == set()


def test_reading_is_no_hint(root: Path, watch: Watch) -> None:
    (root / "notes/a.md").write_text("x")
    hints(watch)
    for _ in range(100):
        (root / "notes/a.md").read_text()
        list((root / "notes").iterdir())
        (root / "notes/a.md").stat()
    assert hints(watch) == set()


def test_another_head_and_too_many_paths_are_everything(root: Path, watch: Watch) -> None:
    (root / ".git/HEAD.lock").write_text("ref: refs/heads/other")
    (root / ".git/HEAD.lock").rename(root / ".git/HEAD")
    assert hints(watch) is None
    for number in range(600):
        (root / f"notes/{number}.md").write_text("x")
    until(lambda: hints(watch) is None)


def test_a_folder_that_comes_back_is_watched_and_nothing_is_warned_of(root: Path, watch: Watch, tmp_path: Path) -> None:
    for number in range(3):
        (root / "notes").rename(tmp_path / "away")
        until(lambda: "notes/" in (hints(watch) or ()))
        (tmp_path / "away").rename(root / "notes")
        hints(watch)
        (root / f"notes/{number}.md").write_text("x")
        assert hints(watch) == {f"notes/{number}.md"}
        assert watch.state == ON


def test_a_fault_in_the_callback_is_one_warning_and_everything(
    root: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real, faults = Watch.note, [RuntimeError("once")]

    def note(self: Watch, path: str, *, folder: bool) -> None:
        if faults and path.endswith("a.md"):
            raise faults.pop()
        real(self, path, folder=folder)

    monkeypatch.setattr(Watch, "note", note)
    (root / "notes/a.md").write_text("x")
    assert hints(watch) is None
    (root / "notes/b.md").write_text("x")
    assert hints(watch) == {"notes/b.md"}
    assert [r.levelname for r in caplog.records] == ["ERROR"]


def test_a_fault_where_events_are_read_does_not_end_the_watch(
    root: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = [OSError("once")]
    real = InotifyFD.handle_event

    def handle(self: InotifyFD, event: InotifyEvent) -> None:
        if faults:
            raise faults.pop()
        real(self, event)

    monkeypatch.setattr(InotifyFD, "handle_event", handle)
    (root / "notes/a.md").write_text("x")
    assert hints(watch) is None
    (root / "notes/b.md").write_text("x")
    assert hints(watch) == {"notes/b.md"} and watch.state == ON


def overflowed(watch: Watch) -> None:
    """The kernel says that its queue overflowed."""
    observer: Any = watch._observer
    observer._inotify_fd.handle_event(InotifyEvent(-1, InotifyConstants.IN_Q_OVERFLOW, 0, b""))  # type: ignore[arg-type]  # the kernel's own number for it


def test_an_overflow_is_everything_and_the_watch_goes_on(root: Path, watch: Watch) -> None:
    overflowed(watch)
    assert watch.take() is None
    (root / "notes/a.md").write_text("x")
    (root / "more").mkdir()
    (root / "more/b.md").write_text("x")
    assert hints(watch) == {"notes/a.md", "more/", "more/b.md"}


def refuse(number: int) -> Callable[..., Any]:
    def refused(*_: object, **__: object) -> Any:
        raise OSError(number, os.strerror(number))

    return refused


@pytest.mark.parametrize(
    ("number", "limit"),
    [(errno.ENOSPC, "fs.inotify.max_user_watches"), (errno.EMFILE, "fs.inotify.max_user_instances")],
)
def test_a_limit_of_the_system_is_named(root: Path, monkeypatch: pytest.MonkeyPatch, number: int, limit: str) -> None:
    name = "add_callback" if number == errno.ENOSPC else "_create_inotify_fd"
    woken = threading.Event()
    watch = Watch(root, woken.set)
    with monkeypatch.context() as patch:
        patch.setattr(InotifyFD, name, refuse(number))
        watch.arm(0.0)
        assert limit in watch.state
        watch.arm(1.0)
        assert limit in watch.state
    watch.arm(10.0)
    assert limit in watch.state  # not tried all the time
    watch.arm(10_000.0)
    assert watch.state == ON
    watch.close()
    until(lambda: not [t for t in threading.enumerate() if "watchdog" in type(t).__module__ or "Reader" in str(t)])


def test_a_limit_that_is_reached_later_is_noticed(root: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InotifyFD, "add_callback", refuse(errno.ENOSPC))
    (root / "notes/new").mkdir()
    until(lambda: "max_user_watches" in watch.state)
    assert watch.take() is None


@pytest.mark.parametrize("kind", ["9p", "cifs", "nfs4", "fuse.sshfs", "drvfs", "virtiofs"])
def test_a_file_system_that_tells_nothing_gets_no_observer(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(BaseObserver, "__init__", refuse(errno.EPERM))
    mounts = tmp_path / "mountinfo"
    there = str(root).replace(" ", "\\040")
    mounts.write_text(f"1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 0:9 / {there} rw shared:1 - {kind} x rw\n")
    watch = Watch(root, threading.Event().set, mounts=mounts)
    watch.arm(0.0)
    assert kind in watch.state


def test_other_file_systems_are_watched(root: Path, tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        f"1 0 8:1 / / rw - 9p /dev/a rw\n2 1 0:9 / {root} rw - ext4 x rw\n3 1 0:9 / {root}x rw - nfs x rw\n"
    )
    watch = Watch(root, threading.Event().set, mounts=mounts)
    watch.arm(0.0)
    assert watch.state == ON
    watch.close()


def test_a_thread_that_died_is_noticed_and_begun_anew(
    root: Path, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    observer: Any = watch._observer
    observer.stop()
    until(lambda: watch.state != ON)
    watch.arm(1.0)
    assert watch.state == ON and len(caplog.records) == 1
    (root / "notes/a.md").write_text("x")
    assert "notes/a.md" in (hints(watch) or ())


def test_a_vault_folder_that_is_another_one_is_watched_anew(root: Path, watch: Watch, tmp_path: Path) -> None:
    root.rename(tmp_path / "old")
    for name in ("notes", ".vaultd"):
        (root / name).mkdir(parents=True)
    watch.arm(1.0)
    (root / "notes/a.md").write_text("x")
    assert "notes/a.md" in (hints(watch) or ())


# The whole daemon


def told(world: Kept) -> str:
    """What `daemon.json` says of the watch."""
    return str(json.loads((world.vault / ".vaultd/daemon.json").read_bytes()).get("watch"))


def test_watching_switched_off_makes_no_observer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BaseObserver, "__init__", refuse(errno.EPERM))
    monkeypatch.setattr(module.Watch, "__init__", refuse(errno.EPERM))
    with kept(tmp_path, watch=False) as world:
        room = world.room()
        room.page("page.md", room.word("found"))
        until(lambda: told(world) == "off")
        assert not world.daemon.live.hinted


def test_a_watch_that_dies_under_the_daemon_misses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(following, "_LOOK_S", 0.1)
    with kept(tmp_path, watch=True) as world:
        room = world.room()
        until(lambda: told(world) == "on")
        observer: Any = world.daemon.live._watch._observer  # type: ignore[union-attr]  # it is watched
        observer.stop()
        room.page("page.md", room.word("found"))
        until(lambda: world.daemon.live.hinted)
        room.page("other.md", room.word("more"))
        assert len([r for r in caplog.records if "watch" in r.getMessage()]) == 1


def test_an_overflow_under_the_daemon_misses_nothing(tmp_path: Path) -> None:
    with kept(tmp_path, watch=True) as world:
        room = world.room()
        watch = world.daemon.live._watch
        assert watch is not None
        (world.vault / "notes/a.md").write_text(room.word("before"))
        overflowed(watch)
        world.becomes(room.word("before"), "notes/a.md")
        (world.vault / "notes/a.md").write_text(room.word("after"))
        world.becomes(room.word("after"), "notes/a.md")


@pytest.mark.slow
def test_a_real_overflow_misses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, overflows = threading.Event(), []
    real = InotifyFD.handle_event

    def handle(self: InotifyFD, event: InotifyEvent) -> None:
        gate.wait(60)
        if event.is_queue_overflow:
            overflows.append(event)
        real(self, event)

    with kept(tmp_path, watch=True) as world:
        room = world.room()
        monkeypatch.setattr(InotifyFD, "handle_event", handle)
        most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
        page = room.path / "busy.md"
        for number in range(most):
            page.write_text(f"{number}")
            (room.path / "other.md").write_text("x")
        word = room.word("last")
        room.write("unheard.md", word)
        gate.set()
        world.becomes(word, room.at("unheard.md"), timeout=60)
        assert overflows
        room.write("heard.md", room.word("later"))
        world.becomes(room.word("later"), room.at("heard.md"), timeout=60)


def test_an_idle_daemon_does_not_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[float] = []
    real = following.Following.step

    def step(self: following.Following, stop: Callable[[], bool]) -> set[str]:
        steps.append(1)
        return real(self, stop)

    monkeypatch.setattr(following.Following, "step", step)
    with kept(tmp_path, watch=True) as world:
        room = world.room()
        room.page("page.md", room.word("found"))
        for _ in range(20):
            assert world.daemon.live.catch_up() == 0
        before, at = world.scans, len(steps)
        until(lambda: len(steps) > at + 30)
        assert world.scans == before


@pytest.mark.parametrize(("number", "name"), [(errno.ENOSPC, "max_user_watches"), (errno.EMFILE, "max_user_instances")])
def test_status_says_that_a_limit_was_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, name: str
) -> None:
    edge = "add_callback" if number == errno.ENOSPC else "_create_inotify_fd"
    monkeypatch.setattr(following, "_SCAN_S", 0.1)
    with kept(tmp_path, watch=True, works=False, before=lambda p: p.setattr(InotifyFD, edge, refuse(number))) as world:
        room = world.room()
        room.page("page.md", room.word("found"))
        until(lambda: name in told(world))
        report = world.scratch.json("status", "--json")
        assert [p for p in report["problems"] if f"fs.inotify.{name}" in p and "seconds" in p]
        assert sorted(report["daemon"]) == ["pid", "running", "version"]
        assert "scan" in world.scratch.run("status").stdout


def test_status_says_that_the_file_system_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_SCAN_S", 0.1)
    monkeypatch.setattr(module, "deaf_file_system", lambda *_: "9p")
    with kept(tmp_path, watch=True, works=False) as world:
        room = world.room()
        room.page("page.md", room.word("found"))
        until(lambda: "9p" in told(world))
        assert not [p for p in world.scratch.json("status", "--json")["problems"] if "9p" in p]
        assert "9p" in world.scratch.run("status").stdout


def test_status_says_that_it_watches(scratch: Scratch) -> None:
    scratch.run("up", check=True)
    try:
        told = until(lambda: json.loads((scratch.vault / ".vaultd/daemon.json").read_bytes()).get("watch"))
        assert told == "on"
        assert "watches the vault" in scratch.run("status").stdout
    finally:
        scratch.run("down")
