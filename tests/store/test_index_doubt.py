from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.store.index_writer import word
from tests.store.indexes import World, doc, filled, found, paths
from vaultd.errors import RefusedError
from vaultd.store import index as index_module
from vaultd.store.index import Drop, Index, Put


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.index.close()


def test_a_rebuild_takes_the_place_of_the_old_index(world: World) -> None:
    before = world.index.apply([doc("a.md", "old word")])
    other = world.again()
    seen: list[list[str]] = []

    def puts() -> Iterator[Put]:
        yield doc("b.md", "new word")
        seen.append(paths(other, "word"))
        yield doc("c.md", "new word")
        yield doc("b.md", "not this one")

    after = world.index.rebuild(puts())
    assert seen == [["a.md"]]
    assert after > before
    assert other.generation == after
    assert sorted(paths(other, "word")) == ["b.md", "c.md"]
    assert paths(world.index, "one") == []
    assert len([path for path in world.folder.iterdir() if path.is_dir()]) == 1
    other.close()


def test_a_rebuild_that_fails_leaves_the_old_index(world: World) -> None:
    generation = world.index.apply([doc("a.md", "old word")])

    def puts() -> Iterator[Put]:
        yield doc("b.md", "new word")
        raise KeyError("the vault went away")

    with pytest.raises(KeyError):
        world.index.rebuild(puts())
    assert paths(world.again(), "word") == ["a.md"]
    assert world.index.generation == generation
    assert len([path for path in world.folder.iterdir() if path.is_dir()]) == 1
    world.index.apply([doc("c.md", "word")])
    assert world.index.pages == 2


def test_an_index_that_was_deleted_and_made_again_elsewhere_is_noticed(world: World) -> None:
    world.index.apply([doc("a.md", "word")])
    assert paths(world.index, "word") == ["a.md"]
    shutil.rmtree(world.folder)
    assert world.index.doubt == "there is no index yet"
    other = world.again()
    other.apply([doc("b.md", "word")])
    assert paths(world.index, "word") == paths(other, "word") == ["b.md"]
    shutil.rmtree(world.folder)
    Index(world.folder, world.vault).apply([doc("c.md", "word")])
    assert paths(world.index, "word") == ["c.md"]
    other.close()


def test_compacting_merges_segments_and_changes_no_answer(world: World) -> None:
    for number in range(20):
        world.index.apply([doc(f"{number}.md", f"word {word(number)}"), doc("same.md", f"word s{word(number)}")])
    assert len(list(world.folder.rglob("*.seg"))) == 20
    answers = (found(world.index, "word", 30), world.index.known())
    assert world.index.compact()
    assert len(list(world.folder.rglob("*.seg"))) <= 4
    assert {hit.path for hit in found(world.index, "word", 30)} == {hit.path for hit in answers[0]}
    assert world.index.known() == answers[1]
    assert paths(world.index, f"s{word(3)}") == []
    assert paths(world.index, f"s{word(19)}") == ["same.md"]
    assert not world.index.compact()
    world.index.apply([Drop("same.md"), doc("3.md", "another")])
    assert world.index.pages == 20
    assert paths(world.index, word(3)) == []


def test_compacting_drops_what_is_mostly_deleted(world: World) -> None:
    world.index.apply(doc(f"{number}.md", "word") for number in range(150))
    size = sum(path.stat().st_size for path in world.files())
    world.index.apply(Drop(f"{number}.md") for number in range(140))
    assert world.index.compact()
    assert world.index.pages == 10
    assert sum(path.stat().st_size for path in world.files()) < size
    world.index.apply(Drop(f"{number}.md") for number in range(150))
    assert not world.index.compact()
    assert world.index.pages == 0


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def cut_last_byte(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x55
    path.write_bytes(bytes(data))


def unlink(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("harm", [truncate, cut_last_byte, empty, zero, flip, unlink])
def test_any_damaged_file_is_doubt_and_is_mended(world: World, tmp_path: Path, harm: Callable[[Path], None]) -> None:
    filled(world)
    names = [path.relative_to(world.folder) for path in world.files()]
    assert {path.suffix for path in names} == {".json", ".toc", ".seg"}
    assert len(names) == 5
    for name in names:
        copy = tmp_path / "copy"
        shutil.copytree(world.folder, copy)
        harm(copy / name)
        index = Index(copy, world.vault)
        assert index.doubt, name
        assert (found(index, "word", 30), index.known(), index.generation, index.pages) == ([], {}, 0, 0)
        assert not index.compact()
        index.apply([doc("a.md", "word anew")])
        assert index.doubt is None
        assert paths(index, "word") == ["a.md"]
        assert index.rebuild([doc("b.md", "word"), doc("c.md", "word")]) > 0
        assert sorted(paths(Index(copy, world.vault), "word")) == ["b.md", "c.md"]
        index.close()
        shutil.rmtree(copy)


def test_an_undamaged_copy_is_no_doubt(world: World, tmp_path: Path) -> None:
    filled(world)
    shutil.copytree(world.folder, tmp_path / "copy")
    index = Index(tmp_path / "copy", world.vault)
    assert (index.doubt, index.pages) == (None, 19)
    index.close()


def test_generations_rise_over_a_rebuild_that_damage_made_necessary(world: World) -> None:
    filled(world)
    before = world.again().generation
    zero(next(world.folder.rglob("*.toc")))
    assert world.index.generation == 0
    assert world.index.rebuild([doc("a.md", "word")]) > before


def test_damage_that_appears_while_reading_is_doubt_for_everybody(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(world)
    assert len(paths(world.index, "word", 30)) == 19

    def broken(*args: object) -> None:
        raise ValueError("a posting that is none")

    with monkeypatch.context() as patched:
        patched.setattr(index_module, "best_pages", broken)
        assert found(world.index, "word", 30) == []
    assert "a posting that is none" in str(world.index.doubt)
    assert world.again().doubt == world.index.doubt
    assert world.index.known() == {}
    world.index.apply([doc("a.md", "word")])
    assert world.again().doubt is None
    assert paths(world.index, "word") == ["a.md"]


def test_damage_of_a_build_that_counts_no_more_is_no_doubt(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(world)
    calls = []

    def broken(*args: object) -> None:
        calls.append(args)
        if len(calls) == 2:
            world.again().rebuild([doc("a.md", "word")])
        raise ValueError("a posting that is none")

    with monkeypatch.context() as patched:
        patched.setattr(index_module, "best_pages", broken)
        assert found(world.index, "word", 30) == []
    assert len(calls) == 2
    assert world.index.doubt is None
    assert paths(world.index, "word") == ["a.md"]


def test_another_vault_version_or_distribution_starts_anew(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(world)
    (tmp_path / "other").mkdir()
    assert "vault" in str(Index(world.folder, tmp_path / "other").doubt)
    for installed in (["whoosh3 3.55.0"], ["Whoosh 2.7.4"], ["whoosh3 3.54.0", "Whoosh 2.7.4"]):
        with monkeypatch.context() as patched:
            patched.setattr(index_module, "installed", lambda installed=installed: installed)
            index = Index(world.folder, world.vault)
            assert "whoosh" in str(index.doubt)
            assert found(index, "word", 3) == []
    with monkeypatch.context() as patched:
        patched.setattr(index_module, "FORMAT", 99)
        assert "format" in str(Index(world.folder, world.vault).doubt)
    assert world.again().doubt is None


def test_the_distribution_in_use_is_named() -> None:
    found = index_module.installed()
    assert len(found) == 1
    assert found[0].split()[0] in ("whoosh3", "Whoosh")


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null", b'{"format": 1}', b"\xff", b"0"])
def test_a_meta_file_that_is_none_is_doubt(world: World, text: bytes) -> None:
    filled(world)
    (world.folder / "meta.json").write_bytes(text)
    assert world.again().doubt
    assert world.index.rebuild([doc("a.md", "word")]) > 0
    assert paths(world.again(), "word") == ["a.md"]


@pytest.mark.parametrize("name", ["", ".", "x\0y", "../build-1", "/build-1", "build-1/../build-1"])
def test_a_build_of_another_name_is_doubt(world: World, name: str) -> None:
    filled(world)
    meta = json.loads((world.folder / "meta.json").read_text("utf-8"))
    (world.folder / "meta.json").write_text(json.dumps({**meta, "build": name}), "utf-8")
    assert "meta.json" in str(world.again().doubt)
    assert world.index.rebuild([doc("a.md", "word")]) > 0


def test_the_folder_is_the_owners_and_never_in_the_vault(world: World) -> None:
    filled(world)
    assert [path.stat().st_mode & 0o777 for path in (world.folder, *world.folder.glob("build-*"))] == [0o700] * 2
    for inside in (world.vault, world.vault / "x/../.vaultd/index"):
        with pytest.raises(RefusedError):
            Index(inside, world.vault)
