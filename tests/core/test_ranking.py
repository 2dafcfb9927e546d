from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaultd.core.ranking import CEILING, FLOOR, authority


@pytest.mark.parametrize(
    ("factor", "kind", "tier", "more"),
    [
        (1.0, "note", "semantic", {}),
        (1.0, "", "", {}),
        (0.85, "session", "semantic", {}),
        (0.77, "session", "episodic", {}),
        (1.15, "decision", "semantic", {}),
        (1.15, "rule", "semantic", {}),
        (1.12, "gotcha", "semantic", {}),
        (1.12, "procedure", "procedural", {}),
        (1.08, "note", "semantic", {"pinned": True}),
        (0.8, "note", "semantic", {"path": "projects/a/_lint/2026-11-29.md"}),
        (1.0, "note", "semantic", {"path": "projects/a/_lint.md"}),
        (1.2, "note", "semantic", {"tags": ["canonical"]}),
        (1.2, "note", "semantic", {"tags": ["#Source-of-Truth", "canonical", "x"]}),
        (1.43, "decision", "semantic", {"tags": ["canonical"], "pinned": True}),
        (0.55, "decision", "semantic", {"tags": ["do-not-answer-from"]}),
        (0.65, "decision", "semantic", {"superseded": True}),
        (0.65, "decision", "semantic", {"tags": ["Superseded"]}),
        (0.57, "session", "episodic", {"path": "_lint/x.md"}),
        (0.7, "handoff", "semantic", {"path": "projects/a/handoffs/open/x.md"}),
        (0.55, "handoff", "semantic", {"path": "projects/a/handoffs/accepted/x.md", "pinned": True}),
        (0.55, "handoff", "semantic", {"path": "projects/a/handoffs/expired/x.md"}),
        (1.0, "note", "semantic", {"path": "notes/expired/x.md"}),
        (0.55, "session", "episodic", {"path": "_lint/x.md", "tags": ["do-not-answer-from"]}),
    ],
)
def test_the_table(factor: float, kind: str, tier: str, more: dict[str, object]) -> None:
    assert authority(kind, tier, **more) == pytest.approx(factor)  # type: ignore[arg-type]  # a row of the table


@given(
    st.sampled_from(["session", "decision", "x"]),
    st.sampled_from(["episodic", "working"]),
    st.booleans(),
    st.booleans(),
    st.lists(st.sampled_from(["canonical", "superseded", "do-not-answer-from", "y"])),
)
def test_the_bounds(kind: str, tier: str, pinned: bool, superseded: bool, tags: list[str]) -> None:
    assert FLOOR <= authority(kind, tier, pinned=pinned, superseded=superseded, tags=tags) <= CEILING
