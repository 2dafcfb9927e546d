"""Where in the vault a page lies that a client names: the one check that every tool's path goes through.

A path is relative to the project's folder, or to the vault's root when it begins with that folder. What a file system
makes of it (symlinks, links out of the vault) is checked again by the store.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import PurePosixPath

from vaultd.errors import RefusedError

__all__ = ["GLOBAL", "may_be_written", "page_path"]

GLOBAL = "_global"
"""The folder of pages that hold in every project."""

_DEVICES = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(?:\..*)?\Z", re.IGNORECASE)
_ODD = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\\:*?\"<>|]")
_BYTES, _PATH_BYTES = 255, 2048  # of a name; of all of them together, with room for where the vault is


def page_path(path: str, folder: str, others: Collection[str] = ()) -> str:
    """The path of a page from the vault's root. `folder` is the project's ("" for the vault), `others` those of others.

    `.md` is added where it is missing. RefusedError, which says what to do, for anything else than plain names in the
    folder: absolute paths, `..`, hidden names (`.git`, `.vaultd`), device names, other projects.
    """
    told = path.strip()
    named = told if told.endswith(".md") else f"{told}.md"
    segments = named.split("/")
    long = len(named.encode("utf-8", "replace")) > _PATH_BYTES
    if not told or told.startswith(("/", "~")) or told.endswith("/") or long or any(map(_flawed, segments)):
        raise RefusedError(f"{path!r} is not the path of a page. Give plain names, as in notes/x.md.")
    if not folder or named.startswith(f"{folder}/"):
        return named
    for other in others:
        if other != folder and named.startswith(f"{other}/"):
            raise RefusedError(f"{path!r} lies in another project. Name that project, or a path in this one.")
    return f"{folder}/{named}"


def may_be_written(path: str, folder: str) -> str:
    """Why a client may not make, replace or delete the page at a vault path in `folder`, in words; "" when it may."""
    parts = PurePosixPath(path[len(folder) + 1 :] if folder else path).parts
    if parts[0] == "handoffs":
        return "handoffs have tools of their own"
    if parts[0] in ("sessions", "workstreams", "_tombstones", "_pending"):
        return f"pages in {parts[0]}/ are made by vaultd and corrected by a person"
    if len(parts) == 1 and (parts[0] == "project.md" or re.fullmatch(r"log-\d{4}-\d\d\.md", parts[0])):
        return f"{parts[0]} is kept by vaultd"
    return ""


def _flawed(name: str) -> bool:
    """Whether a name in a path is not a plain one."""
    return (
        not name
        or name.startswith(".")
        or name != name.strip()
        or name.endswith(".")
        or name in (".md", "..md")
        or len(name.encode("utf-8", "replace")) > _BYTES
        or _ODD.search(name) is not None
        or _DEVICES.match(name) is not None
    )
