"""A bit that fell over can make a number without end of one in a file of ours: `1e999` is damage like any other."""

from __future__ import annotations

import re
from pathlib import Path

from tests.store.indexes import World, doc, paths
from vaultd.config import Places
from vaultd.engine.installed import Installed
from vaultd.engine.processes import told_process
from vaultd.store.index import Index


def huge(path: Path) -> None:
    """The last number of a JSON file, grown beyond all bounds."""
    text = path.read_text()
    last = list(re.finditer(r"\b\d+\b", text))[-1]
    path.write_text(f"{text[: last.start()]}1e999{text[last.end() :]}")


def test_in_the_index(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.index.apply([doc("a.md", "word")])
    world.index.close()
    for name in ("meta.json", "sums.json"):
        [path] = world.folder.rglob(name)
        text = path.read_text()
        path.write_text(re.sub(r'("base": ?)\d+', r"\g<1>1e999", text)) if name == "meta.json" else huge(path)
        index = Index(world.folder, world.vault)
        assert index.doubt, name
        index.apply([doc("b.md", "word")])
        assert paths(index, "word") == ["b.md"]
        index.close()


def test_in_what_is_told_of_the_daemon_and_of_what_was_installed(tmp_path: Path) -> None:
    (tmp_path / "daemon.json").write_text('{"pid": 1e999, "start": 1, "boot": "", "vault": "/"}')
    assert told_process(tmp_path) is None
    places = Places(tmp_path, tmp_path, tmp_path, tmp_path, tmp_path)
    (tmp_path / "installed.json").write_text('{"vaultd-installed": 1e999, "changes": []}')
    assert Installed.of(places).rows == []
