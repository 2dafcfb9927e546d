"""Taking vaultd out again: entries out of agents' configuration, and what it keeps outside the vault.

A file that nobody else changed since gets back the very bytes it had; from any other only our entries go. The vault is
never touched.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from vaultd.agents import Agent
from vaultd.agents.hookfile import entries, later_groups, removed
from vaultd.agents.jsontext import JsonError
from vaultd.config import Places
from vaultd.engine.foreign import (
    FileChange,
    Plan,
    apply,
    config_path,
    mcp_path,
    permissions,
    read_foreign,
    why_managed,
)
from vaultd.engine.installed import Installed
from vaultd.engine.mcpwiring import mcp_removal, record_name
from vaultd.errors import RefusedError

__all__ = ["apply", "uninstall_plan"]


def uninstall_plan(
    agents: Iterable[Agent], places: Places, environ: Mapping[str, str], *, everything: bool = True
) -> Plan:
    """What it takes to take out these agents' entries and, with `everything`, all that is outside the vault.

    RefusedError, and nothing is done, when a file with entries of ours cannot be edited safely.
    """
    record = Installed.of(places)
    record.refuse_newer()
    changes: list[FileChange] = []
    rows = []
    notes: list[str] = []
    for agent in agents:
        own = [row for row in record.rows if row.agent == agent.id]
        servers = [row for row in record.rows if row.agent == record_name(agent)]
        rows += [*own, *servers]
        found = [
            *(
                _taken_out(agent, path, record, notes)
                for path in dict.fromkeys([config_path(agent, places, environ), *(Path(row.file) for row in own)])
            ),
            *(
                mcp_removal(agent, path, record)
                for path in dict.fromkeys([mcp_path(agent, places, environ), *(Path(row.file) for row in servers)])
            ),
        ]
        changes += [change for change in found if change is not None]
    copies = tuple(Path(row.backup) for row in rows if row.backup and record.copy(row) is not None)
    forget = tuple(dict.fromkeys(Path(row.file) for row in rows))
    made = tuple(dict.fromkeys(Path(folder) for row in rows for folder in row.made))
    rest = _outside_the_vault(places) if everything else Plan()
    return Plan(
        changes=tuple(changes),
        copies=copies,
        forget=forget,
        files=rest.files,
        trees=rest.trees,
        folders=(*made, *rest.folders),
        notes=(*notes, *rest.notes),
    )


def _taken_out(agent: Agent, path: Path, record: Installed, notes: list[str]) -> FileChange | None:
    """The change that takes our entries out of a file; None when it holds none."""
    before = read_foreign(path)
    by_hand = f"Take out the entries with `vaultd-hook {agent.id}` yourself and try again."
    if before is None:
        return None
    try:
        text = before.decode("utf-8")
        if not entries(agent, text):
            return None
        after = _without_entries(agent, path, before, record)
        if agent.trust.style and later_groups(agent, text):
            notes.append(f"{agent.title} will ask again about hooks of others that stand after vaultd's in {path}.")
    except (UnicodeError, JsonError) as error:
        if b"vaultd-hook" not in before:
            return None
        raise RefusedError(f"{path} cannot be edited safely ({error}). {by_hand}") from error
    target = Path(os.path.realpath(path))
    reason = why_managed(target)
    if reason:
        raise RefusedError(f"{path} is looked after by something else: {reason}. {by_hand}")
    return FileChange(agent.id, path, target, before, after, permissions(target), entering=False)


def _without_entries(agent: Agent, path: Path, before: bytes, record: Installed) -> bytes | None:
    """What a file holds once our entries are out; None when it goes because it was ours alone."""
    known, original = record.original(path, before)
    if known and (original is None or not entries(agent, original.decode("utf-8"))):
        return original
    left = removed(agent, before.decode("utf-8"))
    if left is None and any(row.file == str(path) and row.before is None for row in record.rows):
        return None
    return (left if left is not None else "{}\n").encode("utf-8")


def _outside_the_vault(places: Places) -> Plan:
    """What vaultd keeps outside the vault. A person's settings and waiting events stay."""
    notes = []
    if places.settings.exists():
        notes.append(f"{places.settings} is yours and stays; remove it if you do not want it.")
    spooled = list(places.spool.rglob("*")) if places.spool.is_dir() else []
    waiting = sum(1 for path in spooled if not path.is_dir())
    if waiting:
        notes.append(f"{waiting} events wait in {places.spool} and stay; `vaultd ingest` takes them into the vault.")
    own = (places.hook, Installed.of(places).path, places.pointer, places.token, places.state / "paused")
    files = [path for path in own if path.exists()]
    folders = [path for path in sorted(spooled, reverse=True) if path.is_dir()]
    for folder in (places.spool, places.data, places.state, places.config, places.cache):
        folders += [folder] if folder == places.spool else [folder, *_parents(folder, places.home)]
    trees = (places.cache,) if places.cache.is_dir() and not places.cache.is_symlink() else ()
    return Plan(files=tuple(files), trees=trees, folders=tuple(folders), notes=tuple(notes))


def _parents(folder: Path, home: Path) -> list[Path]:
    """The folders between one of ours and the home folder: they may have been made for ours, and go when empty."""
    return [parent for parent in folder.parents if parent != home and parent.is_relative_to(home)]
