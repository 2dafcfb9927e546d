"""Frontmatter of pages by path, read once per state of a file.

Finding a page by something it says (a session's id) must not read every page each time: what was read is kept by the
file's inode, time and size.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from vaultd.core import frontmatter
from vaultd.store.vault import Vault

__all__ = ["Pages"]


class Pages:
    """A cache of the frontmatter of the pages in folders that were asked for."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._known: dict[str, tuple[tuple[int, int, int], Mapping[str, object]]] = {}

    def folder(self, rel: str) -> Iterator[tuple[str, Mapping[str, object]]]:
        """(path, frontmatter) of each page that lies directly in a folder, by name; nothing when there is no folder."""
        try:
            entries = sorted(os.scandir(self._vault.root / rel), key=lambda e: e.name)
        except (FileNotFoundError, NotADirectoryError):
            return
        for entry in entries:
            if not entry.name.endswith(".md") or entry.name.startswith(".") or not entry.is_file(follow_symlinks=False):
                continue
            path = str(PurePosixPath(rel, entry.name))
            try:
                stat = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            state = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            known = self._known.get(path)
            if known is None or known[0] != state:
                page = self._vault.read(path)
                if page is None:
                    continue
                known = (state, frontmatter.parse(page.data).meta.values)
                self._known[path] = known
            yield path, known[1]

    def session(self, folder: str, agent: str, sid: str) -> str | None:
        """The page of a session in a project's folder: by its name, else by its `id` (a person may have renamed it)."""
        fallback = None
        for path, values in self.folder(f"{folder}/sessions"):
            if path.endswith(f"-{agent}-{sid}.md"):
                return path
            if values.get("id") == f"{agent}-{sid}":
                fallback = path
        return fallback
