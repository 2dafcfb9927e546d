from __future__ import annotations

import contextlib
import fcntl
import random
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.store import index_writer
from tests.store.indexes import World, doc, filled, paths
from tests.waiting import until
from vaultd.errors import HeldError
from vaultd.store import index as index_module
from vaultd.store.index import Drop, Index, Put
from vaultd.store.sums import torn

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.index.close()


def start(world: World, first: int, count: int) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "tests.store.index_writer",
        str(world.folder),
        str(world.vault),
        str(first),
        str(count),
    ]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def told(child: subprocess.Popen[str]) -> list[int]:
    """The batches that a stopped child said it had committed."""
    assert child.stdout is not None
    with child.stdout:
        return [int(line) for line in child.stdout if line.endswith("\n")]


def kill_in_the_middle(world: World, times: int, seed: int) -> None:
    chance = random.Random(seed)
    done = 0
    for turn in range(times):
        child = start(world, done, 10_000)
        assert child.stdout is not None
        committed = [int(child.stdout.readline()) for _ in range(chance.randint(1, 4))]
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(chance.random() * 0.06)
        child.send_signal(signal.SIGKILL)
        child.wait()
        committed += told(child)
        index = world.again()
        assert index.doubt is None, turn
        known = {path: state.revision for path, state in index.known().items()}
        sure = committed[-1] + 1
        assert known in (index_writer.after(sure), index_writer.after(sure + 1)), turn
        done = sure if known == index_writer.after(sure) else sure + 1
        fresh = Index(world.folder.parent / f"fresh{turn}", world.vault)
        fresh.rebuild(
            put
            for number in range(done)
            for put in index_writer.batch(number)
            if isinstance(put, Put) and known.get(put.path) == put.doc.revision
        )
        assert fresh.known() == index.known()
        for text in ("common words", index_writer.word(done - 1), *index_writer.after(done)):
            assert set(paths(index, text)) == set(paths(fresh, text))
        index.close()
        fresh.close()
    index = world.again()
    index.apply(index_writer.batch(done))
    assert paths(index, index_writer.word(done)) == [index_writer.page(done)]
    index.close()


def test_a_killed_writer_leaves_an_index_that_equals_a_fresh_one(world: World) -> None:
    kill_in_the_middle(world, 8, seed=1)


@pytest.mark.slow
def test_a_killed_writer_leaves_an_index_that_equals_a_fresh_one_often(world: World) -> None:
    kill_in_the_middle(world, 30, seed=2)


def test_searching_while_another_process_writes(world: World) -> None:
    world.index.apply([doc("fixed.md", "common landmark")])
    child = start(world, 0, 60)
    generations = [0]
    answers = 0
    while child.poll() is None:
        generations.append(world.index.generation)
        assert paths(world.index, "landmark") == ["fixed.md"]
        found = paths(world.index, "common", 50)
        assert len(found) == len(set(found))
        assert world.index.doubt is None
        answers += 1
    assert told(child) == list(range(60))
    assert child.returncode == 0
    assert generations == sorted(generations)
    assert len(set(generations)) > 5
    assert answers > 5
    assert {
        path: state.revision for path, state in world.index.known().items() if path != "fixed.md"
    } == index_writer.after(60)


def test_a_commit_while_an_index_is_being_opened_is_no_doubt(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.index.apply([doc("a.md", "word")])
    reader = world.again()
    check = torn
    calls = 0

    def slow(*args: Any) -> str | None:
        nonlocal calls
        calls += 1
        if calls <= 6:  # after the look at the folder, and again between the two checks
            with monkeypatch.context() as patched:
                patched.setattr(index_module, "torn", check)
                world.index.apply([doc("a.md", f"word {calls}")])
                world.index.close()
        return check(*args)

    with monkeypatch.context() as patched:
        patched.setattr(index_module, "torn", slow)
        assert paths(reader, "word") == ["a.md"]
    assert calls > 6
    assert reader.doubt is None
    assert reader.generation == world.index.generation
    reader.close()


def test_a_second_writer_waits_and_then_gives_up(world: World) -> None:
    world.index.apply([doc("a.md", "word")])
    hasty = Index(world.folder, world.vault, patience=0.1)
    lock = next(path for path in world.folder.rglob("*") if path.name.endswith("WRITELOCK"))
    with lock.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(HeldError):
            hasty.apply([doc("b.md", "word")])
        assert paths(hasty, "word") == ["a.md"]
        waiting = threading.Thread(target=world.index.apply, args=([doc("c.md", "word")],))
        waiting.start()
        assert paths(hasty, "word") == ["a.md"]
    waiting.join(10)
    until(lambda: sorted(paths(hasty, "word")) == ["a.md", "c.md"])
    hasty.apply([doc("b.md", "word")])
    assert hasty.pages == 3
    hasty.close()


def test_several_writers_at_once_lose_no_page(world: World) -> None:
    world.index.apply([doc("fixed.md", "word")])
    indexes = [world.again() for _ in range(3)]
    errors: list[Exception] = []

    def write(index: Index, name: int) -> None:
        try:
            for number in range(6):
                index.apply([doc(f"{name}-{number}.md", "word"), Drop(f"{name}-{number - 2}.md")])
        except Exception as error:  # noqa: BLE001  whatever it is, the test shows it
            errors.append(error)

    threads = [threading.Thread(target=write, args=(index, name)) for name, index in enumerate(indexes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert sorted(world.index.known()) == sorted(
        ["fixed.md", *(f"{name}-{number}.md" for name in range(3) for number in (4, 5))]
    )
    for index in indexes:
        index.close()


def test_one_index_serves_several_threads(world: World) -> None:
    filled(world)
    errors: list[Exception] = []
    stop = threading.Event()

    def read() -> None:
        try:
            while not stop.is_set():
                assert len(paths(world.index, "word", 50)) >= 19
                world.index.known()
        except Exception as error:  # noqa: BLE001  whatever it is, the test shows it
            errors.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(12):
        world.index.apply([doc(f"new{number}.md", "word")])
    world.index.compact()
    stop.set()
    for thread in threads:
        thread.join(30)
    assert errors == []
    assert world.index.pages == 31


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # whoosh lets go of files without closing
def test_a_full_disk_leaves_the_generation_before(world: World) -> None:
    generation = world.index.apply([doc("a.md", "old word")])
    big = " ".join(f"w{number}" for number in range(20_000))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            world.index.apply([doc("a.md", big), doc("b.md", "new word")])
        with pytest.raises(OSError, match="too large"):
            world.index.rebuild([doc("c.md", big)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (world.index.generation, world.index.doubt) == (generation, None)
    assert paths(world.again(), "word") == ["a.md"]
    assert world.index.apply([doc("b.md", "new word")]) > generation
    assert sorted(paths(world.index, "word")) == ["a.md", "b.md"]
    assert not [
        path
        for path in world.folder.rglob("*")
        if path.suffix not in {".json", ".toc", ".seg"} and path.is_file() and path.stat().st_size
    ]
