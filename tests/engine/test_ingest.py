"""Events become observations, pages and handoffs: the three outcomes, poison, disorder, and what a person changed."""

from __future__ import annotations

import json
import os
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from tests.scratch import Scratch
from vaultd.core import frontmatter
from vaultd.core.ids import session_id
from vaultd.engine.ingest import Ingest, Outcome, Round, Tally
from vaultd.engine.once import ingest_once
from vaultd.engine.passes import Passes
from vaultd.engine.stores import Stores


def drain(stores: Stores) -> Tally:
    return Passes(stores).drain()


def pages(scratch: Scratch, pattern: str = "*/*/sessions/*.md") -> list[Path]:
    return sorted(scratch.vault.glob(pattern))


def handoffs(scratch: Scratch, state: str = "open") -> list[Path]:
    return pages(scratch, f"*/*/handoffs/{state}/*.md")


def meta(path: Path) -> dict[str, object]:
    return frontmatter.parse(path.read_bytes()).meta.values


def test_a_session_becomes_one_page_and_one_handoff(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    scratch.session(cwd)
    tally = drain(stores)
    assert tally.outcomes[Outcome.INSERTED] == tally.total == 6
    [page], [handoff] = pages(scratch), handoffs(scratch)
    text = handoff.read_text("utf-8")
    assert (
        "src/app.py" in text and "make check" in text and "Add the missing rule" in text and "Fix the greeting" in text
    )
    assert meta(page)["closed_by"] == "other" and meta(page)["observations"] == 6
    assert meta(handoff)["provisional"] is False
    log = (page.parent.parent / f"log-{scratch.now:%Y-%m}.md").read_text("utf-8")
    assert log.count("session ended") == 1
    assert stores.inbox.pending() == []


def test_delivered_again_it_is_already_complete(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    scratch.session(cwd)
    copies = {p.name: p.read_bytes() for p in stores.inbox.new.iterdir()}
    drain(stores)
    before = {p: p.read_bytes() for p in scratch.vault.rglob("*.md")}
    for _ in range(2):
        for name, data in copies.items():
            (stores.inbox.new / name).write_bytes(data)
        tally = drain(scratch.stores())
        assert tally.outcomes[Outcome.COMPLETE] == tally.total == len(copies)
        assert {p: p.read_bytes() for p in scratch.vault.rglob("*.md")} == before


def test_a_closing_event_whose_effects_are_there_is_resumed(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    scratch.session(cwd)
    events = {p.name: p.read_bytes() for p in stores.inbox.new.iterdir()}
    drain(stores)
    before = {p: p.read_bytes() for p in scratch.vault.rglob("*.md")}
    # As after a crash before the closing events were filed: their files are in the inbox, not in done.
    pack = next((scratch.vault / ".vaultd/done").glob("*.jsonl"))
    rows = [row for row in pack.read_bytes().splitlines() if json.loads(row)["kind"] not in ("turn-end", "session-end")]
    pack.unlink()
    folder = pack.with_suffix("")
    folder.mkdir()
    for row in rows:
        (folder / json.loads(row)["key"]).write_bytes(row)
    for name, data in events.items():
        if b"event=Stop" in data or b"event=SessionEnd" in data:
            (stores.inbox.new / name).write_bytes(data)
    tally = drain(scratch.stores())
    assert tally.outcomes[Outcome.RESUMED] == 2
    assert {p: p.read_bytes() for p in scratch.vault.rglob("*.md")} == before


def test_a_torn_observation_counts_for_nothing(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    scratch.session(cwd, end=False)
    copies = {p.name: p.read_bytes() for p in stores.inbox.new.iterdir()}
    drain(stores)
    torn = next(p for p in (scratch.vault / ".vaultd/done").rglob("*") if p.is_file() and b'"prompt"' in p.read_bytes())
    torn.write_bytes(torn.read_bytes()[:40])
    (stores.inbox.new / torn.name).write_bytes(copies[torn.name])
    tally = drain(scratch.stores())
    assert tally.outcomes[Outcome.INSERTED] == 1
    json.loads(torn.read_bytes())


def test_poison_goes_to_failed_and_blocks_nothing(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    stamp = int(scratch.now.timestamp())
    secret = "ghp_" + "a1B2" * 9
    poison = {
        f"{stamp}-a": b"",
        f"{stamp}-b": b"not an event at all " + secret.encode(),
        f"{stamp}-c": b"vaultd-event 1\nagent=nobody\nevent=X\n\n{}",
        f"{stamp}-d": b"vaultd-event 9\nagent=claude-code\nevent=Stop\n\n{}",
        f"{stamp}-e": bytes(range(256)) * 64,
    }
    for name, data in poison.items():
        (stores.inbox.new / name).write_bytes(data)
    (stores.inbox.new / f"{stamp}-f").symlink_to("/etc/passwd")
    (stores.inbox.new / f"{stamp}-g").mkdir()
    scratch.session(cwd)
    tally = drain(stores)
    assert tally.outcomes[Outcome.FAILED] >= 5
    assert tally.outcomes[Outcome.INSERTED] == 6
    assert len(pages(scratch)) == len(handoffs(scratch)) == 1
    failed = scratch.vault / ".vaultd/inbox/failed"
    assert set(stores.inbox.failures()) >= set(poison)
    assert all((failed / f"{name}.reason.json").read_text("utf-8") for name in poison)
    assert not any(secret.encode() in p.read_bytes() for p in failed.iterdir())
    listed = scratch.run("failed")
    assert listed.returncode == 0 and "unknown agent" in listed.stdout
    assert scratch.run("failed", "drop", f"{stamp}-a").returncode == 0
    assert scratch.run("failed", "drop", f"{stamp}-a").returncode == 4
    assert scratch.run("failed", "drop").returncode == 2
    assert scratch.run("failed", "retry", f"{stamp}-c").returncode == 0
    assert f"{stamp}-c" in stores.inbox.pending()


def test_events_in_any_order_give_the_same_page(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    scratch.session(cwd, native="11111111-2222-4333-8444-000000000001")
    events = sorted((p.name, p.read_bytes()) for p in stores.inbox.new.iterdir())
    drain(stores)
    expected = frontmatter.parse(pages(scratch)[0].read_bytes()), frontmatter.parse(handoffs(scratch)[0].read_bytes())
    for order in (list(reversed(events)), events[3:] + events[:3]):
        shutil.rmtree(scratch.vault / ".vaultd/done")
        (scratch.vault / ".vaultd/done").mkdir()
        pages(scratch)[0].unlink()
        handoffs(scratch)[0].unlink()
        for name, data in order:  # one event a pass: each comes after the ones before were taken in
            (stores.inbox.new / name).write_bytes(data)
            drain(stores)
        got = frontmatter.parse(pages(scratch)[0].read_bytes()), frontmatter.parse(handoffs(scratch)[0].read_bytes())
        assert got == expected


def test_events_of_all_sorts_are_filed_sensibly(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    base = {"session_id": "s-1", "cwd": str(cwd)}
    scratch.deliver("claude-code", "NeverHeardOf", {**base, "x": 1}, cwd)
    scratch.deliver(
        "claude-code", "PostToolUse", b'{"session_id":"s-1","cwd":"' + str(cwd).encode() + b'","tool_name":"Ba', cwd
    )
    scratch.deliver("claude-code", "UserPromptSubmit", {"session_id": "s-2", "prompt": "no folder is named here"})
    scratch.deliver("claude-code", "UserPromptSubmit", {"prompt": "nor a session"}, cwd)
    scratch.deliver("claude-code", "SessionEnd", {"session_id": "s-2", "reason": "other"})
    tally = drain(stores)
    assert tally.outcomes[Outcome.INSERTED] == tally.total == 5
    assert stores.inbox.failures() == []
    kept = [p for p in (scratch.vault / ".vaultd/done").rglob("*") if p.is_file()]
    assert sum(len(p.read_bytes().splitlines()) for p in kept) == 5
    [unsorted] = pages(scratch)
    assert unsorted.parent.parent.name == "unsorted" and "no folder is named here" in unsorted.read_text("utf-8")
    assert handoffs(scratch) == []


def test_only_start_and_end_leave_no_page(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    base = {"session_id": "s-1", "cwd": str(cwd)}
    scratch.deliver("claude-code", "SessionStart", {**base, "source": "startup"}, cwd)
    scratch.deliver("claude-code", "SessionEnd", {**base, "reason": "other"}, cwd)
    drain(stores)
    assert pages(scratch) == [] and handoffs(scratch) == []


def test_a_resumed_session_keeps_what_a_person_wrote(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    native = scratch.session(cwd)
    drain(stores)
    [page] = pages(scratch)
    mine = (
        page.read_text("utf-8")
        .replace("## Asked", "My own words stay.\n\n## Asked")
        .replace("kind: session", "kind: session\nmood: good # mine")
    )
    page.write_text(mine, "utf-8")
    page.rename(page.with_name("A name that I gave.md"))
    page = page.with_name("A name that I gave.md")
    scratch.session(cwd, native=native, prompts=("And now translate it",))
    drain(stores)
    assert pages(scratch) == [page]
    text = page.read_text("utf-8")
    assert "My own words stay." in text and "mood: good # mine" in text
    assert text.count("## Resumed") == 1 and "And now translate it" in text
    assert meta(page)["generation"] == 2 and meta(page)["observations"] == 12
    drain(stores)
    assert page.read_text("utf-8") == text
    assert [meta(h)["id"] for h in handoffs(scratch)] == [f"{native and meta(page)['id']}".rpartition("-")[2] + "-g2"]
    assert len(handoffs(scratch, "expired")) == 1
    assert "vaultd read 'projects/project/sessions/A name that I gave.md'" in handoffs(scratch)[0].read_text("utf-8")


def test_a_deleted_page_stays_deleted_when_its_session_goes_on(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    native = scratch.session(cwd, prompts=("Look at the plugh",))
    drain(stores)
    pages(scratch)[0].unlink()
    base = {"session_id": native, "cwd": str(cwd)}
    scratch.deliver("claude-code", "SessionEnd", {**base, "reason": "other"}, cwd)
    drain(stores)
    assert pages(scratch) == []
    for word in ("xyzzy", "frobozz"):
        scratch.session(cwd, native=native, prompts=(f"Now the {word}",))
        drain(stores)
    [page] = pages(scratch)
    text = page.read_text("utf-8")
    assert "plugh" not in text and "xyzzy" in text and "frobozz" in text
    assert meta(page)["generation"] == 3
    assert not [path for path in handoffs(scratch) if "plugh" in path.read_text("utf-8")]


def test_a_page_that_is_deleted_while_its_session_goes_on(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    native = scratch.session(cwd, prompts=("Look at the plugh",), end=False)
    drain(stores)
    pages(scratch)[0].unlink()
    scratch.session(cwd, native=native, prompts=("Now the xyzzy",))
    drain(scratch.stores())
    [page], [handoff] = pages(scratch), handoffs(scratch)
    for text in (page.read_text("utf-8"), handoff.read_text("utf-8")):
        assert "plugh" not in text and "xyzzy" in text
    assert meta(page)["part"] is True and meta(page)["closed_by"] == "other"


def test_a_late_event_of_a_session_whose_page_was_deleted_changes_no_handoff(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    native = scratch.session(cwd)
    drain(stores)
    pages(scratch)[0].unlink()
    [before] = [path.read_bytes() for path in handoffs(scratch)]
    call = {"tool_name": "Bash", "tool_input": {"command": "npm run build"}, "tool_response": {"stdout": ""}}
    payload = {"session_id": native, "cwd": str(cwd), **call, "tool_use_id": "late"}
    scratch.deliver("claude-code", "PostToolUse", payload, cwd, root=str(cwd))
    drain(stores)
    assert pages(scratch) == [] and [path.read_bytes() for path in handoffs(scratch)] == [before]


def test_a_late_event_of_an_older_session_ends_that_and_not_the_newer(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    stat = Path("/proc/self/stat").read_text().rpartition(")")[2]
    facts = {"boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip(), "root": str(cwd)}
    facts["proc"] = f"{os.getpid()} (claude) {stat.strip()}"
    passes, begun = Passes(stores), scratch.now
    for native, at in (("newer", begun + timedelta(minutes=10)), ("older", begun)):
        scratch.now = at
        base = {"session_id": native, "cwd": str(cwd)}
        scratch.deliver("claude-code", "UserPromptSubmit", {**base, "prompt": "Look"}, cwd, **facts)
        scratch.now = begun + timedelta(minutes=11)
        passes.drain()
    assert [f"{name}" for name in stores.inbox.sessions()] == [f"claude-code-{session_id('claude-code', 'newer')}"]


def test_a_handoff_that_waits_is_brought_up_to_date_by_one_more_prompt(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    native = scratch.session(cwd)
    drain(stores)
    base = {"session_id": native, "cwd": str(cwd)}
    scratch.deliver("claude-code", "UserPromptSubmit", {**base, "prompt": "Is the giraffe finished?"}, cwd)
    scratch.deliver("claude-code", "Stop", {**base, "last_assistant_message": "The giraffe is finished."}, cwd)
    scratch.deliver("claude-code", "SessionEnd", {**base, "reason": "other"}, cwd)
    drain(stores)
    [handoff] = handoffs(scratch)
    assert "The giraffe is finished" in handoff.read_text("utf-8") and handoff.stem.endswith("-g2")


def test_a_resumed_session_that_nobody_edited_is_made_anew(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    native = scratch.session(cwd)
    drain(stores)
    [page] = pages(scratch)
    page.write_bytes(page.read_bytes().replace(b"tags:\n", b"pinned: true\ntags:\n"))
    scratch.session(cwd, native=native, prompts=("And now translate it",))
    drain(stores)
    text = page.read_text("utf-8")
    assert "## Resumed" not in text and "And now translate it" in text and "Fix the greeting" in text
    assert "pinned: true" in text


def test_a_page_is_not_made_anew_from_fewer_observations(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    native = scratch.session(cwd)
    drain(stores)
    shutil.rmtree(scratch.vault / ".vaultd/done")
    (scratch.vault / ".vaultd/done").mkdir()
    scratch.session(cwd, native=native, prompts=("Something else",))
    drain(scratch.stores())
    text = pages(scratch)[0].read_text("utf-8")
    assert "Fix the greeting" in text


def test_a_turn_end_prepares_a_provisional_handoff_in_place(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    native = scratch.session(cwd, end=False)
    drain(stores)
    [handoff] = handoffs(scratch)
    assert meta(handoff)["provisional"] is True
    scratch.session(cwd, native=native, prompts=("The second thing",))
    drain(stores)
    assert handoffs(scratch) == [handoff]
    assert meta(handoff)["provisional"] is False and "The second thing" in handoff.read_text("utf-8")


def test_ignored_paths_leave_no_trace(scratch: Scratch) -> None:
    scratch.init()
    (scratch.vault / "vaultd.toml").write_text('[capture]\nignore_paths = ["*.pem", "private"]\n')
    stores, cwd = scratch.stores(), scratch.checkout()
    base = {"session_id": "s-1", "cwd": str(cwd)}
    for path in ("keys/server.pem", "private/plan.md", "src/fine.py"):
        edit = {
            "tool_name": "Edit",
            "tool_input": {"file_path": f"{cwd}/{path}"},
            "tool_response": {"filePath": f"{cwd}/{path}"},
        }
        scratch.deliver("claude-code", "PostToolUse", {**base, **edit, "tool_use_id": path}, cwd, root=str(cwd))
    tally = drain(stores)
    assert tally.outcomes[Outcome.IGNORED] == 2
    everything = b"".join(p.read_bytes() for p in scratch.vault.rglob("*") if p.is_file() and ".git/" not in str(p))
    assert b"fine.py" in everything and b"server.pem" not in everything and b"plan.md" not in everything


def test_the_allow_list_holds_for_what_hooks_recorded_before_they_heard_of_it(scratch: Scratch) -> None:
    stores, cwd, listed = scratch.init(), scratch.checkout(), scratch.checkout("listed")
    (listed / ".vaultd.toml").touch()
    scratch.session(cwd)
    scratch.session(listed)
    (scratch.vault / "vaultd.toml").write_text("[capture]\nallow_list = true\n")
    tally = drain(scratch.stores())
    assert tally.outcomes[Outcome.IGNORED] == 6 and stores.inbox.pending() == []
    assert [path.parts[-3] for path in pages(scratch)] == ["listed"]


def test_without_the_assistant_nothing_it_said_is_kept(scratch: Scratch) -> None:
    scratch.init()
    (scratch.vault / "vaultd.toml").write_text("[capture]\nassistant = false\n")
    stores, cwd = scratch.stores(), scratch.checkout()
    scratch.session(cwd)
    drain(stores)
    everything = b"".join(p.read_bytes() for p in scratch.vault.rglob("*") if p.is_file() and ".git/" not in str(p))
    assert b"Add the missing rule" not in everything and b"make check" in everything


def test_quiet_and_dead_sessions_are_closed(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    scratch.session(cwd, end=False)
    passes = Passes(stores)
    passes.drain()
    scratch.now += timedelta(minutes=29)
    passes.drain()
    assert meta(handoffs(scratch)[0])["provisional"] is True
    scratch.now += timedelta(minutes=2)
    passes.sweep()
    passes.drain()
    assert meta(handoffs(scratch)[0])["provisional"] is False
    assert meta(pages(scratch)[0])["closed_by"] == "quiet"


def test_a_process_that_serves_several_conversations_ends_none_by_beginning_another(scratch: Scratch) -> None:
    cwd = scratch.checkout()
    passes = Passes(scratch.init())
    stat = Path("/proc/self/stat").read_text().rpartition(")")[2]
    facts = {"boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip(), "root": str(cwd)}
    facts["proc"] = f"{os.getpid()} (openclaw-gatewa) {stat.strip()}"
    for native in ("one", "two", "one"):
        payload = {"session": native, "cwd": str(cwd), "prompt": f"Work on {native}"}
        scratch.deliver("openclaw", "before_prompt_build", payload, cwd, **facts)
        scratch.deliver("openclaw", "agent_end", {**payload, "text": "Done."}, cwd, **facts)
        passes.drain()
        passes.sweep()
    assert [meta(page)["closed_by"] for page in pages(scratch)] == [None, None]


def test_the_older_session_of_a_client_is_the_one_that_is_replaced(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    before, after = sorted(
        (f"{n}-session" for n in range(2)), key=lambda native: session_id("claude-code", native), reverse=True
    )
    stat = Path("/proc/self/stat").read_text().rpartition(")")[2]
    facts = {"boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip(), "root": str(cwd)}
    facts["proc"] = f"{os.getpid()} (claude) {stat.strip()}"
    for native in (before, after):
        base = {"session_id": native, "cwd": str(cwd)}
        scratch.deliver("claude-code", "SessionStart", {**base, "source": "startup"}, cwd, **facts)
        scratch.deliver("claude-code", "UserPromptSubmit", {**base, "prompt": "Look"}, cwd, **facts)
    ingest, one = Ingest(stores), Round()
    with stores.write_lock:
        ingest.take(stores.inbox.pending(), one)
        while ingest.file(one):
            pass
        ingest.finish(one)  # and before the older session's close is delivered, a crash
    later = Passes(scratch.stores())
    later.sweep()
    [close] = stores.inbox.new.iterdir()
    assert before in close.read_text() and '"replaced"' in close.read_text()
    later.drain()
    assert [str(name) for name in stores.inbox.sessions()] == [f"claude-code-{session_id('claude-code', after)}"]


def test_a_quiet_session_is_closed_also_when_nothing_waits(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    scratch.session(cwd, end=False)
    ingest_once(stores)
    scratch.now += timedelta(minutes=31)
    ingest_once(stores)
    assert meta(pages(scratch)[0])["closed_by"] == "quiet"


def test_a_close_that_could_not_be_delivered_is_tried_again(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    scratch.session(cwd, end=False)
    passes = Passes(stores)
    passes.drain()
    scratch.now += timedelta(minutes=31)
    away = stores.inbox.new.rename(stores.inbox.new.with_name("away"))
    with pytest.raises(OSError):
        passes.sweep()
    away.rename(stores.inbox.new)
    passes.sweep()
    passes.drain()
    assert meta(pages(scratch)[0])["closed_by"] == "quiet"


def test_a_deleted_page_that_comes_back_stands_beside_the_later_one(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    native = scratch.session(cwd, prompts=("Look at the plugh",))
    drain(stores)
    [page] = pages(scratch)
    before = page.read_bytes()
    page.unlink()
    scratch.session(cwd, native=native, prompts=("Now the xyzzy",))
    drain(stores)
    page.write_bytes(before)
    assert len(pages(scratch)) == 2 and any("xyzzy" in path.read_text("utf-8") for path in pages(scratch))


def test_a_folder_beside_its_pack_is_read_as_one_set(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    native = scratch.session(cwd)
    drain(stores)
    done = scratch.vault / ".vaultd/done"
    pack = next(done.glob("*.jsonl"))
    folder = pack.with_suffix("")
    folder.mkdir()
    for row in pack.read_bytes().splitlines():
        (folder / json.loads(row)["key"]).write_bytes(row)
    before = pages(scratch)[0].read_bytes()
    name = stores.inbox.sessions()[0]
    assert len(stores.inbox.observations(name)) == 6
    stores.inbox.pack(name)
    assert not folder.exists() and len(pack.read_bytes().splitlines()) == 6
    drain(stores)
    assert pages(scratch)[0].read_bytes() == before and native


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_an_event_that_cannot_be_read_now_is_left(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    scratch.session(cwd)
    [*_, last] = sorted(stores.inbox.new.iterdir())
    data = last.read_bytes()
    child = os.fork()
    if child == 0:  # as somebody who may not read the file, but may remove it
        code = 1
        try:
            last.chmod(0o600)
            for path in (scratch.base, *scratch.base.rglob("*")):
                if path != last and not path.is_symlink():
                    os.chown(path, 65534, 65534)
            for parent in scratch.base.parents:
                if parent != Path("/"):
                    parent.chmod(parent.stat().st_mode | 0o011)
            os.setuid(65534)
            tally = drain(scratch.stores())
            code = 0 if tally.outcomes[Outcome.POSTPONED] == 1 and "cannot be read" in str(tally.troubles) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert last.read_bytes() == data
    drain(scratch.stores())
    assert stores.inbox.pending() == [] and stores.inbox.failures() == []


def test_a_title_is_text_in_the_log_too(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    scratch.session(cwd, prompts=('<img src="http://127.0.0.1:9/x.png"> [[Home]] %%look%% `$= dv.current()`',))
    drain(stores)
    [log] = scratch.vault.glob("*/*/log-*.md")
    text = log.read_text("utf-8")
    assert "look" in text and not any(mark in text for mark in ("<img", "`", "%%", "[[Home"))


def test_a_markers_ignored_paths_leave_no_trace(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    (cwd / ".vaultd.toml").write_text('[capture]\nignore_paths = ["*.pem", "config/private"]\n')
    base = {"session_id": "s-1", "cwd": str(cwd / "src")}
    (cwd / "src").mkdir()
    for path in ("src/keys/server.pem", "config/private/plan.md", "src/fine.py"):
        edit = {"tool_name": "Edit", "tool_input": {"file_path": f"{cwd}/{path}"}}
        scratch.deliver("claude-code", "PostToolUse", {**base, **edit, "tool_use_id": path}, cwd, root=str(cwd))
    assert drain(stores).outcomes[Outcome.IGNORED] == 2
    everything = b"".join(p.read_bytes() for p in scratch.vault.rglob("*") if p.is_file() and ".git/" not in str(p))
    assert b"fine.py" in everything and b"server.pem" not in everything and b"plan.md" not in everything


@pytest.mark.parametrize("text", ['[capture]\nignore_paths = ["*.pem"\n', "[capture]\nignore_paths = 3\n"])
def test_a_marker_whose_ignored_paths_are_not_understood_keeps_every_file_out(scratch: Scratch, text: str) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    (cwd / ".vaultd.toml").write_text(text)
    edit = {"session_id": "s-1", "cwd": str(cwd), "tool_name": "Edit", "tool_input": {"file_path": f"{cwd}/a.py"}}
    scratch.deliver("claude-code", "PostToolUse", {**edit, "tool_use_id": "1"}, cwd, root=str(cwd))
    said = {"session_id": "s-1", "cwd": str(cwd), "prompt": "Mend it"}
    scratch.deliver("claude-code", "UserPromptSubmit", said, cwd, root=str(cwd))
    tally = drain(stores)
    assert tally.outcomes[Outcome.IGNORED] == 1 and tally.outcomes[Outcome.INSERTED] == 1
