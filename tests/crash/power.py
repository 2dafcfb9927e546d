"""What a power cut may leave: a model of the disk, fed with the durable steps of a real run.

Durable is what was there at the start, what a `syncfs` covered, the bytes of a file that was synced, and the names in a
folder that was synced; a rename is one thing, in both its folders. Of the rest a file system may keep anything; three
of these choices are played through:

    nothing    nothing that was not synced
    removals   of that only that names were removed
    names      all names, but files whose bytes were not synced are empty

As a program: `power.py REQUEST ROOT OUT` carries out a tracer's request and writes the states that can follow each of
its steps, none twice, to OUT (see `save` and `load`). Files are told apart by inode numbers, which are kept from coming
back by holding every file.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash.tracer import Request, answer

CHOICES = ("nothing", "removals", "names")
_TEMP = re.compile(r"\.vaultd-tmp-(?:swap-[0-9a-f-]+|[0-9a-f]+)|build-\d+/\S+")


@dataclass(frozen=True)
class State:
    """The disk after a cut before step `number` (`step`: its words): files by path below the root, and folders."""

    number: int
    step: str
    choice: str
    files: dict[str, bytes]
    folders: tuple[str, ...]


@dataclass(frozen=True)
class Rename:
    """A file's way from a name in one folder to a name in another; folders by inode."""

    source: int
    old: str
    folder: int
    name: str
    inode: int


@dataclass
class Disk:
    """What is durable of the tree below `root`; folders called `but` are left out."""

    root: str
    but: tuple[str, ...] = (".git",)
    names: dict[int, dict[str, int]] = field(default_factory=dict)
    data: dict[int, bytes] = field(default_factory=dict)
    removed: set[tuple[int, str]] = field(default_factory=set)
    renamed: list[Rename] = field(default_factory=list)  # between folders, and not durable yet
    held: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sync_all()

    def hold(self, path: str) -> tuple[int, bool]:
        """The inode under a path, kept from being given to another file; whether it is a folder."""
        handle = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        found = os.fstat(handle)
        if found.st_ino in self.held:
            os.close(handle)
        else:
            self.held[found.st_ino] = handle
        return found.st_ino, stat.S_ISDIR(found.st_mode)

    def listing(self, folder: str) -> dict[str, int]:
        names = (path.name for path in Path(folder).iterdir())
        return {name: self.hold(f"{folder}/{name}")[0] for name in names if name not in self.but}

    def walk(self) -> Iterator[tuple[str, bool]]:
        """Every path below the root and the root, and whether it is a folder."""
        for folder, names, files in os.walk(self.root):
            names[:] = [name for name in names if name not in self.but]
            yield folder, True
            yield from ((f"{folder}/{name}", False) for name in files)

    def sync_all(self) -> None:
        """syncfs: everything is durable."""
        for path, is_folder in self.walk():
            self.sync(path, is_folder)
        self.removed.clear()
        self.renamed.clear()

    def sync(self, path: str, is_folder: bool) -> None:
        """fsync of one file or folder."""
        number = self.hold(path)[0]
        if is_folder:
            self.names[number] = self.listing(path)
            self.removed = {(folder, name) for folder, name in self.removed if folder != number}
            self.complete(number)
        else:
            self.data[number] = Path(path).read_bytes()

    def complete(self, synced: int) -> None:
        """Let the other side of renames into or out of a synced folder be durable as well."""
        for rename in [r for r in self.renamed if synced in (r.source, r.folder)]:
            self.renamed.remove(rename)
            if self.names[rename.source].get(rename.old) == rename.inode:
                del self.names[rename.source][rename.old]
            self.names.setdefault(rename.folder, {}).setdefault(rename.name, rename.inode)

    def follow(self, call: str, path: str, old: str) -> None:
        """Take note of a step that is about to be made."""
        if call == "syncfs":
            self.sync_all()
        elif call in ("fsync", "fdatasync") and os.path.lexists(path):
            self.sync(path, Path(path).is_dir())
        elif call in ("unlink", "unlinkat", "rmdir") and os.path.lexists(path):
            folder, _, name = path.rpartition("/")
            self.removed.add((self.hold(folder)[0], name))
        elif old and old.rpartition("/")[0] != path.rpartition("/")[0] and os.path.lexists(old):
            (source, _, gone), (folder, _, name) = old.rpartition("/"), path.rpartition("/")
            self.renamed.append(Rename(self.hold(source)[0], gone, self.hold(folder)[0], name, self.hold(old)[0]))

    def after(self, choice: str) -> tuple[dict[str, bytes], tuple[str, ...]]:
        """Files and folders as they are found when the power is back."""
        files: dict[str, bytes] = {}
        folders: list[str] = []
        if choice == "names":
            for path, is_folder in self.walk():
                number, short = self.hold(path)[0], path[len(self.root) + 1 :]
                folders.append(short) if is_folder else files.update({short: self.data.get(number, b"")})
            return files, tuple(sorted(folders))
        gone = self.removed if choice == "removals" else set()
        waiting = [("", self.hold(self.root)[0])]
        while waiting:
            path, number = waiting.pop()
            folders.append(path)
            for name, inner in self.names.get(number, {}).items():
                below = f"{path}/{name}".lstrip("/")
                if (number, name) in gone:
                    continue
                if stat.S_ISDIR(os.fstat(self.held[inner]).st_mode):
                    waiting.append((below, inner))
                else:
                    files[below] = self.data.get(inner, b"")
        return files, tuple(sorted(folders))


def states(request: Request, root: str) -> list[State]:
    """Carry the request out; every state that a cut before one of its steps, or after the last one, can leave."""
    disk, found, seen = Disk(root), list[State](), set[int]()
    number = 0

    def note(step: str) -> None:
        for choice in CHOICES:
            files, folders = disk.after(choice)
            told = hash((choice, folders, tuple(sorted((_TEMP.sub("", name), data) for name, data in files.items()))))
            if told not in seen:
                seen.add(told)
                found.append(State(number, step, choice, files, folders))

    def step(call: str, path: str, old: str) -> None:
        nonlocal number
        note(f"{call} {path}")
        disk.follow(call, path, old)
        number += 1

    told = answer(request, step)
    assert told["code"] == 0, told["err"]
    note("the end")
    return found


def save(made: list[State], out: Path) -> None:
    """Write states; bytes as the characters of Latin-1."""
    rows = [
        (s.number, s.step, s.choice, {name: data.decode("latin-1") for name, data in s.files.items()}, s.folders)
        for s in made
    ]
    out.write_text(json.dumps(rows), "utf-8")


def load(out: Path) -> list[State]:
    """Read states back."""
    return [
        State(number, step, choice, {name: data.encode("latin-1") for name, data in files.items()}, tuple(folders))
        for number, step, choice, files, folders in json.loads(out.read_text("utf-8"))
    ]


if __name__ == "__main__":
    save(states(Request(**json.loads(sys.argv[1])), sys.argv[2]), Path(sys.argv[3]))
