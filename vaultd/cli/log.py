"""The daemon's log: what went wrong, in lines that hold nothing of what an agent or a page said.

An error of ours and of the system is told in its words, through the sanitiser, since they name pages and folders. Of
any other error only its type and place are told: its words may quote what was being read. Libraries log such words on
purpose, so of theirs only the place is kept.
"""

from __future__ import annotations

import logging
import traceback
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

from vaultd.core.sanitize import Rules, redact
from vaultd.errors import VaultdError

__all__ = ["CleanLines", "start_log"]

_BYTES, _KEPT = 1024 * 1024, 3  # of a log file, and how many old ones are kept

_Raised: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class CleanLines(logging.Formatter):
    """Time, level and message; without secrets, and of a foreign error without its words."""

    def __init__(self, rules: Rules) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")
        self._rules = rules

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        if record.name.partition(".")[0] != "vaultd":
            place = f"{record.name} ({record.module}, line {record.lineno})"
            record = logging.LogRecord(
                record.name, record.levelno, record.pathname, record.lineno, place, None, record.exc_info
            )
        return redact(super().format(record), self._rules)

    def formatException(self, ei: _Raised) -> str:
        """Where it happened and of what type it is; its words only when they are ours or the system's."""
        _, error, tb = ei
        lines = [f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in traceback.extract_tb(tb)]
        words = f": {error}" if isinstance(error, VaultdError | OSError) else ""
        return "\n".join([*lines, f"{type(error).__name__}{words}"])


def start_log(rules: Rules, file: Path | None = None) -> None:
    """Log to standard error from now on, or to a file that is begun anew when it is full; some old ones are kept."""
    handler: logging.Handler = logging.StreamHandler()
    if file is not None:
        handler = RotatingFileHandler(file, maxBytes=_BYTES, backupCount=_KEPT, encoding="utf-8", errors="replace")
    handler.setFormatter(CleanLines(rules))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("vaultd").setLevel(logging.INFO)
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)  # it logs each request that is not HTTP, as an error
