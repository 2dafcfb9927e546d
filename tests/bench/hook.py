"""What the capture hook costs, against the least that a delivery can cost, interleaved in one run.

    python tests/bench/hook.py [--rounds N] [--shell dash]

The bare delivery is `sh -c 'cat >f; ln f g; rm f'`. Prints medians in milliseconds and ratios; asserts nothing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HOOK = Path(__file__).resolve().parents[2] / "hooks/vaultd-hook"
BARE = "cat >f; ln f g; rm f"
BOUNDS = {"ordinary": 1.5, "start, nothing to claim": 2.5, "start, with a claim": 2.5, "turn end, daemon runs": 1.5}
START = (
    b'{"session_id":"11111111-2222-4333-8444-666666666666","transcript_path":"/home/dev/t.jsonl","cwd":"/home/dev/p",'
)
START += b'"hook_event_name":"SessionStart","source":"startup"}'
TOOL = b'{"session_id":"11111111-2222-4333-8444-666666666666","hook_event_name":"PostToolUse","tool_name":"Bash",'
TOOL += b'"tool_input":{"command":"pytest -q"},"tool_response":{"stdout":"' + b"." * 1500 + b'"}}'


@dataclass
class Place:
    """A vault with a prepared outbox, and a checkout to start in."""

    vault: Path
    checkout: Path

    @property
    def offer(self) -> tuple[Path, Path]:
        """Where the handoff lies open, and where accepted."""
        folder = self.vault / "projects/repo/handoffs"
        return folder / "open/0123456789-g1.md", folder / "accepted/0123456789-g1.md"

    def make(self) -> None:
        """Lay everything out."""
        room = self.vault / ".vaultd"
        for folder in ("inbox/tmp", "inbox/new", "outbox/map"):
            (room / folder).mkdir(parents=True)
        (room / "vault-id").write_text("bench\n")
        (room / "outbox/map/claude-code.SessionStart").write_text("session-start-json start -\n")
        (room / "outbox/map/claude-code.PostToolUse").write_text("- - -\n")
        (room / "outbox/map/claude-code.Stop").write_text("- - drain\n")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        ticks = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
        told = f'{{\n  "pid": {os.getpid()},\n  "start": {ticks},\n  "boot": "{boot}",\n  "version": "1"\n}}\n'
        (room / "daemon.json").write_text(told)
        (self.checkout / "sub").mkdir(parents=True)
        git = self.checkout / ".git"
        (git / "refs/heads").mkdir(parents=True)
        (git / "HEAD").write_text("ref: refs/heads/main\n")
        (git / "refs/heads/main").write_text("1" * 40 + "\n")
        (git / "config").write_text('[core]\n\tbare = false\n[remote "origin"]\n\turl = https://example.org/a/b.git\n')
        place = room / "outbox/at" / str(self.checkout).lstrip("/") / "@vaultd"
        place.mkdir(parents=True)
        text = '{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"' + "x" * 6000 + '"}}\n'
        (place / "session-start-json").write_text(text)
        lines = [*map(str, self.offer), "99999999-2222-4333-8444-000000000000", "0", "0"]
        (place / "claim").write_text("\n".join(lines) + "\n")
        for path in self.offer:
            path.parent.mkdir(parents=True)

    def reset(self, claim: bool) -> None:
        """Empty the inbox; put the handoff up again, or away."""
        for folder in ("inbox/tmp", "inbox/new"):
            for entry in os.scandir(self.vault / ".vaultd" / folder):
                Path(entry.path).unlink(missing_ok=True)
        opened, accepted = self.offer
        accepted.unlink(missing_ok=True)
        if claim:
            opened.write_text("handoff\n")
        else:
            opened.unlink(missing_ok=True)


def timed(argv: list[str], cwd: Path, env: dict[str, str], payload: Path) -> float:
    """Seconds that a command took with a file as its stdin and a pipe nobody needs to read as its stdout."""
    with payload.open("rb") as stdin:
        before = time.perf_counter()
        subprocess.run(argv, cwd=cwd, env=env, stdin=stdin, stdout=subprocess.PIPE, check=True)
        return time.perf_counter() - before


def measure(shell: list[str], rounds: int, folder: Path) -> dict[str, list[float]]:
    """Seconds per kind of event, interleaved round by round."""
    place = Place(folder / "vault", folder / "repo")
    place.make()
    bare, start, tool = folder / "bare", folder / "start.json", folder / "tool.json"
    bare.mkdir()
    start.write_bytes(START)
    tool.write_bytes(TOOL)
    env = {**os.environ, "HOME": str(folder), "VAULTD_VAULT": str(place.vault)}

    def hook(event: str, payload: Path) -> Callable[[], float]:
        return lambda: timed([*shell, str(HOOK), "claude-code", event], place.checkout / "sub", env, payload)

    runs: dict[str, Callable[[], float]] = {
        "bare": lambda: timed([*shell, "-c", BARE], bare, env, tool),
        "ordinary": hook("PostToolUse", tool),
        "turn end, daemon runs": hook("Stop", tool),
        "start, nothing to claim": hook("SessionStart", start),
        "start, with a claim": hook("SessionStart", start),
    }
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            place.reset(claim=name == "start, with a claim")
            (bare / "g").unlink(missing_ok=True)
            seconds[name].append(run())
    return seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What the capture hook costs.")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--shell", default="sh", help="sh, dash, 'bash --posix', 'busybox ash'")
    args = parser.parse_args()
    shell = args.shell.split()
    if shutil.which(shell[0]) is None:
        raise SystemExit(f"{shell[0]} is not installed.")
    with tempfile.TemporaryDirectory() as name:
        seconds = measure(shell, args.rounds, Path(name))
    bare = statistics.median(seconds["bare"])
    print(f"{args.shell}, {args.rounds} rounds, medians")
    for name, values in seconds.items():
        median = statistics.median(values)
        bound = f"   (budget {BOUNDS[name]})" if name in BOUNDS else ""
        print(f"  {name:26} {median * 1000:6.2f} ms   {median / bare:4.2f}{bound}")


if __name__ == "__main__":
    main()
