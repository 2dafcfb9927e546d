"""Observations on disk, read, and those of sessions at work kept in mind: a look at one does not read it whole again.

An observation's file is never changed, only replaced or removed; a pack is replaced whole. So what was read counts as
long as the name leads to the same file. Files that are torn count for nothing and are looked at again each time. Those
of a newer format than this program knows are not read, but they are there: `newer` has them as they lie.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from vaultd.core.ids import KEY
from vaultd.core.observation import NewerObservation, Observation, parse_observation

__all__ = ["Observed"]

_State: TypeAlias = tuple[int, int, int]
"""What tells a pack from the one before: inode, time, size."""


@dataclass(slots=True)
class _Kept:
    """What is kept of one session: by key the inode (0 until it was seen) and observation of its files; its pack, and
    the lines in that which a newer vaultd wrote.
    """

    files: dict[str, tuple[int, Observation]] = field(default_factory=dict)
    pack: dict[str, Observation] = field(default_factory=dict)
    newer: dict[str, bytes] = field(default_factory=dict)
    state: _State | None = None
    weight: int = 0

    def weigh(self) -> None:
        """Reckon its weight anew."""
        observations = (*self.pack.values(), *(observation for _, observation in self.files.values()))
        self.weight = sum(map(_weight, observations))


class Observed:
    """Reads the observations below `done/`, a folder and a pack for each session, both named after it.

    At most `most` observations are kept, long ones counting as several; the session that nobody asked for longest goes
    first, and one that has more than that is not kept at all.
    """

    def __init__(self, done: Path, most: int = 10_000) -> None:
        self._done = os.fspath(done)
        self._most = most
        self._kept: dict[str, _Kept] = {}
        self._size = 0
        self._newer: dict[str, dict[str, bytes]] = {}
        self._keys: dict[str, tuple[_State, frozenset[str]]] = {}
        self._retired: tuple[int, frozenset[str]] = (0, frozenset())

    @property
    def kept(self) -> int:
        """How many observations are kept at present, long ones counting as several."""
        return self._size

    def filed(self, name: str, observation: Observation) -> None:
        """An observation was written just now."""
        kept = self._of(name)
        kept.files[observation.event.key] = (0, observation)
        kept.weight += _weight(observation)
        self._keep(name, kept)

    def all(self, name: str) -> list[Observation]:
        """All observations of a session, folder and pack as one set, by event time, file time, key."""
        kept = self._of(name)
        found = dict(self._pack(name, kept))
        newer = dict(kept.newer)
        kept.files = self._folder(name, kept.files, newer)
        self._newer.pop(name, None)
        if newer:
            self._newer[name] = newer
        found.update((key, observation) for key, (_, observation) in kept.files.items())
        kept.weigh()
        self._keep(name, kept)
        return sorted(found.values(), key=lambda o: o.event.order)

    def newer(self, name: str) -> dict[str, bytes]:
        """By key, what the last `all` found of a newer format and left out: each as one line without its end."""
        return self._newer.get(name, {})

    def has(self, name: str, key: str) -> bool:
        """Whether there is a complete observation of this key, or the key is remembered without one."""
        try:
            parse_observation(_bytes(f"{self._done}/{name}/{key}"))
        except OSError:
            return key in self.packed(name) or key in self._retired_keys()
        except NewerObservation:
            return True
        except ValueError:
            return False
        return True

    def forget(self, name: str) -> None:
        """Keep nothing of a session any more."""
        self._of(name)

    def _of(self, name: str) -> _Kept:
        """What is kept of a session, taken out until `_keep` puts it back as the one that was asked for last."""
        kept = self._kept.pop(name, None)
        if kept is None:
            return _Kept()
        self._size -= kept.weight
        return kept

    def _keep(self, name: str, kept: _Kept) -> None:
        if not 0 < kept.weight <= self._most:
            return
        self._kept[name] = kept
        self._size += kept.weight
        while self._size > self._most:
            self._of(next(iter(self._kept)))

    def _folder(
        self, name: str, known: dict[str, tuple[int, Observation]], newer: dict[str, bytes]
    ) -> dict[str, tuple[int, Observation]]:
        """The complete observations that lie in a session's folder now; those of a newer format go into `newer`."""
        folder = f"{self._done}/{name}"
        found: dict[str, tuple[int, Observation]] = {}
        try:
            entries = [(entry.name, entry.inode()) for entry in os.scandir(folder) if KEY.match(entry.name)]
        except FileNotFoundError:
            return found
        for key, inode in entries:
            have = known.get(key)
            if have is not None and have[0] in (0, inode):
                found[key] = (inode, have[1])
                continue
            try:
                data = _bytes(f"{folder}/{key}")
                found[key] = (inode, parse_observation(data))
            except NewerObservation:
                newer[key] = data.strip()
            except (OSError, ValueError):
                continue
        return found

    def _pack(self, name: str, kept: _Kept) -> dict[str, Observation]:
        """The complete observations of a session's pack, by key."""
        state = _state(f"{self._done}/{name}.jsonl")
        if kept.state != state:
            kept.state, kept.newer = state, {}
            kept.pack = {o.event.key: o for o in _lines(f"{self._done}/{name}.jsonl", kept.newer)}
        return kept.pack

    def packed(self, name: str) -> frozenset[str]:
        """The keys of a session's pack, none when there is no pack."""
        # Kept of more sessions than observations are.
        state = _state(f"{self._done}/{name}.jsonl")
        if state is None:
            return frozenset()
        kept = self._keys.pop(name, None)
        if kept is None or kept[0] != state:
            newer: dict[str, bytes] = {}
            keys = [o.event.key for o in _lines(f"{self._done}/{name}.jsonl", newer)]
            kept = (state, frozenset([*keys, *newer]))
        self._keys[name] = kept
        while len(self._keys) > 64:
            self._keys.pop(next(iter(self._keys)))
        return kept[1]

    def _retired_keys(self) -> frozenset[str]:
        """Keys that are remembered without their observations, read again when names in `done` changed."""
        try:
            changed = os.stat(self._done).st_mtime_ns  # noqa: PTH116 - on text, for each event
        except FileNotFoundError:
            return frozenset()
        if self._retired[0] != changed:
            keys: set[str] = set()
            for path in Path(self._done).glob("keys-????-??-??"):
                keys.update(path.read_text("utf-8", "replace").split())
            self._retired = (changed, frozenset(keys))
        return self._retired[1]


def _weight(observation: Observation) -> int:
    """What an observation counts as: one for each thousand characters or part of them."""
    event = observation.event
    long = len(event.text)
    if event.tool is not None:
        long += len(event.tool.output) + len(event.tool.error)
    return 1 + long // 1000


def _state(path: str) -> _State | None:
    """What a pack is at present; None when there is none."""
    try:
        stat = os.stat(path)  # noqa: PTH116 - on text, for each event
    except FileNotFoundError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


def _lines(path: str, newer: dict[str, bytes]) -> Iterator[Observation]:
    """The complete observations of a pack; none when there is none. Those of a newer format are put into `newer`."""
    try:
        file = open(path, "rb")  # noqa: SIM115  # closed by the with below
    except FileNotFoundError:
        return
    with file:
        for line in file:
            try:
                yield parse_observation(line.rstrip(b"\n"))
            except NewerObservation as error:
                newer[error.key or f"?{len(newer)}"] = line.strip()
            except ValueError:
                continue


def _bytes(path: str) -> bytes:
    """A small file whole."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(handle, 1 << 16):
            parts.append(part)
    finally:
        os.close(handle)
    return b"".join(parts)
