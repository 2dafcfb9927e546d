"""Whatever a client sends, a call is answered: with data, or with an error that its model can read."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.mcp.service import FakeService
from tests.scratch import Scratch
from vaultd.engine.health import Pulse
from vaultd.engine.live import Live
from vaultd.engine.local import LocalService
from vaultd.engine.service import Service
from vaultd.mcp.calling import Outcome, call
from vaultd.mcp.tool import Tool
from vaultd.mcp.tools import TOOLS

TEXTS = st.text(alphabet=st.characters(codec=None), max_size=40) | st.sampled_from(
    ["", ".", "..", "../x.md", "/etc/passwd", ".git/config", "notes/x.md", "CON", "a\0b", "\ud800", "[[x]]", '"', "*"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
FITTING = {
    "string": TEXTS,
    "integer": st.integers(-3, 300),
    "boolean": st.booleans(),
    "array": st.lists(TEXTS, max_size=3),
}


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A tool, and arguments: mostly its own, mostly of their types."""
    tool: Tool = TOOLS[draw(st.sampled_from(sorted(TOOLS)))]
    arguments: dict[str, Any] = {}
    for name, schema in tool.properties.items():
        if name in tool.required or draw(st.booleans()):
            fits = draw(st.integers(0, 9)) > 0
            arguments[name] = draw(FITTING[schema["type"]] if fits else VALUES)
    if draw(st.integers(0, 9)) == 0:
        arguments[draw(TEXTS | st.sampled_from([*tool.aliases, "cwd", "workspace"]))] = draw(VALUES)
    return tool.name, arguments


def assert_answered(outcome: Outcome) -> None:
    assert outcome.text
    assert "failed inside vaultd" not in outcome.text, outcome.text
    json.dumps({"text": outcome.text, "data": outcome.data}, ensure_ascii=False).encode("utf-8")


@given(calls())
def test_every_call_is_answered(made: tuple[str, dict[str, Any]]) -> None:
    name, arguments = made
    assert_answered(call(cast(Service, FakeService()), name, arguments, cwd="/src/shop"))


@given(TEXTS, st.dictionaries(TEXTS, VALUES))
def test_every_name_is_answered(name: str, arguments: dict[str, Any]) -> None:
    assert_answered(call(cast(Service, FakeService()), name, arguments))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Path]]:
    """The real service, and a checkout of its."""
    scratch = Scratch(tmp_path_factory.mktemp("world"))
    stores = scratch.init()
    live = Live(stores)
    yield cast(Service, LocalService(scratch.stores, live, Pulse(), lambda _: None)), scratch.checkout()
    live.close()


@settings(max_examples=examples(60))
@given(made=calls(), here=st.booleans())
def test_every_call_of_the_real_service_is_answered(
    place: tuple[Service, Path], made: tuple[str, dict[str, Any]], here: bool
) -> None:
    service, checkout = place
    name, arguments = made
    random.seed()  # each example begins with the same numbers, and the index names its files by them
    assert_answered(call(service, name, arguments, cwd=str(checkout) if here else ""))
    assert not [path for path in checkout.parent.iterdir() if path.name not in ("home", "runtime", "vault", "project")]
