"""What was done in a session: files, commands, test runs, errors, subagents.

All functions take events in order (core/lifecycle.py) and report only what events say.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from vaultd.core.event import Event, Kind, ToolCall
from vaultd.core.markup import fold
from vaultd.core.outcome import Outcome, only_views, read_outcome
from vaultd.core.suite import Suite

__all__ = [
    "CommandRun",
    "FileUse",
    "Subagent",
    "TestRun",
    "Trouble",
    "base_folder",
    "below",
    "called",
    "command_runs",
    "file_uses",
    "subagents",
    "test_runs",
    "tool_calls",
    "troubles",
]

_ABSOLUTE = re.compile(r"/|~|[A-Za-z]:[\\/]|\\\\")


@dataclass(frozen=True, slots=True)
class FileUse:
    """A file that tools used: path relative to the checkout where it is below it, actions in the order they came."""

    path: str
    actions: tuple[str, ...]
    last: datetime

    @property
    def changed(self) -> bool:
        """True when it was edited, created or deleted, not only read."""
        return any(action != "read" for action in self.actions)


@dataclass(frozen=True, slots=True)
class CommandRun:
    """One run of a shell command, as one line; `outcome` holds what was reported and what the output shows."""

    text: str
    outcome: Outcome
    at: datetime
    subagent: str = ""

    @property
    def result(self) -> str:
        """The outcome in words: `exit 1`, `ok`, `failed`, `refused`; empty when nothing is known."""
        if self.outcome.refused:
            return "refused"
        if self.outcome.exit_code:
            return f"exit {self.outcome.exit_code}"
        if self.outcome.ok is False or (self.outcome.failed and self.outcome.ok is None):
            return "failed"
        return "ok" if self.outcome.succeeded or self.outcome.ok else ""


@dataclass(frozen=True, slots=True)
class TestRun:
    """The newest test run of one command."""

    # pytest collects classes by this name pattern; this is none.
    __test__ = False

    command: str
    suite: Suite
    at: datetime


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that failed: what it came from, the lines that say so, how often, and whether it succeeded later.

    `source` is a command line (`command` True) or a tool with its file. `resolved` is True only when a later run of
    the same thing is known to have succeeded. `exit_code` is None where none was reported.
    """

    source: str
    command: bool
    lines: tuple[str, ...]
    exit_code: int | None
    times: int
    resolved: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class Subagent:
    """A subagent of the session: its id, its number of tool calls, its last message."""

    id: str
    tool_calls: int
    text: str


def base_folder(ordered: Sequence[Event]) -> str:
    """The folder that paths are shown relative to: the checkout root where there is one, else the first cwd."""
    root = next((event.root for event in ordered if event.root), "")
    return root or next((event.cwd for event in ordered if event.cwd), "")


def below(path: str, base: str) -> str:
    """`path` relative to `base` when it lies below it, `.` for the base itself, else unchanged."""
    base = base.rstrip("/")
    if not base:
        return path
    if path == base:
        return "."
    return path[len(base) + 1 :] if path.startswith(base + "/") else path


def file_uses(ordered: Sequence[Event], base: str) -> tuple[FileUse, ...]:
    """Files of tool calls that did not fail: first those changed, then those only read, each in time order."""
    uses: dict[str, FileUse] = {}
    for event in ordered:
        if event.kind is not Kind.TOOL or event.tool is None or event.tool.ok is False:
            continue
        for touch in event.tool.files:
            path = _shown_path(touch.path, event, base)
            if not path:
                continue
            before = uses.pop(path, FileUse(path, (), event.at))
            keep_time = before.changed and touch.action == "read"
            actions = tuple(dict.fromkeys((*before.actions, touch.action)))
            uses[path] = FileUse(path, actions, before.last if keep_time else event.at)
    return tuple(sorted(uses.values(), key=lambda use: (not use.changed, use.last.timestamp())))


def command_runs(ordered: Sequence[Event]) -> tuple[CommandRun, ...]:
    """Every finished shell command, in time order."""
    runs: list[CommandRun] = []
    for event in ordered:
        if event.kind is Kind.TOOL and event.tool is not None and event.tool.family == "shell":
            text = fold(event.tool.command)
            if text:
                runs.append(CommandRun(text, read_outcome(event.tool), event.at, event.subagent))
    return tuple(runs)


def test_runs(runs: Sequence[CommandRun]) -> tuple[TestRun, ...]:
    """The newest test run of each command, in time order."""
    newest: dict[str, TestRun] = {}
    for run in runs:
        if run.outcome.suite is not None:
            newest.pop(run.text, None)
            newest[run.text] = TestRun(run.text, run.outcome.suite, run.at)
    return tuple(newest.values())


def troubles(ordered: Sequence[Event], runs: Sequence[CommandRun], base: str) -> tuple[Trouble, ...]:
    """What failed, one entry for each command or tool and file, in the order of the last failure."""
    found: dict[tuple[str, bool], Trouble] = {}
    for run in runs:
        telling = run.outcome.failed and (bool(run.outcome.lines) or not only_views(run.text))
        _note(found, (run.text, True), run.outcome, run.at, telling=telling)
    for event in ordered:
        tool = event.tool
        if event.kind is Kind.TOOL and tool is not None and tool.family != "shell":
            outcome = read_outcome(tool)
            _note(found, (called(event, tool, base), False), outcome, event.at, telling=True)
    return tuple(sorted(found.values(), key=lambda trouble: trouble.at.timestamp()))


def tool_calls(ordered: Sequence[Event]) -> int:
    """How many tool calls were made: finished ones, and started ones that never reported back."""
    done = [event for event in ordered if event.kind is Kind.TOOL]
    ids = {event.tool.call_id for event in done if event.tool}
    hanging = {
        event.tool.call_id
        for event in ordered
        if event.kind is Kind.PRE_TOOL and event.tool and event.tool.call_id and event.tool.call_id not in ids
    }
    return len(done) + len(hanging)


def subagents(ordered: Sequence[Event], *, assistant: bool) -> tuple[Subagent, ...]:
    """The session's subagents in the order in which they were first seen."""
    found: dict[str, Subagent] = {}
    for event in ordered:
        if not event.subagent:
            continue
        one = found.get(event.subagent, Subagent(event.subagent, 0, ""))
        text = fold(event.text) if assistant and event.kind in (Kind.SUBAGENT, Kind.TURN_END) else ""
        calls = one.tool_calls + (event.kind is Kind.TOOL)
        found[event.subagent] = Subagent(one.id, calls, text or one.text)
    return tuple(found.values())


def called(event: Event, tool: ToolCall, base: str) -> str:
    """A tool call in a few words: the command, or the tool with its files."""
    if tool.command:
        return fold(tool.command)
    files = [path for path in (_shown_path(touch.path, event, base) for touch in tool.files) if path]
    return fold(" ".join((tool.name or tool.family, *files)))


def _shown_path(path: str, event: Event, base: str) -> str:
    """`path` made absolute by the event's cwd, normalised, and relative to `base` where it lies below it."""
    path = fold(path)
    if not path:
        return ""
    if not _ABSOLUTE.match(path) and event.cwd:
        path = posixpath.join(fold(event.cwd), path)
    if not path.startswith(("~", "\\")):
        path = posixpath.normpath(path)
    return below(path, posixpath.normpath(fold(base)) if base else "")


def _note(
    found: dict[tuple[str, bool], Trouble],
    source: tuple[str, bool],
    outcome: Outcome,
    at: datetime,
    *,
    telling: bool,
) -> None:
    """Record one run of something: a failure becomes its trouble, a success resolves the trouble there was."""
    before = found.get(source)
    if outcome.failed and telling:
        times = before.times + 1 if before else 1
        found[source] = Trouble(source[0], source[1], outcome.lines, outcome.exit_code, times, False, at)
    elif before is not None and outcome.succeeded:
        found[source] = replace(before, resolved=True)
