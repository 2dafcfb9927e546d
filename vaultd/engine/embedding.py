"""The embedding stream: which embedder the settings name, pages brought up to it, pages ranked by a query.

Nothing of it is imported while vectors are off. Pages are told by path and revision, as the index knows them
(`revisions`); whatever vectors there are of another revision, model or dimension is ignored and counted.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vaultd.config import Config
from vaultd.core import frontmatter
from vaultd.core.embedding import Embedder, texts
from vaultd.core.markdown import title_of
from vaultd.engine.stores import Stores
from vaultd.errors import HeldError, UsageError, VaultdError
from vaultd.store.fs import Lock, make_folder, sweep_temps
from vaultd.store.index import Index
from vaultd.store.vectors import Kind, Near, PageVectors, Vectors

__all__ = ["Brought", "Near", "Stream", "bring_up", "embedder_of", "open_vectors", "revisions"]

_BATCH = 64  # texts between two times that something is kept
_REFUSED = 8  # pages refused by themselves at the head of a batch: then it is the settings, not these pages
_LITTER_S = 60.0
_KEY_BYTES = 4096

log = logging.getLogger("vaultd")


@dataclass(slots=True)
class Brought:
    """What one filling did: pages embedded, pages dropped since they are gone, pages left because it was stopped, and
    those that could not be embedded, with the reasons.
    """

    embedded: int = 0
    dropped: int = 0
    left: int = 0
    failed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Page:
    """A page that was read, and the texts that stand for it."""

    path: str
    revision: str
    texts: Sequence[str]


class Stream:
    """The vectors of one vault, for searching; safe from several threads. It keeps them in memory: open it once."""

    def __init__(self, config: Config, embedder: Embedder) -> None:
        self._embedder = embedder
        self._vectors = open_vectors(config, embedder)
        self._lock = threading.Lock()

    def nearest(self, query: str, pages: Mapping[str, str]) -> Near:
        """Pages (path to revision, from `revisions`) by their similarity to a query, and how many cannot be ranked.

        VaultdError when the embedder gives no vector now: then the words must do.
        """
        with self._lock:
            if not self._vectors.dimension:
                return Near((), len(pages))
            return self._vectors.nearest(self._embedder.embed([query], query=True)[0], pages)

    def lacking(self, pages: Mapping[str, str]) -> int:
        """How many pages have no current vector."""
        with self._lock:
            have = self._vectors.revisions()
        return sum(have.get(path) != revision for path, revision in pages.items())

    @property
    def doubt(self) -> str:
        """Why the vectors that are there do not count; "" when they do, or when there are none."""
        with self._lock:
            return self._vectors.doubt


def embedder_of(config: Config) -> Embedder | None:
    """The embedder that the settings name; None when vectors are off. UsageError when it cannot be had."""
    choice = config.vectors
    if choice.provider == "local":
        from vaultd.store.minilm import MiniLM

        return MiniLM()
    if choice.provider == "endpoint":
        from vaultd.store.endpoint import Endpoint

        return Endpoint(choice.url, choice.model, key=_key(config), dimensions=choice.dimensions)
    return None


def open_vectors(config: Config, embedder: Embedder) -> Vectors:
    """The vectors that an embedder's are kept with."""
    kind = Kind(embedder.provider, embedder.model, embedder.dimension)
    return Vectors(config.places.vectors(config.vault), config.vault, kind)


def revisions(index: Index) -> dict[str, str]:
    """Every page that the index knows, with its revision."""
    known = list(index.known().items())  # another thread may write the index meanwhile
    return {path: page.revision for path, page in known}


def bring_up(
    stores: Stores,
    embedder: Embedder,
    vectors: Vectors,
    pages: Mapping[str, str],
    *,
    force: bool = False,
    progress: Callable[[int, int], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Brought:
    """Embed the pages (path to revision) that have no current vectors, drop those of others that left the vault.

    What is done is kept batch by batch: it may be killed, or told to `stop` between two batches, and the next call goes
    on from there. With `force` all are embedded again. HeldError when another process is at it; VaultdError when the
    embedder cannot answer now, or refuses everything.
    """
    make_folder(vectors.folder.parent, mode=0o700)
    lock = Lock(vectors.folder.parent / "vectors.lock")
    if not lock.acquire(blocking=False):
        raise HeldError("Another process is embedding pages. Try again when it has ended.")
    try:
        sweep_temps(vectors.folder, _LITTER_S, stores.clock().timestamp())
        if force:
            vectors.clear()
        have, told = vectors.revisions(), Brought()
        gone = _gone(stores, [path for path in have if path not in pages])
        vectors.put(PageVectors(path, "", ()) for path in gone)
        told.dropped = len(gone)
        lacking = [path for path, revision in pages.items() if have.get(path) != revision]
        done = 0
        for batch, count in _batches(stores, lacking, told):
            if stop():
                told.left = len(lacking) - done
                break
            _embed(embedder, vectors, batch, told)
            done += count
            if progress is not None:
                progress(done, len(lacking))
        vectors.compact()
        return told
    finally:
        lock.release()


def _gone(stores: Stores, paths: Sequence[str]) -> list[str]:
    """The paths that are no page any more; none while the vault is away, or of what cannot be looked at."""
    found = []
    for path in paths:
        scan = stores.vault.scan([path])
        stat = next(scan, None)
        if (stat is None or stat.path != path) and scan.knows(path):
            found.append(path)
    return found if stores.vault.presence().here else []


def _batches(stores: Stores, paths: Sequence[str], told: Brought) -> Iterator[tuple[list[_Page], int]]:
    """The pages read, in batches, each with how many paths it covers; pages that are gone by now are in none."""
    batch: list[_Page] = []
    size = count = 0
    for path in paths:
        count += 1
        page = _page(stores, path, told)
        if page is not None:
            batch.append(page)
            size += len(page.texts)
        if size >= _BATCH:
            yield batch, count
            batch, size, count = [], 0, 0
    if count:
        yield batch, count


def _page(stores: Stores, path: str, told: Brought) -> _Page | None:
    """A page as it is now; None when it is gone or cannot be read."""
    try:
        page = stores.vault.read(path)
        if page is None:
            return None
        meta, body = frontmatter.parse(page.data)
        return _Page(path, page.revision, texts(title_of(meta.values, body, path), body))
    except (OSError, VaultdError) as error:
        told.failed[path] = str(error)
    except Exception:  # a page that we cannot deal with must not keep others out
        log.exception("a fault while a page was read for its vectors")
        told.failed[path] = "a fault, see the log"
    return None


def _embed(embedder: Embedder, vectors: Vectors, batch: Sequence[_Page], told: Brought) -> None:
    """Embed pages and keep their vectors. When they are refused together, each is tried by itself."""
    try:
        found = iter(embedder.embed([text for page in batch for text in page.texts]))
    except UsageError as error:
        if len(batch) == 1:
            told.failed[batch[0].path] = str(error)
            return
        before = told.embedded
        for number, page in enumerate(batch):
            if number < _REFUSED or told.embedded > before:
                _embed(embedder, vectors, [page], told)
        if told.embedded == before:
            raise
        return
    vectors.put(PageVectors(page.path, page.revision, [next(found) for _ in page.texts]) for page in batch)
    told.embedded += len(batch)


def _key(config: Config) -> str:
    """An endpoint's key, from where the settings say; "" where they say nothing. UsageError when it is not there."""
    choice = config.vectors
    if choice.key_env:
        key = config.environ.get(choice.key_env, "").strip()
        if not key:
            raise UsageError(f"The variable {choice.key_env} (`vectors.key_env`) is not set. Set it to the key.")
    elif choice.key_file:
        try:
            with Path(choice.key_file).open("rb") as file:
                key = file.read(_KEY_BYTES).decode().strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            raise UsageError(
                f"The key's file {choice.key_file} (`vectors.key_file`) cannot be read: {reason}."
            ) from None
        if not key:
            raise UsageError(f"The key's file {choice.key_file} (`vectors.key_file`) is empty. Put the key into it.")
    else:
        return ""
    if not (key.isascii() and key.isprintable()):
        raise UsageError("The key of `vectors` has characters that no key has. Write it down again.")
    return key
