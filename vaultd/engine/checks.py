"""`doctor`: everything that recording depends on, each with the command that mends it."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import Any

from vaultd.agents import load_agents
from vaultd.config import Config
from vaultd.engine.agentrows import AgentRow, agent_row
from vaultd.engine.install import hook_is_current, is_wired
from vaultd.engine.seen import Seen
from vaultd.engine.setup import hook_source
from vaultd.engine.status import status
from vaultd.engine.stores import local_now, open_stores
from vaultd.errors import NoVaultError, RefusedError

__all__ = ["Finding", "examine", "examine_agents"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; `mend` says what to do when it is not ok."""

    ok: bool
    what: str
    mend: str = ""


def examine(config: Config) -> list[Finding]:
    """Look at everything; findings in the order in which they depend on each other."""
    findings = [_vault(config), _git(), _hook(config)]
    findings += [
        Finding(False, f"settings: {problem}", "correct it; until then events wait") for problem in config.problems
    ]
    wired = [a.id for a in load_agents().values() if is_wired(a, config.places, config.environ)]
    findings.append(Finding(bool(wired), f"agents wired: {', '.join(wired) or 'none'}", "vaultd connect"))
    if not findings[0].ok:
        return findings
    try:
        stores = open_stores(config, local_now)
    except NoVaultError as error:
        return [*findings, Finding(False, str(error), "vaultd up")]
    findings.append(_writable(config))
    try:
        report = status(stores, agents=False)
    except OSError as error:
        what = f"{error.filename or config.vault}: {error.strerror}"
        return [*findings, Finding(False, what, "mend that, and ask again")]
    findings.append(
        Finding(True, f"daemon: {'runs' if report['daemon']['running'] else 'does not run (capture works without it)'}")
    )
    pages, index = report["pages"], report["index"]
    behind = index["pending"] > 0 and not report["daemon"]["running"]
    findings.append(
        Finding(
            not behind,
            f"index: {pages['indexed']} of {pages['disk']} pages",
            "vaultd up (or the next search) brings it up to date",
        )
    )
    told = (f"the hook {config.places.hook} is missing", *config.problems)  # above
    findings.extend(Finding(False, text) for text in report["problems"] if not any(part in text for part in told))
    return findings


def examine_agents(config: Config) -> list[AgentRow]:
    """A row for each agent that is here or wired."""
    seen: dict[str, dict[str, dict[str, Any]]] = {}
    try:
        stores = open_stores(config, local_now)
        seen = Seen(stores.vault.room, stores.inbox).read()
    except (NoVaultError, RefusedError, OSError):
        pass  # told above
    rows = [agent_row(agent, config, local_now(), seen.get(agent.id, {})) for agent in load_agents().values()]
    return [row for row in rows if row is not None]


def _vault(config: Config) -> Finding:
    """The vault is where it should be."""
    there = (config.vault / ".vaultd/vault-id").is_file()
    mend = f"vaultd init {config.vault}, or `vaultd --vault PATH up` when it was moved"
    return Finding(there, f"vault: {config.vault}" + ("" if there else " is not there"), mend)


def _git() -> Finding:
    """git can be run."""
    path = shutil.which("git")
    return Finding(path is not None, f"git: {path or 'not found'}", "install git")


def _hook(config: Config) -> Finding:
    """The installed hook is this release's."""
    current = hook_is_current(hook_source(), config.places)
    return Finding(current, f"hook: {config.places.hook}" + ("" if current else " is missing or old"), "vaultd up")


def _writable(config: Config) -> Finding:
    """Inbox, cache and vault can be written."""
    folders = [config.vault, config.vault / ".vaultd/inbox/new", config.vault / ".vaultd/inbox/tmp"]
    bad = [str(f) for f in folders if not os.access(f, os.W_OK | os.X_OK)]
    return Finding(
        not bad, "folders can be written" if not bad else f"cannot write {', '.join(bad)}", "mend their permissions"
    )
