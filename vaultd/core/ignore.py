"""Path patterns of `capture.ignore_paths`: `*` within a name, `?` one character, `**` for any number of folders."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

__all__ = ["matches"]


def matches(patterns: Iterable[str], path: str, base: str) -> bool:
    """Whether a path, absolute or relative to `base`, falls under one of the patterns.

    A pattern without a slash matches a file or folder of that name anywhere; one that starts with `/` an absolute path;
    any other a path relative to `base`. What lies in a matching folder matches too. `.` and `..` are worked out first,
    without looking at a disk; a blank pattern matches nothing. Takes time linear in the path.
    """
    folder = _names(posixpath.join("/", base))
    absolute = _names(posixpath.join("/", base, path))
    inside = absolute[len(folder) :] if absolute[: len(folder)] == folder else None
    for pattern in patterns:
        names = _names(pattern)
        if pattern.startswith("/"):
            hit = _under(names, absolute)
        elif "/" in pattern.rstrip("/"):
            hit = inside is not None and _under(names, inside)
        else:
            hit = bool(pattern.strip() and names) and _under(["**", *names], absolute if inside is None else inside)
        if hit:
            return True
    return False


def _names(path: str) -> list[str]:
    """The names in a path or pattern, without `.`, `..` and empty ones."""
    return [name for name in posixpath.normpath(path).split("/") if name not in ("", ".")]


def _under(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """Whether the names of the pattern are those that the path begins with."""
    if pattern and pattern[-1] == "**":
        pattern = [*pattern[:-1], "*"]
    ends = {0}  # how many names of the path the pattern may have used up so far
    for name in pattern:
        if name == "**":
            ends = set(range(min(ends), len(path) + 1))
        else:
            ends = {end + 1 for end in ends if end < len(path) and _compiled(name).match(path[end])}
        if not ends:
            return False
    return True


@lru_cache(maxsize=1024)
def _compiled(name: str) -> re.Pattern[str]:
    """One name of a pattern as a regular expression that never goes back over what it has matched."""
    first, *rest = ("".join("." if c == "?" else re.escape(c) for c in piece) for piece in re.split(r"\*+", name))
    if not rest:
        return re.compile(first + r"\Z", re.DOTALL)
    *middle, last = rest
    return re.compile(first + "".join(f"(?>.*?{piece})" for piece in middle) + f".*{last}\\Z", re.DOTALL)
