"""Test runs read out of what a command printed: which runner, how many passed and failed, which tests by name.

Only what the runner itself printed counts. A run whose summary was cut away has names but no numbers; a text without
a summary and without names is no test run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Suite", "read_suite"]

_MOST_NAMES = 40


@dataclass(frozen=True, slots=True)
class Suite:
    """One test run. Numbers are None where the runner did not say; `failing` holds names as printed, in order."""

    runner: str
    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None
    failing: tuple[str, ...] = ()
    said_ok: bool | None = None

    @property
    def verdict(self) -> str:
        """`failed` when something failed, `passed` when something passed and nothing failed, else `unknown`."""
        if self.failed or self.failing or self.said_ok is False:
            return "failed"
        return "passed" if self.passed or self.said_ok else "unknown"

    @property
    def counts(self) -> str:
        """The numbers in words, like `1 failed, 3 passed`; empty when none are known."""
        pairs = ((self.failed, "failed"), (self.passed, "passed"), (self.skipped, "skipped"))
        return ", ".join(f"{number} {word}" for number, word in pairs if number)


@dataclass(frozen=True, slots=True)
class _Runner:
    """How one runner prints: `summary` must match for numbers, `words` finds `<number> <word>` inside it.

    Named groups `passed`, `failed`, `errors`, `skipped`, `total`, `ok` are numbers or marks; several matches add up.
    `names` find failing tests (group 1). With `names_suffice` a name alone shows a run.
    """

    name: str
    summary: re.Pattern[str]
    names: tuple[re.Pattern[str], ...] = ()
    words: bool = False
    names_suffice: bool = False
    last_only: bool = False


def _lines(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


_COUNTED_WORDS = re.compile(r"(\d+) (failed|failing|errors?|passed|passing|skipped|pending|todo|xfailed)\b")

_RUNNERS = (
    _Runner(
        "pytest",
        _lines(
            r"^=*[ ]?(?=\d)(?:\d+ (?:failed|passed|errors?|skipped|xfailed|xpassed|deselected|warnings?|rerun"
            r"|subtests passed)(?:, )?)+ in [\d.]+s\b"
        ),
        (
            _lines(r"^(?:\[gw\d+\] (?:\[ *\d+%\] )?)?(?:FAILED|ERROR) (\S+\.py(?:::.+?)?)(?: - .*)?$"),
            _lines(r"^(\S+\.py::\S+) (?:FAILED|ERROR)\b"),
        ),
        words=True,
        names_suffice=True,
    ),
    _Runner(
        "unittest",
        _lines(
            r"^Ran (?P<total>\d+) tests? in [\d.]+s\s+(?:(?P<ok>OK)|FAILED)"
            r"(?: \((?:failures=(?P<failed>\d+))?(?:, )?(?:errors=(?P<errors>\d+))?"
            r"(?:, )?(?:skipped=(?P<skipped>\d+))?)?"
        ),
        (_lines(r"^(?:FAIL|ERROR): (\S+ \([\w.]+\))"),),
        names_suffice=True,
    ),
    _Runner(
        "jest",
        _lines(r"^Tests: +.*\b\d+ total$"),
        (_lines(r"^ *● (?!Console\b)(.+)$"),),
        words=True,
    ),
    _Runner(
        "vitest",
        _lines(r"^ *Tests  .*\(\d+\)$"),
        (_lines(r"^ *(?:FAIL|×|✗) +(.+ > .+?)(?: \d+ms)?$"),),
        words=True,
    ),
    _Runner(
        "mocha",
        _lines(r"^ *\d+ (?:passing|failing|pending)\b.*$"),
        (_lines(r"^ +\d+\) (.+?):?$"),),
        words=True,
    ),
    _Runner(
        "cargo test",
        _lines(
            r"^test result: (?:(?P<ok>ok)|FAILED)\. (?P<passed>\d+) passed; (?P<failed>\d+) failed;"
            r" (?P<skipped>\d+) ignored"
        ),
        (_lines(r"^test (.+?) \.\.\. FAILED$"), _lines(r"^ +FAIL \[[^\]]*\] (.+)$")),
        names_suffice=True,
    ),
    _Runner(
        "go test",
        _lines(r"^(?:(?P<ok>ok)|FAIL)\s+\S+\s+(?:[\d.]+s|\(cached\)|\[.*\])$"),
        (_lines(r"^ *--- FAIL: (\S+)"),),
        names_suffice=True,
    ),
    _Runner(
        "node --test",
        _lines(r"^[#ℹ] (?:pass (?P<passed>\d+)|fail (?P<failed>\d+)|skipped (?P<skipped>\d+))$"),
        (_lines(r"^ *not ok \d+ - (.+?)(?: # .*)?$"), _lines(r"^ *✖ (?!failing tests)(.+?) \([\d.]+ms\)$")),
    ),
    _Runner("TAP", _lines(r"^(?:(?P<ok>ok)|not ok) \d+ "), (_lines(r"^not ok \d+(?: -)? (.+)$"),)),
    _Runner(
        "rspec",
        _lines(r"^(?P<total>\d+) examples?, (?P<failed>\d+) failures?(?:, (?P<skipped>\d+) pending)?"),
        (_lines(r"^rspec (\S+ # .+|\S+)$"),),
    ),
    _Runner(
        "minitest",
        _lines(
            r"^(?P<total>\d+) (?:runs|tests), \d+ assertions, (?P<failed>\d+) failures, (?P<errors>\d+) errors,"
            r" (?P<skipped>\d+) skips"
        ),
        (_lines(r"^ *(?:Failure|Error):\s+(\S+#\S+)"),),
    ),
    _Runner(
        "mix test",
        _lines(r"^(?:\d+ doctests?, )?(?P<total>\d+) tests?, (?P<failed>\d+) failures?"),
        (_lines(r"^ +\d+\) (test .+)$"),),
    ),
    _Runner(
        "phpunit",
        _lines(
            r"^(?:(?P<ok>OK) \((?P<passed>\d+) tests?|Tests: (?P<total>\d+), Assertions: \d+"
            r"(?:, Errors: (?P<errors>\d+))?(?:, Failures: (?P<failed>\d+))?(?:, Skipped: (?P<skipped>\d+))?)"
        ),
        (_lines(r"^\d+\) (\S+::\S.*)$"),),
    ),
    _Runner(
        "maven",
        _lines(
            r"^(?:\[\w+\] )?Tests run: (?P<total>\d+), Failures: (?P<failed>\d+), Errors: (?P<errors>\d+),"
            r" Skipped: (?P<skipped>\d+)"
        ),
        (_lines(r"^\[ERROR\] +(\w[\w.$]*\.\w+):\d+"),),
        last_only=True,
    ),
    _Runner(
        "gradle",
        _lines(r"^(?P<total>\d+) tests? completed, (?P<failed>\d+) failed"),
        (_lines(r"^(\S+ > .+) FAILED$"),),
        names_suffice=True,
    ),
    _Runner(
        "dotnet test",
        _lines(
            r"^(?:Failed|Passed)! +- Failed: +(?P<failed>\d+), Passed: +(?P<passed>\d+), Skipped: +(?P<skipped>\d+)"
        ),
        (_lines(r"^ +Failed (\S+) \["),),
    ),
    _Runner(
        "ctest",
        _lines(r"^\d+% tests passed, (?P<failed>\d+) tests? failed out of (?P<total>\d+)"),
        (_lines(r"^\s+\d+ - (\S+) \((?:Failed|SEGFAULT|Timeout|Subprocess aborted)"),),
    ),
    _Runner(
        "xctest",
        _lines(r"^\s*Executed (?P<total>\d+) tests?, with (?P<failed>\d+) failures?"),
        (_lines(r"error: -\[(.+?)\]"),),
        last_only=True,
    ),
    _Runner(
        "deno test",
        _lines(r"^(?:(?P<ok>ok)|FAILED) \| (?P<passed>\d+) passed.*\| (?P<failed>\d+) failed"),
        (_lines(r"^(.+?) \.\.\. FAILED\b"),),
    ),
    _Runner("bun test", _lines(r"^ *(?:(?P<passed>\d+) pass|(?P<failed>\d+) fail)$"), (_lines(r"^\(fail\) (.+)$"),)),
    _Runner(
        "playwright",
        _lines(r"^ +(?:(?P<failed>\d+) failed|(?P<skipped>\d+) skipped|(?P<passed>\d+) passed \([\d.]+\w+\))$"),
        (_lines(r"^ +\[\w+\] › (.+?)(?: ─+)?$"),),
    ),
)


def read_suite(output: str) -> Suite | None:
    """The test run that `output` reports, None when it reports none; the first runner that knows its own words wins."""
    for runner in _RUNNERS:
        suite = _read(runner, output)
        if suite is not None:
            return suite
    return None


def _read(runner: _Runner, output: str) -> Suite | None:
    """What one runner's patterns say about `output`."""
    found = list(runner.summary.finditer(output))
    if not found and not runner.names_suffice:
        return None
    names = _names(runner, output)
    if not found:
        return Suite(runner.name, failing=names) if names else None
    if runner.last_only:
        found = found[-1:]
    numbers = _counted(found) if runner.words else _grouped(found)
    failed = _added(numbers, "failed", "errors")
    passed = numbers.get("passed")
    if passed is None and "total" in numbers:
        passed = max(0, numbers["total"] - (failed or 0) - numbers.get("skipped", 0))
    marks = [match.groupdict() for match in found]
    said_ok = all(mark["ok"] for mark in marks) if all("ok" in mark for mark in marks) else None
    if failed is None and said_ok:
        failed = 0
    return Suite(runner.name, passed, failed, numbers.get("skipped"), names, said_ok)


def _names(runner: _Runner, output: str) -> tuple[str, ...]:
    """The failing tests, each once under its longest name, in the order printed."""
    names: dict[str, None] = {}
    for pattern in runner.names:
        for match in pattern.finditer(output):
            names.setdefault(match.group(1).strip())
    found = list(names)[:_MOST_NAMES]
    return tuple(one for one in found if not any(other != one and other.endswith(one) for other in found))


def _counted(found: list[re.Match[str]]) -> dict[str, int]:
    """Numbers from summaries in words; mocha prints one line for each word, the others one line for all."""
    same = {"failing": "failed", "passing": "passed", "error": "errors", "pending": "skipped", "todo": "skipped"}
    numbers: dict[str, int] = {}
    for match in found:
        for number, word in _COUNTED_WORDS.findall(match.group()):
            word = same.get(word, word)
            numbers[word] = numbers.get(word, 0) + int(number)
    return numbers


def _grouped(found: list[re.Match[str]]) -> dict[str, int]:
    """Numbers from named groups, added up over all matches."""
    numbers: dict[str, int] = {}
    for match in found:
        for word, number in match.groupdict().items():
            if number is not None and number.isdigit():
                numbers[word] = numbers.get(word, 0) + int(number)
    return numbers


def _added(numbers: dict[str, int], *words: str) -> int | None:
    """The sum of the known ones; None when none is known."""
    known = [numbers[word] for word in words if word in numbers]
    return sum(known) if known else None
