"""Reads an agent's TOML table into its typed form.

A key that is not known, or a style that no code answers to, is a fault of the file: ValueError at load, so a test finds
it and no user does.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from typing import Any

from vaultd.agents.model import (
    UNITS,
    Agent,
    CallFields,
    Client,
    Errors,
    EventSpec,
    Evidence,
    Fields,
    Home,
    HookFile,
    Instructions,
    McpFile,
    Noise,
    OwnFile,
    Setting,
    Switch,
    Told,
    ToolSpec,
    Transcripts,
    Trust,
)
from vaultd.agents.shapes import SHAPES
from vaultd.core.event import Kind

__all__ = ["parse_agent"]

CAPABILITIES = ("hooks", "context", "mcp", "instructions")
"""What an agent can be wired for; each needs evidence."""

FAMILIES = frozenset({"shell", "edit", "read", "search", "agent", "mcp", "other"})
OUTCOMES = frozenset({"", "ok", "failed", "open", "batch"})
MOMENTS = frozenset({"", "start", "prompt", "tool"})
FORMATS = frozenset({"json", "jsonc", "toml", "yaml"})
TRUSTS = frozenset({"", "hook-state-toml"})
TRANSCRIPT_FORMATS = frozenset({"", "rollout"})
ACTIONS = frozenset({"read", "edit", "create"})


def parse_agent(table: Mapping[str, Any]) -> Agent:
    """The agent that a parsed TOML file describes. ValueError names what is wrong with it.

    What it says of a capability (hooks, context, mcp, instructions) counts only where `evidence` speaks of that too.
    """
    known = {f.name for f in fields(Agent)}
    _refuse_unknown("the top level", set(table), known)
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,31}", str(table.get("id", ""))):
        raise ValueError(f"id {table.get('id')!r} is not a short name in lower case")
    evidence = {name: _evidence(name, rows) for name, rows in table.get("evidence", {}).items()}
    shapes = dict(table.get("shapes", {}))
    if any(not name.startswith(f"{table['id']}-") for name in shapes):
        raise ValueError("a shape of an agent's own is named <agent>-<name>")
    events = {name: _event(name, spec, shapes) for name, spec in table.get("events", {}).items()}
    if "context" not in evidence:
        events = {name: replace(spec, shape="", moment="") for name, spec in events.items()}
    agent = Agent(
        id=table["id"],
        title=table["title"],
        home=Home(**_ready(Home, table["home"])),
        evidence=evidence,
        inject_limit=int(table.get("inject_limit", 9000)),
        client=Client(**_ready(Client, table.get("client", {}))),
        fields=_fields(table.get("fields", {})),
        call=_call(table.get("call", {})),
        events=events,
        tools=tuple(_tool(spec) for spec in table.get("tools", ())),
        shapes=shapes,
        transcripts=_transcripts(table.get("transcripts", {})),
        trust=_trust(table.get("trust", {})),
        errors=_errors(table.get("errors", {})),
        hooks=_hooks(table["hooks"]) if "hooks" in table and "hooks" in evidence else None,
        mcp=_mcp(table["mcp"]) if "mcp" in table and "mcp" in evidence else None,
        instructions=(
            Instructions(**_ready(Instructions, table["instructions"]))
            if "instructions" in table and "instructions" in evidence
            else None
        ),
    )
    if agent.hooks is not None and not (agent.wired and agent.fields.session):
        raise ValueError("hooks are wired, but no event is, or the path of the session's id is not told")
    return agent


def _evidence(name: str, table: Mapping[str, Any]) -> Evidence:
    found = Evidence(**{**_ready(Evidence, table), "date": str(table.get("date", ""))})
    if name not in CAPABILITIES:
        raise ValueError(f"evidence.{name} is none of {', '.join(CAPABILITIES)}")
    if not found.sources and not (found.version and found.date):
        raise ValueError(f"evidence.{name}: neither a version and date nor a source")
    if not all(re.match(r"https://\S+\Z", source) for source in found.sources):
        raise ValueError(f"evidence.{name}: a source is an https address")
    return found


def _event(name: str, table: Mapping[str, Any], shapes: Mapping[str, Any]) -> EventSpec:
    values = _ready(EventSpec, {"name": name, **table})
    values["kind"] = Kind(values["kind"])
    values["text"] = _texts(values.get("text", ()))
    values["noise"] = tuple(
        Noise(n["starts"], re.compile(n["keep"], re.DOTALL) if "keep" in n else None) for n in values.get("noise", ())
    )
    spec = EventSpec(**values)
    _one_of(f"events.{name}.outcome", spec.outcome, OUTCOMES)
    _one_of(f"events.{name}.moment", spec.moment, MOMENTS)
    _one_of(f"events.{name}.shape", spec.shape, {"", *SHAPES, *shapes})
    if bool(spec.shape) != bool(spec.moment):
        raise ValueError(f"events.{name}: shape and moment go together")
    if not 1 <= spec.timeout <= (spec.timeout_max or 15):
        raise ValueError(f"events.{name}.timeout must be from 1 to {spec.timeout_max or 15} seconds")
    if spec.kind is Kind.PRE_TOOL and spec.wired:
        raise ValueError(f"events.{name}: no hook is wired before a tool call")
    return spec


def _hooks(table: Mapping[str, Any]) -> HookFile:
    values = _ready(HookFile, table)
    values["switches"] = tuple(Switch(**_ready(Switch, s)) for s in values.get("switches", ()))
    values["beside"] = tuple(OwnFile(**_ready(OwnFile, own)) for own in values.get("beside", ()))
    if "setting" in values:
        values["setting"] = Setting(**_ready(Setting, values["setting"]))
        _one_of("hooks.setting.format", values["setting"].format, FORMATS)
    hooks = HookFile(**values)
    _one_of("hooks.format", hooks.format, FORMATS)
    _one_of("hooks.timeout_unit", hooks.timeout_unit, UNITS.keys())
    for switch in hooks.switches:
        _one_of("hooks.switches.format", switch.format, FORMATS)
    if bool(hooks.template) == bool(hooks.path and hooks.entry):
        raise ValueError("hooks: either a template, or a path and an entry")
    if (hooks.beside or hooks.setting) and not hooks.template:
        raise ValueError("hooks: beside and setting go with a template")
    if "{event}" in hooks.path[:-1]:
        raise ValueError("hooks.path: {event} is its last part, or no part of it")
    return hooks


def _mcp(table: Mapping[str, Any]) -> McpFile:
    found = McpFile(**_ready(McpFile, table))
    _one_of("mcp.format", found.format, FORMATS)
    values = list(found.entry.values())
    if not found.path or ("{argv}" in values) == ("{command}" in values and "{args}" in values):
        raise ValueError("mcp: an entry has {command} and {args}, or {argv}, and its path is not empty")
    return found


def _fields(table: Mapping[str, Any]) -> Fields:
    values = _ready(Fields, table)
    return Fields(**{**values, "strip": tuple(re.compile(p, re.DOTALL) for p in values.get("strip", ()))})


def _call(table: Mapping[str, Any]) -> CallFields:
    values = _ready(CallFields, table)
    lists = {name: _texts(values.get(name, ())) for name in ("error", "response")}
    return CallFields(**{**values, **lists})


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
    values = _ready(Transcripts, table)
    for name in ("answer", "prompt"):
        if name in values:
            values[name] = Told(**_ready(Told, values[name]))
    transcripts = Transcripts(**values)
    _one_of("transcripts.outcome", transcripts.outcome, TRANSCRIPT_FORMATS)
    return transcripts


def _trust(table: Mapping[str, Any]) -> Trust:
    trust = Trust(**_ready(Trust, table))
    _one_of("trust.style", trust.style, TRUSTS)
    return trust


def _errors(table: Mapping[str, Any]) -> Errors:
    values = _ready(Errors, table)
    code, output = values.get("exit_code"), values.get("output")
    return Errors(
        exit_code=re.compile(code) if code else None,
        output=re.compile(output, re.DOTALL) if output else None,
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


def _texts(value: str | tuple[str, ...]) -> tuple[str, ...]:
    """One text or several."""
    return (value,) if isinstance(value, str) else value


def _one_of(where: str, value: str, known: Collection[str]) -> None:
    if value not in known:
        raise ValueError(f"{where}: {value!r} is none of {', '.join(sorted(known))}")
