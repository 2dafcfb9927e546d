"""What is told from a command line, and what leaves it."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vaultd.agents.commands import (
    complaints,
    hides_exit_code,
    is_patch,
    is_test_run,
    looks_failed,
    patch_files,
    prints_files,
    telling_line,
    without_bodies,
)
from vaultd.core.event import FileTouch


@pytest.mark.parametrize(
    ("command", "short"),
    [
        ("make all", "make all"),
        ("cat > a.txt <<'EOF'\nsecret one\nsecret two\nEOF\nls", "cat > a.txt <<'EOF'\n[2 lines]\nEOF\nls"),
        ("cat <<-END | tee b\n\tx\n\tEND", "cat <<-END | tee b\n[1 lines]\n\tEND"),
        ("python - <<PY && cat <<B\n1\nPY\n2\nB", "python - <<PY && cat <<B\n[1 lines]\nPY\n[1 lines]\nB"),
        ("cat > a <<EOF\nnever closed\nby anything", "cat > a <<EOF\n[2 lines]"),
        ("cat <<<word\necho hi", "cat <<<word\necho hi"),
        ("echo $((1 << shift))\nls", "echo $((1 << shift))\nls"),
        ("printf 'a\nb\n' > f.txt", "printf '[3 lines]' > f.txt"),
        ("git commit -m 'one\ntwo'", "git commit -m 'one\ntwo'"),
    ],
)
def test_texts_that_a_command_carries_are_taken_out(command: str, short: str) -> None:
    assert without_bodies(command) == short


@pytest.mark.parametrize(
    "command",
    [
        "cat a.txt",
        "cd src && cat a.txt",
        "sudo -n cat /etc/hosts",
        "LC_ALL=C sed -n 1,40p a.py",
        "head -5 a; ls",
        "bash -lc 'cat a.txt'",
        "find . -name '*.py' | xargs cat",
        "find . -exec head -1 {} +",
        "git -C x show HEAD:a.py",
        "grep -n foo a.py | head",
        "timeout 5 /usr/bin/tail -n 3 log",
        "echo x" * 10_000,
    ],
)
def test_commands_that_print_files(command: str) -> None:
    assert prints_files(command)


@pytest.mark.parametrize(
    "command",
    [
        "make",
        "pytest -q | tail -5",
        "ls missing",
        "npm test 2>&1 | grep -v ok",
        "echo cat",
        "cargo build 2>&1 | head -50",
        "",
    ],
)
def test_commands_that_do_not(command: str) -> None:
    assert not prints_files(command)


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q",
        "python3 -m unittest",
        "npm run test:unit",
        "go test ./...",
        "cargo nextest run",
        "make check",
        "cd app && ./scripts/run-tests.sh -v",
        "bash tests/unit_test.sh",
        "tox -e py",
    ],
)
def test_test_runs(command: str) -> None:
    assert is_test_run(command)


@pytest.mark.parametrize("command", ["echo hi", "git commit -m 'fix'", "make all", "npm install; echo test"])
def test_other_runs(command: str) -> None:
    assert not is_test_run(command)


@pytest.mark.parametrize(
    ("command", "hides"), [("make | tail", True), ("make || true", True), ("a; b", True), ("make all", False)]
)
def test_an_exit_code_may_be_another_commands(command: str, hides: bool) -> None:
    assert hides_exit_code(command) is hides


def test_a_patch_names_its_files() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: src/a b.py\n*** Move to: src/c.py\n@@\n-x\n+*** Add File: no.py\n"
        "*** Delete File: old.py\n*** Add File: new.py\r\n+text\n*** End Patch"
    )
    assert patch_files(patch) == (
        FileTouch("src/a b.py", "delete"),
        FileTouch("src/c.py", "create"),
        FileTouch("old.py", "delete"),
        FileTouch("new.py", "create"),
    )
    assert is_patch(f"cd x && apply_patch <<'EOF'\n{patch}\nEOF")
    assert not is_patch("cat notes-about-apply_patch.md")


def test_the_telling_line_of_a_failure() -> None:
    assert telling_line("a\nTypeError: no\n3 failed in 2 s\n\n") == "TypeError: no"
    assert telling_line("a\n3 failed in 2 s\nbye") == "3 failed in 2 s"
    assert telling_line("a\nbye\n \n") == "bye"
    assert telling_line("") == ""


def test_words_of_failure() -> None:
    assert looks_failed("rm: cannot remove 'a': Read-only file system")
    assert looks_failed("x\nValueError: y")
    assert not looks_failed("hi-from-shell\n12 passed")


def test_complaints_are_told_from_content() -> None:
    output = "fatal: bad object\ncat: a: No such file or directory\nhost: db: Secret\ngrep: b: Is a directory"
    assert complaints(output).splitlines() == [
        "fatal: bad object",
        "cat: a: No such file or directory",
        "grep: b: Is a directory",
    ]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(alphabet="<'\"-EOF \n\t|;&>catechopytest*()\\${}=", max_size=200))
def test_no_command_line_is_too_odd(command: str) -> None:
    short = without_bodies(command)
    assert prints_files(command) in (True, False)
    assert is_test_run(command) in (True, False)
    assert short.count("\n") <= command.count("\n") + command.count("<<")


@pytest.mark.parametrize(
    "command",
    [
        'for f in *.txt; do cat "$f"; done; false',
        "if grep -q x f; then cat f; fi",
        "{ cat notes.txt; } ; ./run_tests.sh",
        "( cat f )",
        "! cat f",
        "cat<f",
        "<f cat",
        "echo $(cat f)",
        "eval 'cat f'",
        "sudo -u bob cat f",
        "timeout -s KILL 5 cat f",
        "bash -lc 'for f in *; do cat $f; done'",
        "ssh host cat f",
        "docker exec c cat f",
        "base64 f",
        "gawk 1 f",
        "dd if=f",
    ],
)
def test_commands_that_print_files_in_a_roundabout_way(command: str) -> None:
    assert prints_files(command)


@pytest.mark.parametrize(
    "command", ["make check | tail -20", "pytest -q 2>&1 | head", "npm test > out", "if make; then echo ok; fi"]
)
def test_commands_that_print_what_they_found(command: str) -> None:
    assert not prints_files(command)
