"""Health is what is done, not that something runs."""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from collections.abc import Iterator

import pytest

from tests.http.served import Served, serving
from tests.scratch import Scratch
from tests.waiting import until
from vaultd.client import Exchange, HttpAnswer
from vaultd.engine.daemon import Daemon
from vaultd.engine.health import Pulse, health
from vaultd.engine.passes import Passes
from vaultd.store.inbox import Inbox


@pytest.fixture
def served(scratch: Scratch) -> Iterator[Served]:
    with serving(scratch) as served:
        yield served


def problems(served: Served) -> list[str]:
    told = served.ask("/health")
    assert told.status == (200 if told.json["ok"] else 503) and told.json["ok"] == (not told.json["problems"])
    found: list[str] = told.json["problems"]
    return found


def test_events_that_wait_too_long_make_it_unhealthy(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    served.scratch.deliver("claude-code", "UserPromptSubmit", {"session_id": "s", "prompt": "x"})
    assert problems(served) == []
    old = served.scratch.vault / ".vaultd/inbox/new" / f"{int(time.time()) - 3600}-{uuid.uuid4()}"
    served.scratch.deliver("claude-code", "UserPromptSubmit", {"session_id": "s", "prompt": "y"}, key=old.name)
    assert problems(served) == []  # what it is called says nothing: it came this moment
    monkeypatch.setattr("vaultd.engine.health._WAIT_S", -1.0)
    assert any("events wait" in problem for problem in problems(served))
    Passes(served.scratch.stores()).drain()
    assert problems(served) == []


def test_events_under_a_client_s_own_key_are_waited_for_as_well(served: Served) -> None:
    key = served.hook({"session_id": "s", "prompt": "x"}, ingest_key="k-1").json["key"]
    came = served.scratch.vault / ".vaultd/inbox/new" / key
    os.utime(came, (time.time() - 3600,) * 2)
    assert Inbox(served.scratch.vault / ".vaultd").waiting(time.time()).oldest_s > 3500


def test_a_loop_that_is_not_heard_of_makes_it_unhealthy(scratch: Scratch) -> None:
    now = [0.0]
    pulse = Pulse(lambda: now[0])
    assert not pulse.silent("events", 60)  # not begun
    pulse.beat("events")
    now[0] = 60.0
    assert not pulse.silent("events", 60)
    now[0] = 60.1
    assert pulse.silent("events", 60)
    pulse.beat("events")
    assert not pulse.silent("events", 60)


def test_wrong_settings_held_events_and_a_vault_that_is_away_make_it_unhealthy(served: Served) -> None:
    served.pulse.held = True
    assert any("settings" in problem for problem in problems(served))
    served.pulse.held = False
    (served.scratch.vault / ".vaultd/runs/trouble.json").write_text("{}")
    assert any("held back" in problem for problem in problems(served))
    (served.scratch.vault / ".vaultd/runs/trouble.json").unlink()
    assert problems(served) == []
    (served.scratch.vault / ".vaultd/vault-id").rename(served.scratch.vault / ".vaultd/away")
    assert problems(served) == ["The vault is away."]
    assert served.ask("/api/v1/search?project=nothing&query=x").status != 200  # costs what was kept open
    assert problems(served) == ["The vault is away."]
    assert str(served.scratch.base) not in served.ask("/health", tcp=True, token=None).body.decode()


def test_an_inbox_that_nothing_can_be_put_into_makes_it_unhealthy(served: Served) -> None:
    new = served.scratch.vault / ".vaultd/inbox/new"
    new.rename(new.with_name("away"))
    assert problems(served) == ["Events cannot be put into the inbox."]


@pytest.mark.slow
def test_a_daemon_whose_ingest_is_stuck_says_so(scratch: Scratch) -> None:
    scratch.run("up", check=True)
    told = json.loads((scratch.vault / ".vaultd/daemon.json").read_bytes())

    def health() -> HttpAnswer:
        return Exchange(told["socket"], 30).run("/health", b"", {}, "GET")

    try:
        assert health().status == 200
        with scratch.stores().write_lock:  # what holds it hangs
            scratch.deliver("claude-code", "UserPromptSubmit", {"session_id": "s", "prompt": "x"})
            until(lambda: health().status == 503, 90)
            assert json.loads(health().body)["problems"] == ["Events are not being taken in."]
        until(lambda: health().status == 200, 30)
    finally:
        scratch.run("down")


def test_it_is_told_while_all_other_questions_are_stuck(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()

    def stuck(*_: object, **__: object) -> dict[str, object]:
        assert go.wait(30)
        return {"project": "", "pages": []}

    monkeypatch.setattr(served.service, "recent", stuck)
    asking = [threading.Thread(target=served.ask, args=("/api/v1/recent?project=shop",)) for _ in range(12)]
    for thread in asking:
        thread.start()
    try:
        assert served.ask("/health").status == 200
    finally:
        go.set()
        for thread in asking:
            thread.join()


def test_a_daemon_that_never_comes_to_its_first_pass_is_unhealthy(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = scratch.init()
    monkeypatch.setattr("vaultd.engine.health._LOOPS", {"events": (0.3, "Events are not being taken in.")})
    daemon, ready = Daemon(stores), threading.Event()
    running = threading.Thread(target=daemon.run, kwargs={"ready": ready.set})
    with scratch.stores().write_lock:  # what holds it hangs
        running.start()
        assert ready.wait(20)
        until(lambda: not health(scratch.stores(), daemon.pulse).ok)
    daemon.stop(for_good=True)
    running.join(20)
    assert not running.is_alive()
