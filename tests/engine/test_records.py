"""Where no page answers, what was recorded does: of the right project, bounded, and told apart from pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from tests.scratch import Scratch
from vaultd.engine import records
from vaultd.engine.health import Pulse
from vaultd.engine.live import Live
from vaultd.engine.local import LocalService
from vaultd.engine.passes import Passes
from vaultd.engine.service import RECORDS, Reply, Scope, Service
from vaultd.mcp.calling import call


@dataclass
class World:
    scratch: Scratch
    cwd: Path
    live: Live
    service: LocalService

    def record(self, said: str, cwd: Path | None = None, *, end: bool = True) -> None:
        """A session with so many commands that no page tells of the first one."""
        cwd = cwd or self.cwd
        native = self.scratch.session(cwd, end=False)
        base = {"session_id": native, "cwd": str(cwd), "tool_name": "Bash", "tool_response": {"stdout": ""}}
        for number, command in enumerate([f"echo {said}", *(f"true {n}" for n in range(60))]):
            call = {"tool_input": {"command": command}, "tool_use_id": f"t-{number}"}
            self.scratch.deliver("claude-code", "PostToolUse", {**base, **call}, cwd)
        if end:
            self.scratch.deliver("claude-code", "SessionEnd", {**base, "reason": "other"}, cwd)
        Passes(self.scratch.stores()).drain()

    def ask(self, text: str, cwd: Path | None = None) -> Reply:
        return self.service.query(Scope(cwd=str(cwd or self.cwd)), text)


@pytest.fixture
def world(scratch: Scratch) -> Iterator[World]:
    live = Live(scratch.init())
    yield World(scratch, scratch.checkout(), live, LocalService(scratch.stores, live, Pulse(), lambda _: None))
    live.close()


@pytest.mark.parametrize("end", [True, False])
def test_what_no_page_says_is_found_in_the_records_of_a_session(world: World, end: bool) -> None:
    world.record("the okapi ate the quagga manifest", end=end)
    told = world.ask("which quagga manifest was eaten")
    assert told["hits"] == []
    (record,) = told["observations"]
    assert record["text"] == "echo the okapi ate the quagga manifest" and record["agent"] == "claude-code"
    assert world.service.observations(Scope(cwd=str(world.cwd)), record["session"])["session"] == record["session"]


def test_a_page_that_answers_leaves_the_records_alone(world: World) -> None:
    world.record("the okapi ate the quagga manifest")
    (world.scratch.vault / "_global/quagga.md").write_text("# Quagga\n\nIt is extinct.\n")
    assert "observations" not in world.ask("quagga manifest")


def test_records_are_those_of_the_project_that_is_asked(world: World) -> None:
    other = world.scratch.checkout("other")
    world.record("the okapi ate the quagga manifest", other)
    world.record("nothing of it here")
    assert "observations" not in world.ask("quagga manifest")
    assert world.ask("quagga manifest", other)["observations"]


def test_records_with_most_of_the_words_come_first_and_few_of_them(world: World) -> None:
    for number in range(8):
        world.record(f"the quagga number {number}")
    world.record("the quagga manifest is a hoax")
    world.record("one more quagga")
    found = world.ask("quagga manifest hoax")["observations"]
    assert [record["text"] for record in found] == ["echo the quagga manifest is a hoax"], (
        "others have a third of the words"
    )
    assert len(world.ask("quagga")["observations"]) == 5


def test_looking_ends_in_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.record("the quagga manifest")
    monkeypatch.setattr(records, "_SECONDS", -1.0)
    assert "observations" not in world.ask("quagga manifest")


def test_a_query_of_stop_words_looks_at_nothing(world: World) -> None:
    world.record("what is it")
    assert records.search_records(world.scratch.stores(), None, "what is it") == []


def test_an_agent_is_told_that_these_are_records(world: World) -> None:
    world.record("the okapi ate the quagga manifest")
    outcome = call(cast(Service, world.service), "memory_query", {"query": "quagga manifest"}, cwd=str(world.cwd))
    assert not outcome.failed and RECORDS in outcome.text and "the okapi ate the quagga manifest" in outcome.text
    assert "no page answers this" in outcome.text
