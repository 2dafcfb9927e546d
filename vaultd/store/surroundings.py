"""Where a hook fires: the checkout round a folder, and the marker file that counts there. Imports next to nothing.

The same walk as in `hooks/vaultd-hook`; paths are bytes, since names need not be UTF-8.
"""

from __future__ import annotations

import os
import re

__all__ = ["checkout_of", "switched_off"]

_ENABLED = re.compile(rb"\s*enabled(?=[=:\s])[^=:]*[=:]", re.IGNORECASE)
_TRUE = re.compile(rb"[^=:]*[=:]\s*true(?:[\s#]|\Z)")


def checkout_of(cwd: bytes, home: bytes) -> tuple[bytes, bytes, bytes]:
    """The nearest folder upwards with .git or .vaultd.toml; the first line of the nearest .git that is a file; the
    nearest .vaultd.toml. The home folder is no checkout, though its marker counts.
    """
    root = checkout = marker = b""
    folder = cwd.rstrip(b"/")
    while folder:
        at_home = _same(folder, home)
        if not marker and os.path.exists(folder + b"/.vaultd.toml"):  # noqa: PTH110  # bytes paths
            marker = folder + b"/.vaultd.toml"
            root = root or (b"" if at_home else folder)
        if not checkout and not at_home and os.path.exists(folder + b"/.git"):  # noqa: PTH110  # bytes paths
            checkout = folder
            root = root or folder
        folder = folder.rpartition(b"/")[0]
    gitfile = b""
    if checkout and os.path.isfile(checkout + b"/.git"):  # noqa: PTH113  # bytes paths
        with open(checkout + b"/.git", "rb") as file:
            gitfile = file.read(4096).split(b"\n", 1)[0]
    return root, gitfile, marker


def _same(folder: bytes, other: bytes) -> bool:
    """Whether two paths lead to one folder."""
    try:
        return os.path.samefile(folder, other)  # noqa: PTH121  # bytes paths
    except OSError:
        return False


def switched_off(marker: bytes) -> bool:
    """Whether the marker file has a line `enabled = ...` that does not say true."""
    if not marker:
        return False
    with open(marker, "rb") as file:
        rows = file.read(65536).split(b"\n")
    return any(_ENABLED.match(row) and not _TRUE.match(row) for row in rows)
