"""The search finds what our own coding memory has: the bench's way, held as a floor for every change."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.bench import retrieval

HIT_1, HIT_5 = 0.80, 0.95
"""The shares of questions that a right page answers first, and among the first five."""


def test_the_right_page_comes_first_or_nearly_so(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    shutil.copytree(retrieval.MEMORY / "vault", vault)
    asked = retrieval.memory(kept=None)
    with retrieval.opened(vault) as service:
        found = [retrieval.told(service, one).pages for one in asked]
    rows = [retrieval.figures(pages, one) for pages, one in zip(found, asked, strict=True)]
    missed = [
        f"{one.project}: {one.text}\n  wanted {', '.join(one.right)}\n  got    {', '.join(pages[:5]) or 'nothing'}"
        for pages, one, row in zip(found, asked, rows, strict=True)
        if not row["hit@1"]
    ]
    first, five = (sum(row[name] for row in rows) / len(rows) for name in ("hit@1", "hit@5"))
    assert len(rows) == 100
    assert first >= HIT_1 and five >= HIT_5, f"hit@1 {first:.2f}, hit@5 {five:.2f}\n" + "\n".join(missed)
