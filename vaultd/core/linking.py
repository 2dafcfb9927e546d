"""Which page a link leads to.

Obsidian takes a path from the vault's root that fits exactly, then the pages whose path ends in what is written: first
those in the folder of the page that has the link or below it, then all others, the shortest path first. So `[[log]]` is
the vault's own `log.md` wherever it stands, which is how Obsidian writes a link to it. We do the same, and where
Obsidian looks at all others we go outwards folder by folder: a link in a project leads into that project before it
leads into another. Aliases and `project:page` are ours; Obsidian leaves such links unresolved.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

__all__ = ["Resolver"]

_NO_ALIASES: Mapping[str, Collection[str]] = MappingProxyType({})


class Resolver:
    """The links of a vault with these files. Case does not count, nor do the two ways of writing an accent.

    `paths` are those of pages and other files from the vault's root, with `/`; `aliases` has other names of pages by
    their paths. The same files in another order give the same answers.
    """

    def __init__(self, paths: Iterable[str], aliases: Mapping[str, Collection[str]] = _NO_ALIASES) -> None:
        folded = sorted(((_fold(path), path) for path in paths), key=lambda entry: (len(entry[0]), entry))
        self._paths: dict[str, str] = {}  # folded to real, the shortest first
        self._real = {path for _, path in folded}
        self._names: dict[str, list[str]] = {}  # the name of a file to the folded paths that end in it
        self._aliases: dict[str, list[str]] = {}
        self._folders: dict[str, list[str]] = {}  # the name of a folder to those that have it
        parents: dict[str, None] = {}
        for key, path in folded:
            if key not in self._paths:
                self._paths[key] = path
                folder, _, name = key.rpartition("/")
                self._names.setdefault(name, []).append(key)
                parents[folder] = None
                for alias in aliases.get(path, ()):
                    self._aliases.setdefault(_fold(alias.strip()), []).append(key)
        for folder in _with_ancestors(parents):
            self._folders.setdefault(folder.rpartition("/")[2], []).append(folder)
        for same in self._folders.values():
            same.sort(key=lambda folder: (not folder.startswith("projects/"), folder.count("/"), len(folder), folder))

    def resolve(self, target: str, source: str) -> str | None:
        """The path of what a link in the page `source` names; None when there is no such file.

        `target` is the link without its anchor, percent signs decoded; "" is the page itself. `.md` may be left out,
        another ending may not. `/x` is from the root only, `./x` and `../x` from the page's folder only. In
        `project:page` the page is looked for in the folder of that name, `projects/` before other workspaces.
        """
        wanted = target.strip()
        if not wanted:
            return source if source in self._real else None
        if wanted in self._real:  # of two names that differ in case only, the one that is written
            return wanted
        key, folder = _fold(wanted), _fold(source).rpartition("/")[0]
        if key.startswith("/"):
            return self._exact(key.lstrip("/"))
        if key.startswith(("./", "../")):
            place = _joined(folder, key)
            return self._exact(place) if place is not None else None
        return self._exact(key) or self._nearest(key, folder) or self._alias(key, folder) or self._abroad(key)

    def _exact(self, key: str) -> str | None:
        return self._paths.get(key) or self._paths.get(f"{key}.md")

    def _nearest(self, key: str, folder: str) -> str | None:
        """The file whose path ends in `key` that is nearest to a folder."""
        above, _, name = key.rpartition("/")
        for ending in ("", ".md"):
            found = self._names.get(name + ending, [])
            if above:
                found = [path for path in found if path.endswith(f"/{key}{ending}")]
            if found:
                return self._paths[_closest(found, folder)]
        return None

    def _alias(self, key: str, folder: str) -> str | None:
        found = self._aliases.get(key)
        return self._paths[_closest(found, folder)] if found else None

    def _abroad(self, key: str) -> str | None:
        """The page of another project: the folder is one of a workspace, and nothing outside it counts."""
        project, _, page = key.partition(":")
        if not project or not page:
            return None
        for folder in self._folders.get(project.rpartition("/")[2], []):
            if folder == project or folder.endswith(f"/{project}"):
                inside = f"{folder}/"
                found = self._exact(inside + page)
                for other in () if found else (self._nearest(page, folder), self._alias(page, folder)):
                    if other and _fold(other).startswith(inside):
                        found = other
                        break
                if found:
                    return found
        return None


def _fold(text: str) -> str:
    """What two names have in common that Obsidian takes for one."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFC", text).lower()


def _closest(paths: list[str], folder: str) -> str:
    """Of paths that are sorted by length the first in the folder or below it, else in the one around it, and so on."""
    if len(paths) > 1:
        while folder:
            inside = f"{folder}/"
            found = next((path for path in paths if path.startswith(inside)), None)
            if found:
                return found
            folder = folder.rpartition("/")[0]
    return paths[0]


def _joined(folder: str, relative: str) -> str | None:
    """A path from a folder; None where it leads out of the vault."""
    parts = folder.split("/") if folder else []
    for part in relative.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _with_ancestors(folders: Iterable[str]) -> Iterator[str]:
    """Each folder and those around it, once."""
    seen = {""}
    for folder in folders:
        while folder not in seen:
            seen.add(folder)
            yield folder
            folder = folder.rpartition("/")[0]
