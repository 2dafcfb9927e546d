"""Events over HTTP: accepted only once their file lies in the inbox, refused while too many are being written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from aiohttp import web

from vaultd.engine.service import Hook, Service
from vaultd.errors import HeldError, UsageError, VaultdError
from vaultd.http.answers import code_of, error, json_answer, status_of
from vaultd.http.bodies import whole_body
from vaultd.http.settings import HttpSettings
from vaultd.http.values import Parameter, checked

__all__ = ["Hooks"]

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")

_KEY = r"[A-Za-z0-9_-]{1,64}"
_PARAMETERS = (
    Parameter("agent", str, "the agent's id", required=True, pattern=r"[a-z0-9-]{1,64}"),
    Parameter("event", str, "the agent's own name of the event", required=True, pattern=r"[A-Za-z0-9_.:@-]{1,64}"),
    Parameter("session_id", str, "the agent's own session id, where the payload has none"),
    Parameter("cwd", str, "the folder that the agent works in, where the payload has none"),
    Parameter("at", str, "when it happened: RFC 3339 with offset"),
    Parameter("ingest_key", str, "the client's own key: the same one is taken once", pattern=_KEY),
)
_BATCH = 256
_RETRY = {"Retry-After": "1"}


class Hooks:
    """The routes `/hook` and `/hook/batch`. At most `at_work` events are being written at a time."""

    def __init__(self, service: Service, threads: Executor, settings: HttpSettings) -> None:
        self._service = service
        self._threads = threads
        self._settings = settings
        self._room = settings.at_work
        self._bytes = settings.bodies_bytes

    async def one(self, request: web.Request) -> web.StreamResponse:
        """Take one event: 202 with its key."""
        try:
            with self._place(request, self._settings.hook_bytes):
                values = checked(_PARAMETERS, _lists(request.query))
                given = request.headers.get("Idempotency-Key", "")
                if given and not values["ingest_key"]:
                    values |= checked(_PARAMETERS[-1:], {"ingest_key": [given]})
                body = await whole_body(request, self._settings.hook_bytes, self._settings.body_s)
                return json_answer({"key": await self._deliver(values, body)}, 202)
        except HeldError as problem:
            return _busy(str(problem))

    async def batch(self, request: web.Request) -> web.StreamResponse:
        """Take up to 256 events in their order, until one cannot be taken: that one and those after it are not."""
        accepted: list[int] = []
        try:
            with self._place(request, self._settings.body_bytes):
                body = await whole_body(request, self._settings.body_bytes, self._settings.body_s)
                for index, entry in enumerate(await self._work(_entries, body)):
                    await self._deliver(*await self._work(_entry, entry))
                    accepted.append(index)
                return json_answer(_told(accepted, None, None), 202)
        except HeldError as problem:
            if not accepted:
                return _busy(str(problem))
            return json_answer(_told(accepted, len(accepted), ("busy", str(problem))), 202, _RETRY)
        except VaultdError as problem:
            told = _told(accepted, len(accepted), (code_of(problem), str(problem)))
            return json_answer(told, 202 if accepted else status_of(problem))

    @contextmanager
    def _place(self, request: web.Request, most: int) -> Iterator[None]:
        """Room for a request and its body while the block runs; HeldError when there is none."""
        told = request.content_length
        size = most if told is None else min(told, most)
        if self._room <= 0 or size > self._bytes:
            raise HeldError("Too many events at once.")
        self._room -= 1
        self._bytes -= size
        try:
            yield
        finally:
            self._room += 1
            self._bytes += size

    async def _work(self, call: Callable[[_Given], _Made], given: _Given) -> _Made:
        """Do something synchronous on a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, given)

    async def _deliver(self, values: Mapping[str, Any], body: bytes) -> str:
        """Write one event, on a thread; its key."""
        hook = Hook(
            agent=values["agent"],
            event=values["event"],
            body=body,
            key=values["ingest_key"] or "",
            session=values["session_id"] or "",
            cwd=values["cwd"] or "",
            at=values["at"] or "",
        )
        return await self._work(self._service.deliver, hook)


def _told(accepted: list[int], failed: int | None, problem: tuple[str, str] | None) -> dict[str, object]:
    """The answer to a batch; `problem` is a code and words."""
    told: dict[str, object] = {"accepted": len(accepted), "accepted_indices": accepted, "failed_index": failed}
    return told if problem is None else {**told, "error": {"code": problem[0], "message": problem[1]}}


def _entries(data: bytes) -> list[Any]:
    """The events of a batch; UsageError."""
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        raise UsageError("The body is not JSON.") from None
    if not isinstance(told, list) or len(told) > _BATCH:
        raise UsageError(f"The body must be a list of at most {_BATCH} events.")
    return told


def _entry(entry: Any) -> tuple[dict[str, Any], bytes]:
    """One event of a batch: its parameters, from `url` or beside the body, and its payload."""
    if not isinstance(entry, dict) or "body" not in entry:
        raise UsageError("An event is an object with `body`, and `url` or `agent` and `event`.")
    given = {name: value for name, value in entry.items() if name != "body"}
    if set(given) == {"url"} and isinstance(given["url"], str):
        try:
            pairs = parse_qsl(urlsplit(given["url"]).query, keep_blank_values=True)
        except ValueError:
            raise UsageError("`url` is not an address.") from None
    else:
        pairs = list(given.items())
    if not all(isinstance(value, str) for _, value in pairs):
        raise UsageError("The parameters of an event are texts.")
    query: dict[str, list[str]] = {}
    for name, value in pairs:
        query.setdefault(name, []).append(value)
    body = entry["body"]
    try:
        data = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    except RecursionError:
        raise UsageError("The body of an event is nested too deeply.") from None
    return checked(_PARAMETERS, query), data.encode("utf-8", "surrogatepass")


def _lists(query: Any) -> dict[str, list[str]]:
    """A request's query by name."""
    return {name: query.getall(name) for name in query}


def _busy(message: str) -> web.Response:
    """429."""
    return error(429, "busy", f"{message} Try again in a moment.", _RETRY)
