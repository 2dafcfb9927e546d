"""Sizes and checksums of files that another program writes and never syncs: a torn one is noticed before it is read.

`sums.json` lies beside the files. It is written before a file is published that needs the others, so whatever the sums
do not vouch for is either not in use yet or damaged.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from vaultd.store.fs import write_private

__all__ = ["Sum", "note_sums", "read_sums", "sum_of", "torn"]

FORMAT = 1
"""Number of the layout of `sums.json`."""

Sum = tuple[int, int]
"""A file's size in bytes and its CRC-32: against tearing and rot, not against a person."""

_BLOCK = 1 << 20


def sum_of(path: Path) -> Sum:
    """The sum of a file as it is now. OSError when it is gone."""
    size = crc = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            size += len(block)
            crc = zlib.crc32(block, crc)
    return size, crc


def read_sums(folder: Path) -> dict[str, Sum]:
    """The sums noted for the files of a folder, by name; empty when there are none or they cannot be read."""
    try:
        noted = json.loads((folder / "sums.json").read_bytes())
        if noted["format"] != FORMAT:
            return {}
        return {str(name): (int(size), int(crc)) for name, (size, crc) in noted["files"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return {}


def note_sums(folder: Path, kept: Iterable[str], new: Mapping[str, Path]) -> None:
    """Note the sums of files: `kept` by name (those noted before are not read again), `new` names with their bytes.

    Atomic: a crash leaves the sums before or after.
    """
    known = read_sums(folder)
    sums = {name: known.get(name) or sum_of(folder / name) for name in kept}
    sums.update((name, sum_of(path)) for name, path in new.items())
    write_private(folder / "sums.json", json.dumps({"format": FORMAT, "files": sums}).encode())


def torn(folder: Path, names: Iterable[str], checked: set[str]) -> str | None:
    """What is wrong with the named files: missing, not vouched for or not what was noted; None when nothing is.

    `checked` names files that never change and were read through before; it grows by those that are right.
    """
    sums = read_sums(folder)
    for name in names:
        if name in checked:
            continue
        if name not in sums:
            return f"nothing vouches for {name}"
        try:
            if sum_of(folder / name) != sums[name]:
                return f"{name} is damaged"
        except OSError as error:
            return f"{name} cannot be read ({error.strerror})"
        checked.add(name)
    return None
