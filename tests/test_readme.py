"""The README says what the code says."""

from __future__ import annotations

import re

from tests.readme_tables import MARK, README, TABLES, current
from vaultd.cli.main import COMMANDS


def test_tables_are_current() -> None:
    text = README.read_text("utf-8")
    assert {m.group("name") for m in MARK.finditer(text)} == set(TABLES)
    assert current(text) == text, "run: python -m tests.readme_tables"


def test_every_command_that_is_named_exists() -> None:
    named = set(re.findall(r"`(?:\.venv/bin/)?vaultd ([a-z][a-z-]+)", README.read_text("utf-8")))
    assert named - set(COMMANDS) == set()
