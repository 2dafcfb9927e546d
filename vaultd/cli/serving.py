"""What answers clients beside the daemon, put together: the service, MCP on it, and the server for both."""

from __future__ import annotations

import logging
import os
import threading

from vaultd.config import Config
from vaultd.engine.access import token_of
from vaultd.engine.daemon import Daemon
from vaultd.engine.local import LocalService
from vaultd.engine.nearby import Filling, nearby_of
from vaultd.engine.stores import Stores, local_now, open_stores
from vaultd.http.server import HttpServer
from vaultd.http.settings import HttpSettings, parse_bind
from vaultd.mcp.application import McpApplication

__all__ = ["end", "filling", "reachable", "surfaces"]

_END_S = 4.4
"""Seconds within which a daemon that is told to ends, of the five that are promised."""

log = logging.getLogger("vaultd")


def surfaces(daemon: Daemon, stores: Stores) -> HttpServer:
    """The server for a vault's daemon, not started yet. RefusedError, UsageError as `reachable`."""
    config = stores.config
    service = LocalService(
        lambda: open_stores(config, local_now), daemon.live, daemon.pulse, daemon.note, nearby_of(config)
    )
    return HttpServer(service, reachable(config), McpApplication(service))


def filling(daemon: Daemon, stores: Stores) -> list[Filling]:
    """What makes vectors in the background, when they are on."""
    config = stores.config
    return [Filling(lambda: open_stores(config, local_now), daemon.live)] if config.vectors.on else []


def reachable(config: Config) -> HttpSettings:
    """Where to listen and for whom. UsageError for what is no address, RefusedError for one that is not safe, or when
    the token is not.
    """
    address = parse_bind(config.bind, config.hosts)
    token = token_of(config.places.token, make=address.loopback) if address is not None else ""
    return HttpSettings(config.places.socket(config.vault), address, token, config.hosts)


def end(daemon: Daemon) -> None:
    """Stop the daemon. What holds it up for longer than it has (a lock, git, a client's call) is left where it is, as
    after a kill: nothing that was acknowledged is lost, and the next start goes on.
    """
    daemon.stop(for_good=True)
    last = threading.Timer(_END_S, _leave)
    last.daemon = True
    last.start()


def _leave() -> None:
    """End the process as it is."""
    log.warning("something was still at work after %s s; it is left for the next start", _END_S)
    logging.shutdown()
    os._exit(0)
