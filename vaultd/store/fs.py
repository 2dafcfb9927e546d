"""Every durable verb: publish, move, exchange, remove, sync, lock. Raw renames and fsyncs are nowhere else.

Names of unfinished files start with `.vaultd-tmp-`: scans pass over them and `sweep_temps` removes them when they are
old. A verb that fails (disk full, read-only) raises the OSError as it is and leaves no litter where it could still
remove it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import hashlib
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NewType

from vaultd.store.lock import Lock

__all__ = [
    "SWAP_PREFIX",
    "TEMP_PREFIX",
    "Lock",
    "Revision",
    "exchange",
    "make_folder",
    "move",
    "publish",
    "remove",
    "remove_tree",
    "replace",
    "revision",
    "sweep_temps",
    "sync_file",
    "sync_filesystem",
    "sync_folder",
    "temp_beside",
    "temps",
    "write_private",
]

TEMP_PREFIX = ".vaultd-tmp-"
"""How the names of unfinished files begin."""

SWAP_PREFIX = TEMP_PREFIX + "swap-"
"""How the names begin that may hold a page which a person saved (see store/swap.py); never removed unseen."""

Revision = NewType("Revision", str)
"""sha256 of a file's bytes, 64 hex digits."""

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2
_NOT_SUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})
_NO_LINKS = _NOT_SUPPORTED | {errno.EPERM, errno.EMLINK, errno.EACCES}


def revision(data: bytes) -> Revision:
    """The revision of a file with these bytes."""
    return Revision(hashlib.sha256(data).hexdigest())


def temp_beside(path: Path, data: bytes, *, mode: int = 0o666, sync: bool) -> Path:
    """A complete new file in the folder of `path`, under a temp name; `mode` is cut by the umask.

    A crash leaves a temp name, perhaps half written: litter. On an error nothing is left.
    """
    return Path(_new_file(os.fspath(path.parent), data, mode, sync))


def _new_file(folder: str, data: bytes, mode: int, sync: bool, name: Path | str | None = None) -> str:
    """`temp_beside`; with `name` the file takes that over. On text: it is done for each of thousands of events."""
    temp = f"{folder}/{TEMP_PREFIX}{secrets.token_hex(8)}"
    handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(handle, view) :]
            if sync:
                os.fsync(handle)
        finally:
            os.close(handle)
        if name is not None:
            replace(temp, name)
    except BaseException:
        remove(temp)
        raise
    return temp


def publish(
    path: Path, data: bytes, *, sync: bool = True, sync_name: bool = True, mode: int = 0o666, room: Path | None = None
) -> None:
    """Make a file that must not exist yet, complete or not at all; FileExistsError when the name is taken.
    It is written beside `path` first, or in the folder `room` of the same file system.

    Crash after: the temp file: litter, nothing published. The link: published under its name, the temp name is a second
    one for the same file (litter). The removal of the temp name: published.
    A power cut before this returns leaves the file whole or not at all. Without `sync_name` the name may be lost until
    the folder or the file system is synced; without `sync` the bytes too: the name may then stand for an empty file.
    """
    temp = temp_beside(room / path.name if room else path, data, mode=mode, sync=sync)
    try:
        _link(temp, path)
    finally:
        remove(temp)
    if sync and sync_name:
        sync_folder(path.parent)


def write_private(path: Path | str, data: bytes, *, sync: bool = False, mode: int = 0o600) -> None:
    """Replace a file that is vaultd's alone, whole; missing parents are made for the owner only. Last writer wins.

    Crash after: the temp file: litter, the old content stands. The rename: the new content stands; without `sync` a
    power cut may bring the old one back.
    """
    folder = os.path.dirname(path) or "."  # noqa: PTH120 - on text
    if not os.path.isdir(folder):  # noqa: PTH112 - on text
        make_folder(Path(folder), mode=0o700, sync=sync)
    _new_file(folder, data, mode, sync, path)
    if sync:
        sync_folder(Path(folder))


def replace(src: Path | str, dst: Path | str) -> None:
    """One rename that takes over the name `dst`, whatever it holds. For files of ours and checked pages only.

    Atomic: a crash leaves either both names as they were or `dst` holding what was `src`.
    """
    os.replace(src, dst)  # noqa: PTH105 - on text


def move(src: Path, dst: Path, *, sync: bool = False) -> None:
    """Rename that refuses a name that is taken: FileExistsError; FileNotFoundError when `src` is gone.

    Atomic on Linux. Where the system cannot refuse by itself: a link, then the removal of the old name; a crash
    between them leaves both names for one file. Of racers for one `src` one wins, the others see
    FileNotFoundError. With `sync` both folders are synced before this returns.
    """
    if not _rename2(src, dst, _RENAME_NOREPLACE):
        _move_in_two_steps(src, dst)
    if sync:
        sync_folder(dst.parent)
        if src.parent != dst.parent:
            sync_folder(src.parent)


def exchange(first: Path, second: Path) -> bool:
    """Let two names change places; FileNotFoundError when either is missing; False where it cannot be done.

    On Linux one step: a crash leaves both as before or both exchanged. Elsewhere by way of a second name for `second`
    (that of `first` and an `x`): `second` always holds one of the two; a crash leaves the other under the extra name.
    """
    if _rename2(first, second, _RENAME_EXCHANGE):
        return True
    spare = first.with_name(first.name + "x")
    try:
        os.link(second, spare, follow_symlinks=False)
    except OSError as error:
        if error.errno in _NO_LINKS:
            return False
        raise
    first.replace(second)
    spare.replace(first)
    return True


def remove(path: Path | str, missing_ok: bool = True) -> None:
    """Remove one name; a crash leaves it or not."""
    with contextlib.suppress(*[FileNotFoundError] * missing_ok):
        os.unlink(path)  # noqa: PTH108 - on text


def remove_tree(path: Path) -> None:
    """Remove a folder and all in it (a symlink inside is removed, not followed); nothing when it is missing.

    A crash leaves part of it; doing it again ends it. A `path` that is itself a symlink is refused (OSError).
    """
    if os.path.lexists(path):
        shutil.rmtree(path)


def make_folder(path: Path, *, mode: int = 0o777, sync: bool = False) -> None:
    """Make a folder and its missing parents (`mode` is cut by the umask); one that is there is left as it is.

    A crash leaves some of the parents, empty. With `sync` each new folder's name is durable.
    """
    if path.is_dir():
        return
    make_folder(path.parent, mode=mode, sync=sync)
    path.mkdir(mode=mode, exist_ok=True)
    if sync:
        sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable (fsync of the folder); does nothing on Windows, which has no such call."""
    if sys.platform != "win32":
        sync_file(path)


def sync_file(path: Path) -> None:
    """Make the bytes of a file durable; not its name. On POSIX it does the same for the names in a folder."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_filesystem(path: Path) -> None:
    """Make everything written to the file system that holds `path` durable, in one call; OSError when that failed.

    Elsewhere than on Linux all file systems are synced, and errors of the disk are not reported by the system.
    """
    syncfs = _libc("syncfs")
    if syncfs is None:
        os.sync()
        return
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if syncfs(handle) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(path))
    finally:
        os.close(handle)


def sweep_temps(folder: Path, older_than_s: float, now: float) -> int:
    """Remove temp files under `folder` whose last change is `older_than_s` seconds before `now` (epoch); how many.

    `.git`, `.vaultd` and symlinked folders below it are not entered. Names that may hold a person's text
    (`SWAP_PREFIX`) are left: store/rescue.py looks at those. Files that vanish meanwhile are no error.
    """
    litter = [temp for temp in temps(folder, older_than_s, now) if not temp.name.startswith(SWAP_PREFIX)]
    for temp in litter:
        remove(temp)
    return len(litter)


def temps(folder: Path, older_than_s: float, now: float) -> Iterator[Path]:
    """All temp files under `folder` that old; the same bounds as `sweep_temps`."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in (".git", ".vaultd")]
        for path in (Path(parent, name) for name in names if name.startswith(TEMP_PREFIX)):
            with contextlib.suppress(FileNotFoundError):
                found = path.lstat()
                # A retired page keeps its old mtime; the ctime is that of the exchange.
                if stat.S_ISREG(found.st_mode) and max(found.st_mtime, found.st_ctime) <= now - older_than_s:
                    yield path


@functools.cache
def _libc(name: str) -> Any:
    """A function of the C library on Linux; None where there is none."""
    return getattr(ctypes.CDLL(None, use_errno=True), name, None) if sys.platform == "linux" else None


def _link(temp: Path, path: Path) -> None:
    """Give `temp` the second name `path`; without hard links rename it there."""
    try:
        os.link(temp, path, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS or not _rename2(temp, path, _RENAME_NOREPLACE):
            raise


def _rename2(src: Path, dst: Path, flag: int) -> bool:
    """renameat2 with one flag; False where it does not exist or the file system does not know the flag."""
    call = _libc("renameat2")
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(src), _AT_FDCWD, os.fsencode(dst), ctypes.c_uint(flag)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NOT_SUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(src), None, str(dst))


def _move_in_two_steps(src: Path, dst: Path) -> None:
    """`move` without help from the system; a folder is renamed after a look, since folders have no second names."""
    if src.is_dir() and not src.is_symlink():
        if os.path.lexists(dst):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(dst))
        src.rename(dst)
        return
    os.link(src, dst, follow_symlinks=False)
    try:
        src.unlink()
    except FileNotFoundError:  # another won
        dst.unlink()
        raise
