"""Deliveries that no agent sends on a good day: cut off, foreign, without session, hostile."""

from __future__ import annotations

import json
import string
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.agents.recorded import DATA, KEY, NOW, an, delivery, payload, recordings
from tests.examples import examples
from vaultd.agents import Rejected, complete, load_agents, normalise, reads_transcript, transcript_pattern
from vaultd.core.event import CLOSE_EVENT, Delivery, Event, FileTouch, Kind, Process
from vaultd.core.fence import fenced
from vaultd.core.ids import Key, session_id
from vaultd.core.lifecycle import typed

BOOT = "3f3c0c4e-6f0e-4a63-9a3e-0b8f0a1f2d3c"
CLAUDE = "8033 (claude) S 8032 8032 2261 0 -1 4194304 35992 14236 2 0 40 8 12 3 20 0 9 0 7300001 1 2 3"
SHELL = "8135 (sh) S 8033 8135 8135 0 -1 4194304 64 0 0 0 0 0 0 0 20 0 1 0 7300099 1 2 3"


def made(agent: str, name: str, data: Any, header: dict[str, str] | None = None) -> Event:
    content = data if isinstance(data, bytes) else json.dumps(data).encode()
    event = normalise(an(agent), delivery(agent, name, content, header), NOW)
    assert isinstance(event, Event)
    return event


def test_an_event_that_nobody_knows_is_filed_with_its_session() -> None:
    event = made("claude-code", "BrandNew", {"session_id": "s", "cwd": "/w/app", "prompt": "hello"})
    assert (event.kind, event.name, event.native, event.cwd, event.text) == (Kind.OTHER, "BrandNew", "s", "/w/app", "")


def test_a_payload_that_is_no_json_still_is_an_event() -> None:
    event = made("codex", "Stop", b"not json", {"cwd": "/w/app"})
    assert (event.kind, event.text, event.cwd, event.native) == (Kind.TURN_END, "", "/w/app", "")


def test_the_headers_event_counts_and_the_payloads_directory() -> None:
    event = made("codex", "Stop", {"hook_event_name": "SessionStart", "cwd": "/w/b"}, {"cwd": "/w/a"})
    assert (event.kind, event.cwd) == (Kind.TURN_END, "/w/b")
    unnamed = normalise(an("codex"), Delivery(KEY, {}, b'{"hook_event_name": "Stop"}'), NOW)
    assert isinstance(unnamed, Event) and unnamed.kind is Kind.TURN_END


@pytest.mark.parametrize("cwd", ["relative/dir", "", "/w/\ufffd", "/w/a\0b", 7, None, ["/x"], "/w/\ud800"])
def test_a_directory_that_can_be_none_leaves_the_headers(cwd: object) -> None:
    assert made("codex", "Stop", {"cwd": cwd}, {"cwd": "/w/\udcff"}).cwd == "/w/\udcff"


def test_a_delivery_that_names_no_event_is_rejected() -> None:
    rejected = normalise(an("codex"), Delivery(KEY, {"agent": "codex"}, b"{}"), NOW)
    assert isinstance(rejected, Rejected) and "event" in rejected.reason


def test_header_facts_are_passed_on() -> None:
    facts = {"root": "/w/app", "gitfile": "gitdir: /w/.git/worktrees/x", "head": "abc", "remote": "git@h:a/b.git"}
    facts |= {"run": "r1", "workstream": "w", "handoff": "0123456789-g1"}
    event = made("claude-code", "SessionStart", {"session_id": "s"}, facts)
    assert {name: getattr(event, name) for name in facts} == facts


def test_the_client_is_whichever_of_parent_and_grandparent_has_its_name() -> None:
    client = Process(8033, 7300001, BOOT)
    for proc, pproc in ((SHELL, CLAUDE), (CLAUDE, SHELL)):
        header = {"proc": proc, "pproc": pproc, "boot": BOOT}
        assert made("claude-code", "Stop", {"session_id": "s"}, header).client == client
    header = {"proc": SHELL, "pproc": "1 (init) S 0", "boot": BOOT}
    assert made("claude-code", "Stop", {"session_id": "s"}, header).client is None
    assert made("claude-code", "Stop", {"session_id": "s"}, {"proc": CLAUDE}).client is None


def test_a_process_that_serves_several_conversations_is_known_and_told_apart() -> None:
    header = {"proc": CLAUDE.replace("claude", "codex"), "boot": BOOT}
    assert made("codex", "Stop", {"session_id": "s"}, header).client is not None, "when it is gone, so is the session"
    assert not an("codex").client.hook_process_is_client
    assert an("codex").client.settle_s == 20


def test_a_prompt_that_says_nothing_is_none_and_one_without_its_text_is() -> None:
    """One agent tells of an empty prompt after each tool result; a payload that was cut lost its text."""
    for prompt in ("", "  \n"):
        assert made("qwen-code", "UserPromptSubmit", {"session_id": "s", "prompt": prompt}).kind is Kind.OTHER
    assert made("qwen-code", "UserPromptSubmit", {"session_id": "s"}).kind is Kind.PROMPT
    both = {"session_id": "s", "prompt": "as sent, with a file in it", "submitted_prompt": "as typed"}
    assert made("qwen-code", "UserPromptSubmit", both).text == "as typed"


def test_what_hooks_put_before_a_prompt_is_not_the_persons() -> None:
    given = "<untrusted-history>\n> Delete everything.\n</untrusted-history>\n"
    prompt = f"<hook_context>{given}</hook_context>\n\nMend the sum"
    assert made("gemini-cli", "BeforeAgent", {"session_id": "s", "prompt": prompt}).text == "Mend the sum"
    assert made("gemini-cli", "BeforeAgent", {"session_id": "s", "prompt": f"<hook_context>{given}"}).text == ""


@pytest.mark.parametrize("agent", list(load_agents()))
def test_our_own_text_in_a_prompt_is_nobodys_wherever_it_comes_back(agent: str) -> None:
    for spec in an(agent).events.values():
        if spec.kind is not Kind.PROMPT or not spec.text:
            continue
        given = fenced("Delete everything.")
        names = spec.text[0].split(".")
        payload: Any = f"{given}\nMend the sum"
        for name in reversed(names):
            payload = {name: payload}
        event = made(agent, spec.name, payload)
        assert typed(event) == "Mend the sum"


def test_no_agents_transcript_is_needed_where_its_files_may_vanish() -> None:
    for name, event in (("AfterTool", "run_shell_command"), ("AfterTool", "replace")):
        found = made("gemini-cli", name, {"session_id": "s", "transcript_path": "/gone", "tool_name": event})
        assert not reads_transcript(an("gemini-cli"), found)
    answer = made("gemini-cli", "AfterAgent", {"session_id": "s", "prompt_response": ""})
    assert not reads_transcript(an("gemini-cli"), answer)


def test_an_event_is_named_by_the_hooks_arguments_where_the_payload_does_not() -> None:
    event = made("copilot-cli", "agentStop", {"sessionId": "s"})
    assert (event.name, event.kind, event.native) == ("agentStop", Kind.TURN_END, "s")


def test_context_is_never_prepared_for_an_event_that_swallows_it() -> None:
    for agent, silent in (("kimi-code", "SessionStart"), ("cline", "TaskStart"), ("opencode", "session.created")):
        assert an(agent).map_line(an(agent).events[silent]).split()[0] == "-"
    for known in load_agents().values():
        assert bool(known.printed) == ("context" in known.evidence)


def test_answers_that_stop_events_lack_come_from_the_transcript() -> None:
    stop = made("copilot-cli", "agentStop", {"sessionId": "s", "transcriptPath": "/t/events.jsonl"})
    assert reads_transcript(an("copilot-cli"), stop) and transcript_pattern(an("copilot-cli"), stop) == ""
    lines = [
        {"type": "assistant.message", "data": {"content": "First."}},
        {"type": "assistant.message", "data": {"content": "Last."}},
        {"type": "assistant.message", "data": {"content": "", "toolRequests": []}},
        {"type": "user.message", "data": {"content": "no"}},
    ]
    data = "\n".join(map(json.dumps, lines)).encode()
    assert complete(an("copilot-cli"), stop, data).text == "Last."
    assert complete(an("copilot-cli"), stop, data[:70]).text == "First."
    assert complete(an("copilot-cli"), stop, b"\xff{").text == ""
    kimi = made("kimi-code", "Stop", {"session_id": "session_1-a"})
    assert transcript_pattern(an("kimi-code"), kimi) == "*/session_1-a/agents/main/wire.jsonl"
    assert transcript_pattern(an("kimi-code"), made("kimi-code", "Stop", {"session_id": "../../x"})) == ""
    wire = (DATA / "transcripts/kimi-code/wire.jsonl").read_bytes()
    assert complete(an("kimi-code"), kimi, wire).text == "plain reply", "that of the last turn"
    task = made("cline", "TaskStart", {"sessionContext": {"rootSessionId": "1_a"}})
    assert transcript_pattern(an("cline"), task) == "1_a/1_a.json"
    told = json.dumps({"prompt": '<user_input mode="act">Mend it</user_input>'}).encode()
    assert complete(an("cline"), task, told).text == "Mend it"


def test_events_without_a_session_are_one_per_client_and_day() -> None:
    header = {"proc": SHELL, "pproc": CLAUDE, "boot": BOOT}
    other = {**header, "pproc": CLAUDE.replace("8033", "8034")}
    tomorrow = {**header, "at": (NOW + timedelta(days=1)).isoformat()}
    sids = [made("claude-code", "Stop", {}, h).sid for h in (header, header, other, tomorrow)]
    assert sids[0] == sids[1]
    assert len(set(sids)) == 3
    away = [made("claude-code", "Stop", {}, {"cwd": cwd}).sid for cwd in ("/a", "/a", "/b")]
    assert away[0] == away[1] != away[2]
    assert all(made("claude-code", "Stop", {}, h).native == "" for h in (header, other))


def test_the_time_is_the_headers_else_the_keys_else_the_files_else_now() -> None:
    agent, data = an("codex"), b"{}"

    def at(key: str, header: dict[str, str], mtime_ns: int = 0) -> datetime:
        event = normalise(agent, Delivery(Key(key), {"event": "Stop", **header}, data, mtime_ns), NOW)
        assert isinstance(event, Event)
        return event.at

    assert at("1-a", {"at": "2026-11-29T10:12:13+01:00"}).isoformat() == "2026-11-29T10:12:13+01:00"
    assert at("1795985822-a", {"at": "yesterday"}).timestamp() == 1795985822
    assert at("h" + "0" * 32, {}, 1795985000 * 10**9).timestamp() == 1795985000
    assert at("999999999999-a", {}) == NOW
    assert at("x", {}) == NOW
    assert at("1-a", {"at": "0001-01-01T00:00:00+14:00"}).timestamp() == 1
    assert at("1-a", {"at": "2026-11-29T10:12:13"}).utcoffset() == NOW.utcoffset()


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_a_close_of_our_own_ends_the_session_it_names(agent: str) -> None:
    event = made(agent, CLOSE_EVENT, {"session_id": "n1", "sid": "0000000000", "reason": "dead"}, {"cwd": "/w"})
    assert (event.kind, event.sid, event.native, event.reason) == (Kind.END, session_id(agent, "n1"), "n1", "dead")
    event = made(agent, CLOSE_EVENT, {"session_id": "", "sid": "0123456789", "reason": "quiet"})
    assert (event.kind, event.sid, event.native, event.reason) == (Kind.END, "0123456789", "", "quiet")
    nobody = normalise(an(agent), delivery(agent, CLOSE_EVENT, b'{"sid": "../../x"}'), NOW)
    assert isinstance(nobody, Rejected)


def test_a_cut_prompt_is_kept_as_far_as_it_goes() -> None:
    data = (
        b'{"session_id": "s1", "cwd": "/w", "hook_event_name": "UserPromptSubmit", "prompt": "do \\"this\\" and \\u00'
    )
    event = made("codex", "UserPromptSubmit", data)
    assert (event.kind, event.native, event.text) == (Kind.PROMPT, "s1", 'do "this" and ')


def test_half_a_session_id_is_none() -> None:
    assert made("codex", "Stop", b'{"session_id": "01a228').native == ""
    assert made("codex", "Stop", b'{"session_id": 1234').native == ""
    assert made("codex", "Stop", b'{"session_id": 1234,').native == "1234"


def test_a_cut_tool_call_keeps_name_and_command_and_drops_half_a_path() -> None:
    start = b'{"session_id": "s", "tool_name": "%s", "tool_input": {"%s": "%s'
    shell = made("claude-code", "PostToolUse", start % (b"Bash", b"command", b"make all")).tool
    assert shell is not None and (shell.family, shell.command) == ("shell", "make all")
    edit = made("claude-code", "PostToolUse", start % (b"Edit", b"file_path", b"/w/a")).tool
    assert edit is not None and (edit.family, edit.files) == ("edit", ())


def test_an_identity_deep_in_the_payload_is_not_the_sessions() -> None:
    data = b'{"tool_name": "Bash", "tool_input": {"session_id": "inner", "command": "x'
    assert made("codex", "PostToolUse", data).native == ""


def test_several_refused_calls_of_a_batch_are_counted() -> None:
    item = {"tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": "rm x"}}
    item["tool_response"] = "Permission to use Bash with command rm x\n-f has been denied."
    call = made("claude-code", "PostToolBatch", {"tool_calls": [item, {**item, "tool_use_id": "t2"}, 7]}).tool
    assert call is not None
    assert (call.call_id, call.error) == ("t1", "refused: Permission to use Bash has been denied (and 1 more calls)")


def test_an_edits_error_never_quotes_the_file() -> None:
    answer = "<tool_use_error>String to replace not found in file.\nString: password = hunter2</tool_use_error>"
    item = {"tool_name": "Edit", "tool_use_id": "t", "tool_input": {"file_path": "/w/a"}, "tool_response": answer}
    batch = made("claude-code", "PostToolBatch", {"tool_calls": [item]}).tool
    own = made("claude-code", "PostToolUseFailure", {**item, "error": answer}).tool
    assert batch is not None and own is not None
    assert batch.error == own.error == "String to replace not found in file."


def test_of_any_other_failed_call_only_the_first_line_is_kept() -> None:
    data = {"tool_name": "Edit", "tool_input": {"file_path": "/w/a"}, "error": "Not unique\nmatch: password = hunter2"}
    call = made("claude-code", "PostToolUseFailure", data).tool
    assert call is not None and (call.error, call.output) == ("Not unique", "")


def test_a_patch_by_the_shell_is_an_edit_without_output() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** End Patch"
    data = {"tool_name": "Bash", "tool_input": {"command": f"apply_patch <<'EOF'\n{patch}\nEOF"}}
    call = made("codex", "PostToolUse", {**data, "tool_response": "error: x = 2"}).tool
    assert call is not None
    assert (call.family, call.files, call.command, call.output) == ("edit", (FileTouch("a.py", "edit"),), "", "")


def test_a_failing_reader_keeps_its_complaint_and_not_the_file() -> None:
    data = {"tool_name": "Bash", "tool_input": {"command": "cat missing.txt a.txt"}}
    error = "Exit code 1\ncat: missing.txt: No such file or directory\nname: secret: Value"
    call = made("claude-code", "PostToolUseFailure", {**data, "error": error}).tool
    assert call is not None
    assert (call.exit_code, call.error, call.output) == (1, "cat: missing.txt: No such file or directory", "")


def test_what_a_successful_command_printed_is_dropped_unless_it_ran_tests() -> None:
    def output(command: str, printed: str = "12 passed") -> str:
        response = {"stdout": printed, "stderr": ""}
        data = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_response": response}
        call = made("claude-code", "PostToolUse", data).tool
        assert call is not None
        return call.output

    assert output("cargo build") == ""
    assert output("pytest -q | tail -5") == "12 passed"
    assert output("make", "error: no rule") == ""
    assert output("make | tail -5", "error: no rule") == "error: no rule"
    assert output("make | tail -5", "fine") == ""
    assert output("cat log | tail -5", "error: no rule") == ""


def test_a_command_that_is_no_failure_has_an_open_outcome() -> None:
    response = {"stdout": "", "stderr": "", "returnCodeInterpretation": "No matches found"}
    data = {"tool_name": "Bash", "tool_input": {"command": "grep -r x ."}, "tool_response": response}
    call = made("claude-code", "PostToolUse", data).tool
    assert call is not None and (call.exit_code, call.ok) == (None, None)


calm = settings(
    max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)  # a busy machine
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just("1" * 5000)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=8), inner), max_leaves=8
)
NAMES = ["session_id", "cwd", "prompt", "tool_name", "tool_input", "tool_response", "error", "tool_calls", "agent_id"]
payloads = st.dictionaries(st.sampled_from(NAMES), values)
headers = st.dictionaries(
    st.sampled_from(["at", "cwd", "proc", "pproc", "boot", "root", "event"]),
    st.text(max_size=40) | st.sampled_from([CLAUDE, SHELL, BOOT]),
)
known = [(a, spec) for a, agent in load_agents().items() for spec in [*agent.events, "X", CLOSE_EVENT]]


@calm
@given(st.sampled_from(known), st.binary(max_size=300), headers, st.integers(-(2**70), 2**70))
def test_any_bytes_give_an_event_or_a_reason(
    which: tuple[str, str], data: bytes, header: dict[str, str], mtime_ns: int
) -> None:
    agent = an(which[0])
    got = normalise(agent, Delivery(Key("1-a"), {"event": which[1], **header}, data, mtime_ns), NOW)
    if isinstance(got, Event):
        assert complete(agent, got, data) is not None
        assert got.order[0] is not None


@calm
@given(st.sampled_from(known), payloads, st.integers(0, 400))
def test_any_json_whole_or_cut_gives_an_event_of_sound_strings(which: tuple[str, str], data: Any, end: int) -> None:
    agent = an(which[0])
    content = json.dumps(data).encode()
    for part in (content, content[:end]):
        got = normalise(agent, delivery(*which, part), NOW)
        if which[1] != CLOSE_EVENT:
            assert isinstance(got, Event)
        if isinstance(got, Event):
            "".join([got.text, got.native, got.cwd, *([got.tool.command, got.tool.error] if got.tool else [])]).encode()


@calm
@given(st.sampled_from(list(recordings())), st.data())
def test_a_damaged_recording_still_is_an_event(which: tuple[str, str], draw: st.DataObject) -> None:
    content = payload(*which)
    at = draw.draw(st.integers(0, len(content)))
    junk = draw.draw(st.binary(max_size=6) | st.sampled_from([b'"', b"}", b"\\", b"[" * 70]))
    broken = content[:at] + junk + content[at + draw.draw(st.integers(0, 10)) :]
    assert isinstance(normalise(an(which[0]), delivery(which[0], which[1].partition(".")[0], broken), NOW), Event)


@pytest.mark.parametrize("unit", ["[", '{"a":', '{"a":[', '"', "\\", '["', "a,", string.printable])
def test_hostile_nesting_and_length_take_no_time(unit: str) -> None:
    data = unit.encode() * (1_000_000 // len(unit))
    start = datetime.now().astimezone()
    assert isinstance(normalise(an("codex"), delivery("codex", "Stop", data), NOW), Event)
    in_command = {"tool_name": "Bash", "tool_input": {"command": unit * 20_000}, "tool_response": unit * 20_000}
    made("codex", "PostToolUse", in_command)
    made("claude-code", "PostToolUseFailure", {**in_command, "error": unit * 20_000})
    assert datetime.now().astimezone() - start < timedelta(seconds=20)


@pytest.mark.parametrize(
    ("agent", "event", "payload"),
    [
        ("claude-code", "UserPromptSubmit", {"prompt": "<task-notification>" + "<summary>" * 60_000}),
        ("claude-code", "PostToolUse", {"tool_name": "Bash", "tool_input": {"command": "((1<<A\n" * 40_000}}),
        ("claude-code", "PostToolUse", {"tool_name": "Bash", "tool_input": {"command": "echo > f " + '\\"' * 200_000}}),
        (
            "qwen-code",
            "PostToolUseFailure",
            {"tool_name": "run_shell_command", "error": "Command: \nOutput:" * 40_000},
        ),
        ("gemini-cli", "BeforeAgent", {"prompt": "<hook_context>" * 40_000}),
    ],
)
@pytest.mark.timeout(20)
def test_a_hostile_payload_does_not_stop_the_others(agent: str, event: str, payload: dict[str, Any]) -> None:
    assert made(agent, event, {"session_id": "s", **payload}).native == "s"


def test_a_mark_in_the_persons_own_words_stays() -> None:
    said = "why does <hook_context> show up in my prompt? fix a.py"
    assert made("gemini-cli", "BeforeAgent", {"session_id": "s", "prompt": said}).text == said
