"""How a tool call ended: what the agent reported, and the lines of the output that show a failure.

Some agents report no exit code. A failure that the output shows beyond doubt is then kept as error lines, and no exit
code is claimed. Output that only displays other text (`cat error.log`) shows nothing.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import lru_cache

from vaultd.core.event import ToolCall
from vaultd.core.markup import clip, fold
from vaultd.core.suite import Suite, read_suite

__all__ = ["Outcome", "only_views", "read_outcome"]

_LINE_BYTES = 300
_MOST_LINES = 3

_REFUSED = "refused: "
"""How the message of a call begins that the person or a rule did not let through."""

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

_ENVELOPE = re.compile(
    r"(?:Exit code:? \d+|Command failed with exit code:? .*|Error: \(none\)|Signal: .*|Process Group PGID: .*"
    r"|Command: .*|Directory: .*|Wall time: .*|Output:|<shellId: .*>|Error:|Traceback \(most recent call last\):)\Z",
    re.IGNORECASE,
)
"""Lines that an agent or interpreter puts around a failure; they say nothing about it."""

_PYTHON = r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|Timeout|Failure)"

_TELLING: tuple[tuple[int, bool, re.Pattern[str]], ...] = (
    # (weight, shows a failure by itself, pattern of the whole line). A higher weight is quoted first.
    (90, True, re.compile(rf"E +({_PYTHON}(?:: .*)?)")),
    (85, True, re.compile(r"E +(assert .*)")),
    (88, True, re.compile(r"(error\[E\d+\]: .*)")),
    (86, True, re.compile(r"((?:\S+:? (?:- )?)?error [A-Z]+\d+: .*)")),
    (84, True, re.compile(r"(\S+?:\d+(?::\d+)?: (?:fatal )?error: .*)")),
    (82, True, re.compile(r"(panic: .*|thread '.*' (?:\(\d+\) )?panicked at .*|Exception in thread .*|Caused by: .*)")),
    (83, True, re.compile(r"(assertion .*failed.*)", re.IGNORECASE)),
    (80, False, re.compile(rf"((?:Uncaught )?{_PYTHON}(?: \[\w+\])?: .*)")),
    (78, True, re.compile(r"(fatal: .*)")),
    (
        76,
        True,
        re.compile(
            r"((?:[\w./+-]+:(?:\d+:)* ?){0,3}"
            r"(?:(?:error|ERROR|Error): (?!0\b|\(none\)).*|Error [a-z ]{2,40}(?:\([^)]*\))?: .*)"
            r"|\[ERROR\] .*|[\w ]{0,20}[Ff]atal error: .*|error Command failed .*|\*\* \(\w+\) .*|\S+:\d+:in .*Error\))"
        ),
    ),
    (
        74,
        True,
        re.compile(
            r"((?:[\w./+~-]+: )(?:[^:]+: )*.*(?:No such file or directory|command not found|[Pp]ermission denied"
            r"|Is a directory|Not a directory|Read-only file system|Connection refused|No space left on device"
            r"|Operation not permitted|Directory not empty|File exists|Connection timed out|Connection reset by peer"
            r"|Network is unreachable|Name or service not known)(?: \(os error \d+\))?"
            r"|\S+: (?:line )?\d+: \S+: not found|zsh: command not found: .*)"
        ),
    ),
    (
        72,
        True,
        re.compile(r"((?:npm ERR!|npm error|yarn error|ERR_PNPM\w*) (?!A complete log|code |path |errno |syscall ).*)"),
    ),
    (70, True, re.compile(r"(\S+\.go:\d+:\d+: .*|\S+_test\.go:\d+: .*)")),
    (68, True, re.compile(r"(.*undefined reference to .*|.*ld: .* not found.*|Segmentation fault.*|Killed)")),
    (65, True, re.compile(r"(\S+:\d+: \w+(?:Error|Exception))")),
    (62, False, re.compile(r"((?:Expected|Received|expected|actual|want|got)\b ?[:=] ?.*)")),
    (60, True, re.compile(r"((?:FAILED|FAIL|ERROR) \S.*|FAILED \(.*\)|--- FAIL: .*|not ok \d+.*)")),
    (59, True, re.compile(r"(Found [1-9]\d* errors?\b.*|.*\([1-9]\d* errors?, \d+ warnings?\).*)")),
    (59, False, re.compile(r"(\S+:\d+:\d+: [A-Z]+\d+ .*|\d+:\d+ error .*)")),
    (
        58,
        True,
        re.compile(r"((?:g?make|ninja)(?:\[\d+\])?: \*\*\* .*|BUILD FAILED.*|FAILURE: .*|\W*[Bb]uild failed\b.*)"),
    ),
    (40, False, re.compile(r"(.*\b(?:error|failed|failure|cannot|can't|denied|refused|not found|invalid)\b.*)", re.I)),
)

_STACK = re.compile(r"^Traceback \(most recent call last\)|^\s+at \S.*:\d+:\d+\)?$", re.MULTILINE)
"""A stack trace: an exception line without one may be ordinary text."""

_VIEWERS = frozenset(
    """cat bat head tail less more grep egrep fgrep rg ag ack sed awk ls tree find fd wc stat file diff echo printf cd
    pwd jq yq column sort uniq cut tr nl xxd hexdump which type env date true""".split()  # noqa: SIM905 - a word list
)
_VIEWING_SUBCOMMANDS = {
    "git": ("log", "show", "diff", "blame", "grep", "status", "branch", "ls-files", "reflog"),
    "gh": ("run", "issue", "pr", "api"),
    "docker": ("logs", "ps", "images"),
    "kubectl": ("logs", "get", "describe"),
}
_COMPLAINT = re.compile(r"(?:\S*sh: (?:line )?(?:\d+: )?)?(?P<name>[\w.+-]+): .+")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one tool call ended.

    `ok` and `exit_code` are what the agent reported, None where it said nothing; one fills the other only where that is
    certain. `lines` are quotes (at most three, most telling first) when something failed, reported or shown. `refused`:
    the call was not let through, so nothing ran.
    """

    ok: bool | None
    exit_code: int | None
    lines: tuple[str, ...] = ()
    suite: Suite | None = None
    refused: bool = False

    @property
    def failed(self) -> bool:
        """True when a failure was reported or the output shows one."""
        return self.ok is False or bool(self.lines) or (self.suite is not None and self.suite.verdict == "failed")

    @property
    def succeeded(self) -> bool:
        """True when success was reported, or a test run says so; never a guess."""
        if self.failed:
            return False
        return self.ok is True or (self.suite is not None and self.suite.verdict == "passed")


def read_outcome(call: ToolCall) -> Outcome:
    """The outcome of a finished tool call, from its report and its output alone."""
    ok = call.ok
    if ok is None and call.exit_code is not None:
        ok = call.exit_code == 0
    if ok is False and call.error.startswith(_REFUSED):
        return Outcome(ok, call.exit_code, (clip(fold(call.error), _LINE_BYTES),), None, refused=True)
    text = _ANSI.sub("", "\n".join(part for part in (call.error, call.output) if part))
    if not text:  # most calls: nothing to quote
        return Outcome(ok, call.exit_code)
    shell = call.family == "shell"
    viewing = shell and only_views(call.command)
    suite = read_suite(text) if shell and not viewing else None
    if viewing:
        lines = () if ok else _own_complaint(call.command, text, told=ok is False)
    elif ok is False:
        lines = _quotes(text, certain=False) or _last_line(text)
    elif suite is not None and suite.verdict == "failed":
        lines = _quotes(text, certain=False)
    elif not shell:
        lines = ()
    elif ok is None or _hides_exit_code(call.command):
        lines = _quotes(text, certain=True)
    else:
        lines = ()
    return Outcome(ok, call.exit_code, lines, suite)


def _quotes(text: str, *, certain: bool) -> tuple[str, ...]:
    """The most telling lines of `text`; with `certain`, none unless one of them shows a failure by itself."""
    found: list[tuple[int, int, str]] = []
    shown = bool(_STACK.search(text))
    lines = [line for line in map(fold, text.splitlines()) if line and not _ENVELOPE.match(line)]
    for number, line in enumerate(lines):
        if line.endswith(":") and "panicked at" in line:
            line = " ".join(lines[number : number + 2])  # the message stands on the next line
        weight, by_itself, quote = _weigh(line)
        if weight:
            shown = shown or by_itself
            found.append((weight, number, quote))
    if not found or (certain and not shown):
        return ()
    found.sort(key=lambda entry: (-entry[0], entry[1]))
    best = found[0][0]
    quotes: list[str] = []
    for weight, _, quote in found:
        line = clip(quote, _LINE_BYTES)
        if weight >= best - 28 and not any(line in other for other in quotes):
            quotes = [other for other in quotes if other not in line] + [line]
    return tuple(quotes[:_MOST_LINES])


def _weigh(line: str) -> tuple[int, bool, str]:
    """The weight of a line (0: says nothing), whether it shows a failure by itself, and what to quote of it."""
    if len(line) > 4 * _LINE_BYTES:
        line = line[: 4 * _LINE_BYTES]
    for weight, by_itself, pattern in _TELLING:
        match = pattern.fullmatch(line)
        if match:
            return weight, by_itself, match.group(1)
    return 0, False, ""


def _last_line(text: str) -> tuple[str, ...]:
    """The last line that says something, for a failure without any line of a known shape."""
    lines = [line for line in map(fold, text.splitlines()) if line and not _ENVELOPE.match(line)]
    return (clip(lines[-1], _LINE_BYTES),) if lines else ()


def _own_complaint(command: str, text: str, *, told: bool) -> tuple[str, ...]:
    """A displaying command's own error (`cat: x: No such file or directory`), told apart from what it displays.

    `told`: the agent reported the failure, so any complaint counts, and so does an output of one or two lines.
    """
    names = {words[0].rsplit("/", 1)[-1] for words in _simple_commands(command)} - {"echo", "printf"}
    if "git" in names:
        names |= {"fatal", "error"}
    lines = [line for line in map(fold, text.splitlines()) if line and not _ENVELOPE.match(line)]
    found = []
    for line in lines:
        complaint = _COMPLAINT.match(line)
        if complaint and complaint["name"] in names and (told or _weigh(line)[0] in (74, 78)):
            found.append(clip(line, _LINE_BYTES))
    if told and not found and 1 <= len(lines) <= 2:
        found = [clip(lines[-1], _LINE_BYTES)]
    return tuple(dict.fromkeys(found))[:_MOST_LINES]


@lru_cache(1024)
def only_views(command: str) -> bool:
    """True when every part of the command line only displays what is there."""
    parts = _simple_commands(command)
    return bool(parts) and all(_views(words) for words in parts)


def _views(words: list[str]) -> bool:
    """True for one simple command that only displays."""
    name = words[0].rsplit("/", 1)[-1]
    if name in _VIEWING_SUBCOMMANDS:
        plain = [word for word in words[1:] if not word.startswith("-")]
        return bool(plain) and plain[0] in _VIEWING_SUBCOMMANDS[name]
    return name in _VIEWERS


def _hides_exit_code(command: str) -> bool:
    """True when the reported exit code may be another part's: a pipe, `||` or a list of commands."""
    return bool(re.search(r"\||;|\n", command))


def _simple_commands(command: str) -> list[list[str]]:
    """The simple commands of a command line, as words without variable assignments and redirections."""
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars="();&|")
    lexer.commenters = ""
    commands: list[list[str]] = [[]]
    try:
        for token in lexer:
            if token and not token.strip("();&|"):
                commands.append([])
            elif not re.fullmatch(r"[A-Za-z_]\w*=.*", token, re.DOTALL) or commands[-1]:
                commands[-1].append(token)
    except ValueError:
        # An open quote: the command was cut, or is no shell line. What was read so far decides.
        pass
    return [words for words in commands if words and not words[0].startswith((">", "<"))]
