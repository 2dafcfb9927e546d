"""Talking to the daemon over its socket: one request a connection, and whether anything came of one that failed.

A request that was never whole on the other side has had no effect and may be made again. One whose answer was lost may
have had any.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Exchange", "HttpAnswer", "LostError", "UnsentError"]


class UnsentError(OSError):
    """The request did not get there whole: nothing was done."""


class LostError(OSError):
    """The request was sent and no answer came: what it did is unknown."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What the daemon answered."""

    status: int
    body: bytes


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Connect; OSError."""
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            link.settimeout(self.timeout)
            link.connect(self._path)
        except OSError:
            link.close()
            raise
        self.sock = link


class Exchange:
    """One request and its answer; `cancel` from another thread ends it with LostError."""

    def __init__(self, path: str, timeout: float) -> None:
        self._connection = _UnixConnection(path, timeout)
        self._cancelled = False

    def run(self, target: str, body: bytes, headers: Mapping[str, str], method: str = "POST") -> HttpAnswer:
        """Send it and wait. UnsentError, LostError (also when `timeout` seconds went by)."""
        try:
            try:
                self._connection.connect()
                self._connection.request(method, target, body, dict(headers))
            except (OSError, http.client.HTTPException) as error:
                raise UnsentError(*error.args) from error
            if self._cancelled:
                raise LostError("cancelled")
            try:
                answer = self._connection.getresponse()
                return HttpAnswer(answer.status, answer.read())
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise LostError(*error.args) from error
        finally:
            self._connection.close()

    def cancel(self) -> None:
        """Close the connection: the other side sees that nobody waits any more."""
        self._cancelled = True
        link = self._connection.sock
        if link is not None:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
