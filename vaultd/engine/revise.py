"""Making a generated page anew without losing what a person did to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto

from vaultd.core import frontmatter
from vaultd.core.event import Event
from vaultd.core.render import PageFacts, is_unedited, resumed_section, session_page
from vaultd.core.sanitize import Clean, line, redact
from vaultd.core.session import Digest, digest
from vaultd.engine.stores import Stores
from vaultd.store.vault import Busy, PageFile, Refused, Value, Written

__all__ = ["ATTEMPTS", "Revised", "own_values", "revise_session_page"]

ATTEMPTS = 5
"""Times a page is read again after it changed under our hands; then it is left for the next pass."""

_CHANGING = frozenset(
    {
        *("summary", "branch", "head", "cwd", "started", "created", "ended", "closed_by", "observations"),
        *("files_touched", "generation", "generated", "updated"),
    }
)  # the keys that may differ from one making of a session page to the next; all others are the person's by then


class Revised(Enum):
    """What became of a page: written, the same already, or to be tried again later (somebody has it open)."""

    WRITTEN = auto()
    SAME = auto()
    POSTPONED = auto()


def own_values(values: Mapping[str, object], stores: Stores) -> dict[str, Value]:
    """Frontmatter values with every text sanitised (for splicing them into a page)."""
    rules = stores.config.rules
    out: dict[str, Value] = {}
    for key, value in values.items():
        if isinstance(value, str):
            out[key] = line(value, 2000, rules)
        elif isinstance(value, list):
            out[key] = [line(str(item), 1024, rules) for item in value]
        elif value is None or isinstance(value, bool | int | float):
            out[key] = value
    return out


def revise_session_page(
    stores: Stores, path: str, summary: Digest, facts: PageFacts, events: Sequence[Event]
) -> Revised:
    """Create a session page, or make it anew.

    A body that a person changed, or one made from more observations than are at hand, is never made anew: what came
    after it is appended once the session is closed. The person's frontmatter stays; only our changing keys are set.
    """
    fresh = redact(session_page(summary, facts), stores.config.rules)
    for _ in range(ATTEMPTS):
        page = stores.vault.read(path)
        if page is None:
            if isinstance(stores.vault.create(path, fresh), Written):
                return Revised.WRITTEN
            continue
        outcome = _revise(stores, page, fresh, summary, facts, events)
        if outcome is not None:
            return outcome
    return Revised.POSTPONED


def _revise(
    stores: Stores, page: PageFile, fresh: Clean, summary: Digest, facts: PageFacts, events: Sequence[Event]
) -> Revised | None:
    """One try against the page as it was read; None when it changed meanwhile."""
    old, new = frontmatter.parse(page.data), frontmatter.parse(fresh.encode())
    had = old.meta.values.get("observations")
    count = had if isinstance(had, int) else 0
    if not old.meta.has or old.meta.error:
        return Revised.SAME  # a page without frontmatter of ours any more is the person's
    values = {key: value for key, value in new.meta.values.items() if key in _CHANGING}
    if old.meta.values.get("title") == f"{summary.agent} session {summary.sid}":
        values["title"] = new.meta.values["title"]  # the first prompt came after the page was made
    whole = is_unedited(page.data) and facts.observations >= count
    if whole:
        if new.body == old.body and all(old.meta.values.get(k) == v for k, v in values.items() if k != "updated"):
            return Revised.SAME
        result = stores.vault.revise(page, own_values(values, stores), body=redact(new.body, stores.config.rules))
    else:
        later = list(events[count:])
        if not summary.closed or not later or not digest(later).substantive:
            return Revised.SAME
        addition = redact(resumed_section(digest(later), events[count].at), stores.config.rules)
        kept = {k: v for k, v in values.items() if k in ("observations", "generation", "ended", "closed_by", "updated")}
        result = stores.vault.revise(page, own_values(kept, stores), addition=addition)
    if isinstance(result, Written):
        return Revised.WRITTEN
    if isinstance(result, Refused):
        return Revised.SAME  # frontmatter that cannot be edited safely is the person's
    return Revised.POSTPONED if isinstance(result, Busy) else None
