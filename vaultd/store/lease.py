"""Write leases on Linux: a way to know that nobody has a file open, and to hold back whoever opens it.

A lease is refused while any other descriptor is open on the file, in this process too. While it is held, who opens
the file waits until it is let go (at most the system's lease-break-time, 45 s) and this process is sent a signal:
SIGURG here, which does nothing by default, instead of SIGIO, which would end the process. It dies with the process.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import signal
import sys
from enum import Enum

__all__ = ["Hold", "is_wanted", "let_go", "take"]


class Hold(Enum):
    """What came of asking for a lease."""

    HELD = "held"
    """Nobody else has the file open, and nobody gets it open until the lease is let go."""
    BUSY = "busy"
    """Somebody has it open."""
    NONE = "none"
    """There are no leases here: another system, a file system without them, or another user's file."""


def take(handle: int) -> Hold:
    """Ask for a write lease on the file that `handle` has open for reading."""
    if sys.platform != "linux":
        return Hold.NONE
    try:
        fcntl.fcntl(handle, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError as error:
        return Hold.BUSY if error.errno in (errno.EAGAIN, errno.EBUSY) else Hold.NONE
    return Hold.HELD


def is_wanted(handle: int) -> bool:
    """Whether somebody is waiting for the lease to end."""
    return sys.platform == "linux" and fcntl.fcntl(handle, fcntl.F_GETLEASE) != fcntl.F_WRLCK


def let_go(handle: int) -> None:
    """End the lease, if there is one; who waited goes on."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # none was held
            fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_UNLCK)
