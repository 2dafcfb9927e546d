"""The forms in which agents take text at a session's start. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from vaultd.core.prepared import Prepared
from vaultd.core.sanitize import Clean

__all__ = ["render"]


def render(shape: str, context: Clean) -> Prepared:
    """The exact bytes that a hook prints to put `context` before the model. KeyError for a shape nobody knows."""
    return Prepared(_SHAPES[shape](context))


def _session_start_json(context: str) -> bytes:
    """`hookSpecificOutput.additionalContext` for the event SessionStart, one line."""
    output = {"hookEventName": "SessionStart", "additionalContext": context}
    return json.dumps({"hookSpecificOutput": output}, ensure_ascii=False).encode() + b"\n"


_SHAPES: Mapping[str, Callable[[str], bytes]] = {"session-start-json": _session_start_json}
