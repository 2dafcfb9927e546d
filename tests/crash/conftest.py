"""What the crash tests share: one tracer for each test process, and worlds that are built once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import pytest

from tests.crash.plans import PLANS
from tests.crash.worlds import Server, World


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The process that runs commands under ptrace."""
    with Server() as server:
        if flaw := server.flaw():
            pytest.skip(flaw)
        yield server


@pytest.fixture(scope="session")
def world_of(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], World]:
    """Gives the world of a plan."""

    @functools.cache
    def build(name: str) -> World:
        base = tmp_path_factory.mktemp(name)
        return World(PLANS[name], base / "w", base / "t", server)

    return build
