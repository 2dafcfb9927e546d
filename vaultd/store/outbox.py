"""The outbox: what the hook needs to know, in files that shell builtins can read. All of it is derived.

    map/<agent>.<Event>     one line: shape, moment (start, prompt, tool or -), drain or -, and for prompt and tool the
                            name in the payload of the session's id
    given/<agent>-<id>      an empty file: that session had its moment
    map/command             one line: the vaultd executable that a detached ingest pass runs
    at/<checkout>/<subdir>/@vaultd/claim     what a session starting there may claim
    at/<checkout>/<subdir>/@vaultd/<shape>   the exact bytes that it is given then

`at` mirrors absolute paths. A claim's lines: the open handoff's path; its path once accepted, or `-` where it is only
offered: printed, and left open; the native id of the session that left it; that session's client (pid, start ticks,
boot id; 0 when it needs not be checked); the epoch second before which it is not offered. Order of writing: prepared
texts first, the claim last; of removal: the claim first.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from vaultd.core.prepared import Prepared
from vaultd.core.sanitize import Clean
from vaultd.store import fs

__all__ = ["Claim", "Offer", "Outbox"]

_FOLDER = "@vaultd"
_GIVEN_S = 90 * 24 * 3600
_NAME_BYTES, _PATH_BYTES = 255, 3_500  # the latter leaves room for a file's own name in what a system call takes


@dataclass(frozen=True, slots=True)
class Claim:
    """What stands in a claim file: absolute paths, native id (one line), owner, epoch seconds or 0."""

    open_path: str
    accepted_path: str
    origin: Clean
    owner: str = "0"
    not_before: int = 0

    def encode(self) -> bytes:
        """The file's five lines."""
        text = f"{self.open_path}\n{self.accepted_path}\n{self.origin}\n{self.owner}\n{self.not_before}\n"
        return os.fsencode(text)


@dataclass(frozen=True, slots=True)
class Offer:
    """A claim with the prepared text in each shape."""

    claim: Claim
    texts: Mapping[str, Prepared]


class Outbox:
    """The outbox below a vault's `.vaultd` folder."""

    def __init__(self, room: Path) -> None:
        self.map = room / "outbox/map"
        self.at = room / "outbox/at"
        self._given = room / "outbox/given"

    def write_map(self, lines: Mapping[str, str], command: str) -> None:
        """Make the event map say exactly this; files that say it already are left alone. Safe beside another writer."""
        self._given.mkdir(parents=True, exist_ok=True)
        wanted = {**{name: line + "\n" for name, line in lines.items()}, "command": command + "\n"}
        for name, text in wanted.items():
            self._put(self.map / name, os.fsencode(text))
        for entry in os.scandir(self.map):
            if entry.name not in wanted and not entry.name.startswith(fs.TEMP_PREFIX):
                fs.remove(Path(entry.path))

    def takes(self, checkout: str, subdir: str = "") -> bool:
        """Whether a place can be mirrored: absolute, plain, no longer than a file system takes."""
        names = [name for name in f"{checkout}/{subdir}".split("/") if name]
        try:
            whole = os.fsencode(self.folder(checkout, subdir))
            longest = max((len(os.fsencode(name)) for name in names), default=0)
        except UnicodeEncodeError:
            return False
        odd = {".", "..", _FOLDER} & set(names)
        return (
            checkout.startswith("/")
            and not odd
            and b"\0" not in whole
            and longest <= _NAME_BYTES
            and len(whole) <= _PATH_BYTES
        )

    def folder(self, checkout: str, subdir: str) -> Path:
        """The prepared folder of one place; `checkout` is absolute, `subdir` relative to it or empty.

        Always below `at`: what would lead out of it is passed over (see `takes`).
        """
        names = (name for name in f"{checkout}/{subdir}".split("/") if name not in ("", ".", ".."))
        return self.at.joinpath(*names, _FOLDER)

    def offer(self, checkout: str, subdir: str, offer: Offer) -> None:
        """Prepare an offer for sessions that start in a place.

        The claim of another handoff is withdrawn before its text is replaced, so that none is claimed with the text of
        another. Crash in between: nothing is offered there until the next pass.
        """
        folder, claim = self.folder(checkout, subdir), offer.claim.encode()
        if _content(folder / "claim").partition(b"\n")[0] != claim.partition(b"\n")[0]:
            fs.remove(folder / "claim")
        for shape, data in offer.texts.items():
            self._put(folder / shape, data)
        self._put(folder / "claim", claim)

    def withdraw(self, checkout: str, subdir: str) -> None:
        """Offer nothing in a place any more."""
        _empty(self.folder(checkout, subdir))

    def offered(self, checkout: str, but: Collection[str] = ()) -> set[str]:
        """Subdirs of a checkout ("" for its root) that have a claim at present, those in checkouts `but` left out."""
        base = self.folder(checkout, "").parent
        others = {self.folder(other, "").parent for other in but} - {base}
        found: set[str] = set()
        for name, folders, files in os.walk(base):
            folder = Path(name)
            if folder in others:
                folders.clear()
            elif folder.name == _FOLDER:
                folders.clear()
                if "claim" in files:
                    relative = folder.parent.relative_to(base).as_posix()
                    found.add("" if relative == "." else relative)
        return found

    def clear(self, keep: Iterable[tuple[str, str]] = ()) -> None:
        """Withdraw every offer but those of the given (checkout, subdir) places; forget moments of long ago."""
        oldest = time.time() - _GIVEN_S
        for entry in os.scandir(self._given) if self._given.is_dir() else ():
            if entry.stat(follow_symlinks=False).st_mtime < oldest:
                fs.remove(Path(entry.path))
        kept = {self.folder(checkout, subdir) for checkout, subdir in keep}
        for name, folders, _ in os.walk(self.at):
            folder = Path(name)
            if folder.name == _FOLDER:
                folders.clear()
                if folder not in kept:
                    _empty(folder)

    @staticmethod
    def _put(path: Path, data: bytes) -> None:
        """Write a file unless it says so already."""
        if _content(path) != data:
            fs.write_private(path, data)


def _content(path: Path) -> bytes:
    """What a file holds; b"" when it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _empty(folder: Path) -> None:
    """Remove the files of a prepared folder, the claim first."""
    try:
        names = [entry.name for entry in os.scandir(folder)]
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in sorted(names, key=lambda name: name != "claim"):
        fs.remove(folder / name)
