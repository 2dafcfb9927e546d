"""Path patterns of `capture.ignore_paths`: `*` within a name, `**` across folders, `?` one character."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

__all__ = ["matches"]


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    """A pattern as a regular expression over a whole path."""
    out = ""
    for part in re.findall(r"\*\*/?|\*|\?|[^*?]+", pattern):
        out += {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(part) or re.escape(part)
    return re.compile(out + r"(?:/.*)?\Z", re.DOTALL)


def matches(patterns: Iterable[str], path: str, base: str) -> bool:
    """Whether a path, absolute or relative to `base`, falls under one of the patterns.

    A pattern without a slash matches a file or folder of that name anywhere; one that starts with `/` an absolute path;
    any other a path relative to `base`. What lies in a matching folder matches too.
    """
    absolute = path if path.startswith("/") else f"{base.rstrip('/')}/{path}"
    relative = absolute.removeprefix(base.rstrip("/") + "/") if base else absolute
    for pattern in patterns:
        rule = pattern.rstrip("/")
        if rule.startswith("/"):
            hit = _compiled(rule).match(absolute)
        elif "/" in rule:
            hit = _compiled(rule).match(relative)
        else:
            hit = _compiled("**/" + rule).match(relative)
        if hit:
            return True
    return False
