"""The token that clients over TCP must know: one line in a file of the user's alone."""

from __future__ import annotations

import secrets
import stat
from pathlib import Path

from vaultd.errors import RefusedError
from vaultd.store import fs

__all__ = ["token_of"]

_LEAST = 32
"""Characters of a token: what nobody guesses."""


def token_of(path: Path, *, make: bool) -> str:
    """The token; a new one is made where there is none and `make` says so.

    RefusedError for a file that others can read, or that holds too short a token, or that is not there.
    """
    if make and not path.exists():
        try:
            fs.make_folder(path.parent)
            fs.publish(path, f"{secrets.token_urlsafe(32)}\n".encode(), mode=0o600)
        except FileExistsError:
            pass  # made this moment by another process
    try:
        mode, text = path.stat().st_mode, path.read_text("utf-8", "replace").strip()
    except FileNotFoundError:
        raise RefusedError(
            f"There is no token in {path}: other machines would be let in without one. Put a line of at least "
            f"{_LEAST} random characters there (`chmod 600`)."
        ) from None
    if stat.S_IMODE(mode) & 0o077:
        raise RefusedError(f"Others can read the token in {path}: `chmod 600 {path}`, and change it.")
    if len(text) < _LEAST or not text.isascii() or any(c.isspace() for c in text):
        raise RefusedError(f"The token in {path} must be one word of at least {_LEAST} plain characters.")
    return text
