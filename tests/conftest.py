"""Fixtures that every suite shares."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scratch import Scratch


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    """A scratch home with nothing in it yet."""
    return Scratch(tmp_path)
