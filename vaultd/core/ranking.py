"""How much a page's word counts beside another one that matches as well: a small factor on the match.

It settles close contests and hides nothing: a session's record steps back behind the decision that came out of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

__all__ = ["CEILING", "FLOOR", "asks_of_sessions", "authority"]

FLOOR = 0.55
"""The smallest factor."""

CEILING = 1.5
"""The largest factor."""

_KINDS: Mapping[str, float] = {
    "session": -0.15,
    "handoff": -0.3,  # an excerpt of its session's page, and soon out of date
    "log": -0.3,
    "rule": 0.15,
    "decision": 0.15,
    "procedure": 0.12,
    "gotcha": 0.12,
}
_TIERS: Mapping[str, float] = {"episodic": -0.08}
_TAGS: Mapping[str, float] = {"canonical": 0.2, "source-of-truth": 0.2}
_CAPS: Mapping[str, float] = {"superseded": 0.65, "do-not-answer-from": 0.55}
_PAST = frozenset({"accepted", "expired"})
_LINT = -0.2
_PINNED = 0.08


_OF_SESSIONS = re.compile(
    r"\b(?:left to (?:do|try|fix)|still (?:open|missing|to do|left)|last time|last session|next steps?"
    r"|(?:we|i|you) (?:stop|tr(?:y|ied))"
    r"|(?:did|have) (?:we|i|you|\w+) (?:do|done|tr(?:y|ied)|change|stop|finish))\b",
    re.IGNORECASE,
)


def asks_of_sessions(query: str) -> bool:
    """Whether a query asks what was done or left: then a session's record is what is wanted."""
    return _OF_SESSIONS.search(query) is not None


def authority(
    kind: str,
    tier: str,
    *,
    path: str = "",
    pinned: bool = False,
    superseded: bool = False,
    tags: Collection[str] = (),
    of_sessions: bool = False,
) -> float:
    """The factor of a page, from `FLOOR` to `CEILING`; 1.0 for a page of which nothing special is known.

    `of_sessions`: the question asks of sessions, whose records do not step back then.
    """
    lowered = {tag.casefold().lstrip("#") for tag in tags}
    if superseded:
        lowered.add("superseded")
    factor = 1.0 + (_PINNED if pinned else 0.0)
    if not (of_sessions and kind == "session"):
        factor += _KINDS.get(kind, 0.0) + _TIERS.get(tier, 0.0)
    folders = path.split("/")[:-1]
    if "_lint" in folders:
        factor += _LINT
    if kind == "handoff" and not _PAST.isdisjoint(folders[-1:]):
        return FLOOR  # it was handed over, or is out of date: the session's page says the same
    if not lowered.isdisjoint(_TAGS):
        factor += max(_TAGS.get(tag, 0.0) for tag in lowered)
    for tag in lowered:
        factor = min(factor, _CAPS.get(tag, factor))
    return min(max(factor, FLOOR), CEILING)
