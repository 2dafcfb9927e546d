"""What can be told from a command line and from what it printed. Pure, lexical, wrong only towards keeping less.

The rules here keep contents of files out of events: bodies of here-documents leave the command line, and what a command
printed is dropped when it plainly prints files.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from vaultd.core.event import FileTouch

__all__ = [
    "complaints",
    "hides_exit_code",
    "is_patch",
    "is_test_run",
    "looks_failed",
    "patch_files",
    "prints_files",
    "telling_line",
    "without_bodies",
]

_SEEN = 64 * 1024  # characters at either end of an output that are looked at
_PARSED = 8 * 1024  # characters of a command that are taken apart

# fmt: off
_READERS = frozenset({
    "Get-Content", "ack", "ag", "awk", "base64", "bat", "batcat", "cat", "comm", "cut", "dd", "diff", "egrep", "fgrep",
    "gawk", "grep", "head", "hexdump", "jq", "less", "mawk", "more", "nl", "od", "paste", "rg", "sed", "sort",
    "strings", "tac", "tail", "uniq", "xxd", "yq", "zcat", "zgrep", "zless",
})
_GIT_READERS = frozenset({"blame", "cat-file", "diff", "format-patch", "grep", "log", "show"})
_WRAPPERS = frozenset({
    "builtin", "command", "doas", "env", "exec", "nice", "nohup", "stdbuf", "sudo", "time", "timeout", "xargs",
})
_SHELLS = frozenset({"bash", "dash", "eval", "ksh", "sh", "zsh"})
_KEYWORDS = frozenset({"", "!", "do", "elif", "else", "if", "then", "until", "while"})  # "" is left of a bracket
_ELSEWHERE = frozenset({"docker", "doas", "kubectl", "podman", "ssh", "sudo", "timeout"})
# fmt: on
_HEREDOC = re.compile(r"""(?<!<)<<(-?)[ \t]*(?:\\|(['"]))?([A-Za-z_][\w.-]*)(?:\2)?""")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_PIPELINES = re.compile(r"&&|\|\||;|\n|&(?!\d)")
_REDIRECTION = re.compile(r"(?<![<\w])<(?![<(&])|(?<=\w)<(?![<(&])")
_SUBSTITUTION = re.compile(r"(?:\$\(|`)([^()`]{1,2000})")
_QUOTING = re.compile(r"""['"\\]""")
_WORD = re.compile(r"[^ \t\r\n]+")
_WRITER = re.compile(r"\b(?:echo|printf|cat|tee)\b")
_QUOTED = re.compile(r"""(?s)'[^']*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+\"""")
_PATCH_COMMAND = re.compile(r"""\bapply_?patch\b[ \t]*(?:<<|["'])""")
_PATCH_LINE = re.compile(r"\*\*\* (?:(Add|Update|Delete) File|(Move) to): (.+)")
_TEST_RUN = re.compile(
    r"\b(?:pytest|py\.test|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|bats|nextest)\b"
    r"|\b(?:npm|pnpm|yarn|bun|deno|go|cargo|dotnet|mix|swift|flutter|playwright|mvn|mvnw|gradle|gradlew|make|just|rake)"
    r"\b[^\n;&|]*\b(?:test|tests|check|spec)\b"
    r"|(?:^|[;&|\n])\s*(?:(?:sh|bash)\s+)?(?:[^\s;&|]*/)?[\w-]*tests?(?:\.\w+)?(?=\s|\Z)"
)
_FAILED = re.compile(
    r"(?im)\b(?:errors?|failed|failures?|fatal|exception|traceback|panic|panicked|denied|refused|not found|no such file"
    r"|cannot|can't|unable|segmentation fault|abort(?:ed)?|read-only file system)\b|\w(?:Error|Exception)\b"
)
_TELLING = re.compile(
    r"(?i)^(?:E {3}|FAILED\b|ERROR\b|error(?:\[\w+\])?:|fatal:|panic:)|\w(?:Error|Exception)\b|: (?:no such file"
    r"|command not found|permission denied|cannot )"
)
_COUNT = re.compile(r"(?i)\b\d+ (?:failed|failing|failures?|errors?)\b")
_COMPLAINT = re.compile(r"(?:[^\s:]*/)?([\w.+-]{1,40}): .{0,300}: [A-Z][^\n]{0,200}\Z|fatal: .{1,300}\Z")


def without_bodies(command: str) -> str:
    """A command line without the texts it carries: here-documents, and long quotes that are written to a file.

    What was taken out leaves `[N lines]`.
    """
    short = _without_documents(command) if "<<" in command else command
    if len(short) > _SEEN and "\n" in short:
        short = f"{short.partition(chr(10))[0]}\n[{short.count(chr(10))} lines]"
    elif ">" in short and _WRITER.search(short):
        short = _QUOTED.sub(_without_lines, short)
    return short


def prints_files(command: str) -> bool:
    """Whether a command plainly prints contents of files (a filter behind a pipe prints what it is given, not files).

    A command too long to look through counts as one.
    """
    short = without_bodies(command)
    return len(short) > _PARSED or any(_reads(words, piped) for words, piped in _simple_commands(short))


def is_test_run(command: str) -> bool:
    """Whether a command runs tests, so that what it printed is its result."""
    return _TEST_RUN.search(without_bodies(command)[:_PARSED]) is not None


def hides_exit_code(command: str) -> bool:
    """Whether the exit code of a command may be another part's than the one that failed: a pipe, `||`, a list."""
    return re.search(r"[|;\n]", without_bodies(command)) is not None


def looks_failed(output: str) -> bool:
    """Whether a text has a word in it that failing programs print."""
    return _FAILED.search(output[:_SEEN]) is not None or _FAILED.search(output[-_SEEN:]) is not None


def telling_line(output: str) -> str:
    """The line of a failed command's output that says most, the last of its sort.

    One that names an error, else one that counts failures, else the last with text in it.
    """
    lines = [line.strip() for line in output[-_SEEN:].splitlines() if line.strip()]
    telling = [line for line in lines if _TELLING.search(line)]
    return (telling or [line for line in lines if _COUNT.search(line)] or lines or [""])[-1]


def complaints(output: str) -> str:
    """Only the lines in which a reading program says what it could not do (`cat: a: No such file`), at most 5."""
    found = [_COMPLAINT.match(line) for line in output[:_SEEN].splitlines() if len(line) < 1000]
    programs = _READERS | _SHELLS | {None, "find", "git", "ls"}
    return "\n".join([match[0] for match in found if match and match[1] in programs][:5])


def is_patch(command: str) -> bool:
    """Whether a shell command hands a patch to `apply_patch`."""
    return "*** Begin Patch" in command and _PATCH_COMMAND.search(command) is not None


def patch_files(patch: str) -> tuple[FileTouch, ...]:
    """The files that a patch names in its header lines, each once, in order; a move is a deletion and a creation."""
    actions = {"Add": "create", "Update": "edit", "Delete": "delete", "Move": "create"}
    found: dict[str, str] = {}
    last = ""
    for line in patch.split("\n"):
        header = _PATCH_LINE.match(line.rstrip())
        if header is None:
            continue
        verb, path = header[1] or header[2], header[3]
        if verb == "Move" and last:
            found[last] = "delete"
        found[path] = actions[verb]
        last = path
    return tuple(FileTouch(path, action) for path, action in found.items())


def _without_documents(command: str) -> str:
    """A command line without the bodies of its here-documents."""
    lines = command.split("\n")
    kept: list[str] = []
    position = 0
    while position < len(lines):
        line = lines[position]
        kept.append(line)
        position += 1
        for dash, _, word in _HEREDOC.findall(line):
            end = position
            while end < len(lines) and (lines[end].lstrip("\t") if dash else lines[end]).rstrip() != word:
                end += 1
            if end == len(lines) and "((" in line:
                continue  # a shift in arithmetic
            if end > position:
                kept.append(f"[{end - position} lines]")
            kept += lines[end : end + 1]
            position = end + 1
    return "\n".join(kept)


def _without_lines(quote: re.Match[str]) -> str:
    """What stands for a quoted text of several lines; a shorter one stays."""
    lines = quote[0].count("\n") + 1
    return f"'[{lines} lines]'" if lines > 1 else quote[0]


def _simple_commands(command: str) -> Iterator[tuple[list[str], bool]]:
    """The words of each simple command, and whether it reads from a pipe. Quotes count where they are closed."""
    for pipeline in _PIPELINES.split(command):
        for number, part in enumerate(pipeline.split("|")):
            words = _words(_REDIRECTION.sub(" < ", part))
            yield [word.strip("(){}`$\"'") for word in words], number > 0
            for inner in _SUBSTITUTION.findall(part):
                yield [word.strip("(){}`$\"'") for word in _words(inner)], False


def _words(part: str) -> list[str]:
    """The words of one simple command as a shell sees them (shlex is slow where there is nothing to unquote)."""
    if _QUOTING.search(part) is None:
        return _WORD.findall(part)
    try:
        return shlex.split(part, comments=False)
    except ValueError:
        return part.split()


def _reads(words: list[str], piped: bool) -> bool:
    """Whether one simple command prints files."""
    if words and _name(words[0]) in _ELSEWHERE and any(_name(word) in _READERS for word in words[1:]) and not piped:
        return True  # which of their words is the command only they know
    wrapped = False
    while words and (words[0] in _KEYWORDS or _is_prefix(words[0]) or (wrapped and _is_option(words[0]))):
        wrapped = True
        piped = piped and _name(words[0]) != "xargs"
        words = words[1:]
    if words[:1] == ["<"]:  # `< file cat`
        words = words[2:]
    if not words:
        return False
    name, rest = _name(words[0]), words[1:]
    if name in _SHELLS:
        return any(prints_files(word) for word in rest if not word.startswith("-"))
    if name == "git":
        return any(word in _GIT_READERS for word in rest)
    if name == "find":
        return any(_name(word) in _READERS for word in rest)
    return name in _READERS and (not piped or "<" in rest)


def _is_prefix(word: str) -> bool:
    """Whether the command proper comes after a word."""
    return _ASSIGNMENT.match(word) is not None or _name(word) in _WRAPPERS


def _is_option(word: str) -> bool:
    """A wrapper's own option or number (`timeout 5`, `nice -n 3`)."""
    return word.startswith("-") or word[:1].isdigit()


def _name(word: str) -> str:
    """The program's name without its folder."""
    return word.rpartition("/")[2]
