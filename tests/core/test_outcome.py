"""Failures that are reported, failures that show, and text that only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.core.arbitrary import tools
from tests.examples import examples
from vaultd.core.event import ToolCall
from vaultd.core.outcome import read_outcome


def ran(command: str, output: str, ok: bool | None = None, error: str = "") -> ToolCall:
    return ToolCall("Bash", "shell", "c", (), command, None, ok, error, output)


SHOWN = [
    (
        "ls missing",
        "ls: cannot access 'missing': No such file or directory",
        "ls: cannot access 'missing': No such file or directory",
    ),
    ("frobnicate", "bash: line 1: frobnicate: command not found", "bash: line 1: frobnicate: command not found"),
    ("frobnicate", "zsh: command not found: frobnicate", "zsh: command not found: frobnicate"),
    ("frobnicate", "/bin/sh: 1: frobnicate: not found", "/bin/sh: 1: frobnicate: not found"),
    (
        "cd missing && ls",
        "bash: line 0: cd: missing: No such file or directory",
        "bash: line 0: cd: missing: No such file or directory",
    ),
    (
        "rm README.md",
        "rm: cannot remove 'README.md': Read-only file system",
        "rm: cannot remove 'README.md': Read-only file system",
    ),
    (
        "python run.py",
        "Traceback (most recent call last):\n  File \"run.py\", line 3, in <module>\n    main()\nKeyError: 'name'\n",
        "KeyError: 'name'",
    ),
    (
        "node x.js",
        "ReferenceError: foo is not defined\n    at Object.<anonymous> (/x.js:1:1)\n",
        "ReferenceError: foo is not defined",
    ),
    ("cargo build", "error[E0308]: mismatched types\n --> src/main.rs:4:5\n", "error[E0308]: mismatched types"),
    (
        "make",
        "x.c:3:1: error: unknown type name 'foo'\nmake: *** [x.o] Error 1",
        "x.c:3:1: error: unknown type name 'foo'",
    ),
    ("npx tsc", "a.ts(3,5): error TS2322: Type 'x'.", "a.ts(3,5): error TS2322: Type 'x'."),
    (
        "npm ci",
        "npm ERR! code ENOENT\nnpm ERR! missing script: build\nnpm ERR! A complete log of this run",
        "npm ERR! missing script: build",
    ),
    ("go build", "./a.go:3:5: undefined: foo", "./a.go:3:5: undefined: foo"),
    ("git push", "error: failed to push some refs to 'x'", "error: failed to push some refs to 'x'"),
    ("git show nothing", "fatal: ambiguous argument 'nothing'", "fatal: ambiguous argument 'nothing'"),
    (
        "docker run x",
        "docker: Error response from daemon: no such image: x",
        "docker: Error response from daemon: no such image: x",
    ),
    (
        "docker compose up",
        "Error response from daemon: port is already allocated",
        "Error response from daemon: port is already allocated",
    ),
    (
        "cargo run",
        "thread 'main' panicked at src/main.rs:4:5:\ncalled `Option::unwrap()` on a `None` value\n",
        "thread 'main' panicked at src/main.rs:4:5: called `Option::unwrap()` on a `None` value",
    ),
    ("pytest -q", "E       AssertionError: assert 1 == 2\n1 failed in 0.1s", "AssertionError: assert 1 == 2"),
    ("./a.out", "Segmentation fault (core dumped)", "Segmentation fault (core dumped)"),
]


@pytest.mark.parametrize(("command", "output", "line"), SHOWN)
def test_an_output_that_shows_a_failure_is_quoted_and_no_exit_code_is_claimed(
    command: str, output: str, line: str
) -> None:
    outcome = read_outcome(ran(command, output))
    assert outcome.lines[0] == line
    assert outcome.failed
    assert (outcome.ok, outcome.exit_code) == (None, None)


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("cat error.log", "Traceback (most recent call last):\n  x\nValueError: boom\n"),
        ("grep -rn 'error:' src", "src/a.py:3: error: never\n"),
        ("git log --oneline", "4f2a fix: error: handling FAILED\n"),
        ("sed -n 1,9p a.sh | head -3", "x: No such file or directory"),
        ("echo 'ls: cannot access x: No such file or directory'", "ls: cannot access x: No such file or directory"),
        ("FOO=1 tail -n 3 out.txt", "npm ERR! broken"),
        ("make", "gcc -Wall -Werror -c error.c\n0 errors, 0 failures\n"),
        ("./run", "errors: none\nfailed: 0\n"),
        ("pytest -q", "3 passed in 0.1s"),
        ("python say.py", "TypeError: is the title of a song\n"),
    ],
)
def test_text_that_only_looks_like_a_failure_is_none(command: str, output: str) -> None:
    outcome = read_outcome(ran(command, output))
    assert (outcome.lines, outcome.failed) == ((), False)


def test_a_reported_success_is_believed_unless_a_pipe_hides_it() -> None:
    assert not read_outcome(ran("make", "error: ignored", ok=True)).failed
    hidden = read_outcome(ran("make 2>&1 | tail -3", "x.c:3:1: error: unknown type\n", ok=True))
    assert (hidden.failed, hidden.succeeded, hidden.ok) == (True, False, True)
    assert read_outcome(ran("pytest | tail -1", "1 failed, 2 passed in 0.1s", ok=True)).failed


def test_a_reported_failure_is_told_by_its_best_line() -> None:
    assert read_outcome(ran("x", "one\ntwo\n", ok=False, error="Exit code 2")).lines == ("two",)
    assert read_outcome(ran("x", "", ok=False)).lines == ()
    assert read_outcome(ran("x", "", ok=False)).failed
    long = read_outcome(ran("x", "error: " + "é" * 2000, ok=False)).lines[0]
    assert len(long.encode()) <= 300


def test_an_exit_code_says_how_it_went() -> None:
    call = ToolCall("Bash", "shell", "c", (), "make", 0)
    assert read_outcome(call).succeeded
    assert read_outcome(ToolCall("Bash", "shell", "c", (), "make", 3, None, "", "boom")).ok is False


def test_a_displaying_command_that_failed_is_quoted_only_with_its_own_complaint() -> None:
    shown = "\n".join(f"line {n}: error: x" for n in range(5))
    assert read_outcome(ran("cat a b", shown, ok=False)).lines == ()
    own = read_outcome(ran("cat a b", shown + "\ncat: b: No such file or directory", ok=False))
    assert own.lines == ("cat: b: No such file or directory",)


def test_other_tools_fail_only_when_they_say_so() -> None:
    assert not read_outcome(ToolCall("Read", "read", "c", output="error: x")).failed
    failed = read_outcome(ToolCall("Edit", "edit", "c", ok=False, error="String to replace not found in file."))
    assert failed.lines == ("String to replace not found in file.",)


@settings(max_examples=examples(200), deadline=None)
@given(tools)
def test_any_call_has_an_outcome(call: ToolCall) -> None:
    outcome = read_outcome(call)
    assert not (outcome.failed and outcome.succeeded)
    assert outcome.exit_code == call.exit_code
    assert len(outcome.lines) <= 3
    assert all(line and len(line.encode()) <= 300 and "\n" not in line for line in outcome.lines)
