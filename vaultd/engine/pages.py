"""Frontmatter of pages by path, read once per state of a file.

Finding a page by something it says (a session's id) must not read every page each time: what was read is kept by the
file's inode, time and size.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping

from vaultd.core import frontmatter
from vaultd.store.vault import Vault

__all__ = ["Pages"]

_MOST = 4096  # pages whose frontmatter is kept; those that were not asked for longest go first
_OF_A_SESSION = re.compile(r"\d{4}-\d\d-\d\d-.+-[0-9a-f]{10}\.md\Z")


class Pages:
    """A cache of the frontmatter of the pages that were asked for."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._known: dict[str, tuple[tuple[int, int, int], Mapping[str, object]]] = {}

    def page(self, path: str) -> Mapping[str, object] | None:
        """The frontmatter of one page; None when there is no such file (a symlink is none)."""
        try:
            found = os.lstat(self._vault.root / path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return self._values(path, found) if stat.S_ISREG(found.st_mode) else None

    def folder(self, rel: str) -> Iterator[tuple[str, Mapping[str, object]]]:
        """(path, frontmatter) of each page that lies directly in a folder, by name; nothing when there is no folder."""
        for name in self._names(rel):
            values = self.page(f"{rel}/{name}")
            if values is not None:
                yield f"{rel}/{name}", values

    def session(self, folder: str, agent: str, sid: str) -> str | None:
        """The page of a session in a project's folder: by its name, else by its `id` (a person may have renamed it)."""
        sessions = f"{folder}/sessions"
        names = self._names(sessions)
        for name in names:
            if name.endswith(f"-{agent}-{sid}.md") and self.page(f"{sessions}/{name}") is not None:
                return f"{sessions}/{name}"
        for name in names:
            values = None if _OF_A_SESSION.match(name) else self.page(f"{sessions}/{name}")
            if values is not None and values.get("id") == f"{agent}-{sid}":
                return f"{sessions}/{name}"
        return None

    def _names(self, rel: str) -> list[str]:
        """Names of the pages in a folder, sorted."""
        try:
            names = os.listdir(self._vault.root / rel)  # noqa: PTH208 - bare names are all we need
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name for name in names if name.endswith(".md") and not name.startswith("."))

    def _values(self, path: str, found: os.stat_result) -> Mapping[str, object] | None:
        """The frontmatter of a file in this state; None when it is gone since."""
        state = (found.st_ino, found.st_mtime_ns, found.st_size)
        known = self._known.pop(path, None)
        if known is None or known[0] != state:
            page = self._vault.read(path)
            if page is None:
                return None
            known = (state, frontmatter.parse(page.data).meta.values)
        self._known[path] = known
        while len(self._known) > _MOST:
            self._known.pop(next(iter(self._known)))
        return known[1]
