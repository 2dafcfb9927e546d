"""The vault: pages read, made and changed beside the person who owns them.

A page is named by its path from the vault's root, in POSIX form. Every method that takes such a path passes it through
one check (`Vault.checked`), and every method that writes takes text that went through the sanitiser. Outcomes that can
be expected (the page changed meanwhile, somebody has it open, it is gone, its frontmatter cannot be edited) are values.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from vaultd.core import frontmatter, splicing
from vaultd.core.sanitize import Clean
from vaultd.errors import RefusedError
from vaultd.store import fs
from vaultd.store.fs import Revision
from vaultd.store.pages import (
    Busy,
    Diverged,
    Exists,
    Gone,
    Moved,
    Outcome,
    PageFile,
    PageStat,
    Presence,
    Refused,
    Scan,
    Written,
    flaw_of,
    is_plain,
)
from vaultd.store.rescue import rescue
from vaultd.store.swap import QUIET, Batch, Change, SwapResult

__all__ = [
    "SENTINEL",
    "Busy",
    "Diverged",
    "Exists",
    "Gone",
    "Moved",
    "Outcome",
    "PageFile",
    "PageStat",
    "Presence",
    "Refused",
    "Scan",
    "Value",
    "Vault",
    "Written",
]

Value: TypeAlias = Clean | int | float | bool | Sequence[Clean] | None
"""A frontmatter value that may be written: text only after the sanitiser."""

SENTINEL = "vaultd-vault 1"
"""First line of `.vaultd/vault-id`; the number is the format's. The second line is the vault's id."""

_ID = re.compile(r"[0-9a-f]{8,64}\Z")
_ROOM = ("inbox/tmp", "inbox/new", "inbox/failed", "done", "outbox/map", "outbox/at", "leases", "runs")


class Vault:
    """One vault folder.

    With `sync` False the bytes of a page are still synced before it gets its name, but not the name: the caller ends a
    batch with one `sync_all`. Making the object makes nothing and does not fail: a vault may be away.

    A change to a page that exists takes `quiet` seconds (store/swap.py says why); `together` makes one wait of many.
    """

    def __init__(self, root: Path, *, sync: bool = True, quiet: float = QUIET) -> None:
        self.root = Path(os.path.abspath(root))  # noqa: PTH100 - absolute, but a symlinked root stays the name it has
        self.room = self.root / ".vaultd"
        self._sync = sync
        self._quiet = quiet
        self._seen: tuple[int, str] | None = None
        self._real = ""
        self._batch: Batch | None = None
        self._changed: dict[Path, str] = {}
        self.presence()

    def initialise(self, vault_id: str) -> str:
        """Make the room and the sentinel where they are missing; the id that holds (an older one stays).

        `vault_id` is hexadecimal, from the caller. A crash leaves some of the folders; doing it again ends it. The
        sentinel comes last: without it the vault counts as away.
        """
        if not _ID.match(vault_id):
            raise ValueError("a vault id is 8 to 64 hexadecimal digits")
        self.room.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.room.chmod(0o700)
        for folder in _ROOM:
            fs.make_folder(self.room / folder, mode=0o700)
        with contextlib.suppress(FileExistsError):
            fs.publish(self.room / "vault-id", f"{SENTINEL}\n{vault_id}\n".encode(), mode=0o600)
        present = self.presence()
        if present.id is None:
            raise RefusedError(f"{self.room / 'vault-id'} is there but cannot be used: {present.reason}.")
        return present.id

    def presence(self) -> Presence:
        """Whether the vault is the one that was seen first by this object: its sentinel, and on the same device."""
        try:
            text = (self.room / "vault-id").read_bytes().decode("utf-8", "replace")
            device = self.root.stat().st_dev
        except OSError as error:
            return Presence(False, f"its sentinel .vaultd/vault-id cannot be read ({error.strerror})")
        first, _, rest = text.partition("\n")
        found = rest.partition("\n")[0].strip()
        if first != SENTINEL or not _ID.match(found):
            newer = first != SENTINEL and first.startswith("vaultd-vault ")
            return Presence(
                False, "it was made by a newer vaultd, update yours" if newer else "its sentinel is damaged"
            )
        if self._seen is None:
            self._seen = (device, found)
        if self._seen[0] != device:
            return Presence(False, "its folder is on another device than before")
        if self._seen[1] != found:
            return Presence(False, "another vault is in its place")
        return Presence(True, None, found)

    def checked(self, rel: str) -> Path:
        """The absolute path of `rel`; RefusedError for a path that is not plainly inside the vault.

        Refused: absolute paths, `..`, empty and hidden segments (a dot first), control characters, names longer
        than a file system takes, and whatever symlinks lead out of the vault or into a hidden folder.
        """
        if flaw := flaw_of(rel):
            raise RefusedError(flaw)
        root = self._real_root()
        real = os.path.join(root, rel)  # noqa: PTH118 - on text, as all that follows
        if not is_plain(root, rel):
            real = os.path.realpath(real)
        inside = real[len(root) :].split("/")[1:] if real.startswith(root.rstrip("/") + "/") else []
        if not inside or any(part.startswith(".") for part in inside):
            raise RefusedError(f"{rel!r} leads out of the vault through a symlink. Use the real path.")
        return Path(real)

    def _real_root(self) -> str:
        """The root's path without symlinks, looked up anew where it does not lead to the same folder any more."""
        with contextlib.suppress(OSError):
            if self._real and os.path.samestat(Path(self._real).stat(), self.root.stat()):
                return self._real
        self._real = os.path.realpath(self.root)
        return self._real

    def read(self, rel: str) -> PageFile | None:
        """The page's bytes and their revision; None when there is no such file. OSError when it cannot be read."""
        path = self.checked(rel)
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                return None
            data = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return PageFile(rel, data, fs.revision(data))

    def create(self, rel: str, text: Clean) -> Written | Exists:
        """A new page; its folders are made. Crash: see `fs.publish`; at most empty folders and a temp file."""
        path = self.checked(rel)
        data = text.encode()
        fs.make_folder(path.parent, sync=self._sync)
        try:
            fs.publish(path, data, sync_name=self._sync)
        except FileExistsError:
            return Exists(rel)
        return Written(rel, fs.revision(data))

    def rewrite(self, rel: str, text: Clean, expected: Revision) -> Outcome:
        """The whole page anew, if it still has the revision `expected`."""
        return self._swap(rel, text.encode(), expected)

    def splice(
        self, rel: str, values: Mapping[str, Clean | int | float | bool | Sequence[Clean] | None], expected: Revision
    ) -> Outcome | Refused:
        """Change only the values of our own frontmatter keys; every other byte stays (core.splicing)."""
        page = self.read(rel)
        if page is None:
            return Gone(rel)
        if page.revision != expected:
            return Diverged(rel)
        try:
            data = splicing.splice(page.data, values)
        except ValueError as error:
            return Refused(rel, str(error))
        return Written(rel, expected) if data == page.data else self._swap(rel, data, expected)

    def append(self, rel: str, text: Clean, expected: Revision) -> Outcome:
        """Add lines to the end, in the page's own kind of line ends; the last line before them is closed if need be."""
        page = self.read(rel)
        if page is None:
            return Gone(rel)
        if page.revision != expected:
            return Diverged(rel)
        return self._swap(rel, _appended(page.data, text), expected)

    def revise(
        self,
        page: PageFile,
        values: Mapping[str, Value],
        *,
        body: Clean | None = None,
        addition: Clean | None = None,
    ) -> Outcome | Refused:
        """In one exchange, change values of our own frontmatter keys and put a new body, or an addition, after them.

        The person's frontmatter stays byte for byte; so does the body, unless `body` is given.
        """
        meta, data = frontmatter.parse(page.data).meta, page.data
        if values or meta.has or meta.error:
            try:
                data = splicing.splice(page.data, values)
            except ValueError as error:
                return Refused(page.path, str(error))
        if body is not None:
            parts = frontmatter.split(data)
            data = (b"".join(parts[:-1]) if meta.has else parts.bom) + body.encode()
        if addition is not None:
            data = _appended(data, addition)
        return Written(page.path, page.revision) if data == page.data else self._swap(page.path, data, page.revision)

    def move(self, rel_from: str, rel_to: str) -> Moved | Exists | Gone:
        """Give the page another path that is free; folders are made. One rename: of racers for one page one wins."""
        source, target = self.checked(rel_from), self.checked(rel_to)
        if not os.path.lexists(source):
            return Gone(rel_from)
        fs.make_folder(target.parent, sync=self._sync)
        try:
            fs.move(source, target, sync=self._sync)
        except FileExistsError:
            return Exists(rel_to)
        except FileNotFoundError:
            return Gone(rel_from)
        return Moved(rel_to)

    def remove(self, rel: str) -> bool:
        """Remove the page; whether there was one."""
        try:
            fs.remove(self.checked(rel), missing_ok=False)
        except FileNotFoundError:
            return False
        return True

    def keep_folder(self, rel: str) -> None:
        """Make a folder and a `.gitkeep` in it, so that git carries it while it is empty."""
        folder = self.checked(rel)
        if os.path.lexists(folder / ".gitkeep"):
            return
        fs.make_folder(folder, sync=self._sync)
        with contextlib.suppress(FileExistsError):
            fs.publish(folder / ".gitkeep", b"", sync_name=self._sync)

    def scan(self, only: Iterable[str] | None = None) -> Scan:
        """All pages, or those under some paths: files that end in `.md`. Hidden names and symlinks are passed over."""
        return Scan(str(self.root), only)

    def sync_all(self) -> None:
        """Make everything written so far durable, in one call."""
        fs.sync_filesystem(self.root)

    @contextlib.contextmanager
    def together(self) -> Iterator[list[Diverged | Busy]]:
        """Let the changes inside the block share one wait, at its end; not re-entrant.

        Each of them answers at once. The list, complete when the block has ended, names the pages whose Written did not
        stand because somebody was saving them at that moment.
        """
        with Batch(quiet=self._quiet, sync=self._sync) as self._batch:
            undone: list[Diverged | Busy] = []
            try:
                yield undone
            finally:
                batch, self._batch = self._batch, None
        undone += [self._undone(batch, path, self._changed[path]) for path in batch.undone]
        self._changed.clear()

    def sweep(self, older_than_s: float, now: float) -> list[str]:
        """Clear away what a crash left beside pages; the pages that got a person's text back, or were put beside one.

        Only temp files that were last changed `older_than_s` seconds before `now` (epoch).
        """
        fs.sweep_temps(self.root, older_than_s, now)
        return [path.relative_to(self.root).as_posix() for path in rescue(self.root, older_than_s, now)]

    def _swap(self, rel: str, data: bytes, expected: Revision) -> Outcome:
        change = Change(self.checked(rel), data, expected)
        if self._batch is not None:
            self._changed[change.path] = rel
            result = self._batch.swap(change)
        else:
            with Batch(quiet=self._quiet, sync=self._sync) as batch:
                result = batch.swap(change)
            if change.path in batch.undone:
                return self._undone(batch, change.path, rel)
        if result is SwapResult.WRITTEN:
            return Written(rel, fs.revision(data))
        if result is SwapResult.DIVERGED:
            return Diverged(rel)
        return Busy(rel) if result is SwapResult.BUSY else Gone(rel)

    def _undone(self, batch: Batch, path: Path, rel: str) -> Diverged | Busy:
        if batch.undone[path] is SwapResult.BUSY:
            return Busy(rel)
        kept = [beside for beside in batch.kept if beside.name.startswith(f"{path.stem} (kept ")]
        folder = rel.rpartition("/")[0]
        return Diverged(rel, f"{folder}/{kept[-1].name}".lstrip("/") if kept else None)


def _appended(data: bytes, text: Clean) -> bytes:
    """A page with lines added, in its own kind of line ends; its last line is closed if need be."""
    eol = b"\r\n" if b"\r\n" in data[:4096] else b"\n"
    added = text.encode().replace(b"\r\n", b"\n").removesuffix(b"\n").replace(b"\n", eol) + eol
    return (data if not data or data.endswith(b"\n") else data + eol) + added
