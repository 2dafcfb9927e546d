"""Check everything that recording depends on, and say which command mends what is broken (exit code 7 then).

A row for each agent that is on this machine: whether it is wired and trusted, when what was heard of it last, and
whether it works without being recorded.
"""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaultd.cli.terminal import Terminal
    from vaultd.engine.agentrows import AgentRow

HELP = "check everything, and say what mends it"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("--json", action="store_true", help="as one JSON document")


def run(args: argparse.Namespace, terminal: Terminal) -> int:
    """Check."""
    from vaultd.cli.opening import configured
    from vaultd.engine.checks import examine, examine_agents
    from vaultd.engine.stores import local_now

    config = configured(args, forgiving=True)
    findings, rows, now = examine(config), examine_agents(config), local_now()
    ok = all(f.ok for f in findings) and not any(row.problems for row in rows)
    if args.json:
        checks = [{"ok": f.ok, "what": f.what, "mend": "" if f.ok else f.mend} for f in findings]
        terminal.json({"ok": ok, "checks": checks, "agents": [row.json(now) for row in rows]})
        return 0 if ok else 7
    for finding in findings:
        terminal.say(f"{'ok  ' if finding.ok else 'BAD '} {finding.what}")
        if finding.mend and not finding.ok:
            terminal.say(f"       mend: {finding.mend}")
    for row in rows:
        terminal.say(f"{'BAD ' if row.problems else 'ok  '} {_line(row, now)}")
        for problem in row.problems:
            terminal.say(f"       {problem.text}")
            terminal.say(f"       mend: {problem.mend}")
    return 0 if ok else 7


def _line(row: AgentRow, now: datetime) -> str:
    """An agent in one line."""
    words = [] if row.installed else ["not found here"]
    if row.wired:
        words.append("wired")
    elif row.agent.hooks is not None:
        words.append(f"not wired (`vaultd connect {row.agent.id}`)")
    words += {True: ["trusted"], False: ["not trusted"], None: []}[row.trusted]
    words += [name for name, there in (("MCP", row.mcp), ("instructions", row.instructions)) if there]
    heard = [f"{kind} {_ago(last, now)} ({count})" for kind, (last, count) in row.heard.items()]
    told = f"; last {', '.join(heard)}" if heard else "; nothing was heard of it yet" if row.wired else ""
    return f"{row.agent.title}: {', '.join(words)}{told}"


def _ago(last: str, now: datetime) -> str:
    """How long ago a time was, in words."""
    seconds = max(0, (now - datetime.fromisoformat(last)).total_seconds())
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"
