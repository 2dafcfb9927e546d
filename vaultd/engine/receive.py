"""Events that come over HTTP become files in the inbox, like those of hooks: taken in later, by the same way.

One durable effect, the link into `inbox/new`: before it nothing happened, after it the event survives the death of any
process. A client that does not know whether its event arrived sends it again under its own key: the same file name.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from datetime import datetime

from vaultd.agents import Agent
from vaultd.agents.normalise import Rejected, normalise
from vaultd.core.event import CLOSE_EVENT, HEADER_LINE, Delivery, Event
from vaultd.core.ids import Key
from vaultd.engine.kept import kept_out
from vaultd.engine.service import Hook
from vaultd.engine.stores import Stores
from vaultd.errors import ConflictError, UsageError, VaultdError
from vaultd.store import fs
from vaultd.store.inbox import SessionName
from vaultd.store.surroundings import checkout_of

__all__ = ["receive"]

_MOST = 8 * 1024 * 1024
"""Bytes of a payload that are kept (format, section 2)."""

_PATH = 4096
"""Bytes of the longest path of a folder."""


def receive(stores: Stores, hook: Hook) -> str:
    """Deliver an event; its key, "" when its folder is kept out and nothing is stored. See `Service.deliver`."""
    agent = stores.agents.get(hook.agent)
    if agent is None:
        raise UsageError(f"Unknown agent {hook.agent[:60]!r}. Known are: {', '.join(stores.agents)}.")
    if hook.event == CLOSE_EVENT:
        raise UsageError("Sessions are closed by vaultd, or by their agent's own event.")
    _refuse_no_object(hook.body)
    told = hashlib.sha256(hook.body).hexdigest()[:32]
    event = _meaning(stores, agent, hook, told)
    if kept_out(stores, event.cwd if event.cwd.startswith("/") else ""):
        return ""
    key = Key(f"{int(stores.clock().timestamp())}-{uuid.uuid4()}")  # `at` may be before 1970: no name of an event
    if hook.key:
        named = "\0".join((agent.id, event.native, hook.key)).encode("utf-8", "surrogateescape")
        key = Key(f"h{hashlib.sha256(named).hexdigest()[:32]}")
        before = _known(stores, event, key)
        if before is not None:
            return _same(key, before, told)
    data = _header(stores, agent, hook, event, told) + hook.body[:_MOST]
    if not _deliver(stores, key, data):
        return _same(key, _known(stores, event, key) or "", told)
    # The same key may have come and been taken in since it was looked for: then ingest drops this one unread.
    return _same(key, _taken(stores, event, key) or "", told) if hook.key else key


def _refuse_no_object(body: bytes) -> None:
    """UsageError unless the payload is a JSON object."""
    try:
        payload = json.loads(body.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace"))  # as it is read later
    except (ValueError, RecursionError):
        raise UsageError("The body is not JSON.") from None
    if not isinstance(payload, dict):
        raise UsageError("The body must be a JSON object: what the agent wrote to its hook.")


def _meaning(stores: Stores, agent: Agent, hook: Hook, told: str) -> Event:
    """The event as ingest will read it; UsageError when it makes nothing of it."""
    try:
        at = datetime.fromisoformat(hook.at) if hook.at else stores.clock()
    except ValueError:
        at = datetime.min
    if at.tzinfo is None:
        raise UsageError(f"`at` must be a time with its offset, as in 2026-11-29T10:12:13+01:00, not {hook.at[:60]!r}.")
    header = {"event": hook.event, "at": at.isoformat(timespec="seconds"), "cwd": hook.cwd, "session": hook.session}
    header["body"] = told
    event = normalise(agent, Delivery(Key("0-http"), header, hook.body), stores.clock())
    if isinstance(event, Rejected):
        raise UsageError(f"Nothing can be made of this event: {event.reason}.")
    if len(os.fsencode(event.cwd)) > _PATH:
        raise UsageError(f"The event's folder has a path of more than {_PATH} bytes, so there is none.")
    return event


def _header(stores: Stores, agent: Agent, hook: Hook, event: Event, told: str) -> bytes:
    """The header of the event file, blank line included (format, section 2)."""
    cwd = os.fsencode(event.cwd)
    root, gitfile, _ = checkout_of(cwd, os.fsencode(stores.config.places.home)) if cwd[:1] == b"/" else (b"", b"", b"")
    values = {
        "agent": agent.id.encode(),
        "event": event.name.encode("utf-8", "surrogateescape"),
        "at": event.at.isoformat(timespec="seconds").encode(),
        "cwd": cwd,
        "root": root,
        "gitfile": gitfile,
        "session": event.native.encode("utf-8", "surrogateescape"),  # the payload's own may be cut off
        "via": b"http",
        "body": told.encode(),
    }
    rows = [HEADER_LINE]
    for name, value in values.items():
        if value:
            safe = value.replace(b"%", b"%25").replace(b"\n", b"%0A").replace(b"\r", b"%0D")
            rows.append(name.encode() + b"=" + safe)
    return b"\n".join(rows) + b"\n\n"


def _deliver(stores: Stores, key: Key, data: bytes) -> bool:
    """Publish the event file; False when its name is taken. VaultdError when it cannot be written."""
    try:
        fs.make_folder(stores.inbox.tmp, mode=0o700)
        try:
            fs.publish(stores.inbox.new / key, data, sync=False, mode=0o600, room=stores.inbox.tmp)
        except FileExistsError:
            return False
    except OSError as error:
        raise VaultdError(f"The event could not be written ({error.strerror}). Send it again later.") from error
    return True


def _known(stores: Stores, event: Event, key: Key) -> str | None:
    """The hash of the body that this key came with; "" when only the key is known, None when not even that."""
    waiting = stores.inbox.read(key)
    if isinstance(waiting, Delivery):
        return waiting.header.get("body", "")
    taken = _taken(stores, event, key)
    return "" if taken is None and os.path.lexists(stores.inbox.failed / key) else taken


def _taken(stores: Stores, event: Event, key: Key) -> str | None:
    """As `_known`, of an event that was taken in."""
    name = SessionName(event.agent, event.sid)
    if not stores.inbox.is_done(name, key):
        return None
    return next((o.event.body for o in stores.inbox.observations(name) if o.event.key == key), "")


def _same(key: Key, before: str, told: str) -> str:
    """The key, if it came with the same body before, or nobody knows any more. ConflictError."""
    if before and before != told:
        raise ConflictError(
            "This key came before with another body. An event that is another one needs a key of its own."
        )
    return key
