"""The durable verbs, on real files and between real processes."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.waiting import until
from vaultd.store import fs
from vaultd.store.fs import Lock

ROOT = Path(__file__).resolve().parents[2]
HOUR = 3600.0


@pytest.fixture(params=["system", "portable"])
def verbs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Once with the system's own calls, once as where they are missing."""
    if request.param == "portable":
        monkeypatch.setattr(fs, "_libc", lambda name: None)
    return str(request.param)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@contextmanager
def child(code: str, *args: object) -> Iterator[subprocess.Popen[str]]:
    """A Python process that runs `code`; gone when the block ends."""
    command = [sys.executable, "-c", code, *map(str, args)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def at_once(code: str, count: int, *args: object) -> list[str]:
    """What `count` processes print that run `code` behind one barrier: all are up before any goes on."""
    head = """
import sys
from pathlib import Path
from vaultd.store import fs
print("up", flush=True)
sys.stdin.read(1)
"""
    with ExitStack() as stack:
        running = [stack.enter_context(child(head + code, *args, number)) for number in range(count)]
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
        for process in running:
            assert process.stdin is not None
            process.stdin.write("x")
            process.stdin.flush()
        return [process.communicate(timeout=60)[0].strip() for process in running]


# --- publish


def test_publish_makes_a_complete_file_and_leaves_no_other(tmp_path: Path, verbs: str) -> None:
    fs.publish(tmp_path / "a.md", b"text")
    assert (tmp_path / "a.md").read_bytes() == b"text"
    assert (tmp_path / "a.md").stat().st_nlink == 1
    assert names(tmp_path) == ["a.md"]


def test_publish_never_replaces(tmp_path: Path, verbs: str) -> None:
    fs.publish(tmp_path / "a.md", b"first")
    with pytest.raises(FileExistsError):
        fs.publish(tmp_path / "a.md", b"second")
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(FileExistsError):
        fs.publish(tmp_path / "link", b"x")
    assert (tmp_path / "a.md").read_bytes() == b"first"
    assert names(tmp_path) == ["a.md", "link"]


def test_publish_works_where_there_are_no_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    fs.publish(tmp_path / "a", b"text")
    with pytest.raises(FileExistsError):
        fs.publish(tmp_path / "a", b"other")
    assert (tmp_path / "a").read_bytes() == b"text"
    assert names(tmp_path) == ["a"]
    monkeypatch.setattr(fs, "_libc", lambda name: None)
    with pytest.raises(PermissionError):
        fs.publish(tmp_path / "b", b"text")
    assert names(tmp_path) == ["a"]


def test_of_many_who_publish_one_name_one_wins(tmp_path: Path) -> None:
    code = """
try:
    fs.publish(Path(sys.argv[1]), sys.argv[2].encode() * 1000)
    print("won")
except FileExistsError:
    print("taken")
"""
    said = at_once(code, 8, tmp_path / "a")
    assert sorted(said) == ["taken"] * 7 + ["won"]
    assert (tmp_path / "a").read_bytes() == str(said.index("won")).encode() * 1000
    assert names(tmp_path) == ["a"]


def test_a_published_page_has_the_usual_mode(tmp_path: Path) -> None:
    old = os.umask(0o022)
    try:
        fs.publish(tmp_path / "a", b"")
        fs.publish(tmp_path / "b", b"", mode=0o600)
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o600


def test_a_write_that_does_not_fit_leaves_nothing(tmp_path: Path) -> None:
    """A limit on file sizes stands for the full disk: the write breaks off in the middle with an OSError."""
    code = """
import resource, sys
from pathlib import Path
from vaultd.store import fs
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
folder = Path(sys.argv[1])
for verb in (fs.publish, fs.write_private):
    try:
        verb(folder / "a", b"x" * 10_000)
    except OSError as error:
        print(type(error).__name__, error.errno)
"""
    (tmp_path / "a").write_bytes(b"old")
    with child(code, tmp_path) as process:
        out = process.communicate(timeout=60)[0]
    assert out == f"OSError {errno.EFBIG}\n" * 2
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_missing_folder_is_the_callers_affair(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        fs.publish(tmp_path / "no" / "a", b"")


# --- write_private


def test_write_private_makes_private_parents_and_replaces(tmp_path: Path) -> None:
    path = tmp_path / "one" / "two" / "file"
    fs.write_private(path, b"1")
    fs.write_private(path, b"2", sync=True)
    assert path.read_bytes() == b"2"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (path.parent, path.parent.parent)] == [0o700, 0o700]
    assert names(path.parent) == ["file"]


def test_a_reader_never_sees_a_half(tmp_path: Path) -> None:
    path = tmp_path / "file"
    fs.write_private(path, b"0" * 100_000)
    seen: set[bytes] = set()
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            data = path.read_bytes()
            seen.add(data[:1] if data == data[:1] * 100_000 else b"torn")

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(300):
        fs.write_private(path, str(number % 10).encode() * 100_000)
    over.set()
    reader.join()
    assert seen
    assert b"torn" not in seen


# --- move, exchange, remove


def test_move_renames_and_never_replaces(tmp_path: Path, verbs: str) -> None:
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").write_bytes(b"b")
    with pytest.raises(FileExistsError):
        fs.move(tmp_path / "a", tmp_path / "b")
    fs.move(tmp_path / "a", tmp_path / "c", sync=True)
    with pytest.raises(FileNotFoundError):
        fs.move(tmp_path / "a", tmp_path / "d")
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == {"b": b"b", "c": b"a"}


def test_move_takes_folders(tmp_path: Path, verbs: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with pytest.raises(FileExistsError):
        fs.move(tmp_path / "a", tmp_path / "b")
    fs.move(tmp_path / "a", tmp_path / "c")
    assert names(tmp_path) == ["b", "c"]


@pytest.mark.parametrize("portable", [False, True])
def test_of_many_who_move_one_file_one_wins(tmp_path: Path, portable: bool) -> None:
    (tmp_path / "a").write_bytes(b"a")
    code = f"""
if {portable}:
    fs._libc = lambda name: None
try:
    fs.move(Path(sys.argv[1]) / "a", Path(sys.argv[1]) / ("to-" + sys.argv[2]))
    print("won")
except FileNotFoundError:
    print("gone")
"""
    said = at_once(code, 8, tmp_path)
    if (
        not portable
    ):  # with two steps several may have linked it before the first removed it; the file is there all the same
        assert sorted(said) == ["gone"] * 7 + ["won"]
        assert names(tmp_path) == [f"to-{said.index('won')}"]
    assert all((tmp_path / name).read_bytes() == b"a" for name in names(tmp_path))
    assert "a" not in names(tmp_path)


def test_exchange_swaps_two_names(tmp_path: Path, verbs: str) -> None:
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").write_bytes(b"b")
    inode = (tmp_path / "a").stat().st_ino
    assert fs.exchange(tmp_path / "a", tmp_path / "b")
    assert ((tmp_path / "a").read_bytes(), (tmp_path / "b").read_bytes()) == (b"b", b"a")
    assert (tmp_path / "b").stat().st_ino == inode
    with pytest.raises(FileNotFoundError):
        fs.exchange(tmp_path / "a", tmp_path / "c")
    assert names(tmp_path) == ["a", "b"]


def test_remove(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    fs.remove(tmp_path / "a")
    fs.remove(tmp_path / "a")
    with pytest.raises(FileNotFoundError):
        fs.remove(tmp_path / "a", missing_ok=False)


def test_remove_tree_does_not_follow_symlinks(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "kept").touch()
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out")
    fs.remove_tree(tmp_path / "in")
    fs.remove_tree(tmp_path / "in")
    (tmp_path / "link").symlink_to(tmp_path / "out")
    with pytest.raises(OSError, match="symbolic link"):
        fs.remove_tree(tmp_path / "link")
    assert names(tmp_path / "out") == ["kept"]


# --- syncing, revisions


def test_syncing(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    fs.sync_file(tmp_path / "a")
    fs.sync_folder(tmp_path)
    fs.sync_filesystem(tmp_path)
    for sync in (fs.sync_file, fs.sync_folder, fs.sync_filesystem):
        with pytest.raises(FileNotFoundError):
            sync(tmp_path / "missing")


def test_a_sync_that_fails_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fs, "_libc", lambda name: lambda handle: -1)
    with pytest.raises(OSError, match=str(tmp_path)):
        fs.sync_filesystem(tmp_path)


def test_without_syncfs_everything_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(fs, "_libc", lambda name: None)
    monkeypatch.setattr(os, "sync", lambda: calls.append("sync"))
    fs.sync_filesystem(tmp_path)
    assert calls == ["sync"]


def test_publish_syncs_the_file_before_its_name_and_then_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    real_sync, real_link = os.fsync, os.link

    def fsync(handle: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        real_sync(handle)

    def link(*args: object, **kwargs: object) -> None:
        steps.append("link")
        real_link(*args, **kwargs)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "link", link)
    fs.publish(tmp_path / "a", b"")
    assert steps == ["file", "link", "folder"]
    steps.clear()
    fs.publish(tmp_path / "b", b"", sync_name=False)
    assert steps == ["file", "link"]
    steps.clear()
    fs.publish(tmp_path / "c", b"", sync=False)
    assert steps == ["link"]


def test_a_revision_is_the_sha256() -> None:
    assert fs.revision(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


# --- sweeping


def test_sweep_removes_old_temp_files_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / ".git").mkdir()
    stale = [tmp_path / ".vaultd-tmp-1", tmp_path / "deep" / ".vaultd-tmp-2"]
    kept = [
        tmp_path / "page.md",
        tmp_path / ".git" / ".vaultd-tmp-3",
        tmp_path / f"{fs.SWAP_PREFIX}a-b-c",
        tmp_path / ".vaultd-tmp-folder",
    ]
    kept[-1].mkdir()
    for path in [*stale, *kept[:-1]]:
        path.write_bytes(b"x")
    now = time.time()
    assert fs.sweep_temps(tmp_path, HOUR, now) == 0
    assert fs.sweep_temps(tmp_path, HOUR, now + HOUR + 10) == 2
    assert not any(path.exists() for path in stale)
    assert all(path.exists() for path in kept)


def test_sweep_goes_by_the_last_change_of_the_name_too(tmp_path: Path) -> None:
    temp = tmp_path / ".vaultd-tmp-1"
    temp.write_bytes(b"x")
    os.utime(temp, (1, 1))
    assert fs.sweep_temps(tmp_path, HOUR, time.time()) == 0


# --- locks

HOLD = """
import sys
from pathlib import Path
from vaultd.store.fs import Lock
lock = Lock(Path(sys.argv[1]))
assert lock.acquire(blocking=True)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lock_is_held_by_one_and_dies_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "write.lock"
    with child(HOLD, path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        lock = Lock(path)
        assert not lock.acquire(blocking=False)
        assert not lock.held
        process.send_signal(signal.SIGKILL)
        process.wait()
        until(lambda: lock.acquire(blocking=False))
    assert lock.held
    assert lock.acquire(blocking=False)
    lock.release()
    lock.release()
    assert not lock.held
    assert path.exists()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_blocking_lock_waits(tmp_path: Path) -> None:
    first, second = Lock(tmp_path / "lock"), Lock(tmp_path / "lock")
    got = threading.Event()

    def wait() -> None:
        with second:
            got.set()

    with first:
        waiter = threading.Thread(target=wait)
        waiter.start()
        assert not got.wait(0.1)
    assert got.wait(10)
    waiter.join()
    assert not second.held


def test_a_lock_file_that_was_made_anew_is_another_lock(tmp_path: Path) -> None:
    """Who waited on the old file must not go on beside the holder of the new one."""
    path = tmp_path / "lock"
    first, waiting, other = Lock(path), Lock(path), Lock(path)
    assert first.acquire(blocking=False)
    waiter = threading.Thread(target=waiting.acquire, args=(True,))
    waiter.start()
    until(lambda: _flocks(path) == 2)
    path.unlink()
    assert other.acquire(blocking=False)
    first.release()
    waiter.join(0.2)
    assert not waiting.held
    other.release()
    waiter.join(10)
    assert waiting.held
    waiting.release()


def _flocks(path: Path) -> int:
    """How many hold or wait for a lock on the file, by /proc/locks."""
    inode = f":{path.stat().st_ino} "
    return sum(inode in line for line in Path("/proc/locks").read_text().splitlines())
