"""What recorded payloads mean, kept beside them as `expected.json`: to be read through by whoever records.

python -m tests.agents.expected AGENT        # writes it; look at every line of the change
"""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import Any

from tests.agents.recorded import DATA, event, recordings
from vaultd.core.event import Event

__all__ = ["expectations", "meaning"]

_PARTS = ("text", "source", "reason", "subagent")


def meaning(found: Event) -> dict[str, Any]:
    """What an event says beyond its session and place, without what is empty."""
    told: dict[str, Any] = {"kind": str(found.kind)}
    told |= {name: value for name in _PARTS if (value := getattr(found, name))}
    if found.tool is not None:
        call = dataclasses.asdict(found.tool)
        call["files"] = [f"{touch['action']} {touch['path']}" for touch in call["files"]]
        told["tool"] = {name: value for name, value in call.items() if value not in ("", None, [], ())}
    return told


def expectations(agent: str) -> dict[str, Any]:
    """What is written down for an agent's recordings, by variant."""
    found: dict[str, Any] = json.loads((DATA / "payloads" / agent / "expected.json").read_text("utf-8"))
    return found


def main(agent: str) -> None:
    """Write what the recordings of an agent mean at present."""
    told = {variant: meaning(event(name, variant)) for name, variant in recordings() if name == agent}
    text = json.dumps(told, ensure_ascii=False, indent=1, sort_keys=True)
    (DATA / "payloads" / agent / "expected.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
