"""A digest told in lines of Markdown: each function gives the entries of one section, for pages and handoffs alike.

Every raw text is escaped or stands in a code span, on one line, cut before it was escaped.
"""

from __future__ import annotations

from collections.abc import Set
from datetime import datetime

from vaultd.core.blocks import plain, sentences
from vaultd.core.fit import Section
from vaultd.core.markup import clip, code, escape, size, squash
from vaultd.core.phrases import SMALL_TALK
from vaultd.core.prose import prose, statements
from vaultd.core.session import Digest, Question, Said
from vaultd.core.stopped import Stopped

__all__ = [
    "answer_section",
    "decision_section",
    "earlier_section",
    "prompt_section",
    "question_section",
    "report_section",
    "step_section",
    "stop_section",
    "summary_line",
    "when",
]

_ENTRY_BYTES = 400
_SHORT = 20  # letters
_CLOSED = {
    "dead": "its process was gone, no end was reported",
    "quiet": "nothing was heard for a long time, no end was reported",
    "finalised": "closed by hand, no end was reported",
}
"""What the reasons mean that vaultd itself gives for a close."""


def when(at: datetime) -> str:
    """A time as a person reads it, with its offset: `2026-11-29 11:40 +01:00`."""
    offset = at.strftime("%z")
    return f"{at:%Y-%m-%d %H:%M} {offset[:3]}:{offset[3:5]}".rstrip(" :")


def summary_line(digest: Digest) -> str:
    """One plain sentence about the session: how long, how much, how the last test run ended."""
    changed = sum(use.changed for use in digest.files)
    resolved = sum(trouble.resolved for trouble in digest.errors)
    parts = [
        _counted(len(digest.prompts), "prompt"),
        _counted(digest.tool_calls, "tool call"),
        _counted(changed, "file changed", "files changed"),
        _counted(len(digest.errors), "error") + (f" ({resolved} resolved later)" if resolved else ""),
    ]
    minutes = int(((digest.ended or digest.last) - digest.started).total_seconds()) // 60
    if 0 < minutes < 24 * 60 and digest.generation == 1:
        parts.append(_counted(minutes, "minute"))
    text = ", ".join(part for part in parts if part) or "nothing recorded"
    suite = digest.tests[-1].suite if digest.tests else None
    if suite is not None and suite.verdict != "unknown":
        text += f"; last test run {suite.verdict}" + (f" ({suite.counts})" if suite.counts else "")
    return f"{text[0].upper()}{text[1:]}."


def prompt_section(digest: Digest, *, small_talk: bool = True) -> Section:
    """What the person asked, each prompt with its time; first and last stay longest. Without `small_talk`, what says
    nothing about the work is left out, unless nothing else was said."""
    prompts = [prompt for prompt in digest.prompts if small_talk or not SMALL_TALK.match(plain(prompt.text))]
    items = [
        f"- {_moment(prompt.at, digest)} {_quoted(_lead(prompt.text, _ENTRY_BYTES))}"
        for prompt in prompts or digest.prompts
    ]
    return Section("Asked", tuple(items), floor=2, patient=True, keep="ends")


def decision_section(digest: Digest, each: int = _ENTRY_BYTES) -> Section:
    """Decisions as they were said, newest last."""
    return Section("Decisions", tuple(_entry(said, each) for said in digest.decisions), floor=3, keep="last")


def question_section(digest: Digest, each: int = _ENTRY_BYTES) -> Section:
    """Questions that nothing was said after, and those named open; newest last."""
    items = tuple(_question(digest, one, each) for one in digest.open_questions)
    return Section("Open questions", items, floor=3, keep="last")


def earlier_section(digest: Digest, each: int = 200) -> Section:
    """Questions to the person, each with what the person wrote next; newest last."""
    return Section(
        "Asked the person earlier", tuple(_question(digest, one, each) for one in digest.asked_earlier), keep="last"
    )


def step_section(digest: Digest, each: int = _ENTRY_BYTES) -> Section:
    """Next steps in the order they were given; when they are not from the last message, from when."""
    steps = digest.next_steps
    items = [f"- {escape(clip(step.text, each))}" for step in steps]
    if steps and digest.stopped.at > steps[0].at:
        items.insert(0, f"- (as of {_moment(steps[0].at, digest)})")
    return Section("Next steps", tuple(items), floor=4)


def stop_section(digest: Digest) -> Section:
    """Where the session stood at its last event, and how it was closed."""
    return Section("Where it stopped", tuple(f"- {line}" for line in _stop_lines(digest)), floor=3)


def report_section(digest: Digest, each: int = 280) -> Section:
    """How the assistant's earlier messages and the summaries of compactions begin, newest last; not the very short."""
    shown = _shown(digest)
    items = []
    for one in digest.earlier_answers:
        told = (_unshown(statement, shown) for statement in statements(one.text))
        text = clip(" / ".join(part for part in told if part), each)
        if len(squash(text)) > _SHORT:
            items.append(f"- {_moment(one.at, digest)} {escape(text)}")
    return Section("Earlier answers", tuple(items), keep="last")


def answer_section(digest: Digest, most: int = 900) -> Section:
    """What else the assistant's last message said, from its start, as far as it fits in `most` bytes."""
    shown = _shown(digest)
    items: list[str] = []
    left = most
    for statement in statements(digest.last_answer):
        text = _unshown(statement, shown)
        if not squash(text):
            continue
        if size(text) > left:
            if left > 80:
                items.append(f"- {escape(clip(text, left))}")
            break
        items.append(f"- {escape(text)}")
        left -= size(text)
    return Section("Last answer", tuple(items), floor=1)


def _stop_lines(digest: Digest) -> list[str]:
    """Sentences about the end."""
    stopped = digest.stopped
    lines = [_state(stopped)]
    if stopped.running:
        lines.append(f"Started, without a reported end: {code(clip(stopped.running, _ENTRY_BYTES))}.")
    if stopped.kind != "complete" and stopped.tool:
        failed = " (it failed)" if stopped.tool_failed else ""
        lines.append(f"The last finished call was {code(clip(stopped.tool, _ENTRY_BYTES))}{failed}.")
    elif stopped.tool_failed:
        lines.append(f"The last call of the session failed: {code(clip(stopped.tool, _ENTRY_BYTES))}.")
    if stopped.notice:
        lines.append(f"The client said: {escape(clip(stopped.notice, _ENTRY_BYTES))}")
    if digest.closed and digest.ended is not None:
        reason = _CLOSED.get(digest.closed_by, f"the client's reason: {escape(clip(digest.closed_by, 60))}")
        lines.append(f"The session ended {when(digest.ended)} ({reason}).")
    else:
        lines.append(f"No end of the session was reported; last heard of {when(digest.last)}.")
    return lines


def _state(stopped: Stopped) -> str:
    """The kind of a stop as a sentence."""
    return {
        "complete": "The last turn was finished.",
        "mid-turn": "In the middle of a turn: the last prompt has no final answer.",
        "interrupted": "The person interrupted the last turn.",
        "compaction": "During a compaction of the conversation, in the middle of a turn.",
    }.get(stopped.kind, "Nothing was asked and nothing was done.")


def _entry(said: Said, each: int) -> str:
    """Something said; marked where the person said it."""
    person = " (the person)" if said.by == "person" else ""
    return f"- {escape(clip(said.text, each))}{person}"


def _question(digest: Digest, question: Question, each: int) -> str:
    """A question and, where there is one, what was written next."""
    text = f"- {escape(clip(question.text, each))}"
    if not question.reply:
        return text
    reply = _quoted(clip(plain(question.reply), 120))
    return f"{text} (at {_moment(question.at, digest)}; the person then wrote: {reply})"


def _lead(text: str, limit: int) -> str:
    """As many whole sentences of a prompt as fit into `limit` bytes, else its start."""
    line = plain(prose(text))
    if size(line) <= limit:
        return line
    kept = ""
    for sentence in sentences(line):
        longer = f"{kept} {sentence}".strip()
        if size(longer) > limit - 3:
            break
        kept = longer
    return f"{kept} …" if kept and size(kept) > limit // 2 else clip(line, limit)


def _shown(digest: Digest) -> Set[str]:
    """What other sections say already, as `squash` sees it."""
    said: tuple[Said | Question, ...] = (*digest.decisions, *digest.next_steps, *digest.questions)
    return {squash(one.text) for one in said}


def _unshown(statement: str, shown: Set[str]) -> str:
    """The sentences of a statement that no other section shows."""
    if squash(statement) in shown:
        return ""
    return " ".join(one for one in sentences(statement) if not _in(shown, one))


def _in(shown: Set[str], text: str) -> bool:
    """True when `text` (perhaps behind a label) is among what is shown already."""
    look = squash(text)
    return look in shown or any(len(one) > 12 and look.endswith(one) for one in shown)


def _quoted(text: str) -> str:
    """Words of a person, escaped, in quotation marks."""
    return f"“{escape(text)}”"


def _moment(at: datetime, digest: Digest) -> str:
    """A time within the session: the hour, and the day where it is not the first one."""
    return f"{at:%H:%M}" if at.date() == digest.started.date() else f"{at:%m-%d %H:%M}"


def _counted(number: int, word: str, plural: str = "") -> str:
    """`3 prompts`; empty for none."""
    return "" if not number else f"{number} {word if number == 1 else plural or word + 's'}"
