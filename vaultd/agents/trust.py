"""How agents record that a person trusted a hook, read from their configuration. Pure; nothing is ever written there.

Style `hook-state-toml`: a table `[hooks.state."<file>:<event>:<group>:<handler>"]` with `trusted_hash` and `enabled`;
the event is in snake case, the numbers count from 0, the file is named as the agent found it (links not resolved). The
hash is `sha256:` and the digest of the handler as JSON with sorted keys and without spaces. All of it was compared with
the agent's own listing of its hooks.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from vaultd.agents.hookfile import Entry
from vaultd.agents.model import Agent

__all__ = ["Verdict", "trust_verdicts"]


class Verdict(StrEnum):
    """What an agent's record says about one hook."""

    TRUSTED = "trusted"
    UNTRUSTED = "not trusted"
    CHANGED = "changed since it was trusted"
    DISABLED = "switched off"
    UNKNOWN = "unknown"


def trust_verdicts(agent: Agent, files: Sequence[str], entries: Sequence[Entry], record: str) -> dict[str, Verdict]:
    """By event: what the record (the text of the agent's trust file) says about our entries.

    `files` are the names under which the agent may have recorded the hook file. All are TRUSTED where an agent asks
    nobody, all UNKNOWN where the record cannot be read.
    """
    if not agent.trust.style:
        return {entry.event: Verdict.TRUSTED for entry in entries}
    try:
        table: Any = tomllib.loads(record)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {entry.event: Verdict.UNKNOWN for entry in entries}
    for key in ("hooks", "state"):
        table = table.get(key) if isinstance(table, Mapping) else None
    states = {str(key).strip(): value for key, value in table.items()} if isinstance(table, Mapping) else {}
    return {entry.event: _verdict(agent, files, entry, states) for entry in entries}


def _verdict(agent: Agent, files: Sequence[str], entry: Entry, states: Mapping[str, Any]) -> Verdict:
    """What the states say about one entry."""
    label = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", entry.event).lower()
    for file in files:
        state = states.get(f"{file}:{label}:{entry.group}:{entry.handler}")
        if not isinstance(state, Mapping):
            continue
        if state.get("enabled") is False:
            return Verdict.DISABLED
        trusted = state.get("trusted_hash")
        if isinstance(trusted, str):
            same = not entry.plain or entry.timeout is None or trusted == _hash(agent, entry, label)
            return Verdict.TRUSTED if same else Verdict.CHANGED
    return Verdict.UNTRUSTED


def _hash(agent: Agent, entry: Entry, label: str) -> str:
    """The hash that the agent makes of an entry that is as vaultd wrote it."""
    spec = agent.events.get(entry.event)
    timeout = int(entry.timeout or 0)
    if spec is not None and spec.timeout_max:
        timeout = min(timeout, spec.timeout_max)
    handler = {"type": "command", "command": entry.command, "timeout": timeout, "async": False}
    identity = {"event_name": label, "hooks": [handler]}
    data = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(data.encode()).hexdigest()
