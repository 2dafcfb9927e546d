"""Outcomes of tool calls in a rollout: one JSON object a line, of which `item_completed` messages matter here.

A `CommandExecution` has its exit code, a `FileChange` the files by absolute path; the id of the item is the call id of
the hook's payload. The line is written before the hook runs. Lines that are cut, foreign or of other kinds are passed
over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vaultd.agents.payload import lookup, parse, text
from vaultd.core.event import FileTouch

__all__ = ["Outcome", "outcomes"]

_ACTIONS = {"add": "create", "update": "edit", "delete": "delete"}
_MARK = b'"item_completed"'


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended. `failed` is None while it is not known; `output` is what it printed, untrusted, unbounded."""

    exit_code: int | None = None
    failed: bool | None = None
    files: tuple[FileTouch, ...] = ()
    output: str = ""


def outcomes(data: bytes) -> Mapping[str, Outcome]:
    """The outcomes in a rollout or its last bytes, by call id; a later line about the same call counts."""
    found: dict[str, Outcome] = {}
    for line in data.split(b"\n"):
        if _MARK not in line:
            continue
        record = parse(line)
        item = lookup(record, "payload.item")
        if lookup(record, "payload.type") == "item_completed" and isinstance(item, Mapping):
            call_id = text(item.get("id"))
            if call_id and (outcome := _outcome(item)) is not None:
                found[call_id] = outcome
    return found


def _outcome(item: Mapping[str, Any]) -> Outcome | None:
    """The outcome of one completed item; None for one that is no call."""
    kind, code, status = item.get("type"), item.get("exit_code"), item.get("status")
    exit_code = code if isinstance(code, int) and not isinstance(code, bool) else None
    if kind == "CommandExecution":
        known = exit_code is not None or status in ("completed", "failed", "declined")
        failed = (exit_code != 0 if exit_code is not None else status != "completed") if known else None
        return Outcome(exit_code, failed, output=text(item.get("aggregated_output")))
    if kind == "FileChange":
        return Outcome(None, status != "completed", files=_files(item.get("changes")), output=text(item.get("stderr")))
    return None


def _files(changes: object) -> tuple[FileTouch, ...]:
    """The files of a change, by absolute path; a move is a deletion and a creation."""
    touches: list[FileTouch] = []
    for path, change in changes.items() if isinstance(changes, Mapping) else ():
        action = _ACTIONS.get(text(lookup(change, "type")), "edit") if isinstance(change, Mapping) else "edit"
        target = text(lookup(change, "move_path")) if isinstance(change, Mapping) else ""
        if target:
            touches += [FileTouch(text(path), "delete"), FileTouch(target, "create")]
        else:
            touches.append(FileTouch(text(path), action))
    return tuple(touches)
