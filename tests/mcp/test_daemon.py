"""`vaultd mcp` and the daemon that it starts: when there is none, once, for others too, and again when it is gone."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mcp.client import Bridge, bridge, text_of
from tests.scratch import Scratch
from tests.waiting import until
from vaultd.core.event import Process
from vaultd.engine.processes import alive, told_process


@pytest.fixture
def cold(scratch: Scratch) -> Iterator[Scratch]:
    """A vault without a daemon; one that was started is stopped afterwards."""
    scratch.init()
    yield scratch
    scratch.run("down", check=True)
    assert daemons(scratch) == []


def daemons(scratch: Scratch) -> list[int]:
    """The processes that serve the scratch vault, or try to."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"serve" in words and os.fsencode(scratch.vault) in words:
                found.append(int(folder.name))
    return found


def running(scratch: Scratch) -> Process:
    found = told_process(scratch.vault / ".vaultd")
    assert found is not None
    return found


def test_a_daemon_loads_what_answers_calls_when_a_client_shows_up(cold: Scratch) -> None:
    cold.run("up", check=True)
    maps = Path(f"/proc/{running(cold).pid}/maps")
    with bridge(cold, cold.base) as made:
        assert "pydantic" not in maps.read_text()
        made.begin()
        until(lambda: "pydantic" in maps.read_text(), 15)


def test_the_first_client_starts_a_daemon_that_outlives_it(cold: Scratch, capsys: pytest.CaptureFixture[str]) -> None:
    checkout = cold.checkout()
    begun = time.perf_counter()
    environ = {
        **cold.environ,
        "CODEX_HOME": "/elsewhere",
        "OF_THE_CLIENT": "1",
        "TMPDIR": str(cold.base),
        "VAULTD_RUN_ID": "x",
    }
    with bridge(cold, checkout, environ) as made:
        made.begin()
        assert not made.call("memory_query", query="x")["isError"]
        took = time.perf_counter() - begun
    with capsys.disabled():
        print(f" [cold start to the first answer: {took:.2f} s] ", end="")
    pid = running(cold).pid
    assert os.getsid(pid) == pid, "a session of its own"
    names = {row.partition(b"=")[0] for row in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")}
    assert {b"HOME", b"CODEX_HOME"} <= names and not names & {b"OF_THE_CLIENT", b"TMPDIR", b"VAULTD_RUN_ID"}
    assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")
    with bridge(cold, checkout) as made:
        assert not made.call("memory_recent")["isError"]
    assert running(cold).pid == pid


@pytest.mark.slow
def test_many_first_clients_have_one_daemon(cold: Scratch) -> None:
    made = [Bridge(cold, cold.base) for _ in range(4)]
    for one in made:
        one.say({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
    call = {"name": "memory_recent", "arguments": {"global": True}}
    for one in made:
        one.say({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})
    for one in made:
        assert one.hear()["id"] == 1
        told = one.hear()
        assert told["id"] == 2 and not told["result"]["isError"], told
    until(lambda: daemons(cold) == [running(cold).pid])
    assert [one.close() for one in made] == [0] * 4


def test_a_daemon_that_was_killed_is_started_again_by_the_next_call(cold: Scratch) -> None:
    checkout = cold.checkout()
    with bridge(cold, checkout) as made:
        made.begin()
        assert not made.call("memory_write_page", path="notes/egret.md", body="The egret wades.")["isError"]
        first = running(cold)
        os.kill(first.pid, signal.SIGKILL)
        until(lambda: not alive(first))
        told = made.call("memory_query", query="egret")
        assert not told["isError"] and told["structuredContent"]["hits"], text_of(told)
        assert running(cold).pid != first.pid


@pytest.mark.slow
def test_a_daemon_that_takes_new_settings_is_waited_for(cold: Scratch) -> None:
    with bridge(cold, cold.base) as made:
        made.begin()
        assert not made.call("memory_recent", **{"global": True})["isError"]
        first = running(cold)
        config, told_by = cold.home / ".config/vaultd/config.toml", cold.vault / ".vaultd/daemon.json"
        config.parent.mkdir(parents=True, exist_ok=True)
        before = told_by.stat().st_mtime_ns
        config.write_text("[capture]\nassistant = false\n")

        def began_anew() -> bool:
            told = made.call("memory_recent", **{"global": True})
            assert not told["isError"], text_of(told)
            return told_by.stat().st_mtime_ns != before

        until(began_anew)
        assert not made.call("memory_recent", **{"global": True})["isError"]
        assert running(cold).pid == first.pid, "the same process, with other settings"


def test_a_daemon_that_cannot_start_says_why(cold: Scratch) -> None:
    (cold.vault / "vaultd.toml").write_text("[capture]\nnonsense = 1\n")
    with bridge(cold, cold.base) as made:
        made.begin()
        told = made.call("memory_query", query="x")
        assert told["isError"] and "capture.nonsense" in text_of(told), text_of(told)
