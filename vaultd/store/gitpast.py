"""The vault as git had it: commits by time, the pages of one, and their texts. Nothing is checked out or written.

Only the objects are read, so it is the same while the person has changes staged or is in the middle of a merge. Filters
(git-crypt, LFS) do not run: of such a page there is what git keeps, which is not its text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from vaultd.errors import VaultdError
from vaultd.store.gitanswers import Ran, words
from vaultd.store.gittree import WorkTree
from vaultd.store.pages import flaw_of

__all__ = ["Moment", "Past", "PastPage"]

_PAGES = ":(icase)*.md"
_SLOW = 3.0  # times the usual time of a git run
_FILES = frozenset({"100644", "100755", "100664"})  # a link is no page


@dataclass(frozen=True, slots=True)
class Moment:
    """A commit and the time when it was made, RFC 3339 with offset."""

    commit: str
    at: str


@dataclass(frozen=True, slots=True)
class PastPage:
    """A page of a commit: its path, the name of its blob, its size in bytes."""

    path: str
    blob: str
    size: int


class Past:
    """The history of the branch that is checked out, along first parents. What git cannot tell is a VaultdError."""

    def __init__(self, tree: WorkTree) -> None:
        self._tree = tree

    def last(self, until: float) -> Moment | None:
        """The last commit that was made at `until` (epoch seconds) or before; None when there was none yet."""
        return self._commit("-1", f"--before=@{max(0, int(until))} +0000")

    def first(self) -> Moment | None:
        """The first commit that this repository has; None before there is one."""
        return self._commit("--max-parents=0")

    def pages(self, commit: str) -> dict[str, PastPage]:
        """The pages of a commit by path: files that a scan of the vault would take for pages, were they on disk."""
        ran = self._asked("ls-tree", "-r", "-z", "--long", "--full-tree", commit)
        found: dict[str, PastPage] = {}
        for entry in ran.out.split(b"\0"):
            facts, _, name = entry.partition(b"\t")
            path = os.fsdecode(name)
            if path[-3:].lower() == ".md" and flaw_of(path) is None:
                mode, _, blob, size = facts.decode("ascii").split()
                if mode in _FILES:
                    found[path] = PastPage(path, blob, int(size))
        return found

    def having(self, commit: str, strings: Sequence[str]) -> dict[str, int]:
        """The pages of a commit that have one of these strings, by path, and on how many lines; the case of a to z
        does not count.

        Hidden pages and others that `pages` leaves out may be among them. It looks into every page: in a huge vault on
        a slow disk that may take seconds, and is no sign of a git that hangs.
        """
        patterns = "".join(f"{string}\n" for string in strings).encode()
        how = ("--count", "--ignore-case", "--null", "--text", "--fixed-strings", "--no-textconv", "--no-color")
        where = ("--full-name", "--no-recurse-submodules", "-f", "-", commit, "--", _PAGES)
        ran = self._asked("grep", *how, *where, stdin=patterns, patience=_SLOW, no=1)
        rows = re.findall(rb"([^\0]+)\0(\d+)\n", ran.out)
        return {os.fsdecode(name[len(commit) + 1 :]): int(count) for name, count in rows}

    def texts(self, pages: Iterable[PastPage]) -> Iterator[tuple[PastPage, bytes]]:
        """The bytes of pages, in their order; the caller bounds how many there are, they are all in memory at once.

        Those that this repository has no blob of (a partial clone) are left out.
        """
        wanted = list(pages)
        names = "".join(f"{page.blob}\n" for page in wanted).encode("ascii")
        out = self._asked("cat-file", "--batch", "--buffer", stdin=names, patience=_SLOW).out if wanted else b""
        start = 0
        for page in wanted:
            end = out.find(b"\n", start)
            kind = out[start:end].split()
            start = end + 1
            if len(kind) == 3 and kind[1] == b"blob":
                size = int(kind[2])
                yield page, out[start : start + size]
                start += size + 1

    def _commit(self, *which: str) -> Moment | None:
        """The first commit that these words name."""
        if self._tree.head() is None:
            return None
        told = self._asked("rev-list", "--first-parent", "--format=%H %cI", *which, "HEAD", "--").out.split()
        return Moment(told[2].decode("ascii"), told[3].decode("ascii")) if told else None

    def _asked(self, *args: str, stdin: bytes = b"", patience: float = 1.0, no: int = 0) -> Ran:
        """A run of git's that went well, or ended with `no`."""
        ran = self._tree.git(*args, stdin=stdin, patience=patience)
        if not ran.ok and (ran.late or ran.code != no):
            raise VaultdError(f"git cannot tell how the vault was then: {words(ran, f'git {args[0]}')}.")
        return ran
