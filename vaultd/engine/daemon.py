"""The daemon: one process that keeps a vault's memory current. A convenience: everything it does, commands do too.

Three loops, so that none waits for another, and companions (what answers clients) beside them:

    events    the inbox, every fifth of a second (a look at the folder's time); sessions that are over, every second
    index     what was written, and what the watch hints at, at once; the whole vault is scanned every minute, or
              every few seconds where nothing is watched
    history   our pages within seconds, a person's edits after a quiet minute; git is asked for those when a scan has
              seen a change, and now and then for files that are no pages

At most one runs: it holds `daemon.lock` for life, and the lock dies with it. `daemon.json` tells hooks and commands
that it is there; its fields count only while the process they name lives.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from vaultd import __version__
from vaultd.config import Config, load, settings_state
from vaultd.engine.following import Following
from vaultd.engine.health import Pulse
from vaultd.engine.history import History
from vaultd.engine.live import Live
from vaultd.engine.passes import Passes
from vaultd.engine.processes import own_process, told_process
from vaultd.engine.stores import Stores
from vaultd.errors import HeldError, VaultdError
from vaultd.store import fs

__all__ = ["Companion", "Daemon"]

_LOOK_S = 0.2
_SWEEP_S = 1.0
_COMMIT_S = 2.0
_EDITS_S = 60.0  # git is asked for edits this often, and while there are some
_EDITING_S = 10.0  # this often
_TIDY_S = 30.0
_FIRST_S = 5.0  # for so long, at the start, what nobody waits for lets the index go first
_AWAY_S = 3.0  # a vault that is away for so long is gone; `vaultd up` starts a daemon when it is back
_END_S = 2.0  # of the five seconds within which it ends when told to
_RETRY_S = 30.0  # what is held back (a page is open in an editor) is tried again after a second, then less often

log = logging.getLogger("vaultd")


class Companion(Protocol):
    """Something that lives and ends with the daemon, on threads of its own."""

    def start(self) -> Mapping[str, str]:
        """Begin; what `daemon.json` shall tell of it (names of its own)."""

    def stop(self) -> None:
        """End within two seconds; nothing when it never began."""


class Daemon:
    """Runs until `stop()` is called or a signal handler calls it."""

    def __init__(self, stores: Stores, check: Callable[[Config], object] = lambda _: None) -> None:
        """`check` raises a VaultdError for settings that whoever started it could not start it with."""
        self._stores = stores
        self._check = check
        self._stopping = threading.Event()
        self._written: set[str] = set()
        self._guard = threading.Lock()
        self.live = Live(stores, watch=stores.config.watch)
        self.pulse = Pulse()
        self._told: dict[str, str] = {}
        self._offers_due = threading.Event()
        self._edited = threading.Event()
        self._looked = threading.Event()  # the index loop has made a pass
        self._edits_at = 0.0
        self._passes = Passes(stores)
        self._following = Following(self.live, self._passes.trouble)
        self._lock = stores.daemon_lock
        self._here_at = time.monotonic()
        self._settings = stores.config.read
        self._held = False
        self._changed = self._ended = False

    @property
    def changed_settings(self) -> bool:
        """Whether it ended to be started anew with other settings: it keeps its `daemon.json` for that."""
        return self._changed and not self._ended

    def stop(self, *, for_good: bool = False) -> None:
        """End the loops; `run` returns soon after. `for_good`: whatever settings changed, it is not started anew."""
        self._ended = self._ended or for_good
        self._stopping.set()
        self.live.woken.set()
        self._looked.set()

    def run(self, ready: Callable[[], None] | None = None, companions: Sequence[Companion] = ()) -> None:
        """Hold the daemon's lock and work until stopped. HeldError when another daemon has it."""
        lock = self._lock
        patience = 2 * _AWAY_S  # for the daemon of a vault that was moved here, which is about to end
        while not lock.acquire(blocking=False):
            patience -= _LOOK_S
            other = told_process(self._stores.vault.room)
            if other is not None or patience < 0:
                who = f" (pid {other.pid})" if other is not None else ""
                raise HeldError(f"A daemon{who} serves {self._stores.vault.root} already. `vaultd down` stops it.")
            self._stopping.wait(_LOOK_S)
        try:
            self.pulse.beat("events", "index")  # from now on: one that never comes to its first pass is stuck, too
            self._announce()
            for companion in companions:
                self._told.update(companion.start())
            self._told["ready"] = "yes"
            if lock.current:  # else the vault was made anew meanwhile
                self._announce()
            # Daemon threads: work that does not end in time is left as after a kill, for the next start.
            threads = [
                threading.Thread(target=self._index_loop, name="index", daemon=True),
                threading.Thread(target=self._history_loop, name="history", daemon=True),
            ]
            for thread in threads:
                thread.start()
            if ready is not None:
                ready()
            self._events()
            for companion in companions:
                companion.stop()
            self._conclude(threads)
        finally:
            told = told_process(self._stores.vault.room)
            if told is not None and told.pid == os.getpid() and not self.changed_settings:
                fs.remove(self._stores.vault.room / "daemon.json")
            lock.release()

    def _conclude(self, threads: Sequence[threading.Thread]) -> None:
        """Let the loops end and commit what was written, for a few seconds at most: nothing waits for git."""
        deadline = time.monotonic() + _END_S
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if all(not thread.is_alive() for thread in threads) and not self._history.trouble:
            last = threading.Thread(target=self._attempt, args=(self._commit,), name="last commit", daemon=True)
            last.start()
            last.join(max(0.0, deadline - time.monotonic()))

    def _announce(self) -> None:
        """Write `daemon.json`, each field on a line of its own for the hook's shell builtins."""
        me = own_process(self._stores.boot)
        told = {"vaultd-daemon": 1, "pid": me.pid, "start": me.start, "boot": me.boot, "version": __version__}
        text = json.dumps({**told, **self._told, "vault": str(self._stores.vault.root)}, indent=2, ensure_ascii=False)
        fs.write_private(self._stores.vault.room / "daemon.json", (text + "\n").encode("utf-8", "surrogateescape"))

    def _events(self) -> None:
        """The events loop, in the main thread."""
        last_sweep = last_tidy = retry_at = -1e9
        pause, seen = 1.0, -1
        began = time.monotonic()
        self._attempt(self._passes.prepare)
        while not self._stopping.is_set():
            now = time.monotonic()  # intervals, whatever is done to the clock
            self.pulse.beat("events")
            state = self._passes.inbox_state()
            again = self._passes.postponed and now >= retry_at
            if (state != seen or again) and not self._held and self._attempt(self._take):
                seen = state
                pause = min(2 * pause, _RETRY_S) if again else 1.0
                retry_at = now + pause
            if self._offers_due.is_set():
                self._offers_due.clear()
                if not self._attempt(self._passes.offer):
                    self._offers_due.set()
            if now - last_sweep >= _SWEEP_S:
                last_sweep = now
                if self._serves_its_vault(now):
                    self._look_at_settings()
                self._attempt(self._passes.sweep)
            if now - last_tidy >= _TIDY_S and (self._looked.is_set() or now - began >= _FIRST_S):
                last_tidy = now
                self._attempt(self._tidy)
            self._stopping.wait(_LOOK_S)
        if not self._held:
            self._attempt(self._take)

    def _serves_its_vault(self, now: float) -> bool:
        """Whether the vault is there that it was started on. It ends when that was moved, deleted or made anew."""
        if self._lock.current and self._stores.vault.presence().here:
            self._here_at = now
            if told_process(self._stores.vault.room) is None:
                self._announce()
            return True
        if now - self._here_at > _AWAY_S:
            log.error("the vault is not at %s any more: the daemon ends", self._stores.vault.root)
            self.stop()
        return False

    def _look_at_settings(self) -> None:
        """Settings count at once: when a file changed, end with `changed_settings`, to be started anew with them.

        While they are wrong, events wait.
        """
        state = settings_state(self._stores.config)
        if state == self._settings:
            return
        self._settings = state
        try:
            self._check(load(str(self._stores.vault.root), self._stores.config.environ))
        except VaultdError as error:
            log.error("%s Events wait until then.", error)
            self._held = self.pulse.held = True  # nobody knows what was meant to be kept out
            self._told["held"] = str(error)
            self._announce()
            return
        self._changed = True
        self.stop()

    def _take(self) -> None:
        """Work the inbox off."""
        tally = self._passes.drain(stop=self._stopping.is_set, progress=lambda *_: self.pulse.beat("events"))
        self.note(tally.written)

    def _tidy(self) -> None:
        """Return claims that nobody printed, take the spool in, sweep litter."""
        self.note(self._passes.tidy())

    def note(self, written: set[str]) -> None:
        """Remember what is to be committed and indexed."""
        if written:
            with self._guard:
                self._written |= written
            self.live.touched(written)

    def _index_step(self) -> None:
        """One pass of the index loop. The index stays open: opening it reads all of it."""
        self.pulse.beat("index")
        changed = self._following.step(self._stopping.is_set)
        if changed:
            self._edited.set()
        if any(map(_is_offered, changed)):
            self._offers_due.set()
        if self._told.get("watch") != self.live.watching and self._lock.current:
            self._told["watch"] = self.live.watching
            self._announce()

    def _history_step(self) -> None:
        """One pass of the history loop."""
        self._commit()
        now = self._stores.clock().timestamp()
        if self._edited.is_set() or now >= self._edits_at:
            self._edited.clear()
            self._history.record_edits(now)
            self._edits_at = now + (_EDITING_S if self._history.unsettled else _EDITS_S)

    @property
    def _history(self) -> History:
        """Kept between passes: it remembers since when the vault is quiet."""
        return self._passes.history

    def _commit(self) -> None:
        """Commit what was written; what could not be committed is tried again."""
        with self._guard:
            written, self._written = self._written, set()
        left = bool(written)
        try:
            left = left and "" in self._history.record(written, self._passes.message(written)).left
        finally:
            with self._guard:
                self._written |= written if left else set()

    def _index_loop(self) -> None:
        """The index loop; woken early when pages were written."""
        try:
            while not self._stopping.is_set():
                self._attempt(self._index_step)
                self._looked.set()
                self._following.wait(self._stopping)
        finally:
            self.live.close()

    def _history_loop(self) -> None:
        self._looked.wait(_FIRST_S)
        self._attempt(self._history.record_leftovers)
        while not self._stopping.is_set():
            self._attempt(self._history_step)
            self._stopping.wait(_COMMIT_S)

    def _attempt(self, step: Callable[[], object]) -> bool:
        """Run a step; what goes wrong is told once a minute at most and tried again, never ends the daemon.

        Whether it went well.
        """
        try:
            step()
            return True
        except (OSError, VaultdError) as error:
            self._passes.trouble(f"{getattr(step, '__name__', 'step')}: {error}")
        except Exception:  # a fault of ours in one loop must not stop capture
            log.exception("a fault in %s", getattr(step, "__name__", "a step"))
        self._stopping.wait(1.0)
        return False


def _is_offered(path: str) -> bool:
    """Whether a page has a say in what is offered."""
    return "/handoffs/" in path or path.endswith("/project.md")
