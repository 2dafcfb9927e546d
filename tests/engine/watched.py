"""A vault under a live index that runs in this process, once with hints from the file system and once without."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.scratch import Scratch
from tests.waiting import until
from vaultd.engine.live import Live
from vaultd.engine.reconcile import Behind
from vaultd.engine.stores import Stores


@dataclass
class Watched:
    """What the daemon's index loop does, on a thread; `seen` are the paths that differed, pass by pass."""

    scratch: Scratch
    stores: Stores
    live: Live
    every_s: float = 0.3
    seen: list[set[str]] = field(default_factory=list)
    passes: int = 0
    scans: int = 0
    faults: list[str] = field(default_factory=list)
    _ending: threading.Event = field(default_factory=threading.Event)

    @property
    def vault(self) -> Path:
        """The vault's folder."""
        return self.scratch.vault

    def page(self, path: str, text: str | bytes) -> Path:
        """A page written by somebody else than vaultd, its folders made."""
        target = self.vault / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode())
        return target

    def paths(self, word: str) -> list[str]:
        """The pages that a search finds by now, in any order."""
        return sorted(hit.path for hit in self.live.index.search(word, 50))

    def finds(self, word: str, *paths: str, timeout: float = 15) -> None:
        """Wait until a search for the word finds these pages and no others."""
        wanted = sorted(paths)
        try:
            until(lambda: self.paths(word) == wanted, timeout)
        except AssertionError:
            raise AssertionError(f"{word}: {self.paths(word)}, not {wanted}; {self.faults}") from None

    def snapshot(self) -> dict[str, tuple[bytes, int]]:
        """Bytes and time of all pages."""
        found = {}
        for path in self.vault.rglob("*.md"):
            if ".vaultd" not in path.parts and path.is_file():
                found[str(path.relative_to(self.vault))] = (path.read_bytes(), path.stat().st_mtime_ns)
        return found

    def note(self, behind: Behind) -> None:
        """What the daemon is told."""
        if behind.count:
            self.seen.append({*(s.path for s in behind.changed), *behind.gone})

    def loop(self) -> None:
        """The index loop."""
        while not self._ending.is_set():
            try:
                self.live.rearm()
                took = self.live.step(self.every_s)
                self.scans += took > 0
            except Exception as error:  # noqa: BLE001  as the daemon does: told at the end, and tried again
                self.faults.append("".join(traceback.format_exception(error)))
            self.passes += 1
            self.live.woken.wait(0.1 if self.live.watch is None else 1.0)
            self.live.woken.clear()

    def end(self) -> None:
        """Let the loop end."""
        self._ending.set()
        self.live.woken.set()


@contextmanager
def watching(scratch: Scratch, watch: bool, every_s: float = 0.0) -> Iterator[Watched]:
    """The loop runs while the block does. With watching there is but the first scan unless hints ask for more."""
    stores = scratch.init()
    live = Live(stores, watch=watch)
    world = Watched(scratch, stores, live, every_s or (3600.0 if watch else 0.1))
    live.seen = world.note
    thread = threading.Thread(target=world.loop)
    thread.start()
    try:
        until(lambda: live.index.pages > 0 and world.passes > 0, 15)
        assert (live.watch is not None and live.watch.works) == watch
        yield world
    finally:
        world.end()
        thread.join(30)
        live.close()
    assert not world.faults, world.faults[0]
