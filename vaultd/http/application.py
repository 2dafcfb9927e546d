"""The web application: every request passes one door, then its route; whatever goes wrong is an answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import Any, TypeVar
from urllib.parse import unquote

from aiohttp import web

from vaultd.engine.service import Reply, Scope, Service
from vaultd.errors import UsageError, VaultdError
from vaultd.http.answers import error, etag, failure, json_answer, secure
from vaultd.http.asgi import AsgiApplication, answer_with
from vaultd.http.connections import Connections
from vaultd.http.guard import Guard
from vaultd.http.hooks import Hooks
from vaultd.http.openapi import document
from vaultd.http.settings import HttpSettings
from vaultd.http.table import BASE, ROUTES, SCOPE, Route
from vaultd.http.values import Parameter, checked

__all__ = ["Application"]

log = logging.getLogger("vaultd.http")

_Made = TypeVar("_Made")
_Next = Callable[[web.Request], Awaitable[web.StreamResponse]]
_FREE = frozenset({"/health"})
_AGENT = Parameter("agent", str, "the agent's id")


class Application:
    """The routes over a service. `guard` is None for the socket, which only its owner can open."""

    def __init__(
        self,
        service: Service,
        settings: HttpSettings,
        reads: Executor,
        vitals: Executor,
        hooks: Hooks,
        mcp: AsgiApplication | None,
    ) -> None:
        """`reads` are the threads for questions, `vitals` those for the one whether all is well."""
        self._service = service
        self._settings = settings
        self._reads = reads
        self._vitals = vitals
        self._mcp = mcp
        self._hooks = hooks
        self._document = document()

    def make(self, guard: Guard | None, connections: Connections) -> web.Application:
        """An application for one listening socket and its connections."""

        @web.middleware
        async def door(request: web.Request, handler: _Next) -> web.StreamResponse:
            transport = request.transport
            connections.busy(transport)
            try:
                return await self._answered(request, handler, guard)
            finally:
                connections.free(transport)

        app = web.Application(middlewares=[door])
        app.on_response_prepare.append(_secured)
        app.router.add_post("/hook", self._hooks.one)
        app.router.add_post("/hook/batch", self._hooks.batch)
        app.router.add_get("/handoff", self._handoff)
        app.router.add_get("/health", self._health)
        app.router.add_get(f"{BASE}/openapi.json", self._described)
        for route in ROUTES:
            app.router.add_get(BASE + route.path, self._reader(route))
        if self._mcp is not None:
            app.router.add_route("*", "/mcp", self._to_mcp)
        return app

    async def _answered(self, request: web.Request, further: _Next, guard: Guard | None) -> web.StreamResponse:
        """The answer of a route, or why there is none."""
        if guard is not None:
            headers = request.headers
            refusal = guard.refuse(
                headers.get("Host"),
                headers.getall("Origin", ()),
                headers.get("Authorization"),
                free=request.path in _FREE,
            )
            if refusal is not None:
                more = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else None
                return error(refusal.status, "refused", refusal.message, more)
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            return error(415, "encoded", "A body must come as it is, not compressed.")
        try:
            return await further(request)
        except VaultdError as problem:
            return failure(problem)
        except web.HTTPRequestEntityTooLarge as problem:
            return error(413, "too-large", problem.text or "The body is too large.")
        except TimeoutError:
            return error(408, "slow", "The body did not come in time.", {"Connection": "close"})
        except web.RequestPayloadError:
            return error(400, "malformed", "The body is not what its headers say.", {"Connection": "close"})
        except web.HTTPException as problem:
            if problem.status < 400:
                raise
            allowed = {"Allow": problem.headers["Allow"]} if "Allow" in problem.headers else None
            return error(problem.status, problem.reason.lower().replace(" ", "-"), f"{problem.reason}.", allowed)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except OSError as problem:  # a full disk, a vault that goes away this moment
            log.error("%s %s cannot be answered: %s", request.method, _route_of(request), problem.strerror)
            return error(503, "unavailable", "This cannot be done at present.", {"Retry-After": "5"})
        except Exception:  # a fault of ours is told to the client in one line
            log.exception("a fault in answering %s %s", request.method, _route_of(request))
            return error(500, "fault", "vaultd failed here; its log says where.")

    async def _work(self, call: Callable[[], _Made], on: Executor | None = None) -> _Made:
        """Do something synchronous on a thread."""
        return await asyncio.get_running_loop().run_in_executor(on or self._reads, call)

    def _reader(self, route: Route) -> _Next:
        """What answers a route of the table."""

        async def read(request: web.Request) -> web.StreamResponse:
            values = checked(route.query, _query(request))
            values |= request.match_info
            scope = _scope(request, values)
            reply: Reply = await self._work(lambda: route.call(self._service, scope, values))
            if "revision" not in reply:
                return json_answer(reply)
            tag = etag(reply)
            headers = {"ETag": tag, "Cache-Control": "no-cache"}
            if tag in request.headers.get("If-None-Match", ""):
                return web.Response(status=304, headers=headers)
            return json_answer(reply, headers=headers)

        return read

    async def _handoff(self, request: web.Request) -> web.StreamResponse:
        """What the next session would be given."""
        values = checked((_AGENT, *SCOPE), _query(request))
        scope = _scope(request, values)
        text = await self._work(lambda: self._service.prepared(scope, values["agent"] or ""))
        return web.Response(text=text, content_type="text/markdown")

    async def _health(self, request: web.Request) -> web.StreamResponse:
        """Whether the daemon does its work."""
        health = await self._work(self._service.health, self._vitals)
        return json_answer({"ok": health.ok, "problems": list(health.problems)}, 200 if health.ok else 503)

    async def _described(self, request: web.Request) -> web.StreamResponse:
        """The description of the interface."""
        return json_answer(self._document)

    async def _to_mcp(self, request: web.Request) -> web.StreamResponse:
        """Let MCP answer."""
        if self._mcp is None:
            raise web.HTTPNotFound
        return await answer_with(self._mcp, request, self._settings.body_bytes, self._settings.body_s)


async def _secured(_: web.Request, response: web.StreamResponse) -> None:
    """Every answer has these headers."""
    secure(response)


def _query(request: web.Request) -> dict[str, list[str]]:
    return {name: request.query.getall(name) for name in request.query}


def _scope(request: web.Request, values: dict[str, Any]) -> Scope:
    """Where the client says it is: parameters win over its header."""
    header = request.headers.get("X-Vaultd-Cwd", "")
    cwd = values.pop("cwd", None) or (unquote(header, errors="surrogateescape") if header else "")
    if len(cwd) > 4096:
        raise UsageError("X-Vaultd-Cwd is no path: it is too long.")
    return Scope(values.pop("project", None) or "", cwd)


def _route_of(request: web.Request) -> str:
    """The route that a request was for, as it is in the table: nothing that the client said."""
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else "an unknown route"
