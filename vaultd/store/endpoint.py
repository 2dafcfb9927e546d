"""Vectors from a server that speaks the common embeddings shape: `POST <url>/embeddings` with a model and texts.

Ollama, LM Studio, vLLM, OpenAI and others answer so; what a service wants otherwise is told apart by its address. The
page texts go to this address and to no other: a redirect is an error. The key is in the request and nowhere else.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from email.message import Message
from typing import IO, Any
from urllib.parse import urlsplit

from vaultd.core.embedding import Vector, unit
from vaultd.errors import UsageError, VaultdError

__all__ = ["Endpoint"]

_BATCH = 64  # texts of a request; of the services known the smallest bound is 100
_TRIES = 4
_LONGEST_WAIT_S = 30.0
_TIMEOUT_S = 60.0  # a model on a slow machine, with a full batch
_QUERY_TIMEOUT_S = 8.0  # somebody waits: then the words must do
_MOST_BYTES = 64 << 20
_SHOWN = 200  # characters of what a server says


class Endpoint:
    """An embedder behind an address. Not for several threads at once."""

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str = "",
        dimensions: int = 0,
        wait: Callable[[float], None] = time.sleep,
        timeouts: tuple[float, float] = (_TIMEOUT_S, _QUERY_TIMEOUT_S),
    ) -> None:
        """Nothing is asked yet. `dimensions` 0: the model's own. `timeouts`: seconds for kept texts and for queries."""
        parts = urlsplit(url)
        self._url = url if parts.path.endswith("/embeddings") else url.rstrip("/") + "/embeddings"
        self._key = key
        self._asked = dimensions
        self._dimension = dimensions
        self._wait = wait
        self._timeouts = timeouts
        self._voyage = (parts.hostname or "").endswith("voyageai.com")
        near = parts.hostname in ("localhost", "127.0.0.1", "::1")
        proxy = [urllib.request.ProxyHandler({})] if near else []
        self._opener = urllib.request.build_opener(_NoRedirect, *proxy)
        self.provider = f"endpoint {parts.netloc}"
        self.model = model

    @property
    def dimension(self) -> int:
        """Numbers of a vector; 0 while nothing was asked and the settings do not say."""
        return self._dimension

    def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Vector]:
        """A vector for each text. Kept texts are tried four times, a query once.

        UsageError when the server refuses what is asked, other VaultdErrors when it cannot answer now.
        """
        found: list[Vector] = []
        for start in range(0, len(texts), _BATCH):
            found += self._batch(texts[start : start + _BATCH], query)
        return found

    def _batch(self, texts: Sequence[str], query: bool) -> list[Vector]:
        """The vectors of one request."""
        vectors = self._vectors(self._answer(json.dumps(self._body(texts, query)).encode(), query), len(texts))
        sizes = {len(vector) for vector in vectors}
        if len(sizes) != 1 or (self._dimension and sizes != {self._dimension}):
            wanted = f"{self._dimension} numbers were expected" if self._dimension else "one size was expected"
            raise VaultdError(
                f"{self.provider} gave vectors of {', '.join(map(str, sorted(sizes)))} numbers for {self.model}, "
                f"{wanted}. Set `vectors.dimensions` to what the model gives, or take it out."
            )
        self._dimension = sizes.pop()
        return vectors

    def _body(self, texts: Sequence[str], query: bool) -> dict[str, object]:
        """What is asked."""
        # Lone surrogates cannot be sent: a server answers them with an error for the whole batch.
        body: dict[str, object] = {
            "model": self.model,
            "input": [text.encode("utf-8", "replace").decode("utf-8") for text in texts],
        }
        if self._asked:
            body["output_dimension" if self._voyage else "dimensions"] = self._asked
        if self._voyage:
            body["input_type"] = "query" if query else "document"
        return body

    def _answer(self, body: bytes, query: bool) -> bytes:
        """What the server says to a request; a busy or broken one is asked again."""
        tries = 1 if query else _TRIES
        for number in range(1, tries + 1):
            try:
                return self._once(body, self._timeouts[query])
            except urllib.error.HTTPError as error:
                with error:
                    told = self._told(error, error.code)
                    if error.code != 429 and error.code < 500:
                        raise told from None
                    pause = _pause(error.headers, number)
            except (OSError, http.client.HTTPException) as error:
                reason = error.reason if isinstance(error, urllib.error.URLError) else error
                told, pause = self._silent(reason), 2.0 ** (number - 1)
            if number < tries:
                self._wait(pause)
        raise told from None

    def _once(self, body: bytes, timeout: float) -> bytes:
        """One request."""
        headers = {"Content-Type": "application/json", "User-Agent": "vaultd"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        request = urllib.request.Request(self._url, data=body, headers=headers, method="POST")
        with self._opener.open(request, timeout=timeout) as answer:
            data: bytes = answer.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise VaultdError(f"{self.provider} answered with more than {_MOST_BYTES >> 20} MB. Check `vectors.url`.")
        return data

    def _vectors(self, data: bytes, count: int) -> list[Vector]:
        """The vectors of an answer, in the order of the texts."""
        try:
            rows = json.loads(data)["data"]
            if len(rows) != count:
                raise ValueError(f"{len(rows)} vectors for {count} texts")
            places = [row.get("index") for row in rows]
            if sorted(place for place in places if isinstance(place, int)) == list(range(count)):
                rows = [row for _, row in sorted(zip(places, rows, strict=True), key=lambda pair: pair[0])]
            return [unit(row["embedding"]) for row in rows]
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            raise VaultdError(
                f"{self.provider} did not answer with vectors ({type(error).__name__}: {str(error)[:_SHOWN]}). "
                "Check that `vectors.url` ends before /embeddings and that the model makes embeddings."
            ) from None

    def _told(self, answer: IO[bytes], code: int) -> VaultdError:
        """An answer that is an error, in words."""
        if code in (401, 403):
            # Not what the server says: some repeat the key.
            return UsageError(
                f"{self.provider} refused the key ({code}). Check `vectors.key_env` or `vectors.key_file`."
            )
        try:
            said = " ".join(answer.read(4096).decode("utf-8", "replace").split())
        except (OSError, http.client.HTTPException):
            said = ""
        said = (said.replace(self._key, "(key)") if self._key else said)[:_SHOWN]
        advice = "Check `vectors.url`, `vectors.model` and `vectors.dimensions`."
        if code == 429:
            advice = "It is asked too often, or the account is used up. Try again later: what was done is kept."
        elif code >= 500:
            advice = "The server has a fault. Try again later: what was done is kept."
        elif code < 400:
            said, advice = "a redirect", "Set `vectors.url` to where it leads."
        kind = VaultdError if code == 429 or code >= 500 else UsageError
        return kind(f"{self.provider} answered {code} for model {self.model}: {said or 'nothing'}. {advice}")

    def _silent(self, reason: object) -> VaultdError:
        """No answer, in words."""
        said = "it took too long" if isinstance(reason, TimeoutError) else str(reason) or type(reason).__name__
        return VaultdError(f"{self.provider} does not answer ({said}). Start it, or mend `vectors.url`.")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Leaves a redirect as the error that it is: what is sent is for one address only."""

    def redirect_request(self, *_: Any) -> None:
        """None: not followed."""


def _pause(headers: Message, number: int) -> float:
    """Seconds to wait after try `number`: what the server says, within reason, else one, two, four."""
    try:
        return min(max(float(headers.get("Retry-After", "")), 0.0), _LONGEST_WAIT_S)
    except ValueError:
        return 2.0 ** (number - 1)
