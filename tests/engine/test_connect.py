"""`connect` and `disconnect`: one plan for all of an agent's files, done on consent, and taken back to the byte."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agents.test_jsontext import calm, commented, laid_out, plain, values
from tests.engine.test_install import tree
from tests.scratch import Scratch
from vaultd.agents import Agent, edits, load_agents
from vaultd.config import Config, load
from vaultd.engine.connecting import enter_plan, is_found
from vaultd.engine.foreign import apply
from vaultd.engine.parts import parts_of
from vaultd.engine.stores import local_now
from vaultd.engine.uninstall import uninstall_plan
from vaultd.errors import ConflictError
from vaultd.store import fs

AGENTS = list(load_agents().values())
EACH = pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.id)

# One of each kind of file and entry every day, all of them in CI.
KINDS = {
    *("claude-code", "codex", "gemini-cli", "kimi-code", "copilot-cli", "cline", "hermes", "zed"),
    *("kiro-cli", "kiro-cli-v3", "openclaw", "zcode"),
}
OF_EACH_KIND = pytest.mark.parametrize(
    "agent",
    [pytest.param(a, marks=() if a.id in KINDS else pytest.mark.slow) for a in AGENTS],
    ids=lambda agent: agent.id,
)


def config(home: Path, **more: str) -> Config:
    home.mkdir(exist_ok=True)
    return load(None, {"HOME": str(home), "PATH": "/usr/bin:/bin", **more})


def connect(where: Config, *agents: Agent) -> list[str]:
    """Carry the plan out; the reasons of what was refused."""
    plan, refused = enter_plan([part for agent in agents for part in parts_of(agent, where)], where.places)
    apply(plan, where.places, local_now())
    return [one.text for one in refused]


def disconnect(where: Config, *agents: Agent) -> None:
    apply(uninstall_plan(agents, where, everything=False), where.places, local_now())


def files(agent: Agent, where: Config) -> Iterator[tuple[Path, str]]:
    """The files of an agent that others write too, and their formats."""
    for part in parts_of(agent, where):
        told = {"hooks": agent.hooks, "mcp": agent.mcp}.get(part.name)
        if not part.whole and "*" not in part.path.name:
            yield part.path, told.format if told is not None else "md"


@EACH
def test_in_twice_is_in_once_and_out_leaves_nothing(agent: Agent, tmp_path: Path) -> None:
    where = config(tmp_path / "home")
    if agent.hooks is not None and "*" in agent.hooks.file:
        made = where.places.home / agent.home.folder / agent.hooks.file.replace("*", "mine")
        made.parent.mkdir(parents=True)
        made.write_text('{"name": "mine"}\n')
    before = tree(where.places.home)
    assert connect(where, agent) == []
    after = tree(where.places.home)
    assert after != before
    assert connect(where, agent) == [] and tree(where.places.home) == after
    for part in parts_of(agent, where):
        assert part.holds(part.path.read_text()), f"{part.path} is parsed again and holds it"
        assert bool(part.path.stat().st_mode & 0o100) == part.executable
    disconnect(where, agent)
    left = {name: value for name, value in tree(where.places.home).items() if ".local" not in name}
    assert left == before


FILLED = {
    "json": '{\n    "theme": "dark",\n    "list": [1, 2]\n}\n',
    "jsonc": '{\n  // mine\n  "theme": "dark", /* and mine */\n  "list": [1, 2,],\n}\n',
    "toml": '# mine\nmodel = "x" # and mine\n\n[table]\nkey = [\n  1, # one\n]\n',
    "yaml": "# mine\nmodel: x # and mine\nlist:\n- 1\n- two\n",
    "md": "# Rules\n\n- Be brief.\n",
}


@pytest.mark.parametrize(
    "form", ["crlf", "bom", "empty", *(pytest.param(f, marks=pytest.mark.slow) for f in ("plain", "no end", "blank"))]
)
@OF_EACH_KIND
def test_every_byte_of_others_stays_and_comes_back(agent: Agent, form: str, tmp_path: Path) -> None:
    where = config(tmp_path / "home")
    texts: dict[Path, bytes] = {}
    for path, kind in files(agent, where):
        text = FILLED[kind]
        text = {"crlf": text.replace("\n", "\r\n"), "no end": text.rstrip("\n"), "empty": "", "blank": "\n"}.get(
            form, text
        )
        texts[path] = (b"\xef\xbb\xbf" if form == "bom" else b"") + text.encode()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(texts[path])
    if not texts:
        return
    before = tree(where.places.home)
    assert connect(where, agent) == []
    for path, data in texts.items():
        rest = iter(path.read_bytes())
        if form not in ("empty", "blank"):
            assert all(byte in rest for byte in data), f"{path}: each byte is still there, in order"
        assert b"vaultd" in path.read_bytes()
        copies = list(path.parent.glob(f"{path.name}.bak-*"))
        assert [copy.read_bytes() for copy in copies] == [data], "a copy of it, once"
    disconnect(where, agent)
    assert {n: v for n, v in tree(where.places.home).items() if ".local" not in n} == before


@OF_EACH_KIND
def test_when_somebody_changed_a_file_since_only_ours_goes(agent: Agent, tmp_path: Path) -> None:
    where = config(tmp_path / "home")
    mine = {"json": "theme", "jsonc": "theme", "toml": "model", "yaml": "model"}
    kinds = dict(files(agent, where))
    for path, kind in kinds.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FILLED[kind])
    connect(where, agent)
    for path, kind in kinds.items():
        text = path.read_text()
        path.write_text(text + "\nOne more rule.\n" if kind == "md" else edits.put(kind, text, ["later"], "x"))
    disconnect(where, agent)
    for path, kind in kinds.items():
        text = path.read_text()
        assert "vaultd" not in text.lower(), text
        if kind == "md":
            assert text.startswith(FILLED["md"]) and text.endswith("One more rule.\n")
        else:
            told = edits.read(kind, text)
            assert told["later"] == "x" and mine[kind] in told


HOLLOW = {
    "json": '{"theme": "x", "hooks": {}, "mcpServers": {}, "servers": {"a": 1}}\n',
    "jsonc": """{
  "hooks": {}, // mine
  "mcpServers": {
    /* nothing yet */
  },
  "mcp": {},
  "context_servers": {}
}
""",
    "toml": "[mcp_servers]\n\n[other]\nkey = 1\n",
    "yaml": "hooks: {}\nmcp_servers:\nother: 1\n",
}


@OF_EACH_KIND
def test_what_was_there_and_empty_stays_when_somebody_changed_the_file_since(agent: Agent, tmp_path: Path) -> None:
    where = config(tmp_path / "home")
    kinds = {path: kind for path, kind in files(agent, where) if kind != "md" and "vaultd" not in path.name}
    for path, kind in kinds.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HOLLOW[kind])
    told = connect(where, agent)
    assert not told or (agent.hooks is not None and agent.hooks.path[-1:] == ("hooks",)), "there it is a list"
    for path, kind in kinds.items():
        path.write_text(edits.put(kind, path.read_text(), ["later"], "x"))
    disconnect(where, agent)
    for path, kind in kinds.items():
        told = edits.read(kind, path.read_text())
        assert told.pop("later") == "x"
        wanted = edits.read(kind, HOLLOW[kind])
        assert {key: value or None for key, value in told.items()} == {
            key: value or None for key, value in wanted.items()
        }
        assert kind != "jsonc" or ("// mine" in path.read_text() and "/* nothing yet */" in path.read_text())


@EACH
def test_what_cannot_be_parsed_is_refused_left_and_told_with_what_to_paste(agent: Agent, tmp_path: Path) -> None:
    where = config(tmp_path / "home")
    broken = {path: kind for path, kind in files(agent, where) if kind != "md"}
    for path, kind in broken.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text({"toml": "a = \n", "yaml": "a: [\n"}.get(kind, '{"a": 1'))
    before = {path: path.read_bytes() for path in broken}
    told = connect(where, agent)
    assert {path: path.read_bytes() for path in broken} == before
    for path in broken:
        said = [text for text in told if str(path) in text]
        assert said and all("cannot be edited safely" in text and "vaultd" in text.split("\n", 2)[2] for text in said)


@pytest.mark.parametrize("agent", [a for a in AGENTS if a.home.env], ids=lambda agent: agent.id)
def test_a_variable_moves_all_of_an_agents_files_and_a_blank_one_none(agent: Agent, tmp_path: Path) -> None:
    elsewhere = tmp_path / "else where"
    moved, blank = (
        config(tmp_path / "h", **{agent.home.env: str(elsewhere)}),
        config(tmp_path / "h", **{agent.home.env: " "}),
    )
    usual = config(tmp_path / "h")
    assert [p.path for p in parts_of(agent, blank)] == [p.path for p in parts_of(agent, usual)]
    if "*" in (agent.hooks.file if agent.hooks is not None else ""):
        return
    assert all(part.path.is_relative_to(elsewhere) for part in parts_of(agent, moved))
    connect(moved, agent)
    for path, kind in dict(files(agent, moved)).items():
        if kind != "md":
            path.write_text(edits.put(kind, path.read_text(), ["later"], "x"))
    disconnect(usual, agent)
    for path, kind in dict(files(agent, moved)).items():
        assert kind == "md" or "vaultd" not in path.read_text()
        path.unlink(missing_ok=True)
    assert not any(path.is_file() for path in elsewhere.rglob("*")), "the record knows where they went"


@OF_EACH_KIND
def test_links_are_followed_and_stay(agent: Agent, tmp_path: Path) -> None:
    where = config(tmp_path / "home")
    targets = []
    for number, (path, kind) in enumerate(files(agent, where)):
        target = where.places.home / "dotfiles" / f"{number}"
        target.parent.mkdir(exist_ok=True)
        if path.is_symlink():
            continue
        target.write_text(FILLED[kind])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
        targets.append((path, target))
    before = tree(where.places.home)
    connect(where, agent)
    for path, target in targets:
        assert path.is_symlink() and "vaultd" in target.read_text()
    disconnect(where, agent)
    assert {n: v for n, v in tree(where.places.home).items() if ".local" not in n} == before


def test_a_file_in_our_place_that_is_somebody_elses_is_left(tmp_path: Path) -> None:
    where = config(tmp_path / "home")
    cline, opencode = load_agents()["cline"], load_agents()["opencode"]
    theirs = where.places.home / ".cline/hooks/PostToolUse"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("#!/bin/sh\necho mine\n")
    told = connect(where, cline, opencode)
    assert len(told) == 1 and "vaultd's file" in told[0] and "vaultd-hook" in told[0]
    assert theirs.read_text() == "#!/bin/sh\necho mine\n"
    assert (theirs.parent / "TaskStart").exists(), "the others are done"
    disconnect(where, cline, opencode)
    assert theirs.read_text() == "#!/bin/sh\necho mine\n"


def test_one_part_of_a_file_goes_and_another_stays(tmp_path: Path) -> None:
    where, agent = config(tmp_path / "home"), load_agents()["gemini-cli"]
    path = where.places.home / ".gemini/settings.json"
    path.parent.mkdir()
    path.write_text('{\n  "theme": "dark"\n}\n')
    connect(where, agent)
    apply(uninstall_plan([agent], where, everything=False, names=["mcp"]), where.places, local_now())
    told = json.loads(path.read_text())
    assert "mcpServers" not in told and "hooks" in told and told["theme"] == "dark"
    disconnect(where, agent)
    assert path.read_text() == '{\n  "theme": "dark"\n}\n'


def test_what_is_found_here(tmp_path: Path) -> None:
    where = config(tmp_path / "home", PATH=str(tmp_path / "bin"))
    assert not [a.id for a in AGENTS if is_found(a, where.places, where.environ)]
    program = tmp_path / "bin/gemini"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (where.places.home / ".codex").mkdir()
    assert [a.id for a in AGENTS if is_found(a, where.places, where.environ)] == ["codex", "gemini-cli"]


BOTH = [load_agents()["gemini-cli"], load_agents()["opencode"], load_agents()["claude-code"]]


@calm
@given(st.dictionaries(st.sampled_from(["model", "env", "é"]), values, max_size=3), st.data(), st.sampled_from(BOTH))
def test_any_layout_comes_back(
    tmp_path_factory: pytest.TempPathFactory, told: dict[str, Any], data: st.DataObject, agent: Agent
) -> None:
    where = config(tmp_path_factory.mktemp("any") / "home")
    originals = {}
    for path, kind in files(agent, where):
        space = commented if kind == "jsonc" else plain
        originals[path] = laid_out(told, data.draw, space) if kind != "md" else FILLED["md"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(originals[path].encode())
    assert connect(where, agent) == []
    for path in originals:
        for copy in path.parent.glob("*.bak-*"):
            copy.unlink()  # so that nothing but the text is left to go by
    disconnect(where, agent)
    for path, text in originals.items():
        left = path.read_bytes().decode()
        if dict(files(agent, where))[path] == "jsonc":  # of spaces between comments some may go
            assert "".join(left.split()) == "".join(text.split()) or not told
        elif told or path.suffix == ".md":
            assert left == text


def test_the_command_shows_one_plan_and_does_it_only_on_consent(scratch: Scratch) -> None:
    assert scratch.run("connect").returncode == 4, "no agent is here"
    for name in (".claude", ".gemini"):
        (scratch.home / name).mkdir()
    before = tree(scratch.home)
    for more, code in ((["--print"], 0), ([], 2)):
        ran = scratch.run("connect", *more)
        shown = ran.stdout
        assert ran.returncode == code and "Nothing was changed" in shown + ran.stderr
        assert "Claude Code: is recorded" in shown and "Gemini CLI: is recorded" in shown
        assert "A vault is made at" in shown and f"+++ {scratch.home}/.gemini/settings.json" in shown
        assert "takes effect" not in shown, "nothing was done"
        assert tree(scratch.home) == before and not scratch.vault.exists()
    assert "Did you mean gemini-cli?" in scratch.run("connect", "gemini").stderr
    assert scratch.run("connect", "claude code", "--print").returncode == 0, "by its title"
    done = scratch.run("connect", "--yes", check=True).stdout
    assert "made" in done and "@@" not in done and scratch.vault.is_dir(), "with --yes no diffs"
    assert (scratch.home / ".local/share/vaultd/vaultd-hook").is_file()
    again = scratch.run("connect", "--yes", check=True).stdout
    assert "Nothing to change" in again and len(again.splitlines()) < 5
    shown = scratch.run("disconnect", "--print", check=True).stdout
    assert "Nothing was changed" in shown and f"--- {scratch.home}/.claude/settings.json" in shown
    scratch.run("disconnect", "--yes", check=True)
    left = {n: v for n, v in tree(scratch.home).items() if not n.startswith((".local", ".config"))}
    assert left == before
    assert "Nothing of vaultd" in scratch.run("disconnect", "--yes", check=True).stdout


def test_a_refused_file_is_told_and_the_rest_is_done(scratch: Scratch) -> None:
    (scratch.home / ".gemini").mkdir()
    (scratch.home / ".gemini/settings.json").write_text("{")
    done = scratch.run("connect", "gemini-cli", "claude-code", "--yes")
    assert done.returncode == 6 and "cannot be edited safely" in done.stderr and '"mcpServers"' in done.stderr
    assert "run `vaultd connect gemini-cli` again" in done.stderr
    assert not (scratch.home / ".gemini/GEMINI.md").exists(), "it would speak of tools that are not there"
    assert (scratch.home / ".claude/settings.json").is_file()
    assert (scratch.home / ".gemini/settings.json").read_text() == "{"


def answered(scratch: Scratch, command: list[str], questions: list[bytes], answer: str) -> bytes:
    """Run a command on a terminal and give each of its questions that answer; all that it said."""
    outer, inner = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "vaultd", *command],
        cwd=scratch.base,
        env=scratch.environ,
        stdin=inner,
        stdout=inner,
        stderr=inner,
        start_new_session=True,
    )
    os.close(inner)
    said = b""
    for question in questions:
        while question not in said or b"[y/N]" not in said[said.rindex(question) :]:
            assert select.select([outer], [], [], 60)[0], said
            said += os.read(outer, 65536)
        os.write(outer, answer.encode())
    while True:
        try:
            said += os.read(outer, 65536)
        except OSError:  # the other end is closed
            break
    assert process.wait(60) == 0
    os.close(outer)
    return said


@pytest.mark.parametrize(("answer", "done"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_a_person_is_asked(scratch: Scratch, answer: str, done: bool) -> None:
    (scratch.home / ".claude").mkdir()
    answered(scratch, ["connect"], [b"Do this?"], answer)
    assert (scratch.home / ".claude/settings.json").exists() == done


def test_up_ends_by_offering_to_connect(scratch: Scratch) -> None:
    (scratch.home / ".claude").mkdir()
    try:
        said = scratch.run("up", check=True).stdout
        assert "Next: `vaultd connect` (found here: claude-code)" in said
        assert not (scratch.home / ".claude/settings.json").exists()
        talk = answered(scratch, ["up"], [b"Connect the agents", b"Do this?"], "y\n")
        assert b"Claude Code: is recorded" in talk and (scratch.home / ".claude/settings.json").exists()
        assert "connect" not in scratch.run("up", check=True).stdout.splitlines()[-1]
    finally:
        scratch.run("down", check=True)


THEIRS = {
    "a lone begin mark": "# mine\n<!-- vaultd:begin -->\nIMPORTANT RULES OF MINE\nmore\n",
    "a fence": "# mine\n```\n<!-- vaultd:begin -->\n## Memory (vaultd)\nmy words\n<!-- vaultd:end -->\n```\n",
    "a block of theirs": "<!-- vaultd:begin -->\nmy own\n<!-- vaultd:end -->\n",
    "a lone end mark": "<!-- vaultd:end -->\nmine\n",
}


@pytest.mark.parametrize("text", THEIRS.values(), ids=THEIRS.keys())
def test_somebodys_words_about_our_block_are_left(tmp_path: Path, text: str) -> None:
    where, agent = config(tmp_path / "home"), load_agents()["codex"]
    path = where.places.home / ".codex/AGENTS.md"
    path.parent.mkdir()
    path.write_text(text)
    for _ in range(2):
        assert connect(where, agent) == []
        assert path.read_text().startswith(text) and path.read_text().count("A long-term memory") == 1
    path.write_text(path.read_text() + "hello\n")
    disconnect(where, agent)
    assert path.read_text() == text + "hello\n"


@pytest.mark.parametrize("name", ["claude-code", "opencode", "codex"])
def test_out_means_out_also_after_changes_between_two_connects(tmp_path: Path, name: str) -> None:
    where, agent = config(tmp_path / "home"), load_agents()[name]
    before = tree(where.places.home)
    connect(where, agent)
    for part in parts_of(agent, where):
        text = part.path.read_text()
        part.path.write_text(text.replace("Stop", "Stap").replace("history", "hystory"))
    connect(where, agent)
    disconnect(where, agent)
    for part in parts_of(agent, where):
        assert not part.path.exists() or "vaultd" not in part.path.read_text(), part.path
    assert not list(where.places.home.rglob("*.bak-*"))
    connect(where, agent)
    disconnect(where, agent)
    left = {n: v for n, v in tree(where.places.home).items() if ".local" not in n}
    assert {n for n in left if n.endswith((".ts", ".md"))} == {n for n in before if n.endswith((".ts", ".md"))}


def test_two_agents_of_one_folder_do_not_take_each_others_file(tmp_path: Path) -> None:
    folder = tmp_path / "pi"
    folder.mkdir()
    where = config(tmp_path / "home", PI_CODING_AGENT_DIR=str(folder))
    pi, omp = load_agents()["pi"], load_agents()["oh-my-pi"]
    assert not is_found(pi, where.places, where.environ) and not is_found(omp, where.places, where.environ)
    told = connect(where, pi, omp)
    assert len(told) == 1 and "another agent's already" in told[0]
    text = (folder / "extensions/vaultd.ts").read_text()
    assert '"pi"' in text
    connect(where, pi, omp)
    assert (folder / "extensions/vaultd.ts").read_text() == text


def test_what_another_agent_still_uses_stays(tmp_path: Path) -> None:
    where = config(tmp_path / "home")
    gemini, other = load_agents()["gemini-cli"], load_agents()["antigravity-cli"]
    connect(where, gemini)
    connect(where, other)
    disconnect(where, other)
    assert "vaultd" in (where.places.home / ".gemini/GEMINI.md").read_text()
    disconnect(where, gemini)
    assert not (where.places.home / ".gemini/GEMINI.md").exists()


def test_what_is_no_file_holds_nothing_up(tmp_path: Path) -> None:
    where, agent = config(tmp_path / "home"), load_agents()["codex"]
    (where.places.home / ".codex").mkdir()
    os.mkfifo(where.places.home / ".codex/hooks.json")
    told = connect(where, agent)
    assert len(told) == 1 and "is no file" in told[0]
    assert "vaultd" in (where.places.home / ".codex/config.toml").read_text()
    disconnect(where, agent)
    assert not (where.places.home / ".codex/config.toml").exists()


def test_a_file_that_is_written_at_the_last_moment_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where, agent = config(tmp_path / "home"), load_agents()["claude-code"]
    path = where.places.home / ".claude.json"
    path.write_text('{"a": 1}')
    plan, _ = enter_plan(parts_of(agent, where, ["mcp"]), where.places)
    made = fs.temp_beside

    def late(target: Path, *args: Any, **more: Any) -> Path:
        temp = made(target, *args, **more)
        if target == path:
            path.write_text('{"a": 2}')  # as the agent does, all the time
        return temp

    monkeypatch.setattr(fs, "temp_beside", late)
    with pytest.raises(ConflictError):
        apply(plan, where.places, local_now())
    assert path.read_text() == '{"a": 2}'
    assert not list(path.parent.glob(f"{fs.TEMP_PREFIX}*"))
