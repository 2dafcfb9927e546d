"""Wiring agents and taking everything out again, in real folders."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agents.recorded import an
from tests.agents.test_hookfile import configs
from tests.agents.test_jsontext import calm, laid_out, plain
from vaultd.agents import Agent
from vaultd.config import Config, Places, load, places
from vaultd.engine.connecting import single_plan
from vaultd.engine.foreign import Plan, apply
from vaultd.engine.install import hook_is_current, is_wired, refresh_hook, wired_agents
from vaultd.engine.parts import hook_parts
from vaultd.engine.uninstall import uninstall_plan
from vaultd.errors import ConflictError, RefusedError

NOW = datetime(2026, 11, 29, 21, 0, tzinfo=timezone(timedelta(hours=1)))
AGENTS = [an("claude-code"), an("codex")]
BY_ID = pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.id)
SCRIPT = b"#!/bin/sh\nexit 0\n"


def home(tmp_path: Path) -> Places:
    folder = tmp_path / "home"
    folder.mkdir(exist_ok=True)
    return places({"HOME": str(folder)})


def file_of(agent: Agent, where: Places) -> Path:
    assert agent.hooks is not None
    return where.home / agent.home.folder / agent.hooks.file


def settings(where: Places) -> Config:
    return load(None, {"HOME": str(where.home)})


def install_plan(agent: Agent, where: Places, environ: dict[str, str]) -> Plan:
    return single_plan(hook_parts(agent, where, environ), where)


def put(path: Path, data: bytes, mode: int = 0o600) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)
    return path


def tree(folder: Path) -> dict[str, Any]:
    """Everything below a folder: links, bytes and permissions."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = os.readlink(path)  # noqa: PTH115  # the text of the link, not a path
        elif path.is_file():
            found[name] = (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        else:
            found[name] = None
    return found


def install(agent: Agent, where: Places, now: datetime = NOW) -> list[str]:
    refresh_hook(SCRIPT, where)
    return apply(install_plan(agent, where, {}), where, now)


def uninstall(where: Places, *agents: Agent, everything: bool = True) -> list[str]:
    plan = uninstall_plan(agents or AGENTS, settings(where), everything=everything)
    return apply(plan, where, NOW)


@BY_ID
def test_a_plan_changes_nothing_and_says_what_it_would(agent: Agent, tmp_path: Path) -> None:
    where = home(tmp_path)
    put(file_of(agent, where), b'{"model": "x"}\n')
    before = tree(where.home)
    plan = install_plan(agent, where, {})
    assert tree(where.home) == before
    assert f"vaultd-hook {agent.id} SessionStart" in plan.text and not plan.empty
    assert plan.text.startswith(f"--- {file_of(agent, where)}\n")
    assert not is_wired(agent, where, {})


@BY_ID
def test_it_is_the_plan_that_is_carried_out_and_twice_is_once(agent: Agent, tmp_path: Path) -> None:
    where = home(tmp_path)
    path = put(file_of(agent, where), b'{\n    "model": "x"\n}\n', 0o664)
    plan = install_plan(agent, where, {})
    refresh_hook(SCRIPT, where)
    apply(plan, where, NOW)
    assert path.read_bytes() == plan.changes[0].after
    assert stat.S_IMODE(path.stat().st_mode) == 0o664
    backup = path.with_name(f"{path.name}.bak-{int(NOW.timestamp())}")
    assert backup.read_bytes() == b'{\n    "model": "x"\n}\n'
    after = tree(where.home)
    again = install_plan(agent, where, {})
    assert again.empty and "are wired already" in again.notes[0]
    assert apply(again, where, NOW) == []
    assert tree(where.home) == after
    assert wired_agents(AGENTS, where, {}) == [agent.id]


@BY_ID
def test_a_folder_and_file_that_were_not_there_are_gone_again(agent: Agent, tmp_path: Path) -> None:
    where = home(tmp_path)
    install(agent, where)
    assert file_of(agent, where).is_file() and where.hook.is_file()
    uninstall(where)
    assert tree(where.home) == {}


def test_nothing_is_left_outside_the_vault(tmp_path: Path) -> None:
    where = home(tmp_path)
    put(where.home / ".claude/settings.json", b'{"a": [1,2],\r\n\t"hooks": {}, "z": "\xc3\xbc"}')
    put(where.home / ".codex/config.toml", b'model = "x"\n')
    put(where.home / ".profile", b"x")
    before = tree(where.home)
    for agent in AGENTS:
        install(agent, where)
    put(where.pointer, b"/vault\n")
    put(where.index(Path("/vault")) / "toc", b"x")
    (where.spool / "new").mkdir(parents=True)
    uninstall(where)
    assert tree(where.home) == before


def test_a_persons_settings_and_waiting_events_stay_and_are_named(tmp_path: Path) -> None:
    where = home(tmp_path)
    put(where.settings, b"[capture]\n")
    put(where.spool / "1-a", b"vaultd-event 1\n\n{}")
    plan = uninstall_plan(AGENTS, settings(where))
    apply(plan, where, NOW)
    assert where.settings.exists() and (where.spool / "1-a").exists()
    assert str(where.settings) in plan.notes[0] and plan.notes[1].startswith("1 events wait")


def test_one_agent_alone_can_be_taken_out(tmp_path: Path) -> None:
    where = home(tmp_path)
    for agent in AGENTS:
        install(agent, where)
    uninstall(where, AGENTS[0], everything=False)
    assert wired_agents(AGENTS, where, {}) == [AGENTS[1].id]
    assert where.hook.is_file()


@calm
@given(configs, st.data(), st.sampled_from(AGENTS), st.booleans())
def test_install_and_uninstall_restore_every_byte(
    tmp_path_factory: pytest.TempPathFactory, config: Any, data: st.DataObject, agent: Agent, again: bool
) -> None:
    where = home(tmp_path_factory.mktemp("any"))
    text = laid_out(config, data.draw, plain) + data.draw(plain)
    path = put(file_of(agent, where), text.encode())
    before = tree(where.home)
    install(agent, where)
    assert path.read_bytes() != text.encode()
    if again:
        # an older release had wired less: the second change is on top of the first
        fewer = replace(agent, events={n: s for n, s in agent.events.items() if n != "Stop"})
        apply(install_plan(fewer, where, {}), where, NOW)
        install(agent, where)
    uninstall(where)
    assert tree(where.home) == before


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"{}", b"{ }\n", b"{\n}\n", b"\xef\xbb\xbf{}", b'{"hooks": {"Stop": []}}']
)
@BY_ID
def test_empty_files_come_back_as_they_were(agent: Agent, content: bytes, tmp_path: Path) -> None:
    where = home(tmp_path)
    path = put(file_of(agent, where), content)
    install(agent, where)
    uninstall(where)
    assert path.read_bytes() == content


def grown(path: Path) -> None:
    value = json.loads(path.read_bytes())
    value["theme"] = "dark"
    path.write_text(json.dumps(value, indent=2))


def lost(path: Path) -> None:
    for copy in path.parent.glob("*.bak-*"):
        copy.unlink()


@pytest.mark.parametrize("meanwhile", [grown, lost], ids=["changed", "copy lost"])
@BY_ID
def test_after_somebody_elses_change_only_our_entries_go(
    agent: Agent, meanwhile: Callable[[Path], None], tmp_path: Path
) -> None:
    where = home(tmp_path)
    path = put(file_of(agent, where), b'{\n  "model": "x"\n}\n')
    install(agent, where)
    meanwhile(path)
    uninstall(where)
    expected = {"model": "x", "theme": "dark"} if meanwhile is grown else {"model": "x"}
    assert json.loads(path.read_bytes()) == expected
    assert tree(path.parent).keys() == {path.name}


def test_a_file_made_for_us_in_which_somebody_else_now_has_something_stays(tmp_path: Path) -> None:
    where, agent = home(tmp_path), AGENTS[1]
    install(agent, where)
    grown(file_of(agent, where))
    uninstall(where)
    assert json.loads(file_of(agent, where).read_bytes()) == {"theme": "dark"}


@BY_ID
def test_a_link_is_followed_and_stays_one(agent: Agent, tmp_path: Path) -> None:
    where = home(tmp_path)
    target = put(where.home / "dotfiles/settings.json", b'{"a": 1}')
    path = file_of(agent, where)
    path.parent.mkdir()
    path.symlink_to("../dotfiles/settings.json")
    before = tree(where.home)
    plan = install_plan(agent, where, {})
    assert any(str(target) in note for note in plan.notes)
    install(agent, where)
    assert path.is_symlink() and b"vaultd-hook" in target.read_bytes()
    uninstall(where)
    assert tree(where.home) == before


def readonly(path: Path) -> None:
    path.chmod(0o444)


def broken(path: Path) -> None:
    path.write_bytes(b'{"a": 1,}')


def no_utf8(path: Path) -> None:
    path.write_bytes(b'{"a": "\xff"}')


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("state", [readonly, broken, no_utf8, folder])
@BY_ID
def test_what_cannot_be_edited_safely_is_refused_and_left(
    agent: Agent, state: Callable[[Path], None], tmp_path: Path
) -> None:
    where = home(tmp_path)
    path = put(file_of(agent, where), b'{"a": 1}')
    state(path)
    before = tree(where.home)
    with pytest.raises(RefusedError) as refused:
        install_plan(agent, where, {})
    assert str(path) in str(refused.value)
    if state is not folder:
        assert f"vaultd-hook {agent.id} SessionStart" in str(refused.value)
    assert tree(where.home) == before


def test_uninstall_refuses_what_it_cannot_edit_and_then_does_nothing(tmp_path: Path) -> None:
    where = home(tmp_path)
    for agent in AGENTS:
        install(agent, where)
    path = file_of(AGENTS[1], where)
    path.write_bytes(path.read_bytes() + b"// note\n")
    before = tree(where.home)
    with pytest.raises(RefusedError, match="cannot be edited safely"):
        uninstall(where)
    assert tree(where.home) == before


@BY_ID
def test_a_file_that_changed_since_the_plan_is_left(agent: Agent, tmp_path: Path) -> None:
    where = home(tmp_path)
    path = put(file_of(agent, where), b"{}")
    plan = install_plan(agent, where, {})
    path.write_bytes(b'{"new": 1}')
    with pytest.raises(ConflictError):
        apply(plan, where, NOW)
    assert path.read_bytes() == b'{"new": 1}'
    assert tree(path.parent).keys() == {path.name}


@BY_ID
def test_a_variable_moves_the_folder_and_uninstall_still_finds_it(agent: Agent, tmp_path: Path) -> None:
    where, elsewhere = home(tmp_path), tmp_path / "else where"
    environ = {agent.home.env: str(elsewhere)}
    blank = {agent.home.env: "  "}
    assert install_plan(agent, where, blank).changes[0].path == file_of(agent, where)
    refresh_hook(SCRIPT, where)
    apply(install_plan(agent, where, environ), where, NOW)
    assert (elsewhere / file_of(agent, where).name).is_file()
    uninstall(where)
    assert not elsewhere.exists()


def test_two_copies_in_one_second_do_not_meet(tmp_path: Path) -> None:
    where, agent = home(tmp_path), AGENTS[0]
    path = put(file_of(agent, where), b'{"a": 1}')
    put(path.with_name(f"{path.name}.bak-{int(NOW.timestamp())}"), b"somebody else's")
    before = tree(where.home)
    install(agent, where)
    assert len(list(path.parent.glob("*.bak-*"))) == 2
    uninstall(where)
    assert tree(where.home) == before


def test_trust_is_told_of_and_never_written(tmp_path: Path) -> None:
    where, agent = home(tmp_path), an("codex")
    config = put(where.home / ".codex/config.toml", b"[hooks.state]\n")
    plan = install_plan(agent, where, {})
    assert any("/hooks" in note for note in plan.notes)
    install(agent, where)
    assert config.read_bytes() == b"[hooks.state]\n"
    path = file_of(agent, where)
    value = json.loads(path.read_bytes())
    value["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "other"}]})
    path.write_text(json.dumps(value))
    assert any("ask again" in note for note in uninstall_plan(AGENTS, settings(where)).notes)


def test_the_hook_is_refreshed_only_when_it_is_not_current(tmp_path: Path) -> None:
    where = home(tmp_path)
    assert not hook_is_current(SCRIPT, where)
    assert refresh_hook(SCRIPT, where)
    assert where.hook == where.home / ".local/share/vaultd/vaultd-hook"
    assert stat.S_IMODE(where.hook.stat().st_mode) == 0o755
    assert not refresh_hook(SCRIPT, where)
    inode = where.hook.stat().st_ino
    assert refresh_hook(SCRIPT + b"# new\n", where)
    assert where.hook.read_bytes().endswith(b"# new\n") and where.hook.stat().st_ino != inode
    where.hook.chmod(0o644)
    assert not hook_is_current(SCRIPT + b"# new\n", where)
    assert refresh_hook(SCRIPT + b"# new\n", where)


def test_a_damaged_record_is_no_harm(tmp_path: Path) -> None:
    where = home(tmp_path)
    path = put(file_of(AGENTS[0], where), b'{"a": 1}')
    install(AGENTS[0], where)
    (where.data / "installed.json").write_text('{"vaultd-installed": 1, "changes": [{"agent": 1}]}')
    assert is_wired(AGENTS[0], where, {})
    uninstall(where)
    assert path.read_bytes() == b'{"a": 1}'
