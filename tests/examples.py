"""How many examples a property is tried on: an eighth every day, all of them where VAULTD_THOROUGH is set (CI)."""

from __future__ import annotations

import os

THOROUGH = bool(os.environ.get("VAULTD_THOROUGH"))
"""Whether everything is tried that there is."""


def examples(number: int) -> int:
    """The number for this run."""
    return number if THOROUGH else max(15, number // 8)
