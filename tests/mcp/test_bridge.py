"""`vaultd mcp` as a client sees it: a process that answers at once, loses nothing, and is gone when its client is."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mcp.client import COMMAND, Bridge, bridge, daemon, text_of
from tests.scratch import Scratch
from tests.waiting import until
from vaultd.cli.forwarding import Forwarder, Task
from vaultd.cli.jsonrpc import Request, read
from vaultd.cli.reaching import Reach
from vaultd.engine.processes import told_process


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Scratch, Path]]:
    """A vault with a running daemon, and a checkout."""
    scratch = Scratch(tmp_path_factory.mktemp("world"))
    scratch.init()
    checkout = scratch.checkout()
    with daemon(scratch):
        yield scratch, checkout


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    return False


def test_the_first_answer_comes_at_once(world: tuple[Scratch, Path], capsys: pytest.CaptureFixture[str]) -> None:
    took = []
    for _ in range(5):
        begun = time.perf_counter()
        with bridge(*world) as made:
            made.begin()
            took.append(time.perf_counter() - begun)
    with capsys.disabled():
        print(f" [exec to initialize: {sorted(took)[2] * 1000:.0f} ms at the median of five] ", end="")


def test_it_imports_nothing_heavy() -> None:
    heavy = ["mcp", "aiohttp", "whoosh", "yaml", "pydantic", "asyncio"]
    code = f"""
import sys
from vaultd.cli import bridge, forwarding
from vaultd import client
from vaultd.mcp.tools import TOOLS
print([name for name in {heavy} if name in sys.modules])
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("protocol", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_protocol_that_is_known_is_agreed_on(world: tuple[Scratch, Path], protocol: str) -> None:
    with bridge(*world) as made:
        told = made.begin(protocol)
        assert told["protocolVersion"] == protocol
        assert told["capabilities"] == {"tools": {"listChanged": False}}
        assert told["serverInfo"]["name"] == "vaultd" and told["instructions"]
        assert not made.call("memory_status")["isError"]


def test_another_protocol_is_answered_with_the_newest_that_begins_like_this(world: tuple[Scratch, Path]) -> None:
    with bridge(*world) as made:
        assert made.begin("2099-01-01")["protocolVersion"] == "2025-11-25"


def test_discovering_before_the_handshake_upsets_nothing(world: tuple[Scratch, Path]) -> None:
    with bridge(*world) as made:
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        assert made.ask("server/discover", {"_meta": meta})["error"]["code"] == -32601
        assert made.ask("server/discover")["error"]["code"] == -32601
        made.begin()
        assert len(made.ask("tools/list")["result"]["tools"]) == 13


def test_a_page_that_is_written_is_found_by_the_next_query(world: tuple[Scratch, Path]) -> None:
    with bridge(*world) as made:
        made.begin()
        wrote = made.call("memory_write_page", path="notes/kestrel.md", body="The kestrel hovers. AKIAIOSFODNN7EXAMPLE")
        assert not wrote["isError"] and "1 secret" in text_of(wrote)
        found = made.call("memory_query", query="kestrel")
        assert found["structuredContent"]["hits"][0]["path"] == "projects/project/notes/kestrel.md"
        assert "[REDACTED]" in text_of(found) and "Project project" in text_of(found)


def test_a_client_that_says_its_protocol_with_each_request_is_served(world: tuple[Scratch, Path]) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "Ünï", "version": "1"},
    }
    with bridge(*world) as made:
        listed = made.ask("tools/list", {"_meta": meta})["result"]
        assert listed["resultType"] == "complete" and len(listed["tools"]) == 13
        told = made.ask("tools/call", {"name": "memory_recent", "arguments": {}, "_meta": meta})["result"]
        assert not told["isError"] and told["resultType"] == "complete"
        unknown = made.ask("tools/call", {"name": "größe", "arguments": {}, "_meta": meta})["result"]
        assert unknown["isError"] and "memory_query" in text_of(unknown)
        newer = {**meta, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}
        assert made.ask("tools/list", {"_meta": newer})["error"]["data"]["supported"] == ["2026-07-28"]
        strange = {**meta, "io.modelcontextprotocol/protocolVersion": "\r\nX: y"}
        assert "error" in made.ask("tools/list", {"_meta": strange})


def test_lines_that_are_no_messages_are_answered_and_the_next_call_works(world: tuple[Scratch, Path]) -> None:
    with bridge(*world) as made:
        made.begin()
        made.say(
            b"\xff\xfe\xfd",
            b"{",
            b"",
            b"7",
            b"[]",
            b'{"jsonrpc":"2.0","id":5,"method":"x","params":"' + b"\xff" + b'"}',
        )
        assert [made.hear()["error"]["code"] for _ in range(5)] == [-32700, -32700, -32600, -32600, -32700]
        made.say(b'{"jsonrpc":"2.0","id":6,"method":"tools/call","params":"' + b"x" * (5 << 20) + b'"}')
        assert made.hear()["id"] == 6
        assert not made.call("memory_recent")["isError"]
        assert made.ask("prompts/list")["error"]["code"] == -32601
        assert made.ask("tools/call", {"arguments": {}})["error"]["code"] == -32602
        assert made.ask("\ud800\r\n")["error"]["code"] == -32601


def test_a_batch_is_answered_as_one(world: tuple[Scratch, Path]) -> None:
    with bridge(*world) as made:
        made.begin("2025-03-26")
        call: dict[str, object] = {"name": "memory_recent", "arguments": {}}
        made.say(
            [
                {"jsonrpc": "2.0", "id": 11, "method": "ping"},
                {"jsonrpc": "2.0", "method": "notifications/progress"},
                3,
                {"jsonrpc": "2.0", "id": 12, "method": "tools/call", "params": call},
            ],
            [{"jsonrpc": "2.0", "method": "notifications/initialized"}],
            {"jsonrpc": "2.0", "id": 13, "method": "ping"},
        )
        answers = [made.hear(), made.hear()]
        together = next(answer for answer in answers if isinstance(answer, list))
        assert sorted(str(answer["id"]) for answer in together) == ["11", "12", "None"]
        assert {"jsonrpc": "2.0", "id": 13, "result": {}} in answers


def test_many_calls_at_once_are_answered_whole_line_by_line(world: tuple[Scratch, Path]) -> None:
    with bridge(*world) as made:
        made.begin()
        for ident in range(100, 140):
            call: dict[str, object] = {"name": "memory_status" if ident % 2 else "memory_recent", "arguments": {}}
            made.say({"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": call})
        assert {made.hear()["id"] for _ in range(40)} == set(range(100, 140))


def test_what_was_asked_before_the_input_ended_is_answered(world: tuple[Scratch, Path]) -> None:
    scratch, checkout = world
    call = {"name": "memory_query", "arguments": {"query": "x"}}
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode()
    done = subprocess.run(COMMAND, cwd=checkout, env=scratch.environ, input=asked, capture_output=True, check=True)
    assert json.loads(done.stdout)["id"] == 1 and done.stderr == b""


def test_it_ends_when_nobody_reads_its_answers(world: tuple[Scratch, Path]) -> None:
    scratch, checkout = world
    made = Bridge(scratch, checkout)
    made.begin()
    assert made.process.stdout is not None
    made.process.stdout.close()
    assert made.process.wait(10) == 0
    for stream in (made.process.stdin, made.process.stderr):
        assert stream is not None
        stream.close()


PARENT = """
import subprocess, sys, time
child = subprocess.Popen(sys.argv[1:], stdin=0, stdout=1)
print(child.pid, file=sys.stderr, flush=True)
time.sleep(60)
"""


def test_it_ends_with_its_parent_though_another_process_holds_its_input(world: tuple[Scratch, Path]) -> None:
    scratch, checkout = world
    inward, held = os.pipe()
    reading, outward = os.pipe()
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, *COMMAND],
        cwd=checkout,
        env=scratch.environ,
        stdin=inward,
        stdout=outward,
        stderr=subprocess.PIPE,
    )
    try:
        assert parent.stderr is not None
        child = int(parent.stderr.readline())
        os.write(held, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        assert b'"result":{}' in os.read(reading, 1000)
        parent.send_signal(signal.SIGKILL)
        parent.wait(10)
        until(lambda: not alive(child), 10)
    finally:
        parent.kill()
        parent.wait()
        assert parent.stderr is not None
        parent.stderr.close()
        for end in (inward, held, reading, outward):
            os.close(end)


@pytest.mark.parametrize("rounds", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_many_clients_that_come_and_go_leave_no_process(world: tuple[Scratch, Path], rounds: int) -> None:
    pids = []
    for round_ in range(rounds):
        made = [Bridge(*world) for _ in range(5)]
        for one in made:
            one.begin()
            pids.append(one.process.pid)
            if round_ == 0:
                assert not one.call("memory_recent")["isError"]
        assert [one.close() for one in made] == [0] * 5
    assert len(pids) == 5 * rounds and not [pid for pid in pids if alive(pid)]


def test_without_a_vault_the_handshake_works_and_calls_say_how_to_make_one(scratch: Scratch) -> None:
    with bridge(scratch, scratch.base) as made:
        made.begin()
        assert len(made.ask("tools/list")["result"]["tools"]) == 13
        told = made.call("memory_query", query="x")
        assert told["isError"] and "vaultd up" in text_of(told) and str(scratch.vault) in text_of(told)
        assert not (scratch.vault).exists()


def test_where_a_daemon_could_not_write_none_is_started_and_the_folder_is_named(scratch: Scratch) -> None:
    scratch.init()
    room = scratch.vault / ".vaultd"
    cache = scratch.home / ".cache"
    cache.write_text("a file where a folder must be")
    with bridge(scratch, scratch.base) as made:
        made.begin()
        told = made.call("memory_query", query="x")
        assert told["isError"] and str(cache) in text_of(told) and "cannot be written" in text_of(told)
        assert "vaultd up" in text_of(told)
    assert told_process(room) is None and not (room / "daemon.log").exists()


def test_a_socket_that_may_not_be_used_is_named(scratch: Scratch) -> None:
    scratch.init()
    folder = scratch.base / "closed"
    folder.mkdir()
    (scratch.vault / ".vaultd/daemon.json").write_text(json.dumps({"socket": f"{folder}/{'x' * 200}"}))
    with bridge(scratch, scratch.base) as made:
        told = made.call("memory_query", query="x")
        assert told["isError"] and "cannot be reached from here" in text_of(told) and str(folder) in text_of(told)


class FlakyDaemon:
    """Answers HTTP over a socket as a test tells it: each connection takes the next step."""

    def __init__(self, path: Path, steps: list[str]) -> None:
        self.steps, self.asked, self.left = steps, 0, False
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                link, _ = self._listening.accept()
                with link, contextlib.suppress(OSError):
                    link.settimeout(5)
                    data = b""
                    while b"\r\n\r\n" not in data:
                        if not (more := link.recv(65536)):
                            break
                        data += more
                    else:
                        self._answer(link, data)

    def _answer(self, link: object, data: bytes) -> None:
        head, _, body = data.partition(b"\r\n\r\n")
        if head.startswith(b"HEAD /mcp "):
            link.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")  # type: ignore[attr-defined]  # a socket
            return
        size = next(int(row.split(b":")[1]) for row in head.split(b"\r\n") if row.lower().startswith(b"content-length"))
        while len(body) < size:
            body += link.recv(65536)  # type: ignore[attr-defined]  # a socket
        self.asked += 1
        step = self.steps.pop(0) if self.steps else "answer"
        if step == "drop":
            return
        if step == "hang":
            link.settimeout(None)  # type: ignore[attr-defined]  # a socket
            self.left = link.recv(1) == b""  # type: ignore[attr-defined]  # a socket
            return
        result = {"jsonrpc": "2.0", "id": json.loads(body)["id"], "result": {"content": [], "isError": False}}
        told = b"no JSON" if step in ("garbage", "fault") else json.dumps(result).encode()
        status = {"busy": b"503 Service Unavailable", "fault": b"500 Internal Server Error"}.get(step, b"200 OK")
        link.sendall(  # type: ignore[attr-defined]  # a socket
            b"HTTP/1.1 " + status + b"\r\nContent-Length: " + str(len(told)).encode() + b"\r\n\r\n" + told
        )

    def close(self) -> None:
        self._listening.close()


@pytest.fixture
def flaky(scratch: Scratch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlakyDaemon]:
    """A daemon that does what a test says, where a bridge finds it."""
    scratch.init()
    path = Path(os.path.realpath(tmp_path_factory.mktemp("s"))) / "s"
    (scratch.vault / ".vaultd/daemon.json").write_text(json.dumps({"socket": str(path)}))
    made = FlakyDaemon(path, [])
    yield made
    made.close()


def test_what_only_reads_is_asked_again_of_a_daemon_that_went_away(scratch: Scratch, flaky: FlakyDaemon) -> None:
    flaky.steps = ["drop", "drop", "answer"]
    with bridge(scratch, scratch.base) as made:
        assert not made.call("memory_query", query="x")["isError"]
    assert flaky.asked == 3


def test_a_write_whose_answer_was_lost_is_not_done_again_and_its_fate_is_called_unknown(
    scratch: Scratch, flaky: FlakyDaemon
) -> None:
    flaky.steps = ["drop", "answer"]
    with bridge(scratch, scratch.base) as made:
        told = made.call("memory_write_page", path="notes/x.md", body="y")
        assert told["isError"] and "memory_write_page was done is unknown" in text_of(told)
        assert not made.call("memory_query", query="x")["isError"]
    assert flaky.asked == 2


def test_a_write_that_a_daemon_had_no_time_for_is_asked_again(scratch: Scratch, flaky: FlakyDaemon) -> None:
    flaky.steps = [*["busy"] * 9, "answer"]
    with bridge(scratch, scratch.base) as made:
        assert not made.call("memory_write_page", path="notes/x.md", body="y")["isError"]
    assert flaky.asked == 10


def test_an_answer_that_is_none_is_an_error(scratch: Scratch, flaky: FlakyDaemon) -> None:
    flaky.steps = ["garbage", "fault"]
    with bridge(scratch, scratch.base) as made:
        told = made.call("memory_query", query="x")
        assert told["isError"] and "HTTP 200" in text_of(told)
        told = made.call("memory_delete_page", path="x")
        assert told["isError"] and "memory_delete_page was done is unknown" in text_of(told)


def test_a_call_that_is_cancelled_is_not_answered_and_the_daemon_is_let_go(
    scratch: Scratch, flaky: FlakyDaemon
) -> None:
    flaky.steps = ["hang", "answer"]
    with bridge(scratch, scratch.base) as made:
        made.begin()
        call: dict[str, object] = {"name": "memory_query", "arguments": {"query": "x"}}
        made.say({"jsonrpc": "2.0", "id": "gone", "method": "tools/call", "params": call})
        until(lambda: flaky.asked == 1)
        made.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "gone"}})
        until(lambda: flaky.left)
        assert not made.call("memory_query", query="x")["isError"]
    assert flaky.asked == 2


@pytest.mark.parametrize(
    ("size", "words"),
    [(1, "no answer for 0 s. Whether memory_write_page was done"), (1 << 22, "took no call for 0 s.")],
)
def test_a_daemon_that_hangs_is_asked_once(
    scratch: Scratch, tmp_path_factory: pytest.TempPathFactory, size: int, words: str
) -> None:
    scratch.init()
    path = str(tmp_path_factory.mktemp("s") / "s")
    with socket.socket(socket.AF_UNIX) as silent:  # the system takes what it can, and nobody reads it
        silent.bind(path)
        silent.listen()
        (scratch.vault / ".vaultd/daemon.json").write_text(json.dumps({"socket": path}))
        call = {"name": "memory_write_page", "arguments": {"path": "a", "body": "x" * size}}
        request = read(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode())
        assert isinstance(request, Request)
        begun = time.monotonic()
        told = Forwarder(Reach(None, scratch.environ), b"", patience=0.2).answer(Task(request, lambda _: None))
        took = time.monotonic() - begun
    assert told is not None and words in text_of(told["result"])
    assert took < 0.79, "four attempts would take four times as long"


def test_a_call_at_work_does_not_keep_it_when_the_client_is_gone(scratch: Scratch, flaky: FlakyDaemon) -> None:
    flaky.steps = ["hang"]
    made = Bridge(scratch, scratch.base)
    call: dict[str, object] = {"name": "memory_query", "arguments": {"query": "x"}}
    made.say({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    until(lambda: flaky.asked == 1)
    for stream in (made.process.stdin, made.process.stdout, made.process.stderr):
        assert stream is not None
        stream.close()
    assert made.process.wait(10) == 0
    until(lambda: flaky.left)


def test_ends_that_do_not_block_lose_nothing(scratch: Scratch) -> None:
    reading, outward = os.pipe()
    inward, saying = os.pipe()
    for end in (inward, outward):
        os.set_blocking(end, False)
    process = subprocess.Popen(COMMAND, cwd=scratch.base, env=scratch.environ, stdin=inward, stdout=outward)
    for end in (inward, outward):
        os.close(end)
    asked = 200  # lists of tools: more than a pipe holds
    line = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'

    def say() -> None:
        with open(saying, "wb") as said:
            said.write(line * asked)

    writer = threading.Thread(target=say)
    writer.start()
    with open(reading, "rb") as answers:
        said = answers.read()
    writer.join()
    assert process.wait(20) == 0
    assert [json.loads(row)["id"] for row in said.splitlines()] == [1] * asked
