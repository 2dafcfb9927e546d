"""What vaultd changed in other programs' configuration on this machine, so that it can be taken back exactly.

Kept beside the installed hook (`installed.json`). Losing it is no harm: taking entries out of a file then works on the
text alone.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from vaultd.config import Places
from vaultd.errors import RefusedError
from vaultd.store import fs

__all__ = ["FORMAT", "Installed", "Row"]

FORMAT = 1
"""The record's format; one of a newer format is neither read nor replaced."""


@dataclass(frozen=True, slots=True)
class Row:
    """One change of one file: revisions before (None: there was none) and after, and the copy of what was before.

    `file` is the path as the agent knows it, `made` are folders that were made for it, `at` is RFC 3339.
    """

    agent: str
    file: str
    before: str | None
    after: str
    backup: str | None
    at: str
    made: tuple[str, ...] = ()


@dataclass(slots=True)
class Installed:
    """The record: changes in the order in which they were made."""

    path: Path
    rows: list[Row] = field(default_factory=list)
    format: int = FORMAT

    @classmethod
    def of(cls, places: Places) -> Installed:
        """The record of this machine; empty when there is none, it is damaged, or of a newer format."""
        record = cls(places.data / "installed.json")
        try:
            told = json.loads(record.path.read_bytes())
            record.format = max(FORMAT, int(told["vaultd-installed"]))
            if record.format == FORMAT:
                record.rows = [_row(values) for values in told["changes"]]
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            pass
        return record

    def refuse_newer(self) -> None:
        """RefusedError when a newer vaultd wrote the record: what it says would be lost."""
        if self.format > FORMAT:
            raise RefusedError(
                f"{self.path} was written by a newer vaultd (format {self.format}, this one reads up to {FORMAT}). "
                "Update vaultd and try again."
            )

    def add(self, row: Row) -> None:
        """Keep one more change."""
        self.rows.append(row)
        self._write()

    def forget(self, file: Path) -> None:
        """Drop what is kept about a file."""
        left = [row for row in self.rows if row.file != str(file)]
        if left != self.rows:
            self.rows = left
            self._write()

    def since(self, agent: str) -> datetime | None:
        """When an agent's configuration was last changed by us; None when we know of no change."""
        times = [datetime.fromisoformat(row.at) for row in self.rows if row.agent == agent]
        return max(times) if times else None

    def original(self, file: Path, content: bytes) -> tuple[bool, bytes | None]:
        """Whether it is known what a file held before us, given that it holds `content` now, and what (None: no file).

        Known only when nobody else changed the file since, and the copies are as they were made.
        """
        known, state = False, content
        for row in reversed([row for row in self.rows if row.file == str(file)]):
            if fs.revision(state) != row.after:
                break
            if row.before is None:
                return True, None
            copy = self.copy(row)
            if copy is None:
                break
            known, state = True, copy
        return known, state if known else None

    def copy(self, row: Row) -> bytes | None:
        """The copy that was made before a change; None when it is gone or not as it was made."""
        try:
            data = Path(row.backup).read_bytes() if row.backup else None
        except OSError:
            return None
        return data if data is not None and fs.revision(data) == row.before else None

    def _write(self) -> None:
        self.refuse_newer()
        told = {"vaultd-installed": FORMAT, "changes": [asdict(row) for row in self.rows]}
        fs.write_private(self.path, json.dumps(told, ensure_ascii=False, indent=1).encode("utf-8", "surrogateescape"))


def _row(values: dict[str, Any]) -> Row:
    """One row as it was kept, without what we do not know; TypeError or ValueError when it is damaged."""
    known = {name.name: values[name.name] for name in fields(Row) if name.name in values}
    row = Row(**{**known, "made": tuple(known.get("made", ()))})
    datetime.fromisoformat(row.at)
    return row
