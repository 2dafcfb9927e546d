"""Handoffs: the page that one session leaves for the next, and the text that the next agent is given of it.

The page is for people and programs (Markdown, frontmatter, at most 6,000 bytes); the injected text is for an agent
(plain words inside the fence of core/fence.py; made in core/received.py).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from vaultd.core import frontmatter
from vaultd.core.done import command_section, error_section, file_section, test_section
from vaultd.core.fit import Section, fit
from vaultd.core.markup import clip, code, escape, fold, size
from vaultd.core.received import RANKS, Handoff, injected, parse_handoff
from vaultd.core.session import Digest
from vaultd.core.told import (
    answer_section,
    decision_section,
    earlier_section,
    prompt_section,
    question_section,
    report_section,
    step_section,
    stop_section,
    summary_line,
    when,
)

__all__ = ["MOST_BYTES", "Handoff", "HandoffFacts", "handoff_page", "injected", "manual_page", "parse_handoff"]

MOST_BYTES = 6_000
"""The whole page, frontmatter included, in UTF-8."""

_META_BYTES = 2_200


@dataclass(frozen=True, slots=True)
class HandoffFacts:
    """What a handoff says that the session's events do not: its id, the project, the place, the time of writing.

    Empty `cwd`, `branch` and `head` are taken from the digest. `agent` and `session` name who left a handoff made by
    hand, where that is known. `corrected` is the vault path of a session page that a person edited. `scrub` is applied
    to the body before its hash is taken.
    """

    id: str
    project: str
    subdir: str
    now: datetime
    provisional: bool
    shared: bool = False
    cwd: str = ""
    branch: str = ""
    head: str = ""
    agent: str = ""
    session: str = ""
    corrected: str = ""
    scrub: Callable[[str], str] = str


def handoff_page(digest: Digest, facts: HandoffFacts) -> str:
    """The page of an automatic handoff: at most 6,000 bytes, cut by what matters least, lists saying how many more."""
    tested = [run.command for run in digest.tests]
    failed = [trouble.source for trouble in digest.errors]
    sections = [
        replace(prompt_section(digest, small_talk=False), most=16),
        stop_section(digest),
        replace(error_section(digest, resolved=False), most=12),
        replace(test_section(digest), most=8),
        question_section(digest),
        step_section(digest),
        replace(decision_section(digest), most=16),
        replace(file_section(digest), most=25),
        replace(command_section(digest, but=(*tested, *failed)), most=12),
        replace(error_section(digest, resolved=True), title="Errors since resolved", most=4),
        replace(earlier_section(digest), most=6),
        answer_section(digest, 1500),
        replace(report_section(digest), most=10),
    ]
    changed = [use.path for use in digest.files if use.changed]
    lists = {
        "open_questions": [question.text for question in digest.open_questions][::-1],
        "next_steps": [step.text for step in digest.next_steps],
        "files_touched": changed[::-1] or [use.path for use in digest.files][::-1],
    }
    branch = facts.branch or digest.branch
    place = f", branch {code(clip(branch, 100))}" if branch else ""
    intro = f"{escape(digest.agent)}, {when(digest.started)}{place}. {summary_line(digest)}"
    if facts.corrected:
        read = f"vaultd read {shlex.quote(facts.corrected)}"
        intro += f"\n\nA person corrected the page of this session. What it says counts: {code(clip(read, 600))}"
    origin = {"from_agent": digest.agent, "from_session": digest.native or digest.sid}
    return _page(facts, digest.title, intro, sections, lists, origin, cwd=digest.cwd, head=digest.head)


def manual_page(
    facts: HandoffFacts, summary: str, questions: Sequence[str], next_steps: Sequence[str], files: Sequence[str]
) -> str:
    """The page of a handoff that somebody wrote: a summary and three lists, at most 6,000 bytes."""
    paragraphs = [clip(fold(line), 900) for line in summary.splitlines() if fold(line)]
    sections = [
        Section("Summary", tuple(f"- {escape(line)}" for line in paragraphs), floor=4),
        Section("Open questions", tuple(f"- {escape(clip(fold(text), 400))}" for text in questions if fold(text))),
        Section("Next steps", tuple(f"- {escape(clip(fold(text), 400))}" for text in next_steps if fold(text))),
        Section("Files", tuple(f"- {code(clip(fold(path), 300))}" for path in files if fold(path))),
    ]
    title = clip(paragraphs[0], 80) if paragraphs else f"Handoff {facts.id}"
    lists = {"open_questions": list(questions), "next_steps": list(next_steps), "files_touched": list(files)}
    intro = f"Written by {escape(facts.agent) or 'hand'}, {when(facts.now)}."
    origin = {"from_agent": facts.agent or "other", "from_session": facts.session}
    return _page(facts, title, intro, sections, lists, origin, cwd="", head="")


def _page(
    facts: HandoffFacts,
    title: str,
    intro: str,
    sections: Sequence[Section],
    lists: Mapping[str, Sequence[str]],
    origin: Mapping[str, str],
    *,
    cwd: str,
    head: str,
) -> str:
    """Frontmatter and body, together at most 6,000 bytes."""
    values: dict[str, object] = {
        "id": facts.id,
        "kind": "handoff",
        "title": clip(fold(title), 160),
        "project": clip(fold(facts.project), 160),
        **{key: clip(fold(value), 160) for key, value in origin.items()},
        "cwd": clip(fold(facts.cwd or cwd), 600),
        "subdir": clip(fold(facts.subdir), 400),
        "head": clip(fold(facts.head or head), 80),
        "shared": facts.shared,
        "provisional": facts.provisional,
        "created": facts.now.isoformat(timespec="seconds"),
        "accepted_at": None,
        "accepted_by": None,
        "generated": "0" * 12,
    }
    for most, each in ((12, 200), (6, 200), (4, 120), (2, 80), (0, 0)):
        values |= {key: _short(entries, most, each) for key, entries in lists.items()}
        if size(frontmatter.dump(values)) <= _META_BYTES or not most:
            break
    top = f"# {escape(clip(fold(title), 160))}\n\n{intro}\n"
    ranked = [_ranked(section) for section in sections]
    room = MOST_BYTES - size(frontmatter.dump(values)) - size(top)
    body = facts.scrub(top + fit(ranked, room))
    values["generated"] = frontmatter.body_hash(body)
    return frontmatter.dump(values) + body


def _short(entries: Sequence[str], most: int, each: int) -> list[str]:
    """The first few entries for a list in the frontmatter, each on one line."""
    folded = [fold(entry) for entry in entries]
    return [clip(entry, each) for entry in folded if entry][:most]


def _ranked(section: Section) -> Section:
    """The section with the rank of its heading."""
    return replace(section, rank=RANKS[section.title.casefold()])
