"""Embedders for tests: one in this process that knows words, and a real server that speaks the common shape."""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from vaultd.core.embedding import Vector, unit

__all__ = ["EmbeddingsServer", "Words", "numbers"]


def numbers(text: str, dimension: int) -> list[float]:
    """Texts that share words have similar numbers."""
    found = [0.01] * dimension
    for word in text.lower().split():
        found[zlib.crc32(word.encode()) % dimension] += 1.0
    return found


class Words:
    """An embedder that counts words. `asked` are all texts so far."""

    provider = "words"

    def __init__(self, model: str = "count", dimension: int = 64) -> None:
        self.model = model
        self.dimension = dimension
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Vector]:
        self.asked += texts
        return [unit(numbers(text, self.dimension)) for text in texts]


class EmbeddingsServer:
    """A server on a port of its own. `answers` are given first, one a request: a status with a body (and headers), or
    "slow" for none before the end; then it answers as it should. `asked`: path, headers and body of each request.
    """

    def __init__(self, dimension: int = 64) -> None:
        self.dimension = dimension
        self.answers: list[Any] = []
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.over = threading.Event()
        outer = self

        class Answering(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append((self.path, dict(self.headers.items()), body))
                answer = outer.answers.pop(0) if outer.answers else outer.usual(body)
                if answer == "slow":
                    outer.over.wait(30)
                    return
                status, data, *more = answer
                sent = data if isinstance(data, bytes) else json.dumps(data).encode()
                self.send_response(status)
                for name, value in (more[0] if more else {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name is the base class's
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def usual(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        size = body.get("dimensions", self.dimension)
        rows = [{"index": n, "embedding": numbers(text, size)} for n, text in enumerate(body["input"])]
        return 200, {"object": "list", "model": body["model"], "data": rows}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
