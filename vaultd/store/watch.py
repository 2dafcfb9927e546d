"""Hints that pages changed, from the system's file notifications. The only user of watchdog.

A hint says where to look, never what happened: whoever takes it looks at the disk. Hints can be late, doubled, of an
old name, or lost; then, and when they are too many, the hint is "look at everything". Hidden folders (`.git`,
`.vaultd`) are not watched: the root is watched by itself and each visible folder in it with all that it holds.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import threading
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent

__all__ = ["Hints", "Watch"]

_MOST = 500
"""Paths that are kept apart; more are "everything": one scan is quicker than so many looks."""

_MUTE = frozenset({"9p", "cifs", "smb3", "smbfs", "nfs", "nfs4", "drvfs", "vboxsf", "prl_fs", "afs", "ceph", "lustre"})
"""File systems that other machines change without a word to this one."""

_LIBRARY = "watchdog.observers"

log = logging.getLogger("vaultd")


@dataclass(frozen=True, slots=True)
class Hints:
    """Where to look: paths from the vault's root, or at everything."""

    paths: frozenset[str] = frozenset()
    everything: bool = False


@dataclass(slots=True)
class _Gathered:
    paths: set[str] = field(default_factory=set)
    everything: bool = False


class Watch:
    """Watches a vault from `start` on. `wake` is set with the first hint after a `take`; it must not block."""

    def __init__(self, root: Path, wake: Callable[[], None], mounts: Path = Path("/proc/self/mountinfo")) -> None:
        self._root = os.path.realpath(root)
        self._wake = wake
        self._mounts = mounts
        self._guard = threading.Lock()
        self._gathered = _Gathered()
        self._observer: Any = None
        self._told = _Library(self._overflow)
        self.reason = ""

    @property
    def works(self) -> bool:
        """Whether hints can be expected; `reason` says in words why not."""
        observer = self._observer
        if observer is None or self.reason or not observer.is_alive():
            return False
        # What reads from the system is another thread, which ends when a new folder is one too many.
        readers = [reader for e in observer.emitters if (reader := getattr(e, "_inotify_fd", None)) is not None]
        return all(reader.is_alive() for reader in readers)

    def start(self) -> bool:
        """Begin, or begin again after it broke off: everything is to be looked at then. Whether it works."""
        self.stop()
        kind = self._file_system()
        if kind in _MUTE or kind.startswith("fuse"):
            self.reason = f"the vault's file system ({kind}) does not tell of changes"
            return False
        try:
            self._observe()
            self.reason = ""
        except OSError as error:
            self.stop()
            self.reason = _words(error)
        self._note(everything=True)
        return self.works

    def stop(self) -> None:
        """End; hints that were gathered stay."""
        observer, self._observer = self._observer, None
        logging.getLogger(_LIBRARY).removeHandler(self._told)
        if observer is not None:
            with contextlib.suppress(Exception):  # of one whose threads died
                observer.unschedule_all()
            with contextlib.suppress(Exception):
                observer.stop()
            if observer.is_alive():
                observer.join(2.0)

    def take(self) -> Hints:
        """What came since the last time."""
        with self._guard:
            taken, self._gathered = self._gathered, _Gathered()
        return Hints(frozenset(taken.paths), taken.everything)

    def _observe(self) -> None:
        """Start watchdog. OSError when the system has no room for more watches."""
        from watchdog.events import (
            DirCreatedEvent,
            DirDeletedEvent,
            DirMovedEvent,
            FileClosedEvent,
            FileCreatedEvent,
            FileDeletedEvent,
            FileMovedEvent,
            FileSystemEventHandler,
        )
        from watchdog.observers import Observer

        # A folder that is made while it is looked into is warned of; as an error that would end watchdog's thread.
        warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning)
        watch = self

        class Receiver(FileSystemEventHandler):
            def dispatch(self, event: FileSystemEvent) -> None:
                watch._received(event)

        wanted: list[type[FileSystemEvent]] = [FileCreatedEvent, FileClosedEvent, FileMovedEvent, FileDeletedEvent]
        wanted += [DirCreatedEvent, DirMovedEvent, DirDeletedEvent]
        self._observer = Observer()
        self._receiver, self._wanted = Receiver(), wanted
        logging.getLogger(_LIBRARY).addHandler(self._told)
        self._observer.start()
        self._observer.schedule(self._receiver, self._root, recursive=False, event_filter=wanted)
        with os.scandir(self._root) as entries:
            folders = [e.name for e in entries if not e.name.startswith(".") and e.is_dir(follow_symlinks=False)]
        for name in folders:
            self._look_into(name)

    def _look_into(self, name: str) -> None:
        """Watch a folder of the root's with all that it holds."""
        path = f"{self._root}/{name}"
        self._observer.schedule(self._receiver, path, recursive=True, event_filter=self._wanted)

    def _received(self, event: FileSystemEvent) -> None:
        """A notification, on a thread of watchdog's: whatever goes wrong here must not end it."""
        try:
            paths = [os.fsdecode(p)[len(self._root) + 1 :] for p in (event.src_path, event.dest_path) if p]
            shown = [path for path in paths if path and not any(part.startswith(".") for part in path.split("/"))]
            if event.is_directory:
                for path in shown:
                    if "/" not in path and event.event_type != "deleted" and Path(self._root, path).is_dir():
                        self._look_into(path)
                self._note(everything=bool(shown))
            else:
                self._note([path for path in shown if path[-3:].lower() == ".md"])
        except Exception:  # a hint that cannot be read is one to look at everything
            log.exception("a notification of the file system could not be read")
            self._note(everything=True)

    def _overflow(self) -> None:
        """watchdog told of something on its own log: an overflow, or that it gave a folder up."""
        self._note(everything=True)

    def _note(self, paths: Iterable[str] = (), everything: bool = False) -> None:
        with self._guard:
            gathered = self._gathered
            gathered.paths.update(paths)
            if everything or len(gathered.paths) > _MOST:
                gathered.everything = True
                gathered.paths.clear()
            if not gathered.paths and not gathered.everything:
                return
        self._wake()

    def _file_system(self) -> str:
        """The type of the file system that the vault lies on; "" where the system does not say."""
        best, kind = "", ""
        try:
            rows = self._mounts.read_text("utf-8", "replace").splitlines()
        except OSError:
            return ""
        for row in rows:
            mount, _, rest = row.partition(" - ")
            fields = mount.split()
            point = fields[4].replace("\\040", " ") if len(fields) > 4 else ""
            inside = point == "/" or self._root == point or self._root.startswith(f"{point}/")
            if point and inside and len(point) >= len(best):
                best, kind = point, rest.partition(" ")[0]
        return kind


class _Library(logging.Handler):
    """Hears what watchdog logs: an overflow of the system's queue is told nowhere else."""

    def __init__(self, told: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self._told = told

    def emit(self, record: logging.LogRecord) -> None:
        """Something was logged."""
        self._told()


def _words(error: OSError) -> str:
    """Why watching is not possible, and what mends it."""
    if error.errno == errno.ENOSPC:
        return "the system has no more watches: raise fs.inotify.max_user_watches"
    if error.errno == errno.EMFILE:
        return "the system has no more watchers: raise fs.inotify.max_user_instances"
    return error.strerror or type(error).__name__
