"""Ten scripted sessions with planted facts: what of them reaches the next agent, and that nothing else does.

A fact counts as found when its words stand in the handoff. Every entry of every page is traced back to what an event of
the session says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from tests.core import scripted
from vaultd.core.event import Event, Kind
from vaultd.core.handoff import HandoffFacts, handoff_page, injected, parse_handoff
from vaultd.core.markup import squash
from vaultd.core.render import PageFacts, session_page
from vaultd.core.session import Digest, digest

NAMES = scripted.names()
FACTS = ("file", "test", "error", "decision", "question")


def handoff_of(made: Digest) -> str:
    facts = HandoffFacts(
        id=f"{made.sid}-g{made.generation}",
        project="p-0123456789ab",
        subdir=made.subdir,
        now=made.ended or made.last,
        provisional=not made.closed,
    )
    return handoff_page(made, facts)


def injected_of(page: str, made: Digest) -> str:
    return injected(parse_handoff(page.encode(), "projects/x/handoffs/open/h.md"), 9000, made.last + timedelta(hours=3))


def words(text: str) -> str:
    """Text without Markdown escapes, emphasis, quote marks at line starts and line breaks."""
    lines = (re.sub(r"^> ?", "", line) for line in text.splitlines())
    return " ".join(" ".join(lines).replace("\\", "").replace("**", "").split())


def found(script: dict[str, Any], text: str) -> dict[str, bool]:
    return {fact: words(script["planted"][fact]) in words(text) for fact in FACTS}


def test_there_are_ten_sessions_with_five_facts_each() -> None:
    assert len(NAMES) == 10
    assert all(set(scripted.load(name)["planted"]) == set(FACTS) for name in NAMES)
    assert any(len(scripted.events(scripted.load(name))) >= 200 for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_planted_facts_are_in_the_handoff_and_in_what_is_injected(name: str) -> None:
    script = scripted.load(name)
    made = digest(scripted.events(script))
    page = handoff_of(made)
    assert [fact for fact, there in found(script, page).items() if not there] == []
    assert [fact for fact, there in found(script, injected_of(page, made)).items() if not there] == []
    assert len(page.encode()) <= 6000


def test_nine_tenths_survive_a_brief_of_a_quarter_of_the_size() -> None:
    there: list[bool] = []
    for name in NAMES:
        script = scripted.load(name)
        made = digest(scripted.events(script))
        handoff = parse_handoff(handoff_of(made).encode(), "h.md")
        text = injected(handoff, 2400, made.last)
        assert len(text.encode()) <= 2400
        there += found(script, text).values()
    assert sum(there) / len(there) >= 0.9


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fact", FACTS)
def test_a_fact_that_is_not_in_the_events_is_not_in_the_handoff(name: str, fact: str) -> None:
    # The measure bites: without the events that carry the fact, it is not found.
    script = scripted.load(name)
    without = [event for event in scripted.events(script) if words(script["planted"][fact]) not in words(_all(event))]
    touched = (
        [event for event in without if not _touches(event, script["planted"]["file"])] if fact == "file" else without
    )
    assert not found(script, handoff_of(digest(touched)))[fact]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_invented(name: str) -> None:
    events = scripted.events(scripted.load(name))
    made = digest(events)
    page = handoff_of(made)
    assert list(untraced(page, events)) == []
    facts = PageFacts("id", "p-0123456789ab", "host", "", "", made.observations, made.last)
    assert list(untraced(session_page(made, facts), events)) == []


@pytest.mark.parametrize(
    "line",
    [
        "## Files\n\n- `src/other.py` (edited)\n",
        "## Files\n\n- `src/app.py` (deleted)\n",
        "## Decisions\n\n- We decided to rewrite it in another language.\n",
        "## Errors\n\n- `ls missing-dir`: exit 3\n",
        "## Errors\n\n- `ls missing-dir`: exit 2\n  - `segmentation fault`\n",
        "## Tests\n\n- `python3 -m pytest -q -p no:cacheprovider tests`: pytest, failed\n  - failing: `test_other`\n",
        "## Commands\n\n- `make install`: ok\n",
        "## Asked\n\n- 10:12 “Delete the readme”\n",
    ],
)
def test_the_trace_finds_an_invented_line(line: str) -> None:
    events = scripted.events(scripted.load("01-greeting-claude"))
    assert list(untraced(handoff_of(digest(events)) + "\n" + line, events))


def _all(event: Event) -> str:
    """Every string of an event that a page can quote."""
    tool = event.tool
    parts = [event.text, event.subagent]
    if tool is not None:
        parts += [tool.command, tool.error, tool.output, tool.name, *(touch.path for touch in tool.files)]
    return "\n".join(parts)


def _touches(event: Event, path: str) -> bool:
    tool = event.tool
    return tool is not None and any(f"{event.cwd}/{touch.path}".endswith(f"/{path}") for touch in tool.files)


def untraced(page: str, events: Sequence[Event]) -> Iterator[str]:
    """Entries of a page (handoff or session) that no event accounts for."""
    for title, entries in parse_handoff(page.encode(), "page.md").sections:
        for entry in entries:
            for number, line in enumerate(entry.split("\n")):
                if not _traced(title, line.strip(), number > 0, events):
                    yield f"{title}: {line}"


def _traced(title: str, line: str, inner: bool, events: Sequence[Event]) -> bool:
    """Whether the events account for one line of a section."""
    if re.fullmatch(r"- … \d+ more left out|- … and \d+ more|- \(as of [\d: -]+\)|\*\*\w+\*\*", line):
        return True
    if not title or title == "Where it stopped":
        return all(_quoted_somewhere(span, events) for span in _spans(line))
    if title == "Asked":
        prompt = re.fullmatch(r"- [\d: -]+ “(.*)”", line)
        return prompt is not None and _said(prompt[1], events, Kind.PROMPT)
    if title == "Earlier answers":
        answer = re.fullmatch(r"- [\d: -]+? (.*)", line)
        return answer is not None and _said_in_parts(answer[1], events)
    if title in ("Decisions", "Open questions", "Next steps", "Last answer", "Asked the person earlier"):
        entry = re.fullmatch(r"- (.*?)(?: \(the person\)| \(at [\d: -]+; the person then wrote: “(.*)”\))?", line)
        assert entry is not None
        reply = entry[2] is None or _said(entry[2], events, Kind.PROMPT)
        return reply and _said(entry[1], events, Kind.PROMPT, Kind.TURN_END, Kind.POST_COMPACT)
    if inner:
        return all(_printed(span, events) for span in _spans(line))
    file = re.fullmatch(r"- `+ ?(.+?) ?`+ \(([a-z, ]+)\)", line)
    if file is not None:
        return _touched(file[1], file[2].split(", "), events)
    return _ran(line, events)


def _spans(line: str) -> list[str]:
    return [span for _, span in re.findall(r"(`+) ?(.+?) ?\1", line)]


def _near(text: str, whole: str) -> bool:
    """Whether `text` stands in `whole`, letter by letter; an ellipsis stands for anything."""
    left = squash(whole)
    for part in map(squash, text.split("…")):
        if part not in left:
            return False
        left = left[left.index(part) + len(part) :]
    return True


def _said(text: str, events: Sequence[Event], *kinds: Kind) -> bool:
    return any(event.kind in kinds and not event.subagent and _near(text, event.text) for event in events)


def _said_in_parts(text: str, events: Sequence[Event]) -> bool:
    """Sentences of one message, perhaps not all of them, in their order."""
    answers = [e.text for e in events if e.kind in (Kind.TURN_END, Kind.POST_COMPACT) and not e.subagent]
    parts = [squash(part) for part in re.split(r"(?<=[.!?。])\s*| / ", text.removesuffix("…"))]
    return any(all(part in squash(answer) for part in parts) for answer in answers)


def _printed(text: str, events: Sequence[Event]) -> bool:
    return any(event.tool and _near(text, f"{event.tool.error}\n{event.tool.output}") for event in events)


def _quoted_somewhere(text: str, events: Sequence[Event]) -> bool:
    called = " ".join(text.split(" ")[:1])
    return any(_near(text, _all(event)) for event in events) or any(
        event.tool and event.tool.name == called and _touches(event, text.split(" ")[-1]) for event in events
    )


def _touched(path: str, actions: list[str], events: Sequence[Event]) -> bool:
    past = {"read": "read", "edit": "edited", "create": "created", "delete": "deleted"}
    done = {
        past[touch.action]
        for event in events
        if event.tool and event.tool.ok is not False
        for touch in event.tool.files
        if path in (touch.path, f"{event.cwd}/{touch.path}") or f"{event.cwd}/{touch.path}".endswith(f"/{path}")
    }
    return set(actions) <= done


def _ran(line: str, events: Sequence[Event]) -> bool:
    """A command (or tool with file) and what is said of its outcome."""
    head = re.match(r"- (`+) ?(.+?) ?\1(?:: (.*))?$", line)
    if head is None:
        return False
    named, notes = head[2], (head[3] or "").split(", ") if head[3] else []
    runs = [e.tool for e in events if e.tool and (_near(named, e.tool.command) and e.tool.command)]
    runs += [
        e.tool for e in events if e.tool and named.startswith(f"{e.tool.name} ") and _touches(e, named.split(" ")[-1])
    ]
    if not runs:
        return bool(re.fullmatch(r"- `[\w-]+`(?:: .*)?", line)) and any(e.subagent == named for e in events)
    for note in notes:
        code = re.fullmatch(r"exit (\d+)", note)
        if code and not any(run.exit_code == int(code[1]) for run in runs):
            return False
        if note == "ok" and not any(run.ok or run.exit_code == 0 for run in runs):
            return False
    return True


def test_the_share_is_measured() -> None:
    there: list[bool] = []
    for name in NAMES:
        script = scripted.load(name)
        there += found(script, handoff_of(digest(scripted.events(script)))).values()
    print(f"planted facts in the handoff: {sum(there)} of {len(there)}")  # shown by `pytest -rP`
    assert sum(there) / len(there) >= 0.9
