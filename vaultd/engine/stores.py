"""The stores of one vault, opened together, and the clock: what every use case is given."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from vaultd.agents import Agent, load_agents
from vaultd.config import Config
from vaultd.engine.pages import Pages
from vaultd.engine.processes import boot_id
from vaultd.engine.projects import Projects
from vaultd.errors import NoVaultError
from vaultd.store.fs import Lock
from vaultd.store.git import Repo
from vaultd.store.inbox import Inbox
from vaultd.store.outbox import Outbox
from vaultd.store.vault import Vault

__all__ = ["Clock", "Stores", "local_now", "open_stores"]

Clock = Callable[[], datetime]
"""Gives the present time, aware, in the person's zone."""


def local_now() -> datetime:
    """The clock on the wall."""
    return datetime.now().astimezone()


@dataclass(frozen=True, slots=True)
class Stores:
    """Everything that a use case reads or writes. `boot` is this boot's id ("" where there is none)."""

    config: Config
    vault: Vault
    inbox: Inbox
    outbox: Outbox
    repo: Repo
    pages: Pages
    projects: Projects
    agents: Mapping[str, Agent]
    clock: Clock
    boot: str

    @property
    def write_lock(self) -> Lock:
        """A fresh handle on the lock that is held per batch by whoever writes the vault."""
        return Lock(self.vault.room / "write.lock")

    @property
    def daemon_lock(self) -> Lock:
        """A fresh handle on the lock that a daemon holds for life."""
        return Lock(self.vault.room / "daemon.lock")


def random_project_id() -> str:
    """An id for a project that nothing identifies: `p-` and twelve hex digits."""
    return "p-" + secrets.token_hex(6)


def require(vault: Vault) -> None:
    """NoVaultError when the vault does not exist or is away."""
    presence, root = vault.presence(), vault.root
    if presence.here:
        return
    if (vault.room / "vault-id").exists():
        raise NoVaultError(f"The vault at {root} cannot be used: {presence.reason}. Nothing was changed.")
    raise NoVaultError(
        f"There is no vault at {root}. `vaultd up` or `vaultd init {root}` makes one; --vault PATH names another."
    )


def open_stores(config: Config, clock: Clock, new_id: Callable[[], str] = random_project_id) -> Stores:
    """Open the configured vault. NoVaultError when it does not exist or is away."""
    vault = Vault(config.vault)
    require(vault)
    pages = Pages(vault)
    return Stores(
        config=config,
        vault=vault,
        inbox=Inbox(vault.room),
        outbox=Outbox(vault.room),
        repo=Repo(config.vault, config.environ),
        pages=pages,
        projects=Projects(vault, home=str(config.places.home), environ=config.environ, new_id=new_id, host=config.host),
        agents=load_agents(),
        clock=clock,
        boot=boot_id(),
    )
