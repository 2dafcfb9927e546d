"""What the scripted agents do in the checkout, and how a handed-over text is recognised in what the model was sent.

A piece of work is a prompt with a word that occurs nowhere else, an edit of `price.py`, and `python3 check_price.py`,
which fails. The word is the mark: a request of another session that holds it can have it from a handoff only.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.fake_wire import Json

FILES = {
    "price.py": "def total(prices):\n    return sum(prices)\n",
    "check_price.py": 'from price import total\n\ngot = total([0.1, 0.2])\nassert got == 0.3, f"total is {got}"\n',
}
"""The checkout. The check fails before and after the edit."""

EDITED = "price.py"
COMMAND = "python3 check_price.py"
FAILURE = "AssertionError: total is 0.30000000000000004"

PATCH = """\
*** Begin Patch
*** Update File: price.py
@@
-    return sum(prices)
+    return float(sum(prices))
*** End Patch"""


def word() -> str:
    """A word that occurs nowhere else."""
    return f"mark{uuid.uuid4().hex[:10]}"


def edit(agent: str, checkout: Path) -> list[Json]:
    """The entries of a scenario that edit `price.py` as that agent does it."""
    if agent == "codex":
        return [{"patch": PATCH}]
    path = str(checkout / EDITED)
    change = {"file_path": path, "old_string": "return sum(prices)", "new_string": "return float(sum(prices))"}
    return [{"tool": "Read", "input": {"file_path": path}}, {"tool": "Edit", "input": change}]


def work(agent: str, checkout: Path) -> list[Json]:
    """A whole turn: the edit, the failing command, and a last word."""
    return [*edit(agent, checkout), {"shell": COMMAND}, {"text": "The check still fails, the sum is not exact."}]


LOOK: list[Json] = [{"shell": "git log --oneline"}, {"text": "That is all so far."}]
"""A turn that changes nothing but calls a tool, so that its session keeps what it was handed."""

SILENT: list[Json] = [{"text": "Hello."}]
"""A turn without a tool call: a session of one such turn did nothing."""


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)


def pieces(request: Json, mark: str) -> list[str]:
    """The texts in a request that hold the mark, whole."""
    return [text for text in _strings(request["body"]) if mark in text]


def main_requests(requests: Iterable[Json]) -> list[Json]:
    """The requests of a conversation: titles and summaries, which offer no tools or ask for JSON, left out."""
    return [request for request in requests if request["tools"] and not _asks_for_json(request["body"])]


def _asks_for_json(body: Json) -> bool:
    holder = body.get("text") or body.get("output_config") or {}
    return bool((holder.get("format") or {}).get("schema"))
