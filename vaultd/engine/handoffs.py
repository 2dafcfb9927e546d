"""Handoffs: the folder is the state (`open`, `accepted`, `expired`), a change of state is one rename.

A hook that claims has its event, with `offered=<id>`, in `inbox/tmp` before it renames the page, and takes it away
last: so a claim whose hook died before it printed can be told from a page that a person dragged there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import product
from pathlib import Path

from vaultd.core import frontmatter
from vaultd.core.ids import AUTO_HANDOFF, Sid
from vaultd.core.render import is_unedited
from vaultd.core.sanitize import Clean, line
from vaultd.engine.lifecycle import deliver_close
from vaultd.engine.projects import Project
from vaultd.engine.revise import ATTEMPTS
from vaultd.engine.stores import Stores
from vaultd.errors import ConflictError, NotFoundError
from vaultd.store.inbox import SessionName
from vaultd.store.vault import Busy, Exists, Gone, Outcome, Refused, Value, Written

__all__ = ["CLAIM_GRACE_S", "STATES", "Entry", "Handoffs", "Published"]

STATES = ("open", "accepted", "expired")
_NAME = re.compile(r"[^./\x00][^/\x00]{0,60}\Z")
CLAIM_GRACE_S = 600.0
"""A claim that no start event named within so many seconds goes back to open."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One handoff as it lies in the vault."""

    id: str
    state: str
    path: str
    folder: str
    values: Mapping[str, object]

    def text(self, key: str) -> str:
        """A frontmatter value as text; "" when absent."""
        value = self.values.get(key)
        return "" if value is None else str(value)

    @property
    def automatic(self) -> bool:
        """Made at a session's end, not by hand."""
        return AUTO_HANDOFF.match(self.id) is not None

    @property
    def provisional(self) -> bool:
        """Its session has not ended yet."""
        return self.values.get("provisional") is True


@dataclass(slots=True)
class Published:
    """What publishing did."""

    written: set[str] = field(default_factory=set)
    existed: bool = False
    postponed: bool = False


class Handoffs:
    """The handoffs of all projects. Writers hold the write lock; hooks do not."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def entries(self, folder: str | None = None, state: str | None = None) -> Iterator[Entry]:
        """Handoffs of one project folder or of all, in one state or in any; by folder, state and name."""
        folders = [folder] if folder else [p.folder for p in self._stores.projects.known()]
        for each in folders:
            for where in STATES if state is None else (state,):
                for path, values in self._stores.pages.folder(f"{each}/handoffs/{where}"):
                    yield Entry(Path(path).stem, where, path, each, values)

    def find(self, handoff_id: str, folder: str | None = None) -> Entry:
        """One handoff by its id. NotFoundError."""
        if _NAME.match(handoff_id):
            folders = [folder] if folder else [p.folder for p in self._stores.projects.known()]
            for each, where in product(folders, STATES):
                path = f"{each}/handoffs/{where}/{handoff_id}.md"
                values = self._stores.pages.page(path)
                if values is not None:
                    return Entry(handoff_id, where, path, each, values)
        raise NotFoundError(
            f"No handoff {handoff_id}. `vaultd handoffs` (`memory_handoff_list`) lists those there are."
        )

    def has_open(self, folder: str, sid: str) -> bool:
        """Whether a handoff of a session waits: what the session says later must not leave it behind the times."""
        return any(entry.id.startswith(f"{sid}-g") for entry in self.entries(folder, "open"))

    def publish(self, place: Project, handoff_id: str, text: Clean, *, final: bool, cwd: str) -> Published:
        """Make an automatic handoff, or bring the open one of this id up to date; an accepted or expired one stays.

        A final one expires older automatic ones of the same checkout folder, and every new one its own session's
        earlier generations.
        """
        done = Published()
        path = f"{place.folder}/handoffs/open/{handoff_id}.md"
        try:
            entry = self.find(handoff_id, place.folder)
        except NotFoundError:
            self.keep_folders(place.folder, done.written)
            self._outdate(place, handoff_id, text, final, cwd, done)
            if isinstance(self._stores.vault.create(path, text), Written):
                done.written.add(path)
            else:
                done.postponed = True
            return done
        if entry.state != "open":
            done.existed = True
            return done
        self._renew(path, text, final, done)
        if final:
            self._outdate(place, handoff_id, text, final, cwd, done)
        return done

    def keep_folders(self, folder: str, written: set[str]) -> None:
        """Make the folders of all states, each kept by git while it is empty: a hook renames into them."""
        for state in STATES:
            self._stores.vault.keep_folder(f"{folder}/handoffs/{state}")
            written.add(f"{folder}/handoffs/{state}/.gitkeep")

    def accepted(self, handoff_id: str, by: str, at: datetime) -> Published:
        """A start event named this handoff: write by whom and when, expire the older ones that it outdates."""
        done = Published()
        with suppress(NotFoundError):  # deleted by a person since
            self._accept(self.find(handoff_id), by, at, done)
        return done

    def _accept(self, entry: Entry, by: str, at: datetime, done: Published) -> None:
        """See `accepted`. Three effects, each made again when a crash came before the next: the handoff is moved to
        accepted, the older ones expire, by whom and when is written.
        """
        if entry.state == "open":
            entry = self._move(entry, "accepted", done) or entry
        if entry.state != "accepted" or entry.text("accepted_by"):
            return
        if entry.provisional:
            self._close_origin(entry, at)
        if entry.automatic:
            for other in list(self.entries(entry.folder, "open")):
                if other.automatic and not other.provisional and _covers(other, entry) and _older(other, entry):
                    self._expire(other, done)
        values = {"accepted_at": line(at.isoformat(timespec="seconds"), 40), "accepted_by": line(by, 100)}
        done.written.add(f"{entry.folder}/handoffs/open/{entry.id}.md")  # where the hook took it from
        for _ in range(ATTEMPTS):
            page = self._stores.vault.read(entry.path)
            if page is None:
                return
            result = self._stores.vault.revise(page, values)
            if isinstance(result, Written):
                done.written.add(entry.path)
                return
            if isinstance(result, Busy):
                done.postponed = True
                return

    def _close_origin(self, entry: Entry, at: datetime) -> None:
        """A handoff was claimed before its session ended: what that session does from now on is another generation."""
        name = SessionName(entry.text("from_agent"), Sid(entry.id.partition("-g")[0]))
        key = f"{int(at.timestamp())}-claimed-{name.sid}"
        with suppress(FileExistsError):
            deliver_close(self._stores, name, entry.text("from_session"), entry.text("cwd"), "claimed", key, at)

    def give_back(self, by: str) -> set[str]:
        """A session that did nothing returns what it had accepted; the vault paths that changed."""
        done = Published()
        for entry in [*self.entries(state="open"), *self.entries(state="accepted")]:
            if entry.text("accepted_by") == by:
                self._reopen(entry, done)
        return done.written

    def return_unprinted(self) -> set[str]:
        """Claims whose hook died before it printed go back to open after a while; the vault paths that changed."""
        done = Published()
        for handoff_id in self._stores.inbox.unprinted(self._stores.clock().timestamp() - CLAIM_GRACE_S):
            with suppress(NotFoundError):
                entry = self.find(handoff_id)
                if entry.state == "accepted" and not entry.text("accepted_by"):
                    self._reopen(entry, done)
        return done.written

    def change(self, handoff_id: str, state: str, values: Mapping[str, Value]) -> Entry:
        """A person accepts or cancels an open handoff by its id. NotFoundError; ConflictError when it is not open."""
        entry = self.find(handoff_id)
        if entry.state != "open":
            raise ConflictError(
                f"Handoff {handoff_id} is {entry.state} already. `vaultd handoffs show {handoff_id}` shows it."
            )
        moved = self._move(entry, state, Published())
        if moved is None:
            raise ConflictError(f"Handoff {handoff_id} was claimed this moment by a session. Nothing was changed.")
        page = self._stores.vault.read(moved.path)
        if page is not None and values and frontmatter.parse(page.data).meta.has:
            self._stores.vault.revise(page, values)
        return moved

    def _renew(self, path: str, text: Clean, final: bool, done: Published) -> None:
        """Replace an open handoff's text in place; a text that a person edited stays, only `provisional` follows."""
        for _ in range(ATTEMPTS):
            page = self._stores.vault.read(path)
            if page is None:
                done.existed = True  # claimed this moment
                return
            if page.data == text.encode():
                done.existed = True
                return
            old = frontmatter.parse(page.data)
            if is_unedited(page.data):
                result: Outcome | Refused = self._stores.vault.rewrite(path, text, page.revision)
            elif old.meta.has and not old.meta.error and old.meta.values.get("provisional") is not (not final):
                result = self._stores.vault.revise(page, {"provisional": not final})
            else:
                done.existed = True
                return
            if isinstance(result, Written):
                done.written.add(path)
                return
            if isinstance(result, Busy):
                done.postponed = final  # a provisional text may lag; the final one is tried again
                return
        done.postponed = final

    def _outdate(self, place: Project, handoff_id: str, text: Clean, final: bool, cwd: str, done: Published) -> None:
        """Expire what a new handoff makes obsolete."""
        new = Entry(handoff_id, "open", "", place.folder, frontmatter.parse(text.encode()).meta.values)
        sid = handoff_id.partition("-g")[0]
        for other in list(self.entries(place.folder, "open")):
            if other.id == handoff_id or not other.automatic:
                continue
            own = other.id.startswith(f"{sid}-g")
            same = final and other.text("cwd") == cwd and not other.provisional and _older(other, new)
            if own or same:
                self._expire(other, done)

    def _expire(self, entry: Entry, done: Published) -> None:
        """Move an open handoff to expired; one that was claimed this moment stays claimed."""
        self._move(entry, "expired", done)

    def _reopen(self, entry: Entry, done: Published) -> None:
        """Move an accepted handoff back to open, then clear by whom it was accepted. After a crash between the two it
        is open and still says so; doing it again ends it.
        """
        opened = self._move(entry, "open", done) if entry.state == "accepted" else entry
        page = self._stores.vault.read(opened.path) if opened is not None else None
        if page is None or not entry.text("accepted_by"):
            return
        if isinstance(self._stores.vault.revise(page, {"accepted_by": None, "accepted_at": None}), Written):
            done.written.add(page.path)

    def _move(self, entry: Entry, state: str, done: Published) -> Entry | None:
        """Rename a handoff into another state's folder; None when it is gone, or one of its name is there already."""
        path = f"{entry.folder}/handoffs/{state}/{entry.id}.md"
        if isinstance(self._stores.vault.move(entry.path, path), Gone | Exists):
            return None
        done.written |= {entry.path, path}
        return Entry(entry.id, state, path, entry.folder, entry.values)


def _covers(other: Entry, accepted: Entry) -> bool:
    """Whether the other handoff would have been eligible where the accepted one was: its folder or one above."""
    inner, outer = accepted.text("subdir"), other.text("subdir")
    return outer in ("", inner) or inner.startswith(outer + "/")


def _older(other: Entry, accepted: Entry) -> bool:
    """Whether the other handoff was made before the accepted one (their times carry offsets)."""
    try:
        return datetime.fromisoformat(other.text("created")) <= datetime.fromisoformat(accepted.text("created"))
    except (TypeError, ValueError):
        return False
