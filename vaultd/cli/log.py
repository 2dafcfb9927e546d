"""The daemon's log: each line goes through the sanitiser, since the text of an error may hold what an agent said."""

from __future__ import annotations

import logging

from vaultd.core.sanitize import Rules, redact

__all__ = ["CleanLines", "start_log"]


class CleanLines(logging.Formatter):
    """Time, level and message; without secrets, in the traceback of an error too."""

    def __init__(self, rules: Rules) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")
        self._rules = rules

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        return redact(super().format(record), self._rules)


def start_log(rules: Rules) -> None:
    """Log to standard error from now on."""
    handler = logging.StreamHandler()
    handler.setFormatter(CleanLines(rules))
    logging.basicConfig(handlers=[handler], level=logging.INFO)
