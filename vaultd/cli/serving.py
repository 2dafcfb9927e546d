"""What answers clients beside the daemon, put together: the service, MCP on it, and the server for both."""

from __future__ import annotations

from vaultd.config import Config
from vaultd.engine.access import token_of
from vaultd.engine.daemon import Daemon
from vaultd.engine.local import LocalService
from vaultd.engine.stores import Stores, local_now, open_stores
from vaultd.http.server import HttpServer
from vaultd.http.settings import HttpSettings, parse_bind
from vaultd.mcp.application import McpApplication

__all__ = ["surfaces"]


def surfaces(daemon: Daemon, stores: Stores) -> HttpServer:
    """The server for a vault's daemon, not started yet. RefusedError, UsageError for an address that is not safe."""
    config = stores.config
    service = LocalService(lambda: open_stores(config, local_now), daemon.live, daemon.pulse, daemon.note)
    return HttpServer(service, _settings(config), McpApplication(service))


def _settings(config: Config) -> HttpSettings:
    """Where to listen and for whom."""
    address = parse_bind(config.bind, config.hosts)
    token = token_of(config.places.token, make=address.loopback) if address is not None else ""
    return HttpSettings(config.places.socket(config.vault), address, token, config.hosts)
