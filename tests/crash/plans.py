"""The states of a vault in which commands are killed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.crash.worlds import Plan
from tests.scratch import Scratch, git
from vaultd.core.ids import session_id
from vaultd.engine.once import ingest_once

FIRST, SECOND, THIRD = (f"{n}{n}{n}{n}{n}{n}{n}{n}-2222-4333-8444-000000000001" for n in "123")
AGENT = "claude-code"


def sid(native: str) -> str:
    return str(session_id(AGENT, native))


def send(scratch: Scratch, cwd: Path, native: str, events: Sequence[tuple[str, dict[str, object]]]) -> None:
    """Deliver events of one session."""
    for name, payload in events:
        header = {k: str(payload[k]) for k in ("handoff",) if k in payload}
        body = {k: v for k, v in payload.items() if k not in header}
        scratch.deliver(AGENT, name, {"session_id": native, "cwd": str(cwd), **body}, cwd, root=str(cwd), **header)


def start(scratch: Scratch, cwd: Path) -> None:
    """The vault, and one session's whole life in the inbox."""
    scratch.init()
    scratch.session(cwd, native=FIRST, prompts=("Fix the greeting", "Then the farewell"))


def ended(scratch: Scratch, cwd: Path) -> None:
    """One session that was worked off."""
    start(scratch, cwd)
    ingest_once(scratch.stores())


def resumed(scratch: Scratch, cwd: Path) -> None:
    """A closed session whose page a person edited goes on and ends again."""
    ended(scratch, cwd)
    [page] = scratch.vault.glob("*/*/sessions/*.md")
    page.write_text(page.read_text("utf-8") + "\nMy own remark on the greeting.\n", "utf-8")
    scratch.session(cwd, native=FIRST, prompts=("And now the title", "And its colour"))


def claimed(scratch: Scratch, cwd: Path) -> None:
    """A session was given the handoff and its start was worked off; it ends without having done anything."""
    ended(scratch, cwd)
    move_handoff(scratch, f"{sid(FIRST)}-g1")
    send(scratch, cwd, SECOND, [("SessionStart", {"source": "startup", "handoff": f"{sid(FIRST)}-g1"})])
    ingest_once(scratch.stores())
    send(scratch, cwd, SECOND, [("SessionEnd", {"reason": "prompt_input_exit"})])


def given_back(scratch: Scratch, cwd: Path) -> None:
    """The same with start and end in one batch."""
    ended(scratch, cwd)
    move_handoff(scratch, f"{sid(FIRST)}-g1")
    send(scratch, cwd, SECOND, [("SessionStart", {"source": "startup", "handoff": f"{sid(FIRST)}-g1"})])
    send(scratch, cwd, SECOND, [("SessionEnd", {"reason": "prompt_input_exit"})])


def worked_on(scratch: Scratch, cwd: Path) -> None:
    """A session was given the handoff, worked, and ended with one of its own."""
    ended(scratch, cwd)
    move_handoff(scratch, f"{sid(FIRST)}-g1")
    send(scratch, cwd, SECOND, [("SessionStart", {"source": "startup", "handoff": f"{sid(FIRST)}-g1"})])
    scratch.session(cwd, native=SECOND, prompts=("Go on with the farewell", "And finish it"))


def provisional(scratch: Scratch, cwd: Path) -> None:
    """A session whose turn ended was worked off; now it ends, and its page and handoff become final."""
    scratch.init()
    scratch.session(cwd, native=FIRST, prompts=("Fix the greeting", "Then the farewell"), end=False)
    ingest_once(scratch.stores())
    send(scratch, cwd, FIRST, [("SessionEnd", {"reason": "prompt_input_exit"})])


def late(scratch: Scratch, cwd: Path) -> None:
    """An event of a session comes after its end was worked off."""
    ended(scratch, cwd)
    edit = {"tool_name": "Edit", "tool_input": {"file_path": f"{cwd}/src/late.py"}, "tool_response": {}}
    send(scratch, cwd, FIRST, [("PostToolUse", {**edit, "tool_use_id": "late-1"})])


def mixed(scratch: Scratch, cwd: Path) -> None:
    """Three sessions, one of them still going on, and poison, in one batch."""
    scratch.init()
    scratch.session(cwd, native=FIRST)
    scratch.session(cwd, native=SECOND, end=False)
    scratch.session(cwd, native=THIRD, agent="codex")
    scratch.deliver("nobody", "Stop", {"session_id": "x"}, cwd)


def outdated(scratch: Scratch, cwd: Path) -> None:
    """Two handoffs lie open, of the checkout and of a folder in it; a session in the folder was given the newer one."""
    ended(scratch, cwd)
    inner = cwd / "inner"
    inner.mkdir()
    header = {"root": str(cwd)}
    for name, payload in (
        ("SessionStart", {"source": "startup"}),
        ("UserPromptSubmit", {"prompt": "Look into the inner part", "prompt_id": "inner-1"}),
        ("PostToolUse", {"tool_name": "Bash", "tool_input": {"command": "make inner"}, "tool_use_id": "inner-2"}),
        ("UserPromptSubmit", {"prompt": "And finish it", "prompt_id": "inner-3"}),
        ("SessionEnd", {"reason": "other"}),
    ):
        scratch.deliver(AGENT, name, {"session_id": SECOND, "cwd": str(inner), **payload}, inner, **header)
    ingest_once(scratch.stores())
    move_handoff(scratch, f"{sid(SECOND)}-g1")
    body = {"session_id": THIRD, "cwd": str(inner), "source": "startup"}
    scratch.deliver(AGENT, "SessionStart", body, inner, handoff=f"{sid(SECOND)}-g1", **header)


def staged(scratch: Scratch, cwd: Path) -> None:
    """A person has staged a new page and a change, and changed one of the two again; a session ended meanwhile."""
    ended(scratch, cwd)
    (scratch.vault / "Idea.md").write_text("# An idea\n", "utf-8")
    home = scratch.vault / "Home.md"
    home.write_text(home.read_text("utf-8") + "\nStaged.\n", "utf-8")
    git("add", "Idea.md", "Home.md", cwd=scratch.vault)
    home.write_text(home.read_text("utf-8") + "\nNot staged.\n", "utf-8")
    scratch.session(cwd, native=SECOND, prompts=("Go on with the farewell", "And finish it"))


def nothing(scratch: Scratch, cwd: Path) -> None:
    """No vault yet."""


def notes(scratch: Scratch, cwd: Path) -> None:
    """A person's repository of notes, which becomes a vault."""
    for name, text in (("Daily/2026-01-01.md", "# Day\n"), ("Idea.md", "---\ntags: [a]\n---\nAn idea\n")):
        (scratch.vault / name).parent.mkdir(parents=True, exist_ok=True)
        (scratch.vault / name).write_text(text, "utf-8")
    git("init", "-q", "-b", "main", cwd=scratch.vault)
    git("add", ".", cwd=scratch.vault)
    git("commit", "-q", "-m", "notes", cwd=scratch.vault)


def move_handoff(scratch: Scratch, name: str) -> None:
    """What the hook does first when it claims."""
    [page] = scratch.vault.glob(f"*/*/handoffs/open/{name}.md")
    page.rename(page.parent.parent / "accepted" / page.name)


INIT = (("init",), ("ingest",))
ACCEPT = ("handoffs", "accept", f"{sid(FIRST)}-g1")
PLANS = {
    plan.name: plan
    for plan in (
        Plan("first", start),
        Plan("resumed", resumed),
        Plan("claimed", claimed),
        Plan("given-back", given_back),
        Plan("worked-on", worked_on),
        Plan("outdated", outdated),
        Plan("provisional", provisional),
        Plan("late", late),
        Plan("staged", staged, status="MM Home.md\nA  Idea.md"),
        Plan("mixed", mixed),
        Plan("done", ended),
        Plan("reindex", ended, ("reindex",)),
        Plan("init", nothing, ("init",), INIT, later=True),
        Plan("init-notes", notes, ("init",), INIT, later=True),
        # Accepted again it is a conflict (8); who accepted it may be missing when the first one was killed.
        Plan("accept", ended, ACCEPT, (ACCEPT, ("ingest",)), frozenset({0, 8}), r"(?m)^accepted_(at|by):.*$"),
    )
}
