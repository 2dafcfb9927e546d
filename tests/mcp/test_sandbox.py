"""`vaultd mcp` in a sandbox: it works where the daemon's socket can be reached, else it says which access is missing.

The sandbox is made of namespaces: no network, no processes of others to be seen, read-only or hidden folders.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.client import COMMAND, daemon, text_of
from tests.scratch import Scratch
from vaultd.engine.processes import told_process

UNSHARE = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--net", "--fork", "--mount-proc"]


def possible() -> bool:
    """Whether this system lets us make namespaces."""
    return (
        shutil.which("unshare") is not None and subprocess.run([*UNSHARE, "true"], capture_output=True).returncode == 0
    )


pytestmark = pytest.mark.skipif(not possible(), reason="no namespaces here: unshare is missing or forbidden")


def boxed(scratch: Scratch, *, readonly: tuple[Path, ...] = (), hidden: tuple[Path, ...] = ()) -> Any:
    """The result of a query in a sandbox."""
    lines = [f"mount --bind '{path}' '{path}'; mount -o remount,ro,bind '{path}'" for path in readonly]
    lines += [f"mount -t tmpfs none '{path}'" for path in hidden]
    call = {"name": "memory_recent", "arguments": {"global": True}}
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode()
    done = subprocess.run(
        [*UNSHARE, "sh", "-ec", "; ".join([*lines, 'exec "$@"']), "sh", *COMMAND],
        cwd=scratch.home,
        env=scratch.environ,
        input=asked,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == b""
    return json.loads(done.stdout)["result"]


@pytest.fixture
def world(scratch: Scratch) -> Iterator[Scratch]:
    """A vault whose daemon runs outside of every sandbox."""
    scratch.init()
    with daemon(scratch):
        yield scratch


def test_a_daemon_that_cannot_be_seen_is_asked_all_the_same(world: Scratch) -> None:
    assert not boxed(world, readonly=(world.base,))["isError"]
    assert told_process(world.vault / ".vaultd") is not None


def test_a_daemon_whose_socket_is_hidden_is_not_doubled(world: Scratch) -> None:
    path = json.loads((world.vault / ".vaultd/daemon.json").read_bytes())["socket"]
    told = boxed(world, hidden=(Path(path).parent,))
    assert told["isError"] and path in text_of(told) and "daemon of vaultd runs" in text_of(told)


def test_a_vault_that_cannot_be_written_is_named(scratch: Scratch) -> None:
    scratch.init()
    told = boxed(scratch, readonly=(scratch.vault,))
    assert told["isError"] and f"{scratch.vault} cannot be written (Read-only file system)" in text_of(told)
    assert not (scratch.vault / ".vaultd/daemon.log").exists()


def test_a_cache_that_cannot_be_written_is_named(scratch: Scratch) -> None:
    scratch.init()
    told = boxed(scratch, readonly=(scratch.home,))
    assert told["isError"] and f"{scratch.home}/.cache/vaultd" in text_of(told)
    assert "vaultd up" in text_of(told) and not (scratch.vault / ".vaultd/daemon.log").exists()


def test_a_vault_that_is_hidden_is_missed(scratch: Scratch) -> None:
    scratch.init()
    told = boxed(scratch, hidden=(scratch.vault,))
    assert told["isError"] and f"no vault at {scratch.vault}" in text_of(told)
