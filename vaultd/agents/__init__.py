"""The agents that vaultd knows: one declarative `<id>.toml` each, and the code that all of them share.

No other package names an agent. `load_agents` reads the files, `normalise` turns a delivery into an event, `complete`
adds what only the agent's transcript tells, `render` puts prepared context into the form an agent takes.
"""

from __future__ import annotations

import functools
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from vaultd.agents.model import USUAL_LIMIT, Agent, EventSpec
from vaultd.agents.normalise import Rejected, complete, normalise, reads_transcript, transcript_pattern
from vaultd.agents.shapes import render
from vaultd.agents.tables import parse_agent

__all__ = [
    "USUAL_LIMIT",
    "Agent",
    "EventSpec",
    "Rejected",
    "complete",
    "load_agents",
    "normalise",
    "reads_transcript",
    "recorded_session",
    "render",
    "transcript_pattern",
]


@functools.cache
def load_agents() -> Mapping[str, Agent]:
    """All agents by id, in the order of their ids. The files travel with the package and are read once."""
    agents: dict[str, Agent] = {}
    for path in sorted(Path(__file__).parent.glob("*.toml")):
        agent = parse_agent(tomllib.loads(path.read_text("utf-8")))
        if agent.id != path.stem:
            raise ValueError(f"{path.name} describes {agent.id}")
        agents[agent.id] = agent
    return MappingProxyType(agents)


def recorded_session() -> dict[str, Any]:
    """A recorded session of one agent (`session`: steps of agent, event, payload) and another's start (`next`)."""
    data: dict[str, Any] = json.loads((Path(__file__).parent / "recorded/session.json").read_text("utf-8"))
    return data
