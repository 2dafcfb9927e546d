"""Putting ours into agents' files: one plan for any number of parts, which can be printed before it is carried out.

A file that cannot be edited safely, or is read-only, is refused and left, with what to put in by hand; the others are
done. Taking everything out again is `uninstall.py`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vaultd.agents import Agent
from vaultd.agents.edits import EditError
from vaultd.config import Config, Places
from vaultd.engine.foreign import FileChange, Plan, agent_path, permissions, read_foreign, why_managed, why_no_room
from vaultd.engine.installed import Installed
from vaultd.engine.parts import Part, parts_of
from vaultd.errors import RefusedError

__all__ = ["Refused", "enter_plan", "is_connected", "is_found", "single_plan"]


@dataclass(frozen=True, slots=True)
class Refused:
    """A part that cannot be put in, why, and what a person can do by hand."""

    part: Part
    reason: str

    @property
    def text(self) -> str:
        """All of it, for a person."""
        again = f"Mend that and run `vaultd connect {self.part.agent.id}` again, or add this to it yourself:"
        return f"{self.part.path} {self.reason}.\n{again}\n{self.part.paste()}"


def is_found(agent: Agent, places: Places, environ: Mapping[str, str]) -> bool:
    """Whether an agent is on this machine: its program in PATH, or its folder where it keeps its settings. One that is
    wired only on request counts as not found.
    """
    if agent.client.on_request:
        return False
    if any(shutil.which(name, path=environ.get("PATH", "")) for name in agent.client.programs):
        return True
    folder = agent_path(agent, places, environ, "")
    moved = bool(agent.home.env and environ.get(agent.home.env, "").strip())  # agents may share a variable
    return not moved and folder != places.home and folder.is_dir()


def is_connected(agent: Agent, config: Config) -> bool:
    """Whether all that there is for an agent is in its files; what cannot be read counts as in."""
    for part in parts_of(agent, config):
        try:
            if not part.holds((read_foreign(part.path) or b"").decode("utf-8")):
                return False
        except (RefusedError, UnicodeDecodeError, EditError):
            continue
    return True


def enter_plan(parts: Iterable[Part], places: Places) -> tuple[Plan, list[Refused]]:
    """What it takes to put these parts in, and what cannot be. No changes for what is in already. RefusedError when a
    newer vaultd was here.
    """
    Installed.of(places).refuse_newer()
    changes: dict[Path, FileChange] = {}
    refused: list[Refused] = []
    notes: dict[str, None] = {}
    for part in parts:
        if part.name == "instructions" and any(r.part.agent is part.agent and r.part.name == "mcp" for r in refused):
            continue  # they would speak of tools that are not there
        earlier = changes.get(part.path)
        try:
            change = _entered(part, earlier)
        except _Refusal as refusal:
            refused.append(Refused(part, str(refusal)))
            continue
        if change is None:
            notes[f"{part.agent.title}: {_WORDS[part.name]} already ({part.path})."] = None
        else:
            changes[part.path] = change
            notes.update(dict.fromkeys(_notes(part, change)))
    return Plan(changes=tuple(changes.values()), notes=tuple(notes)), refused


def single_plan(parts: Sequence[Part], places: Places) -> Plan:
    """As `enter_plan`, for one agent: RefusedError with the reason when any part cannot be put in."""
    plan, refused = enter_plan(parts, places)
    if refused:
        raise RefusedError("\n".join(one.text for one in refused))
    return plan


_WORDS = {
    "hooks": "its hooks are wired",
    "mcp": "vaultd is one of its MCP servers",
    "instructions": "its instructions speak of vaultd",
}


class _Refusal(Exception):
    """Why one part cannot be put in; follows the path in a sentence."""


def _entered(part: Part, earlier: FileChange | None) -> FileChange | None:
    """The change that puts a part in, after an earlier change of the same file; None when it is in."""
    try:
        before = read_foreign(part.path) if earlier is None else earlier.after
        after = part.enter((before or b"").decode("utf-8")).encode("utf-8")
    except (UnicodeError, EditError) as error:
        raise _Refusal(f"cannot be edited safely ({error})") from error
    except RefusedError as error:
        raise _Refusal(f"cannot be read: {error}") from error
    if before == after:
        return None
    if earlier is not None:
        return replace(earlier, after=after)
    target = Path(os.path.realpath(part.path))
    reason = why_managed(target) or (why_no_room(part.path.parent) if before is not None else "")
    if reason:
        raise _Refusal(f"cannot be changed: {reason}")
    mode = 0o755 if part.executable else permissions(target)
    return FileChange(part.record, part.path, target, before, after, mode, entering=True)


def _notes(part: Part, change: FileChange) -> Iterator[str]:
    """What a person should know about a change before it is made."""
    agent = part.agent
    if str(change.target) != os.path.abspath(change.path):  # noqa: PTH100  # to compare without following links
        yield f"{change.path} leads to {change.target}: the change is made there (commit it if you keep it in git)."
    if part.name == "hooks" and agent.trust.style:
        yield f"{agent.title} runs a new hook only once you trust it: {agent.trust.mend}."
    restart = agent.mcp.restart if part.name == "mcp" and agent.mcp and agent.mcp.restart else ""
    restart = restart or (agent.hooks.restart if agent.hooks else "")
    if restart and part.name != "instructions":
        yield f"{agent.title}: it takes effect when you {restart}."
