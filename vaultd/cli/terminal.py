"""What commands print with: plain lines, JSON, and progress that only a terminal sees."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence

__all__ = ["Terminal"]


class Terminal:
    """Standard output and error. Control characters in text from pages are shown, never sent."""

    def __init__(self) -> None:
        self._progress = sys.stderr.isatty()
        self._shown = False

    def say(self, text: str = "") -> None:
        """Print a line (or several)."""
        self.clear()
        print(visible(text))

    def warn(self, text: str) -> None:
        """Print a line on standard error."""
        self.clear()
        print(visible(text), file=sys.stderr)

    def asks(self) -> bool:
        """Whether there is a person to ask."""
        return sys.stdin.isatty() and sys.stdout.isatty()

    def ask(self, question: str) -> bool:
        """Ask a person for a yes; no where there is none to ask."""
        if not self.asks():
            return False
        self.clear()
        try:
            return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
        except EOFError:
            print()
            return False

    def json(self, value: object) -> None:
        """Print a value as one JSON document."""
        self.clear()
        print(json.dumps(value, ensure_ascii=False, indent=2))

    def table(self, rows: Iterable[Sequence[str]]) -> None:
        """Print rows in aligned columns, the last one ragged."""
        cells = [[visible(c).replace("\n", " ") for c in row] for row in rows]
        if not cells:
            return
        widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]) - 1)]
        for row in cells:
            print("  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[-1]]).rstrip())

    def progress(self, what: str, done: int, total: int) -> None:
        """Show progress on a terminal; nothing in a pipe."""
        if self._progress and total > 50:
            print(f"\r{what} {done}/{total}", end="", file=sys.stderr, flush=True)
            self._shown = True

    def clear(self) -> None:
        """Take the progress line away."""
        if self._shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
            self._shown = False


def visible(text: str) -> str:
    """Text with control characters (but newline and tab) made harmless."""
    return "".join(c if c in "\n\t" or (c.isprintable() or c == " ") else "\N{REPLACEMENT CHARACTER}" for c in text)
