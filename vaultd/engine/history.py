"""History: what vaultd wrote and what a person edited become git commits.

Commits name exact paths and never take what a person staged. Nothing waits for them: a page is durable before. When
many pages are gone at once, nothing is committed until the person says that they meant it.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from vaultd.core.sanitize import line
from vaultd.engine.stores import Stores
from vaultd.store import fs
from vaultd.store.gitanswers import Change
from vaultd.store.gitcommit import Blocked, Committed, Failed

__all__ = ["EDIT_QUIET_S", "History", "Recorded", "is_ours"]

EDIT_QUIET_S = 60.0
"""Seconds that nothing in the vault must have changed before a person's edits are committed."""

_OURS = re.compile(
    r"[^/]+/[^/]+/(?:sessions/\d{4}-\d\d-\d\d-.+-[0-9a-f]{10}\.md|handoffs/(?:open|accepted|expired)/[^/]+\.md"
    r"|handoffs/(?:open|accepted|expired)/\.gitkeep|log-\d{4}-\d\d\.md|project\.md)\Z"
)


@dataclass(slots=True)
class Recorded:
    """What a pass did: the new commits, and why some paths were left (path to reason; "" is the whole vault)."""

    commits: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)


def is_ours(path: str) -> bool:
    """Whether a page is of a kind that vaultd writes by itself."""
    return _OURS.match(path) is not None


class History:
    """Commits what changed. It needs no lock of ours: pages change by renames, and git has a lock of its own."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self.trouble = ""
        self._quiet_since: tuple[frozenset[tuple[str, int]], float] | None = None

    @property
    def _consent(self) -> str:
        """What the person accepted: the fingerprint of a set of deletions; "" for none."""
        try:
            return (self._stores.vault.room / "deletions-accepted").read_text("ascii").strip()
        except OSError:
            return ""

    def accept_deletions(self) -> int:
        """The person says that the pages which are missing now were meant to go; how many there are."""
        missing = self._missing()
        path = self._stores.vault.room / "deletions-accepted"
        fs.write_private(path, f"{self._fingerprint()}\n".encode(), sync=True)
        return len(missing)

    def _fingerprint(self) -> str:
        """Stands for exactly the pages that are missing now: consent to them is none to others."""
        return hashlib.sha256("\0".join(sorted(self._missing())).encode("utf-8", "surrogateescape")).hexdigest()

    def record(self, written: Iterable[str], message: str) -> Recorded:
        """Commit paths that vaultd wrote. Paths that a person staged are left."""
        done = Recorded()
        paths = sorted(set(written))
        if paths and not self._held(done):
            self._commit(paths, message, done)
        return done

    @property
    def unsettled(self) -> bool:
        """Whether the last look found edits that were not committed yet."""
        return self._quiet_since is not None

    def record_leftovers(self) -> Recorded:
        """Commit what an earlier process wrote and could not commit (after a crash, a merge, a staged change).

        A lock that it left goes, too.
        """
        done = Recorded()
        self._stores.repo.clear_locks()
        paths = [c.path for c in self._stores.repo.changed() if is_ours(c.path)]
        if paths and not self._held(done):
            self._commit(paths, "vaultd: pages written before", done)
        return done

    def record_edits(self, now: float, *, at_once: bool = False) -> Recorded:
        """Commit a person's edits, new pages and deletions once nothing changed for a quiet minute."""
        done = Recorded()
        self._stores.repo.clear_locks()
        if not self._stores.config.commit_edits:
            return done
        changes = [c for c in self._stores.repo.changed() if not _is_unfinished(c.path)]
        changed = [c.path for c in changes]
        state = frozenset((path, self._mtime(path)) for path in changed)
        if not changed:
            self._quiet_since = None
            return done
        if self._quiet_since is None or self._quiet_since[0] != state:
            self._quiet_since = (state, now)
        newest = max((mtime for _, mtime in state), default=0) / 1e9
        quiet = now - max(newest if newest else self._quiet_since[1], 0.0)
        if (at_once or quiet >= EDIT_QUIET_S) and not self._held(done):
            self._commit(changed, _edit_message(changes), done)
            if not done.left:
                self._quiet_since = None
        return done

    def gone(self) -> tuple[int, int]:
        """How many tracked pages are missing, and how many may be before commits wait."""
        return len(self._missing()), max(20, self._stores.repo.tracked_count() // 10)

    def _missing(self) -> list[str]:
        """Tracked pages that are gone, but for those that stand under another path now (a folder was renamed)."""
        changes = [c for c in self._stores.repo.changed() if c.path.endswith(".md")]
        moved = Counter(PurePosixPath(c.path).name for c in changes if not c.known)
        missing = []
        for change in changes:
            name = PurePosixPath(change.path).name
            if change.status == "D" and moved[name] > 0:
                moved[name] -= 1
            elif change.status == "D":
                missing.append(change.path)
        return missing

    def _held(self, done: Recorded) -> bool:
        """Whether nothing may be committed now; the reason is noted."""
        reason = ""
        if not self._stores.vault.presence().here:
            reason = "the vault is away"
        else:
            state = self._stores.repo.state()
            missing, allowed = self.gone()
            if state.blocked:
                reason = state.blocked
            elif missing > allowed and self._fingerprint() != self._consent:
                reason = f"{missing} pages are gone; if that was meant, run `vaultd accept-deletions`"
        self.trouble = reason
        if reason:
            done.left[""] = reason
        return bool(reason)

    def _commit(self, paths: list[str], message: str, done: Recorded) -> None:
        """One commit of exact paths."""
        result = self._stores.repo.commit(paths, line(message, 100, self._stores.config.rules))
        if isinstance(result, Blocked | Failed):
            self.trouble = result.reason
            done.left[""] = result.reason
            return
        done.left.update(dict.fromkeys(result.staged, "staged by you; commit it yourself"))
        if isinstance(result, Committed):
            done.commits.append(result.sha)

    def _mtime(self, path: str) -> int:
        """A path's time in nanoseconds; 0 when it is gone."""
        try:
            return (self._stores.vault.root / path).lstat().st_mtime_ns
        except OSError:
            return 0


def _is_unfinished(path: str) -> bool:
    """Whether a file is one that a crash left in the making."""
    return PurePosixPath(path).name.startswith(fs.TEMP_PREFIX)


def _edit_message(changes: list[Change]) -> str:
    """`edit: ` (or `delete: `) and what changed, one line."""
    names = [PurePosixPath(change.path).stem for change in changes]
    shown = ", ".join(names[:3])
    what = "delete" if all(change.status == "D" for change in changes) else "edit"
    return f"{what}: {shown}" + (f" and {len(names) - 3} more" if len(names) > 3 else "")
