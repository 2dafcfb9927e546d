"""The status report for a person."""

from __future__ import annotations

from typing import Any

from vaultd.cli.terminal import Terminal

__all__ = ["show_status"]


def show_status(terminal: Terminal, report: dict[str, Any]) -> None:
    """Print a status document: problems first, then what is recorded."""
    for problem in report["problems"]:
        terminal.say(f"! {problem}")
    daemon, pages, inbox = report["daemon"], report["pages"], report["inbox"]
    rows = [
        ("vault", report["vault"]),
        (
            "daemon",
            f"runs (pid {daemon['pid']})"
            if daemon["running"]
            else "does not run (`vaultd up` starts it); capture goes on",
        ),
        ("pages", f"{pages['disk']} on disk, {pages['indexed']} in the index"),
        ("inbox", f"{inbox['new']} waiting, {inbox['failed']} failed"),
        ("git", _git(report["git"])),
        ("given", f"{report['injected']['sessions']} sessions got a handoff ({report['injected']['bytes']} bytes)"),
    ]
    terminal.table(rows)
    for agent, events in sorted(report["agents"].items()):
        terminal.say(f"{agent}:")
        terminal.table(
            [(f"  {name}", str(row["count"]), f"last {row['last']}") for name, row in sorted(events.items())]
        )
    if not report["agents"]:
        terminal.say("No agent was heard of yet. `vaultd install-hooks --agent AGENT --apply` wires one.")
    terminal.say("ok" if report["ok"] else "not ok: see the lines with ! above")


def _git(git: dict[str, Any]) -> str:
    """One line about history."""
    commit = f"{str(git['commit'])[:10]} at {git['at']}" if git["commit"] else "no commit yet"
    return f"{commit}, {git['pending']} not committed" + (f", {git['blocked']}" if git["blocked"] else "")
