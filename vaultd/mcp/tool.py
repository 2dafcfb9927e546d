"""What a tool is: its description as data, and the function that answers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from vaultd.engine.service import Reply, Scope, Service

__all__ = ["FLAG", "NUMBER", "TEXT", "TEXTS", "Answer", "Call", "Schema", "Tool"]

Schema: TypeAlias = Mapping[str, Any]
"""A JSON schema of one argument. Used are: string, integer, boolean, a list of strings, `enum`."""

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
TEXTS: Schema = {"type": "array", "items": {"type": "string"}}

_PLACE: Mapping[str, Schema] = {"project": TEXT}
"""What every tool takes besides its own."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call gives: words for the model, and the same as data."""

    text: str
    data: Reply


@dataclass(frozen=True, slots=True)
class Call:
    """A call whose arguments are checked: names as in the schema, what was not given is missing.

    `client` is what the client calls itself, "" when it did not say.
    """

    service: Service
    scope: Scope
    values: Mapping[str, Any]
    client: str = ""

    def text(self, name: str) -> str:
        """A text, "" when it was not given."""
        return str(self.values.get(name, ""))

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(self.values.get(name, ()))

    def number(self, name: str, default: int) -> int:
        """A number."""
        return int(self.values.get(name, default))

    def flag(self, name: str) -> bool:
        """A switch, off when it was not given."""
        return bool(self.values.get(name, False))


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `aliases` are other names of arguments, accepted and never listed; `ignored` are accepted for nothing.

    `reads`: nothing is changed. `destroys`: something that was there may be gone afterwards. `repeats`: calling it
    twice does what calling it once does.
    """

    name: str
    title: str
    description: str
    run: Callable[[Call], Answer]
    arguments: Mapping[str, Schema] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()
    reads: bool = False
    destroys: bool = False
    repeats: bool = False

    @property
    def properties(self) -> Mapping[str, Schema]:
        """All arguments, by name."""
        return {**self.arguments, **_PLACE}

    def listed(self) -> dict[str, Any]:
        """The tool as `tools/list` gives it."""
        schema: dict[str, Any] = {"type": "object", "properties": dict(self.properties), "additionalProperties": False}
        if self.required:
            schema["required"] = list(self.required)
        hints: dict[str, Any] = {"title": self.title, "readOnlyHint": self.reads, "openWorldHint": False}
        if not self.reads:  # the other two mean nothing where nothing is changed
            hints |= {"destructiveHint": self.destroys, "idempotentHint": self.repeats}
        return {"name": self.name, "description": self.description, "inputSchema": schema, "annotations": hints}
