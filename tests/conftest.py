"""Fixtures that every suite shares."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.examples import examples
from tests.scratch import Scratch

# A loaded machine makes a case slow, not wrong; a test that must be fast says so itself.
settings.register_profile("any-load", deadline=None, max_examples=examples(100))
settings.load_profile("any-load")


def pytest_xdist_auto_num_workers() -> int:
    """`-n auto`: two a processor, since half of the tests wait for processes of their own."""
    return 2 * (os.cpu_count() or 1)


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    """A scratch home with nothing in it yet."""
    return Scratch(tmp_path)
