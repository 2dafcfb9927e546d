"""Is an agent wired, trusted, firing? What is wrong with it, each with what mends it. Only reads.

The last question is the one that counts: an agent's transcript grows although no event comes. A transcript is written
at each step of a conversation, and so are events; that one is behind the other for long means that hooks do not run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from vaultd.agents import Agent, edits
from vaultd.agents.edits import EditError
from vaultd.agents.hookfile import Entry, entries
from vaultd.agents.trust import Verdict, trust_verdicts
from vaultd.config import Places
from vaultd.core.event import Kind
from vaultd.engine.foreign import agent_path, read_foreign
from vaultd.engine.installed import Installed
from vaultd.engine.parts import Part, hook_parts
from vaultd.errors import RefusedError
from vaultd.store import transcripts

__all__ = ["Problem", "check", "newest_transcript"]

_LAG = timedelta(seconds=120)  # a transcript that is so much newer than the last event
_SURE = timedelta(minutes=15)  # and so much: no model thinks for so long
_STILL = timedelta(seconds=60)  # between the two it must have been still for so long: a tool may be about to run
_STALE = timedelta(days=7)  # an event that always comes and has not, while prompts did


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong (no full stop), and what mends it (a sentence)."""

    text: str
    mend: str


def check(
    agent: Agent,
    places: Places,
    environ: Mapping[str, str],
    now: datetime,
    seen: Mapping[str, Mapping[str, Any]],
    *,
    paused: bool = False,
) -> list[Problem]:
    """What is wrong with an agent that is wired; the cause before its effects.

    `seen` tells by event name what was heard of it: `last` (RFC 3339) and `count`. While recording is `paused` no
    silence is one.
    """
    problems = list(_switches(agent, places, environ))
    parts = hook_parts(agent, places, environ)
    found: list[Entry] = []
    stale = False
    for part in parts:
        try:
            text = (read_foreign(part.path) or b"").decode("utf-8")
            if part.whole:
                problems += _own_file(agent, part, text)
            elif part.uses:
                problems += _setting(agent, part, text)
            else:
                found += entries(agent, text)
                stale = stale or part.enter(text) != text
        except (RefusedError, UnicodeDecodeError, EditError) as error:
            told = str(error).rstrip(".")
            problem = Problem(f"{part.path} cannot be read, by {agent.title} neither: {told}", "Mend that file.")
            return [*problems, problem]
    path = parts[0].path if parts else agent_path(agent, places, environ, "")
    if not parts or not parts[0].whole:
        problems += _entries(agent, path, found)
        problems += _programs(agent, places, found)
        if stale and not problems:
            problems.append(Problem(f"its hooks in {path} are not as this release writes them", _install(agent)))
        problems += _trust(agent, places, environ, path, found, seen)
    if not paused:
        problems += _missing(agent, seen, now)
        problems += _growth(agent, places, environ, path, seen, now)
    return problems


def _own_file(agent: Agent, part: Part, text: str) -> Iterator[Problem]:
    """A file that should be ours."""
    if not part.holds(text):
        yield Problem(f"its hook {part.path} is gone" if not text else f"{part.path} is not vaultd's", _install(agent))
    elif part.enter(text) != text:
        yield Problem(f"its hook {part.path} is not as this release writes it", _install(agent))
    elif part.executable and not os.access(part.path, os.X_OK):
        yield Problem(f"the hook {part.path} cannot be run (not executable)", _install(agent))


def _setting(agent: Agent, part: Part, text: str) -> Iterator[Problem]:
    """What should make the agent use files of ours."""
    if part.enter(text) != text:
        yield Problem(f"{part.path} does not say that its hooks are to be used", _install(agent))


def _switches(agent: Agent, places: Places, environ: Mapping[str, str]) -> Iterator[Problem]:
    """Settings of the agent that keep all hooks from running."""
    for switch in agent.hooks.switches if agent.hooks is not None else ():
        path = agent_path(agent, places, environ, switch.file)
        value = _settings(path, switch.format)
        for key in switch.path:
            value = value.get(key) if isinstance(value, Mapping) else None
        if value is switch.off:
            name = ".".join(switch.path)
            state = json.dumps(switch.off)
            yield Problem(
                f"all its hooks are switched off ({name} is {state} in {path})", f"Take {name} out of {path}."
            )


def _entries(agent: Agent, path: Path, found: Sequence[Entry]) -> Iterator[Problem]:
    """Entries that should be in the configuration and are not."""
    there = {entry.event for entry in found}
    missing = [spec.name for spec in agent.wired if spec.name not in there]
    if missing and not found:
        yield Problem(f"its hooks are gone from {path}", _install(agent))
    elif missing:
        yield Problem(f"{path} lacks the hooks for {', '.join(missing)}", _install(agent))
    if off := [entry.event for entry in found if entry.off]:
        yield Problem(f"its hooks for {', '.join(off)} are switched off in {path}", f"Set `enabled` to true in {path}.")


def _programs(agent: Agent, places: Places, found: Sequence[Entry]) -> Iterator[Problem]:
    """Hook programs that are not there, cannot be run, or are not the installed one."""
    for program in dict.fromkeys(entry.program for entry in found):
        path = Path(program)
        mend = "Run `vaultd up`." if path == places.hook else _install(agent)
        if not path.is_file():
            yield Problem(f"the hook {path} is missing", mend)
        elif not os.access(path, os.X_OK):
            yield Problem(f"the hook {path} cannot be run (not executable)", mend)
        elif path != places.hook and not (places.hook.is_file() and path.samefile(places.hook)):
            yield Problem(f"its hooks start {path}, not {places.hook}", mend)


def _trust(
    agent: Agent,
    places: Places,
    environ: Mapping[str, str],
    path: Path,
    found: Sequence[Entry],
    seen: Mapping[str, Any],
) -> Iterator[Problem]:
    """Hooks that the agent does not run because nobody trusted them as they are."""
    if not agent.trust.style or not found:
        return
    record = agent_path(agent, places, environ, agent.trust.file)
    try:
        text = (read_foreign(record) or b"").decode("utf-8")
    except (RefusedError, UnicodeDecodeError):
        text = "="  # no TOML: unknown
    names = [str(path), str(Path(os.path.realpath(path.parent)) / path.name)]
    verdicts = trust_verdicts(agent, names, found, text)
    changed = path.stat().st_mtime
    for verdict in (Verdict.UNTRUSTED, Verdict.CHANGED, Verdict.DISABLED, Verdict.UNKNOWN):
        events = [event for event, given in verdicts.items() if given is verdict]
        if verdict is Verdict.CHANGED:
            # an event that came since the file was written shows that the agent does run it, however it hashes
            events = [event for event in events if (last := _last(seen, event)) is None or last.timestamp() < changed]
        if events and verdict is Verdict.UNKNOWN:
            yield Problem(f"whether its hooks are trusted is unknown: {record} cannot be read", f"Mend {record}.")
        elif events:
            which = "its hooks are" if len(events) == len(found) else f"its hooks for {', '.join(events)} are"
            yield Problem(
                f"{which} {verdict}, so it does not run them and says nothing",
                f"{agent.trust.mend[:1].upper()}{agent.trust.mend[1:]}.",
            )


def _missing(agent: Agent, seen: Mapping[str, Mapping[str, Any]], now: datetime) -> Iterator[Problem]:
    """Events that always come with prompts and did not."""
    prompts = [spec.name for spec in agent.wired if spec.kind is Kind.PROMPT]
    asked = sum(_count(seen, name) for name in prompts)
    latest = max((last for name in prompts if (last := _last(seen, name)) is not None), default=None)
    for spec in agent.wired:
        if not spec.missing_after or latest is None or asked < spec.missing_after:
            continue
        last = _last(seen, spec.name)
        if last is None:
            yield Problem(f"{asked} prompts came and never a {spec.name}", _restart(agent))
        elif latest - last > _STALE and now - latest > timedelta(hours=1):
            text = f"no {spec.name} came since {_shown(last, now)}, though prompts did until {_shown(latest, now)}"
            yield Problem(text, _restart(agent))


def _growth(
    agent: Agent, places: Places, environ: Mapping[str, str], path: Path, seen: Mapping[str, Any], now: datetime
) -> Iterator[Problem]:
    """A transcript that grows while no event comes."""
    newest = newest_transcript(agent, places, environ)
    if newest is None:
        return
    grown = datetime.fromtimestamp(newest.at, now.tzinfo)
    last = max((last for name in seen if (last := _last(seen, name)) is not None), default=None)
    wired = Installed.of(places).since(agent.id) or _modified(path, now)
    known = [time for time in (last, wired) if time is not None]
    if not known:
        return
    lag = grown - max(known)
    if lag > _SURE or (lag > _LAG and now - grown > _STILL):
        heard = f"the last event came {_shown(last, now)}" if last else "no event ever came"
        text = f"a transcript grew {_shown(grown, now)} to {newest.size} bytes but {heard} ({newest.path})"
        yield Problem(text, _restart(agent))


def newest_transcript(agent: Agent, places: Places, environ: Mapping[str, str]) -> transcripts.Growth | None:
    """The transcript of an agent that grew last; None when there is none, or it is not known where they are."""
    told = agent.transcripts
    if not told.pattern:
        return None
    folder = agent_path(agent, places, environ, told.folder, told.home)
    return transcripts.newest(folder, told.pattern.replace("{session}", "*"))


def _settings(path: Path, kind: str) -> Any:
    """A configuration file's content; None when it cannot be read (that is told elsewhere)."""
    try:
        return edits.read(kind, (read_foreign(path) or b"").decode("utf-8"))
    except (RefusedError, UnicodeDecodeError, EditError):
        return None


def _install(agent: Agent) -> str:
    return f"Run `vaultd connect {agent.id}`."


def _restart(agent: Agent) -> str:
    """What helps when entries are there but hooks do not run."""
    restart = agent.hooks.restart if agent.hooks is not None else ""
    return f"First {restart or f'start {agent.title} again'}; if that does not help, run `vaultd connect {agent.id}`."


def _last(seen: Mapping[str, Mapping[str, Any]], name: str) -> datetime | None:
    """When an event was heard of last; None for never."""
    try:
        at = datetime.fromisoformat(str(seen[name]["last"]))
    except (KeyError, ValueError):
        return None
    return at if at.tzinfo is not None else at.astimezone()


def _count(seen: Mapping[str, Mapping[str, Any]], name: str) -> int:
    """How often an event was heard of."""
    count = seen.get(name, {}).get("count", 0)
    return count if isinstance(count, int) else 0


def _modified(path: Path, now: datetime) -> datetime | None:
    """When a file was last changed; None when it is missing."""
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, now.tzinfo)
    except OSError:
        return None


def _shown(at: datetime, now: datetime) -> str:
    """A time as a person reads it, in the zone of `now`."""
    return f"{at.astimezone(now.tzinfo):%Y-%m-%d %H:%M:%S}"
