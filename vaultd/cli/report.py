"""The status report for a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from vaultd.cli.terminal import Terminal
from vaultd.engine.status import OpenSession

__all__ = ["show_status"]

_WATCH = {"": "", "on": ", watches the vault for edits", "off": ", scans the vault for edits (`daemon.watch` is off)"}


def show_status(
    terminal: Terminal, report: dict[str, Any], folder: str, sessions: Sequence[OpenSession], told: Mapping[str, str]
) -> None:
    """Print a status document: problems first, then what is recorded of `folder` (in words), and who is at work.

    `told`: `watch` and `http` as `engine.status.watch_state` and `http_state` say, `wired` agents ("" for none).
    """
    watch = told["watch"]
    for problem in report["problems"]:
        terminal.say(f"! {problem}")
    daemon, pages, inbox = report["daemon"], report["pages"], report["inbox"]
    rows = [
        ("vault", report["vault"]),
        (
            "daemon",
            f"runs (pid {daemon['pid']}){_WATCH.get(watch, f', scans the vault for edits: {watch}')}"
            if daemon["running"]
            else "does not run (`vaultd up` starts it); hooks record all the same",
        ),
        *((("http", told["http"]),) if told["http"] else ()),
        ("pages", f"{pages['disk']} on disk, {pages['indexed']} in the index"),
        ("inbox", f"{inbox['new']} waiting, {inbox['failed']} failed"),
        ("git", _git(report["git"])),
        ("given", f"handoffs that a session got: {report['injected']['sessions']}"),
        (
            "wired",
            told["wired"] or "no agent, so no hook records: `vaultd connect` wires those that are here",
        ),
        ("here", folder),
        *(("open", f"{s.agent}: {s.title}, in {s.cwd}, last heard of {_local(s.last)} ({s.native})") for s in sessions),
    ]
    terminal.table(rows)
    for agent, events in sorted(report["agents"].items()):
        terminal.say(f"{agent}:")
        terminal.table(
            [
                (f"  {name}", str(row["count"]), f"last {_local(datetime.fromisoformat(row['last']))}")
                for name, row in sorted(events.items())
            ]
        )
    if not report["agents"] and told["wired"]:
        terminal.say("No agent was heard of yet: start one.")
    elif not report["agents"]:
        terminal.say("No agent was heard of yet. `vaultd connect` wires those that are here; then start it.")
    terminal.say("ok" if report["ok"] else "not ok: see the lines with ! above")


def _git(git: dict[str, Any]) -> str:
    """One line about history."""
    at = _local(datetime.fromisoformat(git["at"])) if git["at"] else "an unknown time"
    commit = f"{str(git['commit'])[:10]} of {at}" if git["commit"] else "no commit yet"
    return f"{commit}, {git['pending']} not committed" + (f", {git['blocked']}" if git["blocked"] else "")


def _local(time: datetime) -> str:
    """A time on this machine's clock, to the minute."""
    return f"{time.astimezone():%Y-%m-%d %H:%M}"
