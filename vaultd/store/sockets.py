"""Listening sockets: a local one that only its owner can open, and one over TCP."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

from vaultd.errors import RefusedError
from vaultd.store import fs

__all__ = ["listen_local", "listen_tcp", "retire"]

_BACKLOG = 128


def listen_local(path: Path) -> tuple[socket.socket, int]:
    """A socket at a path, in a folder of the user's alone, and the inode of its name. The caller holds the daemon's
    lock: one that lies there already is of a daemon that died. RefusedError when the folder is somebody else's or open
    to others; OSError.
    """
    fs.make_folder(path.parent, mode=0o700)
    found = os.lstat(path.parent)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise RefusedError(f"{path.parent} is not a folder of yours. Have it removed.")
    if found.st_mode & 0o077:
        raise RefusedError(f"{path.parent} is open to others. `chmod 700 {path.parent}` once you know what is in it.")
    if os.path.lexists(path):
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise RefusedError(f"{path} is in the way. Remove it.")
        fs.remove(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(os.fspath(path))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
        return listener, os.lstat(path).st_ino
    except BaseException:
        listener.close()
        raise


def listen_tcp(host: str, port: int) -> socket.socket:
    """A socket at an address; port 0 takes a free one. OSError when it cannot be had."""
    family, kind, number, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, number)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


def retire(path: Path, inode: int) -> None:
    """Take a socket's name away; nothing when it is gone, or another daemon's by now."""
    try:
        if os.lstat(path).st_ino == inode:
            fs.remove(path)
    except FileNotFoundError:
        return
