"""The description of the interface, made from the table that answers it."""

from __future__ import annotations

import re
from typing import Any

from vaultd import __version__
from vaultd.http.table import BASE, ROUTES, Route
from vaultd.http.values import Parameter

__all__ = ["document"]

_SAID = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
_ERROR = {"description": "What is wrong, and what to do", "content": _SAID}
_MALFORMED = {**_ERROR, "content": {**_SAID, "text/plain": {"schema": {"type": "string"}}}}  # of the HTTP parser
_PLACE = {
    "name": "X-Vaultd-Cwd",
    "in": "header",
    "description": "the folder that the client is in, percent-encoded UTF-8; `cwd` wins",
    "schema": {"type": "string", "pattern": "^(?:[A-Za-z0-9/._~-]|%[0-9A-F]{2})*$", "maxLength": 4096},
}
_OBJECT = {"application/json": {"schema": {"type": "object"}}}


def document() -> dict[str, Any]:
    """An OpenAPI 3.1 document."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "vaultd", "version": __version__, "description": "Read-only: pages, search, sessions."},
        "paths": {BASE + route.path: {"get": _operation(route)} for route in ROUTES},
        "components": {
            "schemas": {
                "Error": {
                    "type": "object",
                    "required": ["error"],
                    "properties": {
                        "error": {
                            "type": "object",
                            "required": ["code", "message"],
                            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
                        }
                    },
                }
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(route: Route) -> dict[str, Any]:
    """One route."""
    inner = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1, "maxLength": 200}}
        for name in re.findall(r"{(\w+)}", route.path)
    ]
    codes = ("401", "403", "404", "405", "409", "413", "429", "503")
    return {
        "operationId": re.sub(r"\W+", "_", route.path.strip("/")),
        "summary": route.summary,
        "parameters": [*inner, *map(_parameter, route.query), *([_PLACE] if route.scoped else ())],
        "responses": {
            "200": {"description": route.summary, "content": _OBJECT},
            "400": _MALFORMED,
            **dict.fromkeys(codes, _ERROR),
        },
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    """One parameter of a query."""
    told = {"name": parameter.name, "in": "query", "description": parameter.meaning, "schema": parameter.schema}
    return {**told, "required": True} if parameter.required else told
