"""Status: what is recorded, what waits, and what is wrong, as one JSON document (output format, section 8)."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from vaultd import __version__
from vaultd.core.session import digest
from vaultd.engine.handoffs import Handoffs
from vaultd.engine.history import History
from vaultd.engine.install import is_wired
from vaultd.engine.parts import server_problem
from vaultd.engine.processes import daemon_process
from vaultd.engine.reconcile import Behind, Reconcile, open_index
from vaultd.engine.seen import Seen
from vaultd.engine.stores import Stores
from vaultd.engine.wiring import check
from vaultd.errors import VaultdError

__all__ = ["OpenSession", "daemon_says", "http_state", "open_sessions", "status", "watch_state"]

_MOST_OPEN = 20
_LOOKED_AT = 20
_WAITING_S = 120  # with a daemon running nothing should wait longer


def status(stores: Stores, *, agents: bool = True) -> dict[str, Any]:
    """The report. Only reads; `ok` is whether `problems` is empty, which with `agents` tell of those that are wired."""
    now = stores.clock()
    daemon = daemon_process(stores)
    waiting = stores.inbox.waiting(now.timestamp())
    seen = Seen(stores.vault.room, stores.inbox)
    index = _index(stores)
    git = _git(stores)
    problems = [f"The settings are wrong, events wait: {problem}" for problem in stores.config.problems]
    if not problems and (held := daemon_says(stores, "held")):
        problems = [f"The settings are wrong, events wait: {held}"]
    problems += _problems(stores, daemon is not None, waiting.new, waiting.oldest_s, waiting.failed, git, index)
    problems += [*_watch(stores), *index.pop("problems")]
    problems += _wiring(stores, seen, now) if agents else []
    return {
        "ok": not problems,
        "problems": problems,
        "vault": str(stores.vault.root),
        "version": __version__,
        "daemon": {
            "running": daemon is not None,
            "pid": daemon.pid if daemon else None,
            "version": __version__ if daemon else None,
        },
        "pages": index.pop("pages"),
        "inbox": {"new": waiting.new, "oldest_s": round(waiting.oldest_s), "failed": waiting.failed},
        "agents": seen.read(),
        "injected": _injected(stores),
        "git": git,
        "index": index,
    }


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session that has not ended: who, what it is about, where, its agent's own id, and when it was heard of last."""

    agent: str
    title: str
    cwd: str
    native: str
    last: datetime


def open_sessions(stores: Stores) -> list[OpenSession]:
    """The sessions that go on, the one heard of last first; at most twenty."""
    found = []
    for name in stores.inbox.sessions():
        events = [o.event for o in stores.inbox.observations(name)]
        if events and not (summary := digest(events)).closed:
            found.append(OpenSession(name.agent, summary.title, summary.cwd, summary.native or name.sid, events[-1].at))
    return sorted(found, key=lambda session: session.last, reverse=True)[:_MOST_OPEN]


def _index(stores: Stores) -> dict[str, Any]:
    """Pages on disk and in the index, and how far the index is behind."""
    index = open_index(stores)
    try:
        known = index.known()
        behind = Reconcile(stores, index).behind()
        disk = sum(1 for _ in stores.vault.scan())
        unparsable = sorted(path for path, page in known.items() if page.unparsable)
        return {
            "pages": {"disk": disk, "indexed": len(known), "unparsable": unparsable},
            "generation": index.generation,
            "pending": behind.count,
            "problems": _unreadable(stores, behind),
        }
    finally:
        index.close()


def _git(stores: Stores) -> dict[str, Any]:
    """The newest commit, what is not committed, and what keeps it from being."""
    state = stores.repo.state()
    pending = len(stores.repo.changed())
    head = stores.repo.head()
    missing, allowed = History(stores).gone()
    blocked = state.blocked
    if not blocked and missing > allowed:
        blocked = f"{missing} pages are gone; if that was meant, run `vaultd accept-deletions`"
    return {"commit": head, "at": stores.repo.head_time(), "pending": pending, "blocked": blocked}


def _injected(stores: Stores) -> dict[str, int]:
    """Sessions that were given a handoff, and the bytes of those handoffs' pages."""
    sessions = size = 0
    for entry in Handoffs(stores).entries(state="accepted"):
        if entry.text("accepted_by") not in ("", "person"):
            sessions += 1
            size += (stores.vault.root / entry.path).stat().st_size
    return {"sessions": sessions, "bytes": size}


def _problems(
    stores: Stores, daemon: bool, new: int, oldest: float, failed: int, git: dict[str, Any], index: dict[str, Any]
) -> list[str]:
    """What is wrong with the vault itself, each with what mends it."""
    problems = []
    if new and oldest > _WAITING_S:
        mend = (
            f"look into {stores.vault.room / 'daemon.log'}" if daemon else "run `vaultd up` (or `vaultd ingest` once)"
        )
        problems.append(f"{new} events wait, the oldest for {oldest / 60:.0f} minutes: {mend}.")
    problems.extend(_troubles(stores))
    problems.extend(_room(stores))
    if failed:
        problems.append(f"{failed} events could not be understood: `vaultd failed` says why, and what to do.")
    if git["blocked"]:
        problems.append(f"Nothing is committed: {git['blocked']}.")
    if (stores.vault.room / "paused").exists():
        problems.append("Recording is paused: `vaultd resume-capture` goes on.")
    strangers = stores.inbox.strangers()
    if strangers:
        problems.append(f"{len(strangers)} files in {stores.inbox.new} are no events; take them away.")
    if index["pages"]["unparsable"]:
        shown = ", ".join(index["pages"]["unparsable"][:3])
        problems.append(
            f"The frontmatter of {len(index['pages']['unparsable'])} pages does not parse ({shown}): "
            "mend it in an editor."
        )
    return problems


def _room(stores: Stores) -> list[str]:
    """Whether events can come in at all: space on the disk, and events that wait outside the vault."""
    problems = []
    space = os.statvfs(stores.vault.root)
    if space.f_bavail == 0:
        problems.append("The disk with the vault is full: make room, then run `vaultd ingest`.")
    spool = stores.config.places.spool / "new"
    waiting = sum(1 for _ in spool.iterdir()) if spool.is_dir() else 0
    if waiting:
        problems.append(f"{waiting} events wait in {spool}: `vaultd ingest` takes those of this vault in.")
    return problems


def watch_state(stores: Stores) -> str:
    """How the running daemon learns of changes: "on" where the system tells it, "off" where that is not wanted, else
    in words why it has to look; "" when there is no daemon, or it has not said yet.
    """
    return daemon_says(stores, "watch")


def http_state(stores: Stores) -> str:
    """Where the running daemon answers over TCP, or why it does not; "" when that is not wanted."""
    return daemon_says(stores, "http") or daemon_says(stores, "no-http")


def daemon_says(stores: Stores, name: str) -> str:
    """What the running daemon tells under a name; "" for nothing."""
    if daemon_process(stores) is None:
        return ""
    try:
        return str(json.loads((stores.vault.room / "daemon.json").read_bytes()).get(name, ""))
    except (OSError, ValueError, AttributeError):
        return ""


def _watch(stores: Stores) -> list[str]:
    """What keeps changes from being seen at once and can be mended: a limit of the system."""
    told = watch_state(stores)
    return [f"Edits are found by scanning, after some seconds: {told}."] if "fs.inotify." in told else []


def _unreadable(stores: Stores, behind: Behind) -> list[str]:
    """Pages that the index lacks since they cannot be read."""
    problems = []
    for stat in behind.changed[:_LOOKED_AT]:
        try:
            stores.vault.read(stat.path)
        except (OSError, VaultdError) as error:
            problems.append(f"{stat.path} cannot be read, so it is not searched: {_words(error)}.")
    return problems


def _words(error: OSError | VaultdError) -> str:
    """What an error says, without the path."""
    return (error.strerror or "") if isinstance(error, OSError) else str(error).removesuffix(".")


def _troubles(stores: Stores) -> list[str]:
    """What the last pass over the inbox could not get past."""
    try:
        told = json.loads((stores.vault.room / "runs/trouble.json").read_bytes())
        return [f"Events are held back: {text}" for text in told["texts"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _wiring(stores: Stores, seen: Seen, now: datetime) -> list[str]:
    """What is wrong with the agents that are wired."""
    config = stores.config
    problems: list[str] = []
    for agent in stores.agents.values():
        if is_wired(agent, config.places, config.environ):
            heard = seen.read().get(agent.id, {})
            paused = (stores.vault.room / "paused").exists()
            found = check(agent, config.places, config.environ, now, heard, paused=paused)
            problems.extend(f"{agent.title}: {p.text}. {p.mend}" for p in found)
        if problem := server_problem(agent, config):
            problems.append(problem)
    return problems
