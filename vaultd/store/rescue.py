"""After a crash: settle what a batch of swaps that was cut off left beside pages."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from vaultd.store import fs, lease
from vaultd.store.lease import Hold
from vaultd.store.retired import PIN, Retired, mark, marks_of, open_plain, read_all, short
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
    before, written, mark_of_page = marks_of(temp)
    handle = open_plain(temp)
    hold = lease.take(handle)
    text = short(fs.revision(read_all(handle)))
    if text in (before, written):
        if hold is not Hold.BUSY and not (hold is Hold.HELD and lease.is_wanted(handle)):
            fs.remove(temp)
        os.close(handle)
        return
    lease.let_go(handle)
    page = _page(batch, temp.parent, written, mark_of_page)
    one = Retired(temp, handle, page or temp.with_name("page.md"), frozenset({before, written}))
    if page is None:
        batch.keep(one, text)
    else:
        batch.drop(one)


def _page(batch: Batch, folder: Path, written: str, mark_of_page: str) -> Path | None:
    """The page that the text belongs to, by its name, else by what was written into it, if it was moved since.

    Where it still holds what was written, the new batch takes it for its own.
    """
    named = None
    for page in sorted(folder.iterdir(), key=lambda page: mark(page) != mark_of_page):
        with contextlib.suppress(OSError):  # gone meanwhile
            if page.name.startswith(".") or not page.is_file():
                continue
            revision = fs.revision(page.read_bytes())
            if short(revision) == written:
                batch.own(os.open(page, PIN), revision)
                return page
            if mark(page) == mark_of_page:
                named = page
    return named
