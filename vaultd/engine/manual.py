"""Handoffs made, accepted and cancelled by a person. git is waited for when the write lock is free again."""

from __future__ import annotations

import secrets
import string
from collections.abc import Sequence

from vaultd.core.handoff import HandoffFacts, manual_page
from vaultd.core.sanitize import line, redact
from vaultd.engine.handoffs import Entry, Handoffs
from vaultd.engine.history import History
from vaultd.engine.offers import Offers
from vaultd.engine.projects import Project
from vaultd.engine.stores import Stores
from vaultd.errors import ConflictError, UsageError
from vaultd.store.vault import Value, Written

__all__ = ["accept", "begin", "cancel"]

_ALPHABET = string.ascii_lowercase + string.digits


def begin(
    stores: Stores,
    project: Project,
    summary: str,
    next_steps: Sequence[str],
    questions: Sequence[str],
    files: Sequence[str],
    *,
    shared: bool = False,
    agent: str = "",
) -> str:
    """Leave a handoff for the next session anywhere in a project; its id. `agent`: who leaves it; "" for a person."""
    if not summary.strip():
        raise UsageError("Say in a sentence what the next session must know.")
    identity = "m-" + "".join(secrets.choice(_ALPHABET) for _ in range(10))
    facts = HandoffFacts(
        id=identity,
        project=project.id,
        subdir="",
        now=stores.clock(),
        provisional=False,
        shared=shared,
        agent=agent,
    )
    text = redact(manual_page(facts, summary, questions, next_steps, files), stores.config.rules)
    path = f"{project.folder}/handoffs/open/{identity}.md"
    with stores.write_lock:
        written = {path}
        Handoffs(stores).keep_folders(project.folder, written)
        if not isinstance(stores.vault.create(path, text), Written):
            raise ConflictError(f"{path} exists. Try again.")
        _offer(stores, project.folder)
    History(stores).record(written, f"handoff {identity} by hand")
    return identity


def accept(stores: Stores, handoff_id: str) -> Entry:
    """A person takes an open handoff. NotFoundError, ConflictError."""
    at = line(stores.clock().isoformat(timespec="seconds"), 40)
    return _change(stores, handoff_id, "accepted", {"accepted_at": at, "accepted_by": line("person", 20)})


def cancel(stores: Stores, handoff_id: str) -> Entry:
    """Nobody shall get an open handoff. NotFoundError, ConflictError."""
    return _change(stores, handoff_id, "expired", {})


def _change(stores: Stores, handoff_id: str, state: str, values: dict[str, Value]) -> Entry:
    """Change a handoff's state and what follows from it."""
    with stores.write_lock:
        handoffs = Handoffs(stores)
        before = handoffs.find(handoff_id)
        after = handoffs.change(handoff_id, state, values)
        _offer(stores, before.folder)
    History(stores).record({before.path, after.path}, f"handoff {handoff_id} {state}")
    return after


def _offer(stores: Stores, folder: str) -> None:
    """Bring the offers of a project up to date after a change by hand."""
    for project in stores.projects.known():
        if project.folder == folder:
            Offers(stores).prepare(project)
