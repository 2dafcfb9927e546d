"""Events over HTTP: taken once, kept whatever dies, refused in words, never more at once than there is room for."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.http.served import TOKEN, Served, serving
from tests.scratch import Scratch, recorded
from tests.waiting import until
from vaultd.client import Exchange
from vaultd.core.event import Process
from vaultd.core.ids import KEY
from vaultd.engine.passes import Passes
from vaultd.engine.processes import alive
from vaultd.store import fs

PROMPT = {"session_id": "s-1", "prompt": "Count the okapis"}


@pytest.fixture
def served(scratch: Scratch) -> Iterator[Served]:
    with serving(scratch) as served:
        yield served


def drain(served: Served) -> None:
    Passes(served.scratch.stores()).drain()


def test_an_event_is_in_the_inbox_when_it_is_accepted(served: Served) -> None:
    told = served.hook({**PROMPT, "cwd": str(served.checkout)})
    assert told.status == 202 and KEY.match(told.json["key"])
    assert served.new() == [told.json["key"]]
    head, _, payload = (served.scratch.vault / ".vaultd/inbox/new" / told.json["key"]).read_bytes().partition(b"\n\n")
    rows = head.decode().split("\n")
    assert rows[0] == "vaultd-event 1" and "agent=claude-code" in rows and "event=UserPromptSubmit" in rows
    assert f"cwd={served.checkout}" in rows and f"root={served.checkout}" in rows and "via=http" in rows
    assert json.loads(payload) == {**PROMPT, "cwd": str(served.checkout)}
    drain(served)
    told = served.ask("/api/v1/sessions/s-1/observations?project=shop")
    assert [o["text"] for o in told.json["observations"]] == ["Count the okapis"]


def test_a_recorded_session_over_http_becomes_a_page(served: Served) -> None:
    native = str(uuid.uuid4())
    base = {"session_id": native, "cwd": str(served.checkout)}
    for name in ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"):
        payload = {**recorded("claude-code", name), **base}
        assert served.hook(payload, event=name).status == 202
    drain(served)
    pages = [p for p in served.scratch.vault.glob("projects/shop/sessions/*.md") if native in p.read_text("utf-8")]
    assert len(pages) == 1


def test_the_same_key_is_taken_once_and_another_body_under_it_is_a_conflict(served: Served) -> None:
    first = served.hook(PROMPT, ingest_key="k-1")
    assert first.status == 202 and first.json["key"].startswith("h")
    assert served.hook(PROMPT, ingest_key="k-1").json == first.json
    assert served.hook({**PROMPT, "prompt": "Another"}, ingest_key="k-1").status == 409
    assert served.hook({**PROMPT, "session_id": "s-2"}, ingest_key="k-1").json["key"] != first.json["key"]
    header = served.ask(
        "/hook?agent=claude-code&event=UserPromptSubmit",
        "POST",
        json.dumps(PROMPT),
        {"Idempotency-Key": "k-1"},
    )
    assert header.json == first.json
    assert len(served.new()) == 2


@pytest.mark.parametrize("ended", [False, True], ids=["open", "ended and packed"])
def test_a_key_is_known_after_its_event_was_taken_in(served: Served, ended: bool) -> None:
    first = served.hook(PROMPT, ingest_key="k-1")
    if ended:
        served.hook({"session_id": "s-1", "reason": "other"}, event="SessionEnd")
    drain(served)
    assert served.new() == []
    assert served.hook(PROMPT, ingest_key="k-1").json == first.json
    assert served.hook({**PROMPT, "prompt": "Another"}, ingest_key="k-1").status == 409
    assert served.new() == []


@pytest.mark.parametrize(
    ("query", "body", "words"),
    [
        ("agent=nobody&event=Stop", "{}", "Unknown agent"),
        ("agent=claude-code", "{}", "`event` is needed"),
        ("event=Stop", "{}", "`agent` is needed"),
        ("agent=claude-code&event=Stop&sesion_id=x", "{}", "There are: agent"),
        ("agent=claude-code&event=Stop&event=Start", "{}", "twice"),
        ("agent=claude-code&event=a%20b", "{}", "`event` must match"),
        ("agent=claude-code&event=%40close", '{"sid": "0123456789"}', "closed by vaultd"),
        ("agent=claude-code&event=Stop&ingest_key=a%2Fb", "{}", "`ingest_key` must match"),
        ("agent=claude-code&event=Stop&ingest_key=" + "k" * 65, "{}", "`ingest_key` must match"),
        ("agent=claude-code&event=Stop&at=yesterday", "{}", "`at` must be a time"),
        ("agent=claude-code&event=Stop&at=2026-11-30T10:00:00", "{}", "`at` must be a time"),
        ("agent=claude-code&event=Stop", "", "not JSON"),
        ("agent=claude-code&event=Stop", "{", "not JSON"),
        ("agent=claude-code&event=Stop", "[]", "must be a JSON object"),
        ("agent=claude-code&event=Stop", "\udcff", "not JSON"),
        ("agent=claude-code&event=Stop", "[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_event_is_refused_in_words(served: Served, query: str, body: str, words: str) -> None:
    told = served.ask(f"/hook?{query}", "POST", body.encode("utf-8", "surrogateescape"))
    assert told.status == 400 and words in told.json["error"]["message"]
    assert served.new() == []


@pytest.mark.parametrize("at", ["1960-01-01T00:00:00Z", "0001-01-01T00:00:00%2B14:00", "9999-12-31T23:59:59-14:00"])
def test_an_event_of_any_time_is_taken_in(served: Served, at: str) -> None:
    told = served.hook({**PROMPT, "cwd": str(served.checkout)}, at=at)
    assert told.status == 202 and KEY.match(told.json["key"])
    drain(served)
    assert served.new() == []


def test_a_body_in_another_encoding_than_utf_8_is_refused(served: Served) -> None:
    assert served.hook(json.dumps(PROMPT).encode("utf-16")).status == 400
    assert served.hook(json.dumps(PROMPT).encode("utf-8-sig")).status == 202
    assert len(served.new()) == 1


def test_a_folder_that_is_kept_out_leaves_nothing(served: Served) -> None:
    (served.checkout / ".vaultd.toml").write_text("enabled = false\n")
    told = served.hook({**PROMPT, "cwd": str(served.checkout)})
    assert told.status == 202 and told.json == {"key": ""} and served.new() == []


def test_while_recording_is_paused_nothing_is_kept_wherever_it_comes_from(served: Served) -> None:
    (served.scratch.vault / ".vaultd/paused").touch()
    for more in ({}, {"cwd": str(served.checkout)}, {"cwd": "C:\\work"}):
        assert served.hook({**PROMPT, **more}).json == {"key": ""}
    assert served.new() == []


def test_in_allow_list_mode_an_event_from_nowhere_is_kept_out(scratch: Scratch) -> None:
    with serving(scratch) as served:
        settings = scratch.home / ".config/vaultd/config.toml"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text("[capture]\nallow_list = true\n")
        assert served.hook(PROMPT).json == {"key": ""}
        (served.checkout / ".vaultd.toml").write_text("")
        assert served.hook({**PROMPT, "cwd": str(served.checkout)}).json["key"]


def test_a_folder_whose_path_no_system_knows_is_refused_at_once(served: Served) -> None:
    before = time.monotonic()
    told = served.hook({**PROMPT, "cwd": "/a" * 1_000_000})
    assert told.status == 400 and "4096 bytes" in told.json["error"]["message"] and served.new() == []
    assert time.monotonic() - before < 5  # going up through all of them would take hours


def test_an_event_is_written_where_hooks_write_theirs(served: Served) -> None:
    inbox = served.scratch.vault / ".vaultd/inbox"
    (inbox / "tmp").rmdir()
    (inbox / "tmp").write_bytes(b"")  # in the way: nothing can be written
    told = served.hook(PROMPT)
    assert told.status == 500 and told.json["error"]["code"] == "vaultd" and served.new() == []
    (inbox / "tmp").unlink()
    assert served.hook(PROMPT).status == 202 and list((inbox / "tmp").iterdir()) == []


def test_of_two_bodies_under_one_key_at_the_same_moment_one_is_a_conflict(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = fs.publish

    def late(*args: Any, **more: Any) -> None:
        """The other one is quicker, and taken in already."""
        monkeypatch.setattr(fs, "publish", publish)
        assert served.hook({**PROMPT, "prompt": "Another"}, ingest_key="k-1").status == 202
        drain(served)
        publish(*args, **more)

    monkeypatch.setattr(fs, "publish", late)
    assert served.hook(PROMPT, ingest_key="k-1").status == 409
    drain(served)
    told = served.ask("/api/v1/sessions/s-1/observations?project=shop").json
    assert [o["text"] for o in told["observations"]] == ["Another"] and served.new() == []


def test_values_of_an_event_cannot_forge_its_header(served: Served) -> None:
    told = served.hook(PROMPT, cwd="/a%0Aagent=evil%0A%0A", session_id="x%0Aroot=/evil")
    head = (served.scratch.vault / ".vaultd/inbox/new" / told.json["key"]).read_bytes().partition(b"\n\n")[0]
    assert b"\nagent=evil" not in head and b"\nroot=/evil" not in head and b"%0Aagent=evil" in head


def batch(served: Served, entries: object) -> Any:
    told = served.ask("/hook/batch", "POST", json.dumps(entries))
    return told.status, told.json


def test_a_batch_is_taken_in_its_order_until_one_cannot_be(served: Served) -> None:
    def entry(key: str, body: object = PROMPT) -> dict[str, object]:
        return {"url": f"http://x/hook?agent=claude-code&event=UserPromptSubmit&ingest_key={key}", "body": body}

    other = {"agent": "codex", "event": "Stop", "session_id": "c-1", "body": {"x": 1}}
    again = entry("a", {**PROMPT, "prompt": "Another"})
    status, told = batch(served, [entry("a"), other, entry("b"), entry("a"), again, entry("c")])
    assert (status, told["accepted_indices"], told["failed_index"]) == (202, [0, 1, 2, 3], 4)
    assert told["error"]["code"] == "conflict" and len(served.new()) == 3
    status, told = batch(served, [entry("d"), {"url": "http://x/hook?agent=nobody&event=Stop", "body": {}}, entry("e")])
    assert (status, told["accepted_indices"], told["failed_index"]) == (202, [0], 1)
    assert "Unknown agent" in told["error"]["message"]
    deep = '[{"agent":"codex","event":"Stop","body":' + "[" * 960 + "]" * 960 + "}]"
    assert served.ask("/hook/batch", "POST", deep).status == 400
    before = served.new()
    wrongs: list[object] = [
        {},
        [1],
        [{"url": 1, "body": {}}],
        [{"agent": "codex", "event": "Stop"}],
        [other] * 257,
        "x",
    ]
    for wrong in wrongs:
        status, told = batch(served, wrong)
        assert status == 400
    assert served.new() == before
    assert batch(served, []) == (202, {"accepted": 0, "accepted_indices": [], "failed_index": None})


def test_beyond_the_room_for_hooks_clients_are_told_to_come_back(scratch: Scratch) -> None:
    with serving(scratch, at_work=2) as served:
        inside, go = threading.Semaphore(0), threading.Event()
        receive = served.service.deliver

        def slow(hook: Any) -> str:
            inside.release()
            assert go.wait(30)
            return receive(hook)

        served.service.deliver = slow  # type: ignore[method-assign]  # a disk that takes its time
        answers: list[int] = []
        threads = [
            threading.Thread(target=lambda n=n: answers.append(served.hook({**PROMPT, "n": n}).status))
            for n in range(2)
        ]
        for thread in threads:
            thread.start()
        for _ in threads:
            assert inside.acquire(timeout=30)
        told = served.hook(PROMPT)
        assert told.status == 429 and told.headers["retry-after"]
        assert served.ask("/health").status == 200
        go.set()
        for thread in threads:
            thread.join()
        assert answers == [202, 202] and served.hook(PROMPT).status == 202
        assert len(served.new()) == 3


def test_a_backlog_that_only_grows_is_not_added_to(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vaultd.engine.local._BACKLOG", 0)
    monkeypatch.setattr("vaultd.engine.local._BACKLOG_S", 0.0)
    assert served.hook(PROMPT).status == 202
    assert served.hook({**PROMPT, "n": 2}).status == 429
    drain(served)
    assert served.hook({**PROMPT, "n": 2}).status == 202


def test_what_was_accepted_survives_the_daemon_s_death(scratch: Scratch) -> None:
    scratch.run("up", check=True)
    told = json.loads((scratch.vault / ".vaultd/daemon.json").read_bytes())
    bodies = [{"session_id": "s", "prompt": f"okapi {n}"} for n in range(20)]
    target = "/hook?agent=claude-code&event=UserPromptSubmit"
    with scratch.stores().write_lock:  # so that nothing is taken in: all that there is of them are their files
        keys = [
            json.loads(Exchange(told["socket"], 30).run(target, json.dumps(body).encode(), {}).body)["key"]
            for body in bodies
        ]
        os.kill(told["pid"], signal.SIGKILL)
        until(lambda: not alive(Process(told["pid"], told["start"], told["boot"])))
        assert sorted(p.name for p in (scratch.vault / ".vaultd/inbox/new").iterdir()) == sorted(keys)
    scratch.run("ingest", check=True)
    done = (scratch.vault / ".vaultd/done").rglob("*")
    text = "".join(path.read_text("utf-8") for path in done if path.is_file())
    assert all(f"okapi {n}" in text for n in range(20))


def test_an_event_whose_session_is_cut_off_with_its_end_is_known_again(served: Served) -> None:
    long = b'{"prompt": "' + b"x" * (8 * 1024 * 1024) + b'", "session_id": "at-the-end"}'
    first = served.hook(long, ingest_key="k-1")
    drain(served)
    assert served.hook(long, ingest_key="k-1").json == first.json and served.new() == []
    assert served.ask("/api/v1/sessions/at-the-end/observations?project=shop").json["total"] == 1


def test_bodies_have_so_much_room_together(scratch: Scratch) -> None:
    with serving(scratch, bodies_bytes=1_000_000) as served:
        head = f"POST /hook?agent=claude-code&event=UserPromptSubmit HTTP/1.1\r\nHost: localhost:{served.port}\r\n"
        head += f"Authorization: Bearer {TOKEN}\r\nContent-Length: 900000\r\n\r\n"
        with socket.create_connection(("127.0.0.1", served.port), 10) as link:
            link.sendall(head.encode())
            until(lambda: served.hook({**PROMPT, "prompt": "x" * 200_000}).status == 429)
            assert served.hook({**PROMPT, "prompt": "short"}).status == 202
        until(lambda: served.hook({**PROMPT, "prompt": "x" * 200_000}).status == 202)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["session_id", "cwd", "prompt", "transcript_path", "hook_event_name", "tool_name", "tool_input"]
)
WORDS = st.sampled_from(["/", "/a\0b", "/../..", "\ud800", "/\udcff", "x" * 300, "C:\\x", "@close", "\u202e"])
PAYLOADS = st.dictionaries(NAMES, JSON | WORDS | st.text(max_size=20), max_size=4)
VALUES = WORDS | st.text(max_size=12) | st.sampled_from(["codex", "claude-code", "Stop", "9999-12-31T23:59:59+00:00"])
QUERIES = st.dictionaries(
    st.sampled_from(["agent", "event", "session_id", "cwd", "at", "ingest_key", "odd"]), VALUES, max_size=5
)
WHOLE = st.fixed_dictionaries({"agent": st.sampled_from(["codex", "claude-code"]), "event": st.just("Stop")})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(WHOLE | st.just({}), QUERIES, PAYLOADS | JSON, st.binary(max_size=4))
def test_no_event_is_a_fault(
    served: Served, whole: dict[str, str], query: dict[str, str], payload: object, tail: bytes
) -> None:
    asked = {**query, **whole}
    pairs = urlencode([(name, value.encode("utf-8", "surrogatepass")) for name, value in asked.items()])
    body = json.dumps(payload).encode()
    for data in (body, body + tail):
        assert served.ask(f"/hook?{pairs}", "POST", data).status in (202, 400, 409)
    for entries in ([{**asked, "body": payload}], [{"url": f"x?{pairs}", "body": payload}], payload):
        assert served.ask("/hook/batch", "POST", json.dumps(entries)).status in (202, 400, 409)
    assert served.ask(f"/handoff?{pairs}").status in (200, 400)
    drain(served)
    assert served.new() == []
