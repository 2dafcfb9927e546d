"""Making a vault, also out of a folder of notes that a person has; pausing and resuming it."""

from __future__ import annotations

import contextlib
import os
import shlex
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from vaultd.agents import load_agents
from vaultd.config import Config
from vaultd.core.sanitize import line, redact
from vaultd.engine.offers import event_map
from vaultd.engine.stores import Stores
from vaultd.errors import RefusedError, UsageError
from vaultd.store import fs
from vaultd.store.git import Blocked, Failed, Repo
from vaultd.store.outbox import Outbox
from vaultd.store.vault import Vault, Written

__all__ = ["Report", "hook_source", "init", "needs_init", "remember", "set_paused", "shipped", "was_here"]


@dataclass(slots=True)
class Report:
    """What `init` did: paths added (relative to the vault), and notes for the person."""

    root: Path
    added: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def shipped(name: str) -> Path:
    """A folder that travels with the program (`hooks`, `vault-template`), installed or in a checkout."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "_data" / name
    return inside if inside.exists() else package.parent / name


def hook_source() -> bytes:
    """The hook script as shipped."""
    return (shipped("hooks") / "vaultd-hook").read_bytes()


def needs_init(config: Config) -> bool:
    """Whether there is no vault yet at the configured place. RefusedError when one is there but cannot be used."""
    presence = Vault(config.vault).presence()
    if not presence.here and (config.vault / ".vaultd/vault-id").exists():
        raise RefusedError(f"The vault at {config.vault} cannot be used: {presence.reason}.")
    return not presence.here


def init(config: Config, *, force: bool = False) -> Report:
    """Make the configured vault. Existing files are never changed; a template page that was deleted does not come back.

    The sentinel comes last: after a crash it is no vault yet, and doing it again makes what is missing. UsageError for
    a path that cannot be a vault (the home folder, a file, a line break in its name).
    """
    root = _possible(config, force)
    had_pages = root.is_dir() and any(not path.name.startswith(".") for path in root.iterdir())
    report, vault = Report(root), Vault(root)
    fresh = not (root / ".vaultd/vault-id").exists()
    root.mkdir(parents=True, exist_ok=True)
    if not fresh:
        vault.initialise(uuid.uuid4().hex)
    repo = Repo(root, config.environ)
    made = repo.ensure()
    report.added.extend(made.added)
    if made.created and had_pages:
        report.notes.append(
            "Made a git repository of it. Your pages are committed for you after a quiet minute; "
            "`commit_edits = false` in vaultd.toml prevents it."
        )
    if made.enclosing:
        report.notes.append(f"Note: {made.enclosing} is a git repository around it; the vault has its own.")
    if fresh:
        report.added.extend(_template(vault))
        result = repo.commit([*_shipped_in(root), *made.own], line("vaultd: vault made", 100))
        if isinstance(result, Blocked | Failed):
            report.notes.append(f"Note: nothing was committed yet ({result.reason}).")
    Outbox(vault.room).write_map(event_map(load_agents().values()), config.command)
    if fresh:
        vault.initialise(uuid.uuid4().hex)
        report.added.insert(0, ".vaultd/")
    before = config.places.pointer
    if before.exists() and not was_here(config):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            old = before.read_text("utf-8").strip()
            report.notes.append(
                f"Agents write here from now on, and no longer to {old}. If a daemon runs for that: "
                f"`vaultd --vault {shlex.quote(old)} down`."
            )
    remember(config)
    return report


def _possible(config: Config, force: bool) -> Path:
    """The configured vault's path, if there may be a vault. UsageError; RefusedError for a checkout of code."""
    root = config.vault
    if "\n" in str(root) or "\r" in str(root):
        raise UsageError("A vault's path cannot hold a line break.")
    if root.exists() and not root.is_dir():
        raise UsageError(f"{root} is a file. Name a folder.")
    if root == config.places.home or root == Path("/"):
        raise UsageError(f"{root} cannot be a vault: everything in it would be recorded in git. Name a folder in it.")
    if not force and _is_code(root, config):
        raise RefusedError(
            f"{root} is a checkout of code, and everything in a vault is committed for you. Name a folder of notes "
            "(or add --force, if that is what you want)."
        )
    return root


def _is_code(root: Path, config: Config) -> bool:
    """Whether a folder is a git checkout in which hardly anything is a page."""
    if not (root / ".git").exists() or (root / ".vaultd").exists():
        return False
    pages, all_files = Repo(root, config.environ).tracked()
    return all_files > 0 and pages * 5 < all_files


def was_here(config: Config) -> bool:
    """Whether the configured vault is the one that was remembered as the default: it existed once."""
    try:
        return bool(config.places.pointer.read_bytes().rstrip(b"\r\n") == os.fsencode(config.vault))
    except OSError:
        return False


def remember(config: Config) -> None:
    """Make this vault the one that hooks and commands use by default, unless the environment names it each time."""
    path, text = config.places.pointer, f"{config.vault}\n"
    try:
        if path.read_text("utf-8") == text:
            return
    except (OSError, UnicodeDecodeError):
        pass
    fs.write_private(path, text.encode("utf-8", "surrogateescape"), sync=True, mode=0o644)


def set_paused(stores: Stores, paused: bool) -> None:
    """Set or clear the flags that hooks look for: in the vault, and beside the spool for when the vault is away."""
    for flag in (stores.vault.room / "paused", stores.config.places.state / "paused"):
        if paused:
            fs.write_private(flag, b"", sync=True)
        else:
            fs.remove(flag)


def _template(vault: Vault) -> list[str]:
    """Add the pages that every vault gets and this one lacks; a person's own vault gets no map of content."""
    texts = _template_texts()
    ours = {rel.partition("/")[0] for rel in texts}
    existing = any(not path.name.startswith(".") and path.name not in ours for path in vault.root.iterdir())
    wanted = [rel for rel in texts if not (existing and rel == "Home.md")]
    return [rel for rel in wanted if isinstance(vault.create(rel, redact(texts[rel])), Written)]


def _template_texts() -> dict[str, str]:
    """The pages that every vault gets, by path."""
    source = shipped("vault-template")
    paths = [path for path in sorted(source.rglob("*")) if path.is_file()]
    return {path.relative_to(source).as_posix(): path.read_text("utf-8") for path in paths}


def _shipped_in(root: Path) -> list[str]:
    """Template pages that lie in a vault as they were shipped."""
    texts = {rel: text.encode() for rel, text in _template_texts().items()}
    return [rel for rel, data in texts.items() if (root / rel).is_file() and (root / rel).read_bytes() == data]
