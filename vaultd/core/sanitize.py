"""The only way from untrusted text to a store: secrets out, private parts out, then bounded.

    untrusted str ── redact ──▶ Clean            secrets became [REDACTED], <private>...</private> is gone
                  ── clean ───▶ Clean            the same, then at most so many bytes, head and tail kept
                  ── line ────▶ Clean            the same on one line
    untrusted Event ─ observe ▶ Observation      every string of it clean and bounded

Stores take `Clean` and `Observation` only, and nothing else makes one: a test walks the syntax trees. Joining, slicing
or formatting gives a plain `str` again, which goes through `clean` again. Redaction comes before cutting, always: half
a secret is no longer recognised. Pure, and linear in the text; what counts as a secret is in `core.secrets` and its
siblings. How fast: `tests/bench/sanitize.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from vaultd.core.cutting import bounded, clipped
from vaultd.core.event import Event, FileTouch, Kind, Process, ToolCall
from vaultd.core.secrets import Hit, folded, marked
from vaultd.errors import UsageError

__all__ = ["DEFAULT", "Clean", "Observation", "Rules", "clean", "line", "observe", "redact"]


class Clean(str):
    """Text that went through the sanitiser: valid UTF-8, no control characters but tab and line ends, no secrets."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """More patterns to redact, and texts that are no secrets. Compared by identity: a cheap key for what is kept."""

    extra: tuple[re.Pattern[str], ...] = ()
    allow: tuple[str, ...] = ()

    @classmethod
    def compile(cls, extra_patterns: Iterable[str] = (), allowlist: Iterable[str] = ()) -> Rules:
        """Rules from settings; UsageError names the pattern that is no regular expression."""
        extra = []
        for pattern in extra_patterns:
            try:
                extra.append(re.compile(pattern))
            except (re.error, OverflowError, RecursionError) as error:
                why = f"The pattern {pattern!r} is not a regular expression: {error}. Correct or remove it."
                raise UsageError(why) from None
        allow = tuple(allowlist)
        if any(not entry.strip() for entry in allow):
            raise UsageError("The list of allowed texts has a blank entry, which would allow every secret. Remove it.")
        return cls(tuple(extra), allow)


DEFAULT = Rules()
"""The built-in classes and nothing else."""


def redact(text: str, rules: Rules = DEFAULT) -> Clean:
    """The text with every secret replaced by `[REDACTED]` and every `<private>` part removed.

    A `<private>` that is not closed goes to the end. A match that contains an allowed text stays. Lone surrogates
    become U+FFFD; control characters other than tab, LF and CR, terminal sequences and bidirectional overrides go.
    Doing it again changes nothing. Ordinary text comes back as it was.
    """
    if not rules.extra and _HARMLESS.fullmatch(text) is not None:
        return Clean(text)
    text = _presentable(text)
    for _ in range(_PASSES):
        after = _pass(text, rules)
        if after == text:
            break
        text = after
    return Clean(text)


def clean(text: str, limit: int | None = None, rules: Rules = DEFAULT, *, tail: float = 0.5) -> Clean:
    """The text redacted, then bounded to `limit` bytes of UTF-8 (None: not bounded).

    What is too long keeps its head and its tail, `tail` being the share of the latter, and between them a line that
    says how much is missing; below 64 bytes only the head. Never cuts a character or a `[REDACTED]`.
    """
    redacted = redact(text, rules)
    if limit is None:
        return redacted
    return _settled(redacted, lambda whole: bounded(whole, limit, tail), rules)


def line(text: str, limit: int, rules: Rules = DEFAULT) -> Clean:
    """The text on one line of at most `limit` bytes: redacted, blanks and line ends folded, cut with an ellipsis."""
    return _settled(redact(text, rules), lambda whole: clipped(_BLANKS.sub(" ", whole).strip(" "), limit), rules)


@dataclass(frozen=True, slots=True)
class Observation:
    """An event that may be stored: every string in it is clean and bounded."""

    event: Event


_PROMPT_MOST = 16_384
_TEXT_MOST = 2_000
_COMMAND_MOST = 400
_PATH_MOST = 1_024
_NAME_MOST = 128
_FILES_MOST = 256
_LONG_TEXTS = frozenset({Kind.PROMPT, Kind.TURN_END, Kind.POST_COMPACT})
_ASSISTANT = frozenset({Kind.TURN_END, Kind.SUBAGENT, Kind.POST_COMPACT})


def observe(event: Event, rules: Rules = DEFAULT, *, assistant: bool = True) -> Observation:
    """What may be stored of an event.

    Prompts, last messages of a turn and summaries have 16,384 bytes, other texts 2,000, commands 400, paths 1,024,
    names and ids 128; a call has 256 files. `assistant=False` drops what the assistant said. Key, sid, kind and times
    are our own and stay. ValueError when the event's time has no offset.
    """
    if event.at.tzinfo is None:
        raise ValueError("the event's time has no offset")
    text = "" if event.kind in _ASSISTANT and not assistant else event.text
    return Observation(
        Event(
            key=event.key,
            agent=_name(event.agent, rules),
            name=_name(event.name, rules),
            kind=event.kind,
            at=event.at,
            sid=event.sid,
            native=_name(event.native, rules),
            cwd=_path(event.cwd, rules),
            root=_path(event.root, rules),
            gitfile=_path(event.gitfile, rules),
            head=_path(event.head, rules),
            remote=_path(event.remote, rules),
            run=_name(event.run, rules),
            workstream=_name(event.workstream, rules),
            handoff=_name(event.handoff, rules),
            client=event.client and Process(event.client.pid, event.client.start, _name(event.client.boot, rules)),
            source=_name(event.source, rules),
            reason=_name(event.reason, rules),
            text=_text(text, _PROMPT_MOST if event.kind in _LONG_TEXTS else _TEXT_MOST, rules),
            turn=_name(event.turn, rules),
            subagent=_name(event.subagent, rules),
            transcript=_path(event.transcript, rules),
            tool=event.tool and _tool(event.tool, rules),
            body=_name(event.body, rules),
            mtime_ns=event.mtime_ns,
        )
    )


def _tool(tool: ToolCall, rules: Rules) -> ToolCall:
    """A tool call, clean and bounded; what a command printed keeps more of its end, where a failure is summed up."""
    return ToolCall(
        name=_name(tool.name, rules),
        family=_name(tool.family, rules),
        call_id=line(tool.call_id, _NAME_MOST, rules),
        files=tuple(FileTouch(_path(file.path, rules), _name(file.action, rules)) for file in tool.files[:_FILES_MOST]),
        command=_text(tool.command, _COMMAND_MOST, rules, 0.3),
        exit_code=tool.exit_code,
        ok=tool.ok,
        error=_text(tool.error, _TEXT_MOST, rules, 0.7),
        output=_text(tool.output, _TEXT_MOST, rules, 0.7),
    )


def _text(value: str, most: int, rules: Rules, tail: float = 0.5) -> str:
    return clean(value, most, rules, tail=tail) if value else ""


def _name(value: str, rules: Rules) -> str:
    """A name or id on one line."""
    return (_name_again if len(value) <= _SHORT else _name_once)(value, rules)


def _path(value: str, rules: Rules) -> str:
    """A path or address, kept exactly (blanks and line ends too) unless it is too long: then its start."""
    return (_path_again if len(value) <= _SHORT else _path_once)(value, rules)


def _path_once(value: str, rules: Rules) -> Clean:
    return _settled(redact(value, rules), lambda whole: clipped(whole, _PATH_MOST), rules)


def _name_once(value: str, rules: Rules) -> Clean:
    return line(value, _NAME_MOST, rules)


_SHORT = 256
"""Names and paths so short are kept with what they became: the events of a session repeat most of theirs."""
_name_again, _path_again = lru_cache(2048)(_name_once), lru_cache(2048)(_path_once)


_PASSES = 8
"""Redacting joins what stood apart, so it is repeated until nothing changes: one pass for ordinary text, else a few."""

_HARMLESS = re.compile(
    r"/?(?:[A-Za-z0-9_-]{1,13}/){0,16}+[A-Za-z0-9_-]{0,13}(?:\.[A-Za-z0-9]{1,5})?"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{40}"
)
"""Names, short paths, UUIDs and hashes, too short or too plain for any class: most strings of an event are of these."""

_CONTROL = bytes([*range(9), 11, 12, *range(14, 32), 127])
_HIDDEN = re.compile(
    "\x1b\\[[0-?]{0,64}[ -/]{0,8}[@-~]"  # colours and cursor movements
    "|\x1b\\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\\\)"  # window titles, links
    "|\x1b[()][0-9A-Za-z]"
    "|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LONE = re.compile("[\ud800-\udfff]")
_BLANKS = re.compile("[ \t\n\r\u2028\u2029]+")


def _presentable(text: str) -> str:
    """Valid UTF-8 without control characters; half characters that belong together are joined."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        text = _PAIR.sub(lambda pair: pair.group().encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text)
        text = _LONE.sub("\ufffd", text)
        data = text.encode()
    wide = not text.isascii() and (b"\xc2" in data or b"\xe2\x80" in data or b"\xe2\x81" in data)
    if wide or len(data.translate(None, _CONTROL)) != len(data):
        return _HIDDEN.sub("", text)
    return text


@cache
def _finders() -> tuple[Callable[[str, str], Iterator[Hit]], ...]:
    """What finds secrets, loaded with the first text: a command that stores nothing is quicker without."""
    from vaultd.core import assignments, secret_blocks, secret_commands, secret_followers, secret_prefixes, secrets

    shapes = (secrets.shaped, secret_prefixes.prefixed, secret_blocks.blocks, secret_commands.commanded)
    return (*shapes, assignments.assigned, secret_followers.followed)


def _pass(text: str, rules: Rules) -> str:
    """One round of removing private parts and replacing secrets."""
    low = folded(text)
    if "<private" in low:
        text = _public(text, low)
        low = folded(text)
    hits = [hit for find in _finders() for hit in find(text, low)]
    for pattern in rules.extra:
        hits.extend(Hit(m.start(), *m.span()) for m in pattern.finditer(text) if m.end() > m.start())
    if rules.allow and hits:
        hits = [hit for hit in hits if not any(entry in text[hit.start : hit.hi] for entry in rules.allow)]
    return marked(text, hits) if hits else text


_PRIVATE = re.compile(r"<(/?)private(?:\s[^<>]{0,200})?>")
_NAMED = re.compile(r"`</?private>`")


def _public(text: str, low: str) -> str:
    """The text without its private parts; they nest, and one that is not closed goes to the end.

    A tag that stands alone between backticks is spoken of, not used.
    """
    kept, start, depth = [], 0, 0
    for tag in _PRIVATE.finditer(low):
        if _NAMED.match(low, max(0, tag.start() - 1)):
            continue
        if tag[1] and depth:
            depth -= 1
            start = tag.end()
        elif not tag[1]:
            if not depth:
                kept.append(text[start : tag.start()])
            depth += 1
    return "".join(kept) + (text[start:] if not depth else "")


def _settled(text: str, cut: Callable[[str], str], rules: Rules) -> Clean:
    """`cut` applied to redacted text, and redacted again until both leave it alone: a cut can bring words together."""
    for _ in range(_PASSES):
        after = cut(text)
        if after == text:
            return Clean(text)
        text = redact(after, rules)
    return Clean(cut(text))
