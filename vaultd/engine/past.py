"""The vault as git had it at a time in the past: what a search would have answered then.

There is no index of the past. The pages of one commit that may answer are read from git, and an index of just these is
made in a folder of its own, searched, and removed. So nothing is bumped, no vector counts, and how rare a word is, is
told by the pages that were read. A page is of the project whose folder its path of then lies in by today's names.

A page that git never had (an ignored one, one that was deleted before it was committed) was never there.
"""

from __future__ import annotations

import logging
import math
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from vaultd.core import query
from vaultd.core.sought import sought
from vaultd.engine.answers import Answer, AsOf, Source, Wanted, answer, groups_of
from vaultd.engine.reconcile import document, project_of
from vaultd.engine.stores import Stores
from vaultd.errors import NotFoundError, UsageError
from vaultd.store.gitpast import Moment, Past, PastPage
from vaultd.store.index import Index, Put
from vaultd.store.vault import PageStat

__all__ = ["answer_as_of", "moment_of"]

_MOST = 400  # pages that are read
_BYTES = 8 << 20  # of them all together
_LOOK_S = 4.0  # after which no other word is looked for
_NAME = 3  # lines that a word in a page's path counts for, as in a title
_PINNED = ("pinned: true",)
_DAY = re.compile(r"\d{4}-\d\d-\d\d\Z")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:[Zz]|[+-]\d\d:?\d\d)\Z")

log = logging.getLogger("vaultd")


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The pages to read, and of how many that might answer."""

    pages: Sequence[PastPage]
    of: int


def moment_of(as_of: str, now: datetime) -> datetime:
    """The time that `as_of` names, in the zone of `now` and never after it: a day (its end) or a time with offset.

    UsageError for anything else.
    """
    text = as_of.strip()
    try:
        if _DAY.match(text):
            told = datetime.fromisoformat(text).replace(hour=23, minute=59, second=59, tzinfo=now.tzinfo)
        elif _TIME.match(text):
            told = datetime.fromisoformat(text.upper())
        else:
            raise ValueError
        return min(told, now).astimezone(now.tzinfo)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{as_of[:60]!r} is no time to look back to. Give a day (2026-11-29), which means its end, or a time with "
            "its offset (2026-11-29T18:00+01:00)."
        ) from None


def answer_as_of(stores: Stores, text: str, wanted: Wanted, as_of: str) -> Answer:
    """Answer a query as of a time. UsageError for what is no time, NotFoundError when git has nothing of the vault from
    then, VaultdError when it cannot tell.
    """
    now = moment_of(as_of, stores.clock())
    past = stores.repo.past()
    if past is None:
        raise NotFoundError("The vault is no git repository, so it has no past. `vaultd init` makes it one.")
    then = past.last(now.timestamp())
    if then is None:
        raise NotFoundError(_nothing_yet(past.first(), as_of))
    folders = {project.folder: project.id for project in stores.projects.known()}
    chosen = _chosen(past, then, folders, text, wanted, now)
    data = {page.path: data for page, data in past.texts(chosen.pages)}
    with tempfile.TemporaryDirectory(prefix="vaultd-past-") as folder:
        index = Index(Path(folder, "index"), stores.vault.root)
        try:
            index.rebuild(_puts(data, folders))
            told = answer(Source(index, data.get, now), text, wanted)
        finally:
            index.close()
    few = f"Only {len(data)} of {chosen.of} pages that may answer were read, those with most of the words."
    note = few if len(data) < chosen.of else ""
    return replace(told, generation=0, note=note, as_of=AsOf(then.commit, then.at))


def _puts(data: Mapping[str, bytes], folders: Mapping[str, str]) -> Iterator[Put]:
    """What the index is told; a page that we cannot deal with keeps no other out."""
    for path, page in data.items():
        try:
            yield Put(document(PageStat(path, 0, 0, len(page)), page, project_of(folders, path)))
        except Exception:
            log.exception("a fault while a page of the past was read")


def _nothing_yet(first: Moment | None, as_of: str) -> str:
    """Why there is nothing from then."""
    if first is None:
        return "Nothing of the vault is in git yet, so it has no past."
    return f"git has nothing of the vault as of {as_of.strip()}: its first commit is of {first.at}."


def _chosen(past: Past, then: Moment, folders: Mapping[str, str], text: str, wanted: Wanted, now: datetime) -> _Chosen:
    """The pages that may answer: all of those that are asked, when they are few; else those with most of the words, of
    which rare ones count more.
    """
    groups = groups_of(wanted.projects)
    asked = {
        path: page
        for path, page in past.pages(then.commit).items()
        if any(group is None or project_of(folders, path) in group for group in groups)
    }
    if len(asked) <= _MOST:
        return _bounded(list(asked.values()), len(asked))
    weights: dict[str, float] = {}
    names = {path: query.fold(path).casefold() for path in asked}
    until = time.monotonic() + _LOOK_S
    for strings in sought(text, now):
        if weights and time.monotonic() > until:
            break
        lines = Counter({path: count for path, count in past.having(then.commit, strings).items() if path in asked})
        named = (path for path, name in names.items() if any(string.casefold() in name for string in strings))
        lines.update(dict.fromkeys(named, _NAME))
        for path, count in lines.items():
            weight = math.log(1 + len(asked) / len(lines)) * count / (count + 1)
            weights[path] = weights.get(path, 0.0) + weight
    if wanted.pinned_first:
        weights.update(dict.fromkeys(past.having(then.commit, _PINNED).keys() & asked.keys(), math.inf))
    best = sorted(weights, key=lambda path: (-weights[path], path))
    return _bounded([asked[path] for path in best], len(best))


def _bounded(pages: Sequence[PastPage], of: int) -> _Chosen:
    """As many of the first pages as may be read."""
    kept: list[PastPage] = []
    room = _BYTES
    for page in pages:
        if len(kept) < _MOST and page.size <= room:
            kept.append(page)
            room -= page.size
    return _Chosen(kept, of)
