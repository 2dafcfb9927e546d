"""Files that people have on disk: what format 1 wrote is read by today's code, and what is newer is refused in words.

`tests/data/formats/1` was made once by the product and is frozen: a vault with its room, this machine's own files, an
index's. A later format gets a folder of its own beside it; these files, and what is said of them here, stay.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
from datetime import datetime
from pathlib import Path

import pytest

from tests.scratch import Scratch
from tests.store.indexes import found
from vaultd.agents import load_agents, normalise, render
from vaultd.config import load, places
from vaultd.core import frontmatter
from vaultd.core.event import Event, Kind, Process, ToolCall, parse_delivery
from vaultd.core.handoff import Handoff, parse_handoff
from vaultd.core.ids import Key, Sid
from vaultd.core.observation import observation_json, parse_observation
from vaultd.core.project import Known, known_project
from vaultd.core.render import is_unedited
from vaultd.core.sanitize import line, observe, redact
from vaultd.engine import daemon, processes
from vaultd.engine.connecting import single_plan
from vaultd.engine.daemon import Daemon
from vaultd.engine.history import History
from vaultd.engine.install import is_wired
from vaultd.engine.installed import Installed, Row
from vaultd.engine.journal import append_line
from vaultd.engine.parts import hook_parts
from vaultd.engine.passes import Passes
from vaultd.engine.processes import told_process
from vaultd.engine.revise import Revised
from vaultd.engine.seen import Seen
from vaultd.engine.setup import remember
from vaultd.engine.stores import Stores
from vaultd.engine.uninstall import uninstall_plan
from vaultd.errors import NoVaultError, RefusedError
from vaultd.store import fs
from vaultd.store.builds import Builds
from vaultd.store.git import Repo
from vaultd.store.inbox import Inbox, SessionName
from vaultd.store.index import Index, IndexDoc, Put
from vaultd.store.outbox import Claim, Offer, Outbox
from vaultd.store.vault import Vault

OLD = Path(__file__).parent / "data/formats/1"
ROOM = OLD / "vault/.vaultd"
PROJECT = OLD / "vault/projects/parser"
BOOT = "3f6a8c1e-5b2d-4e7f-9a01-c2d3e4f5a6b7"
HEAD = "71e2424b3e3e531cff242e20e7447ded2631bff9"

CLOSED = SessionName("claude-code", Sid("5f8fe2cd7b"))
RESUMED = SessionName("claude-code", Sid("435ac01609"))
LIVING = SessionName("codex", Sid("c32cf67ba8"))
NATIVE = {
    CLOSED: "0b9c2a5e-7d31-4f0e-9a6b-2f1f6f0c7e11",
    RESUMED: "c4d5e6f7-0a1b-4c2d-8e3f-405162738495",
    LIVING: "019a1b2c-3d4e-7f50-8a61-72839405a6b7",
}
EVENT = ROOM / "inbox/new/1795943200-6b1f0000-0000-4000-8000-00000000e001"
FAILED = "1795941660-6b1f0000-0000-4000-8000-00000000f001"


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A copy of the old room."""
    return Path(shutil.copytree(ROOM, tmp_path / "room"))


@pytest.fixture
def old(scratch: Scratch) -> Scratch:
    """The old vault on the machine that it was made on, as far as that matters."""
    shutil.copytree(OLD / "vault", scratch.vault)
    scratch.extra["VAULTD_HOST"] = "workstation"
    scratch.now = datetime.fromisoformat("2026-11-29T12:00:00+01:00")
    return scratch


def test_the_examples_are_as_they_were_made() -> None:
    rows = [row.split("  ") for row in (OLD / "SHA256SUMS").read_text("utf-8").splitlines()]
    sums = {name: digits for digits, name in rows}
    found = {
        path.relative_to(OLD).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in OLD.rglob("*")
        if path.is_file() and path.name != "SHA256SUMS"
    }
    assert found == sums


# Events


def test_an_event_file() -> None:
    delivery = parse_delivery(Key(EVENT.name), EVENT.read_bytes(), 5)
    assert delivery is not None
    folder = "/home/person/src/caf\udce9 100%\nreally\r"
    header = dict(delivery.header)
    assert header.pop("proc").startswith("4720 (codex) S 4719 4720 ")
    assert header.pop("pproc").startswith("4719 (my shell) (x) S 1 4719 ")
    assert header == {
        "handoff": "5f8fe2cd7b-g1",
        "agent": "codex",
        "event": "SessionStart",
        "at": "2026-11-29T10:06:40+01:00",
        "cwd": f"{folder}/sub",
        "root": folder,
        "gitfile": "gitdir: /home/person/src/parser/.git/worktrees/caf\udce9-100%-really-",
        "run": "run-20261129-0001",
        "workstream": "ws-parser",
        "boot": BOOT,
        "head": HEAD,
        "branch": "side",
        "remote": "git@github.com:example/parser.git",
    }
    assert json.loads(delivery.payload)["session_id"] == NATIVE[LIVING]
    event = normalise(load_agents()["codex"], delivery, datetime.now().astimezone())
    assert isinstance(event, Event)
    assert (event.kind, event.sid, event.native) == (Kind.START, LIVING.sid, NATIVE[LIVING])
    assert (event.cwd, event.root, event.head) == (f"{folder}/sub", folder, HEAD)
    assert (event.handoff, event.run, event.workstream) == ("5f8fe2cd7b-g1", "run-20261129-0001", "ws-parser")
    assert event.at == datetime.fromisoformat("2026-11-29T10:06:40+01:00")


def test_a_header_key_of_another_release_is_passed_over() -> None:
    data = EVENT.read_bytes().replace(b"agent=", b"future=x\nagent=", 1)
    before, after = parse_delivery(Key(EVENT.name), EVENT.read_bytes()), parse_delivery(Key(EVENT.name), data)
    assert before is not None and after is not None
    agent, now = load_agents()["codex"], datetime.now().astimezone()
    assert normalise(agent, after, now) == normalise(agent, before, now)


def test_an_event_of_a_newer_format_waits_in_failed_until_vaultd_is_newer(old: Scratch) -> None:
    new = old.vault / ".vaultd/inbox/new" / EVENT.name
    new.write_bytes(EVENT.read_bytes().replace(b"vaultd-event 1", b"vaultd-event 2", 1))
    old.run("init", check=True)
    old.run("ingest", check=True)
    inbox = Inbox(old.vault / ".vaultd")
    assert EVENT.name in inbox.failures()
    assert "newer format 2" in inbox.failure_reason(EVENT.name) and "update vaultd" in inbox.failure_reason(EVENT.name)
    kept = (inbox.failed / EVENT.name).read_bytes()
    assert kept.startswith(b"vaultd-event 2\nhandoff=5f8fe2cd7b-g1\n") and b"cwd=" in kept  # all that a later one needs
    (inbox.failed / EVENT.name).write_bytes(kept.replace(b"vaultd-event 2", b"vaultd-event 1", 1))
    old.run("failed", "retry", EVENT.name, check=True)
    old.run("ingest", check=True)
    assert EVENT.name in {o.event.key for o in inbox.observations(LIVING)}


# Observations


def observation_files() -> list[Path]:
    return sorted(path for path in (ROOM / "done").rglob("*") if path.is_file() and not path.name.startswith("keys-"))


@pytest.mark.parametrize("path", observation_files(), ids=lambda path: path.name)
def test_observations_are_written_again_byte_for_byte(path: Path) -> None:
    lines = path.read_bytes().splitlines()
    assert lines and [observation_json(parse_observation(line)) for line in lines] == lines


def test_an_observation() -> None:
    found = parse_observation((ROOM / f"done/{LIVING}/1795944120-6b1f0000-0000-4000-8000-000000000013").read_bytes())
    said = "Exit code: 0\nWall time: 1 seconds\nOutput:\n5 passed in 0.10s\n"
    expected = Event(
        key=Key("1795944120-6b1f0000-0000-4000-8000-000000000013"),
        agent="codex",
        name="PostToolUse",
        kind=Kind.TOOL,
        at=datetime.fromisoformat("2026-11-29T10:22:00+01:00"),
        sid=LIVING.sid,
        native=NATIVE[LIVING],
        cwd="/home/person/src/parser",
        root="/home/person/src/parser",
        turn="turn-1",
        tool=ToolCall("Bash", "shell", "call_1", command="python -m pytest", output=said),
        mtime_ns=1795944120123456789,
    )
    assert found.event == expected
    assert observe(found.event) == found  # what was made safe then is safe today


def test_folders_packs_and_remembered_keys(room: Path) -> None:
    inbox = Inbox(room)
    assert inbox.packs() == [RESUMED, CLOSED]
    assert [name for name in inbox.sessions() if name.agent == "codex"] == [LIVING]
    kinds = [o.event.kind.value for o in inbox.observations(CLOSED)]
    assert kinds == ["session-start", "prompt", "tool", "tool", "turn-end", "session-end"]
    assert len(inbox.observations(RESUMED)) == 10 and len(inbox.observations(LIVING)) == 4
    first = inbox.observations(CLOSED)[0].event
    assert first.client == Process(4711, 88123, BOOT) and first.remote == "git@github.com:example/parser.git"
    for key in ("1795860000-6b1f0000-0000-4000-8000-00000000aa01", "h0123456789abcdef0123456789abcdef"):
        assert inbox.is_done(LIVING, key)
    assert inbox.is_done(CLOSED, first.key) and not inbox.is_done(LIVING, first.key)


def test_an_observation_of_another_release(room: Path) -> None:
    path = ROOM / f"done/{LIVING}/1795944060-6b1f0000-0000-4000-8000-000000000012"
    fields = json.loads(path.read_bytes())
    more = {**fields, "future": {"a": [1]}, "score": 0.5}
    assert parse_observation(json.dumps(more).encode()) == parse_observation(path.read_bytes())
    with pytest.raises(ValueError, match="format 2, this vaultd reads up to 1: update vaultd"):
        parse_observation(json.dumps({**fields, "vaultd-observation": 2}).encode())


# The sentinel


def test_the_sentinel(tmp_path: Path) -> None:
    shutil.copytree(OLD / "vault", tmp_path / "old")
    presence = Vault(tmp_path / "old").presence()
    assert presence.here and presence.id == "5d0f3c9a1b7e4c558e2190ab34cd56ef"
    Vault(tmp_path / "new").initialise(presence.id)
    assert (tmp_path / "new/.vaultd/vault-id").read_bytes() == (ROOM / "vault-id").read_bytes()


def test_a_vault_of_a_newer_format_is_left_alone(old: Scratch) -> None:
    sentinel = old.vault / ".vaultd/vault-id"
    sentinel.write_text("vaultd-vault 2\nwhatever it says\n", "utf-8")
    before = {p: p.read_bytes() for p in old.vault.rglob("*") if p.is_file()}
    with pytest.raises(NoVaultError, match="newer vaultd"):
        old.stores()
    for command in ("status", "ingest", "search x", "up", "init"):
        done = old.run(*command.split())
        assert done.returncode in (3, 6), command
        assert "made by a newer vaultd, update yours" in done.stderr and "init" not in done.stderr, command
    assert {p: p.read_bytes() for p in old.vault.rglob("*") if p.is_file()} == before


# What the hook reads


def test_the_event_map() -> None:
    lines = {p.name: p.read_text("utf-8") for p in (ROOM / "outbox/map").iterdir()}
    assert lines["claude-code.SessionStart"] == "session-start-json start -\n"
    assert lines["claude-code.SessionEnd"] == lines["codex.Stop"] == "- - drain\n"


def test_claims_and_prepared_text_are_written_again_byte_for_byte(tmp_path: Path) -> None:
    base = "/home/person/vaultd/projects"
    claims = {
        "parser": Claim(
            f"{base}/parser/handoffs/open/435ac01609-g1.md",
            f"{base}/parser/handoffs/accepted/435ac01609-g1.md",
            line(NATIVE[RESUMED], 100),
        ),
        "lexer": Claim(
            f"{base}/lexer/handoffs/open/5fc86ad08d-g1.md",
            f"{base}/lexer/handoffs/accepted/5fc86ad08d-g1.md",
            line("d0e1f2a3-b4c5-4d6e-8f70-8192a3b4c5d6", 100),
            f"4713 99001 {BOOT}",
        ),
    }
    outbox = Outbox(tmp_path)
    outbox.write_map(
        {p.name: p.read_text("utf-8").strip() for p in (ROOM / "outbox/map").glob("*.*")},
        "/home/person/.local/bin/vaultd",
    )
    for name, claim in claims.items():
        checkout = f"/home/person/src/{name}"
        prepared = (ROOM / f"outbox/at{checkout}/@vaultd/session-start-json").read_bytes()
        text = json.loads(prepared)["hookSpecificOutput"]["additionalContext"]
        assert text.startswith("<untrusted-history>\n") and text.endswith("</untrusted-history>\n")
        outbox.offer(
            checkout,
            "",
            Offer(claim, {"session-start-json": render(load_agents()["codex"], "session-start-json", redact(text))}),
        )
    made = {p.relative_to(tmp_path): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    assert made == {p.relative_to(ROOM): p.read_bytes() for p in (ROOM / "outbox").rglob("*") if p.is_file()}


@pytest.fixture
def told(room: Path) -> Path:
    """The old daemon's file in a room that is where it says."""
    path = room / "daemon.json"
    path.write_text(path.read_text("utf-8").replace("/home/person/vaultd", str(room.parent)), "utf-8")
    return path


def test_the_daemons_file(room: Path, told: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (ROOM / "daemon.json").read_text("utf-8").split("\n")
    for row in ('  "pid": 4242,', '  "start": 77001,', f'  "boot": "{BOOT}",'):  # the hook reads whole lines
        assert row in rows
    assert told_process(room) is None  # another boot
    monkeypatch.setattr(processes, "boot_id", lambda: BOOT)
    monkeypatch.setattr(processes, "alive", lambda process: process == Process(4242, 77001, BOOT))
    assert told_process(room) == Process(4242, 77001, BOOT)
    told.write_text(json.dumps({**json.loads(told.read_bytes()), "future": [1]}, indent=2), "utf-8")
    assert told_process(room) == Process(4242, 77001, BOOT)


def test_the_daemons_file_is_written_again_byte_for_byte(old: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    written: dict[Path, bytes] = {}
    monkeypatch.setattr(daemon, "own_process", lambda boot: Process(4242, 77001, BOOT))
    monkeypatch.setattr(daemon, "__version__", "0.1.0")
    monkeypatch.setattr(fs, "write_private", lambda path, data: written.update({path: data}))
    stores: Stores = dataclasses.replace(old.stores(), vault=Vault(Path("/home/person/vaultd")))
    Daemon(stores)._announce()
    assert written == {Path("/home/person/vaultd/.vaultd/daemon.json"): (ROOM / "daemon.json").read_bytes()}


def test_whoever_runs_the_daemon_it_runs(room: Path, told: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks of any release look at three lines and at no number; a command must come to the same answer."""
    monkeypatch.setattr(processes, "boot_id", lambda: BOOT)
    monkeypatch.setattr(processes, "alive", lambda process: True)
    told.write_text(told.read_text("utf-8").replace('"vaultd-daemon": 1', '"vaultd-daemon": 2'), "utf-8")
    assert told_process(room) == Process(4242, 77001, BOOT)


# Pages


@pytest.mark.parametrize("path", sorted((OLD / "vault/projects").rglob("*.md")), ids=lambda path: path.name)
def test_frontmatter_is_written_again_byte_for_byte(path: Path) -> None:
    data = path.read_bytes()
    meta, body = frontmatter.parse(data)
    assert meta.error is None
    assert (frontmatter.dump(meta.values) if meta.has else "") + body == data.decode()


def test_a_session_page() -> None:
    data = (PROJECT / f"sessions/2026-11-29-{CLOSED}.md").read_bytes()
    meta, body = frontmatter.parse(data)
    assert meta.values == {
        "id": "claude-code-5f8fe2cd7b",
        "kind": "session",
        "tier": "episodic",
        "title": 'Read blank lines as the end of a block: "yes", it\'s 100% sure',
        "summary": "1 prompt, 2 tool calls, 1 file changed, 1 error, 5 minutes; "
        "last test run failed (1 failed, 4 passed).",
        "agent": "claude-code",
        "session_id": NATIVE[CLOSED],
        "project": "p-26f87fb2a58c",
        "host": "workstation",
        "cwd": "/home/person/src/parser",
        "subdir": "",
        "branch": "main",
        "head": HEAD,
        "started": "2026-11-29T10:00:00+01:00",
        "ended": "2026-11-29T10:05:00+01:00",
        "closed_by": "prompt_input_exit",
        "observations": 6,
        "files_touched": ["src/parser.py"],
        "generation": 1,
        "generated": frontmatter.body_hash(body),
        "created": "2026-11-29T10:00:00+01:00",
        "updated": "2026-11-29T10:05:00+01:00",
        "tags": ["session"],
    }
    assert is_unedited(data)


def test_a_session_page_that_a_person_edited_before_it_was_resumed() -> None:
    data = (PROJECT / f"sessions/2026-11-29-{RESUMED}.md").read_bytes()
    values, body = frontmatter.parse(data)[0].values, frontmatter.parse(data)[1]
    assert not is_unedited(data)
    assert (values["generation"], values["observations"], values["closed_by"]) == (2, 10, "other")
    assert "\nMy own note: ask Ada about the tree.\n\n## Resumed 2026-11-29 10:30 +01:00\n" in body


@pytest.mark.parametrize(
    ("state", "name", "expected"),
    [
        (
            "open",
            "435ac01609-g2",
            Handoff(
                "",
                "",
                from_agent="claude-code",
                from_session=NATIVE[RESUMED],
                next_steps=("Fix `test_blank`.", "Release 1.4."),
            ),
        ),
        (
            "open",
            "c32cf67ba8-g1",
            Handoff(
                "", "", from_agent="codex", from_session=NATIVE[LIVING], provisional=True, next_steps=("Release 1.4.",)
            ),
        ),
        (
            "accepted",
            "5f8fe2cd7b-g1",
            Handoff(
                "",
                "",
                from_agent="claude-code",
                from_session=NATIVE[CLOSED],
                accepted_at="2026-11-29T10:06:00+01:00",
                accepted_by="codex-c32cf67ba8",
                open_questions=("Should comments be kept?",),
                next_steps=("Fix `test_blank`.", "Release 1.4."),
            ),
        ),
        (
            "expired",
            "435ac01609-g1",
            Handoff(
                "",
                "",
                from_agent="claude-code",
                from_session=NATIVE[RESUMED],
                open_questions=("Should comments be kept?",),
                next_steps=("Fix `test_blank`.", "Release 1.4."),
            ),
        ),
        (
            "open",
            "m-k3v9x0q7tz",
            Handoff(
                "",
                "",
                from_agent="other",
                open_questions=("Who reviews it?",),
                next_steps=("Write the page on blocks",),
            ),
        ),
    ],
)
def test_handoff_pages(state: str, name: str, expected: Handoff) -> None:
    path = PROJECT / f"handoffs/{state}/{name}.md"
    found = parse_handoff(path.read_bytes(), f"projects/parser/handoffs/{state}/{name}.md")
    assert (found.id, found.project, found.edited, found.shared) == (name, "p-26f87fb2a58c", False, False)
    compared = (
        "from_agent",
        "from_session",
        "provisional",
        "accepted_at",
        "accepted_by",
        "open_questions",
        "next_steps",
    )
    assert {key: getattr(found, key) for key in compared} == {key: getattr(expected, key) for key in compared}
    assert (
        found.created is not None
        and found.created.isoformat() == frontmatter.parse(path.read_bytes()).meta.values["created"]
    )
    assert is_unedited(path.read_bytes()) and found.sections


def test_a_projects_page() -> None:
    data = (PROJECT / "project.md").read_bytes()
    expected = Known(
        "p-26f87fb2a58c",
        "projects/parser",
        "parser",
        ("parser",),
        ("github.com/example/parser", f"root:{HEAD}"),
        ("/home/person/src/parser",),
    )
    assert known_project("projects/parser", data, "workstation") == expected
    more = data.replace(b"kind: project\n", b"kind: project\nfuture: [1, {a: b}]\n", 1)
    assert known_project("projects/parser", more, "workstation") == expected


def test_a_log_page(old: Scratch) -> None:
    stores = old.stores()
    path = old.vault / "projects/parser/log-2026-11.md"
    rows = path.read_text("utf-8").splitlines()
    text, _, key = rows[-1].removeprefix("- ").rpartition(" ^")
    at = datetime.fromisoformat("2026-11-29T10:33:00+01:00")
    assert append_line(stores, "projects/parser", at, line(text, 400), key) is Revised.SAME
    assert append_line(stores, "projects/parser", at, line(text, 400), "1795944999-a") is Revised.WRITTEN
    assert path.read_text("utf-8").splitlines() == [*rows, f"- {text} ^1795944999-a"]


# What failed, what was heard of, what was installed


def test_a_failed_event_and_its_reason(room: Path) -> None:
    inbox = Inbox(room)
    reason = "unknown agent 'nobody'; known are claude-code, codex"
    assert inbox.failures() == [FAILED] and inbox.failure_reason(FAILED) == reason
    path = room / f"inbox/failed/{FAILED}.reason.json"
    before = path.read_bytes()
    data = (inbox.failed / FAILED).read_text("utf-8")
    inbox.reject(FAILED, redact(data), line(reason, 500))
    assert path.read_bytes() == before
    path.write_text(json.dumps({**json.loads(before), "vaultd-failed": 2, "future": 1}), "utf-8")
    assert inbox.failure_reason(FAILED) == reason
    inbox.retry(FAILED)
    delivery = inbox.read(FAILED)
    assert not isinstance(delivery, bytes | None) and delivery.header["event"] == "Whatever"


def test_what_was_heard_of(room: Path) -> None:
    heard = Seen(room, Inbox(room)).read()
    assert heard["codex"]["Stop"] == {"last": "2026-11-29T10:23:00+01:00", "count": 1}
    assert heard["claude-code"]["SessionEnd"] == {"last": "2026-11-29T10:33:00+01:00", "count": 3}
    told = json.loads((room / "runs/seen.json").read_bytes())
    (room / "runs/seen.json").write_text(json.dumps({**told, "vaultd-seen": 2, "agents": "unknown"}), "utf-8")
    again = Seen(room, Inbox(room)).read()  # derived: counted anew
    assert again["codex"]["Stop"] == heard["codex"]["Stop"]


def test_what_stood_in_the_way_and_what_the_person_accepted(old: Scratch) -> None:
    old.run("init", check=True)
    stores = old.stores()
    assert History(stores)._consent == "3"
    trouble = "[Errno 13] Permission denied: '/home/person/vaultd/projects/parser/sessions'"
    assert f"Events are held back: {trouble}" in old.json("status", "--json")["problems"]
    path = old.vault / ".vaultd/runs/trouble.json"
    before = path.read_bytes()
    path.unlink()
    Passes(stores)._tell({trouble})
    assert path.read_bytes() == before


def home_with_record(tmp_path: Path) -> tuple[Path, Path]:
    home = Path(shutil.copytree(OLD / "home", tmp_path / "home"))
    return home, home / ".local/share/vaultd/installed.json"


ROWS = [
    Row(
        "claude-code",
        "/home/person/.claude/settings.json",
        "b6184add26fd1910773744743c0da7ef7bab87f6a68b45a8854d26a58aff2069",
        "d8cefefa12a3623f7a29fc1a91af365820898a373086918dfcb5ec8a1395d849",
        "/home/person/.claude/settings.json.bak-1795942687",
        "2026-11-29T09:58:07+01:00",
    ),
    Row(
        "codex",
        "/home/person/.codex/hooks.json",
        None,
        "5a931e60220db75cb736c808d4bfc02cf34cdf04706c4033c2a036c9c84adf8e",
        None,
        "2026-11-29T09:58:07+01:00",
        ("/home/person/.codex",),
    ),
]


def test_the_record_of_what_was_installed(tmp_path: Path) -> None:
    home, path = home_with_record(tmp_path)
    before = path.read_bytes()
    record = Installed.of(places({"HOME": str(home)}))
    assert record.rows == ROWS
    assert record.since("codex") == datetime.fromisoformat("2026-11-29T09:58:07+01:00")
    again = Installed(path)
    for row in record.rows:
        again.add(row)
    assert path.read_bytes() == before
    told = json.loads(before)
    rows = [{**row, "future": {"a": 1}} for row in told["changes"]]
    path.write_text(json.dumps({**told, "changes": rows, "more": 1}), "utf-8")
    assert Installed.of(places({"HOME": str(home)})).rows == ROWS


def test_a_record_of_a_newer_format_is_neither_used_nor_lost(tmp_path: Path) -> None:
    home, path = home_with_record(tmp_path)
    path.write_text(json.dumps({"vaultd-installed": 2, "changes": {"other": "form"}}), "utf-8")
    before, where, agents = path.read_bytes(), places({"HOME": str(home)}), load_agents()
    for step in (
        lambda: single_plan(hook_parts(agents["codex"], where, {}), where),
        lambda: uninstall_plan(list(agents.values()), load(None, {"HOME": str(home)})),
        lambda: Installed.of(where).add(ROWS[0]),
    ):
        with pytest.raises(RefusedError, match=r"written by a newer vaultd \(format 2.*Update vaultd"):
            step()
    assert not is_wired(agents["codex"], where, {})  # a look needs no record
    assert path.read_bytes() == before


def test_the_default_vault(tmp_path: Path) -> None:
    home, _ = home_with_record(tmp_path)
    config = load(None, {"HOME": str(home)})
    assert config.vault == Path("/home/person/vaultd")
    config.places.pointer.unlink()
    remember(config)
    assert config.places.pointer.read_bytes() == (OLD / "home/.config/vaultd/vault").read_bytes()


# The index, which is derived


def test_the_index_of_the_same_making_counts_and_any_other_is_made_anew(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(OLD / "index", tmp_path / "index"))
    identity = {"format": "1.2.1", "whoosh": "whoosh3 3.54.0", "vault": "/home/person/vaultd"}
    build = Builds(folder, identity).current()
    assert not isinstance(build, str) and (build.folder, build.base) == (folder / "build-1", 0)
    for name, other in (("format", "2.2.1"), ("whoosh", "whoosh3 4.0"), ("vault", "/home/person/notes")):
        assert (
            Builds(folder, {**identity, name: other}).current() == f"it was made for another {name} ({identity[name]})"
        )
    (tmp_path / "vault").mkdir()
    index = Index(folder, tmp_path / "vault")
    assert index.doubt is not None and index.doubt.startswith("it was made for another ") and index.known() == {}
    index.apply([Put(IndexDoc("a.md", "A page", "with a marmot"))])
    assert index.doubt is None and [hit.path for hit in found(index, "marmot", 5)] == ["a.md"]
    index.close()


def test_an_index_of_a_newer_layout_is_doubted(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    folder.mkdir()
    (folder / "meta.json").write_text('{"layout": 2}', "utf-8")
    index = Index(folder, tmp_path / "vault")
    assert index.doubt is not None and found(index, "x", 5) == []
    index.close()


# What vaultd adds to the repository


def test_the_lines_for_git(tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    Repo(tmp_path / "vault", {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}).ensure()
    for name in ("gitignore", "gitattributes"):
        had = (OLD / name).read_text("utf-8").splitlines()
        assert set(had) <= set((tmp_path / "vault" / f".{name}").read_text("utf-8").splitlines())


# All of it together


def test_an_old_vault_goes_on(old: Scratch) -> None:
    """Sessions that ended then are resumed: the page that nobody touched is made anew, the edited one is added to."""
    old.run("init", check=True)
    old.run("ingest", check=True)
    [failed] = old.run("failed", check=True).stdout.splitlines()
    assert FAILED in failed and "unknown agent" in failed
    hits = (
        old.json("search", "blank lines", "--json")["hits"] + old.json("search", "blank lines", "--json")["other_hits"]
    )
    assert f"projects/parser/sessions/2026-11-29-{CLOSED}.md" in {hit["path"] for hit in hits}
    inbox = Inbox(old.vault / ".vaultd")
    assert EVENT.name in {o.event.key for o in inbox.observations(LIVING)} and inbox.pending() == []

    where = {"root": "/home/person/src/parser"}
    for session in (CLOSED, RESUMED):
        base = {"session_id": NATIVE[session], "cwd": "/home/person/src/parser"}
        old.deliver(
            "claude-code",
            "UserPromptSubmit",
            {**base, "prompt": "Go on with marmots", "prompt_id": "n-1"},
            base["cwd"],
            **where,
        )
        old.deliver("claude-code", "SessionEnd", {**base, "reason": "other"}, base["cwd"], **where)
    old.deliver("codex", "SessionEnd", {"session_id": NATIVE[LIVING], "cwd": where["root"]}, where["root"], **where)
    pages = {p.name: p.read_text("utf-8") for p in (old.vault / "projects/parser/sessions").iterdir()}
    old.run("ingest", check=True)
    after = {p.name: p.read_text("utf-8") for p in (old.vault / "projects/parser/sessions").iterdir()}
    assert after.keys() == pages.keys()
    untouched, edited = f"2026-11-29-{CLOSED}.md", f"2026-11-29-{RESUMED}.md"
    assert "Go on with marmots" in after[untouched] and "## Resumed" not in after[untouched]
    assert frontmatter.parse(after[untouched].encode()).meta.values["generation"] == 2
    old_body = frontmatter.parse(pages[edited].encode()).body
    new_body = frontmatter.parse(after[edited].encode()).body
    assert new_body.startswith(old_body) and new_body.count("## Resumed") == 2
    handoff = next(old.vault.glob(f"projects/parser/handoffs/*/{LIVING.sid}-g1.md"))
    assert frontmatter.parse(handoff.read_bytes()).meta.values["provisional"] is False
    assert sorted(p.name for p in (old.vault / "projects").iterdir()) == ["lexer", "parser"]
