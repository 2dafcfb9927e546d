"""Compare-and-swap beside a person who saves at the worst moment."""

from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.store import racing
from tests.waiting import until
from vaultd.store import fs, lease, swap
from vaultd.store.lease import Hold
from vaultd.store.rescue import rescue
from vaultd.store.retired import mark
from vaultd.store.retired import read_all as real_read_all
from vaultd.store.swap import Batch, Change, SwapResult, swap_many

ROOT = Path(__file__).resolve().parents[2]
OLD, NEW, USER, LATER = b"old\n", b"new by vaultd\n", b"saved by the person\n", b"saved again\n"

needs_leases = pytest.mark.skipif(sys.platform != "linux", reason="leases and exchange are Linux's")


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_bytes(OLD)
    return path


def change(page: Path, data: bytes = NEW, expected: bytes = OLD) -> Change:
    return Change(page, data, fs.revision(expected))


def quick() -> Batch:
    """A batch that does not wait: what is to happen meanwhile, the test has done itself."""
    return Batch(quiet=0.0)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def retired(page: Path) -> Path:
    """The temp name that the old inode has between exchange and settling."""
    (found,) = page.parent.glob(f"{fs.SWAP_PREFIX}*")
    return found


def at_the_exchange(monkeypatch: pytest.MonkeyPatch, *acts: Callable[[], object]) -> None:
    """Do the n-th act right before the n-th exchange."""
    real, left = fs.exchange, list(acts)

    def exchange(first: Path, second: Path) -> bool:
        if left:
            left.pop(0)()
        return real(first, second)

    monkeypatch.setattr(fs, "exchange", exchange)


def renamed(page: Path, text: bytes) -> Callable[[], object]:
    return lambda: racing.save_by_rename(page, text)


# --- nobody about


def test_the_expected_text_is_replaced(page: Path) -> None:
    assert swap.swap(page, NEW, fs.revision(OLD), quiet=0.0) is SwapResult.WRITTEN
    assert page.read_bytes() == NEW
    assert names(page.parent) == ["page.md"]


def test_another_text_is_left_alone(page: Path) -> None:
    assert swap.swap(page, NEW, fs.revision(b"older"), quiet=0.0) is SwapResult.DIVERGED
    assert page.read_bytes() == OLD
    assert names(page.parent) == ["page.md"]


def test_a_missing_page_is_gone(page: Path) -> None:
    assert swap.swap(page.with_name("no.md"), NEW, fs.revision(OLD)) is SwapResult.GONE
    assert swap.swap(page / "below.md", NEW, fs.revision(OLD)) is SwapResult.GONE
    assert names(page.parent) == ["page.md"]


def test_mode_owner_and_attributes_stay(page: Path) -> None:
    page.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(page, 1234, 4321)
    try:
        os.setxattr(page, "user.colour", b"blue")
        attributes = {name: os.getxattr(page, name) for name in os.listxattr(page)}
    except OSError:  # a file system without them
        attributes = {}
    before = page.stat()
    assert swap.swap(page, NEW, fs.revision(OLD), quiet=0.0) is SwapResult.WRITTEN
    after = page.stat()
    assert stat.S_IMODE(after.st_mode) == 0o640
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
    assert after.st_nlink == 1
    assert {name: os.getxattr(page, name) for name in attributes} == attributes


def test_many_share_one_wait(tmp_path: Path) -> None:
    waits: list[float] = []
    pages = [tmp_path / f"{number}.md" for number in range(150)]
    for path in pages:
        path.write_bytes(OLD)
    with Batch(sync=False, clock=lambda: 0.0, pause=waits.append) as batch:
        assert {batch.swap(change(path)) for path in pages} == {SwapResult.WRITTEN}
    assert waits == [swap.QUIET] * 2
    assert {path.read_bytes() for path in pages} == {NEW}
    assert len(names(tmp_path)) == 150
    assert batch.undone == {}


def test_results_come_in_order(page: Path) -> None:
    changes = [change(page), change(page.with_name("no.md")), change(page, NEW, b"x")]
    results = swap_many(changes, quiet=0.0)
    assert results == [SwapResult.WRITTEN, SwapResult.GONE, SwapResult.DIVERGED]


def test_one_page_may_change_twice_in_a_batch(page: Path) -> None:
    with quick() as batch:
        assert batch.swap(change(page)) is SwapResult.WRITTEN
        assert batch.swap(change(page, b"second\n", NEW)) is SwapResult.WRITTEN
    assert batch.undone == {}
    assert page.read_bytes() == b"second\n"
    assert names(page.parent) == ["page.md"]


def test_a_write_that_does_not_fit_leaves_the_page(page: Path) -> None:
    code = """
import resource, sys
from pathlib import Path
from vaultd.store import fs, swap
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
try:
    swap.swap(Path(sys.argv[1]), b"x" * 10000, fs.revision(b"old\\n"))
except OSError as error:
    print("refused")
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(page)], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "refused\n"
    assert page.read_bytes() == OLD
    assert names(page.parent) == ["page.md"]


# --- somebody has it open


@needs_leases
@pytest.mark.parametrize("mode", ["rb", "r+b"])
def test_an_open_page_is_busy(page: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at_the_exchange(monkeypatch, lambda: pytest.fail("it was exchanged"))
    with page.open(mode):
        assert swap.swap(page, NEW, fs.revision(OLD), quiet=0.0) is SwapResult.BUSY
    assert page.read_bytes() == OLD
    assert names(page.parent) == ["page.md"]


@needs_leases
def test_a_save_that_waits_in_open_is_not_lost(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The editor opens after the lease was taken; the kernel wakes it when we let go, with the old inode in hand."""
    saver = threading.Thread(target=racing.save_in_place, args=(page, USER))

    def start() -> None:
        saver.start()
        until(lambda: _breaking(page))

    at_the_exchange(monkeypatch, start)
    assert swap.swap(page, NEW, fs.revision(OLD)) is SwapResult.BUSY
    saver.join(10)
    assert page.read_bytes() == USER
    assert names(page.parent) == ["page.md"]


@needs_leases
def test_the_signal_of_the_lease_ends_no_process(page: Path) -> None:
    """In a plain process, from a thread other than the main one, while the main one is in a system call."""
    code = """
import sys, threading
from pathlib import Path
from vaultd.store import fs, swap
page, real = Path(sys.argv[1]), fs.exchange
def exchange(first, second):
    print("leased", flush=True)
    sys.stdin.readline()
    return real(first, second)
fs.exchange = exchange
worker = threading.Thread(target=lambda: print(swap.swap(page, b"new", fs.revision(b"old\\n")).value, flush=True))
worker.start()
worker.join()
"""
    with _python(code, page) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "leased\n"
        reader = threading.Thread(target=page.read_bytes)
        reader.start()
        until(lambda: _breaking(page))
        out, _ = process.communicate("go\n", timeout=60)
        reader.join(10)
    assert process.returncode == 0
    assert out.splitlines()[-1] == "busy"
    assert page.read_bytes() == OLD


def test_a_save_on_its_way_to_the_old_inode_comes_back_into_place(page: Path) -> None:
    with quick() as batch:
        assert batch.swap(change(page)) is SwapResult.WRITTEN
        assert page.read_bytes() == NEW
        retired(page).write_bytes(USER)
    assert batch.undone == {page: SwapResult.DIVERGED}
    assert page.read_bytes() == USER
    assert names(page.parent) == ["page.md"]


@needs_leases
def test_an_old_inode_that_is_still_open_comes_back_into_place(page: Path) -> None:
    with quick() as batch:
        assert batch.swap(change(page)) is SwapResult.WRITTEN
        editor = os.open(retired(page), os.O_RDWR)
    assert batch.undone == {page: SwapResult.BUSY}
    assert page.read_bytes() == OLD
    os.pwrite(editor, USER, 0)
    os.close(editor)
    assert page.read_bytes() == USER
    assert names(page.parent) == ["page.md"]


@needs_leases
def test_a_save_that_comes_while_the_old_inode_is_compared_is_not_lost(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with quick() as batch:
        batch.swap(change(page))
        saver = threading.Thread(target=racing.save_in_place, args=(retired(page), USER))

        def read_all(handle: int) -> bytes:
            data = real_read_all(handle)
            if not saver.ident:
                saver.start()
                until(lambda: _breaking(page))
            return data

        monkeypatch.setattr("vaultd.store.swap.read_all", read_all)
    saver.join(10)
    assert batch.undone == {page: SwapResult.BUSY}
    assert page.read_bytes() == USER
    assert names(page.parent) == ["page.md"]


def test_a_save_in_the_meantime_stands_and_the_late_one_is_kept_beside(page: Path) -> None:
    with quick() as batch:
        assert batch.swap(change(page)) is SwapResult.WRITTEN
        retired(page).write_bytes(USER)
        racing.save_in_place(page, LATER)
    assert page.read_bytes() == LATER
    assert batch.undone == {page: SwapResult.DIVERGED}
    (kept,) = batch.kept
    assert kept.name == f"page (kept {fs.revision(USER)[:16]}).md"
    assert kept.read_bytes() == USER
    assert names(page.parent) == sorted(["page.md", kept.name])


@pytest.mark.parametrize("save", racing.SAVE.values(), ids=racing.STYLES)
def test_a_save_right_after_the_write_stands(page: Path, save: Callable[[Path, bytes], None]) -> None:
    with quick() as batch:
        assert batch.swap(change(page)) is SwapResult.WRITTEN
        save(page, USER)
    assert page.read_bytes() == USER
    assert names(page.parent) == ["page.md"]


def test_a_page_removed_right_after_the_write_stays_removed(page: Path) -> None:
    with quick() as batch:
        batch.swap(change(page))
        page.unlink()
    assert names(page.parent) == []


def test_a_page_removed_after_a_late_save_comes_back(page: Path) -> None:
    with quick() as batch:
        batch.swap(change(page))
        retired(page).write_bytes(USER)
        page.unlink()
    assert page.read_bytes() == USER
    assert names(page.parent) == ["page.md"]


def test_what_stays_open_keeps_a_name_until_it_is_closed(page: Path) -> None:
    batch = quick()
    batch.swap(change(page))
    racing.save_by_rename(page, LATER)
    with retired(page).open("r+b") as editor:
        batch.settle()
        assert page.read_bytes() == LATER
        if sys.platform == "linux":
            assert rescue(page.parent, 0.0, time.time() + 10) == []
            assert retired(page).exists()
            editor.write(USER)
            editor.truncate()
    assert [path.name for path in rescue(page.parent, 0.0, time.time() + 10)] == [
        f"page (kept {fs.revision(USER)[:16]}).md"
    ]
    assert page.read_bytes() == LATER


# --- somebody renames at the moment of the exchange


def test_a_text_renamed_there_at_the_last_moment_goes_back(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_the_exchange(monkeypatch, renamed(page, USER))
    assert swap.swap(page, NEW, fs.revision(OLD), quiet=0.0) is SwapResult.DIVERGED
    assert page.read_bytes() == USER
    assert names(page.parent) == ["page.md"]


def test_of_several_texts_renamed_there_the_last_stands(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_the_exchange(monkeypatch, *(renamed(page, b"save %d\n" % number) for number in range(4)))
    assert swap.swap(page, NEW, fs.revision(OLD), quiet=0.0) is SwapResult.DIVERGED
    assert page.read_bytes() == b"save 3\n"
    assert names(page.parent) == ["page.md"]


def test_a_page_between_two_names_is_busy(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As vim does: the page becomes the backup, then the new text is written under its name."""
    backup = page.with_name("page.md~")
    at_the_exchange(monkeypatch, lambda: page.replace(backup))
    assert swap.swap(page, NEW, fs.revision(OLD), quiet=0.0) is SwapResult.BUSY
    assert names(page.parent) == ["page.md~"]
    assert backup.read_bytes() == OLD


def test_a_text_is_put_back_even_when_ours_was_moved_aside(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backup = page.with_name("page.md~")
    at_the_exchange(monkeypatch, renamed(page, USER), lambda: page.replace(backup))
    assert swap.swap(page, NEW, fs.revision(OLD), quiet=0.0) is SwapResult.DIVERGED
    assert page.read_bytes() == USER
    assert names(page.parent) == ["page.md", "page.md~"]


def test_ours_that_was_opened_before_it_went_out_again_is_not_lost(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours stands for a moment, somebody saves into it, and only then the newer text comes back into place."""
    at_the_exchange(monkeypatch, renamed(page, USER), lambda: racing.save_in_place(page, LATER))
    with quick() as batch:
        assert batch.swap(change(page)) is SwapResult.DIVERGED
    assert page.read_bytes() == USER
    (kept,) = batch.kept
    assert kept.read_bytes() == LATER


# --- where the system does not help


@pytest.fixture
def no_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "take", lambda handle: Hold.NONE)


@pytest.mark.usefixtures("no_leases")
def test_without_leases_only_quiet_files_are_replaced(page: Path) -> None:
    assert swap.swap(page, NEW, fs.revision(OLD), quiet=0.0) is SwapResult.BUSY
    assert names(page.parent) == ["page.md"]
    os.utime(page, (1, 1))
    assert swap.swap(page, NEW, fs.revision(OLD), quiet=0.0) is SwapResult.WRITTEN
    assert page.read_bytes() == NEW
    assert names(page.parent) == ["page.md"]


@pytest.mark.usefixtures("no_leases")
@pytest.mark.parametrize("portable", [False, True])
def test_without_leases_a_late_save_still_comes_back(
    page: Path, monkeypatch: pytest.MonkeyPatch, portable: bool
) -> None:
    if portable:
        monkeypatch.setattr(fs, "_libc", lambda name: None)
    os.utime(page, (1, 1))
    with quick() as batch:
        assert batch.swap(change(page)) is SwapResult.WRITTEN
        retired(page).write_bytes(USER)
    assert page.read_bytes() == USER
    assert batch.undone == {page: SwapResult.DIVERGED}
    assert names(page.parent) == ["page.md"]


def test_without_exchange_and_links_it_is_a_rename(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fs, "exchange", lambda first, second: False)
    assert swap.swap(page, NEW, fs.revision(OLD), quiet=0.0) is SwapResult.WRITTEN
    assert page.read_bytes() == NEW
    assert names(page.parent) == ["page.md"]


def test_a_lease_is_refused_elsewhere_than_on_files() -> None:
    reader, writer = os.pipe()
    assert lease.take(reader) is Hold.NONE
    lease.let_go(reader)
    os.close(reader)
    os.close(writer)


# --- killed in the middle

KILLED = """
import os, signal, sys
from pathlib import Path
from vaultd.store import fs, swap
page = Path(sys.argv[1])
print(swap.Batch().swap(swap.Change(page, b"new by vaultd\\n", fs.revision(b"old\\n"))).value, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_after_the_exchange(page: Path) -> Path:
    with _python(KILLED, page) as process:
        assert process.communicate(timeout=60)[0] == "written\n"
    assert process.returncode == -signal.SIGKILL
    assert page.read_bytes() == NEW
    return retired(page)


def test_after_a_kill_the_old_text_is_dropped(page: Path) -> None:
    killed_after_the_exchange(page)
    assert rescue(page.parent, 3600.0, time.time()) == []
    assert len(names(page.parent)) == 2
    assert rescue(page.parent, 0.0, time.time() + 10) == []
    assert page.read_bytes() == NEW
    assert names(page.parent) == ["page.md"]


def test_after_a_kill_a_save_into_the_old_inode_comes_back(page: Path) -> None:
    killed_after_the_exchange(page).write_bytes(USER)
    assert rescue(page.parent, 0.0, time.time() + 10) == [page]
    assert page.read_bytes() == USER
    assert names(page.parent) == ["page.md"]


def test_after_a_kill_a_save_is_kept_beside_what_came_later(page: Path) -> None:
    killed_after_the_exchange(page).write_bytes(USER)
    racing.save_by_rename(page, LATER)
    (kept,) = rescue(page.parent, 0.0, time.time() + 10)
    assert page.read_bytes() == LATER
    assert kept.read_bytes() == USER
    assert kept.name == f"page (kept {fs.revision(USER)[:16]}).md"
    assert names(page.parent) == sorted(["page.md", kept.name])


def test_a_file_that_was_only_prepared_is_dropped(page: Path) -> None:
    temp = page.with_name(f"{fs.SWAP_PREFIX}{fs.revision(OLD)[:16]}-{fs.revision(NEW)[:16]}-{mark(page)}-0")
    temp.write_bytes(NEW)
    assert rescue(page.parent, 0.0, time.time() + 10) == []
    assert page.read_bytes() == OLD
    assert names(page.parent) == ["page.md"]


@needs_leases
def test_a_retired_file_that_somebody_has_open_is_left_for_the_next_time(page: Path) -> None:
    """A backup program that reads it, say: nothing moves, and no page appears."""
    temp = killed_after_the_exchange(page)
    renamed_page = page.rename(page.with_name("elsewhere.md"))
    with temp.open("rb"):
        assert rescue(page.parent, 0.0, time.time() + 10) == []
        assert names(page.parent) == sorted([temp.name, "elsewhere.md"])
    assert rescue(page.parent, 0.0, time.time() + 10) == []
    assert names(page.parent) == ["elsewhere.md"]
    assert renamed_page.read_bytes() == NEW


def test_after_a_kill_what_is_kept_bears_the_name_of_its_page(tmp_path: Path) -> None:
    """Killed after the person's text was put back: the temp name holds ours, into which somebody saved meanwhile."""
    page = tmp_path / "other.md"
    page.write_bytes(OLD)
    killed_after_the_exchange(page).write_bytes(LATER)
    racing.save_by_rename(page, USER)
    assert [kept.name for kept in rescue(tmp_path, 0.0, time.time() + 10)] == [
        f"other (kept {fs.revision(LATER)[:16]}).md"
    ]
    assert page.read_bytes() == USER


def test_after_a_kill_two_pages_of_one_text_are_not_mixed_up(page: Path) -> None:
    for name in ("a.md", "z.md"):
        page.with_name(name).write_bytes(NEW)
    killed_after_the_exchange(page).write_bytes(USER)
    assert rescue(page.parent, 0.0, time.time() + 10) == [page]
    assert page.read_bytes() == USER
    assert names(page.parent) == ["a.md", "page.md", "z.md"]


def test_after_a_kill_a_save_without_a_page_gets_a_name(page: Path) -> None:
    killed_after_the_exchange(page).write_bytes(USER)
    page.unlink()
    (kept,) = rescue(page.parent, 0.0, time.time() + 10)
    assert kept.read_bytes() == USER
    assert names(page.parent) == [kept.name]


def test_after_a_kill_a_save_finds_a_page_that_was_moved(page: Path) -> None:
    killed_after_the_exchange(page).write_bytes(USER)
    page.rename(page.with_name("elsewhere.md"))
    assert rescue(page.parent, 0.0, time.time() + 10) == [page.with_name("elsewhere.md")]
    assert names(page.parent) == ["elsewhere.md"]
    assert page.with_name("elsewhere.md").read_bytes() == USER


# --- editors that save as fast as they can


def check(race: racing.Race, folder: Path, swaps: int) -> None:
    print(race)
    assert race.lost == 0
    for style in racing.STYLES:
        assert sum(race.results[style][result.value] for result in SwapResult) >= swaps
        assert race.results[style]["written"] > 0
        assert race.editors[style]["checked"] > swaps
    assert [path for path in folder.iterdir() if path.name.startswith(fs.TEMP_PREFIX)] == []


@needs_leases
def test_no_save_of_three_kinds_of_editors_is_lost(tmp_path: Path) -> None:
    check(racing.run(tmp_path, 264, count=33), tmp_path, 264)


@pytest.mark.slow
@needs_leases
@pytest.mark.parametrize("pages", [2, 30])
def test_no_save_is_lost_in_a_long_race(tmp_path: Path, pages: int) -> None:
    check(racing.run(tmp_path, 60 * pages, count=pages, seed=pages), tmp_path, 60 * pages)


@pytest.mark.slow
@needs_leases
@pytest.mark.parametrize("pages", [3, 12])
def test_no_save_is_lost_in_a_minute_of_saving_the_same_pages(tmp_path: Path, pages: int) -> None:
    """Three editors at once, each in its own way: in place, by rename, as vim does; vaultd writes as fast as it can."""
    race = racing.run(tmp_path, 0, count=pages, seed=60 + pages, seconds=60)
    assert race.seconds >= 60
    check(race, tmp_path, 50 * pages)


@pytest.mark.slow
@needs_leases
def test_no_save_is_lost_to_writers_that_are_killed(tmp_path: Path) -> None:
    """SIGKILL at any moment of a batch, again and again, while the editors save; `rescue` runs as after a restart."""
    race, chance = racing.Race(), random.Random(3)
    command = [sys.executable, "-m", "tests.store.racing", "--write", str(tmp_path), "10"]
    with racing.editors(tmp_path, 10, racing.STYLES, 3, race):
        for _ in range(40):
            with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as writer:
                assert writer.stdout is not None
                assert writer.stdout.readline() == b"1\n"
                threading.Event().wait(chance.random())
                writer.kill()
            threading.Event().wait(swap.QUIET)
            rescue(tmp_path, 0.0, time.time() + 10)
            assert not list(tmp_path.glob(f"{fs.SWAP_PREFIX}*"))
    print(race.editors)
    assert race.lost == 0
    assert all((tmp_path / f"{style}-{number}.md").exists() for style in racing.STYLES for number in range(10))


@pytest.mark.slow
def test_the_race_does_lose_saves_to_a_check_and_a_rename(tmp_path: Path) -> None:
    race = racing.run(tmp_path, 3000, count=30, naive=True)
    print(race)
    assert race.lost > 0


def _breaking(page: Path) -> bool:
    """Whether somebody waits for the lease on the page to end, by /proc/locks."""
    inodes = {f":{path.stat().st_ino} " for path in page.parent.iterdir()}
    lines = Path("/proc/locks").read_text().splitlines()
    return any("LEASE" in line and "BREAKING" in line and any(inode in line for inode in inodes) for line in lines)


@contextmanager
def _python(code: str, *args: object) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", code, *map(str, args)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()
