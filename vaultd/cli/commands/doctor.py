"""Check everything that recording depends on, and say which command mends what is broken (exit code 7 then)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal

HELP = "check everything, and say what mends it"


def configure(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Check."""
    from vaultd.cli.opening import configured
    from vaultd.engine.checks import examine

    findings = examine(configured(args, forgiving=True))
    for finding in findings:
        terminal.say(f"{'ok  ' if finding.ok else 'BAD '} {finding.what}")
        if finding.mend and not finding.ok:
            terminal.say(f"       mend: {finding.mend}")
    return 0 if all(f.ok for f in findings) else 7
