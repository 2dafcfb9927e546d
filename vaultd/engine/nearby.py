"""Pages near a query by meaning, for whoever answers queries. With vectors off it costs nothing, not an import."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from vaultd.config import Config
from vaultd.engine.live import Live
from vaultd.engine.stores import Stores
from vaultd.errors import VaultdError
from vaultd.store.index import Index

if TYPE_CHECKING:
    from vaultd.engine.embedding import Stream

__all__ = ["Filling", "Near", "Nearby", "nearby_of", "nothing"]

_LOOK_S = 20.0  # between two looks for pages without a vector
_RETRY_S = 900.0  # between two tries, at most, while an endpoint does not answer

log = logging.getLogger("vaultd")


@dataclass(frozen=True, slots=True)
class Near:
    """The similarity of pages to a query, by path; and what the reader must know of them, "" for nothing."""

    scores: Mapping[str, float] = field(default_factory=dict)
    note: str = ""


Nearby: TypeAlias = Callable[[str, Index], Near]
"""What tells which pages of an index are near a query."""


def nearby_of(config: Config) -> Nearby:
    """What the settings name. It never fails: without an answer the words must do, and `note` says so."""
    return _ByMeaning(config) if config.vectors.on else nothing


def nothing(text: str, index: Index) -> Near:
    """No page, whatever is asked."""
    return Near()


class _ByMeaning:
    """Asks the vectors; they are opened with the first query, and then stay in memory."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._guard = threading.Lock()
        self._stream: Stream | None = None

    def __call__(self, text: str, index: Index) -> Near:
        from vaultd.engine.embedding import revisions

        try:
            near = self._opened().nearest(text, revisions(index))
        except VaultdError as error:
            return Near(note=f"Only words were searched: {error}")
        note = f"{near.lacking} pages have no current vector yet and were found by words only." if near.lacking else ""
        return Near(dict(near.ranked), note)

    def _opened(self) -> Stream:
        from vaultd.engine.embedding import Stream, embedder_of

        with self._guard:
            if self._stream is None:
                embedder = embedder_of(self._config)
                assert embedder is not None, "vectors are on"
                self._stream = Stream(self._config, embedder)
            return self._stream


class Filling:
    """The daemon's part: pages that have no current vector get one soon after they changed. A companion of `Daemon`."""

    def __init__(self, open_: Callable[[], Stores], live: Live) -> None:
        self._open = open_
        self._live = live
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="vectors", daemon=True)

    def start(self) -> Mapping[str, str]:
        """Begin; nothing to announce."""
        self._thread.start()
        return {}

    def stop(self) -> None:
        """End after the batch that is at work; a kill loses no more than that."""
        self._stopping.set()

    def _run(self) -> None:
        pause = _LOOK_S
        while not self._stopping.wait(pause):
            try:
                self._fill()
                pause = _LOOK_S
            except VaultdError as error:
                pause = min(2 * pause, _RETRY_S)
                log.warning("vectors: %s Tried again in %d s.", error, pause)
            except Exception:
                pause = _RETRY_S
                log.exception("a fault while pages were embedded; tried again in %d s", pause)

    def _fill(self) -> None:
        from vaultd.engine.embedding import bring_up, embedder_of, open_vectors, revisions

        stores = self._open()
        embedder = embedder_of(stores.config)
        assert embedder is not None, "vectors are on"
        vectors, pages = open_vectors(stores.config, embedder), revisions(self._live.index)
        if vectors.revisions() != pages:
            bring_up(stores, embedder, vectors, pages, stop=self._stopping.is_set)
