"""The daemon's part of vectors: pages get theirs in the background, and an endpoint that is down stops nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.embedders import EmbeddingsServer
from tests.scratch import Scratch
from tests.waiting import until
from vaultd.engine import nearby
from vaultd.engine.embedding import embedder_of, open_vectors, revisions
from vaultd.engine.live import Live
from vaultd.engine.nearby import Filling


@pytest.fixture
def server() -> Iterator[EmbeddingsServer]:
    with EmbeddingsServer() as made:
        yield made


def test_pages_get_vectors_soon_and_after_an_endpoint_was_down(
    scratch: Scratch, server: EmbeddingsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearby, "_LOOK_S", 0.05)
    monkeypatch.setattr(nearby, "_RETRY_S", 0.1)
    settings = scratch.home / ".config/vaultd/config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f'[vectors]\nprovider = "endpoint"\nurl = "{server.url}"\nmodel = "m"\n')
    live = Live(scratch.init())
    (scratch.vault / "heron.md").write_text("A heron stands.")
    live.scan()
    config = scratch.stores().config
    embedder = embedder_of(config)
    assert embedder is not None

    def filled() -> bool:
        return open_vectors(config, embedder).revisions() == revisions(live.index)

    server.answers = [(400, {"error": {"message": "not now"}})]
    filling = Filling(scratch.stores, live)
    filling.start()
    try:
        until(filled, 20)
        (scratch.vault / "heron.md").write_text("A heron stands no more.")
        live.scan()
        until(filled, 20)
    finally:
        filling.stop()
        live.close()
