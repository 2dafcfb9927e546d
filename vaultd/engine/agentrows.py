"""One row for each agent that is on this machine or wired: is it installed, wired, trusted, heard of? Only reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from vaultd.agents import Agent
from vaultd.agents.edits import EditError
from vaultd.config import Config
from vaultd.engine.connecting import is_found
from vaultd.engine.foreign import read_foreign
from vaultd.engine.install import is_wired
from vaultd.engine.parts import parts_of, server_problem
from vaultd.engine.wiring import Problem, check, newest_transcript
from vaultd.errors import RefusedError
from vaultd.store.transcripts import Growth

__all__ = ["AgentRow", "agent_row"]


@dataclass(frozen=True, slots=True)
class AgentRow:
    """What is known of one agent. `heard` tells by kind of event when one came last (RFC 3339) and how many did.

    `trusted` is None where the agent asks nobody. `problems` are the cause before its effects; none is good.
    """

    agent: Agent
    installed: bool
    wired: bool
    mcp: bool
    instructions: bool
    trusted: bool | None
    heard: Mapping[str, tuple[str, int]]
    transcript: Growth | None
    problems: tuple[Problem, ...]

    def json(self, now: datetime) -> dict[str, Any]:
        """The row as a JSON object; times also in seconds ago."""
        heard = {
            kind: {"last": last, "ago_s": round((now - datetime.fromisoformat(last)).total_seconds()), "count": count}
            for kind, (last, count) in self.heard.items()
        }
        grown = self.transcript
        return {
            "agent": self.agent.id,
            "title": self.agent.title,
            "ok": not self.problems,
            "installed": self.installed,
            "wired": self.wired,
            "mcp": self.mcp,
            "instructions": self.instructions,
            "trusted": self.trusted,
            "heard": heard,
            "transcript": None
            if grown is None
            else {
                "path": str(grown.path),
                "bytes": grown.size,
                "at": datetime.fromtimestamp(grown.at, now.tzinfo).isoformat(timespec="seconds"),
            },
            "problems": [{"text": problem.text, "mend": problem.mend} for problem in self.problems],
        }


def agent_row(agent: Agent, config: Config, now: datetime, seen: Mapping[str, Mapping[str, Any]]) -> AgentRow | None:
    """The row of an agent; None for one that is neither here nor wired. `seen` is as for `wiring.check`."""
    places, environ = config.places, config.environ
    wired, installed = is_wired(agent, places, environ), is_found(agent, places, environ)
    held = {name for name in ("mcp", "instructions") if _holds(agent, config, name)}
    if not (wired or installed or "mcp" in held):
        return None
    paused = (config.vault / ".vaultd/paused").exists()
    problems = check(agent, places, environ, now, seen, paused=paused) if wired else []
    if not wired and agent.hooks is not None and (held or seen):
        what = "was heard of before" if seen else "has vaultd in its other files"
        problems.append(Problem(f"it {what}, but its hooks are not there", f"Run `vaultd connect {agent.id}`."))
    if told := server_problem(agent, config):
        text, _, mend = told.partition(". ")
        problems.append(Problem(text.removeprefix(f"{agent.title}: "), mend))
    trusted = not any("trust" in problem.text for problem in problems) if agent.trust.style and wired else None
    return AgentRow(
        agent=agent,
        installed=installed,
        wired=wired,
        mcp="mcp" in held,
        instructions="instructions" in held,
        trusted=trusted,
        heard=_heard(agent, seen),
        transcript=newest_transcript(agent, places, environ),
        problems=tuple(problems),
    )


def _holds(agent: Agent, config: Config, name: str) -> bool:
    """Whether one of an agent's parts is in its files."""
    for part in parts_of(agent, config, [name]):
        try:
            if part.holds((read_foreign(Path(part.path)) or b"").decode("utf-8")):
                return True
        except (RefusedError, UnicodeDecodeError, EditError):
            continue
    return False


def _heard(agent: Agent, seen: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[str, int]]:
    """By kind of event: when the last one came, and how many."""
    found: dict[str, tuple[str, int]] = {}
    for name, row in seen.items():
        spec = agent.events.get(name)
        kind = str(spec.kind) if spec is not None else "other"
        last, count = found.get(kind, ("", 0))
        at = str(row.get("last", ""))
        newer = at if not last or datetime.fromisoformat(at) >= datetime.fromisoformat(last) else last
        found[kind] = (newer, count + int(row.get("count", 0)))
    return found
