"""What the next agent receives: a handoff page read back, and the fenced text that is made of it.

A person may have edited the page: its body is what counts then, and entries that only the lists in the frontmatter have
are passed on as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath

from vaultd.core import frontmatter
from vaultd.core.fence import defuse, fenced
from vaultd.core.fit import Section, fit
from vaultd.core.markup import clip, fold, size, squash, unescape
from vaultd.core.told import when

__all__ = ["RANKS", "Handoff", "injected", "offered", "parse_handoff"]

RANKS = {
    "": 0,
    "summary": 0,
    "asked": 1,
    "where it stopped": 2,
    "errors": 3,
    "open questions": 4,
    "next steps": 5,
    "decisions": 6,
    "tests": 7,
    "files": 8,
    "commands": 9,
    "errors since resolved": 10,
    "asked the person earlier": 11,
    "last answer": 12,
    "earlier answers": 13,
}
"""What is kept first when not all fits, by heading."""


_QUOTED_LINE = "> "


@dataclass(frozen=True, slots=True)
class Handoff:
    """A handoff page as read, whatever a person made of it. Texts are raw; absent values are empty.

    `sections` are the body's headings with their lines, text before the first heading under an empty one. `edited`: the
    body is not the one that was written last.
    """

    id: str
    path: str
    project: str = ""
    from_agent: str = ""
    from_session: str = ""
    cwd: str = ""
    subdir: str = ""
    branch: str = ""
    head: str = ""
    shared: bool = False
    provisional: bool = False
    created: datetime | None = None
    accepted_at: str = ""
    accepted_by: str = ""
    open_questions: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    files_touched: tuple[str, ...] = ()
    title: str = ""
    body: str = ""
    sections: tuple[tuple[str, tuple[str, ...]], ...] = ()
    edited: bool = False


def parse_handoff(data: bytes, path: str) -> Handoff:
    """Read a handoff page; never raises. Without usable frontmatter the whole text is the body, the id is the name."""
    meta, body = frontmatter.parse(data)
    values = meta.values

    def text(key: str) -> str:
        value = values.get(key)
        return "" if value is None or isinstance(value, list | dict) else fold(str(value))

    def texts(key: str) -> tuple[str, ...]:
        value = values.get(key)
        entries = value if isinstance(value, list) else [] if value is None else [value]
        return tuple(line for line in (fold(str(entry)) for entry in entries if not isinstance(entry, dict)) if line)

    return Handoff(
        id=text("id") or PurePosixPath(path).name.removesuffix(".md"),
        path=path,
        project=text("project"),
        from_agent=text("from_agent"),
        from_session=text("from_session"),
        cwd=text("cwd"),
        subdir=text("subdir"),
        branch=text("branch"),
        head=text("head"),
        shared=values.get("shared") is True,
        provisional=values.get("provisional") is True,
        created=_time(text("created")),
        accepted_at=text("accepted_at"),
        accepted_by=text("accepted_by"),
        open_questions=texts("open_questions"),
        next_steps=texts("next_steps"),
        files_touched=texts("files_touched"),
        title=text("title"),
        body=body,
        sections=_sections(body),
        edited=values.get("generated") != frontmatter.body_hash(body),
    )


def injected(page: Handoff, limit: int, now: datetime, *, agent: str = "") -> str:
    """The text that the next agent is given: at most `limit` bytes of UTF-8 in all; empty when nothing fits.

    `agent` is the title of the agent that left it, where the caller knows one. What does not fit goes by rank of its
    heading. Nothing of the page can close the fence or pass for a tag or a speaker (core/fence.py).
    """
    sections = [
        Section(
            title, tuple(map(defuse, lines)), rank=RANKS.get(title.casefold(), 6), floor=2, patient=title == "Asked"
        )
        for title, lines in _with_lists(page)
    ]
    head = _origin(page, now, agent)
    budget = limit - size(fenced(head)) - len(_QUOTED_LINE)
    for _ in range(4):
        body = fit(sections, budget, per_line=len(_QUOTED_LINE))
        text = fenced("\n".join((head, body.lstrip("\n") and f"\n{body.strip()}")).rstrip())
        over = size(text) - limit
        if over <= 0:
            return text
        # What `defuse` replaces over several entries can be longer than what stood there.
        budget -= over
    text = fenced(clip(defuse(head), max(0, limit - size(fenced("")))))
    return text if size(text) <= limit else ""


def offered(page: Handoff, now: datetime) -> str:
    """The text that tells of a handoff which is not given but may be taken."""
    title = f"It is about: {clip(fold(page.title), 200)}" if page.title else ""
    take = f"It is open. To take it, so that no other session gets it: memory_handoff_accept, handoff_id {page.id}."
    return fenced(defuse("\n".join(line for line in (_origin(page, now, ""), title, take) if line)))


def _sections(body: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The body by its second-level headings, in plain text: escapes undone, indented lines with their entry."""
    found: list[tuple[str, list[str]]] = [("", [])]
    in_code = False
    for line in body.splitlines():
        in_code ^= line.lstrip().startswith(("```", "~~~"))
        if not in_code and line.startswith("## "):
            found.append((unescape(line[3:].strip()), []))
            continue
        text = line.rstrip() if in_code else _plain_line(line)
        if not text.strip():
            continue
        lines = found[-1][1]
        if lines and line.startswith((" ", "\t")):
            lines[-1] += "\n" + text
        else:
            lines.append(text)
    return tuple((title, tuple(lines)) for title, lines in found if title or lines)


def _plain_line(line: str) -> str:
    """A line of Markdown with its escapes undone and its indent and list mark kept."""
    text = line.lstrip()
    mark = next((mark for mark in ("- ", "* ", "+ ", "# ") if text.startswith(mark)), "")
    return line[: len(line) - len(text)] + mark + unescape(text[len(mark) :].rstrip())


def _with_lists(page: Handoff) -> list[tuple[str, tuple[str, ...]]]:
    """The body's sections and, under their headings, the entries that only the frontmatter's lists have.

    A body that a person edited is the whole truth about the sections that it still has.
    """
    sections = dict(page.sections)
    said = squash(" ".join(line for lines in sections.values() for line in lines))
    by_name = {title.casefold(): title for title in sections}
    lists = (("Open questions", page.open_questions), ("Next steps", page.next_steps), ("Files", page.files_touched))
    for name, entries in lists:
        title = by_name.get(name.casefold(), name)
        if page.edited and title in sections:
            continue
        missing = tuple(f"- {entry}" for entry in entries if squash(entry.rstrip("…")) not in said)
        if missing:
            sections[title] = (*sections.get(title, ()), *missing)
    return list(sections.items())


def _origin(page: Handoff, now: datetime, agent: str) -> str:
    """From whom, when and where, in one or two lines."""
    by_hand = page.from_agent == "other" and page.id.startswith("m-")
    who = fold(agent) or ("a person" if by_hand else page.from_agent) or "somebody"
    session = f", session {page.from_session}" if page.from_session else ""
    first = f"Handoff {page.id} from {who}{session}, {_age(page.created, now)}."
    branch = f"branch {page.branch}" if page.branch else ""
    head = f"commit {page.head[:12]}" if page.head else ""
    subdir = f"in {page.subdir}" if page.subdir else ""
    where = ", ".join(part for part in (page.cwd, subdir, branch, head) if part)
    open_end = "The session had not reported its end when this was written." if page.provisional else ""
    lines = (first, f"Where: {where}." if where else "", open_end)
    return "\n".join(clip(fold(line), 600) for line in lines if line)


def _age(created: datetime | None, now: datetime) -> str:
    """When it was written, with its weekday, and how long before `now`: true however much later it is read."""
    if created is None:
        return "written at an unknown time"
    days = f"{created:%A} {when(created)}"
    seconds = (now - created).total_seconds()
    if seconds < 3600:
        return f"written on {days}"
    hours = int(seconds // 3600)
    ago = f"{hours} hours" if hours < 48 else f"{hours // 24} days"
    return f"written on {days}, {ago if hours > 1 else '1 hour'} before {when(now)}"


def _time(text: str) -> datetime | None:
    """A time with offset; None for anything else."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo is not None else None
