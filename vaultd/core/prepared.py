"""Bytes that a hook prints as they are: made of clean text by `agents.render`, and nowhere else (a test looks)."""

from __future__ import annotations

from typing import NewType

__all__ = ["Prepared"]

Prepared = NewType("Prepared", bytes)
"""Prepared context in the exact form that one agent takes."""
