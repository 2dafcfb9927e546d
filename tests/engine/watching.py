"""A vault with a daemon in a thread of the test, with watching on or off, and what its index finds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.scratch import Scratch, git
from tests.store.indexes import found
from tests.waiting import until
from vaultd.engine import following
from vaultd.engine.daemon import Daemon
from vaultd.engine.stores import Stores, local_now, open_stores

__all__ = ["Kept", "Room", "kept"]

SOON_S = 0.1
"""Seconds between scans where nothing is watched, so that a test need not wait for five."""


class Kept:
    """A daemon at work, and its index, asked without a word to the daemon: what is true there became true by itself."""

    def __init__(self, scratch: Scratch, stores: Stores, daemon: Daemon) -> None:
        self.scratch, self.stores, self.daemon = scratch, stores, daemon
        self.vault = scratch.vault
        self._rooms = 0

    def found(self, word: str) -> set[str]:
        return {hit.path for hit in found(self.daemon.live.index, word, 100)}

    def becomes(self, word: str, *paths: str, timeout: float = 15) -> None:
        """Wait until exactly these pages are found by a word."""
        wanted = set(paths)
        try:
            until(lambda: self.found(word) == wanted, timeout, 0.01)
        except AssertionError:
            raise AssertionError(f"{word!r} finds {self.found(word)}, not {wanted}") from None

    def project(self, path: str) -> str:
        known = self.daemon.live.index.known().get(path)
        return known.project if known is not None else "(none)"

    @property
    def scans(self) -> int:
        return self.daemon._following.scans

    def room(self) -> Room:
        """A folder of its own, with a page that has to stay found."""
        self._rooms += 1
        tag = "".join(chr(ord("b") + int(digit)) for digit in f"{self._rooms:03}")
        return Room(self, f"notes/room{self._rooms}", f"q{tag}qx")


class Room:
    """A folder of the vault for one case."""

    def __init__(self, kept: Kept, folder: str, tag: str) -> None:
        self.kept, self.folder, self.tag = kept, folder, tag
        self.bystander = self.word("beside")
        self.path.mkdir(parents=True)
        self.write("beside.md", self.bystander)
        kept.becomes(self.bystander, self.at("beside.md"))

    @property
    def path(self) -> Path:
        return self.kept.vault / self.folder

    def at(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def word(self, name: str) -> str:
        """A word that only this case has. Letters only: a number would be a word of its own."""
        letters = "".join(chr(ord("k") + int(c)) if c.isdigit() else c for c in name)
        return f"x{letters}{self.tag}"

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.write_text(text, "utf-8")
        return path

    def page(self, name: str, text: str) -> Path:
        """A page that is in the index already."""
        path = self.write(name, text)
        until(lambda: self.at(name) in self.kept.found(text), 15, 0.01)
        return path

    def state(self) -> dict[str, tuple[bytes, int, int]]:
        """The bytes, times and inodes of all files."""
        files = [p for p in self.path.rglob("*") if p.is_file()]
        return {str(p): (p.read_bytes(), p.stat().st_mtime_ns, p.stat().st_ino) for p in files}

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """In the block nothing is rewritten, and the page beside stays found all the time it is asked for."""
        before = self.state()
        yield
        assert self.state() == before
        assert self.kept.found(self.bystander) == {self.at("beside.md")}


@contextmanager
def kept(
    base: Path,
    *,
    watch: bool,
    works: bool = True,
    pages: dict[str, str] | None = None,
    commit: bool = False,
    before: Callable[[pytest.MonkeyPatch], None] = lambda _: None,
) -> Iterator[Kept]:
    """A daemon over a new vault, which has these pages, until the block ends.

    `works`: whether the watch is expected to; `before` may change what the daemon will meet.
    """
    base.mkdir(parents=True, exist_ok=True)
    scratch = Scratch(base)
    scratch.init()
    (scratch.vault / "vaultd.toml").write_text(f"[daemon]\nwatch = {'true' if watch else 'false'}\n")
    for name, text in (pages or {}).items():
        path = scratch.vault / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    if commit:
        git("add", "-A", cwd=scratch.vault)
        git("commit", "-q", "-m", "pages", cwd=scratch.vault)
    stores = open_stores(scratch.config, local_now)
    daemon = Daemon(stores)
    ready = threading.Event()
    thread = threading.Thread(target=daemon.run, kwargs={"ready": ready.set})
    with pytest.MonkeyPatch.context() as patch:
        if not watch:
            patch.setattr(following, "_SCAN_S", SOON_S)
            patch.setattr(following, "_SCAN_SHARE", 10)
        patch.setattr(following, "_LOOK_S", 0.2)
        before(patch)
        thread.start()
        try:
            assert ready.wait(20)
            world = Kept(scratch, stores, daemon)
            until(lambda: world.scans > 0 and daemon.live.catch_up() == 0, 60)
            assert daemon.live.hinted == (watch and works)
            yield world
        finally:
            daemon.stop(for_good=True)
            thread.join(20)
            assert not thread.is_alive()
