"""The inbox and the observations: where events wait, and where they lie once they were taken in.

    inbox/tmp/X     being written by a hook; litter when its hook died
    inbox/new/X     delivered, not yet taken in; raw bytes
    inbox/failed/X  could not be understood; sanitised bytes, and X.reason.json
    done/<agent>-<sid>/X        one observation (JSON, one line, no newline at the end)
    done/<agent>-<sid>.jsonl    a pack: all observations of a session that ended, one a line
    done/keys-YYYY-MM-DD        keys of observations that were pruned or forgotten, one a line, kept 30 days

An observation exists once a complete file or line of it exists: a torn one counts for nothing, and its event is still
in `inbox/new`. Folder and pack of one session may stand side by side and are read as a set.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from vaultd.core.event import Delivery, parse_delivery
from vaultd.core.ids import KEY, Key, Sid, key_epoch
from vaultd.core.observation import Observation, observation_json
from vaultd.core.sanitize import Clean
from vaultd.store import fs
from vaultd.store.observed import Observed

__all__ = ["MAX_EVENT", "Inbox", "SessionName", "Waiting"]

MAX_EVENT = 8 * 1024 * 1024 + 64 * 1024
"""Bytes of an event file that are read: the hook's bound on the payload and room for the header."""

_FAILED = "vaultd-failed"
"""The key of the format number in a reason's file."""

_OFFERED = frozenset(b"handoff"[:n] + b"offered"[n:] for n in range(8))
"""What a hook calls the handoff that it means to claim, and has claimed: it writes one over the other, perhaps half."""


@dataclass(frozen=True, slots=True, order=True)
class SessionName:
    """The name of a session's observations: agent id and sid."""

    agent: str
    sid: Sid

    def __str__(self) -> str:
        return f"{self.agent}-{self.sid}"

    @staticmethod
    def parse(name: str) -> SessionName | None:
        """From a folder's or pack's name; None for anything else."""
        agent, dash, sid = name.removesuffix(".jsonl").rpartition("-")
        if not dash or not agent or len(sid) != 10 or any(c not in "0123456789abcdef" for c in sid):
            return None
        return SessionName(agent, Sid(sid))


@dataclass(frozen=True, slots=True)
class Waiting:
    """How much waits: events in `new`, age in seconds of the oldest (0 when none), events in `failed`."""

    new: int
    oldest_s: float
    failed: int


class Inbox:
    """The inbox below a vault's `.vaultd` folder.

    Nothing here blocks, and nothing here syncs by itself: `sync()` makes durable what was filed before it; only after
    it may an event be acknowledged.
    """

    def __init__(self, room: Path) -> None:
        self.new = room / "inbox/new"
        self.tmp = room / "inbox/tmp"
        self.failed = room / "inbox/failed"
        self.done = room / "done"
        self._new = os.fspath(self.new)
        self._done = os.fspath(self.done)
        self._observed = Observed(self.done)

    def pending(self) -> list[Key]:
        """Keys of the delivered events, by the epoch in their names, then by name; what is no key is left out."""
        try:
            names = [e.name for e in os.scandir(self.new) if KEY.match(e.name) and not e.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return []
        return [Key(name) for name in sorted(names, key=lambda n: (key_epoch(n), n))]

    def strangers(self) -> list[str]:
        """Names in `new` that are no event (temporary names left out)."""
        try:
            entries = [e for e in os.scandir(self.new) if not e.name.startswith(fs.TEMP_PREFIX)]
        except FileNotFoundError:
            return []
        return [e.name for e in entries if not KEY.match(e.name) or e.is_dir(follow_symlinks=False)]

    def read(self, key: str) -> Delivery | bytes | None:
        """One delivery; its raw bytes when it is not an event file; None when it is gone.

        OSError when it cannot be read at present: that says nothing about what it is.
        """
        try:
            handle = os.open(f"{self._new}/{key}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                return b""  # a symbolic link or a socket: nothing that a hook made
            raise
        try:
            stat = os.fstat(handle)
            if not S_ISREG(stat.st_mode):
                return b""
            parts, left = [], MAX_EVENT
            while left and (part := os.read(handle, min(left, max(stat.st_size + 1, 4096)))):
                parts.append(part)
                left -= len(part)
        finally:
            os.close(handle)
        data = b"".join(parts)
        return parse_delivery(Key(key), data, stat.st_mtime_ns) or data

    def raw(self, key: str) -> bytes:
        """The bytes of a delivery as far as they are read; empty when there is nothing to read."""
        try:
            fd = os.open(self.new / key, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(fd, "rb") as file:
                return file.read(MAX_EVENT)
        except OSError:
            return b""

    def file(self, name: SessionName, observation: Observation) -> None:
        """Put an observation into `done/`, replacing a torn one of the same key. Durable after `sync()`."""
        fs.write_private(f"{self._done}/{name}/{observation.event.key}", observation_json(observation))
        self._observed.filed(f"{name}", observation)

    def is_done(self, name: SessionName, key: str) -> bool:
        """Whether a complete observation of this key lies in the session's folder or pack, or its key is remembered."""
        return self._observed.has(f"{name}", key)

    def acknowledge(self, keys: Iterable[str]) -> None:
        """Remove events from `new`. Only after `sync()`, or after their effects were found complete."""
        for key in keys:
            fs.remove(f"{self._new}/{key}")

    def unprinted(self, before: float) -> list[str]:
        """Handoffs that hooks meant to claim whose events were never delivered and are older than `before` (epoch)."""
        found = []
        try:
            entries = list(os.scandir(self.tmp))
        except FileNotFoundError:
            return []
        for entry in entries:
            try:
                if not entry.is_file(follow_symlinks=False):
                    continue
                state = entry.stat(follow_symlinks=False)
                if state.st_mtime > before or state.st_nlink > 1:  # with a second name in `new` it was delivered
                    continue
                with open(entry.path, "rb") as file:
                    head = file.read(64 * 1024).partition(b"\n\n")[0]
            except OSError:
                continue
            for row in head.split(b"\n"):
                name, equals, value = row.partition(b"=")
                if equals and name in _OFFERED:
                    found.append(value.decode("utf-8", "replace"))
        return found

    def sync(self) -> None:
        """Make everything written so far on this file system durable (one call for a whole batch)."""
        fs.sync_filesystem(self.new)

    def reject(self, key: str, data: Clean, reason: Clean) -> None:
        """Put an event that cannot be understood into `failed/`, with the reason beside it, and acknowledge it."""
        told = json.dumps({_FAILED: 1, "reason": reason}, ensure_ascii=False) + "\n"
        fs.write_private(self.failed / f"{key}.reason.json", told.encode(), sync=True)
        fs.write_private(self.failed / key, data.encode(), sync=True)
        fs.remove(self.new / key)

    def failures(self) -> list[str]:
        """Keys in `failed/`, sorted."""
        try:
            names = sorted(e.name for e in os.scandir(self.failed) if not e.name.endswith(".reason.json"))
        except FileNotFoundError:
            return []
        return [name for name in names if not name.startswith(fs.TEMP_PREFIX)]

    def failure_reason(self, key: str) -> str:
        """Why an event failed, as it was written then."""
        try:
            return str(json.loads((self.failed / f"{key}.reason.json").read_bytes())["reason"])
        except (OSError, ValueError, KeyError, TypeError):
            return "no reason was kept"

    def retry(self, key: str) -> None:
        """Put a failed event back into `new` as it was kept (sanitised, perhaps cut). FileNotFoundError."""
        fs.move(self.failed / key, self.new / key)
        fs.remove(self.failed / f"{key}.reason.json")

    def drop(self, key: str) -> None:
        """Delete a failed event."""
        fs.remove(self.failed / key)
        fs.remove(self.failed / f"{key}.reason.json")

    def sessions(self) -> list[SessionName]:
        """Sessions that have a folder of observations (those not packed, or going on after they were), sorted."""
        try:
            names = [SessionName.parse(e.name) for e in os.scandir(self.done) if e.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return []
        return sorted(n for n in names if n is not None)

    def has_pack(self, name: SessionName) -> bool:
        """Whether the session ended before and was packed."""
        return os.path.exists(f"{self._done}/{name}.jsonl")  # noqa: PTH110 - on text, for each event

    def packs(self) -> list[SessionName]:
        """Sessions that have a pack, sorted."""
        try:
            names = [SessionName.parse(e.name) for e in os.scandir(self.done) if e.name.endswith(".jsonl")]
        except FileNotFoundError:
            return []
        return sorted(n for n in names if n is not None)

    def observations(self, name: SessionName) -> list[Observation]:
        """All observations of a session, folder and pack as one set, by event time, file time, key."""
        return self._observed.all(f"{name}")

    def packed(self, name: SessionName) -> frozenset[str]:
        """The keys in a session's pack: what was known when it ended."""
        return self._observed.packed(f"{name}")

    def pack(self, name: SessionName, fresh: Iterable[Observation] = ()) -> None:
        """Turn a session's folder and observations that were not filed yet into its pack.

        Two durable effects: after the first (pack replaced) the folder says nothing that the pack does not; after the
        second (folder removed) only the pack is left. The pack of a session that had nothing in `done/` is durable
        after `sync()`, any other at once. What a newer vaultd wrote is kept in it.
        """
        found = {o.event.key: o for o in self.observations(name)}
        newer = self._observed.newer(f"{name}")
        before = bool(found or newer)
        found.update((o.event.key, o) for o in fresh)
        if not found:
            return
        lines = [observation_json(o) for o in sorted(found.values(), key=lambda o: o.event.order)]
        data = b"".join(line + b"\n" for line in (*lines, *newer.values()))
        fs.write_private(f"{self._done}/{name}.jsonl", data, sync=before)
        fs.remove_tree(self.done / str(name))
        self._observed.forget(f"{name}")

    def waiting(self, now: float) -> Waiting:
        """What `status` shows."""
        new, oldest = 0, now
        try:
            for entry in os.scandir(self.new):
                if KEY.match(entry.name):
                    new += 1
                    oldest = min(oldest, key_epoch(entry.name) or _came(entry, now))
        except FileNotFoundError:
            pass
        return Waiting(new, max(0.0, now - oldest), len(self.failures()))


def _came(entry: os.DirEntry[str], now: float) -> float:
    """When a file came; `now` when it is gone."""
    try:
        return entry.stat(follow_symlinks=False).st_mtime
    except FileNotFoundError:
        return now
