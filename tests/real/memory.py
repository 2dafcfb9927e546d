"""The product in a room: wired by its own installer, with its daemon running or not, and seen through its files."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path

from tests.fake_wire import Json
from tests.real.clients import VAULTD, Room
from tests.real.work import main_requests, pieces
from tests.waiting import until

AGENTS = ("claude-code", "codex")

FENCE = "<untrusted-history>"
"""The line that opens whatever the product puts before an agent."""


@dataclass(frozen=True)
class Memory:
    """A vault in the room's home that both agents are wired to."""

    room: Room
    daemon: bool

    def wire(self) -> None:
        """Make the vault, start the daemon if there is to be one, and install the hooks of both agents."""
        self.room.vaultd("up" if self.daemon else "init")
        for agent in AGENTS:
            self.room.vaultd("install-hooks", "--agent", agent, "--apply")

    @property
    def vault(self) -> Path:
        """The default vault, as hook and command line find it."""
        return Path((self.room.home / ".config" / "vaultd" / "vault").read_text("utf-8").splitlines()[0])

    def handoffs(self, state: str, mark: str) -> list[Path]:
        """The handoff pages in a state folder (`open`, `accepted`, `expired`) that hold the mark."""
        found = self.vault.glob(f"**/handoffs/{state}/*.md")
        return [page for page in found if mark in page.read_text("utf-8")]

    def settle(self, timeout: float = 5) -> None:
        """Wait until no event is left to work off and no detached pass runs any more."""

        with contextlib.suppress(AssertionError):
            until(lambda: not self.waiting() and (self.daemon or not self.processes()), timeout)
            return
        said = self.room.finish([*VAULTD, "ingest"])
        raise AssertionError(f"{self.waiting()} left, {self.processes()} run; `vaultd ingest` by hand: {said}")

    def waiting(self) -> list[str]:
        """Names of the events that are not worked off."""
        return sorted(path.name for path in (self.vault / ".vaultd" / "inbox" / "new").iterdir())

    def processes(self) -> dict[int, str]:
        """What runs in the room besides the clients."""
        clients = (str(self.room.clients.claude), str(self.room.clients.codex), str(self.room.home / ".codex"))
        return {pid: line for pid, line in self.room.processes().items() if not line.startswith(clients)}

    def requests(self) -> int:
        """How many requests the model has had: where the next session begins."""
        return len(self.room.model.requests())

    def assert_told(self, since: int, mark: str, *facts: str) -> None:
        """Every request since was given exactly one handoff, with the mark and the facts in it, fenced as history."""
        asked = main_requests(self.room.model.requests()[since:])
        assert asked, "the model was asked nothing"
        for request in asked:
            told = pieces(request, mark)
            assert len(told) == 1, f"request {request['n']} holds {mark} in {len(told)} texts: {told}"
            assert len(pieces(request, FENCE)) == told[0].count(FENCE) == 1, told[0]
            missing = [fact for fact in facts if fact not in told[0]]
            assert not missing, f"{missing} not in: {told[0]}"

    def assert_not_told(self, since: int, mark: str) -> None:
        """No request since then holds the mark, whatever it was for."""
        asked = self.room.model.requests()[since:]
        assert asked, "the model was asked nothing"
        assert [texts for request in asked if (texts := pieces(request, mark))] == []

    def prompted(self, prompt: str) -> list[Json]:
        """The requests that came of a prompt."""
        return [r for r in main_requests(self.room.model.requests()) if prompt in r["prompt"]]

    def sessions(self, mark: str) -> list[Path]:
        """The session pages that hold the mark."""
        return [page for page in self.vault.glob("**/sessions/*.md") if mark in page.read_text("utf-8")]

    def ended(self, agent: str) -> bool:
        """Whether the product has seen a session of that agent end."""
        answer = json.loads(self.room.finish([*VAULTD, "status", "--json"])[1])
        return "SessionEnd" in answer["agents"].get(agent, {})
