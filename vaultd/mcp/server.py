"""The tools over the MCP library: importing this module takes a second, so only `application` does, when it is needed.

Stateless: a request needs nothing of an earlier one, so a daemon that was started anew goes on where the old one was.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import unquote

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from vaultd import __version__
from vaultd.engine.service import Service
from vaultd.mcp import INSTRUCTIONS, MOST_BYTES
from vaultd.mcp.calling import call
from vaultd.mcp.tools import TOOLS

__all__ = ["McpServer"]

_AT_ONCE = 8


class McpServer:
    """An ASGI application that works while `run` is entered, once."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="mcp")
        listed = types.ListToolsResult.model_validate({"tools": [tool.listed() for tool in TOOLS.values()]})

        async def on_list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
            return listed

        server = Server[Any](
            "vaultd",
            version=__version__,
            instructions=INSTRUCTIONS,
            get_tool_input_schema=lambda name: TOOLS[name].listed()["inputSchema"] if name in TOOLS else None,
            on_list_tools=on_list_tools,
            on_call_tool=self._call,
        )
        server.middleware.clear()  # telemetry that nobody reads
        self._requests = StreamableHTTPSessionManager(
            server, stateless=True, json_response=True, max_request_body_size=MOST_BYTES
        )

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve until the block ends; calls that are at work then end by themselves."""
        try:
            async with self._requests.run():
                yield
        finally:
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        await self._requests.handle_request(scope, receive, send)

    async def _call(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """A call of a tool; the service is synchronous, so it works on a thread."""
        cwd = _cwd(context)
        outcome = await asyncio.get_running_loop().run_in_executor(
            self._threads,
            lambda: call(self._service, params.name, params.arguments or {}, cwd=cwd, client=_client(context)),
        )
        return types.CallToolResult(
            content=[types.TextContent(text=outcome.text)],
            structured_content=None if outcome.failed else outcome.data,
            is_error=outcome.failed,
        )


Context = ServerRequestContext[Any, Any]


def _cwd(context: Context) -> str:
    """Where the client says it is: a header (of our bridge), else the address that it was told to use."""
    request = context.request
    if request is None:
        return ""
    given = request.headers.get("x-vaultd-cwd") or ""
    return unquote(given, errors="surrogateescape") if given else str(request.query_params.get("cwd") or "")


def _client(context: Context) -> str:
    """What the client calls itself: our bridge passes on what it was told, others say it with each request."""
    request = context.request
    given = request.headers.get("x-vaultd-client") if request is not None else ""
    if given:
        return unquote(given)
    told = context.session.client_params
    return told.client_info.name if told is not None and told.client_info is not None else ""
