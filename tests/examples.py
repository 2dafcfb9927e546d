"""How many examples a property is tried on: a quarter every day, all of them where VAULTD_THOROUGH is set (CI)."""

from __future__ import annotations

import os


def examples(number: int) -> int:
    """The number for this run."""
    return number if os.environ.get("VAULTD_THOROUGH") else max(20, number // 4)
