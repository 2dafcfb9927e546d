"""An index in a scratch folder, and short ways to fill and ask it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from vaultd.core.question import Question
from vaultd.store.index import Drop, Found, Index, IndexDoc, Put


class World:
    """A vault that is only a path, and its index."""

    def __init__(self, base: Path) -> None:
        self.vault = base / "vault"
        self.vault.mkdir()
        self.folder = base / "cache" / "index"
        self.index = Index(self.folder, self.vault)

    def again(self) -> Index:
        """The index as another process would open it."""
        return Index(self.folder, self.vault)

    def files(self) -> list[Path]:
        """Every file of the index that holds something."""
        return sorted(path for path in self.folder.rglob("*") if path.is_file() and path.stat().st_size)


def doc(path: str, body: str, **more: object) -> Put:
    return Put(IndexDoc(path=path, body=body, **{"title": "", **more}))  # type: ignore[arg-type]  # test's shorthand


NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


def found(
    index: Index, text: str, limit: int = 10, project: str | None = None, where: Mapping[str, str] | None = None
) -> list[Found]:
    """The hits of one group, superseded ones too."""
    groups = [None if project is None else (project,)]
    values = {key: [value] for key, value in (where or {}).items()}
    return index.search(Question(text, NOW, limit, groups, values, superseded=True))[0]


def paths(index: Index, text: str, limit: int = 10, **filters: object) -> list[str]:
    return [hit.path for hit in found(index, text, limit, **filters)]  # type: ignore[arg-type]  # test's shorthand


def filled(world: World) -> Index:
    """The index with two segments and a deletion, closed."""
    world.index.apply(doc(f"{number}.md", f"word number{number} " + "and more of it " * 30) for number in range(20))
    world.index.apply([doc("3.md", "word again"), Drop("4.md")])
    world.index.close()
    return world.index
