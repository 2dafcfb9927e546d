"""What is asked of the memory: the words, and which pages may answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

__all__ = ["EVERYTHING", "Question"]

EVERYTHING: None = None
"""A group of pages: all of them."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query: its words and its bounds.

    `now` (aware) says what "last week" means and what has expired. `groups`: the answer has a list of at most `limit`
    pages for each: pages of these projects, "" for those outside all projects, `EVERYTHING` for all. `where`: only
    pages whose frontmatter has one of these values under each key (case does not count; of a list, one of its items).
    `superseded`: pages that others replaced come too, after all others; without it they come only where no other page
    answers. `expired`: pages whose time is over come too. `without`: streams of the ranking that are left out
    (`fusion.STREAMS`).
    """

    text: str
    now: datetime
    limit: int = 10
    groups: Sequence[Collection[str] | None] = (EVERYTHING,)
    where: Mapping[str, Sequence[str]] = field(default_factory=dict)
    superseded: bool = False
    expired: bool = False
    without: Collection[str] = ()
