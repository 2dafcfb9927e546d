"""The public Python client: over standard input and output, over HTTP, and each way of beginning that it knows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.mcp.client import COMMAND, daemon
from tests.scratch import Scratch
from vaultd.engine.health import Pulse
from vaultd.engine.live import Live
from vaultd.engine.local import LocalService
from vaultd.engine.service import Service
from vaultd.mcp import application
from vaultd.mcp.application import McpApplication
from vaultd.mcp.server import McpServer
from vaultd.mcp.tools import TOOLS

MODES: list[Any] = ["auto", "legacy", "2026-07-28"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Scratch, Path]]:
    """A vault with a running daemon, and a checkout."""
    scratch = Scratch(tmp_path_factory.mktemp("world"))
    scratch.init()
    checkout = scratch.checkout()
    with daemon(scratch):
        yield scratch, checkout


async def use(client: Client) -> None:
    """Everything that a client does with a server."""
    listed = await client.list_tools()
    assert [tool.name for tool in listed.tools] == list(TOOLS)
    wrote = await client.call_tool("memory_write_page", {"path": "notes/plover.md", "body": "The plover runs."})
    assert not wrote.is_error, wrote
    found = await client.call_tool("memory_query", {"query": "plover"})
    assert found.structured_content["hits"][0]["path"] == "projects/project/notes/plover.md"
    assert "Project project" in found.content[0].text  # type: ignore[union-attr]  # it is a text
    wrong = await client.call_tool("memory_query", {"nope": 1})
    assert wrong.is_error and "nope" in wrong.content[0].text  # type: ignore[union-attr]  # it is a text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_over_standard_input_and_output(world: tuple[Scratch, Path], mode: Any) -> None:
    scratch, checkout = world
    server = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=scratch.environ, cwd=str(checkout))

    async def run() -> None:
        async with Client(server, mode=mode) as client:
            assert client.protocol_version == "2025-11-25"
            assert client.instructions
            await use(client)

    asyncio.run(run())


@asynccontextmanager
async def served(scratch: Scratch) -> AsyncIterator[httpx2.AsyncClient]:
    """The application, and HTTP that goes straight into it."""
    live = Live(scratch.stores())
    application = McpApplication(cast(Service, LocalService(scratch.stores, live, Pulse(), lambda _: None)))
    async with (
        application.run(),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app=cast(Any, application))) as http,
    ):
        yield http
    live.close()


@pytest.mark.parametrize("mode", MODES)
def test_over_http(scratch: Scratch, mode: Any) -> None:
    scratch.init()
    checkout = scratch.checkout()

    async def run() -> None:
        async with served(scratch) as http:
            url = f"http://localhost/mcp?cwd={checkout}"
            async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
                assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
                await use(client)

    asyncio.run(run())


def post(body: object, **headers: str) -> dict[str, Any]:
    """A message as it goes over HTTP."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    accept = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    return {"content": json.dumps(body), "headers": {**accept, "mcp-protocol-version": "2025-11-25", **named}}


def message(tool: str, **arguments: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def test_a_client_says_where_it_is_by_header_address_or_argument_or_is_told_the_projects(scratch: Scratch) -> None:
    scratch.init()
    one, other = scratch.checkout("eins"), scratch.checkout("ü b%")
    url = "http://localhost/mcp"

    async def run() -> None:
        async with served(scratch) as http:

            async def ask(address: str, said: dict[str, Any]) -> Any:
                answer = await http.post(address, **said)
                assert answer.status_code == 200
                return answer.json()["result"]

            page = message("memory_write_page", path="notes/x.md", body="x")
            told = await ask(url, post(page, x_vaultd_cwd="/" + str(one).strip("/")))
            assert told["structuredContent"]["project"] == "eins"
            from urllib.parse import quote

            told = await ask(url, post(page, x_vaultd_cwd=quote(str(other))))
            assert told["structuredContent"]["path"].startswith("projects/ü")
            slug = told["structuredContent"]["project"]
            told = await ask(f"{url}?cwd={quote(str(other))}", post(message("memory_recent")))
            assert told["structuredContent"]["project"] == slug
            told = await ask(url, post(message("memory_recent", project="eins"), x_vaultd_cwd=quote(str(other))))
            assert told["structuredContent"]["project"] == "eins"
            told = await ask(url, post(message("memory_recent")))
            assert told["isError"] and "eins" in told["content"][0]["text"] and slug in told["content"][0]["text"]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        (b"\xff", 400),
        (b'{"jsonrpc":"2.0","id":1}', 400),
        (b"[" * 100_000, 400),
        (b" " * (5 << 20), 413),
    ],
)
def test_a_body_that_is_no_message_is_refused(scratch: Scratch, content: bytes, status: int) -> None:
    scratch.init()

    async def run() -> None:
        async with served(scratch) as http:
            said = post({})
            for protocol in ("2025-11-25", "2026-07-28"):
                headers = {**said["headers"], "mcp-protocol-version": protocol}
                answer = await http.post("http://localhost/mcp", content=content, headers=headers)
                assert answer.status_code == status

    asyncio.run(run())


def test_it_is_loaded_when_somebody_comes_who_may_ask(scratch: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch.init()
    loads: list[int] = []
    load = application._load

    def counted(service: Service) -> McpServer:
        loads.append(1)
        return load(service)

    monkeypatch.setattr(application, "_load", counted)

    async def run() -> None:
        live = Live(scratch.stores())
        mcp = McpApplication(cast(Service, LocalService(scratch.stores, live, Pulse(), lambda _: None)))
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=cast(Any, mcp))) as http:
            assert (await http.head("http://localhost/mcp")).status_code == 503
            async with mcp.run():
                assert not loads
                assert (await http.head("http://localhost/mcp")).status_code == 204
                assert (await http.head("http://localhost/mcp")).status_code == 204
                said = post(message("memory_recent", **{"global": True}))
                assert (await http.post("http://localhost/mcp", **said)).status_code == 200
        live.close()

    asyncio.run(run())
    assert loads == [1]


def test_what_asks_before_it_is_loaded_waits_and_what_asks_afterwards_is_told(scratch: Scratch) -> None:
    scratch.init()

    async def run() -> None:
        live = Live(scratch.stores())
        application = McpApplication(cast(Service, LocalService(scratch.stores, live, Pulse(), lambda _: None)))
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=cast(Any, application))) as http:
            said = post(message("memory_recent", **{"global": True}))
            assert (await http.post("http://localhost/mcp", **said)).status_code == 503
            async with application.run():
                answers = await asyncio.gather(*(http.post("http://localhost/mcp", **said) for _ in range(20)))
                assert [answer.status_code for answer in answers] == [200] * 20
            assert (await http.post("http://localhost/mcp", **said)).status_code == 503
        live.close()

    asyncio.run(run())
