"""The outbox: what the hook needs to know, in files that shell builtins can read. All of it is derived.

    map/<agent>.<Event>     one line, three words: shape, moment (start, prompt or -), drain or -
    map/command             one line: the vaultd executable that a detached ingest pass runs
    at/<checkout>/<subdir>/@vaultd/claim     what a session starting there may claim
    at/<checkout>/<subdir>/@vaultd/<shape>   the exact bytes that it is given then

`at` mirrors absolute paths. A claim's lines: the open handoff's path, its path once accepted, the native id of the session
that left it, that session's client (pid, start ticks, boot id; 0 when it needs not be checked), the epoch second before which it is not
offered. Order of writing: prepared texts first, the claim last; of removal: the claim first.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from vaultd.store import fs

__all__ = ["Claim", "Offer", "Outbox"]

_FOLDER = "@vaultd"


@dataclass(frozen=True, slots=True)
class Claim:
    """What stands in a claim file: absolute paths, native id, owner, epoch seconds or 0."""

    open_path: str
    accepted_path: str
    origin: str
    owner: str = "0"
    not_before: int = 0

    def encode(self) -> bytes:
        """The file's five lines."""
        text = f"{self.open_path}\n{self.accepted_path}\n{self.origin}\n{self.owner}\n{self.not_before}\n"
        return os.fsencode(text)


@dataclass(frozen=True, slots=True)
class Offer:
    """A claim with the prepared text in each shape (shape name to exact bytes)."""

    claim: Claim
    texts: Mapping[str, bytes]


class Outbox:
    """The outbox below a vault's `.vaultd` folder."""

    def __init__(self, room: Path) -> None:
        self.map = room / "outbox/map"
        self.at = room / "outbox/at"

    def write_map(self, lines: Mapping[str, str], command: str) -> None:
        """Make the event map say exactly this; files that say it already are left alone."""
        wanted = {**{name: line + "\n" for name, line in lines.items()}, "command": command + "\n"}
        for name, text in wanted.items():
            self._put(self.map / name, os.fsencode(text))
        for entry in os.scandir(self.map):
            if entry.name not in wanted:
                fs.remove(Path(entry.path))

    def folder(self, checkout: str, subdir: str) -> Path:
        """The prepared folder of one place; `checkout` is absolute, `subdir` relative to it or empty."""
        return self.at / checkout.lstrip("/") / subdir / _FOLDER

    def offer(self, checkout: str, subdir: str, offer: Offer) -> None:
        """Prepare an offer for sessions that start in a place."""
        folder = self.folder(checkout, subdir)
        for shape, data in offer.texts.items():
            self._put(folder / shape, data)
        self._put(folder / "claim", offer.claim.encode())

    def withdraw(self, checkout: str, subdir: str) -> None:
        """Offer nothing in a place any more."""
        folder = self.folder(checkout, subdir)
        try:
            names = [e.name for e in os.scandir(folder)]
        except (FileNotFoundError, NotADirectoryError):
            return
        for name in sorted(names, key=lambda n: n != "claim"):
            fs.remove(folder / name)

    def offered(self, checkout: str) -> set[str]:
        """Subdirs of a checkout ("" for its root) that have a claim at present."""
        base = self.at / checkout.lstrip("/")
        found: set[str] = set()
        for folder, names, files in os.walk(base):
            if Path(folder).name == _FOLDER:
                names.clear()
                if "claim" in files:
                    relative = Path(folder).parent.relative_to(base).as_posix()
                    found.add("" if relative == "." else relative)
        return found

    def clear(self, keep: Iterable[tuple[str, str]] = ()) -> None:
        """Withdraw every offer but those of the given (checkout, subdir) places."""
        kept = {self.folder(checkout, subdir) for checkout, subdir in keep}
        for folder, _, files in os.walk(self.at):
            path = Path(folder)
            if path.name == _FOLDER and path not in kept:
                for name in sorted(files, key=lambda n: n != "claim"):
                    fs.remove(path / name)

    @staticmethod
    def _put(path: Path, data: bytes) -> None:
        """Write a file unless it says so already."""
        try:
            if path.read_bytes() == data:
                return
        except OSError:
            pass
        fs.write_private(path, data)
