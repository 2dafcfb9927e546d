"""Parameters of a request, described as data and checked by that."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vaultd.errors import UsageError

__all__ = ["Parameter", "checked"]

_MOST = 4096
_TRUE, _FALSE = frozenset(("true", "1", "yes")), frozenset(("false", "0", "no"))


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a query: its type (str, int, bool, list of words), bounds and meaning."""

    name: str
    type: type
    meaning: str
    default: Any = None
    least: int = 0
    most: int = 0
    required: bool = False
    pattern: str = ""

    @property
    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        if self.type is int:
            return {"type": "integer", "minimum": self.least, "maximum": self.most, "default": self.default}
        if self.type is bool:
            return {"type": "boolean", "default": False}
        told: dict[str, Any] = {"type": "string", "maxLength": _MOST}
        return (
            told
            | ({"pattern": f"^(?:{self.pattern})$"} if self.pattern else {})
            | ({"minLength": 1} if self.required else {})
        )


def checked(parameters: Sequence[Parameter], query: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The values of a query by name, defaults filled in; UsageError names what is wrong and what is right."""
    known = {parameter.name: parameter for parameter in parameters}
    unknown = sorted(set(query) - set(known))
    if unknown:
        names = ", ".join(known) or "none"
        raise UsageError(f"There is no parameter {unknown[0][:60]!r} here. There are: {names}.")
    values: dict[str, Any] = {}
    for name, parameter in known.items():
        given = query.get(name, ())
        if len(given) > 1:
            raise UsageError(f"The parameter `{name}` was given twice.")
        if given:
            values[name] = _value(parameter, given[0])
        else:
            values[name] = parameter.default
        if parameter.required and not values[name]:
            raise UsageError(f"The parameter `{name}` is needed: {parameter.meaning}.")
    return values


def _value(parameter: Parameter, text: str) -> Any:
    """One value as its type."""
    name = parameter.name
    if parameter.type is int:
        if not re.fullmatch(r"-?[0-9]{1,9}", text) or not parameter.least <= int(text) <= parameter.most:
            raise UsageError(f"`{name}` must be a whole number from {parameter.least} to {parameter.most}.")
        return int(text)
    if parameter.type is bool:
        if text.lower() not in _TRUE | _FALSE:
            raise UsageError(f"`{name}` must be true or false.")
        return text.lower() in _TRUE
    if len(text) > _MOST or "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise UsageError(f"`{name}` must be a text of at most {_MOST} characters, without NUL.")
    if parameter.pattern and not re.fullmatch(parameter.pattern, text):
        raise UsageError(f"`{name}` must match {parameter.pattern}.")
    return tuple(word for word in text.split(",") if word) if parameter.type is list else text
