"""What one session was about, told from its events alone: `digest`.

Everything in a `Digest` is a quote or a count of something an event says. What an agent did not report stays unknown.
Input is sanitised; a digest is still raw text to Markdown and to agents (see core/markup.py, core/fence.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from vaultd.core.activity import (
    CommandRun,
    FileUse,
    Subagent,
    TestRun,
    Trouble,
    base_folder,
    below,
    command_runs,
    file_uses,
    subagents,
    test_runs,
    tool_calls,
    troubles,
)
from vaultd.core.event import Event, Kind
from vaultd.core.fence import without_history
from vaultd.core.lifecycle import in_order, life, typed
from vaultd.core.markup import fold, squash
from vaultd.core.phrases import SMALL_TALK
from vaultd.core.prose import Mined, headline, is_offer, mine
from vaultd.core.stopped import Stopped, stopped

__all__ = ["Digest", "Question", "Said", "digest"]


@dataclass(frozen=True, slots=True)
class Said:
    """Words of a session: `by` is `person`, `agent` or `summary` (of a compaction)."""

    text: str
    at: datetime
    by: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question and, where a later prompt exists, the words that followed it (`reply`); open when there are none.

    `named`: the text called it an open question.
    """

    text: str
    at: datetime
    by: str
    reply: str = ""
    named: bool = False


@dataclass(frozen=True, slots=True)
class Digest:
    """One session. Sequences are in time order unless said otherwise; times carry the offset of their event.

    `observations` counts distinct event keys, duplicates of other wirings included. `files` are by importance (changed
    before read, each newest last). `last_answer` is the assistant's last message, `earlier_answers` are those of turns
    before and the summaries of compactions, `cwd`, `root`, `subdir`, `branch` and
    `head` are those of the session's start, `transcript` the newest path reported. For the fields about closing see
    `lifecycle.Life`.
    """

    agent: str
    sid: str
    native: str
    started: datetime
    last: datetime
    ended: datetime | None
    closed: bool
    closed_by: str
    last_close: datetime | None
    since_close: int
    generation: int
    provisional: bool
    observations: int
    tool_calls: int
    hands_over: bool
    prompts: tuple[Said, ...]
    files: tuple[FileUse, ...]
    commands: tuple[CommandRun, ...]
    tests: tuple[TestRun, ...]
    errors: tuple[Trouble, ...]
    decisions: tuple[Said, ...]
    questions: tuple[Question, ...]
    next_steps: tuple[Said, ...]
    last_answer: str
    earlier_answers: tuple[Said, ...]
    stopped: Stopped
    subagents: tuple[Subagent, ...]
    claimed: tuple[str, ...]
    given_back: tuple[str, ...]
    transcript: str
    cwd: str
    root: str
    subdir: str
    branch: str
    head: str

    @property
    def substantive(self) -> bool:
        """False for a session of nothing but start and end (or client noise): it gets no page."""
        return bool(self.prompts or self.tool_calls or self.last_answer or self.decisions or self.next_steps)

    @property
    def title(self) -> str:
        """At most 80 characters from the first prompt that is more than a greeting; never empty."""
        heads = [headline(prompt.text) for prompt in self.prompts]
        telling = [head for head in heads if head and not SMALL_TALK.match(head)]
        return next(iter(telling or [head for head in heads if head]), f"{self.agent} session {self.sid}"[:80])

    @property
    def day(self) -> str:
        """The day on which the session started, as its person's calendar had it: `YYYY-MM-DD`."""
        return self.started.date().isoformat()

    @property
    def open_questions(self) -> tuple[Question, ...]:
        """Questions that nothing was said after, and those that the text named open."""
        return tuple(question for question in self.questions if question.named or not question.reply)

    @property
    def asked_earlier(self) -> tuple[Question, ...]:
        """Questions to the person that a later prompt followed, answered or not; offers to go on are left out."""
        return tuple(
            question
            for question in self.questions
            if question.reply and not question.named and not is_offer(question.text)
        )


def digest(events: Iterable[Event], *, assistant: bool = True) -> Digest:
    """The digest of one session's events, given in any order, perhaps with duplicates.

    With `assistant` False nothing that the assistant said is used. Raises ValueError when there are no events.
    """
    given = list(events)
    ordered = in_order(given)
    if not ordered:
        raise ValueError("a session without events has no digest")
    now = life(ordered)
    said = _said(ordered, assistant=assistant)
    mined = [mine(one.text) for one in said]
    prompts = tuple(one for one in said if one.by == "person")
    answers = [one for one in said if one.by == "agent"]
    first = next((event for event in ordered if event.cwd), ordered[0])
    base = base_folder(ordered)
    branch, head = _head(next((event.head for event in ordered if event.head), ""))
    runs = command_runs(ordered)
    current = ordered[now.begin :]
    return Digest(
        agent=ordered[0].agent,
        sid=ordered[0].sid,
        native=next((event.native for event in ordered if event.native), ""),
        started=ordered[0].at,
        last=ordered[-1].at,
        ended=now.ended,
        closed=now.closed,
        closed_by=now.closed_by,
        last_close=now.last_close,
        since_close=now.since_close,
        generation=now.generation,
        provisional=now.provisional,
        observations=len({event.key for event in given}),
        tool_calls=tool_calls(ordered),
        hands_over=sum(bool(typed(event)) for event in current) > 1 or tool_calls(current) > 0,
        prompts=prompts,
        files=file_uses(ordered, base),
        commands=runs,
        tests=test_runs(runs),
        errors=troubles(ordered, runs, base),
        decisions=_decisions(said, mined),
        questions=_questions(said, mined),
        next_steps=_next_steps(said, mined),
        last_answer=answers[-1].text if answers else "",
        earlier_answers=tuple(one for one in said if one.by != "person" and one not in answers[-1:]),
        stopped=stopped(ordered, base),
        subagents=subagents(ordered, assistant=assistant),
        claimed=now.claimed,
        given_back=now.given_back,
        transcript=next(
            (event.transcript for event in reversed(ordered) if event.transcript and not event.subagent), ""
        ),
        cwd=first.cwd,
        root=first.root,
        subdir=_subdir(first),
        branch=branch,
        head=head,
    )


def _said(ordered: Sequence[Event], *, assistant: bool) -> tuple[Said, ...]:
    """Everything said in the main session: typed prompts, last messages of turns, compaction summaries."""
    said: list[Said] = []
    for event in ordered:
        text, by = typed(event), "person"
        if not text and assistant and not event.subagent and event.kind in (Kind.TURN_END, Kind.POST_COMPACT):
            text = without_history(event.text).strip()
            by = "agent" if event.kind is Kind.TURN_END else "summary"
        if text:
            said.append(Said(text, event.at, by))
    return tuple(said)


def _decisions(said: Sequence[Said], mined: Sequence[Mined]) -> tuple[Said, ...]:
    """Every decision stated, once: the last time it was said."""
    found: dict[str, Said] = {}
    for one, what in zip(said, mined, strict=True):
        for text in what.decisions:
            found.pop(squash(text), None)
            found[squash(text)] = Said(text, one.at, one.by)
    return tuple(found.values())


def _next_steps(said: Sequence[Said], mined: Sequence[Mined]) -> tuple[Said, ...]:
    """The steps of the newest text that states any: older ones are done or were overtaken."""
    for one, what in zip(reversed(said), reversed(mined), strict=True):
        if what.next_steps:
            return tuple(Said(text, one.at, one.by) for text in what.next_steps)
    return ()


def _questions(said: Sequence[Said], mined: Sequence[Mined]) -> tuple[Question, ...]:
    """Questions named open by anybody and those the assistant asked the person, each with the prompt that came next."""
    found: list[Question] = []
    reply = ""
    for one, what in zip(reversed(said), reversed(mined), strict=True):
        asks = what.asks if one.by == "agent" else ()
        for text, named in (
            *((text, False) for text in reversed(asks)),
            *((text, True) for text in reversed(what.open_questions)),
        ):
            found.append(Question(text, one.at, one.by, "" if one.by == "person" else reply, named))
        if one.by == "person":
            reply = fold(one.text)
    newest: dict[str, Question] = {}
    for question in found:
        newest.setdefault(squash(question.text), question)
    return tuple(reversed(newest.values()))


def _subdir(first: Event) -> str:
    """The start folder below the checkout root; empty for the root itself and outside any checkout."""
    inside = below(first.cwd, first.root) if first.root else "."
    return "" if inside in (".", first.cwd) else inside


def _head(header: str) -> tuple[str, str]:
    """Branch and commit out of what `.git/HEAD` and its ref said: `ref: refs/heads/x`, a hash, or both."""
    branch = commit = ""
    for word in header.split():
        if word.startswith("refs/heads/"):
            branch = word.removeprefix("refs/heads/")
        elif re.fullmatch(r"[0-9a-f]{7,64}", word):
            commit = word
    return branch, commit
