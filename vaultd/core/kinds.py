"""The kind and tier of a page: what its frontmatter says, else what its folder says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

__all__ = ["FOLDER_KINDS", "kind_of", "tier_of"]

FOLDER_KINDS: Mapping[str, str] = {
    "sessions": "session",
    "decisions": "decision",
    "gotchas": "gotcha",
    "concepts": "concept",
    "procedures": "procedure",
    "notes": "note",
    "handoffs": "handoff",
    "_rules": "rule",
    "_slots": "slot",
    "_lint": "lint",
}
"""Folder of a project to the kind of the pages in it."""

_TIERS = {"session": "episodic", "handoff": "working", "procedure": "procedural"}


def kind_of(path: str, values: Mapping[str, object]) -> str:
    """The kind of a page: frontmatter `kind` (at most 64 characters), else by folder, else `fact`."""
    given = values.get("kind")
    if isinstance(given, str) and 0 < len(given) <= 64:
        return given
    for part in reversed(PurePosixPath(path).parts[:-1]):
        if part in FOLDER_KINDS:
            return FOLDER_KINDS[part]
    name = PurePosixPath(path).name
    return "log" if name.startswith("log-") else "project" if name == "project.md" else "fact"


def tier_of(path: str, values: Mapping[str, object]) -> str:
    """The tier of a page: frontmatter `tier`, else what its kind implies; `semantic` for all others."""
    given = values.get("tier")
    if given in ("working", "episodic", "semantic", "procedural"):
        return str(given)
    return _TIERS.get(kind_of(path, values), "semantic")
