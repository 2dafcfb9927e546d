from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.scratch import ROOT
from tests.store.index_writer import after
from tests.store.vector_writer import KIND as WRITTEN
from tests.store.vector_writer import batch
from vaultd.core.embedding import Vector, unit
from vaultd.errors import RefusedError, UsageError
from vaultd.store import vectors as module
from vaultd.store.vectors import Kind, Near, PageVectors, Vectors

KIND = Kind("somebody", "model", 3)
X, Y, Z = unit([1, 0, 0]), unit([0, 1, 0]), unit([0, 0, 1])


def opened(tmp_path: Path, kind: Kind = KIND) -> Vectors:
    return Vectors(tmp_path / "cache/vectors", tmp_path / "vault", kind)


def page(path: str, *vectors: Vector, revision: str = "r1") -> PageVectors:
    return PageVectors(path, revision, vectors)


def file(tmp_path: Path) -> Path:
    return tmp_path / "cache/vectors/pages.vectors"


def test_no_vectors_are_no_error(tmp_path: Path) -> None:
    store = opened(tmp_path)
    assert (store.dimension, store.revisions(), store.doubt) == (0, {}, "")
    assert store.nearest(X, {"a.md": "r1"}) == Near((), 1)
    store.put([page("gone.md")])
    store.clear()
    assert not store.compact() and not store.folder.exists()


def test_pages_are_ranked_by_their_best_text(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.put([page("a.md", Y, unit([3, 1, 0])), page("b.md", X), page("c.md", Y, Z, Y)])
    store.put([page("caf\udce9.md", unit([1, 1, 0]))])
    pages = dict.fromkeys(["a.md", "b.md", "c.md", "caf\udce9.md", "none.md"], "r1")
    near = store.nearest(X, pages)
    assert [path for path, _ in near.ranked] == ["b.md", "a.md", "caf\udce9.md", "c.md"]
    assert [round(similar, 2) for _, similar in near.ranked] == [1.0, 0.95, 0.71, 0.0]
    assert near.lacking == 1
    assert opened(tmp_path).nearest(X, pages) == near
    assert (file(tmp_path).stat().st_mode & 0o777, store.folder.stat().st_mode & 0o777) == (0o600, 0o700)


def test_vectors_of_another_revision_are_ignored_and_counted(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.put([page("a.md", X), page("b.md", Y)])
    assert store.nearest(X, {"a.md": "r2", "b.md": "r1"}) == Near([("b.md", 0.0)], 1)
    assert store.nearest(X, {"a.md": "r2"}) == Near((), 1)
    store.put([page("a.md", X, revision="r2")])
    near = store.nearest(X, {"a.md": "r2", "b.md": "r1"})
    assert ([path for path, _ in near.ranked], near.lacking) == (["a.md", "b.md"], 0)
    store.put([page("a.md"), page("never.md")])
    assert store.revisions() == {"b.md": "r1"}
    assert [path for path, _ in store.nearest(X, {"b.md": "r1"}).ranked] == ["b.md"]


def test_a_reader_sees_what_another_writes(tmp_path: Path) -> None:
    writer, reader = opened(tmp_path), opened(tmp_path)
    for number in range(20):
        writer.put([page(f"{number}.md", unit([number, 1, 0]))])
        assert len(reader.revisions()) == number + 1
        assert len(reader.nearest(X, dict.fromkeys(reader.revisions(), "r1")).ranked) == number + 1
    writer.clear()
    assert reader.revisions() == {}
    writer.put([page("new.md", X)])
    assert reader.nearest(X, {"new.md": "r1"}).ranked[0][0] == "new.md"


@pytest.mark.parametrize(
    ("kind", "doubt"),
    [
        (replace(KIND, provider="another"), "another provider (somebody)"),
        (replace(KIND, model="another"), "another model (model)"),
        (replace(KIND, dimension=4), "another dimension (3)"),
    ],
)
def test_vectors_of_another_kind_do_not_count_and_are_replaced(tmp_path: Path, kind: Kind, doubt: str) -> None:
    opened(tmp_path).put([page("a.md", X)])
    store = opened(tmp_path, kind)
    assert store.doubt.endswith(doubt)
    assert (store.revisions(), store.dimension) == ({}, 0)
    assert store.nearest(X, {"a.md": "r1"}) == Near((), 1)
    vector = unit([1.0] * kind.dimension)
    store.put([page("b.md", vector)])
    assert (store.revisions(), store.doubt) == ({"b.md": "r1"}, "")


def test_an_embedder_that_does_not_know_its_dimension_yet(tmp_path: Path) -> None:
    opened(tmp_path).put([page("a.md", X)])
    store = opened(tmp_path, replace(KIND, dimension=0))
    assert (store.dimension, store.revisions()) == (3, {"a.md": "r1"})
    assert store.nearest(unit([1, 0]), {"a.md": "r1"}) == Near((), 1)
    store.put([page("b.md", unit([1, 0]))])
    assert (store.dimension, store.revisions()) == (2, {"b.md": "r1"})
    with pytest.raises(ValueError, match="several sizes"):
        store.put([page("c.md", X, unit([1, 0]))])


def test_vectors_of_another_vault_do_not_count(tmp_path: Path) -> None:
    opened(tmp_path).put([page("a.md", X)])
    assert "another vault" in Vectors(tmp_path / "cache/vectors", tmp_path / "other", KIND).doubt


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"\xff\xfe\n",
        b"something else\n" * 100,
        b"vaultd-vectors 2 {}\n",
        b"vaultd-vectors 1 {}\n",
        b"vaultd-vectors 1 []\n",
        b'vaultd-vectors 1 {"provider": "somebody", "model": "model", "vault": "v", "dimension": "x"}\n',
        b'vaultd-vectors 1 {"dimension": 1e999}\n',
        b"x" * 200_000,
    ],
)
def test_a_foreign_file_does_not_count_and_is_made_anew(tmp_path: Path, data: bytes) -> None:
    file(tmp_path).parent.mkdir(parents=True)
    file(tmp_path).write_bytes(data)
    store = opened(tmp_path)
    assert store.doubt == "the file is of another format" and store.revisions() == {}
    store.put([page("a.md", X)])
    assert (store.revisions(), store.doubt) == ({"a.md": "r1"}, "")


def test_vectors_of_texts_cut_otherwise_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(tmp_path).put([page("a.md", X)])
    monkeypatch.setattr(module, "TEXTS", 0)
    assert opened(tmp_path).doubt == "the file is of another format"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    file(tmp_path).mkdir(parents=True)
    store = opened(tmp_path)
    assert store.doubt.startswith("they cannot be read") and store.revisions() == {}


def test_a_tail_cut_off_anywhere_is_not_read_and_written_over(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.put([page("a.md", X)])
    whole = file(tmp_path).stat().st_size
    store.put([page("b.md", Y, Z)])
    data = file(tmp_path).read_bytes()
    for size in range(whole, len(data)):
        file(tmp_path).write_bytes(data[:size])
        assert opened(tmp_path).revisions() == {"a.md": "r1"}
        assert store.revisions() == {"a.md": "r1"}
    opened(tmp_path).put([page("c.md", Z)])
    assert store.revisions() == opened(tmp_path).revisions() == {"a.md": "r1", "c.md": "r1"}


def test_damage_anywhere_is_never_taken_for_vectors(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.put([page(f"{number}.md", X, Y) for number in range(3)])
    data, choose = file(tmp_path).read_bytes(), random.Random(1)
    head = data.index(b"\n") + 1
    for place in range(head, len(data)):
        hurt = bytearray(data)
        hurt[place] ^= 1 << choose.randrange(8)
        file(tmp_path).write_bytes(hurt)
        found = opened(tmp_path).revisions()
        assert found == dict(list({f"{n}.md": "r1" for n in range(3)}.items())[: len(found)]) and len(found) < 3


def test_half_precision_is_enough(tmp_path: Path) -> None:
    choose = random.Random(2)
    vectors = [unit([choose.gauss(0, 1) for _ in range(384)]) for _ in range(200)]
    store = opened(tmp_path, replace(KIND, dimension=384))
    store.put([page(f"{number}.md", vector) for number, vector in enumerate(vectors)])
    for path, similar in store.nearest(vectors[0], {f"{n}.md": "r1" for n in range(200)}).ranked:
        exact = sum(a * b for a, b in zip(vectors[0], vectors[int(path[:-3])], strict=True))
        assert abs(similar - exact) < 1e-3


def test_what_counts_no_more_is_removed_once_it_is_the_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_DEAD", 10)
    store, reader = opened(tmp_path), opened(tmp_path)
    for number in range(10):
        store.put([page("a.md", X, revision=f"r{number}"), page(f"{number}.md", Y)])
        assert not store.compact()
        reader.nearest(X, {"a.md": f"r{number}"})
    store.put([page("2.md"), page("3.md")])
    assert store.compact() and not store.compact()
    pages = {"a.md": "r9"} | {f"{n}.md": "r1" for n in (0, 1, 4, 5, 6, 7, 8, 9)}
    for each in (store, reader, opened(tmp_path)):
        assert each.revisions() == pages
        near = each.nearest(X, pages)
        assert (near.ranked[0], len(near.ranked), near.lacking) == (("a.md", 1.0), 9, 0)


def test_a_writer_that_is_killed_leaves_whole_batches(tmp_path: Path) -> None:
    folder, vault = tmp_path / "cache/vectors", tmp_path / "vault"
    choose, first = random.Random(3), 0
    for _ in range(6):
        command = [sys.executable, "-m", "tests.store.vector_writer", str(folder), str(vault), str(first), "100000"]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for _ in range(choose.randrange(1, 300)):
                told = int(process.stdout.readline())
            process.kill()
            rest = process.stdout.read().split(b"\n")
        whole = [int(line) for line in rest[:-1]]
        told = whole[-1] if whole else told
        store = Vectors(folder, vault, WRITTEN)
        found = store.revisions()
        # A batch is a drop and a page: death may come between the two, and before the line that tells of them.
        halves = [{p: r for p, r in after(n).items() if p != batch(n)[0].path} for n in range(told + 1, told + 3)]
        wholes = [after(n) for n in range(told + 1, told + 4)]
        assert found in wholes + halves
        near = store.nearest(unit([1.0] * 300), found)
        assert (len(near.ranked), near.lacking) == (len(found), 0)
        assert all(abs(similar - 1) < 1e-3 for _, similar in near.ranked)
        first = told + 1


def test_not_inside_the_vault(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="inside the vault"):
        Vectors(tmp_path / "vault/vectors", tmp_path / "vault", KIND)


def test_without_numpy_a_person_is_told_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(tmp_path)
    store.put([page("a.md", X)])
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(UsageError, match=r"pip install 'vaultd\[vectors\]'"):
        store.nearest(X, {"a.md": "r1"})
    assert store.revisions() == {"a.md": "r1"}
