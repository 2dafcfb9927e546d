"""Paths of checkouts, as text: markers, linked work trees, how a page holds a path. No disk is looked at."""

from __future__ import annotations

import posixpath
import re
import tomllib
from dataclasses import dataclass
from urllib.parse import unquote

from vaultd.core.ids import slug

__all__ = [
    "MARKER",
    "Marker",
    "below",
    "main_checkout",
    "marker_flaw",
    "marker_folders",
    "marker_ignores",
    "parse_marker",
    "path_text",
    "posix_path",
    "text_path",
    "title_of",
]

MARKER = ".vaultd.toml"
"""The file by which a person says where a folder's sessions belong."""

_MARKER_LIMIT = 65_536
_DRIVE = re.compile(r"[A-Za-z]:(?:[\\/]|\Z)")
_UNSAFE = re.compile("[%\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]|^ | $| (?= )")


@dataclass(frozen=True, slots=True)
class Marker:
    """What the nearest `.vaultd.toml` decides; `problem` is why one was passed over."""

    folder: str
    workspace: str = ""
    project: str = ""
    problem: str = ""


def posix_path(path: str) -> str:
    """A path with forward slashes, without `.`, `..`, doubled or trailing ones: `C:\\a\\b` is `C:/a/b`; "" stays "".

    Only what looks like a Windows path has its backslashes turned. Nothing is looked up on a disk.
    """
    if not path:
        return ""
    windows = bool(_DRIVE.match(path)) or path.startswith("\\\\")
    text = posixpath.normpath(path.replace("\\", "/") if windows else path)
    return text if windows or not text.startswith("//") else text[1:]


def path_text(path: str) -> str:
    """A path as a page can hold it on one line; `text_path` undoes it.

    `%`, characters that control or reorder a line, outer and doubled spaces, bytes that are not UTF-8 become `%XX`.
    """
    return _UNSAFE.sub(lambda found: "".join(f"%{b:02X}" for b in _bytes(found[0])), path)


def text_path(text: str) -> str:
    """The path that `path_text` wrote."""
    return unquote(text, errors="surrogateescape")


def _bytes(character: str) -> bytes:
    """A character's bytes: those that it stands for when the path was not UTF-8, `?` for half of a pair."""
    try:
        return character.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return b"?"


def below(path: str, folder: str) -> str | None:
    """The part of `path` under `folder`, "" for the folder itself; None when it is not under it."""
    base = folder.rstrip("/")
    if path in (folder, base):
        return ""
    return path[len(base) + 1 :] if path.startswith(base + "/") else None


def title_of(main: str) -> str:
    """What a project is called after its main checkout: the last name of the path, without `.git`.

    A repository that is kept bare beside its work trees (`app/.bare`) is called after its folder.
    """
    names = [name for name in posix_path(main).split("/") if name]
    if len(names) > 1 and names[-1] in (".bare", ".git"):
        names.pop()
    name = names[-1] if names else ""
    return name.removesuffix(".git") or name


def main_checkout(root: str, gitfile: str) -> str:
    """The main checkout by what a `.git` file says, as text only: for a linked work tree its main work tree or bare
    repository, else (submodule, plain checkout) `root` itself. `gitfile` is the file's line or the path in it.
    """
    target = posix_path(gitfile.strip().removeprefix("gitdir:").strip())
    if not target or "/worktrees/" not in target + "/":
        return posix_path(root)
    if not (target.startswith("/") or re.match(r"[A-Za-z]:/", target)):
        target = posix_path(f"{posix_path(root)}/{target}")
    common, _, name = target.rpartition("/worktrees/")
    if not common or "/" in name or "/.git/modules/" in common:
        return posix_path(root)
    return common.removesuffix("/.git") or "/"


def parse_marker(folder: str, data: bytes) -> Marker | None:
    """What a `.vaultd.toml` decides about the project; None when it decides nothing.

    Names become folder names as a checkout's does. One that cannot be read decides nothing and says why.
    """
    if len(data) > _MARKER_LIMIT:
        return Marker(folder, problem=f"{folder}/{MARKER} is over 64 KiB and was not read")
    try:
        values = tomllib.loads(data.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        return Marker(folder, problem=f"{folder}/{MARKER} cannot be read ({error}) and was passed over")
    names = {}
    for key in ("workspace", "project"):
        value = values.get(key, "")
        if not isinstance(value, str):
            return Marker(folder, problem=f"{folder}/{MARKER}: {key} must be a text; the file was passed over")
        names[key] = slug(value) if value.strip() else ""
    return Marker(folder, names["workspace"], names["project"]) if any(names.values()) else None


def marker_ignores(data: bytes) -> tuple[str, ...]:
    """The patterns of a marker's `[capture] ignore_paths`.

    Of a marker that cannot be understood: everything, if it speaks of that at all.
    """
    try:
        told = tomllib.loads(data.decode("utf-8-sig")).get("capture", {}).get("ignore_paths", [])
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError, AttributeError):
        told = None
    if isinstance(told, list) and all(isinstance(pattern, str) for pattern in told):
        return tuple(told)
    return ("**",) if b"ignore_paths" in data else ()


def marker_flaw(data: bytes) -> str:
    """What in a marker says nothing to vaultd, in words; "" for nothing."""
    try:
        told = tomllib.loads(data.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        return f"it is no TOML: {error}"
    capture = told.get("capture", {})
    odd = [key for key in told if key not in ("enabled", "workspace", "project", "capture")]
    odd += [f"capture.{key}" for key in capture if key != "ignore_paths"] if isinstance(capture, dict) else ["capture"]
    return f"unknown: {', '.join(odd)}" if odd else ""


def marker_folders(cwd: str, top: str, main: str, home: str) -> list[str]:
    """Folders in which a marker counts, nearest first.

    In a checkout: from `cwd` up to its `top`, then the same folders of the main checkout for a linked work tree.
    Outside one: up to the home folder; outside that too: `cwd` alone.
    """
    if top:
        folders = _upwards(cwd, top)
        if main and main != top:
            folders += [posix_path(main + folder[len(top) :]) for folder in folders]
        return folders
    return _upwards(cwd, home) if home and below(cwd, home) is not None else [cwd]


def _upwards(cwd: str, top: str) -> list[str]:
    """`cwd` and its parents up to and with `top`; `cwd` alone when it is not under it."""
    rest = below(cwd, top)
    if rest is None:
        return [cwd]
    names = rest.split("/") if rest else []
    return [posix_path("/".join([top.rstrip("/"), *names[:n]]) or "/") for n in range(len(names), -1, -1)]
