"""The oracle bites: each thing that may be wrong of a vault is done to a good one, and found."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.crash.oracle import acknowledged, faults
from tests.crash.worlds import World
from tests.scratch import Scratch
from vaultd.engine.reconcile import open_index
from vaultd.store.index import Drop

WorldOf = Callable[[str], World]


def only(vault: Path, pattern: str) -> Path:
    [path] = vault.glob(pattern)
    return path


def pack(vault: Path) -> Path:
    return only(vault, ".vaultd/done/*.jsonl")


def page(vault: Path) -> Path:
    return only(vault, "*/*/sessions/*.md")


def handoff(vault: Path) -> Path:
    return only(vault, "*/*/handoffs/open/*.md")


def log(vault: Path) -> Path:
    return only(vault, "*/*/log-*.md")


def lose_an_event(vault: Path) -> None:
    pack(vault).write_bytes(b"".join(pack(vault).read_bytes().splitlines(True)[1:]))


def tear_an_event(vault: Path) -> None:
    pack(vault).write_bytes(pack(vault).read_bytes()[:-20])


def double_an_event(vault: Path) -> None:
    pack(vault).write_bytes(pack(vault).read_bytes() + pack(vault).read_bytes().splitlines(True)[0])


def file_it_under_another_session(vault: Path) -> None:
    (vault / ".vaultd/done/codex-0123456789.jsonl").write_bytes(pack(vault).read_bytes().splitlines(True)[0])


def leave_it_waiting(vault: Path) -> None:
    (vault / ".vaultd/inbox/new/1795990000-x").write_bytes(b"vaultd-event 1\n\n")


def forget_the_page(vault: Path) -> None:
    page(vault).unlink()


def double_the_page(vault: Path) -> None:
    page(vault).with_name("again.md").write_bytes(page(vault).read_bytes())


def change_the_page(vault: Path) -> None:
    page(vault).write_bytes(page(vault).read_bytes().replace(b"greeting", b"meeting"))


def break_the_frontmatter(vault: Path) -> None:
    page(vault).write_bytes(page(vault).read_bytes().replace(b"\nkind:", b"\n'kind: ["))


def double_the_handoff(vault: Path) -> None:
    again = handoff(vault).parent.parent / "accepted" / handoff(vault).name
    again.write_bytes(handoff(vault).read_bytes())


def double_the_log_line(vault: Path) -> None:
    log(vault).write_bytes(log(vault).read_bytes() + log(vault).read_bytes().splitlines(True)[-1])


def withdraw_the_offer(vault: Path) -> None:
    next((vault / ".vaultd/outbox/at").rglob("claim")).unlink()


def prepare_another_text(vault: Path) -> None:
    next((vault / ".vaultd/outbox/at").rglob("session-start-json")).write_bytes(b"{}\n")


def leave_litter(vault: Path) -> None:
    (vault / ".git/.vaultd-tmp-1").touch()


def leave_a_lock(vault: Path) -> None:
    (vault / ".git/index.lock").touch()


def leave_a_change(vault: Path) -> None:
    (vault / "Home.md").write_text("changed\n")


def damage_the_repository(vault: Path) -> None:
    head = (vault / ".git/refs/heads/main").read_text().strip()
    (vault / ".git/objects" / head[:2] / head[2:]).unlink()


DAMAGE: dict[Callable[[Path], None], str] = {
    lose_an_event: "is in 0 places",
    tear_an_event: "is in 0 places",
    double_an_event: "stands twice in its pack",
    file_it_under_another_session: "is in 2 places",
    leave_it_waiting: "still waits",
    forget_the_page: "is missing",
    double_the_page: "2 pages are session",
    change_the_page: "differs:",
    break_the_frontmatter: "sessions/",
    double_the_handoff: "2 pages are handoff",
    double_the_log_line: "stands 2 times",
    withdraw_the_offer: "claim is missing",
    prepare_another_text: "session-start-json differs",
    leave_litter: "litter:",
    leave_a_lock: "a lock is left",
    leave_a_change: "git status",
    damage_the_repository: "git fsck",
}


@pytest.fixture
def good(world_of: WorldOf) -> World:
    """A vault in which everything was worked off."""
    world = world_of("done")
    assert world.reference
    world.restore()
    world.recover()
    return world


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_damage_is_found(good: World, damage: Callable[[Path], None]) -> None:
    assert faults(good.scratch, good.keys, good.reference) == []
    damage(good.scratch.vault)
    found = faults(good.scratch, good.keys, good.reference)
    assert any(DAMAGE[damage] in fault for fault in found), found


def test_a_lost_acknowledged_event_is_found(good: World) -> None:
    assert acknowledged(good.scratch.vault, good.keys) == []
    lose_an_event(good.scratch.vault)
    assert len(acknowledged(good.scratch.vault, good.keys)) == 1


def test_an_index_that_lags_is_found(good: World) -> None:
    def changed(scratch: Scratch) -> None:
        with closing(open_index(scratch.stores())) as index:
            index.apply([Drop("Home.md")])

    changed(good.scratch)
    assert any("known pages differ" in fault for fault in faults(good.scratch, good.keys, good.reference))
