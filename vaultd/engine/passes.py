"""Passes over a vault that daemon and commands share: work the inbox off, close what is over, tidy up."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from vaultd.core.event import parse_delivery
from vaultd.core.ids import KEY, Key
from vaultd.core.sanitize import line
from vaultd.engine.handoffs import Handoffs
from vaultd.engine.history import History, is_ours
from vaultd.engine.ingest import BATCH, ROUND, Ingest, Outcome, Round, Tally
from vaultd.engine.offers import Offers, event_map
from vaultd.engine.stores import Stores
from vaultd.store import fs

__all__ = ["Passes"]

_LITTER_S = 3600.0  # a temporary file this old belongs to nobody any more
_LEFT_S = 10.0  # one beside a page is made by the holder of the write lock only: who has the lock may take it sooner
_REPEAT_S = 60.0  # the same complaint is logged at most this often

log = logging.getLogger("vaultd")


class Passes:
    """One vault's passes; keeps what they remember between them."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._ingest = Ingest(stores)
        self._offers = Offers(stores)
        self._handoffs = Handoffs(stores)
        self.history = History(stores)
        self.postponed = False
        self._repacked = False
        self._complaints: dict[str, float] = {}

    def prepare(self) -> None:
        """Make the outbox current: the event map, and the offers of all projects."""
        config = self._stores.config
        self._stores.outbox.write_map(event_map(self._stores.agents.values()), config.command)
        self._flag("no-autostart", not config.autostart)
        self._flag("allow-list", config.allow_list)
        with self._stores.write_lock:
            self._offers.prepare_all()

    def _flag(self, name: str, wanted: bool) -> None:
        """Set or clear a flag that hooks look for: a file that is there or not."""
        if wanted:
            fs.write_private(self._stores.vault.room / name, b"")
        else:
            fs.remove(self._stores.vault.room / name)

    def inbox_state(self) -> int:
        """Changes whenever a file came to the inbox or left it (the folder's time)."""
        try:
            return self._stores.inbox.new.stat().st_mtime_ns
        except OSError:
            return -1

    def drain(
        self, stop: Callable[[], bool] = lambda: False, progress: Callable[[int, int], None] | None = None
    ) -> Tally:
        """Work off what is in the inbox now and what comes while it is worked off, round by round."""
        whole, tried = Tally(), set[str]()
        self.postponed = False
        while not stop():
            keys = [k for k in self._stores.inbox.pending() if k not in tried]
            if not keys:
                break
            for start in range(0, len(keys), ROUND):
                if stop():
                    break
                some = keys[start : start + ROUND]
                tried.update(some)
                whole.add(self._round(some, stop, partial(_advance, progress, start, len(keys))))
            self.sweep()
        self.postponed = whole.outcomes[Outcome.POSTPONED] > 0
        self._tell(whole.troubles)
        return whole

    def _round(self, keys: Sequence[str], stop: Callable[[], bool], advance: Callable[[int], None]) -> Tally:
        """One round of events; the write lock is free between its batches. Once `stop` says so no more are begun."""
        current = Round()
        try:
            for start in range(0, len(keys), BATCH):
                if stop():
                    break
                batch = keys[start : start + BATCH]
                with self._stores.write_lock:
                    self._ingest.take(batch, current)
                advance(start + len(batch))
            more = True
            while more:
                with self._stores.write_lock:
                    more = self._ingest.file(current)
                advance(len(keys))
            with self._stores.write_lock:
                self._ingest.finish(current)
        finally:
            self._ingest.conclude(current)
        return current.tally

    def sweep(self) -> None:
        """Deliver closes for sessions that are over."""
        self._ingest.lifecycle.sweep()

    def tidy(self) -> set[str]:
        """Put right what a crash left: claims that nobody printed are returned, what was spooled is taken in, a text
        that a person saved during a swap gets its place back, ended sessions are packed, litter is deleted. The vault
        paths that changed.
        """
        self.take_spool()
        now = self._stores.clock().timestamp()
        with self._stores.write_lock:
            changed = self._handoffs.return_unprinted()
            changed.update(self._stores.vault.sweep(_LEFT_S, now))
            if changed:
                self._offers.prepare_all()
            if not self._repacked:
                self._ingest.repack()
                self._repacked = True
        fs.sweep_temps(self._stores.vault.room, _LITTER_S, now)
        self._sweep_tmp(now)
        return changed

    def take_spool(self) -> int:
        """Move events that were spooled while the vault was away into the inbox; how many."""
        folder = self._stores.config.places.spool / "new"
        try:
            names = [e.name for e in os.scandir(folder) if KEY.match(e.name)]
        except (FileNotFoundError, NotADirectoryError):
            return 0
        taken = 0
        for name in names:
            source = folder / name
            try:
                data = source.read_bytes()
                if not self._is_ours(data):
                    continue
                fs.publish(self._stores.inbox.new / name, data)
            except FileExistsError:
                pass  # taken before, and a crash kept the source
            except FileNotFoundError:
                continue
            fs.remove(source)
            taken += 1
        return taken

    def _is_ours(self, data: bytes) -> bool:
        """Whether a spooled event was meant for this vault; one that does not say so is."""
        delivery = parse_delivery(Key("0-spooled"), data)
        meant = delivery.header.get("vault", "") if delivery is not None else ""
        return not meant or os.path.realpath(os.fsencode(meant)) == os.path.realpath(
            os.fsencode(self._stores.vault.root)
        )

    def message(self, written: set[str]) -> str:
        """The subject of a commit of pages that vaultd wrote."""
        sessions = sorted(Path(p).stem for p in written if "/sessions/" in p)
        if sessions:
            return f"session: {sessions[0]}" + (f" and {len(sessions) - 1} more" if len(sessions) > 1 else "")
        if any("/handoffs/" in p for p in written):
            return "handoffs"
        pages = sorted(Path(p).stem for p in written if p.endswith(".md") and not is_ours(p))
        if pages:
            return f"page: {pages[0]}" + (f" and {len(pages) - 1} more" if len(pages) > 1 else "")
        return "project pages"

    def offer(self) -> None:
        """Bring the offers of all projects up to date: a person changed handoffs or projects."""
        with self._stores.write_lock:
            self._offers.prepare_all()

    def _tell(self, troubles: set[str]) -> None:
        """Log what stands in the way, and leave it for `status` until it is gone."""
        for text in troubles:
            self.trouble(text)
        path = self._stores.vault.room / "runs/trouble.json"
        if troubles:
            told = {"vaultd-trouble": 1, "texts": [line(text, 500) for text in sorted(troubles)]}
            fs.write_private(path, json.dumps(told, ensure_ascii=False).encode())
        else:
            fs.remove(path)

    def trouble(self, text: str) -> None:
        """Log a complaint, the same one at most once a minute."""
        now = self._stores.clock().timestamp()
        if now - self._complaints.get(text, -_REPEAT_S) >= _REPEAT_S:
            self._complaints = {t: at for t, at in self._complaints.items() if now - at < _REPEAT_S}
            self._complaints[text] = now
            log.warning("%s", text)

    def _sweep_tmp(self, now: float) -> None:
        """Delete what hooks that died left in `inbox/tmp`."""
        try:
            entries = list(os.scandir(self._stores.inbox.tmp))
        except FileNotFoundError:
            return
        for entry in entries:
            try:
                old = now - entry.stat(follow_symlinks=False).st_mtime > _LITTER_S
            except FileNotFoundError:
                continue
            if old:
                fs.remove(Path(entry.path))


def _advance(progress: Callable[[int, int], None] | None, before: int, total: int, done: int) -> None:
    """Tell how many events are done."""
    if progress is not None:
        progress(before + done, total)
