"""Test runs out of what runners print."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaultd.core.suite import read_suite

RUNS = [
    (
        "pytest",
        "F.\nE  assert 1\nFAILED tests/a.py::test_x[a - b] - assert 1\nERROR tests/b.py - ImportError: no\n"
        "===== 1 failed, 3 passed, 1 skipped, 1 error in 0.33s =====",
        (2, 3, 1),
        ("tests/a.py::test_x[a", "tests/b.py"),
    ),
    ("pytest", "tests/a.py::test_x FAILED [ 50%]\n", (None, None, None), ("tests/a.py::test_x",)),
    ("pytest", "..\n2 passed, 1 warning in 1.20s (0:00:01)", (None, 2, None), ()),
    (
        "unittest",
        "FAIL: test_x (m.T.test_x)\n-----\nRan 5 tests in 0.001s\n\nFAILED (failures=1, errors=1, skipped=1)",
        (2, 2, 1),
        ("test_x (m.T.test_x)",),
    ),
    ("unittest", "...\n------\nRan 3 tests in 0.001s\n\nOK\n", (0, 3, None), ()),
    (
        "jest",
        "  ● adds › two numbers\n\nTests:       1 failed, 2 passed, 3 total\n",
        (1, 2, None),
        ("adds › two numbers",),
    ),
    (
        "vitest",
        " FAIL  a.test.ts > sum > adds\n      Tests  1 failed | 5 passed (6)\n",
        (1, 5, None),
        ("a.test.ts > sum > adds",),
    ),
    ("mocha", "  2 passing (8ms)\n  1 failing\n\n  1) math adds:\n", (1, 2, None), ("math adds",)),
    (
        "cargo test",
        "test a::b ... ok\ntest a::c ... FAILED\ntest result: FAILED. 1 passed; 1 failed; 2 ignored; 0 measured\n",
        (1, 1, 2),
        ("a::c",),
    ),
    (
        "go test",
        "--- FAIL: TestAdd (0.00s)\n    --- FAIL: TestAdd/neg (0.00s)\nFAIL\nFAIL\tx/y\t0.01s\nok  \tx/z\t0.01s\n",
        (None, None, None),
        ("TestAdd", "TestAdd/neg"),
    ),
    ("go test", "ok  \tx/y\t0.01s\nok  \tx/z\t(cached)\n", (0, None, None), ()),
    ("node --test", "✖ adds (0.9ms)\nℹ pass 1\nℹ fail 1\nℹ skipped 0\n", (1, 1, 0), ("adds",)),
    ("TAP", "1..2\nok 1 starts\nnot ok 2 stops\n", (None, None, None), ("stops",)),
    (
        "rspec",
        "3 examples, 1 failure, 1 pending\n\nrspec ./spec/a_spec.rb:3 # A adds\n",
        (1, 1, 1),
        ("./spec/a_spec.rb:3 # A adds",),
    ),
    ("minitest", "Failure:\nA#test_x\n4 runs, 5 assertions, 1 failures, 0 errors, 1 skips\n", (1, 2, 1), ("A#test_x",)),
    ("mix test", "  1) test adds (M)\n3 tests, 1 failure\n", (1, 2, None), ("test adds (M)",)),
    ("phpunit", "1) A\\BTest::testX\nTests: 3, Assertions: 5, Failures: 1.\n", (1, 2, None), ("A\\BTest::testX",)),
    ("phpunit", "OK (3 tests, 5 assertions)\n", (0, 3, None), ()),
    (
        "maven",
        "[ERROR]   ATest.adds:12 expected\n[INFO] Tests run: 1, Failures: 1, Errors: 0, Skipped: 0\n"
        "[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 1\n",
        (1, 1, 1),
        ("ATest.adds",),
    ),
    ("gradle", "ATest > adds() FAILED\n3 tests completed, 1 failed\n", (1, 2, None), ("ATest > adds()",)),
    (
        "dotnet test",
        "  Failed N.ATest.Adds [12 ms]\nFailed!  - Failed:     1, Passed:     2, Skipped:     0, Total:     3\n",
        (1, 2, 0),
        ("N.ATest.Adds",),
    ),
    ("ctest", "67% tests passed, 1 tests failed out of 3\n\t  2 - adds (Failed)\n", (1, 2, None), ("adds",)),
    (
        "xctest",
        "a.swift:3: error: -[T adds] : x\n\t Executed 3 tests, with 1 failure (0 unexpected)\n",
        (1, 2, None),
        ("T adds",),
    ),
    ("deno test", "adds ... FAILED (3ms)\nFAILED | 2 passed | 1 failed (8ms)\n", (1, 2, None), ("adds",)),
    ("bun test", "(fail) adds [0.1ms]\n\n 2 pass\n 1 fail\n", (1, 2, None), ("adds [0.1ms]",)),
    (
        "playwright",
        "  1 failed\n    [chromium] › a.spec.ts:3:1 › adds ──\n  2 passed (3.1s)\n",
        (1, 2, None),
        ("a.spec.ts:3:1 › adds",),
    ),
]


@pytest.mark.parametrize(
    ("runner", "output", "numbers", "failing"), RUNS, ids=[f"{r[0]}-{n}" for n, r in enumerate(RUNS)]
)
def test_runners(
    runner: str, output: str, numbers: tuple[int | None, int | None, int | None], failing: tuple[str, ...]
) -> None:
    suite = read_suite(output)
    assert suite is not None
    assert suite.runner == runner
    assert (suite.failed, suite.passed, suite.skipped) == numbers
    assert suite.failing == failing
    failed = bool(failing) or bool(numbers[0])
    assert suite.verdict == ("failed" if failed else "passed")


@pytest.mark.parametrize("output", ["", "ok\n", "3 files changed", "2 passed", "all tests passed!", "PASS", "FAILED"])
def test_ordinary_text_is_no_test_run(output: str) -> None:
    assert read_suite(output) is None


def test_a_test_that_is_named_twice_is_one() -> None:
    suite = read_suite("   × sum > adds\n FAIL  a.test.ts > sum > adds\n      Tests  1 failed (1)\n")
    assert suite is not None
    assert suite.failing == ("a.test.ts > sum > adds",)
    assert suite.counts == "1 failed"


@given(st.text(max_size=200))
def test_any_output_is_read(output: str) -> None:
    suite = read_suite(output)
    assert suite is None or suite.verdict in ("failed", "passed", "unknown")
