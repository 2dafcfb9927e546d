"""After a crash: settle what a batch of swaps that was cut off left beside pages."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from vaultd.store import fs, lease
from vaultd.store.lease import Hold
from vaultd.store.retired import PIN, Retired, open_plain, read_all, revisions_of, short
from vaultd.store.swap import QUIET, Batch

__all__ = ["rescue"]


def rescue(folder: Path, older_than_s: float, now: float) -> list[Path]:
    """Settle every file under `folder` that a swap left; the files that hold a person's text again.

    Only names last changed `older_than_s` seconds before `now` (epoch), and never sooner than `QUIET`. A text that may
    be dropped is dropped, unless somebody has it open; another goes back into the place of the page that was written,
    or beside it when something newer stands there. A crash leaves the rest for the next time.
    """
    with Batch() as batch:
        for temp in fs.temps(folder, max(older_than_s, QUIET), now):
            if temp.name.startswith(fs.SWAP_PREFIX):
                with contextlib.suppress(FileNotFoundError):  # another process was quicker
                    _settle(batch, temp)
    return [*batch.restored, *batch.kept]


def _settle(batch: Batch, temp: Path) -> None:
    known = frozenset(revisions_of(temp))
    handle = open_plain(temp)
    hold = lease.take(handle)
    text = short(fs.revision(read_all(handle)))
    if text in known:
        if hold is not Hold.BUSY and not (hold is Hold.HELD and lease.is_wanted(handle)):
            fs.remove(temp)
        os.close(handle)
        return
    lease.let_go(handle)
    page = _written_page(batch, temp)
    if page is None:
        batch.keep(Retired(temp, handle, temp.with_name("page.md"), known), text)
    else:
        batch.drop(Retired(temp, handle, page, known))


def _written_page(batch: Batch, temp: Path) -> Path | None:
    """The page beside `temp` that holds what the batch wrote; the new batch takes it for its own."""
    for page in temp.parent.iterdir():
        with contextlib.suppress(OSError):  # gone meanwhile
            if page.is_file() and not page.name.startswith("."):
                revision = fs.revision(page.read_bytes())
                if short(revision) == revisions_of(temp)[1]:
                    batch.own(os.open(page, PIN), revision)
                    return page
    return None
