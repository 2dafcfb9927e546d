"""Handoffs through a tool: begun, listed, taken and cancelled by an agent or by another program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vaultd.core.handoff import injected, parse_handoff
from vaultd.core.sanitize import redact
from vaultd.engine.handoffs import Entry, Handoffs
from vaultd.engine.history import History
from vaultd.engine.manual import begin, cancel
from vaultd.engine.offers import Offers
from vaultd.engine.projects import Project
from vaultd.engine.service import Reply
from vaultd.engine.stores import Stores
from vaultd.errors import ConflictError, NotFoundError

__all__ = ["Wanted", "accept_handoff", "begin_handoff", "cancel_handoff", "handoff_rows", "prepared_text"]

_LIMIT = 9_000
"""UTF-8 bytes of a handoff's text: what every agent takes whole (format, section 4)."""

_REDACTED = "[REDACTED]"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a handoff shall say."""

    summary: str
    questions: Sequence[str] = ()
    next_steps: Sequence[str] = ()
    files: Sequence[str] = ()
    shared: bool = False


def begin_handoff(stores: Stores, project: Project, wanted: Wanted, by: str) -> Reply:
    """Leave a handoff of the agent `by` for the project's next session. UsageError without a summary."""
    given = " ".join((wanted.summary, *wanted.questions, *wanted.next_steps, *wanted.files))
    lost = redact(given, stores.config.rules).count(_REDACTED) - given.count(_REDACTED)
    identity = begin(
        stores,
        project,
        wanted.summary,
        wanted.next_steps,
        wanted.questions,
        wanted.files,
        shared=wanted.shared,
        agent=by,
    )
    return {"id": identity, "path": f"{project.folder}/handoffs/open/{identity}.md", "redacted": max(lost, 0)}


def handoff_rows(stores: Stores, project: Project) -> list[Reply]:
    """The open handoffs of a project, the one that would be given first in front."""
    return [_row(entry) for entry in Offers(stores).ranked(project)]


def accept_handoff(stores: Stores, project: Project, handoff_id: str, by: str) -> Reply:
    """Take a handoff: by id, or the one that the next session where `project` stands would be given.

    NotFoundError, ConflictError. Crash: as for a session's claim (`Handoffs.accepted`).
    """
    handoffs = Handoffs(stores)
    with stores.write_lock:
        if handoff_id:
            entry = handoffs.find(handoff_id, project.folder)
        else:
            best = Offers(stores).best(project)
            if best is None:
                raise NotFoundError(f"No handoff waits for {project.slug}.")
            entry = best
        if entry.state != "open":
            raise ConflictError(f"Handoff {entry.id} is {entry.state} already.")
        done = handoffs.accepted(entry.id, by, stores.clock())
        after = handoffs.find(entry.id, project.folder)
        if after.state != "accepted" or after.text("accepted_by") not in ("", by):
            raise ConflictError(f"Handoff {entry.id} was claimed this moment by a session.")
        Offers(stores).prepare(project)
    History(stores).record(done.written | {entry.path, after.path}, f"handoff {entry.id} accepted")
    return {"id": after.id, "path": after.path, "text": _told(stores, after)}


def cancel_handoff(stores: Stores, project: Project, handoff_id: str) -> Reply:
    """Nobody shall get a handoff of this project. NotFoundError, ConflictError."""
    Handoffs(stores).find(handoff_id, project.folder)
    after = cancel(stores, handoff_id)
    return {"id": after.id, "path": after.path}


def prepared_text(stores: Stores, project: Project) -> str:
    """What the next session where `project` stands would be given; "" for nothing."""
    best = Offers(stores).best(project)
    return _told(stores, best) if best is not None else ""


def _told(stores: Stores, entry: Entry) -> str:
    """A handoff as an agent is given it: fenced, bounded."""
    page = stores.vault.read(entry.path)
    if page is None:
        raise NotFoundError(f"Handoff {entry.id} was removed this moment.")
    text = injected(parse_handoff(page.data, entry.path), _LIMIT, stores.clock())
    return redact(text, stores.config.rules)


def _row(entry: Entry) -> Reply:
    texts = {key: entry.text(key) for key in ("title", "from_agent", "created", "subdir")}
    return {"id": entry.id, **texts, "provisional": entry.provisional, "path": entry.path}
