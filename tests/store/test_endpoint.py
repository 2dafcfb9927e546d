"""The endpoint against a real server on this machine, also one that is busy, broken, slow or wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.embedders import EmbeddingsServer, numbers
from vaultd.core.embedding import unit
from vaultd.errors import UsageError, VaultdError
from vaultd.store.endpoint import Endpoint

KEY = "sk-not-to-be-shown"


@pytest.fixture
def server() -> Iterator[EmbeddingsServer]:
    with EmbeddingsServer() as made:
        yield made


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def endpoint(server: EmbeddingsServer, waits: list[float]) -> Endpoint:
    return Endpoint(server.url, "m", key=KEY, wait=waits.append, timeouts=(0.2, 0.2))


def test_texts_become_vectors_in_batches(endpoint: Endpoint, server: EmbeddingsServer) -> None:
    texts = [f"text {number}" for number in range(150)]
    assert endpoint.dimension == 0
    assert endpoint.embed(texts) == [unit(numbers(text, 64)) for text in texts]
    assert endpoint.dimension == 64
    assert [len(body["input"]) for _, _, body in server.asked] == [64, 64, 22]
    path, headers, body = server.asked[0]
    assert path == "/v1/embeddings" and headers["Authorization"] == f"Bearer {KEY}"
    assert set(body) == {"model", "input"} and body["model"] == "m"
    assert endpoint.embed([]) == []


def test_without_a_key_none_is_sent_and_dimensions_are_asked_for(server: EmbeddingsServer) -> None:
    endpoint = Endpoint(server.url + "/", "m", dimensions=8)
    assert len(endpoint.embed(["a \ud800 lone half"])[0]) == 8
    path, headers, body = server.asked[0]
    assert path == "/v1/embeddings" and "Authorization" not in headers
    assert body["dimensions"] == 8 and body["input"] == ["a ? lone half"]


def test_one_service_names_things_otherwise() -> None:
    endpoint = Endpoint("https://api.voyageai.com/v1", "m", dimensions=256)
    assert endpoint._body(["a"], True) == {
        "model": "m",
        "input": ["a"],
        "output_dimension": 256,
        "input_type": "query",
    }
    assert endpoint._body(["a"], False)["input_type"] == "document"


@pytest.mark.parametrize("indices", [[1, 0], [0, 0], [None, None]])
def test_the_order_is_the_servers_where_it_tells_one(
    endpoint: Endpoint, server: EmbeddingsServer, indices: list[int | None]
) -> None:
    rows = [{"index": index, "embedding": [number, 1.0]} for number, index in enumerate(indices)]
    server.answers = [(200, {"data": rows})]
    vectors = endpoint.embed(["a", "b"])
    assert vectors == [unit([n, 1.0]) for n in ((1, 0) if indices == [1, 0] else (0, 1))]


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_a_busy_or_broken_server_is_asked_again(
    endpoint: Endpoint, server: EmbeddingsServer, waits: list[float], status: int
) -> None:
    server.answers = [(status, b"later"), (status, b"", {"Retry-After": "7"}), (status, b"", {"Retry-After": "9999"})]
    assert len(endpoint.embed(["a"])) == 1
    assert waits == [1.0, 7.0, 30.0]


def test_but_not_for_ever_and_not_for_a_query(endpoint: Endpoint, server: EmbeddingsServer, waits: list[float]) -> None:
    server.answers = [(500, b"broken " + KEY.encode())] * 5
    with pytest.raises(VaultdError, match="answered 500 for model m: broken \\(key\\)") as raised:
        endpoint.embed(["a"])
    assert waits == [1.0, 2.0, 4.0] and not isinstance(raised.value, UsageError)
    with pytest.raises(VaultdError, match="answered 500"):
        endpoint.embed(["a"], query=True)
    assert len(server.asked) == 5 and len(waits) == 3


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (400, "answered 400 for model m: no"),
        (401, "refused the key"),
        (403, "refused the key"),
        (404, "vectors.model"),
        (422, "answered 422"),
    ],
)
def test_a_refusal_is_not_asked_again_and_says_what_to_do(
    endpoint: Endpoint, server: EmbeddingsServer, waits: list[float], status: int, says: str
) -> None:
    server.answers = [(status, f"no\n{KEY}".encode())]
    with pytest.raises(UsageError, match=says) as raised:
        endpoint.embed(["a"])
    assert KEY not in str(raised.value) and waits == []


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_texts_and_key_follow_no_redirect(endpoint: Endpoint, server: EmbeddingsServer, status: int) -> None:
    with EmbeddingsServer() as other:
        server.answers = [(status, b"", {"Location": f"{other.url}/embeddings"})]
        with pytest.raises(UsageError, match="a redirect"):
            endpoint.embed(["a"])
        assert other.asked == []


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"<html>",
        b"[]",
        b"null",
        b"{}",
        b"\xff",
        b"[" * 100_000,
        {"data": []},
        {"data": [1]},
        {"data": [{"embedding": None}]},
        {"data": [{"embedding": []}]},
        {"data": [{"embedding": [0, 0]}]},
        {"data": [{"embedding": ["a"]}]},
        {"data": [{"embedding": "AAAA"}]},
        b'{"data": [{"embedding": [NaN]}]}',
        b'{"data": [{"embedding": [1e999, 1]}]}',
        {"data": [{"embedding": [1]}, {"embedding": [1]}]},
    ],
)
def test_what_is_no_answer(endpoint: Endpoint, server: EmbeddingsServer, answer: Any) -> None:
    server.answers = [(200, answer)]
    with pytest.raises(VaultdError, match="did not answer with vectors"):
        endpoint.embed(["a"])


def test_another_dimension_than_before_or_than_set(endpoint: Endpoint, server: EmbeddingsServer) -> None:
    endpoint.embed(["a"])
    server.dimension = 32
    with pytest.raises(VaultdError, match="vectors of 32 numbers for m, 64 numbers were expected"):
        endpoint.embed(["a"])
    server.answers = [(200, {"data": [{"embedding": [1, 2]}, {"embedding": [1]}]})]
    with pytest.raises(VaultdError, match="vectors of 1, 2 numbers"):
        Endpoint(server.url, "m").embed(["a", "b"])


def test_a_slow_server_is_waited_for_a_while(endpoint: Endpoint, server: EmbeddingsServer, waits: list[float]) -> None:
    server.answers = ["slow"]
    with pytest.raises(VaultdError, match="does not answer \\(it took too long\\)"):
        endpoint.embed(["a"], query=True)
    server.answers = ["slow"]
    assert len(endpoint.embed(["a"])) == 1 and waits == [1.0]


def test_no_server_at_all(waits: list[float]) -> None:
    with EmbeddingsServer() as gone:
        url = gone.url
    with pytest.raises(VaultdError, match=r"does not answer .*Connection refused.* Start it"):
        Endpoint(url, "m", wait=waits.append).embed(["a"])
    assert len(waits) == 3
