"""The watch: hints of what changed in a vault. A hint is never believed: who takes it looks at the disk. The only user
of watchdog, which is imported with this module: whoever does not watch does not import it.

What the system tells is kept as a bounded set of vault paths, a folder with a slash at its end. Whatever is lost or not
understood (the kernel's queue overflowed, too many paths, a fault, another HEAD) is the hint to look at everything.
Where nothing is told (no free watches, file systems without events) `state` says so, and the vault is scanned instead.

Watched is every visible folder. Reading a page is no event (nobody wakes himself), and hidden names are no hints.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import stat
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)

from vaultd.store.places import deaf_file_system

if sys.platform == "linux":
    from watchdog.observers.api import BaseObserver
    from watchdog.observers.inotify import InotifyEmitter, InotifyWatchGroup
    from watchdog.observers.inotify_c import InotifyEvent, InotifyFD, Mask
    from watchdog.observers.inotify_c import Watch as Kept
    from watchdog.observers.inotify_move_event_grouper import InotifyMoveEventGrouper
else:
    from watchdog.observers import Observer

__all__ = ["ON", "Watch"]

ON = "on"
"""The state of a watch that works."""

_MOST = 500  # more paths than this are found sooner by a scan
_SETTLE_S = 0.1  # what happened before a question is known sooner than this, but on a machine that is very busy
_MARK = ".vaultd/watched"
_ROOMS = (b".git", b".vaultd")  # of hidden folders only these are watched, and nothing in them: for HEAD and the mark
_AGAIN_S = 600.0  # a limit that was reached is tried again after so long: trying walks the whole vault
_EVENTS: list[type[FileSystemEvent]] = [
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,  # written; closed after reading is another event
    FileCreatedEvent,  # of a file that was moved in, or written before its folder was watched, nothing else is told
    FileDeletedEvent,
    FileMovedEvent,
]
log = logging.getLogger("vaultd")


class Watch:
    """What changed in one vault since it was asked last. Safe from several threads.

    Begins with `arm`. `wake` is called, from a thread of the watch's, when there is a hint where there was none.
    """

    def __init__(self, root: Path, wake: Callable[[], None], *, mounts: Path = Path("/proc/self/mountinfo")) -> None:
        self._root = os.path.realpath(root)  # a link itself would be watched, not where it leads
        self._wake = wake
        self._mounts = mounts
        self._guard = threading.Lock()
        self._settling = threading.Lock()
        self._settled = threading.Event()
        self._hints: set[str] = set()
        self._everything = False
        self._observer: _Observer | None = None
        self._watched = (0, 0)
        self._flaw = "it has not begun"
        self._again = 0.0

    @property
    def state(self) -> str:
        """`ON`, or in words why nothing is watched."""
        observer = self._observer
        return self._flaw or (ON if observer is not None and observer.whole else "it broke off")

    @property
    def pending(self) -> bool:
        """Whether there are hints."""
        with self._guard:
            return self._everything or bool(self._hints)

    def arm(self, now: float) -> None:
        """Watch, unless it does already; to be called before each scan. `now`: monotonic seconds.

        A watch that died (its thread ended, the folder is another one now) begins anew; never raises.
        """
        if self._observer is not None and not self._flaw and self._is_alive(self._observer):
            return
        if self._flaw and now < self._again:
            return
        if self._observer is not None and not self._flaw:
            log.warning("the watch of the vault ended; it begins anew")
        self._end()
        before, self._flaw = self._flaw, self._begin()
        self._again = now + _AGAIN_S if self._flaw and Path(self._root).is_dir() else 0.0
        if self._flaw and self._flaw != before:
            log.warning("changes are found by scanning: %s", self._flaw)

    def settle(self) -> None:
        """Wait, for a tenth of a second at most, until all that happened before this call has come in as hints.

        A file of ours is opened to be written, and closed: that comes behind it. Nothing is written.
        """
        with self._settling:
            self._settled.clear()
            try:
                os.close(os.open(f"{self._root}/{_MARK}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            except OSError:
                return  # a vault that cannot be written: its hints are a few milliseconds late
            self._settled.wait(_SETTLE_S)

    def take(self) -> set[str] | None:
        """The hints since it was asked last; None: look at everything."""
        with self._guard:
            hints = None if self._everything else self._hints
            self._hints, self._everything = set(), False
        return hints

    def close(self) -> None:
        """End it; it may be armed again."""
        self._end()
        self._flaw, self._again = "it has ended", 0.0

    def note(self, path: str, *, folder: bool) -> None:
        """Take a hint; an absolute path."""
        inside = path[len(self._root) + 1 :] if path.startswith(self._root + "/") else ""
        if not inside:
            return self.lost()  # the vault's folder itself
        if inside == _MARK:
            return self._settled.set()
        if inside.startswith(".") or "/." in inside:
            return self.lost() if inside == ".git/HEAD" else None
        if not folder and inside[-3:].lower() != ".md":
            return None
        with self._guard:
            first = not self._hints and not self._everything
            if not self._everything:
                self._hints.add(inside + "/" if folder else inside)
                if len(self._hints) > _MOST:
                    self._hints, self._everything = set(), True
        if first:
            self._wake()
        return None

    def lost(self) -> None:
        """Hints were lost: look at everything."""
        with self._guard:
            self._hints, self._everything = set(), True
        self._wake()

    def limit(self, error: OSError) -> None:
        """Some folder cannot be watched because of a limit of the system: what is told is not the whole any more."""
        self._flaw = _limit_words(error)
        self.lost()

    def _begin(self) -> str:
        """Start watching; "" or why that is not possible."""
        if kind := deaf_file_system(self._root, self._mounts):
            return f"the file system of the vault ({kind}) does not tell what changes"
        self._flaw = ""
        try:
            found = Path(self._root).stat()
            observer = _Observer(self)
            self._observer, self._watched = observer, (found.st_dev, found.st_ino)
            observer.schedule(_Events(self), self._root, recursive=True, event_filter=_EVENTS)
            observer.start()
        except OSError as error:
            self._end()
            return _limit_words(error) if error.errno in _LIMITS else f"it cannot be watched ({error.strerror})"
        except Exception as error:  # watchdog is a convenience: whatever is wrong with it, scanning works
            log.exception("a fault in the watch")
            self._end()
            return f"it cannot be watched ({type(error).__name__})"
        if self._flaw:  # a folder below was one too many
            self._end()
        return self._flaw

    def _end(self) -> None:
        """Stop watching."""
        observer, self._observer = self._observer, None
        with contextlib.suppress(Exception):  # of one that never began, or died
            if observer is not None:
                observer.stop()
                observer.join(2)

    def _is_alive(self, observer: _Observer) -> bool:
        """Whether all threads of the watch run, on the folder that has the vault's name now."""
        try:
            found = Path(self._root).stat()
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._watched and observer.whole


class _Events(FileSystemEventHandler):
    """Turns events into hints."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def dispatch(self, event: FileSystemEvent) -> None:
        """Take one event; a fault here loses one hint, so everything is looked at."""
        try:
            for path in (event.src_path, event.dest_path):
                if path:
                    self._watch.note(os.fsdecode(path), folder=event.is_directory)
        except Exception:  # an exception would end the thread, and with it the watch
            log.exception("a fault in the watch")
            self._watch.lost()


_LIMITS = {errno.ENOSPC: "max_user_watches", errno.EMFILE: "max_user_instances"}


def _limit_words(error: OSError) -> str:
    """Which limit was reached, and what raises it."""
    name = _LIMITS.get(error.errno or 0, "max_user_watches")
    return f"a limit of the system is reached; raise fs.inotify.{name} (`sysctl fs.inotify.{name}` shows it)"


if sys.platform == "linux":

    class _Moves(InotifyMoveEventGrouper):
        """Pairs the two halves of a move; what has only one, as a folder that was moved out, is held up by this."""

        delay = 0.05

    @dataclass
    class _Group(InotifyWatchGroup):
        """The watches of one vault: hidden folders have none, and one that cannot be had is told."""

        told: Watch | None = None
        _move_event_grouper: InotifyMoveEventGrouper = field(default_factory=_Moves, init=False)

        def _add_all_callbacks(self, path: bytes) -> None:
            """Watch a folder and what is visible below it."""
            self._add_callback(path)
            if path not in self._active_callbacks_by_path or self._room(path) or not self.is_recursive:
                return
            for folder, names, _ in os.walk(path):
                if folder == self.path:
                    for name in _ROOMS:
                        self._add_callback(folder + b"/" + name)
                shown = [n for n in names if not n.startswith(b".")]
                names[:] = [n for n in shown if not os.path.islink(folder + b"/" + n)]  # noqa: PTH114 - path of bytes
                for name in names:
                    self._add_callback(folder + b"/" + name)

        def _room(self, path: bytes) -> bool:
            """Whether a folder is one of those hidden ones that are watched."""
            return path[len(self.path) + 1 :] in _ROOMS

        def _add_callback(self, path: bytes) -> None:
            """Watch one folder, unless it is hidden, is none or cannot be read."""
            hidden = b"/." in path[len(self.path) :] and not self._room(path)
            if path != self.path and (
                hidden or not os.access(path, os.R_OK) or not stat.S_ISDIR(os.lstat(path).st_mode)
            ):
                return
            try:
                wd = self._inotify_fd.add_callback(path, self.event_mask, self._callback, self._id)
            except OSError as error:
                if path == self.path:
                    raise
                if error.errno in _LIMITS and self.told is not None:
                    self.told.limit(error)
                return
            self._active_callbacks_by_path[path] = wd
            self._active_callbacks_by_watch[wd] = path

        def on_queue_overflow(self) -> None:
            """The kernel dropped events: watch what is there now, then have everything looked at."""
            super().on_queue_overflow()
            if self.told is not None:
                self.told.lost()

    class _Emitter(InotifyEmitter):
        """Starts the watches, and reads what they tell."""

        def __init__(self, *args: Any, told: Watch, **named: Any) -> None:
            super().__init__(*args, **named)
            self._told = told

        def on_thread_start(self) -> None:
            """Start them."""
            path, mask = os.fsencode(self.watch.path), self.get_event_mask_from_filter()
            told, recursive = self._told, self.watch.is_recursive
            self._inotify = _Group(self._inotify_fd, path, is_recursive=recursive, event_mask=mask, told=told)

    class _Reader(InotifyFD):
        """Reads the system's events; a fault of its own loses events, so everything is looked at."""

        def __init__(self, told: Watch) -> None:
            super().__init__()
            self._told = told

        def handle_event(self, event: InotifyEvent) -> None:
            """Pass one event on."""
            try:
                super().handle_event(event)
            except Exception:  # an exception would end the thread, and with it the watch
                log.exception("a fault in the watch")
                self._told.lost()

        def _get_or_create_watch(self, path: bytes, mask: Mask) -> Kept:
            """The system's watch of a folder, for whom it is asked now: one that was moved away and back has it still,
            and watchdog warns of that.
            """
            kept = super()._get_or_create_watch(path, mask)
            kept.callbacks.clear()
            return kept

    class _Observer(BaseObserver):
        """The observer of one vault."""

        def __init__(self, told: Watch) -> None:
            self._inotify_fd = _Reader(told)
            self._inotify_fd.start()
            super().__init__(_Emitter, inotify_fd=self._inotify_fd, told=told)

        def on_thread_stop(self) -> None:
            """End what reads the events, too."""
            super().on_thread_stop()
            self._inotify_fd.stop()
            self._inotify_fd.join(2)

        @property
        def whole(self) -> bool:
            """Whether all its threads run."""
            return all(thread.is_alive() for thread in (self, self._inotify_fd, *self.emitters))

else:

    class _Observer(Observer):
        """The observer of one vault."""

        def __init__(self, _: Watch) -> None:
            super().__init__()

        @property
        def whole(self) -> bool:
            """Whether all its threads run."""
            return all(thread.is_alive() for thread in (self, *self.emitters))
