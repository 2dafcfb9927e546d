"""What redaction costs: ordinary texts of 2 KB, whole events, and texts made to be slow.

    python -m tests.bench.sanitize [--rounds 300] [--size 1000000]

Processor time, the best of seven repeats, so that other work on the machine counts little. Aims: an ordinary text of
2 KB well under 100 microseconds, a made-up text of 1 MB under a second. Each row of the last table is one short text
repeated to --size; the slowest are shown.
"""

from __future__ import annotations

import argparse
import time
import timeit
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from tests.core.secret_samples import ASSIGNED
from tests.core.test_sanitize_work import REPEATED
from vaultd.core.event import Event, FileTouch, Kind, ToolCall
from vaultd.core.ids import Key, Sid
from vaultd.core.observation import observation_json, parse_observation
from vaultd.core.sanitize import observe, redact

ROOT = Path(__file__).parent.parent.parent
PROSE = (
    "The importer reads one file per event and keeps the order of their times. When a session ends without a word, "
    "the next start closes it: a page is written, a handoff made, and what was open stays open. Please look at the "
    "loader in src/app.py, make the number of retries configurable, and run the tests again; the last run said "
    "`3 failed, 41 passed in 2.05s`. We decided against a second queue because nobody could say which of the two "
    "was right after a crash. "
)
OUTPUT = (
    "$ pytest -q tests/test_loader.py\n"
    "FAILED tests/test_loader.py::test_retry_count_is_read - AssertionError: assert 3 == 5\n"
    '  File "/home/dev/project/src/loader.py", line 118, in read_configuration\n'
    "    return parse(path, encoding='utf-8', strict=True)\n"
    "9fceb02d0ae598e95dc970b74767f19372d61af8 Fix: count from one (#1204)\n"
)


def best(call: Callable[[], object], rounds: int) -> float:
    """Microseconds of processor time for one call."""
    return min(timeit.repeat(call, number=rounds, repeat=7, timer=time.process_time)) / rounds * 1e6


def filled(text: str, size: int) -> str:
    return (text * (size // len(text) + 1))[:size]


def ordinary(rounds: int) -> None:
    code = (ROOT / "vaultd/core/event.py").read_text("utf-8")
    leaking = "\n".join(text for text, _ in ASSIGNED)
    rows = [
        ("prose, 2 KB", filled(PROSE, 2_000)),
        ("code, 2 KB", code[1_000:3_000]),
        ("output of a command, 2 KB", filled(OUTPUT, 2_000)),
        ("prose in Japanese, 2 KB", filled("再試行の回数を設定できるようにしてください。", 667)),
        ("a prompt of 16 KB", filled(PROSE, 16_384)),
        ("a uuid", "550e8400-e29b-41d4-a716-446655440000"),
        ("a path", "/home/dev/project/src/app.py"),
        ("a secret in each line, 2 KB", leaking[:2_000]),
    ]
    print("redact                          bytes    microseconds")
    for name, text in rows:
        print(f"  {name:28} {len(text.encode()):6}  {best(partial(redact, text), rounds):10.1f}")


def events(rounds: int) -> None:
    tool = ToolCall(
        "Bash",
        "shell",
        call_id="toolu_01ABCdefGHIjklMNOpqrSTU",
        files=(FileTouch("/home/dev/project/src/app.py", "edit"),),
        command="cd /home/dev/project && pytest -q tests/test_loader.py",
        exit_code=1,
        output=filled(OUTPUT, 2_000),
    )
    native = "11111111-2222-4333-8444-666666666666"
    event = Event(
        Key("1795943533-" + native),
        "agent",
        "PostToolUse",
        Kind.TOOL,
        datetime.now(UTC),
        Sid("0123456789"),
        native=native,
        cwd="/home/dev/project",
        root="/home/dev/project",
        tool=tool,
    )
    seen = observe(event)
    data = observation_json(seen)
    print(f"\none tool event, {len(data)} bytes       microseconds")
    print(f"  observe              {best(lambda: observe(event), rounds):12.1f}")
    print(f"  observation_json     {best(lambda: observation_json(seen), rounds):12.1f}")
    print(f"  parse_observation    {best(lambda: parse_observation(data), rounds):12.1f}")


def slow(size: int, shown: int = 12) -> None:
    rows = []
    for unit in REPEATED:
        text = filled(unit, size)
        start = time.process_time()
        redact(text)
        rows.append((time.process_time() - start, unit))
    rows.sort(reverse=True)
    print(f"\n{size:,} characters of one repeated text, the slowest of {len(rows)}      seconds")
    for seconds, unit in rows[:shown]:
        print(f"  {unit!r:40} {seconds:8.2f}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=300)
    options.add_argument("--size", type=int, default=1_000_000)
    given = options.parse_args()
    ordinary(given.rounds)
    events(given.rounds)
    slow(given.size)


if __name__ == "__main__":
    main()
