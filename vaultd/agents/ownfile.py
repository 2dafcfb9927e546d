"""Files that are wholly ours in an agent's folder: hook programs, plugins, skills. Pure, but for reading what ships."""

from __future__ import annotations

import functools
import json
import shlex
from pathlib import Path

from vaultd.agents.blocktext import own_mark
from vaultd.agents.edits import EditError
from vaultd.agents.model import Agent

__all__ = ["is_own", "own_text", "replaced"]


def own_text(agent: Agent, template: str, hook: Path, event: str = "") -> str:
    """What a file says that is made from a template; `event` is "" where one file is for all."""
    text = _shipped(template).replace("@COMMON@\n", _shipped("common.ts"))
    for mark, value in (
        ("@HOOK_SH@", shlex.quote(str(hook))),
        ("@HOOK_JS@", json.dumps(str(hook))),
        ("@AGENT@", agent.id),
        ("@EVENT@", event),
    ):
        text = text.replace(mark, value)
    return text


def is_own(text: str, agent: Agent | None = None) -> bool:
    """Whether a file is ours, as its first lines say; with `agent` also, whether it is this one's."""
    return own_mark in text[:400] and (agent is None or f"{own_mark} for {agent.id};" in text[:400])


def replaced(text: str, wanted: str, agent: Agent | None = None) -> str:
    """What a file should say; EditError when it says something that is not ours, or is another agent's."""
    if text.strip() and not is_own(text):
        raise EditError("it is not vaultd's file: it was there before")
    if text.strip() and not is_own(text, agent):
        raise EditError("it is another agent's already: both have one folder")
    return wanted


@functools.cache
def _shipped(name: str) -> str:
    return (Path(__file__).parent / "plugins" / name).read_text("utf-8")
