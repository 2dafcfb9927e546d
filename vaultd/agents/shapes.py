"""The forms in which agents take text. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from vaultd.agents.model import Agent
from vaultd.core.prepared import Prepared
from vaultd.core.sanitize import Clean

__all__ = ["SHAPES", "render"]

SHAPES: Mapping[str, Any] = {
    "plain": "{text}",
    "session-start-json": {
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "{text}"},
    },
    "post-tool-json": {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "{text}"}},
    "additional-context-json": {"additionalContext": "{text}"},
    "context-modification-json": {"cancel": False, "contextModification": "{text}"},
}
"""By name: the JSON value that is printed, with `{text}` where the text goes; `plain` is the text itself. An agent's
own file may have more.
"""


def render(agent: Agent, shape: str, context: Clean) -> Prepared:
    """The exact bytes that a hook prints to put `context` before the model. KeyError for a shape nobody knows."""
    form = agent.shapes[shape] if shape in agent.shapes else SHAPES[shape]
    if form == "{text}":
        return Prepared(context.encode())
    return Prepared(json.dumps(_filled(form, context), ensure_ascii=False).encode() + b"\n")


def _filled(form: Any, text: str) -> Any:
    """A form with the text in its place."""
    if isinstance(form, Mapping):
        return {key: _filled(value, text) for key, value in form.items()}
    if isinstance(form, list):
        return [_filled(value, text) for value in form]
    return text if form == "{text}" else form
