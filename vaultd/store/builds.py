"""Which build of the index counts: `meta.json` names one folder beside it, and for whom it was made.

A build is made whole in a folder of its own and counts from the rename of `meta.json` on; so there is always the old
one or the new one, and a reader never sees half of one.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vaultd.store.fs import make_folder, remove_tree, write_private

__all__ = ["Build", "Builds"]

_BUILD = re.compile(r"build-(\d+)\Z")
_UNREADABLE = (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError)


@dataclass(frozen=True, slots=True)
class Build:
    """The build that counts. `base`: generations before it. `stamp` differs for a build of that name made again."""

    folder: Path
    base: int
    stamp: tuple[int, int]


class Builds:
    """The builds in one folder, for a reader with this `identity` (JSON scalars: formats, versions, the vault)."""

    def __init__(self, folder: Path, identity: Mapping[str, object]) -> None:
        self.folder = folder
        self._identity = identity
        self._meta = folder / "meta.json"

    def current(self) -> Build | str:
        """The build that counts, else the reason why none does."""
        try:
            with self._meta.open("rb") as file:
                stat = os.fstat(file.fileno())
                meta = json.load(file)
            told = {name: meta[name] for name in self._identity}
            name = str(meta["build"])
            if not _BUILD.match(name):
                raise ValueError(f"{name!r} is no build")
            build = Build(self.folder / name, int(meta["base"]), (stat.st_ino, stat.st_mtime_ns))
            doubt = meta["doubt"]
        except FileNotFoundError:
            return "there is no index yet"
        except _UNREADABLE as error:
            return f"its meta.json cannot be read ({type(error).__name__})"
        for name, value in self._identity.items():
            if told[name] != value:
                return f"it was made for another {name} ({told[name]})"
        return str(doubt) if doubt else build

    def begin(self) -> Path:
        """A new empty folder to build in, the owner's alone; nothing counts because of it."""
        make_folder(self.folder, mode=0o700)
        self.folder.chmod(0o700)
        folder = self.folder / f"build-{1 + max(self._numbers().values(), default=0)}"
        folder.mkdir(mode=0o700)
        return folder

    def adopt(self, folder: Path, base: int) -> None:
        """Let a build count from now on, then remove the others.

        Crash after: the rename of `meta.json`: it counts, the others are litter until the next one is adopted.
        """
        self._write(folder, base, None)
        for name in self._numbers():
            if name != folder.name:
                remove_tree(self.folder / name)

    def condemn(self, build: Build, reason: str) -> None:
        """Let a build count no more, for every process; nothing when another one counts by now."""
        if self.current() == build:
            self._write(build.folder, build.base, reason)

    def base(self) -> int:
        """The generations before the build that counts or counted last; 0 when nothing tells."""
        with contextlib.suppress(*_UNREADABLE):
            return int(json.loads(self._meta.read_bytes())["base"])
        return 0

    def folders(self) -> list[Path]:
        """All builds, also those that do not count."""
        return [self.folder / name for name in self._numbers()]

    def _numbers(self) -> dict[str, int]:
        """The builds by name, with their numbers."""
        with contextlib.suppress(FileNotFoundError):
            return {path.name: int(match[1]) for path in self.folder.iterdir() if (match := _BUILD.match(path.name))}
        return {}

    def _write(self, folder: Path, base: int, doubt: str | None) -> None:
        """Name a build and say whether it is in doubt."""
        meta = {**self._identity, "build": folder.name, "base": base, "doubt": doubt}
        write_private(self._meta, json.dumps(meta, indent=1).encode())
