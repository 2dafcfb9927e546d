"""Handoffs from end to end: offered, claimed by the real hook, accepted, returned, outdated, expired."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import timedelta
from pathlib import Path

from tests.scratch import Scratch, git
from vaultd.core import frontmatter
from vaultd.engine.passes import Passes
from vaultd.engine.stores import Stores


def drain(stores: Stores) -> None:
    passes = Passes(stores)
    passes.prepare()
    passes.drain()


def ids(scratch: Scratch, state: str) -> list[str]:
    return sorted(p.stem for p in scratch.vault.glob(f"*/*/handoffs/{state}/*.md"))


def start(scratch: Scratch, cwd: Path, *, agent: str = "codex", native: str = "n-1", source: str = "startup") -> str:
    payload = {"session_id": native, "cwd": str(cwd), "hook_event_name": "SessionStart", "source": source}
    out = scratch.hook(agent, "SessionStart", payload, cwd)
    return str(json.loads(out)["hookSpecificOutput"]["additionalContext"]) if out else ""


def test_the_next_session_is_given_the_handoff_once(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    scratch.session(cwd)
    drain(stores)
    text = start(scratch, cwd)
    assert "src/app.py" in text and "make check" in text and "Add the missing rule" in text
    assert len(text.encode()) <= 9000
    assert start(scratch, cwd, native="n-2") == ""
    assert (len(ids(scratch, "open")), len(ids(scratch, "accepted"))) == (0, 1)
    drain(scratch.stores())
    [path] = scratch.vault.glob("*/*/handoffs/accepted/*.md")
    values = frontmatter.parse(path.read_bytes()).meta.values
    assert str(values["accepted_by"]).startswith("codex-") and values["accepted_at"]


def test_a_session_never_gets_its_own(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    native = scratch.session(cwd)
    drain(stores)
    assert start(scratch, cwd, agent="claude-code", native=native, source="resume") == ""
    assert start(scratch, cwd, agent="claude-code", native="other", source="compact") == ""
    assert start(scratch, cwd, agent="claude-code", native="other", source="clear") == ""
    assert start(scratch, cwd, agent="claude-code", native="other") != ""


def test_a_session_that_did_nothing_gives_it_back(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    scratch.session(cwd)
    drain(stores)
    first = ids(scratch, "open")
    assert start(scratch, cwd, native="idle")
    scratch.hook("codex", "SessionEnd", {"session_id": "idle", "cwd": str(cwd), "reason": "other"}, cwd)
    drain(scratch.stores())
    assert ids(scratch, "open") == first and ids(scratch, "accepted") == []
    assert start(scratch, cwd, native="busy")
    scratch.hook(
        "codex", "UserPromptSubmit", {"session_id": "busy", "cwd": str(cwd), "prompt": "Go on", "turn_id": "1"}, cwd
    )
    bash = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": "x\n", "tool_use_id": "c1"}
    scratch.hook("codex", "PostToolUse", {"session_id": "busy", "cwd": str(cwd), **bash}, cwd)
    scratch.hook("codex", "SessionEnd", {"session_id": "busy", "cwd": str(cwd), "reason": "other"}, cwd)
    drain(scratch.stores())
    assert ids(scratch, "accepted") == first and len(ids(scratch, "open")) == 1


def test_worktree_and_subfolder_find_it_and_a_neighbour_does_not(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    other = scratch.checkout("elsewhere/project")
    tree = scratch.base / "tree"
    git("worktree", "add", "-q", str(tree), cwd=cwd)
    (tree / "deep/er").mkdir(parents=True)
    scratch.session(cwd)
    drain(stores)
    assert start(scratch, other) == ""
    assert "src/app.py" in start(scratch, tree / "deep/er")


def test_a_handoff_of_a_subfolder_is_for_that_folder(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    (cwd / "api").mkdir()
    (cwd / "web").mkdir()
    base = {"session_id": "in-api", "cwd": str(cwd / "api")}
    where = {"root": str(cwd)}
    scratch.deliver(
        "claude-code", "UserPromptSubmit", {**base, "prompt": "Mend the api of the server"}, cwd / "api", **where
    )
    edit = {
        "tool_name": "Edit",
        "tool_input": {"file_path": f"{cwd}/api/a.py"},
        "tool_response": {"filePath": f"{cwd}/api/a.py"},
    }
    scratch.deliver("claude-code", "PostToolUse", {**base, **edit, "tool_use_id": "t"}, cwd / "api", **where)
    scratch.deliver("claude-code", "SessionEnd", {**base, "reason": "other"}, cwd / "api", **where)
    drain(stores)
    assert start(scratch, cwd) == "" and start(scratch, cwd / "web") == ""
    assert "Mend the api" in start(scratch, cwd / "api")


def test_the_newest_final_one_of_a_folder_outdates_the_older(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    scratch.session(cwd, prompts=("The first of the two tasks",))
    drain(stores)
    scratch.session(cwd, prompts=("The second of the two tasks",))
    drain(scratch.stores())
    assert len(ids(scratch, "open")) == 1 and len(ids(scratch, "expired")) == 1
    assert "The second of the two" in start(scratch, cwd)


def test_a_live_session_does_not_hide_a_finished_one(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    scratch.session(cwd, prompts=("The finished task",))
    with subprocess.Popen(["sleep", "60"]) as client:
        try:
            stat = Path(f"/proc/{client.pid}/stat").read_text().strip().replace("(sleep)", "(claude)")
            base = {"session_id": "alive", "cwd": str(cwd)}
            facts = {"root": str(cwd), "proc": stat, "pproc": stat, "boot": stores.boot}
            scratch.deliver("claude-code", "UserPromptSubmit", {**base, "prompt": "The task under way"}, cwd, **facts)
            bash = {
                "tool_name": "Bash",
                "tool_input": {"command": "make"},
                "tool_response": {"stdout": ""},
                "tool_use_id": "t",
            }
            scratch.deliver("claude-code", "PostToolUse", {**base, **bash}, cwd, **facts)
            scratch.deliver(
                "claude-code", "Stop", {**base, "last_assistant_message": "One step is done."}, cwd, **facts
            )
            drain(stores)
            assert len(ids(scratch, "open")) == 2
            assert "The finished task" in start(scratch, cwd)
            drain(scratch.stores())
            assert start(scratch, cwd, native="n-2") == ""  # its client lives
        finally:
            client.kill()
            client.wait()
    assert "The task under way" in start(scratch, cwd, native="n-3")


def test_an_app_server_agent_is_offered_some_time_after_its_turn(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    scratch.session(cwd, agent="codex", end=False)
    drain(stores)
    [claim] = (scratch.vault / ".vaultd/outbox/at").rglob("claim")
    lines = claim.read_text().splitlines()
    assert lines[3] == "0" and int(lines[4]) == int(scratch.now.timestamp()) + 20
    scratch.deliver(
        "codex",
        "UserPromptSubmit",
        {"session_id": lines[2], "cwd": str(cwd), "prompt": "A long second turn"},
        cwd,
        root=str(cwd),
    )
    bash = {"session_id": lines[2], "cwd": str(cwd), "trigger": "auto"}
    scratch.deliver("codex", "PreCompact", bash, cwd, root=str(cwd))
    drain(scratch.stores())
    assert list((scratch.vault / ".vaultd/outbox/at").rglob("claim")) == []


def test_a_claim_whose_hook_died_goes_back(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    scratch.session(cwd)
    drain(stores)
    [path] = scratch.vault.glob("*/*/handoffs/open/*.md")
    moved = path.parent.parent / "accepted" / path.name
    path.rename(moved)
    left = scratch.vault / ".vaultd/inbox/tmp/1-dead"
    left.write_bytes(b"vaultd-event 1\noffered=" + path.stem.encode() + b"\nagent=codex\n\n{}")
    Passes(stores).tidy()
    assert not path.exists()
    stamp = scratch.now.timestamp() - 601
    os.utime(left, (stamp, stamp))
    Passes(stores).tidy()
    assert path.exists() and not moved.exists()


def test_what_a_person_dragged_stays(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    scratch.session(cwd)
    drain(stores)
    [path] = scratch.vault.glob("*/*/handoffs/open/*.md")
    path.rename(path.parent.parent / "accepted" / path.name)
    scratch.now += timedelta(hours=2)
    Passes(scratch.stores()).tidy()
    drain(scratch.stores())
    assert ids(scratch, "open") == [] and start(scratch, cwd) == ""


def test_by_hand(scratch: Scratch) -> None:
    scratch.init()
    cwd = scratch.checkout()
    scratch.session(cwd, prompts=("An automatic one",))
    drain(scratch.stores())
    made = scratch.run(
        "handoffs", "begin", "The deploy key expires on Friday", "--next", "Ask Ann", "--file", "ops/keys.md", cwd=cwd
    )
    assert made.returncode == 0, made.stderr
    listed = scratch.json("handoffs", "list", "--json", cwd=cwd)
    manual = next(h["id"] for h in listed if h["id"].startswith("m-"))
    text = start(scratch, cwd)
    assert "The deploy key expires on Friday" in text and "Ask Ann" in text and "ops/keys.md" in text
    assert scratch.run("handoffs", "cancel", manual, cwd=cwd).returncode == 8
    assert scratch.run("handoffs", "show", manual, cwd=cwd).returncode == 0
    assert scratch.run("handoffs", "show", "nothing", cwd=cwd).returncode == 4
    drain(scratch.stores())
    automatic = ids(scratch, "open")[0]
    assert scratch.run("handoffs", "cancel", automatic, cwd=cwd).returncode == 0
    assert automatic in ids(scratch, "expired")
    assert scratch.run("handoffs", "begin", "x", cwd=scratch.home).returncode == 2
    piped = scratch.run("handoffs", "begin", "-", cwd=scratch.checkout("never seen"), text="The plugh is next")
    assert piped.returncode == 0 and "The plugh is next" in scratch.run("handoffs", "--all").stdout
    scratch.run("ingest", check=True)
    assert git("status", "--porcelain", cwd=scratch.vault) == ""


def test_derived_files_come_back(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    scratch.session(cwd)
    drain(stores)
    outbox = scratch.vault / ".vaultd/outbox"
    before = {p.relative_to(outbox): p.read_bytes() for p in outbox.rglob("*") if p.is_file()}
    subprocess.run(["rm", "-rf", str(outbox)], check=True)
    drain(scratch.stores())
    assert {p.relative_to(outbox): p.read_bytes() for p in outbox.rglob("*") if p.is_file()} == before
    assert "src/app.py" in start(scratch, cwd)


def test_two_repositories_of_one_name_and_three_agents_at_once(scratch: Scratch) -> None:
    stores = scratch.init()
    one, two = scratch.checkout("a/app"), scratch.checkout("b/app")
    for native, cwd, prompt in (("s1", one, "Task of one"), ("s2", two, "Task of two"), ("s3", one, "Another of one")):
        scratch.session(cwd, native=native, prompts=(prompt,), agent="codex" if native == "s2" else "claude-code")
    drain(stores)
    assert "Task of two" in start(scratch, two)
    text = start(scratch, one)
    assert "Another of one" in text and "Task of two" not in text


def test_what_follows_a_claim_is_handed_over_too(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    native = scratch.session(cwd, agent="codex", prompts=("The task before lunch",), end=False)
    drain(stores)
    scratch.now += timedelta(seconds=30)
    [claim] = (scratch.vault / ".vaultd/outbox/at").rglob("claim")
    claim.write_text("\n".join([*claim.read_text().splitlines()[:4], "0"]) + "\n")  # its 20 seconds are over
    assert "The task before lunch" in start(scratch, cwd, agent="claude-code", native="taker")
    scratch.now += timedelta(seconds=30)
    drain(scratch.stores())
    scratch.session(cwd, agent="codex", native=native, prompts=("The task after lunch",))
    drain(scratch.stores())
    text = start(scratch, cwd, agent="claude-code", native="another")
    assert "The task after lunch" in text
    assert [i.rpartition("-")[2] for i in ids(scratch, "accepted")] == ["g1", "g2"]


def prompted(scratch: Scratch, cwd: Path, native: str, agent: str = "kimi-code") -> str:
    payload = {"session_id": native, "cwd": str(cwd), "prompt": [{"type": "text", "text": "What is left?"}]}
    return scratch.hook(agent, "UserPromptSubmit", payload, cwd)


def test_an_agent_that_takes_text_at_a_prompt_is_given_it_at_its_first(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    scratch.session(cwd)
    drain(stores)
    assert prompted(scratch, cwd, "k-1").startswith("<untrusted-history>\n")
    scratch.session(cwd, native="another")
    drain(scratch.stores())
    assert ids(scratch, "open") and prompted(scratch, cwd, "k-1") == "", "once in a session"
    assert prompted(scratch, cwd, "k-2") != ""
    drain(scratch.stores())
    accepted = [frontmatter.parse(p.read_bytes()).meta.values for p in scratch.vault.glob("*/*/handoffs/accepted/*.md")]
    assert [str(values["accepted_by"]).partition("-")[0] for values in accepted] == ["kimi", "kimi"]


def test_a_prompt_that_claimed_and_did_nothing_gives_it_back(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    scratch.session(cwd)
    drain(stores)
    assert prompted(scratch, cwd, "k-1") != ""
    scratch.hook("kimi-code", "SessionEnd", {"session_id": "k-1", "cwd": str(cwd), "reason": "exit"}, cwd)
    drain(scratch.stores())
    assert (len(ids(scratch, "open")), len(ids(scratch, "accepted"))) == (1, 0)


def test_what_is_only_offered_is_told_short_and_stays_open(scratch: Scratch) -> None:
    scratch.init()
    (scratch.vault / "vaultd.toml").write_text("[handoff]\nclaim_on_session_start = false\n")
    stores, cwd = scratch.stores(), scratch.checkout()
    scratch.session(cwd)
    drain(stores)
    [name] = ids(scratch, "open")
    for native in ("n-1", "n-2"):
        text = start(scratch, cwd, native=native)
        assert f"memory_handoff_accept, handoff_id {name}" in text and len(text.encode()) < 1200
        assert "src/app.py" not in text, "no more than what it is about"
    assert prompted(scratch, cwd, "k-1").startswith("<untrusted-history>\n")
    drain(scratch.stores())
    assert ids(scratch, "open") == [name]
    scratch.run("handoffs", "accept", name, check=True, cwd=cwd)
    drain(scratch.stores())
    assert start(scratch, cwd, native="n-3") == ""


def test_moments_of_long_ago_are_forgotten(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    drain(stores)
    assert prompted(scratch, cwd, "k-1") == ""
    given = stores.vault.room / "outbox/given"
    old = given / "kimi-code-old"
    old.touch()
    os.utime(old, (0, 0))
    drain(scratch.stores())
    assert [path.name for path in given.iterdir()] == ["kimi-code-k-1"]


def test_an_agent_that_takes_little_is_given_little_and_no_other_is(scratch: Scratch) -> None:
    stores, cwd = scratch.init(), scratch.checkout()
    scratch.session(cwd, prompts=tuple(f"Do the thing number {n}: {'word ' * 60}" for n in range(30)))
    drain(stores)
    folder = stores.outbox.folder(str(cwd), "")
    assert (folder / "plain.3000").stat().st_size <= 3000 < (folder / "plain").stat().st_size <= 9000
    line = (stores.outbox.map / "kiro-cli-v3.SessionStart").read_text()
    assert line == "plain.3000 start -\n"
