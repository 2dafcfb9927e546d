"""Beside a git that lives: its lock stays, however old; what could not be committed is committed later.

What a killed git leaves is in test_killed.py (the plans' `git` area, where everything, vaultd alone, or git alone is
killed at each of git's steps, also beside a person's staged changes).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

from tests.crash.oracle import faults, run_git
from tests.crash.worlds import World, age_locks
from tests.waiting import until

IDENTITY = ["-c", "user.name=Person", "-c", "user.email=person@example.org"]


def test_a_living_git_keeps_its_lock(world_of: Callable[[str], World]) -> None:
    world = world_of("first")
    reference = world.reference
    world.restore()
    vault, home = world.scratch.vault, world.scratch.vault / "Home.md"
    before = home.read_bytes()
    home.write_bytes(before + b"\nMine.\n")
    pipe = world.place / "pipe"
    os.mkfifo(pipe)
    environ = {**world.scratch.environ, "GIT_EDITOR": f"read line <'{pipe}'; echo Mine >"}
    person = subprocess.Popen(["git", *IDENTITY, "commit", "-q", "-a"], cwd=vault, env=environ)
    try:
        lock = vault / ".git/index.lock"
        until(lock.exists)
        age_locks(vault)
        run = world.run(trace=False)
        assert run.code == 0 and "not committed" in run.out + run.err
        assert lock.exists()
        assert not list((vault / ".vaultd/inbox/new").iterdir())
    finally:
        pipe.write_bytes(b"go on\n")
        assert person.wait(30) == 0
    assert run_git(world.scratch, "show", "--format=%an", "--name-only").split() == ["Person", "Home.md"]
    world.recover()
    home.write_bytes(before)
    run_git(world.scratch, *IDENTITY, "commit", "-q", "-a", "-m", "as before")
    world.recover()
    assert faults(world.scratch, world.keys, reference) == []
