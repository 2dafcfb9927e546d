"""The log of a project: `log-YYYY-MM.md`, one line per event of note, marked `^<key>` so that none is written twice."""

from __future__ import annotations

from datetime import datetime

from vaultd.core.sanitize import Clean, redact
from vaultd.engine.revise import ATTEMPTS, Revised
from vaultd.engine.stores import Stores
from vaultd.store.vault import Busy, Written

__all__ = ["append_line"]


def append_line(stores: Stores, folder: str, at: datetime, text: Clean, key: str) -> Revised:
    """Append a line to a project's log of the month of `at`, unless a line with this key is there."""
    path = f"{folder}/log-{at:%Y-%m}.md"
    entry = redact(f"- {text} ^{key}\n")
    for _ in range(ATTEMPTS):
        page = stores.vault.read(path)
        if page is None:
            if isinstance(stores.vault.create(path, redact(f"# Log of {at:%Y-%m}\n\n{entry}")), Written):
                return Revised.WRITTEN
            continue
        if f"^{key}".encode() in (word for row in page.data.splitlines() for word in row.split()[-1:]):
            return Revised.SAME
        result = stores.vault.append(path, entry, page.revision)
        if isinstance(result, Written):
            return Revised.WRITTEN
        if isinstance(result, Busy):
            return Revised.POSTPONED
    return Revised.POSTPONED
