"""Every error that vaultd raises on purpose, with its exit code.

    VaultdError                     1   something failed; the message says what to do
    ├── UsageError                  2   the command line or a setting is wrong
    ├── NoVaultError                3   there is no vault where one was looked for
    ├── NotFoundError               4   the named page, handoff, session or event does not exist
    ├── HeldError                   5   another process holds what is needed
    ├── RefusedError                6   doing it could lose or leak something
    ├── UnhealthyError              7   `doctor` or `status` found a problem
    └── ConflictError               8   both sides changed; nothing was overwritten

Exit codes are fixed by the format (output, section 8) and never reused. A message is one or two plain
sentences: what is wrong, then what to do about it.
"""

from __future__ import annotations

__all__ = [
    "ConflictError",
    "HeldError",
    "NoVaultError",
    "NotFoundError",
    "RefusedError",
    "UnhealthyError",
    "UsageError",
    "VaultdError",
]


class VaultdError(Exception):
    """Something failed; `str()` of it is shown to the person as it is."""

    exit_code = 1


class UsageError(VaultdError):
    """The command line or a setting is wrong."""

    exit_code = 2


class NoVaultError(VaultdError):
    """There is no vault where one was looked for."""

    exit_code = 3


class NotFoundError(VaultdError):
    """The named page, handoff, session or event does not exist."""

    exit_code = 4


class HeldError(VaultdError):
    """Another process holds what is needed."""

    exit_code = 5


class RefusedError(VaultdError):
    """Doing it could lose or leak something."""

    exit_code = 6


class UnhealthyError(VaultdError):
    """A check found a problem."""

    exit_code = 7


class ConflictError(VaultdError):
    """Both sides changed; nothing was overwritten."""

    exit_code = 8
