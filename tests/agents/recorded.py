"""The payloads that were recorded from real agents, and deliveries made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path

from vaultd.agents import Agent, load_agents, normalise
from vaultd.core.event import Delivery, Event
from vaultd.core.ids import Key

DATA = Path(__file__).parent.parent / "data"
NOW = datetime(2026, 11, 29, 21, 0, tzinfo=timezone(timedelta(hours=1)))
KEY = Key("1795985822-0a1b2c3d")


def recordings() -> Iterator[tuple[str, str]]:
    """Agent id and variant (`PostToolUse.shell.fail`) of every recorded payload."""
    for agent in load_agents():
        for path in sorted((DATA / "payloads" / agent).glob("*.json")):
            if path.name != "expected.json" and not path.name.startswith("_"):
                yield agent, path.stem


def payload(agent: str, variant: str) -> bytes:
    return (DATA / "payloads" / agent / f"{variant}.json").read_bytes()


def delivery(agent: str, event: str, data: bytes, header: Mapping[str, str] | None = None) -> Delivery:
    return Delivery(KEY, {"agent": agent, "event": event, "at": NOW.isoformat(), **(header or {})}, data)


def event(agent: str, variant: str, header: Mapping[str, str] | None = None) -> Event:
    """The event that a recorded payload means."""
    made = normalise(an(agent), delivery(agent, event_name(agent, variant), payload(agent, variant), header), NOW)
    assert isinstance(made, Event)
    return made


def event_name(agent: str, variant: str) -> str:
    """The event of a variant: the longest of the agent's names that it begins with (a name may have dots)."""
    names = [name for name in an(agent).events if variant == name or variant.startswith(f"{name}.")]
    return max(names, key=len, default=variant.partition(".")[0])


def an(agent: str) -> Agent:
    return load_agents()[agent]
