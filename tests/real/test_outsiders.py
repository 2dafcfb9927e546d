"""MCP as others speak it: their inspector, their conformance suite and their client against a running daemon."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real.outsiders import DATA, Doorman, Outsiders, Served, find_outsiders
from tests.scratch import Scratch
from tests.waiting import until

pytestmark = pytest.mark.real

TOOLS = {
    "memory_query",
    "memory_recent",
    "memory_read_page",
    "memory_status",
    "memory_briefing",
    "memory_write_page",
    "memory_delete_page",
    "memory_handoff_begin",
    "memory_handoff_list",
    "memory_handoff_accept",
    "memory_handoff_cancel",
    "memory_read_session_observations",
    "memory_install_self_routing",
}


@pytest.fixture(scope="module")
def outsiders() -> Outsiders:
    found = find_outsiders()
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture
def served(outsiders: Outsiders, scratch: Scratch) -> Iterator[Served]:
    scratch.extra["VAULTD_HTTP"] = "127.0.0.1:0"
    settings = scratch.home / ".config/vaultd/config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[http]\nhosts = ["localhost", "127.0.0.1"]\n')
    scratch.run("up", check=True)
    checkout = scratch.checkout("shop")
    scratch.session(checkout, native="one-session", prompts=("Mend the price loader",))
    until(lambda: list(scratch.vault.glob("projects/shop/handoffs/open/*.md")), 20)
    yield Served(scratch, checkout, outsiders)
    scratch.run("down")


def called(served: Served, transport: str, tool: str, **arguments: str) -> dict[str, Any]:
    """A tool's answer through the inspector."""
    pairs = [word for name, value in arguments.items() for word in ("--tool-arg", f"{name}={value}")]
    told = served.inspect(transport, "--method", "tools/call", "--tool-name", tool, *pairs)
    assert not told.get("isError"), told
    structured: dict[str, Any] = told["structuredContent"]
    assert "shop" in told["content"][0]["text"] or structured["project"] == ""
    return structured


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_inspector_lists_and_asks(served: Served, transport: str) -> None:
    listed = served.inspect(transport, "--method", "tools/list")
    assert {tool["name"] for tool in listed["tools"]} == TOOLS
    told = called(served, transport, "memory_query", query="price loader")
    assert told["project"] == "shop" and told["hits"]


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_inspector_calls_every_tool(served: Served, transport: str) -> None:
    written = called(served, transport, "memory_write_page", path="notes/zebra", body="The zebra flaps.")
    assert called(served, transport, "memory_query", query="zebra")["hits"][0]["path"] == written["path"]
    assert "flaps" in called(served, transport, "memory_read_page", path="notes/zebra")["text"]
    assert called(served, transport, "memory_recent")["pages"]
    assert called(served, transport, "memory_briefing")["handoffs"]
    assert called(served, transport, "memory_status")["daemon"]["running"]
    assert called(served, transport, "memory_delete_page", path="notes/zebra")["path"] == written["path"]
    begun = called(served, transport, "memory_handoff_begin", summary="Go on with the loader")
    assert called(served, transport, "memory_handoff_list")["handoffs"][0]["id"] == begun["id"]
    assert called(served, transport, "memory_handoff_cancel", handoff_id=begun["id"])["id"] == begun["id"]
    assert "price loader" in called(served, transport, "memory_handoff_accept")["text"]
    seen = called(served, transport, "memory_read_session_observations", session_id="one-session")
    assert seen["total"] >= 5
    assert "memory_query" in called(served, transport, "memory_install_self_routing")["text"]


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_typescript_client_is_answered(served: Served, transport: str) -> None:
    how = served.stdio if transport == "stdio" else [served.url, served.token, str(served.checkout)]
    done = served.node(DATA / "client.mjs", served.outsiders.sdk, transport, *how)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert set(told["tools"]) == TOOLS and told["server"]["name"] == "vaultd"
    assert told["answer"]["structuredContent"]["project"] == "shop" and told["answer"]["structuredContent"]["hits"]
    assert told["wrong"]["isError"] and "query" in told["wrong"]["content"][0]["text"]


@pytest.mark.slow
def test_the_conformance_suite_finds_nothing_but_what_does_not_apply(served: Served, tmp_path: Path) -> None:
    port = int(served.url.rpartition(":")[2].partition("/")[0])
    door = Doorman(port, f"Authorization: Bearer {served.token}")
    try:
        done = served.node(
            *(served.outsiders.conformance, "server", "--url", f"http://127.0.0.1:{door.port}/mcp"),
            *("--suite", "all", "--expected-failures", DATA / "conformance.yml", "-o", tmp_path / "results"),
            timeout=240,
        )
    finally:
        door.close()
    assert done.returncode == 0, done.stdout + done.stderr
