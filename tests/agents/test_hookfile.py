"""Our entries in an agent's configuration: in, out, and nothing else changed."""

from __future__ import annotations

import copy
import json
import shlex
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.agents.recorded import an
from tests.agents.test_jsontext import calm, commented, laid_out, plain, values
from vaultd.agents import load_agents
from vaultd.agents.edits import EditError
from vaultd.agents.hookfile import added, command_line, entries, later_groups, removed, snippet
from vaultd.agents.jsontext import Text

HOOK = Path("/home/dev/.local/share/vaultd/vaultd-hook")
OTHER = {"matcher": "Bash", "hooks": [{"type": "command", "command": "notify vaultd-hook codex Stop"}]}
CLAUDE, CODEX = an("claude-code"), an("codex")


FILED = [agent for agent in load_agents().values() if agent.hooks is not None and not agent.hooks.template]
PARSERS: dict[str, Callable[[str], Any]] = {
    "json": json.loads,
    "jsonc": json.loads,
    "toml": tomllib.loads,
    "yaml": yaml.safe_load,
}


def started(value: Any) -> Iterator[list[str]]:
    """The words of every command of ours in a configuration, by one look at it that knows no format."""
    if isinstance(value, dict):
        args = [part for part in value.values() if isinstance(part, list) and len(part) == 2]
        for part in value.values():
            if isinstance(part, str) and part.endswith("vaultd-hook") and args:
                yield [part, *args[0]]
            elif isinstance(part, str) and "vaultd-hook " in part:
                yield shlex.split(part)[-3:]
            else:
                yield from started(part)
    elif isinstance(value, list):
        for part in value:
            yield from started(part)


@pytest.mark.parametrize("agent", FILED, ids=lambda a: a.id)
def test_a_fresh_file_holds_every_wired_event_and_nothing_else(agent: Any) -> None:
    text = added(agent, "", HOOK)
    value = PARSERS[agent.hooks.format](text)
    assert list(started(value)) == [[str(HOOK), agent.id, spec.name] for spec in agent.wired]
    assert [entry.event for entry in entries(agent, text)] == [spec.name for spec in agent.wired]
    unit = {"s": 1, "ms": 1000}[agent.hooks.timeout_unit]
    for entry, spec in zip(entries(agent, text), agent.wired, strict=True):
        assert entry.timeout in (None, spec.timeout) and entry.plain
        assert "{timeout}" not in str(agent.hooks.entry) or f"{spec.timeout * unit}" in text
    assert text == snippet(agent, HOOK) + "\n"
    assert added(agent, text, HOOK) == text
    assert removed(agent, text) is None


def test_what_an_entry_looks_like() -> None:
    handler = {"type": "command", "command": f"{HOOK} claude-code Stop", "timeout": 5}
    assert json.loads(added(CLAUDE, "", HOOK))["hooks"]["Stop"] == [{"hooks": [handler]}]
    gemini = json.loads(added(an("gemini-cli"), "", HOOK))["hooks"]["AfterAgent"]
    assert gemini == [{"hooks": [{**handler, "command": f"{HOOK} gemini-cli AfterAgent", "timeout": 5000}]}]
    copilot = json.loads(added(an("copilot-cli"), "", HOOK))
    entry = {"type": "command", "bash": f"{HOOK} copilot-cli agentStop", "timeoutSec": 5}
    assert copilot["version"] == 1 and copilot["hooks"]["agentStop"] == [entry]
    kimi = tomllib.loads(added(an("kimi-code"), "", HOOK))["hooks"]
    assert {"event": "Stop", "command": f"{HOOK} kimi-code Stop", "timeout": 5} in kimi


def test_a_command_survives_the_shell_whatever_the_path() -> None:
    hook = Path('/home/d\'ev "x" $HOME/über/vaultd-hook')
    line = command_line(CODEX, hook, "Stop")
    assert shlex.split(line) == [str(hook), "codex", "Stop"]
    shown = subprocess.run(["sh", "-c", f"printf '%s|' {line}"], capture_output=True, check=True).stdout.decode()
    assert shown == f"{hook}|codex|Stop|"
    assert [entry.program for entry in entries(CODEX, added(CODEX, "", hook))] == [str(hook)] * len(CODEX.wired)


def test_others_entries_are_kept_and_not_taken_for_ours() -> None:
    text = json.dumps({"model": "opus", "hooks": {"Stop": [OTHER], "PreToolUse": [OTHER]}}, indent=4)
    assert entries(CLAUDE, text) == ()
    longer = added(CLAUDE, text, HOOK)
    hooks = json.loads(longer)["hooks"]
    assert hooks["Stop"][0] == OTHER and hooks["PreToolUse"] == [OTHER] and len(hooks["Stop"]) == 2
    assert removed(CLAUDE, longer) == text
    assert removed(CLAUDE, text) == text
    assert later_groups(CLAUDE, longer) == ()


def test_another_agents_hook_in_the_same_file_is_not_ours() -> None:
    text = added(CODEX, "", HOOK)
    assert entries(CLAUDE, text) == ()
    both = added(CLAUDE, text, HOOK)
    assert json.loads(removed(CLAUDE, both) or "") == json.loads(text)


def test_an_old_path_is_mended_in_place_and_double_or_retired_entries_go() -> None:
    old = added(CODEX, "", Path("/old home/vaultd-hook"))
    value = json.loads(old)
    value["hooks"]["Stop"].append(value["hooks"]["Stop"][0])
    value["hooks"]["PreToolUse"] = [{"hooks": [{"type": "command", "command": f"{HOOK} codex PreToolUse"}]}]
    value["hooks"]["Stop"].append(OTHER)
    mended = added(CODEX, json.dumps(value, indent=2), HOOK)
    expected = json.loads(added(CODEX, "", HOOK))
    expected["hooks"]["Stop"].append(OTHER)
    assert json.loads(mended) == expected
    assert later_groups(CODEX, mended) == ("Stop",)


def test_an_edit_that_went_wrong_is_not_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps({"model": "opus", "hooks": {"Stop": [OTHER]}})
    whole = added(CLAUDE, text, HOOK)
    append, drop = Text.append, Text.drop
    monkeypatch.setattr(Text, "append", lambda *args: append(*args).replace("opus", "sonnet"))
    with pytest.raises(EditError, match="what others wrote"):
        added(CLAUDE, text, HOOK)
    monkeypatch.setattr(Text, "drop", lambda *args: drop(*args).replace("notify", "nothing"))
    with pytest.raises(EditError, match="what others wrote"):
        removed(CLAUDE, whole)


def test_a_timeout_or_matcher_that_a_person_changed_stays() -> None:
    text = added(CODEX, "", HOOK).replace('"timeout": 10', '"timeout": 12')
    assert added(CODEX, text, HOOK) == text


def test_our_handler_in_a_group_of_others_goes_alone() -> None:
    ours = {"type": "command", "command": f"{HOOK} codex Stop", "timeout": 5}
    theirs = {"type": "command", "command": "notify"}
    for hooks in ([ours, theirs], [theirs, ours]):
        text = json.dumps({"hooks": {"Stop": [{"matcher": "x", "hooks": hooks}]}})
        assert json.loads(removed(CODEX, text) or "") == {"hooks": {"Stop": [{"matcher": "x", "hooks": [theirs]}]}}
    noted = {"hooks": {"Stop": [{"note": "mine", "hooks": [ours]}]}}
    assert json.loads(removed(CODEX, json.dumps(noted)) or "") == {"hooks": {"Stop": [{"note": "mine", "hooks": []}]}}


@pytest.mark.parametrize(
    "text",
    ["[]", "7", '{"hooks": []}', '{"hooks": {"Stop": {}}}', '{"hooks": null}', '{"hooks": {}, "hooks": {}}',
     '{"a": 1,}', "{", "// note\n{}"]
)  # fmt: skip
def test_a_file_that_cannot_be_edited_safely_is_refused(text: str) -> None:
    with pytest.raises(EditError):
        added(CLAUDE, text, HOOK)


keys = st.sampled_from(["model", "env", "permissions", "hooks2", "é"])
groups = st.lists(st.just(OTHER) | values, max_size=3)
events = st.dictionaries(st.sampled_from(["Stop", "SessionStart", "PreToolUse", "Mine"]), groups, max_size=4)
configs = st.builds(
    lambda rest, hooks, first: {"hooks": hooks, **rest} if first else {**rest, "hooks": hooks},
    st.dictionaries(keys, values, max_size=3),
    events,
    st.booleans(),
) | st.dictionaries(keys, values, max_size=3)


@calm
@given(configs, st.data(), st.sampled_from(["claude-code", "codex"]), st.booleans())
def test_in_and_out_again_leaves_any_layout_as_it_was(config: Any, data: st.DataObject, name: str, jsonc: bool) -> None:
    agent = an(name)
    if jsonc:
        assert agent.hooks is not None
        agent = replace(agent, hooks=replace(agent.hooks, format="jsonc"))
    text = laid_out(config, data.draw, commented if jsonc else plain) + data.draw(plain)
    longer = added(agent, text, HOOK)
    assert added(agent, longer, HOOK) == longer
    assert len(entries(agent, longer)) == len(agent.wired)
    back = removed(agent, longer)
    if not jsonc:
        expected = copy.deepcopy(config)
        assert tidied(json.loads(back or "{}")) == tidied(expected)
        if config and full(config.get("hooks"), [spec.name for spec in agent.wired]):
            assert back == text


def full(hooks: Any, wired: list[str]) -> bool:
    """No container that we would fill was there and empty (then its own space cannot be known afterwards)."""
    return hooks is None or (bool(hooks) and all(hooks.get(event, True) for event in wired))


def tidied(config: Any) -> Any:
    hooks = {event: groups for event, groups in config.get("hooks", {}).items() if groups}
    rest = {key: value for key, value in config.items() if key != "hooks"}
    return {**rest, "hooks": hooks} if hooks else rest


@calm
@given(st.text(alphabet='{}[]":,hoks Stp\n', max_size=60))
def test_any_text_is_edited_soundly_or_refused(text: str) -> None:
    try:
        longer = added(CODEX, text, HOOK)
    except EditError:
        return
    assert len(entries(CODEX, longer)) == len(CODEX.wired)
