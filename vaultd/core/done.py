"""What was done, told in lines of Markdown: files, commands, test runs, errors; each function gives one section.

Every raw text stands in a code span, on one line, cut before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from vaultd.core.activity import CommandRun, TestRun, Trouble
from vaultd.core.fit import Section
from vaultd.core.markup import clip, code, fold
from vaultd.core.session import Digest

__all__ = ["command_section", "error_section", "file_section", "test_section"]

_NAME_BYTES = 160
_ENTRY_BYTES = 400
_SOURCE_BYTES = 240
_MOST_NAMES = 8


def file_section(digest: Digest, title: str = "Files") -> Section:
    """Files with what was done to them, changed ones first, newest first among them."""
    changed = [use for use in reversed(digest.files) if use.changed]
    read = [use for use in reversed(digest.files) if not use.changed]
    items = [f"- {code(clip(use.path, _NAME_BYTES))} ({', '.join(_past(use.actions))})" for use in (*changed, *read)]
    return Section(title, tuple(items), floor=4)


def command_section(digest: Digest, *, but: Sequence[str] = ()) -> Section:
    """Commands by their newest run, newest last, except those in `but`; how often each ran and what is known of it."""
    runs: dict[str, CommandRun] = {}
    for run in digest.commands:
        runs.pop(run.text, None)
        runs[run.text] = run
    times = Counter(run.text for run in digest.commands)
    items = []
    for text, run in runs.items():
        if text in but:
            continue
        notes = [run.result] if run.result else []
        if run.outcome.suite is not None and run.outcome.suite.counts:
            notes.append(run.outcome.suite.counts)
        if times[text] > 1:
            notes.append(f"{times[text]} runs")
        items.append(f"- {code(clip(text, _ENTRY_BYTES))}" + (f": {', '.join(notes)}" if notes else ""))
    return Section("Commands", tuple(items), keep="last")


def test_section(digest: Digest) -> Section:
    """The newest test run of each command, with the failing tests by name, newest last; failed ones stay longest."""
    numbers = range(len(digest.tests))
    wanted = sorted(numbers, key=lambda number: (digest.tests[number].suite.verdict != "failed", -number))
    return Section("Tests", tuple(_test(run) for run in digest.tests), floor=2, wanted=tuple(wanted))


def error_section(digest: Digest, *, resolved: bool | None = None) -> Section:
    """Errors with the lines that say so, newest last; only resolved or unresolved ones when asked."""
    items = [_trouble(one) for one in digest.errors if resolved is None or one.resolved is resolved]
    return Section("Errors", tuple(items), floor=3, keep="last")


def _trouble(one: Trouble) -> str:
    """A failure: its source, what is known of it, and below it the lines that say so."""
    notes = [f"exit {one.exit_code}"] if one.exit_code else []
    if one.times > 1:
        notes.append(f"{one.times} times")
    if one.resolved:
        notes.append("a later run succeeded")
    head = f"- {code(clip(one.source, _SOURCE_BYTES))}" + (f": {', '.join(notes)}" if notes else "")
    return "\n".join((head, *(f"  - {code(line)}" for line in one.lines)))


def _test(run: TestRun) -> str:
    """A test run: command, verdict, numbers, failing tests."""
    counts = f", {run.suite.counts}" if run.suite.counts else ""
    verdict = run.suite.verdict if run.suite.verdict != "unknown" else "no verdict printed"
    head = f"- {code(clip(run.command, _SOURCE_BYTES))}: {run.suite.runner}, {verdict}{counts}"
    return "\n".join((head, *_names(run.suite.failing)))


def _names(failing: Sequence[str]) -> list[str]:
    """Failing tests by name, and how many more there are."""
    lines = [f"  - failing: {code(clip(name, _NAME_BYTES))}" for name in failing[:_MOST_NAMES]]
    more = len(failing) - _MOST_NAMES
    return [*lines, f"  - … and {more} more"] if more > 0 else lines


def _past(actions: Sequence[str]) -> list[str]:
    """What was done to a file, in the past; that it was read is said only of one that was not changed."""
    words = {"edit": "edited", "create": "created", "delete": "deleted"}
    return [words.get(action, fold(action)) for action in actions if action != "read" or len(actions) == 1]
