"""Calls that are at work when the daemon ends."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any, cast

import pytest

from tests.mcp.service import ANSWERS, FakeService
from tests.waiting import until
from vaultd.client import Exchange, HttpAnswer
from vaultd.engine.service import Service
from vaultd.http.server import HttpServer
from vaultd.http.settings import HttpSettings
from vaultd.mcp.application import McpApplication

_TAKES = 1 << 16
"""The kernel's mark of a socket that takes connections."""


class SlowService(FakeService):
    """Answers when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.at_work, self.go = threading.Event(), threading.Event()

    def recent(self, *_: Any, **__: Any) -> dict[str, Any]:
        self.at_work.set()
        assert self.go.wait(20)
        return ANSWERS["recent"]


@pytest.mark.parametrize("protocol", ["2025-11-25", "2024-11-05"])
def test_a_call_at_work_is_answered_though_the_daemon_ends(
    tmp_path_factory: pytest.TempPathFactory, protocol: str
) -> None:
    path = Path(tmp_path_factory.mktemp("s")).resolve() / "s"
    service, answers = SlowService(), list[HttpAnswer]()
    server = HttpServer(cast(Service, service), HttpSettings(path, None, ""), McpApplication(cast(Service, service)))
    assert server.start() == {"socket": str(path)}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "memory_recent", "arguments": {}}}
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    headers["MCP-Protocol-Version"] = protocol
    ask = threading.Thread(
        target=lambda: answers.append(Exchange(str(path), 20).run("/mcp", json.dumps(call).encode(), headers))
    )
    ask.start()
    assert service.at_work.wait(20)
    ending = threading.Thread(target=server.stop)
    ending.start()
    until(lambda: not _listens(path))
    service.go.set()
    ask.join()
    ending.join()
    assert [answer.status for answer in answers] == [200]
    assert json.loads(answers[0].body)["result"]["structuredContent"]["project"] == "shop"


def _listens(path: Path) -> bool:
    """Whether connections are taken. Looked up, not tried: one that is taken at the last moment is never closed."""
    rows = [row.split() for row in Path("/proc/net/unix").read_text("utf-8", "replace").splitlines()]
    return any(row[-1] == str(path) and int(row[3], 16) & _TAKES for row in rows[1:])
