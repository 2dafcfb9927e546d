"""Rooms for the real agent CLIs; every test here is skipped, with the reason, where they are not installed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_model import FakeModel
from tests.real.clients import Clients, Room, find_clients
from tests.real.memory import Memory


@pytest.fixture(scope="session")
def clients() -> Clients:
    """The installed CLIs."""
    found = find_clients()
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture
def room(clients: Clients) -> Iterator[Room]:
    """A throw-away home with both clients on a fake model, nothing wired; what runs in it is killed afterwards.

    Not under `tmp_path`: a name that long leaves no room for the sockets that the clients make below it.
    """
    with tempfile.TemporaryDirectory(prefix="vaultd-", ignore_cleanup_errors=True) as name, FakeModel() as model:
        room = Room(Path(name).resolve(), clients, model)
        try:
            room.furnish()
            yield room
        finally:
            room.close()


@pytest.fixture(params=["daemon", "stopped"])
def memory(room: Room, request: pytest.FixtureRequest) -> Memory:
    """A wired vault, once with the daemon running and once without one."""
    memory = Memory(room, daemon=request.param == "daemon")
    memory.wire()
    return memory


@pytest.fixture
def watched(room: Room) -> Memory:
    """A wired vault with the daemon running."""
    memory = Memory(room, daemon=True)
    memory.wire()
    return memory


@pytest.fixture
def unwatched(room: Room) -> Memory:
    """A wired vault without a daemon."""
    memory = Memory(room, daemon=False)
    memory.wire()
    return memory
