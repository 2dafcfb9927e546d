"""One ingest pass from the command line, and closing sessions by hand."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from vaultd.core.session import digest
from vaultd.engine.ingest import Tally
from vaultd.engine.lifecycle import closing_time, deliver_close
from vaultd.engine.passes import Passes
from vaultd.engine.processes import daemon_process
from vaultd.engine.projects import Project
from vaultd.engine.reconcile import Reconcile, open_index
from vaultd.engine.stores import Stores
from vaultd.errors import HeldError, NotFoundError
from vaultd.store.fs import Lock
from vaultd.store.inbox import SessionName

__all__ = ["Once", "finalize", "ingest_once"]

_DAEMON_S = 60.0
_POSTPONED_TRIES = 5


@dataclass(slots=True)
class Once:
    """What one pass did, and what was not committed (path to reason)."""

    tally: Tally
    left: dict[str, str] = field(default_factory=dict)
    by_daemon: bool = False


def ingest_once(stores: Stores, progress: Callable[[int, int], None] | None = None, *, patient: bool = True) -> Once:
    """Work the inbox off, commit, and bring the index up to date.

    With a daemon running, wait until it has done so (`patient`), or leave at once. HeldError when it does not get done.
    """
    lock = Lock(stores.vault.room / "ingest.lock")
    whole, tried = Once(Tally()), set[str]()
    while lock.acquire(blocking=patient):
        try:
            if daemon_process(stores) is not None:
                if patient:
                    _await_daemon(stores)
                whole.by_daemon = True
                return whole
            tried.update(stores.inbox.pending())
            _pass(stores, whole, progress)
        finally:
            lock.release()
        # An event that came at the very end of the pass: its own pass found the lock held and left it to this one.
        if tried.issuperset(stores.inbox.pending()):
            break
    return whole


def _pass(stores: Stores, whole: Once, progress: Callable[[int, int], None] | None) -> None:
    """One pass without a daemon."""
    passes = Passes(stores)
    passes.prepare()
    written = passes.tidy()
    passes.sweep()  # sessions of which nothing was heard for long, also when nothing waits
    tally = passes.drain(progress=progress)
    pause = threading.Event()
    for _ in range(_POSTPONED_TRIES if passes.postponed else 0):
        pause.wait(0.5)
        tally.add(passes.drain())
        if not passes.postponed:
            break
    tally.written |= written
    whole.tally.add(tally)
    whole.left.update(passes.history.record(tally.written, passes.message(tally.written)).left)
    passes.history.record_leftovers()
    index = open_index(stores)
    try:
        reconcile = Reconcile(stores, index)
        reconcile.run(reconcile.behind(), progress)
    finally:
        index.close()


def finalize(
    stores: Stores, agent: str | None, session: str | None, project: Project | None, *, everything: bool
) -> list[SessionName]:
    """Close open sessions: one by its id, all, or the one of this project that was heard of last. NotFoundError."""
    if project is None and not (session or everything):
        raise NotFoundError("This folder is in no project. Name the session with --session-id, or close --all.")
    ingest_once(stores)
    found = []
    for name in stores.inbox.sessions():
        events = [o.event for o in stores.inbox.observations(name)]
        if not events or (agent and name.agent != agent) or digest(events).closed:
            continue
        if session and session not in (events[0].native, name.sid, str(name)):
            continue
        if project and not (session or everything):
            with stores.write_lock:
                place = stores.projects.place(events)
            if place.id != project.id:
                continue
        found.append((events[-1].at, name, events[-1], len(events)))
    found.sort(key=lambda item: item[0])
    if not found:
        raise NotFoundError("No such open session. `vaultd status` lists those that go on.")
    chosen = found if everything else found[-1:]
    stamp = int(stores.clock().timestamp())
    for _, name, last, count in chosen:
        at = closing_time(stores, last.at)
        key = f"{stamp}-finalise-{name.sid}-{count}"  # twice within a second is two closes
        deliver_close(stores, name, last.native, last.cwd, "finalised", key, at)
    ingest_once(stores)
    return [name for _, name, *_ in chosen]


def _await_daemon(stores: Stores) -> None:
    """Wait until the running daemon has emptied the inbox and the index knows every page."""
    deadline, pause = time.monotonic() + _DAEMON_S, threading.Event()
    while stores.inbox.pending():
        if time.monotonic() > deadline:
            raise HeldError("The daemon has not worked the inbox off within a minute. `vaultd status` shows why.")
        if daemon_process(stores) is None:
            raise HeldError("The daemon ended meanwhile. Run `vaultd ingest` again.")
        pause.wait(0.05)
