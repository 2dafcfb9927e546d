"""The page of a session: a few sections that a person reads in ten seconds, made from its digest alone.

The same digest and facts give the same bytes. `generated` holds a hash of the body as written, so that a body that a
person changed is known as such.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from vaultd.core import frontmatter
from vaultd.core.activity import Subagent
from vaultd.core.done import command_section, error_section, file_section, test_section
from vaultd.core.fit import Section, capped, written
from vaultd.core.markup import clip, code, escape, fold
from vaultd.core.session import Digest
from vaultd.core.told import (
    answer_section,
    decision_section,
    prompt_section,
    question_section,
    step_section,
    stop_section,
    summary_line,
    when,
)

__all__ = ["PageFacts", "body_hash", "code", "escape", "is_unedited", "resumed_section", "session_page"]

_MOST_PROMPTS = 30
_MOST_FILES = 60
_MOST_COMMANDS = 40
_MOST_OTHERS = 25


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What a session page says that its events do not: `id` of the page, project, host, place in the checkout.

    `observations` is the number the page was made from, `now` the value of `updated`. Empty `cwd`, `subdir`, `branch`
    and `head` are taken from the digest. `scrub` is applied to the body before its hash is taken. A page that is not of
    the `whole` session says so.
    """

    id: str
    project: str
    host: str
    subdir: str
    branch: str
    observations: int
    now: datetime
    cwd: str = ""
    head: str = ""
    tags: tuple[str, ...] = ("session",)
    scrub: Callable[[str], str] = str
    whole: bool = True


def session_page(digest: Digest, facts: PageFacts) -> str:
    """The whole page: frontmatter with the keys of a session page, and the body."""
    body = facts.scrub(_body(digest, facts))
    changed = [use.path for use in digest.files if use.changed]
    read = [use.path for use in digest.files if not use.changed]
    values: dict[str, object] = {
        "id": facts.id,
        "kind": "session",
        "tier": "episodic",
        "title": digest.title,
        "summary": summary_line(digest),
        "agent": digest.agent,
        "session_id": digest.native or digest.sid,
        "project": facts.project,
        "host": facts.host,
        "cwd": facts.cwd or digest.cwd,
        "subdir": facts.subdir or digest.subdir,
        "branch": facts.branch or digest.branch,
        "head": facts.head or digest.head,
        "started": _stamp(digest.started),
        "ended": _stamp(digest.ended) if digest.ended else None,
        "closed_by": digest.closed_by or None,
        "observations": facts.observations,
        "files_touched": [*changed[::-1], *read[::-1]][:_MOST_FILES],
        "generation": digest.generation,
        **({} if facts.whole else {"part": True}),
        "generated": frontmatter.body_hash(body),
        "created": _stamp(digest.started),
        "updated": _stamp(facts.now),
        "tags": list(facts.tags),
    }
    return frontmatter.dump({key: _safe(value) for key, value in values.items()}) + body


def resumed_section(digest: Digest, time: datetime) -> str:
    """What is appended to a page that a person edited: `## Resumed <time>` and what happened since, in short lists."""
    sections = [Section(f"Resumed {when(time)}", (f"- {summary_line(digest)}",)), *_sections(digest)]
    first, *rest = (section for section in sections if section.items)
    nested = "".join(written([section]).replace("\n## ", "\n### ", 1) for section in rest)
    return written([first]) + nested


def body_hash(body: bytes) -> str:
    """The value of `generated` for a page with this body: twelve hex digits."""
    return frontmatter.body_hash(body.decode("utf-8", "replace"))


def is_unedited(page: bytes) -> bool:
    """True when the page's body is the one that was written last: its hash is the one in the frontmatter."""
    meta = frontmatter.parse(page).meta
    return meta.values.get("generated") == body_hash(frontmatter.split(page).body)


def _body(digest: Digest, facts: PageFacts) -> str:
    """Title, one line of summary, the sections that have something to say."""
    branch = facts.branch or digest.branch
    where = f", branch {code(clip(branch, 120))}" if branch else ""
    line = f"{escape(digest.agent)}, {when(digest.started)}{where}. {summary_line(digest)}"
    return f"# {escape(digest.title)}\n\n{line}\n" + written(_sections(digest))


def _sections(digest: Digest) -> list[Section]:
    """The page's sections in order, bounded."""
    return [
        capped(prompt_section(digest), _MOST_PROMPTS),
        _done(digest),
        capped(error_section(digest), _MOST_OTHERS),
        capped(decision_section(digest), _MOST_OTHERS),
        capped(question_section(digest), _MOST_OTHERS),
        capped(step_section(digest), _MOST_OTHERS),
        capped(answer_section(digest), _MOST_OTHERS),
        stop_section(digest),
    ]


def _done(digest: Digest) -> Section:
    """Files, test runs, other commands, subagents."""
    tested = [run.command for run in digest.tests]
    groups = {
        "Files": capped(file_section(digest), _MOST_FILES).items,
        "Tests": capped(test_section(digest), _MOST_OTHERS).items,
        "Commands": capped(command_section(digest, but=tested), _MOST_COMMANDS).items,
        "Subagents": tuple(map(_subagent, digest.subagents[:_MOST_OTHERS])),
    }
    items: list[str] = []
    for name, lines in groups.items():
        if lines:
            items += [*([""] if items else []), f"**{name}**", *lines]
    return Section("Done", tuple(items))


def _subagent(one: Subagent) -> str:
    """A subagent by its id, with what it said last."""
    said = f": {escape(clip(one.text, 200))}" if one.text else ""
    return f"- {code(clip(one.id, 60))}{said}"


def _stamp(at: datetime) -> str:
    """RFC 3339 with offset, whole seconds."""
    return at.isoformat(timespec="seconds")


def _safe(value: object) -> object:
    """A frontmatter value with its texts on one line."""
    if isinstance(value, str):
        return fold(value)
    return [_safe(entry) for entry in value] if isinstance(value, list) else value
