"""The daemon ends when it is told to, within five seconds, whatever it is at; its log stays small."""

from __future__ import annotations

import json
import logging
import os
import signal
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from tests.engine.test_daemon import daemon, fewer, gone, work
from tests.scratch import Scratch
from tests.waiting import until
from vaultd.cli.log import start_log
from vaultd.client import Exchange, LostError
from vaultd.core.sanitize import Rules
from vaultd.store.fs import Lock

WITHIN_S = 5.0


@pytest.fixture
def ended(scratch: Scratch) -> Iterator[Scratch]:
    """A vault whose daemon, if any, is stopped at the end."""
    yield scratch
    scratch.run("down")


def waits_for(pid: int, inode: int) -> bool:
    """Whether a process waits for a lock on a file."""
    rows = [row.split() for row in Path("/proc/locks").read_text().splitlines() if "->" in row]
    return any(row[5] == str(pid) and row[6].endswith(f":{inode}") for row in rows)


@pytest.mark.slow
def test_in_the_middle_of_a_backlog(ended: Scratch) -> None:
    ended.init()
    cwd = ended.checkout()
    for _ in range(300):  # several batches: a batch that was begun is ended
        ended.session(cwd, native=str(uuid.uuid4()))
    ended.run("up", check=True)
    process = daemon(ended)
    os.kill(process.pid, signal.SIGTERM)
    until(lambda: gone(process), WITHIN_S)
    assert not fewer(ended, 0)  # it was at it
    ended.run("ingest", check=True)  # the rest, and nothing twice
    assert fewer(ended, 0)
    pages = [p for p in ended.vault.glob("*/*/sessions/*.md") if "-g" not in p.name]
    assert len(pages) == 300


@pytest.mark.slow
def test_while_git_hangs(ended: Scratch) -> None:
    ended.init()
    binaries, mark = ended.base / "bin", ended.base / "asked"
    binaries.mkdir()
    (binaries / "git").write_text(f"#!/bin/sh\ntouch {mark}\nexec sleep 60\n")
    (binaries / "git").chmod(0o755)
    ended.extra["PATH"] = f"{binaries}:{os.environ['PATH']}"
    ended.run("up", check=True)
    until(mark.exists, 10)
    process = daemon(ended)
    os.kill(process.pid, signal.SIGTERM)
    until(lambda: gone(process), WITHIN_S)


def test_while_all_wait_for_a_lock_that_another_holds(ended: Scratch) -> None:
    ended.run("up", check=True)
    told = json.loads((ended.vault / ".vaultd/daemon.json").read_bytes())
    call = {"name": "memory_handoff_begin", "arguments": {"summary": "Go on"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode()
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
        "X-Vaultd-Cwd": str(ended.checkout()),
    }
    ask = partial(Exchange(told["socket"], 30).run, "/mcp", body, headers)
    with Lock(ended.vault / ".vaultd/write.lock"), ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ask)
        lock = (ended.vault / ".vaultd/write.lock").stat().st_ino
        until(lambda: waits_for(told["pid"], lock))
        process = daemon(ended)
        os.kill(process.pid, signal.SIGTERM)
        until(lambda: gone(process), WITHIN_S)
        with suppress(LostError):
            assert answer.result(10).status >= 500


def test_a_second_one_says_who_serves_the_vault(ended: Scratch) -> None:
    ended.run("up", check=True)
    second = ended.run("serve")
    assert second.returncode == 5
    assert f"(pid {daemon(ended).pid})" in second.stderr and str(ended.vault) in second.stderr


def test_killed_it_can_be_started_again_at_once(ended: Scratch) -> None:
    ended.run("up", check=True)
    first = daemon(ended)
    os.kill(first.pid, signal.SIGKILL)
    until(lambda: gone(first))
    ended.run("up", check=True)
    assert daemon(ended).pid != first.pid
    cwd = ended.checkout()
    work(ended, cwd, str(uuid.uuid4()), end=True)
    until(lambda: fewer(ended, 0) and list(ended.vault.glob("*/*/handoffs/open/*.md")), 15)


def test_the_log_is_begun_anew_when_it_is_full(tmp_path: Path) -> None:
    file = tmp_path / "daemon.log"
    root, before = logging.getLogger(), list(logging.getLogger().handlers)
    for handler in before:
        root.removeHandler(handler)
    try:
        start_log(Rules(), file)
        log = logging.getLogger("vaultd")
        for _ in range(6_000):
            log.warning("%s", "0123456789" * 100)
        sizes = [path.stat().st_size for path in tmp_path.iterdir()]
        assert len(sizes) == 4 and max(sizes) <= 1024 * 1024
    finally:
        for handler in list(root.handlers):
            root.removeHandler(handler)
            handler.close()
        for handler in before:
            root.addHandler(handler)


def test_nothing_that_was_said_is_in_the_log(ended: Scratch) -> None:
    ended.run("up", check=True)
    cwd = ended.checkout()
    words = "the quagga of Mount Ararat"
    (ended.vault / ".vaultd/inbox/new" / f"1-{uuid.uuid4()}").write_text(f"no event: {words}")
    base = {"session_id": "s", "cwd": str(cwd)}
    broken = json.dumps({**base, "prompt": words})[:-4].encode()
    ended.hook("claude-code", "UserPromptSubmit", broken, cwd)
    ended.hook("claude-code", "UserPromptSubmit", {**base, "prompt": words}, cwd)
    ended.hook("claude-code", "SessionEnd", {**base, "reason": "other"}, cwd)
    until(lambda: fewer(ended, 0), 15)
    ended.run("down", check=True)
    text = (ended.vault / ".vaultd/daemon.log").read_text("utf-8")
    assert "vaultd serves" in text and "quagga" not in text
