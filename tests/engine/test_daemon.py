"""The daemon as a process: at most one, quick, gone when told, and nothing lost when it is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest

from tests.scratch import ROOT, ZONE, Scratch, git
from tests.waiting import until
from vaultd.core import frontmatter
from vaultd.core.event import Process
from vaultd.engine.daemon import Daemon
from vaultd.engine.history import History, Recorded
from vaultd.engine.passes import Passes
from vaultd.engine.processes import alive


@pytest.fixture
def running(scratch: Scratch) -> Iterator[Scratch]:
    """A vault with a daemon."""
    done = scratch.run("up")
    assert done.returncode == 0, done.stderr
    yield scratch
    scratch.run("down")


def daemon(scratch: Scratch) -> Process:
    told = json.loads((scratch.vault / ".vaultd/daemon.json").read_bytes())
    return Process(told["pid"], told["start"], told["boot"])


def event(scratch: Scratch, name: str, payload: dict[str, object], cwd: Path, agent: str = "claude-code") -> None:
    scratch.hook(agent, name, payload, cwd)


def work(scratch: Scratch, cwd: Path, native: str, *, end: bool) -> None:
    """A small session through the hook."""
    base = {"session_id": native, "cwd": str(cwd)}
    event(scratch, "SessionStart", {**base, "source": "startup"}, cwd)
    event(scratch, "UserPromptSubmit", {**base, "prompt": "Mend the loader"}, cwd)
    edit = {
        "tool_name": "Edit",
        "tool_input": {"file_path": f"{cwd}/loader.py"},
        "tool_response": {"filePath": f"{cwd}/loader.py"},
    }
    event(scratch, "PostToolUse", {**base, **edit, "tool_use_id": "t"}, cwd)
    event(scratch, "Stop", {**base, "last_assistant_message": "Done."}, cwd)
    if end:
        event(scratch, "SessionEnd", {**base, "reason": "other"}, cwd)


def open_handoffs(scratch: Scratch) -> list[dict[str, object]]:
    return [frontmatter.parse(p.read_bytes()).meta.values for p in scratch.vault.glob("*/*/handoffs/open/*.md")]


def offered(scratch: Scratch) -> bool:
    return any((scratch.vault / ".vaultd/outbox/at").rglob("claim"))


def fewer(scratch: Scratch, left: int) -> bool:
    """Whether at most so many events wait."""
    return len(list((scratch.vault / ".vaultd/inbox/new").iterdir())) <= left


def gone(process: Process) -> bool:
    """Whether a process has ended."""
    return not alive(process)


def test_up_and_down(scratch: Scratch) -> None:
    first = scratch.run("up")
    assert first.returncode == 0 and "Made a vault" in first.stdout and "vaultd connect" in first.stdout
    process = daemon(scratch)
    assert alive(process) and str(process.pid) in first.stdout
    assert "ran already" in scratch.run("up").stdout
    status = scratch.json("status", "--json")
    assert status["daemon"] == {"running": True, "pid": process.pid, "version": status["version"]}
    refused = scratch.run("serve")
    assert refused.returncode == 5 and "already" in refused.stderr
    assert str(process.pid) in scratch.run("down").stdout
    assert not alive(process)
    assert not (scratch.vault / ".vaultd/daemon.json").exists()
    assert "No daemon" in scratch.run("down").stdout


def serving(scratch: Scratch) -> list[int]:
    """The processes that serve the vault, or are about to; not what one of them starts, which has its command line
    between fork and exec.
    """
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if b"serve" in words and os.fsencode(scratch.vault) in words:
                stat = (path.parent / "stat").read_bytes().rpartition(b")")[2].split()
                found[int(path.parent.name)] = int(stat[1])
    return [pid for pid, parent in found.items() if parent not in found]


@pytest.mark.slow
def test_many_at_once_give_one_daemon(scratch: Scratch) -> None:
    scratch.init()
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: scratch.run("up"), range(8)))
    try:
        assert [r.returncode for r in results] == [0] * 8, [r.stderr for r in results]
        process = daemon(scratch)
        others = [r.stdout for r in results if str(process.pid) not in r.stdout]
        assert others == []
        assert serving(scratch) == [process.pid]
    finally:
        scratch.run("down")


def test_up_leaves_no_attempt_of_its_own_behind(scratch: Scratch) -> None:
    scratch.init()
    gate = scratch.base / "gate"
    os.mkfifo(gate)
    wait = f"import sys\nif 'serve' in sys.orig_argv:\n    open({str(gate)!r}).read()\n"
    (scratch.base / "slow").mkdir()
    (scratch.base / "slow/sitecustomize.py").write_text(wait)
    slow = Scratch(scratch.base, extra={"PYTHONPATH": f"{scratch.base / 'slow'}:{ROOT}"})
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(slow.run, "up")
        until(lambda: serving(scratch))
        try:
            assert scratch.run("up").returncode == 0
            assert late.result().returncode == 0, "it does not wait for what never comes through the gate"
            assert serving(scratch) == [daemon(scratch).pid]
        finally:
            scratch.run("down")


def test_an_end_is_prepared_committed_and_found(running: Scratch) -> None:
    cwd = running.checkout()
    work(running, cwd, str(uuid.uuid4()), end=True)
    until(lambda: offered(running), 5)
    until(lambda: "session" in git("log", "--format=%s", cwd=running.vault), 10)
    until(lambda: git("status", "--porcelain", cwd=running.vault) == "", 10)
    hits = until(lambda: running.json("search", "--json", "loader", cwd=cwd)["hits"], 10)
    assert any("/sessions/" in hit["path"] for hit in hits)
    assert "loader.py" in running.hook(
        "codex", "SessionStart", {"session_id": "n", "cwd": str(cwd), "source": "startup"}, cwd
    )


def test_a_killed_client_hands_over_within_seconds(running: Scratch) -> None:
    cwd = running.checkout()
    # A client process called `claude` runs the hooks itself, as its child.
    client = running.base / "claude"
    client.symlink_to("/bin/sleep")
    with subprocess.Popen([str(client), "60"]) as process:
        stat = Path(f"/proc/{process.pid}/stat").read_text().strip()
        facts = {"root": str(cwd), "proc": stat, "boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip()}
        base = {"session_id": "killed", "cwd": str(cwd)}
        running.deliver("claude-code", "UserPromptSubmit", {**base, "prompt": "Mend the loader"}, cwd, **facts)
        bash = {
            "tool_name": "Bash",
            "tool_input": {"command": "make"},
            "tool_response": {"stdout": ""},
            "tool_use_id": "t",
        }
        running.deliver("claude-code", "PostToolUse", {**base, **bash}, cwd, **facts)
        until(lambda: not list((running.vault / ".vaultd/inbox/new").iterdir()), 5)
        assert open_handoffs(running) == []
        process.kill()
        process.wait()
    until(lambda: [h for h in open_handoffs(running) if h["provisional"] is False], 5)
    [page] = running.vault.glob("*/*/sessions/*.md")
    assert frontmatter.parse(page.read_bytes()).meta.values["closed_by"] == "dead"


@pytest.mark.slow
def test_killed_at_any_time_nothing_is_lost(scratch: Scratch) -> None:
    scratch.init()
    cwd = scratch.checkout()
    for round_number in range(6):
        scratch.run("up")
        process = daemon(scratch)
        scratch.session(cwd, native=f"s-{round_number}", prompts=(f"Task number {round_number} of the list",))
        left = 6 - round_number
        until(partial(fewer, scratch, left), 5)
        os.kill(process.pid, signal.SIGKILL)
        until(partial(gone, process), 5)
    scratch.run("ingest", check=True)
    pages = list(scratch.vault.glob("*/*/sessions/*.md"))
    assert len(pages) == 6
    assert list((scratch.vault / ".vaultd/inbox/new").iterdir()) == []
    handoffs = list(scratch.vault.glob("*/*/handoffs/*/*.md"))
    assert len(handoffs) == len({p.name for p in handoffs}) == 6
    assert git("status", "--porcelain", cwd=scratch.vault) == ""
    assert git("fsck", "--no-progress", cwd=scratch.vault) is not None


def test_without_a_daemon_an_end_starts_one_pass_that_leaves(scratch: Scratch) -> None:
    scratch.init()
    cwd = scratch.checkout()
    command = scratch.base / "vaultd"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m vaultd "$@"\n')
    command.chmod(0o755)
    (scratch.vault / ".vaultd/outbox/map/command").write_text(f"{command}\n")
    # As right after a reboot: what an old daemon said of itself is still there.
    (scratch.vault / ".vaultd/daemon.json").write_text(
        f'{{\n  "pid": {os.getpid()},\n  "start": 1,\n  "boot": "an-old-boot",\n  "x": 0\n}}\n'
    )
    work(scratch, cwd, str(uuid.uuid4()), end=True)
    until(lambda: offered(scratch) and not open_handoffs(scratch)[0]["provisional"], 15)
    mark = os.fsencode(scratch.vault)

    def left() -> list[str]:
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if mark in (entry / "environ").read_bytes() and b"ingest" in (entry / "cmdline").read_bytes():
                        found.append(entry.name)
                except OSError:
                    continue
        return found

    until(lambda: not left(), 15)
    assert git("status", "--porcelain", cwd=scratch.vault) == ""


def test_a_spooled_event_is_taken_in(scratch: Scratch) -> None:
    cwd = scratch.checkout()
    work(scratch, cwd, "spooled", end=True)
    spool = scratch.home / ".local/state/vaultd/spool/new"
    assert len(list(spool.iterdir())) == 5
    scratch.init()
    scratch.run("ingest", check=True)
    assert list(spool.iterdir()) == []
    assert len(list(scratch.vault.glob("*/*/sessions/*.md"))) == 1


def test_a_project_folder_renamed_under_the_daemon(running: Scratch) -> None:
    cwd = running.checkout()
    native = str(uuid.uuid4())
    work(running, cwd, native, end=False)
    until(lambda: open_handoffs(running), 5)
    until(lambda: git("status", "--porcelain", cwd=running.vault) == "", 10)
    (running.vault / "projects/project").rename(running.vault / "projects/Renamed App")
    work(running, cwd, native, end=True)
    until(lambda: any(h["provisional"] is False for h in open_handoffs(running)), 10)
    assert not (running.vault / "projects/project").exists()
    assert len(list(running.vault.glob("projects/Renamed App/sessions/*.md"))) == 1


def test_what_a_person_does_to_handoffs_is_offered(running: Scratch) -> None:
    cwd = running.checkout()
    work(running, cwd, str(uuid.uuid4()), end=True)
    until(lambda: offered(running), 5)
    [page] = until(lambda: list(running.vault.glob("*/*/handoffs/open/*.md")), 5)
    page.write_text(page.read_text("utf-8") + "\nDo NOT run the migration.\n", "utf-8")
    prepared = next((running.vault / ".vaultd/outbox/at").rglob("session-start-json"))
    until(lambda: "Do NOT run the migration" in prepared.read_text("utf-8"), 15)
    page.unlink()
    until(lambda: not offered(running), 15)


def test_an_obstacle_holds_back_one_session_only(running: Scratch) -> None:
    one, two = running.checkout("one"), running.checkout("two")
    native = str(uuid.uuid4())
    work(running, one, native, end=False)
    until(lambda: list(running.vault.glob("projects/one/sessions/*.md")), 10)
    log = running.vault / f"projects/one/log-{datetime.now(ZONE):%Y-%m}.md"
    log.symlink_to("/etc/hostname")
    work(running, one, native, end=True)
    work(running, two, str(uuid.uuid4()), end=True)
    until(lambda: list(running.vault.glob("projects/two/handoffs/open/*.md")), 10)
    until(lambda: any("held back" in p for p in running.json("status", "--json")["problems"]), 10)
    log.unlink()
    until(lambda: not list((running.vault / ".vaultd/inbox/new").iterdir()), 45)
    assert running.json("status", "--json")["problems"] == []


@pytest.mark.slow
def test_a_vault_that_is_moved_gets_a_daemon_of_its_own(running: Scratch) -> None:
    old = daemon(running)
    moved = running.base / "moved"
    running.vault.rename(moved)
    done = running.run("--vault", str(moved), "up")
    try:
        assert done.returncode == 0 and "The daemon runs" in done.stdout, done.stdout + done.stderr
        until(partial(gone, old), 15)
        status = json.loads(running.run("--vault", str(moved), "status", "--json").stdout)
        assert status["daemon"]["running"] and status["daemon"]["pid"] != old.pid
    finally:
        running.run("--vault", str(moved), "down")


@pytest.mark.slow
def test_a_vault_made_anew_under_a_daemon(running: Scratch) -> None:
    old = daemon(running)
    until(lambda: subprocess.run(["rm", "-rf", str(running.vault)]).returncode == 0)  # the daemon still writes
    running.run("init", str(running.vault), check=True)
    assert running.run("up").returncode == 0
    cwd = running.checkout()
    work(running, cwd, str(uuid.uuid4()), end=True)
    until(lambda: list(running.vault.glob("*/*/handoffs/open/*.md")), 15)
    new = daemon(running)
    assert new.pid != old.pid
    assert str(new.pid) in running.run("down").stdout
    assert not alive(new)
    until(partial(gone, old), 10)


def test_down_while_it_is_started_anew(running: Scratch) -> None:
    old = daemon(running)
    (running.vault / "vaultd.toml").write_text("[git]\ncommit_edits = false\n")
    log = running.vault / ".vaultd/daemon.log"
    until(lambda: log.read_text("utf-8").count("vaultd serves") == 2 or _restarting(old), 15)
    assert str(old.pid) in running.run("down").stdout
    assert gone(old)


def _restarting(process: Process) -> bool:
    """Whether the daemon's process is Python in its first moments: its threads are over."""
    return alive(process) and len(list(Path(f"/proc/{process.pid}/task").iterdir())) == 1


def test_settings_that_change_while_they_are_read_are_noticed(scratch: Scratch) -> None:
    stores = scratch.init()
    (scratch.vault / "vaultd.toml").write_text("[git]\ncommit_edits = false\n")
    late = Daemon(stores)
    late._look_at_settings()
    assert late.changed_settings


def test_what_a_killed_daemon_wrote_is_committed_by_the_next(running: Scratch) -> None:
    (running.home / ".config/vaultd/config.toml").write_text("[git]\ncommit_edits = false\n")
    running.run("down", check=True)
    page = running.vault / "projects/project/sessions/2026-01-01-claude-code-0123456789.md"
    page.parent.mkdir(parents=True)
    page.write_text("---\nkind: session\n---\n\nWritten, not committed.\n")
    mine = running.vault / "mine.md"
    mine.write_text("A person's.\n")
    running.run("up", check=True)
    until(lambda: git("log", "--format=%H", "--", str(page), cwd=running.vault), 10)
    assert git("status", "--porcelain", "--", "mine.md", cwd=running.vault).startswith("??")


def test_what_could_not_be_committed_for_a_fault_is_tried_again(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Daemon(scratch.init())
    one.note({"projects/x/sessions/a.md"})

    def broken(*_: object) -> Recorded:
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(History, "record", broken)
        with pytest.raises(OSError, match="full"):
            one._commit()
    asked: list[set[str]] = []

    def record(_: History, written: Iterable[str], __: str) -> Recorded:
        asked.append(set(written))
        return Recorded()

    monkeypatch.setattr(History, "record", record)
    one._commit()
    one._commit()
    assert asked == [{"projects/x/sessions/a.md"}]


def test_offers_that_could_not_be_made_are_made_again(scratch: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    one, ready, asked = Daemon(scratch.init()), threading.Event(), list[int]()

    def offer(_: Passes) -> None:
        asked.append(1)
        if len(asked) == 1:
            raise OSError("the disk is full")

    monkeypatch.setattr(Passes, "offer", offer)
    running = threading.Thread(target=one.run, kwargs={"ready": ready.set})
    running.start()
    try:
        assert ready.wait(20)
        one._offers_due.set()
        until(lambda: len(asked) == 2, 15)
    finally:
        one.stop(for_good=True)
        running.join(20)


def test_up_says_why_it_did_not_start_and_nothing_that_was_logged_before(scratch: Scratch) -> None:
    scratch.extra["VAULTD_HTTP"] = " "  # as if it were not set
    scratch.init()
    settings = scratch.home / ".config/vaultd/config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text('[http]\nbind = "0.0.0.0:0"\n')
    (scratch.vault / ".vaultd/daemon.log").write_text("something that was mended long ago\n")
    done = scratch.run("up")
    assert done.returncode != 0 and "http.hosts" in done.stderr and "long ago" not in done.stderr


def test_a_daemon_that_is_started_anew_waits_for_right_settings(scratch: Scratch) -> None:
    scratch.init()
    settings = scratch.vault / "vaultd.toml"
    settings.write_text("[capture\n")
    refused = scratch.run("serve")
    assert refused.returncode == 2 and "Settings are wrong" in refused.stderr
    log = scratch.base / "out"
    with log.open("wb") as out:
        command = [sys.executable, "-m", "vaultd", "--vault", str(scratch.vault), "serve", "--again"]
        process = subprocess.Popen(command, env=scratch.environ, stdout=out, stderr=out)
    try:
        until(lambda: "Events wait until then" in log.read_text("utf-8"), 15)
        assert process.poll() is None
        settings.write_text("")
        until(lambda: "vaultd serves" in log.read_text("utf-8"), 15)
        assert daemon(scratch).pid == process.pid
    finally:
        process.terminate()
        assert process.wait(10) == 0


def test_a_changed_setting_counts_within_seconds(running: Scratch) -> None:
    cwd = running.checkout()
    (running.vault / "vaultd.toml").write_text('[sanitize]\nextra_patterns = ["ACME-[0-9]+"]\n')
    log = running.vault / ".vaultd/daemon.log"
    until(lambda: log.read_text("utf-8").count("vaultd serves") == 2, 15)
    until(lambda: (running.vault / ".vaultd/daemon.json").exists(), 10)
    base = {"session_id": "s", "cwd": str(cwd)}
    event(running, "UserPromptSubmit", {**base, "prompt": "Look at ACME-1234 please"}, cwd)
    event(running, "SessionEnd", {**base, "reason": "other"}, cwd)
    [page] = until(lambda: list(running.vault.glob("*/*/sessions/*.md")), 10)
    assert "ACME-1234" not in page.read_text("utf-8")
    (running.vault / "vaultd.toml").write_text("[capture]\nassistant = 3\n")
    until(lambda: "Settings are wrong" in log.read_text("utf-8"), 15)
    assert alive(daemon(running))
    event(running, "SessionStart", {**base, "session_id": "held"}, cwd)
    assert running.run("status").returncode == 7 and running.run("search", "x").returncode == 0
    running.run("down", check=True)  # which takes in what waits, else
    assert not fewer(running, 0) and running.run("up").returncode == 2
    (running.vault / "vaultd.toml").write_text("")
