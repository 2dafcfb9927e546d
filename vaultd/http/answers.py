"""Answers: JSON, errors with their status, and the headers that every one of them has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from vaultd.errors import (
    ConflictError,
    HeldError,
    NotFoundError,
    NoVaultError,
    RefusedError,
    UsageError,
    VaultdError,
)

__all__ = ["code_of", "error", "etag", "failure", "json_answer", "secure", "status_of"]

_STATUS: Mapping[type[VaultdError], int] = {
    UsageError: 400,
    RefusedError: 403,
    NotFoundError: 404,
    ConflictError: 409,
    HeldError: 503,
    NoVaultError: 503,
}
"""The status of an error; 500 for all others."""

_SECURE = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def json_answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """A value as JSON; half characters (of names that are not UTF-8) are shown as such."""
    data = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    return web.Response(body=data, status=status, content_type="application/json", charset="utf-8", headers=headers)


def error(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> web.Response:
    """An error as JSON: `{error: {code, message}}`."""
    return json_answer({"error": {"code": code, "message": message}}, status, headers)


def failure(problem: VaultdError) -> web.Response:
    """One of our errors, with its status."""
    status = status_of(problem)
    return error(status, code_of(problem), str(problem), {"Retry-After": "5"} if status == 503 else None)


def status_of(problem: VaultdError) -> int:
    """The status of one of our errors."""
    return next((status for kind, status in _STATUS.items() if isinstance(problem, kind)), 500)


def code_of(problem: VaultdError) -> str:
    """The word for one of our errors."""
    return type(problem).__name__.removesuffix("Error").lower()


def secure(response: web.StreamResponse) -> None:
    """Set what every answer has; nothing of it is kept by a cache."""
    response.headers["Server"] = "vaultd"
    for name, value in _SECURE.items():
        response.headers.setdefault(name, value)
    response.headers.setdefault("Cache-Control", "no-store")


def etag(value: Mapping[str, Any]) -> str:
    """What tells one state of a page from another."""
    return f'"{value["revision"]}"'
