"""Finding the daemon from inside an agent's client, and starting one where that can work.

A client may keep what it runs from the network, from writing, from seeing other processes. So the socket is tried
before anything is believed, and a daemon is started only where it could do its work; else the person is told which
access is missing. Imports little: this is on the way of a client's first answer.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from vaultd.engine.processes import told_process
from vaultd.errors import NoVaultError, RefusedError, VaultdError

__all__ = ["Reach", "clean"]

_PATIENCE_S = 15.0
_NAMES = """HOME USERPROFILE PATH USER LOGNAME SHELL LANG LANGUAGE TZ XDG_CONFIG_HOME XDG_CACHE_HOME XDG_STATE_HOME
XDG_RUNTIME_DIR GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM PYTHONPATH PYTHONWARNINGS SYSTEMROOT"""
_KEPT = frozenset(_NAMES.split())
_OF_ONE_SESSION = frozenset({"VAULTD_RUN_ID", "VAULTD_WORKSTREAM_ID"})
_SOCKET_GONE = frozenset({errno.ENOENT, errno.ECONNREFUSED, errno.ENOTDIR, errno.ENOTSOCK})


def clean(environ: Mapping[str, str]) -> dict[str, str]:
    """What of a client's environment a daemon needs: it outlives the client and serves others.

    That is where this person's things are, agents' folders among them, and no more.
    """
    from vaultd.agents import load_agents

    kept = _KEPT | {agent.home.env for agent in load_agents().values()}
    return {
        name: value
        for name, value in environ.items()
        if name in kept or name.startswith("LC_") or (name.startswith("VAULTD_") and name not in _OF_ONE_SESSION)
    }


class Reach:
    """The way to the daemon of one vault. Safe from several threads; one at a time starts a daemon."""

    def __init__(self, vault: str | None, environ: Mapping[str, str]) -> None:
        self._given = vault
        self._environ = environ
        self._guard = threading.Lock()

    def socket(self) -> str:
        """The path of a socket that a daemon listens at; one is started when there is none. VaultdError says why not.

        Takes at most 30 seconds, and next to no time when a daemon runs.
        """
        with self._guard:
            root, room = self._vault()
            if path := self._listening(room):
                return path
            deadline = time.monotonic() + _PATIENCE_S
            if told_process(room) is None:
                self._start(root, room)
            return self._wait(room, deadline)

    def _vault(self) -> tuple[Path, Path]:
        """The vault and its room; NoVaultError, RefusedError when it is hidden from here."""
        from vaultd.config import places, vault_path

        root = vault_path(self._given, self._environ, places(self._environ))
        try:
            there = (root / ".vaultd/vault-id").is_file()
        except OSError as error:
            raise RefusedError(f"The vault {root} cannot be read from here ({error.strerror}).") from error
        if not there:
            raise NoVaultError(f"There is no vault at {root}. The person makes one with `vaultd up` in a terminal.")
        return root, root / ".vaultd"

    def _told(self, room: Path) -> str:
        """Where the daemon says it listens; where it would by default when it says nothing."""
        from vaultd.config import places

        try:
            path = json.loads((room / "daemon.json").read_bytes())["socket"]
        except (OSError, ValueError, KeyError, TypeError):
            path = None
        return path if isinstance(path, str) and path else str(places(self._environ).socket(room.parent))

    def _listening(self, room: Path) -> str:
        """The socket's path when somebody listens there, else "". RefusedError when it may not be used from here."""
        path = self._told(room)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
                link.settimeout(_PATIENCE_S)
                link.connect(os.fsencode(path))
        except TimeoutError:
            return path  # it is busy, and there
        except OSError as error:
            if error.errno not in _SOCKET_GONE:
                raise RefusedError(
                    f"vaultd's daemon cannot be reached from here: {path}: {error.strerror or error}. "
                    "Allow this program to connect to that socket."
                ) from error
            return ""
        return path

    def _start(self, root: Path, room: Path) -> None:
        """Start a daemon where it can write what it must."""
        from vaultd.cli.starting import start_at
        from vaultd.config import places
        from vaultd.store.fs import Lock

        environ = clean(self._environ)
        where = places(environ)
        for folder in (root, room, where.index(root).parent, where.socket(root).parent):
            if reason := _unwritable(folder):
                raise RefusedError(
                    f"No daemon of vaultd can be seen from here, and none can be started: {folder} cannot be written "
                    f"({reason}). Start it outside of this sandbox with `vaultd up`, or allow that access."
                )
        lock = Lock(room / "daemon.lock")
        if not lock.acquire(blocking=False):
            if told_process(room) is None and not self._begins(room):
                raise RefusedError(
                    f"A daemon of vaultd runs, but it does not listen at {self._told(room)}, as far as can be seen "
                    "from here. `vaultd down`, then `vaultd up`, start it anew."
                )
            return
        lock.release()
        try:
            start_at(root, environ)
        except OSError as error:
            raise VaultdError(f"The daemon cannot be started from here: {error.strerror or error}.") from error

    def _begins(self, room: Path) -> bool:
        """Whether whoever holds the daemon's lock shows itself within two seconds: it may have begun just now."""
        deadline, pause = time.monotonic() + 2.0, threading.Event()
        while time.monotonic() < deadline:
            if told_process(room) is not None or self._listening(room):
                return True
            pause.wait(0.05)
        return False

    def _wait(self, room: Path, deadline: float) -> str:
        """The socket once the daemon listens."""
        pause = threading.Event()
        while not (path := self._listening(room)):
            if time.monotonic() > deadline:
                raise VaultdError(
                    f"The daemon runs, but it does not listen at {self._told(room)}. `vaultd doctor` looks into it."
                )
            pause.wait(0.02)
        return path


def _unwritable(folder: Path) -> str:
    """Why a file cannot be made in a folder (or in the nearest one above that exists); "" when it can.

    Tried with a file that never has a name: a permission says nothing where a sandbox or a mount forbids it.
    """
    try:
        while not folder.exists() and folder.parent != folder:
            folder = folder.parent
        os.close(os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600))
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
            return error.strerror or str(error)
        return "" if os.access(folder, os.W_OK | os.X_OK) else "no permission"
    except AttributeError:  # a system without such files
        return "" if os.access(folder, os.W_OK | os.X_OK) else "no permission"
    return ""
