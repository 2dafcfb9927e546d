"""What the server is told: where to listen, who may ask, and how much."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from vaultd.errors import RefusedError, UsageError

__all__ = ["Address", "HttpSettings", "parse_bind"]


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen over TCP."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host == "localhost" or (_is_ip(self.host) and ipaddress.ip_address(self.host).is_loopback)


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """`socket` None: no socket; `address` None: no TCP. Sizes in bytes, times in seconds.

    `hook_bytes`: of an event's body; `body_bytes`: of any other. `at_work`: hooks that are written at one time, more
    are told to come back. `head_s`: until a request's head is there; `body_s`: until its body is; `idle_s`: for which a
    connection may wait for its next request, and for its client to read on. `bodies_bytes`: of all bodies of hooks that
    are read or written at one time.
    """

    socket: Path | None
    address: Address | None
    token: str
    hosts: tuple[str, ...] = ()
    hook_bytes: int = 10 * 1024 * 1024
    body_bytes: int = 4 * 1024 * 1024
    bodies_bytes: int = 64 * 1024 * 1024
    at_work: int = 64
    connections: int = 256
    head_s: float = 10.0
    body_s: float = 20.0
    idle_s: float = 30.0


def parse_bind(text: str, hosts: tuple[str, ...]) -> Address | None:
    """`HOST:PORT` (IPv6 in brackets) or `off`. UsageError; RefusedError for an open address without a list of hosts."""
    if text == "off":
        return None
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not (host == "localhost" or _is_ip(host)) or not port.isdecimal() or int(port) > 65_535:
        raise UsageError(f"`http.bind` is an address and a port, as in 127.0.0.1:7426, or off, not {text!r}.")
    address = Address(host, int(port))
    if not address.loopback and not hosts:
        raise RefusedError(
            f"`http.bind` = {text!r} lets other machines in. Name in `http.hosts` the names that they may call this "
            "one by, or bind 127.0.0.1."
        )
    return address


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
