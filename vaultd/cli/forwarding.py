"""A call of a tool on its way from the bridge to the daemon, over as many daemons as it takes.

A daemon may be started anew meanwhile (settings changed, killed, updated). A call is made again when the daemon never
had it whole, or when it only reads. Of a write whose answer was lost nobody knows whether it was done: that is said.
"""

from __future__ import annotations

import base64
import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vaultd.cli.jsonrpc import INTERNAL, NO_METHOD, Request, error, result
from vaultd.cli.reaching import Reach
from vaultd.errors import VaultdError

if TYPE_CHECKING:
    from vaultd.client import Exchange, HttpAnswer

__all__ = ["Forwarder", "Task", "is_modern"]

_ANSWER_S = 120.0
_WARM_S = 5.0
_BUSY_S = 10.0  # for which calls that were not taken are made again: a daemon ends, and is started anew
_MOST_LOST = 3  # answers: perhaps the call itself ends the daemon
_META = "io.modelcontextprotocol/"
_TOKEN = re.compile(r"[\x21-\x7e]{1,100}")
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def is_modern(request: Request) -> bool:
    """Whether a request says by itself which protocol it follows, as those from 2026-07-28 on do."""
    meta = request.params.get("_meta")
    return isinstance(meta, dict) and isinstance(meta.get(f"{_META}protocolVersion"), str)


@dataclass(slots=True)
class Task:
    """A request that is at work. `answer` takes what comes of it, None when it was cancelled."""

    request: Request
    answer: Callable[[dict[str, Any] | None], None]
    cancelled: bool = False
    exchange: Exchange | None = field(default=None, repr=False)

    def cancel(self) -> None:
        """Let the daemon know that nobody waits for it."""
        self.cancelled = True
        if self.exchange is not None:
            self.exchange.cancel()


class Forwarder:
    """Asks the daemon, which has `patience` seconds to take a call and as many to answer. Safe from several threads."""

    def __init__(self, reach: Reach, cwd: bytes, patience: float = _ANSWER_S) -> None:
        self._reach = reach
        self._cwd = cwd
        self._patience = patience
        self._protocol = "2025-11-25"
        self._client = ""
        self._path = ""

    def met(self, protocol: str, client: str) -> None:
        """The protocol that was agreed on, and what the client calls itself."""
        self._protocol, self._client = protocol, client

    def warm(self) -> None:
        """Find or start the daemon, and have it load what it answers calls with."""
        from vaultd.client import Exchange

        try:
            self._path = self._reach.socket()
            Exchange(self._path, _WARM_S).run("/mcp", b"", {}, "HEAD")
        except (VaultdError, OSError):
            return  # the first call says it

    def answer(self, task: Task) -> dict[str, Any] | None:
        """The answer to a request, whatever happens; None when it was cancelled."""
        try:
            answer = self._asked(task)
        except (VaultdError, OSError) as failure:
            answer = _failed(task.request, str(failure))
        except Exception as fault:  # noqa: BLE001  # a client that waits must have an answer
            answer = _failed(task.request, f"vaultd mcp failed ({type(fault).__name__}).")
        return None if task.cancelled else answer

    def _asked(self, task: Task) -> dict[str, Any]:
        from vaultd.client import Exchange, LostError, UnsentError

        request = task.request
        if not _TOKEN.fullmatch(request.method):
            return error(request.id, NO_METHOD, "There is no such method.")
        body = json.dumps(request.raw).encode("ascii")
        headers = self._headers(request)
        pause, lost, until = threading.Event(), 0, time.monotonic() + _BUSY_S
        while time.monotonic() < until and lost < _MOST_LOST and not task.cancelled:
            path = self._path or self._reach.socket()
            task.exchange = Exchange(path, self._patience)
            if task.cancelled:
                break  # before there was anything to close
            try:
                answer = task.exchange.run("/mcp", body, headers)
            except UnsentError as unsent:
                if isinstance(unsent.__cause__, TimeoutError):  # it hangs, and would the next time
                    return _failed(request, f"The daemon took no call for {self._patience:.0f} s. Try again.")
                self._path = ""
                pause.wait(0.05)
                continue
            except LostError as gone:
                if isinstance(gone.__cause__, TimeoutError):
                    return _failed(request, f"The daemon gave no answer for {self._patience:.0f} s. {_doubt(request)}")
                self._path = ""
                if task.cancelled or not _only_reads(request):
                    return _failed(request, f"The daemon went away before it answered. {_doubt(request)}")
                lost += 1
                continue
            self._path = path
            if answer.status != 503:  # it ends, or is not ready yet: nothing was done
                return _told(request, answer)
            pause.wait(0.1)
        return _failed(request, "The daemon takes no calls at the moment. `vaultd status` tells more.")

    def _headers(self, request: Request) -> dict[str, str]:
        """What the daemon must know besides the body."""
        from urllib.parse import quote

        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": self._protocol,
        }
        client = self._client
        if is_modern(request):
            meta = request.params["_meta"]
            version = meta[f"{_META}protocolVersion"]
            headers["MCP-Protocol-Version"] = version if _TOKEN.fullmatch(version) else "unknown"
            headers["Mcp-Method"] = request.method
            named = request.params.get(_NAMED_BY.get(request.method, ""))
            if isinstance(named, str):
                headers["Mcp-Name"] = _header_value(named)
            told = meta.get(f"{_META}clientInfo")
            name = told.get("name") if isinstance(told, dict) else None
            client = name if isinstance(name, str) else client
        if self._cwd:
            headers["X-Vaultd-Cwd"] = quote(self._cwd)
        if client:
            headers["X-Vaultd-Client"] = quote(client[:100], errors="replace")
        return headers


def _header_value(text: str) -> str:
    """A text as the protocol puts it into a header."""
    if text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'replace')).decode('ascii')}?="


def _told(request: Request, answer: HttpAnswer) -> dict[str, Any]:
    """The daemon's answer as a message; an error when it is none."""
    try:
        value = json.loads(answer.body)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and value.get("id") == request.id and ("result" in value or "error" in value):
        return value
    if answer.status >= 500 or answer.status < 300:
        return _failed(request, f"The daemon gave no answer that can be read (HTTP {answer.status}). {_doubt(request)}")
    return _failed(request, f"The daemon did not take the call (HTTP {answer.status}).")


def _failed(request: Request, text: str) -> dict[str, Any]:
    """What cannot be answered, in words for the model where a tool was called."""
    if request.method != "tools/call":
        return error(request.id, INTERNAL, text)
    told: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": True}
    return result(request.id, {**told, "resultType": "complete"} if is_modern(request) else told)


def _only_reads(request: Request) -> bool:
    """Whether it does no harm to do it twice."""
    from vaultd.mcp.tools import TOOLS

    tool = TOOLS.get(str(request.params.get("name")))
    return request.method != "tools/call" or (tool is not None and tool.reads)


def _doubt(request: Request) -> str:
    """What is to be said of a call whose answer nobody has."""
    if _only_reads(request):
        return "Try again."
    return f"Whether {str(request.params.get('name'))[:60]} was done is unknown: look before you do it again."
