"""Who may ask: the decision, from a request's headers. Nobody who got here by a web page, or without the token."""

from __future__ import annotations

import hmac
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

__all__ = ["Guard", "Refusal"]

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not answered."""

    status: int
    message: str


@dataclass(frozen=True, slots=True)
class Guard:
    """What a connection over TCP must show. `hosts`: names with or without a port, in addition to loopback's; `bound`:
    the address of loopback that it came to, which need not be the usual one.
    """

    token: str
    port: int
    hosts: Collection[str] = ()
    bound: str = _LOOPBACK[0]

    def refuse(
        self, host: str | None, origins: Sequence[str], authorization: str | None, *, free: bool
    ) -> Refusal | None:
        """Why not; None when it may. `origins`: all that the request names. `free`: the route needs no token.

        A browser on this machine can be sent here by any page: its Host or Origin gives it away.
        """
        if not host:
            return Refusal(400, "The request has no Host header.")
        if not self._own(host):
            return Refusal(403, "This server is not called by that name. `http.hosts` lists more names.")
        if not all(self._own(_host_of(origin)) for origin in origins):
            return Refusal(403, "Requests from web pages of others are not answered.")
        if free or self._known(authorization):
            return None
        return Refusal(
            401,
            "This needs a bearer token: the line in vaultd's `token` file (usually ~/.config/vaultd/token).",
        )

    def _own(self, name: str) -> bool:
        """Whether a name with or without a port is this server's."""
        told = name.lower()
        bare = told.rpartition(":")[0] if told.rpartition(":")[2].isdecimal() and not told.endswith("]") else told
        own = {f"{host}:{self.port}" for host in (*_LOOPBACK, self.bound)}
        return told in own or any(told == known.lower() or bare == known.lower() for known in self.hosts)

    def _known(self, authorization: str | None) -> bool:
        """Whether the token is right, in a time that says nothing about it."""
        scheme, _, given = (authorization or "").partition(" ")
        known = hmac.compare_digest(given.strip().encode("utf-8", "replace"), self.token.encode())
        return scheme.lower() == "bearer" and known


def _host_of(origin: str) -> str:
    """Host and port of an origin; "" for what is none."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""
