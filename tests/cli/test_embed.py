"""`vaultd embed` as a person meets it."""

from __future__ import annotations

from tests.embedders import EmbeddingsServer
from tests.scratch import Scratch


def settings(scratch: Scratch, text: str) -> None:
    path = scratch.home / ".config/vaultd/config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"[vectors]\n{text}\n", "utf-8")


def test_vectors_that_are_off_are_said_to_be(scratch: Scratch) -> None:
    scratch.init()
    done = scratch.run("embed")
    assert done.returncode == 2 and "Vectors are off. Set `provider`" in done.stderr


def test_it_says_what_it_did(scratch: Scratch) -> None:
    scratch.init()
    (scratch.vault / "heron.md").write_text("# Heron\n\nA bird.\n")
    with EmbeddingsServer(dimension=16) as server:
        endpoint = f'provider = "endpoint"\nurl = "{server.url}"\nmodel = "first"\n'
        settings(scratch, endpoint)
        done = scratch.run("embed", check=True)
        count = int(done.stdout.split()[1])
        assert count > 0 and f"{count} of {count} pages have vectors of 16 numbers" in done.stdout
        assert "Embedded 0 pages with first (endpoint 127.0.0.1:" in scratch.run("embed", check=True).stdout
        assert f"Embedded {count} pages" in scratch.run("embed", "--force", check=True).stdout
        settings(scratch, endpoint.replace("first", "second"))
        again = scratch.run("embed", check=True).stdout
        assert "The vectors at hand are of no use: they were made for another model (first)." in again
        assert f"Embedded {count} pages with second" in again
    (scratch.vault / "soup.md").write_text("# Soup\n")
    scratch.extra["VAULTD_VAULT"] = str(scratch.vault)
    settings(scratch, endpoint.replace("first", "second") + 'key_env = "NO_SUCH_KEY"')
    done = scratch.run("embed")
    assert done.returncode == 2 and "NO_SUCH_KEY" in done.stderr and "Traceback" not in done.stderr
