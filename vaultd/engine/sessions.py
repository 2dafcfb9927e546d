"""From a session's observations to its page, its handoff and its line in the log.

Everything that is written here is named after the session and its generation, and made from the observations alone, so
doing it again after a crash gives the same files. Order of effects of `refresh`: page, handoff, log line. After a crash
between them the closing event is still in the inbox and the rest is made by the next pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from vaultd.core import frontmatter
from vaultd.core.event import Event, Kind
from vaultd.core.handoff import HandoffFacts, handoff_page
from vaultd.core.lifecycle import typed
from vaultd.core.observation import Observation
from vaultd.core.render import PageFacts, is_unedited
from vaultd.core.sanitize import line, redact
from vaultd.core.session import Digest, digest
from vaultd.engine.handoffs import Handoffs
from vaultd.engine.journal import append_line
from vaultd.engine.projects import Project, Unsorted
from vaultd.engine.revise import Revised, revise_session_page
from vaultd.engine.stores import Stores
from vaultd.errors import NotFoundError
from vaultd.store.inbox import SessionName

__all__ = ["Refreshed", "Sessions"]

_PLAIN = str.maketrans({"<": "\u2039", ">": "\u203a", "`": "'", "[": "(", "]": ")", "%": "\uff05", "#": "\uff03"})
"""What would be markup in a log line: tags, code that plugins run, links, comments, tags of Obsidian."""


@dataclass(slots=True)
class Refreshed:
    """What a refresh did: vault paths written, the project whose offers may have changed, whether the session is
    closed, whether some of the effects were there already, and whether something is to be tried again later.
    """

    written: set[str] = field(default_factory=set)
    project: Project | None = None
    closed: bool = False
    resumed: bool = False
    postponed: bool = False

    def add(self, other: Refreshed) -> None:
        """Add what was done next for the same session."""
        self.written |= other.written
        self.project = other.project or self.project
        self.closed |= other.closed
        self.resumed |= other.resumed
        self.postponed |= other.postponed


class Sessions:
    """Makes and remakes what a session leaves in the vault. The caller holds the write lock."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._handoffs = Handoffs(stores)
        self._projects: dict[SessionName, Project | Unsorted] = {}

    def place(self, name: SessionName, observations: Sequence[Observation]) -> Project | Unsorted:
        """The project that a session belongs to, decided once from its first event that is in one."""
        known = self._projects.get(name)
        if isinstance(known, Project):
            # The person may have renamed or moved the project's folder since.
            now = self._stores.projects.get(known.id)
            if now is not None:
                return replace(known, folder=now.folder, workspace=now.workspace, title=now.title)
            del self._projects[name]
        if name not in self._projects:
            if len(self._projects) > 4096:
                self._projects.clear()
            self._projects[name] = self._stores.projects.place(o.event for o in observations)
        return self._projects[name]

    def accept(self, claim: Observation) -> Refreshed:
        """A session started and was given a handoff: note by whom and when, and expire what it outdates."""
        name = SessionName(claim.event.agent, claim.event.sid)
        place = self.place(name, [claim])
        result = Refreshed(project=place if isinstance(place, Project) else None)
        done = self._handoffs.accepted(claim.event.handoff, f"{name}", claim.event.at)
        result.written, result.postponed = done.written | set(self._stores.projects.take_written()), done.postponed
        return result

    def refresh(self, name: SessionName, fresh: Sequence[Observation], *, closing: bool) -> Refreshed:
        """Bring page, handoff and log up to what is known of a session, `fresh` included (not yet filed).

        Without `closing` events among those only what a closed session left is brought up to date.
        """
        known = {o.event.key: o for o in self._stores.inbox.observations(name)}
        known.update((o.event.key, o) for o in fresh)
        observations = sorted(known.values(), key=lambda o: o.event.order)
        summary = digest([o.event for o in observations])
        result = Refreshed(closed=summary.closed)
        if not closing and not summary.closed:
            return result
        place = self.place(name, observations)
        path = self._stores.pages.session(place.folder, name.agent, name.sid)
        part = self._part(name, place, path, observations, summary.generation)
        told: Digest | None = summary
        if part is not None:  # without a prompt that somebody typed there is nothing new to tell
            told = replace(digest(part), generation=summary.generation) if any(map(typed, part)) else None
        if told is not None and told.substantive:
            facts = self._facts(name, told, place, len(observations), whole=part is None)
            mark = "" if part is None else f"-g{told.generation}"  # the deleted page may come back
            page = path or f"{place.folder}/sessions/{told.day}-{name}{mark}.md"
            self._page(page, told, facts, observations, result)
            if path is None and result.postponed:
                return result  # a handoff would say that there was a page
            if isinstance(place, Project) and (told.hands_over or self._handoffs.has_open(place.folder, name.sid)):
                self._hand_over(name, told, place, page, result)
            if told.closed:
                self._log(name, told, place, page, observations, result)
        if summary.closed and not summary.hands_over:
            result.written |= self._handoffs.give_back(f"{name}")
        if isinstance(place, Project):
            result.project = place
        result.written.update(self._stores.projects.take_written())
        return result

    def _part(
        self,
        name: SessionName,
        place: Project | Unsorted,
        path: str | None,
        observations: Sequence[Observation],
        generation: int,
    ) -> list[Event] | None:
        """What may be told of a session whose page a person deleted: what came later. None when nobody did.

        A page that was made of such a part says so, and by its `started` where the part begins.
        """
        events = [o.event for o in observations]
        if path is None:
            return self._since_deletion(name, place, events, generation)
        page = self._stores.vault.read(path)
        values = frontmatter.parse(page.data).meta.values if page is not None else {}
        try:
            started = datetime.fromisoformat(str(values.get("started")))
        except ValueError:
            return None
        if values.get("part") is not True or started.tzinfo is None:
            return None
        return [event for event in events if event.at >= started]

    def _since_deletion(
        self, name: SessionName, place: Project | Unsorted, events: Sequence[Event], generation: int
    ) -> list[Event] | None:
        """What came after the page was deleted that the session must have had; None when it had none.

        It had one when it ended (then it has a pack), and when it has a handoff, which is made after the page.
        """
        packed = self._stores.inbox.packed(name)
        before = [event for event in events if event.key in packed]
        if before and digest(before).substantive:
            return [event for event in events if event.key not in packed]
        try:
            handoff = self._handoffs.find(f"{name.sid}-g{generation}", place.folder)
            made = datetime.fromisoformat(handoff.text("created"))
        except (NotFoundError, ValueError):
            return None
        return [event for event in events if event.at > made]

    def _facts(
        self, name: SessionName, summary: Digest, place: Project | Unsorted, observations: int, *, whole: bool
    ) -> PageFacts:
        """What a session page says that its events do not."""
        return PageFacts(
            id=f"{name}",
            project=place.id,
            host=self._stores.config.host,
            subdir=place.subdir,
            branch=place.branch,
            observations=observations,
            now=summary.last,
            cwd=summary.cwd,
            head=summary.head,
            scrub=self._scrub,
            whole=whole,
        )

    def _page(
        self, path: str, summary: Digest, facts: PageFacts, observations: Sequence[Observation], result: Refreshed
    ) -> None:
        """Make or remake the session page."""
        outcome = revise_session_page(self._stores, path, summary, facts, [o.event for o in observations])
        if outcome is Revised.POSTPONED:
            result.postponed = True
        elif outcome is Revised.SAME:
            result.resumed = True
        else:
            result.written.add(path)

    def _hand_over(self, name: SessionName, summary: Digest, place: Project, page: str, result: Refreshed) -> None:
        """Make the session's handoff, provisional or final."""
        facts = HandoffFacts(
            id=f"{name.sid}-g{summary.generation}",
            project=place.id,
            subdir=place.subdir,
            now=summary.last,
            provisional=not summary.closed,
            cwd=summary.cwd,
            branch=place.branch,
            head=summary.head,
            agent=name.agent,
            session=summary.native,
            corrected=page if self._is_corrected(page) else "",
            scrub=self._scrub,
        )
        text = redact(handoff_page(summary, facts), self._stores.config.rules)
        done = self._handoffs.publish(place, facts.id, text, final=summary.closed, cwd=summary.cwd)
        result.written |= done.written
        result.postponed |= done.postponed
        result.resumed |= done.existed

    def _is_corrected(self, path: str) -> bool:
        """Whether a person changed the text of a session's page."""
        page = self._stores.vault.read(path)
        return page is not None and not is_unedited(page.data)

    def _scrub(self, text: str) -> str:
        """The sanitiser, for texts that are put together from sanitised parts."""
        return redact(text, self._stores.config.rules)

    def _log(
        self,
        name: SessionName,
        summary: Digest,
        place: Project | Unsorted,
        page: str,
        observations: Sequence[Observation],
        result: Refreshed,
    ) -> None:
        """One line for the end of this generation, marked with the key of the event that ended it."""
        end = _ending(observations)
        if end is None:
            return
        rules = self._stores.config.rules
        stem = page.rpartition("/")[2].removesuffix(".md")
        title = line(summary.title.translate(_PLAIN), 80, rules)
        what = f"session ended ({end.event.reason or 'end'})"
        text = f"{end.event.at:%Y-%m-%d %H:%M} {name.agent} {what}: [[{stem}]] {title}"
        outcome = append_line(self._stores, place.folder, end.event.at, line(text, 400, rules), end.event.key)
        if outcome is Revised.POSTPONED:
            result.postponed = True
        elif outcome is Revised.WRITTEN:
            result.written.add(f"{place.folder}/log-{end.event.at:%Y-%m}.md")


def _ending(observations: Sequence[Observation]) -> Observation | None:
    """The event that closed the present generation: the first end after the last prompt."""
    found = None
    for observation in observations:
        if observation.event.kind is Kind.END:
            found = found or observation
        elif observation.event.kind is Kind.PROMPT and not observation.event.subagent:
            found = None
    return found
