"""Replace a page beside a person who may be saving it: compare-and-swap against the revision that was read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from vaultd.store import fs
from vaultd.store.fs import Revision

__all__ = ["Change", "SwapResult", "swap", "swap_many"]


class SwapResult(Enum):
    """What became of a swap."""

    WRITTEN = "written"
    DIVERGED = "diverged"
    BUSY = "busy"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Change:
    """One page to replace: `data` for what has the revision `expected` now."""

    path: Path
    data: bytes
    expected: Revision


def swap(path: Path, data: bytes, expected: Revision, *, quiet: float = 0.5, sync: bool = True) -> SwapResult:
    """Replace the file's bytes if they still have the revision `expected`."""
    return swap_many([Change(path, data, expected)], quiet=quiet, sync=sync)[0]


def swap_many(changes: Sequence[Change], *, quiet: float = 0.5, sync: bool = True) -> list[SwapResult]:
    """`swap` for many files, with one wait for all; results in the order of `changes`."""
    return [_replace(change, sync) for change in changes]


def _replace(change: Change, sync: bool) -> SwapResult:
    try:
        mode = os.stat(change.path).st_mode & 0o7777  # noqa: PTH116 - one call, the path is checked by the vault
        temp = fs.temp_beside(change.path, change.data, sync=sync, prefix=fs.SWAP_PREFIX)
        try:
            os.chmod(temp, mode)  # noqa: PTH101 - as above
            if fs.revision(change.path.read_bytes()) != change.expected:
                return SwapResult.DIVERGED
            fs.replace(temp, change.path)
        finally:
            fs.remove(temp)
    except FileNotFoundError:
        return SwapResult.GONE
    if sync:
        fs.sync_folder(change.path.parent)
    return SwapResult.WRITTEN
