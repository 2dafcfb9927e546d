"""The embedding stream: filling it, going on after any end, and asking it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.embedders import EmbeddingsServer, Words
from tests.scratch import ROOT, Scratch
from vaultd.core.embedding import Vector
from vaultd.engine.embedding import Brought, Stream, bring_up, embedder_of, open_vectors, revisions
from vaultd.engine.reconcile import Reconcile, open_index
from vaultd.engine.stores import Stores
from vaultd.errors import HeldError, UsageError, VaultdError
from vaultd.store.fs import Lock
from vaultd.store.vectors import Vectors


def pages_of(stores: Stores) -> dict[str, str]:
    index = open_index(stores)
    try:
        reconcile = Reconcile(stores, index)
        reconcile.run(reconcile.behind())
        return {path: revision for path, revision in revisions(index).items() if path.startswith("notes/")}
    finally:
        index.close()


def write(scratch: Scratch, **texts: str) -> None:
    (scratch.vault / "notes").mkdir(exist_ok=True)
    for name, text in texts.items():
        (scratch.vault / f"notes/{name}.md").write_text(f"# {name}\n\n{text}\n", "utf-8")


def filled(stores: Stores, words: Words, force: bool = False) -> tuple[Brought, Vectors, dict[str, str]]:
    vectors, pages = open_vectors(stores.config, words), pages_of(stores)
    return bring_up(stores, words, vectors, pages, force=force), vectors, pages


def titles(words: Words) -> list[str]:
    return sorted(text.partition("\n")[0] for text in words.asked)


def test_pages_are_embedded_once_and_found_by_what_they_say(scratch: Scratch) -> None:
    stores, words = scratch.init(), Words()
    write(scratch, heron="a bird that stands in water", soup="beans cooked in water for long")
    told, vectors, pages = filled(stores, words)
    assert told == Brought(embedded=2)
    assert vectors.revisions() == pages
    assert filled(stores, words)[0] == Brought() and titles(words) == ["heron", "soup"]
    stream = Stream(stores.config, words)
    near = stream.nearest("bird in water", pages)
    assert [path for path, _ in near.ranked] == ["notes/heron.md", "notes/soup.md"]
    assert (near.lacking, stream.lacking(pages), stream.doubt) == (0, 0, "")


def test_only_what_changed_is_embedded_and_what_is_gone_is_dropped(scratch: Scratch) -> None:
    stores, words = scratch.init(), Words()
    write(scratch, a="one", b="two", c="three")
    filled(stores, words)
    stream = Stream(stores.config, words)
    write(scratch, a="one more", d="four")
    (scratch.vault / "notes/b.md").unlink()
    pages = pages_of(stores)
    assert stream.lacking(pages) == stream.nearest("one", pages).lacking == 2
    words.asked.clear()
    assert filled(stores, words)[0] == Brought(embedded=2, dropped=1)
    assert titles(words) == ["a", "d"]
    assert (stream.lacking(pages), len(stream.nearest("one", pages).ranked)) == (0, 3)
    assert filled(stores, words, force=True)[0] == Brought(embedded=3)


def test_what_only_seems_to_be_gone_keeps_its_vectors(scratch: Scratch) -> None:
    stores, words = scratch.init(), Words()
    write(scratch, a="one", b="two")
    _, vectors, pages = filled(stores, words)
    assert bring_up(stores, words, vectors, {}) == Brought()  # an index that knows nothing
    scratch.vault.rename(scratch.base / "elsewhere")
    assert bring_up(stores, words, vectors, {}) == Brought()  # a vault that is away
    assert vectors.revisions() == pages


def test_another_model_starts_anew_and_the_old_vectors_are_said_to_be_of_no_use(scratch: Scratch) -> None:
    stores = scratch.init()
    write(scratch, a="one", b="two")
    _, _, pages = filled(stores, Words())
    stream = Stream(stores.config, Words("better", 32))
    assert stream.doubt == "they were made for another model (count)"
    assert (stream.nearest("one", pages).lacking, stream.lacking(pages)) == (2, 2)
    assert filled(stores, Words("better", 32))[0] == Brought(embedded=2)
    assert (stream.doubt, stream.lacking(pages)) == ("", 0)


def test_stopped_between_batches_it_goes_on_from_there(scratch: Scratch) -> None:
    stores, words = scratch.init(), Words()
    write(scratch, **{f"n{number:03}": f"text {number}" for number in range(150)})
    pages, vectors, shown = pages_of(stores), open_vectors(stores.config, words), list[tuple[int, int]]()
    told = bring_up(stores, words, vectors, pages, progress=lambda *at: shown.append(at), stop=lambda: len(shown) == 1)
    assert told == Brought(embedded=64, left=86) and shown == [(64, 150)]
    assert bring_up(stores, words, vectors, pages) == Brought(embedded=86)
    assert len(words.asked) == len(set(words.asked)) == 150


class Refusing(Words):
    """Refuses some texts, and stops answering after some."""

    def __init__(self, bad: str, most: int = 10_000) -> None:
        super().__init__()
        self.bad, self.most = bad, most

    def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Vector]:
        if len(self.asked) + len(texts) > self.most:
            raise VaultdError("no answer")
        if any(self.bad in text for text in texts):
            raise UsageError("refused")
        return super().embed(texts)


def test_a_page_that_is_refused_keeps_no_other_out(scratch: Scratch) -> None:
    stores = scratch.init()
    write(scratch, **{f"n{number}": f"text {number}" for number in range(5)}, bad="nasty")
    told, _, pages = filled(stores, Refusing("nasty"))
    assert told == Brought(embedded=5, failed={"notes/bad.md": "refused"})
    assert Stream(stores.config, Words()).lacking(pages) == 1


def test_when_all_is_refused_that_is_an_error(scratch: Scratch) -> None:
    stores, words = scratch.init(), Refusing("")
    write(scratch, a="one", b="two")
    with pytest.raises(UsageError, match="refused"):
        filled(stores, words)
    (scratch.vault / "notes/a.md").unlink()
    assert filled(stores, words)[0] == Brought(failed={"notes/b.md": "refused"})


def test_what_was_done_before_an_error_is_kept(scratch: Scratch) -> None:
    stores = scratch.init()
    write(scratch, **{f"n{number:03}": f"text {number}" for number in range(100)})
    with pytest.raises(VaultdError, match="no answer"):
        filled(stores, Refusing("never", most=64))
    assert filled(stores, Words())[0] == Brought(embedded=36)


def test_one_at_a_time(scratch: Scratch) -> None:
    stores = scratch.init()
    write(scratch, a="one")
    vectors = open_vectors(stores.config, Words())
    vectors.folder.parent.mkdir(parents=True, exist_ok=True)
    with Lock(vectors.folder.parent / "vectors.lock"), pytest.raises(HeldError, match="Another process is embedding"):
        filled(stores, Words())
    assert filled(stores, Words())[0].embedded == 1


def settings(scratch: Scratch, text: str) -> None:
    path = scratch.home / ".config/vaultd/config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"[vectors]\n{text}\n", "utf-8")


def test_the_key_comes_from_a_variable_or_a_file_and_is_never_shown(scratch: Scratch) -> None:
    scratch.init()
    assert embedder_of(scratch.config) is None
    with EmbeddingsServer() as server:
        endpoint = f'provider = "endpoint"\nurl = "{server.url}"\nmodel = "m"\n'
        settings(scratch, endpoint + 'key_env = "MY_KEY"')
        with pytest.raises(UsageError, match=r"variable MY_KEY .* is not set"):
            embedder_of(scratch.config)
        scratch.extra["MY_KEY"] = " sk-one\n"
        settings_and_key = [(endpoint + 'key_env = "MY_KEY"', "sk-one"), (endpoint + 'key_file = "~/key"', "sk-two")]
        (scratch.home / "key").write_text("sk-two\n")
        for text, key in settings_and_key:
            settings(scratch, text)
            embedder = embedder_of(scratch.config)
            assert embedder is not None and embedder.embed(["a"])
            assert server.asked[-1][1]["Authorization"] == f"Bearer {key}"
            assert key not in repr(embedder) + repr(scratch.config)


@pytest.mark.parametrize(
    ("data", "says"), [(None, "cannot be read"), (b" \n", "is empty"), (b"\xff", "no text"), (b"a\nb", "characters")]
)
def test_a_key_that_is_none(scratch: Scratch, data: bytes | None, says: str) -> None:
    settings(scratch, 'provider = "endpoint"\nurl = "http://localhost:1/v1"\nmodel = "m"\nkey_file = "~/key"')
    if data is not None:
        (scratch.home / "key").write_bytes(data)
    with pytest.raises(UsageError, match=says):
        embedder_of(scratch.config)


def test_switched_off_nothing_of_it_is_imported(scratch: Scratch) -> None:
    scratch.init()
    write(scratch, heron="a bird")
    program = (
        "import sys; from vaultd.cli.main import run; code = run(['search', 'heron']); names = set(sys.modules)\n"
        "print(code, sorted(names & {'numpy', 'onnxruntime', 'tokenizers', 'vaultd.engine.embedding', "
        "'vaultd.store.vectors', 'vaultd.store.minilm', 'vaultd.store.endpoint', 'vaultd.core.wordpiece'}))\n"
    )
    environ = {**scratch.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True)
    assert "notes/heron.md" in ran.stdout and ran.stdout.endswith("0 []\n")
    assert not (Path(scratch.config.places.vectors(scratch.vault))).exists()
