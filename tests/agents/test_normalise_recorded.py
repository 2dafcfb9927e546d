"""Every payload that was recorded from a real agent, normalised."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator

import pytest

from tests.agents.expected import expectations, meaning
from tests.agents.recorded import DATA, NOW, an, delivery, event, event_name, payload, recordings
from vaultd.agents import complete, normalise, reads_transcript
from vaultd.agents.payload import lookup
from vaultd.core.event import Event, FileTouch, Kind, ToolCall
from vaultd.core.ids import session_id

ALL = list(recordings())
RECORDED = list(dict.fromkeys(agent for agent, _ in ALL))


@pytest.mark.parametrize("agent", RECORDED)
def test_there_are_recordings_of_every_wired_event(agent: str) -> None:
    seen = {event_name(agent, variant) for name, variant in ALL if name == agent}
    assert {spec.name for spec in an(agent).wired} - seen <= NOT_SEEN.get(agent, set())


NOT_SEEN = {
    # compaction was not recorded
    "copilot-cli": {"preCompact"},
    "kimi-code": {"PreCompact"},
    "qwen-code": {"PreCompact"},
    "opencode": {"session.compacting", "session.compacted"},
    "pi": {"session_before_compact", "session_compact"},
}


@pytest.mark.parametrize("agent", RECORDED)
def test_every_recorded_payload_means_what_is_written_beside_it(agent: str) -> None:
    expected = expectations(agent)
    assert expected.keys() == {variant for name, variant in ALL if name == agent}
    for variant, wanted in expected.items():
        assert meaning(event(agent, variant)) == wanted, f"{agent} {variant}"


@pytest.mark.parametrize(("agent", "variant"), ALL)
def test_every_recorded_payload_has_its_session_and_place(agent: str, variant: str) -> None:
    found, told = event(agent, variant), json.loads(payload(agent, variant))
    native = (lookup(told, an(agent).fields.parent) if found.subagent else "") or lookup(told, an(agent).fields.session)
    assert (found.native, found.sid) == (native, session_id(agent, native))
    assert (found.agent, found.name, found.cwd, found.at) == (
        agent,
        event_name(agent, variant),
        "/home/dev/project",
        NOW,
    )
    if lookup(told, an(agent).fields.transcript):
        assert found.transcript.startswith("/home/dev/.")
    assert found.kind is Kind.PRE_TOOL or (found.tool is not None) == (found.kind is Kind.TOOL)


@pytest.mark.parametrize(("agent", "variant"), ALL)
def test_no_line_of_a_files_content_is_in_the_event(agent: str, variant: str) -> None:
    kept = "\n".join(strings(dataclasses.asdict(event(agent, variant))))
    for line in content_lines(variant, json.loads(payload(agent, variant))):
        assert line not in kept


@pytest.mark.parametrize(("agent", "variant"), ALL)
def test_a_payload_cut_anywhere_keeps_its_session_and_tells_nothing_wrong(agent: str, variant: str) -> None:
    whole, data, name = event(agent, variant), payload(agent, variant), event_name(agent, variant)
    fields = an(agent).fields
    keys = [path.rpartition(".")[2] for path in (fields.session, fields.cwd, fields.subagent, fields.parent)]
    places = [data.index(f'"{key}"'.encode()) for key in keys if key and f'"{key}"'.encode() in data]
    after_place = data.index(b"\n", max(places)) + 1
    for end in range(0, len(data), max(1, len(data) // 29)):
        cut = normalise(an(agent), delivery(agent, name, data[:end]), NOW)
        assert isinstance(cut, Event)
        assert cut.native in ("", whole.native) or whole.subagent
        assert cut.cwd in ("", whole.cwd)
        assert cut.kind in (whole.kind, Kind.OTHER, Kind.PROMPT, Kind.TOOL) or whole.subagent
        said = cut.text if not "<hook_context>".startswith(cut.text) else ""  # cut in the middle of that mark
        assert whole.text.startswith(said) or said.startswith(whole.text) or cut.kind is not whole.kind
        if end > after_place:
            assert (cut.native, cut.cwd) == (whole.native, whole.cwd)


TOOLS: dict[tuple[str, str], ToolCall] = {
    ("claude-code", "PostToolUse"): ToolCall(
        "Bash", "shell", "toolu_64219e82de694589abfdc7d6", command="echo hi-from-shell", exit_code=0, ok=True
    ),
    ("claude-code", "PostToolUse.edit"): ToolCall(
        "Edit", "edit", "toolu_ec5ef7b524444a7985646579", (FileTouch("/home/dev/project/src/app.py", "edit"),), ok=True
    ),
    ("claude-code", "PostToolUse.write"): ToolCall(
        "Write",
        "edit",
        "toolu_82d31f8c6b184b36a4f62eeb",
        (FileTouch("/home/dev/project/docs/notes.md", "create"),),
        ok=True,
    ),
    ("claude-code", "PostToolUse.read"): ToolCall(
        "Read", "read", "toolu_8ca25e514f6b456682821526", (FileTouch("/home/dev/project/README.md", "read"),), ok=True
    ),
    ("claude-code", "PostToolUse.mcp"): ToolCall("mcp__toy__recall", "mcp", "toolu_1b2e1f76f9f943a3ae25da40", ok=True),
    ("claude-code", "PostToolUse.shell.background"): ToolCall(
        "Bash", "shell", "toolu_d42300f7f5914dc6bb358bd1", command="sleep 2; echo done-in-background"
    ),
    ("claude-code", "PostToolUse.subagent.foreground"): ToolCall(
        "Agent", "agent", "toolu_8297c812d04e40a3a0e3525d", ok=True
    ),
    ("claude-code", "PostToolUseFailure.shell.fail"): ToolCall(
        "Bash",
        "shell",
        "toolu_7513c893af304db38f141e81",
        command="ls missing-dir",
        exit_code=2,
        ok=False,
        error="ls: cannot access 'missing-dir': No such file or directory",
        output="ls: cannot access 'missing-dir': No such file or directory",
    ),
    ("claude-code", "PostToolBatch.tool.error"): ToolCall(
        "Edit",
        "edit",
        "toolu_8766dc905577433aa2123f94",
        (FileTouch("/home/dev/project/src/missing.py", "edit"),),
        ok=False,
        error="File does not exist. Note: your current working directory is /home/dev/project.",
    ),
    ("claude-code", "PostToolBatch.tool.denied.rule"): ToolCall(
        "Bash",
        "shell",
        "toolu_7f8a449b4d504c3b853c2fdc",
        command="rm README.md",
        ok=False,
        error="refused: Permission to use Bash has been denied",
    ),
    ("codex", "PostToolUse.apply_patch"): ToolCall(
        "apply_patch",
        "edit",
        "exec-c2308b13-7d8a-4d37-b11e-c53be041b34b",
        (FileTouch("src/app.py", "edit"), FileTouch("docs/notes.md", "create")),
        exit_code=0,
        ok=True,
    ),
    ("codex", "PreToolUse.apply_patch.heredoc"): ToolCall(
        "Bash",
        "edit",
        "call_bec3868831b94d538bedce1e",
        (FileTouch("src/app.py", "edit"), FileTouch("docs/notes.md", "create")),
    ),
    ("codex", "PostToolUse.read"): ToolCall(
        "Bash", "shell", "exec-fbc5c34d-bf42-4d6c-b136-743d823e0c42", command="cat README.md"
    ),
    ("codex", "PostToolUse.mcp"): ToolCall("mcp__toy__recall", "mcp", "call_9f1cb0c1ca9447f7bb9ccb3f", ok=True),
    ("codex", "PostToolUse.subagent.v2"): ToolCall(
        "collaborationspawn_agent", "agent", "call_43ebe025f3ab47d98d6a4594"
    ),
}


@pytest.mark.parametrize(("agent", "variant"), list(TOOLS))
def test_a_tool_call_is_told_in_the_words_of_every_agent(agent: str, variant: str) -> None:
    assert event(agent, variant).tool == TOOLS[agent, variant]


@pytest.mark.parametrize(
    "variant",
    ["tool.blocked_by_hook", "tool.denied", "tool.denied.rule", "tool.denied.write", "tool.error"],
)
def test_a_call_that_only_its_batch_tells_about_is_a_failed_call(variant: str) -> None:
    found = event("claude-code", f"PostToolBatch.{variant}").tool
    assert found is not None
    assert found.ok is False
    assert found.error.startswith("refused: ") == (variant != "tool.error")


def test_a_failing_test_run_keeps_its_result() -> None:
    call = event("claude-code", "PostToolUseFailure.shell.test_fail").tool
    assert call is not None
    assert (call.exit_code, call.ok) == (1, False)
    assert "1 failed, 1 passed" in call.output
    assert call.error.startswith("FAILED tests/test_app.py::test_greets_by_name")


def test_prompts_and_last_messages_are_kept_whole() -> None:
    for agent in ("claude-code", "codex"):
        asked = json.loads(payload(agent, "UserPromptSubmit.prompt.multiline"))["prompt"]
        said = json.loads(payload(agent, "Stop.next_steps"))["last_assistant_message"]
        assert event(agent, "UserPromptSubmit.prompt.multiline").text == asked
        assert event(agent, "Stop.next_steps").text == said
    assert event("claude-code", "PostCompact").text == "Running."


def test_what_nobody_typed_is_no_prompt() -> None:
    done = event("claude-code", "UserPromptSubmit.prompt.subagent_done")
    assert (done.kind, done.text) == (Kind.NOTICE, 'Agent "Look at greet" finished')
    child = event("codex", "UserPromptSubmit.in_subagent")
    assert (child.kind, child.text, child.subagent) == (Kind.OTHER, "", "01a22918-ecf0-70c0-82d3-06af2fc37965")


def test_sources_reasons_and_turns_are_kept() -> None:
    assert event("claude-code", "SessionStart.fork").source == "fork"
    assert event("codex", "SessionStart.compact").source == "compact"
    assert event("claude-code", "SessionEnd.prompt_input_exit").reason == "prompt_input_exit"
    assert event("codex", "Interrupt").reason == "interrupted"
    assert event("claude-code", "Stop").turn == event("claude-code", "UserPromptSubmit").turn != ""
    assert event("codex", "Stop").turn == event("codex", "UserPromptSubmit").turn != ""


@pytest.mark.parametrize(
    ("variant", "exit_code", "error", "output"),
    [
        ("shell.fail", 2, "ls: cannot access 'missing-dir': No such file or directory", "ls: cannot access"),
        ("shell.test_fail", 1, "FAILED tests/test_app.py::test_greets_by_name", "1 failed, 1 passed"),
        ("shell.long", 0, "", ""),
        ("read", 0, "", ""),
    ],
)
def test_an_outcome_that_the_payload_lacks_comes_from_the_rollout(
    variant: str, exit_code: int, error: str, output: str
) -> None:
    before = event("codex", f"PostToolUse.{variant}")
    assert reads_transcript(an("codex"), before)
    rollout = (DATA / "transcripts/codex/tools.excerpt.jsonl").read_bytes()
    for transcript in (rollout, rollout[rollout.index(b"exec-fbc5c34d") - 400 :]):
        call = complete(an("codex"), before, transcript).tool
        assert call is not None
        assert (call.exit_code, call.ok) == (exit_code, exit_code == 0)
        assert call.error.startswith(error) and bool(call.error) == bool(error)
        assert output in call.output and bool(call.output) == bool(output)
    assert complete(an("codex"), before, b"") == before


def test_no_transcript_is_read_where_the_payload_says_all() -> None:
    assert not any(reads_transcript(an(a), event(a, v)) for a, v in ALL if a == "claude-code")
    assert not reads_transcript(an("codex"), event("codex", "PostToolUse.apply_patch"))
    assert not reads_transcript(an("codex"), event("codex", "Stop"))


CONTENT_KEYS = {"old_string", "new_string", "oldString", "newString", "originalFile", "content"}


def content_lines(variant: str, value: object) -> Iterator[str]:
    """Lines of files in a payload: replaced and written texts, patches, what was read."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in CONTENT_KEYS and isinstance(inner, str):
                yield from worth(inner.splitlines())
            elif key == "lines":
                yield from worth([line[1:] for line in inner])
            elif key == "command" and "*** Begin Patch" in inner:
                yield from worth([line[1:] for line in inner.splitlines() if line[:1] in "+- "])
            elif key == "tool_response" and isinstance(inner, str) and ".read" in variant:
                yield from worth(inner.splitlines())
            else:
                yield from content_lines(variant, inner)
    elif isinstance(value, list):
        for inner in value:
            yield from content_lines(variant, inner)


def worth(lines: list[str]) -> list[str]:
    return [line.strip() for line in lines if len(line.strip()) > 3]


def test_the_scan_for_content_finds_some() -> None:
    found = {line for a, v in ALL for line in content_lines(v, json.loads(payload(a, v)))}
    assert {"return f'hello {name}'", "# Greeter", "The greeting takes a name."} <= found


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from strings(inner)
