"""Pages that an agent writes or deletes through a tool, beside the person who owns them.

Nothing that a person wrote is lost by it: what is not in git yet is committed before a page is replaced or deleted, and
the person's frontmatter stays as it is. git is waited for without the write lock (it must not hold up ingest); what was
kept then must still be what is there when the lock is had. The new text is committed later.
"""

from __future__ import annotations

from dataclasses import dataclass

from vaultd.core import frontmatter
from vaultd.core.address import may_be_written
from vaultd.core.keys import OWN_KEYS
from vaultd.core.sanitize import Clean, redact
from vaultd.engine.history import History
from vaultd.engine.revise import ATTEMPTS, own_values
from vaultd.engine.service import Page
from vaultd.engine.stores import Stores
from vaultd.errors import ConflictError, NotFoundError, RefusedError, UsageError
from vaultd.store.vault import Busy, PageFile, Refused, Written

__all__ = ["Authored", "delete", "write"]

MOST_BYTES = 1024 * 1024
"""A page that a tool may write, in UTF-8."""

_REDACTED = "[REDACTED]"
_TIERS = ("working", "episodic", "semantic", "procedural")


@dataclass(frozen=True, slots=True)
class Authored:
    """What writing did: the page's path and revision, whether it is new, how many secrets were taken out."""

    path: str
    revision: str
    created: bool
    redacted: int


def write(stores: Stores, path: str, folder: str, page: Page) -> Authored:
    """Make the page at a vault path, or replace its body and set the values that are given.

    One durable effect, the page's; before it perhaps a commit of what a person had in it. UsageError, RefusedError,
    ConflictError.
    """
    _refuse(path, folder)
    if page.tier is not None and page.tier not in _TIERS:
        raise UsageError(f"A tier is one of {', '.join(_TIERS)}, not {page.tier!r}.")
    if len(page.body.encode("utf-8", "replace")) > MOST_BYTES:
        raise UsageError(f"A page may have {MOST_BYTES} bytes. Split the text into several pages.")
    meta, body = _given(page)
    text = redact(body, stores.config.rules)
    lost = text.count(_REDACTED) - body.count(_REDACTED)
    values = own_values(meta, stores)
    for key in ("title", "summary"):
        lost += str(values.get(key, "")).count(_REDACTED) - str(meta.get(key, "")).count(_REDACTED)
    for _ in range(ATTEMPTS):
        old = stores.vault.read(path)
        if old is not None:
            _keep(stores, path)
        with stores.write_lock:
            done = _create(stores, path, meta, text) if old is None else _replace(stores, old, meta, text)
        if done is not None:
            return Authored(path, done, old is None, max(lost, 0))
    raise ConflictError(f"Somebody is changing {path} at this moment. Read it again, then try again.")


def delete(stores: Stores, path: str, folder: str) -> str:
    """Delete the page at a vault path; the commit that holds its last text. NotFoundError, RefusedError, ConflictError.

    Crash before the removal: the page is there, and in git.
    """
    _refuse(path, folder)
    page = stores.vault.read(path)
    if page is None:
        raise NotFoundError(f"There is no page {path}. Nothing was deleted.")
    if frontmatter.parse(page.data).meta.values.get("pinned") is True:
        raise RefusedError(f"{path} is pinned: a person wants to keep it. Nothing was deleted.")
    commit = _keep(stores, path)
    with stores.write_lock:
        now = stores.vault.read(path)
        if now is None or now.revision != page.revision:
            raise ConflictError(f"Somebody is changing {path} at this moment. Read it again, then try again.")
        stores.vault.remove(path)
    return commit


def _refuse(path: str, folder: str) -> None:
    """RefusedError for pages that are not a client's to change."""
    if reason := may_be_written(path, folder):
        raise RefusedError(f"{path} cannot be changed with this tool: {reason}.")


def _given(page: Page) -> tuple[dict[str, object], str]:
    """The frontmatter values that a client gave, in the text or beside it, and the text without them."""
    meta, body = frontmatter.parse(page.body.encode("utf-8", "surrogatepass"))
    if meta.error:
        raise UsageError(
            f"The frontmatter at the top of the text does not parse ({meta.error}). Mend it or leave it out."
        )
    foreign = sorted(set(meta.values) - OWN_KEYS)
    if foreign:
        raise UsageError(f"{foreign[0]!r} is not a key of vaultd's frontmatter. Say it in the text instead.")
    beside = {"title": page.title, "tier": page.tier, "pinned": page.pinned, "tags": page.tags}
    values = {**meta.values, **{key: value for key, value in beside.items() if value is not None}}
    tags = values.get("tags")
    if isinstance(tags, list | tuple):
        values["tags"] = [str(tag) for tag in tags]
    if not body.strip():
        raise UsageError("The text is empty. To remove a page, delete it.")
    return values, body if body.endswith("\n") else body + "\n"


def _create(stores: Stores, path: str, meta: dict[str, object], body: Clean) -> str | None:
    """A new page; its revision, None when there is one by now."""
    now = stores.clock().isoformat(timespec="seconds")
    values = {**own_values(meta, stores), "created": now, "updated": now}
    text = redact(frontmatter.dump(values) + ("" if body.startswith("\n") else "\n") + body, stores.config.rules)
    done = stores.vault.create(path, text)
    return done.revision if isinstance(done, Written) else None


def _replace(stores: Stores, old: PageFile, meta: dict[str, object], body: Clean) -> str | None:
    """Another body for a page, and other values of its frontmatter; the revision, None when it changed meanwhile."""
    has = frontmatter.parse(old.data).meta.has
    values = own_values({**meta, "updated": stores.clock().isoformat(timespec="seconds")}, stores) if has else {}
    if not has and meta:
        raise RefusedError(
            f"{old.path} has no frontmatter, and a person's page gets none. Leave title, tags and so on out."
        )
    whole = redact(("\n" if has and not body.startswith("\n") else "") + body, stores.config.rules)
    done = stores.vault.revise(old, values, body=whole)
    if isinstance(done, Refused):
        raise RefusedError(f"{old.path} was left alone: {done.reason}.")
    if isinstance(done, Busy):
        raise ConflictError(f"{old.path} is open in an editor. Try again in a moment.")
    return done.revision if isinstance(done, Written) else None


def _keep(stores: Stores, path: str) -> str:
    """Have git hold the page as it is now: the commit. ConflictError when git cannot."""
    changed = [change for change in stores.repo.changed() if change.path == path]
    if changed:
        left = History(stores).record([path], f"edit: {path}").left
        if left:
            reason = next(iter(left.values()))
            raise ConflictError(f"{path} has text that is not in git yet and cannot be committed now: {reason}.")
    if not stores.repo.holds(path):
        raise ConflictError(
            f"git does not keep {path} (is it ignored?), so its text would be lost. Nothing was changed."
        )
    return stores.repo.head() or ""
