"""Taking vaultd out again: entries out of agents' configuration, and what it keeps outside the vault.

A file that nobody else changed since gets back the very bytes it had; from any other only our entries go. The vault is
never touched.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from vaultd.agents import Agent, load_agents
from vaultd.agents.edits import EditError
from vaultd.agents.hookfile import later_groups
from vaultd.config import Config, Places
from vaultd.engine.foreign import FileChange, Plan, permissions, read_foreign, why_managed
from vaultd.engine.installed import Installed, Row
from vaultd.engine.parts import PARTS, Part, parts_of
from vaultd.errors import RefusedError
from vaultd.store import fs

__all__ = ["uninstall_plan"]


def uninstall_plan(
    agents: Sequence[Agent], config: Config, *, everything: bool = True, names: Iterable[str] = PARTS
) -> Plan:
    """What it takes to take out these agents' parts and, with `everything`, all that is outside the vault.

    RefusedError, and nothing is done, when a file with entries of ours cannot be edited safely.
    """
    record = Installed.of(config.places)
    record.refuse_newer()
    changes: dict[Path, FileChange] = {}
    rows: list[Row] = []
    notes: list[str] = []
    used = _used_by_others(agents, config, record)
    parts = [part for agent in agents for part in _all_parts(agent, config, record, names) if _place(part) not in used]
    # What makes an agent use files of ours goes before these do.
    for path in dict.fromkeys(part.path for part in sorted(parts, key=lambda part: not part.uses)):
        change = _taken_out([part for part in parts if part.path == path], path, record, notes)
        if change is not None:
            changes[path] = change
        left = change.after if change is not None else read_foreign(path) if path.is_file() else None
        if not _holds_others(path, left, agents, config):
            rows += [row for row in record.rows if row.file == str(path)]
    copies = tuple(Path(row.backup) for row in rows if row.backup and record.copy(row) is not None)
    forget = tuple(dict.fromkeys(Path(row.file) for row in rows))
    made = sorted({Path(folder) for row in rows for folder in row.made}, key=lambda path: len(path.parts), reverse=True)
    rest = _outside_the_vault(config.places) if everything else Plan()
    return Plan(
        changes=tuple(changes.values()),
        copies=copies,
        forget=forget,
        files=rest.files,
        trees=rest.trees,
        folders=(*made, *rest.folders),
        notes=(*notes, *rest.notes),
    )


def _all_parts(agent: Agent, config: Config, record: Installed, names: Iterable[str]) -> Iterator[Part]:
    """An agent's parts where they would be now, and where they were put while a variable said otherwise."""
    now = parts_of(agent, config, names)
    yield from now
    files = {str(part.path) for part in now}
    for file in dict.fromkeys(row.file for row in record.rows if row.agent.partition(" ")[0] == agent.id):
        if file not in files:
            yield from (replace(part, path=Path(file)) for part in now if part.path.name == Path(file).name)


def _place(part: Part) -> tuple[Path, str]:
    return part.path, part.name


def _used_by_others(agents: Sequence[Agent], config: Config, record: Installed) -> set[tuple[Path, str]]:
    """Parts that agents which stay connected have in common with those that go."""
    gone = {agent.id for agent in agents}
    kept = {row.agent.partition(" ")[0] for row in record.rows} - gone
    known = load_agents()
    return {_place(part) for name in kept if name in known for part in parts_of(known[name], config)}


def _holds_others(path: Path, left: bytes | None, agents: Sequence[Agent], config: Config) -> bool:
    """Whether a file still holds something of ours, which what is kept about it is needed for."""
    for agent in agents:
        for part in parts_of(agent, config):
            if part.path == path and left is not None and part.word.encode() in left:
                try:
                    if part.holds(left.decode("utf-8")):
                        return True
                except (UnicodeError, EditError):
                    return True
    return False


def _taken_out(parts: list[Part], path: Path, record: Installed, notes: list[str]) -> FileChange | None:
    """The change that takes our parts out of one file; None when it holds none of them."""
    if path.exists() and not path.is_file():
        return None  # nothing of ours is in what is no file
    before = read_foreign(path)
    if before is None:
        return None
    by_hand = f"Take out what has `{parts[0].word}` in it yourself and try again."
    try:
        text = before.decode("utf-8")
        held = [part for part in parts if part.holds(text)]
        if not held:
            return None
        after = _without(held, before, record)
        first = held[0]
        if first.name == "hooks" and not first.whole and first.agent.trust.style and later_groups(first.agent, text):
            title = first.agent.title
            notes.append(f"{title} will ask again about hooks of others that stand after vaultd's in {path}.")
    except (UnicodeError, EditError) as error:
        if not any(part.word.encode() in before for part in parts):
            return None
        raise RefusedError(f"{path} cannot be edited safely ({error}). {by_hand}") from error
    target = Path(os.path.realpath(path))
    if reason := why_managed(target):
        raise RefusedError(f"{path} is looked after by something else: {reason}. {by_hand}")
    return FileChange(held[0].record, path, target, before, after, permissions(target), entering=False)


def _without(parts: list[Part], before: bytes, record: Installed) -> bytes | None:
    """What a file holds once our parts are out; None when it goes because it was ours alone."""
    path, first = parts[0].path, parts[0]
    text: str | None = before.decode("utf-8")
    first_copy = _first_copy(record, path)
    for part in parts:
        text = part.leave(text, first_copy) if text is not None else None
    known, original = record.original(path, before)
    theirs = original is None or not _held(parts, original)  # a copy made between two changes of ours holds ours
    if known and theirs and (original is None or text is None or ("vaultd" in text) == (b"vaultd" in original)):
        return original  # unless another part of ours is to stay
    rows = [row for row in record.rows if row.file == str(path)]
    if text is None:
        empty = not rows or any(row.before is None for row in rows) or first.whole
        return None if empty and (rows or first.whole) else _EMPTY.get(first.format, b"")
    left = text.encode("utf-8")
    # We ended a last line that nothing ended: that goes too.
    for end in (b"\r\n", b"\n"):
        if left.endswith(end) and fs.revision(left.removesuffix(end)) in {row.before for row in rows}:
            return left.removesuffix(end)
    return left


def _held(parts: list[Part], data: bytes) -> bool:
    """Whether any of these parts is in a text."""
    try:
        return any(part.holds(data.decode("utf-8")) for part in parts)
    except (UnicodeError, EditError):
        return True


def _first_copy(record: Installed, path: Path) -> str:
    """What a file held before we changed it first; "" when that is not known."""
    row = next((row for row in record.rows if row.file == str(path)), None)
    copy = record.copy(row) if row is not None else None
    return (copy or b"").decode("utf-8", "replace")


_EMPTY = {"json": b"{}\n", "jsonc": b"{}\n"}


def _outside_the_vault(places: Places) -> Plan:
    """What vaultd keeps outside the vault. A person's settings and waiting events stay."""
    notes = []
    if places.settings.exists():
        notes.append(f"{places.settings} is yours and stays; remove it if you do not want it.")
    spooled = list(places.spool.rglob("*")) if places.spool.is_dir() else []
    waiting = sum(1 for path in spooled if not path.is_dir())
    if waiting:
        notes.append(f"{waiting} events wait in {places.spool} and stay; `vaultd ingest` takes them into the vault.")
    own = (
        places.hook,
        Installed.of(places).path,
        places.pointer,
        places.token,
        places.state / "paused",
    )
    files = [path for path in own if path.exists()]
    folders = [path for path in sorted(spooled, reverse=True) if path.is_dir()]
    for folder in (places.spool, places.data, places.state, places.config, places.cache):
        folders += [folder] if folder == places.spool else [folder, *_parents(folder, places.home)]
    trees = (places.cache,) if places.cache.is_dir() and not places.cache.is_symlink() else ()
    return Plan(files=tuple(files), trees=trees, folders=tuple(folders), notes=tuple(notes))


def _parents(folder: Path, home: Path) -> list[Path]:
    """The folders between one of ours and the home folder: they may have been made for ours, and go when empty."""
    return [parent for parent in folder.parents if parent != home and parent.is_relative_to(home)]
