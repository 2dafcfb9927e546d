"""What must hold of a vault once everything was delivered and worked off, judged from the files alone.

`Reference` is what an undisturbed run over the same events left. `faults` compares a disturbed vault with it and with
itself, and gives a sentence for each thing that is wrong. Nothing here asks the product what it believes, but for the
index, whose answers are compared with those of one that is made anew.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

from tests.scratch import ZONE, Scratch
from tests.store.indexes import found
from vaultd.core import frontmatter, fusion
from vaultd.engine.passes import Passes
from vaultd.engine.reconcile import Reconcile, open_index, rebuild
from vaultd.engine.stores import Stores, open_stores

T = TypeVar("T", bound=Any)
QUERIES = ("greeting", "farewell", "app.py", "make check", "missing rule", "session")
_AGE = re.compile(rb"(?:[^.,\n]{1,40}|just now|less than[^.,\n]{1,30}) before \d{4}-\d\d-\d\d \d\d:\d\d [+-]\d\d:\d\d")
_TEMP = ".vaultd-tmp-"


@dataclass(frozen=True)
class Reference:
    """Pages and other visible files, the prepared offers, the names in the working room, the observations in folders
    and packs, what git has left to commit, and what of it is staged. `masked` (a regular expression) is taken out of
    the pages, as what two runs may say differently.
    """

    files: dict[str, bytes]
    offers: dict[str, bytes]
    room: frozenset[str]
    done: frozenset[tuple[str, str, str]]
    status: str
    staged: str
    masked: str = ""

    @staticmethod
    def of(scratch: Scratch, masked: str = "") -> Reference:
        """Read a vault."""
        files = visible(scratch.vault)
        if masked:
            files = {name: re.sub(masked.encode(), b"", data) for name, data in files.items()}
        room, done = frozenset(room_names(scratch.vault)), frozenset(observed(scratch.vault))
        return Reference(files, offers(scratch.vault), room, done, status(scratch), staged(scratch), masked)


def walk(root: Path, *skipped: str) -> Iterator[Path]:
    """All files below a folder; folders of these names are not entered."""
    for folder, names, files in os.walk(root):
        names[:] = [n for n in names if n not in skipped]
        yield from (Path(folder, name) for name in files)


def visible(vault: Path) -> dict[str, bytes]:
    """What a person sees of the vault: every file but git's and the working room's."""
    return {p.relative_to(vault).as_posix(): p.read_bytes() for p in walk(vault, ".git", ".vaultd")}


def offers(vault: Path) -> dict[str, bytes]:
    """The prepared offers, without how old they say a handoff is."""
    base = vault / ".vaultd/outbox/at"
    return {p.relative_to(base).as_posix(): _AGE.sub(b"AGE", p.read_bytes()) for p in walk(base)}


def names_in(folder: Path) -> set[str]:
    """The names in a folder; none when there is none."""
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def room_names(vault: Path) -> Iterator[str]:
    """The names in the working room; observations and offers have checks of their own, counts (runs) are derived."""
    room = vault / ".vaultd"
    for path in walk(room, "done", "at", "runs"):
        yield path.relative_to(room).as_posix()


def observed(vault: Path) -> list[tuple[str, str, str]]:
    """Every complete observation: (session, "folder" or "pack", key). A torn one counts for nothing."""
    found = []
    done = vault / ".vaultd/done"
    for path in walk(done):
        rows = path.read_bytes().splitlines() if path.suffix == ".jsonl" else [path.read_bytes()]
        name, kind = (path.stem, "pack") if path.suffix == ".jsonl" else (path.parent.name, "folder")
        for row in rows:
            try:
                told = json.loads(row)
                found.append((name, kind, str(told["key"])))
            except (ValueError, KeyError, TypeError):
                continue
    return found


def acknowledged(vault: Path, keys: Iterable[str]) -> list[str]:
    """Of the delivered keys those that are gone from `new` and neither in `done` nor in `failed`: lost."""
    kept = {key for _, _, key in observed(vault)} | names_in(vault / ".vaultd/inbox/failed")
    new = names_in(vault / ".vaultd/inbox/new")
    return [f"{key} was acknowledged and is nowhere" for key in keys if key not in new and key not in kept]


def faults(scratch: Scratch, keys: Iterable[str], reference: Reference, *, git: bool = True) -> list[str]:
    """Everything that is wrong after recovery. `git` False leaves history out."""
    found = index(open_stores(scratch.config, lambda: datetime.now(ZONE)), scratch)
    tidy_later(scratch)
    found += [*events(scratch.vault, keys), *pages(scratch.vault), *same(scratch, reference), *litter(scratch)]
    return [*found, *history(scratch, reference)] if git else found


def tidy_later(scratch: Scratch) -> None:
    """What an idle daemon does two hours on, when all litter is old; a page comes and goes meanwhile."""
    later = open_stores(scratch.config, lambda: datetime.now(ZONE) + timedelta(hours=2))
    Passes(later).tidy()
    page = scratch.vault / "Passing.md"
    for change in (lambda: page.write_text("passing\n"), page.unlink):
        change()
        with closing(open_index(later)) as used:
            reconcile = Reconcile(later, used)
            reconcile.run(reconcile.behind())


def events(vault: Path, keys: Iterable[str]) -> list[str]:
    """Every delivered event is in exactly one place: waiting, observed (folder and pack as one set), or failed."""
    new = [n for n in names_in(vault / ".vaultd/inbox/new") if not n.startswith(_TEMP)]
    failed = [n for n in names_in(vault / ".vaultd/inbox/failed") if not n.endswith(".reason.json")]
    sessions = {(name, key) for name, _, key in observed(vault)}
    places = Counter([*new, *failed, *(key for _, key in sessions)])
    wrong = [f"event {key} is in {places[key]} places" for key in keys if places[key] != 1]
    wrong += [f"event {key} was never delivered" for key in places if key not in set(keys)]
    wrong += [f"event {key} still waits" for key in new]
    twice = Counter(observed(vault))
    return wrong + [f"{name}: {key} stands twice in its {kind}" for (name, kind, key), n in twice.items() if n > 1]


def pages(vault: Path) -> list[str]:
    """One page a session, one handoff a generation, one line an event in the log; all frontmatter parses."""
    wrong = []
    ids: Counter[tuple[str, str]] = Counter()
    for rel, data in visible(vault).items():
        if not rel.endswith(".md") or Path(rel).name.startswith("."):
            continue
        meta = frontmatter.parse(data).meta
        if meta.error:
            wrong.append(f"{rel}: {meta.error}")
        kind = str(meta.values.get("kind"))
        if "/sessions/" in rel or "/handoffs/" in rel:
            if not meta.has:
                wrong.append(f"{rel} has no frontmatter")
            ids[kind, str(meta.values.get("id"))] += 1
        if Path(rel).name.startswith("log-"):
            marks = Counter(row.split()[-1] for row in data.decode().splitlines() if row.startswith("- "))
            wrong += [f"{rel}: {mark} stands {n} times" for mark, n in marks.items() if n > 1]
    return wrong + [f"{n} pages are {kind} {name}" for (kind, name), n in ids.items() if n > 1]


def same(scratch: Scratch, reference: Reference) -> list[str]:
    """Pages, offers and room are those of the undisturbed run, byte for byte."""
    now = Reference.of(scratch, reference.masked)
    wrong = [*differing("page", now.files, reference.files), *differing("offer", now.offers, reference.offers)]
    wrong += [f"observation {' '.join(row)} is {word}" for word, row in _unlike(now.done, reference.done)]
    return wrong + [f"room: {name} is {word}" for word, name in _unlike(now.room, reference.room)]


def differing(what: str, now: dict[str, bytes], then: dict[str, bytes]) -> list[str]:
    """How two sets of files differ."""
    wrong = [f"{what} {name} is {word}" for word, name in _unlike(now, then)]
    for name in now.keys() & then.keys():
        if now[name] != then[name]:
            wrong.append(f"{what} {name} differs:\n--- undisturbed\n{text(then[name])}\n--- now\n{text(now[name])}")
    return wrong


def _unlike(now: Iterable[T], then: Iterable[T]) -> list[tuple[str, T]]:
    one, two = set(now), set(then)
    return [("too many", name) for name in sorted(one - two)] + [("missing", name) for name in sorted(two - one)]


def text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def litter(scratch: Scratch) -> list[str]:
    """No unfinished file is left in the vault or the cache."""
    roots = (scratch.vault, scratch.home / ".cache")
    return [f"litter: {p.relative_to(scratch.base)}" for root in roots for p in walk(root) if p.name.startswith(_TEMP)]


def index(stores: Stores, scratch: Scratch) -> list[str]:
    """The index knows and answers what one does that is made anew in another cache."""
    places = replace(stores.config.places, cache=scratch.base / "fresh-cache")
    fresh = replace(stores, config=replace(stores.config, places=places))
    rebuild(fresh)
    with closing(open_index(stores)) as used, closing(open_index(fresh)) as new:
        wrong = [f"index in doubt: {used.doubt}"] if used.doubt else []
        if used.known() != new.known():
            unlike = _unlike(used.known(), new.known())
            wrong.append(f"index: known pages differ {unlike or 'in their states'}")
        for query in QUERIES:  # scores are left out: whoosh counts words of removed pages until it compacts
            with patch.multiple(fusion, FLOOR=0.0, FLOOR_OF_ONE=0.0):  # so which pages are hits does not hang on scores
                one, two = (
                    {hit.path: replace(hit, score=0.0, why={}, passages=(), matched=()) for hit in found(i, query, 50)}
                    for i in (used, new)
                )
            if one != two:
                wrong.append(f"index: {query!r} finds {one} instead of {two}")
        return wrong


def history(scratch: Scratch, reference: Reference) -> list[str]:
    """What is left to commit is what the person left, no lock is left, and the repository is whole.

    A half-made index of a commit (`next-index-PID.lock`) is in nobody's way, and goes with the next commit.
    """
    wrong = []
    if (left := status(scratch)) != reference.status:
        wrong.append(f"git status: {left!r} instead of {reference.status!r}")
    if (kept := staged(scratch)) != reference.staged:
        wrong.append(f"staged is {kept!r} instead of {reference.staged!r}")
    if check := run_git(scratch, "fsck", "--no-dangling", "--no-progress"):
        wrong.append(f"git fsck: {check}")
    locks = [p.name for p in walk(scratch.vault / ".git") if p.suffix == ".lock"]
    return wrong + [f"a lock is left: {name}" for name in locks if not name.startswith("next-index-")]


def status(scratch: Scratch) -> str:
    """What differs from the last commit."""
    return run_git(scratch, "status", "--porcelain", "--untracked-files=all")


def staged(scratch: Scratch) -> str:
    """What is in the index and not in the last commit."""
    return run_git(scratch, "diff", "--cached")


def run_git(scratch: Scratch, *args: str) -> str:
    """What git says, both outputs."""
    environ = {**scratch.environ, "GIT_OPTIONAL_LOCKS": "0"}
    done = subprocess.run(["git", *args], cwd=scratch.vault, env=environ, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip()
