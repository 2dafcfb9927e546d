"""Reads an agent's TOML table into its typed form.

A key that is not known, or a style that no code answers to, is a fault of the file: ValueError at load, so a test finds
it and no user does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from vaultd.agents.model import (
    UNITS,
    Agent,
    CallFields,
    Client,
    ConfigFile,
    Errors,
    EventSpec,
    Fields,
    McpFile,
    Noise,
    Switch,
    ToolSpec,
    Transcripts,
    Trust,
)
from vaultd.core.event import Kind

__all__ = ["parse_agent"]

FAMILIES = frozenset({"shell", "edit", "read", "search", "agent", "mcp", "other"})
OUTCOMES = frozenset({"", "ok", "failed", "open", "batch"})
MOMENTS = frozenset({"", "start", "prompt"})
SHAPES = frozenset({"", "session-start-json"})
ENTRIES = frozenset({"matcher-groups"})
FORMATS = frozenset({"json", "jsonc", "toml"})
TRUSTS = frozenset({"", "hook-state-toml"})
TRANSCRIPT_FORMATS = frozenset({"", "rollout"})
ACTIONS = frozenset({"read", "edit"})


def parse_agent(table: Mapping[str, Any]) -> Agent:
    """The agent that a parsed TOML file describes. ValueError names what is wrong with it."""
    known = {f.name for f in fields(Agent)}
    _refuse_unknown("the top level", set(table), known)
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,31}", str(table.get("id", ""))):
        raise ValueError(f"id {table.get('id')!r} is not a short name in lower case")
    return Agent(
        id=table["id"],
        title=table["title"],
        inject_limit=int(table["inject_limit"]),
        client=Client(**_ready(Client, table["client"])),
        config=_config(table["config"]),
        fields=Fields(**_ready(Fields, table["fields"])),
        call=CallFields(**_ready(CallFields, table["call"])),
        events={name: _event(name, spec) for name, spec in table["events"].items()},
        tools=tuple(_tool(spec) for spec in table["tools"]),
        transcripts=_transcripts(table["transcripts"]),
        trust=_trust(table.get("trust", {})),
        errors=_errors(table.get("errors", {})),
        mcp=_mcp(table["mcp"]),
    )


def _event(name: str, table: Mapping[str, Any]) -> EventSpec:
    values = _ready(EventSpec, {"name": name, **table})
    values["kind"] = Kind(values["kind"])
    values["noise"] = tuple(
        Noise(n["starts"], re.compile(n["keep"], re.DOTALL) if "keep" in n else None) for n in values.get("noise", ())
    )
    spec = EventSpec(**values)
    _one_of(f"events.{name}.outcome", spec.outcome, OUTCOMES)
    _one_of(f"events.{name}.moment", spec.moment, MOMENTS)
    _one_of(f"events.{name}.shape", spec.shape, SHAPES)
    if not 1 <= spec.timeout <= (spec.timeout_max or 15):
        raise ValueError(f"events.{name}.timeout must be from 1 to {spec.timeout_max or 15} seconds")
    if spec.kind is Kind.PRE_TOOL and spec.wired:
        raise ValueError(f"events.{name}: no hook is wired before a tool call")
    return spec


def _config(table: Mapping[str, Any]) -> ConfigFile:
    values = _ready(ConfigFile, table)
    values["switches"] = tuple(Switch(**_ready(Switch, s)) for s in values.get("switches", ()))
    config = ConfigFile(**values)
    _one_of("config.entry", config.entry, ENTRIES)
    _one_of("config.format", config.format, FORMATS - {"toml"})
    _one_of("config.timeout_unit", config.timeout_unit, frozenset(UNITS))
    for switch in config.switches:
        _one_of("config.switches.format", switch.format, FORMATS)
    return config


def _mcp(table: Mapping[str, Any]) -> McpFile:
    found = McpFile(**_ready(McpFile, table))
    _one_of("mcp.format", found.format, FORMATS)
    if found.entry.keys() & {"command", "args"} or not found.path:
        raise ValueError("mcp: an entry's command and args are not told here, and its path is not empty")
    return found


def _tool(table: Mapping[str, Any]) -> ToolSpec:
    values = _ready(ToolSpec, table)
    if "created" in values:
        values["created"] = (values["created"]["path"], values["created"]["is"])
    if "exit_code" in values:
        values["exit_code"] = (values["exit_code"]["path"], re.compile(values["exit_code"]["pattern"]))
    spec = ToolSpec(**values)
    _one_of("tools.family", spec.family, FAMILIES)
    _one_of("tools.action", spec.action, ACTIONS)
    return spec


def _transcripts(table: Mapping[str, Any]) -> Transcripts:
    transcripts = Transcripts(**_ready(Transcripts, table))
    _one_of("transcripts.outcome", transcripts.outcome, TRANSCRIPT_FORMATS)
    return transcripts


def _trust(table: Mapping[str, Any]) -> Trust:
    trust = Trust(**_ready(Trust, table))
    _one_of("trust.style", trust.style, TRUSTS)
    return trust


def _errors(table: Mapping[str, Any]) -> Errors:
    values = _ready(Errors, table)
    code = values.get("exit_code")
    return Errors(
        exit_code=re.compile(code) if code else None,
        failed=tuple(re.compile(p) for p in values.get("failed", ())),
        refused=tuple(re.compile(p) for p in values.get("refused", ())),
    )


def _ready(kind: type[Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """A table as keyword arguments: unknown keys refused, lists made tuples."""
    _refuse_unknown(kind.__name__, set(table), {f.name for f in fields(kind)})
    return {name: tuple(value) if isinstance(value, list) else value for name, value in table.items()}


def _refuse_unknown(where: str, found: set[str], known: set[str]) -> None:
    if found - known:
        raise ValueError(f"{where}: unknown keys {', '.join(sorted(found - known))}")


def _one_of(where: str, value: str, known: frozenset[str]) -> None:
    if value not in known:
        raise ValueError(f"{where}: {value!r} is none of {', '.join(sorted(known))}")
