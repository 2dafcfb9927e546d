"""The extensions that are code, run by Node with a stand-in for their agent: what they file, that they never throw, and
that a hook which hangs holds nobody up for long.

What the agents themselves do with them is seen in `test_fleet.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.real.clients import FOLDER
from vaultd.agents import load_agents
from vaultd.agents.ownfile import own_text

pytestmark = pytest.mark.real

HOOK = """#!/bin/sh
printf '%s %s ' "$1" "$2" >>"{log}"
cat >>"{log}"
echo >>"{log}"
case $2 in before_agent_start | before_prompt_build) printf given ;; esac
"""
DRIVER = """
import extension from "{file}"
const handlers = new Map()
extension({{ on: (name, handler) => handlers.set(name, handler), logger: {{}} }})
const ctx = {{ cwd: "{cwd}", sessionManager: {{ getSessionId: () => "s-1", getSessionFile: () => "/t/s-1.jsonl" }} }}
const fire = async (name, event, where = ctx) => await handlers.get(name)?.(event, where)
{script}
"""
GATEWAY = """
import plugin from "{file}"
import again from "{file}?again"
const handlers = new Map()
const later = new Map()
plugin.register({{ on: (name, handler) => handlers.set(name, handler) }})
again.register({{ on: (name, handler) => later.set(name, handler) }})
const ctx = {{ sessionId: "s-1", sessionKey: "agent:main:main", workspaceDir: "{cwd}", runId: "0123456789ab" }}
const fire = async (name, event, where = ctx) => await handlers.get(name)?.(event, where)
{script}
"""
TURNS = """
const first = await fire("before_prompt_build", {{ prompt: "Mend it", messages: [] }})
if (first?.prependContext !== "given") throw new Error("not given")
const text = (said) => ({{ content: [{{ type: "text", text: said }}] }})
const call = {{ toolName: "exec", toolCallId: "c1", params: {{ command: "make" }}, error: "exit 2" }}
await fire("after_tool_call", {{ ...call, result: {{ ...text("boom"), details: {{ exitCode: 2 }} }} }})
await fire("agent_end", {{ messages: [{{ role: "assistant", ...text("Done.") }}] }})
const history = [{{ role: "user", __openclaw: {{ runId: "0123456789ab" }} }}]
const wakes = {{ ...ctx, runId: "later", trigger: "heartbeat" }}
const second = await fire("before_prompt_build", {{ prompt: "Are you there?", messages: history }}, wakes)
if (second?.prependContext !== "given") throw new Error("given once only")
await fire("agent_end", {{ messages: [{{ role: "assistant", ...text("Nothing to do.") }}] }}, wakes)
await later.get("session_end")({{ reason: "new" }}, {{ sessionId: "s-1", sessionKey: "agent:main:main" }})
await fire("before_prompt_build", {{ prompt: "Go on", messages: [] }}, {{ ...ctx, runId: "ba9876543210" }})
"""
SESSION = """
await fire("session_start", {{ reason: "startup" }})
const told = await fire("before_agent_start", {{ prompt: "Mend it", messageType: "user" }})
if (told?.message?.content !== "given") throw new Error("not given")
const content = [{{ type: "text", text: "boom" }}]
const call = {{ toolName: "bash", toolCallId: "c1", input: {{ command: "make" }}, isError: true, content }}
await fire("tool_result", {{ ...call, structuredContent: {{ exit_code: 2 }}, details: {{ exitCode: 2 }} }})
await fire("agent_end", {{ messages: [{{ role: "assistant", content: [{{ type: "text", text: "Done." }}] }}] }})
await fire("agent_settled", {{}})
await fire("session_shutdown", {{ reason: "quit" }})
"""
JUNK = """
for (const name of handlers.keys())
  for (const event of [undefined, null, 3, "x", {{ messages: "x" }}, {{ prompt: Object.create(null) }}])
    for (const where of [ctx, undefined, null, {{}}]) await fire(name, event, where)
"""


def node() -> str:
    """Node 22, which takes the types out of a file by itself."""
    found = Path(os.environ.get(FOLDER) or "none") / "node22/node_modules/.bin/node"
    if not found.exists():
        pytest.skip(f"no Node 22 in {FOLDER} (.ci/install-clis puts it there where the system's is older)")
    return str(found)


def run(agent: str, folder: Path, script: str, hook: str) -> tuple[float, list[tuple[str, dict[str, object]]]]:
    """Run an extension; seconds, and event and payload of what it filed, in order."""
    program, log = folder / "vaultd-hook", folder / "log"
    program.write_text(hook.format(log=log))
    program.chmod(0o755)
    log.touch()
    file = folder / "vaultd.ts"
    file.write_text(own_text(load_agents()[agent], f"{agent}.ts", program))
    driver = folder / "driver.mts"
    driver.write_text(
        (GATEWAY if agent == "openclaw" else DRIVER).format(file=file, cwd=folder, script=script.format())
    )
    begun = time.monotonic()
    command = [node(), "--experimental-strip-types", "--no-warnings", str(driver)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    rows = [line.split(" ", 2) for line in log.read_text().splitlines()]
    assert all(row[0] == agent for row in rows)
    return time.monotonic() - begun, [(row[1], json.loads(row[2])) for row in rows]


@pytest.mark.parametrize("agent", ["pi", "oh-my-pi"])
def test_a_session_is_filed_in_order(agent: str, tmp_path: Path) -> None:
    _, rows = run(agent, tmp_path, SESSION, HOOK)
    end = "agent_settled" if agent == "pi" else "agent_end"
    assert [name for name, _ in rows] == ["session_start", "before_agent_start", "tool_result", end, "session_shutdown"]
    assert {payload["session"] for _, payload in rows} == {"s-1"}
    told = dict(rows)
    assert told["before_agent_start"]["prompt"] == "Mend it" and told[end]["text"] == "Done."


def test_conversations_of_a_gateway_are_told_apart(tmp_path: Path) -> None:
    _, rows = run("openclaw", tmp_path, TURNS, HOOK)
    assert [(name, payload["session"]) for name, payload in rows] == [
        ("before_prompt_build", "s-1.01234567"),
        ("after_tool_call", "s-1.01234567"),
        ("agent_end", "s-1.01234567"),
        ("session_end", "s-1.01234567"),
        ("before_prompt_build", "s-1.ba987654"),
    ]
    assert rows[2][1]["text"] == "Done." and rows[3][1]["reason"] == "new"
    assert rows[1][1]["call"] == {
        **{"tool": "exec", "callID": "c1", "args": {"command": "make"}, "files": []},
        **{"exit": 2, "failed": True, "output": "boom"},
    }


def test_a_call_through_another_is_told_once_and_a_background_commands_end_as_its_own(tmp_path: Path) -> None:
    script = """
await fire("before_prompt_build", {{ prompt: "Mend it", messages: [] }})
const called = (toolName, toolCallId, params, details, more) =>
  fire("after_tool_call", {{ toolName, toolCallId, params, result: {{ content: [], details }}, ...more }})
await called("vaultd__memory_query", "tool_search_code:c1:vaultd__memory_query:1", {{ query: "x" }})
await called("tool_call", "c1", {{ id: "vaultd__memory_query" }})
await called("tool_call", "c2", {{ id: "none" }}, {{ error: "Unknown tool id: none.\\nsecret" }}, {{ error: "error" }})
await called("exec", "c3", {{ command: "make" }}, {{ status: "running", sessionId: "sea" }})
await called("process", "c4", {{ action: "poll", sessionId: "sea" }}, {{ status: "running" }})
await called("process", "c5", {{ action: "poll", sessionId: "sea" }}, {{ exitCode: 3 }})
await called("process", "c6", {{ action: "log", sessionId: "sea" }}, {{ exitCode: 3 }})
await called("apply_patch", "c7", {{ input: "*** Update File: a.py\\n*** Add File: b.md\\n" }})
await fire("after_tool_call", {{ toolName: "exec", toolCallId: "c8" }}, {{ ...ctx, sessionKey: "agent:main:unknown" }})
"""
    _, rows = run("openclaw", tmp_path, script, HOOK)
    calls = [payload["call"] for _, payload in rows[1:]]
    assert [(call["tool"], call["callID"][-2:], call["files"]) for call in calls if isinstance(call, dict)] == [
        ("vaultd__memory_query", ":1", []),
        ("tool_call", "c2", []),
        ("exec", "c3", []),
        ("process", "c4", []),
        ("exec", "c3", []),
        ("process", "c6", []),
        ("apply_patch", "c7", ["a.py", "b.md"]),
    ]
    told = [call for call in calls if isinstance(call, dict)]
    assert told[1]["output"] == "Unknown tool id: none." and told[2]["running"] is True
    assert (told[4]["exit"], told[4]["args"]) == (3, {"command": "make"})


def test_what_a_subagent_of_openclaw_does_belongs_to_its_parent(tmp_path: Path) -> None:
    script = """
await fire("before_prompt_build", {{ prompt: "Mend it", messages: [] }})
const child = {{ sessionId: "s-2", sessionKey: "agent:main:subagent:x", workspaceDir: "/elsewhere", runId: "r2" }}
await fire("subagent_spawned", {{ childSessionKey: child.sessionKey }}, {{ requesterSessionKey: ctx.sessionKey }})
const told = await fire("before_prompt_build", {{ prompt: "Look around", messages: [] }}, child)
if (told) throw new Error("a subagent was given something")
await fire("after_tool_call", {{ toolName: "ls", toolCallId: "c1", params: {{}} }}, child)
await fire("agent_end", {{ messages: [{{ role: "assistant", content: "Seen." }}] }}, child)
await fire("session_end", {{}}, child)
await fire("subagent_ended", {{ targetKind: "subagent", targetSessionKey: child.sessionKey }})
await fire("after_tool_call", {{ toolName: "ls", toolCallId: "c2", params: {{}} }}, child)
"""
    _, rows = run("openclaw", tmp_path, script, HOOK)
    assert [(name, payload["session"], payload.get("subagent")) for name, payload in rows] == [
        ("before_prompt_build", "s-1.01234567", None),
        ("after_tool_call", "s-1.01234567", "s-2"),
        ("subagent_end", "s-1.01234567", "s-2"),
    ]


def test_a_tool_that_is_called_by_a_write_to_its_address_is_no_edit_of_a_file(tmp_path: Path) -> None:
    script = """
const input = {{ path: "xd://mcp__vaultd_memory_query", content: "{{}}" }}
const name = "mcp__vaultd_memory_query"
await fire("tool_result", {{ toolName: name, toolCallId: "c0", input: {{}}, content: [] }})
await fire("tool_result", {{ toolName: "write", toolCallId: "c0", input, content: [] }})
await fire("tool_result", {{ toolName: "write", toolCallId: "c1", input, content: [] }})
await fire("tool_result", {{ toolName: "read", toolCallId: "c2", input: {{ path: "skill://a" }}, content: [] }})
await fire("tool_result", {{ toolName: "write", toolCallId: "c3", input: {{ path: "/b.py" }}, content: [] }})
const details = {{ meta: {{ source: {{ type: "path", value: "/b.py" }} }} }}
await fire("tool_result", {{ toolName: "read", toolCallId: "c4", input: {{ path: "b.py:1-9" }}, content: [], details }})
"""
    _, rows = run("oh-my-pi", tmp_path, script, HOOK)  # the write that ends with the id of its tool is not told again
    calls = [payload["call"] for _, payload in rows]
    assert [(call["tool"], call["files"]) for call in calls if isinstance(call, dict)] == [
        ("mcp__vaultd_memory_query", []),
        ("mcp__vaultd_memory_query", []),
        ("read", []),
        ("write", ["/b.py"]),
        ("read", ["/b.py"]),
    ]


@pytest.mark.parametrize("told", ["{ id: 'a2', kind: 'sub', parentId: 'a1' }", "undefined"])
def test_what_a_subagent_does_belongs_to_its_parent(told: str, tmp_path: Path) -> None:
    script = """
const main = {{ ...ctx, agent: TOLD && {{ id: "a1", kind: "main" }} }}
const below = {{ getSessionId: () => "s-2", getSessionFile: () => "/t/s-1/Helper.jsonl" }}
const sub = {{ ...ctx, agent: TOLD, sessionManager: below }}
await fire("session_start", {{}}, main)
await fire("session_start", {{}}, sub)
await fire("before_agent_start", {{ prompt: "Look around" }}, sub)
await fire("tool_result", {{ toolName: "bash", toolCallId: "c1", input: {{ command: "ls" }}, content: [] }}, sub)
await fire("agent_end", {{ messages: [{{ role: "assistant", content: "Seen." }}] }}, sub)
await fire("session_shutdown", {{}}, sub)
await fire("session_shutdown", {{}}, main)
"""
    _, rows = run("oh-my-pi", tmp_path, script.replace("TOLD", told.replace("{", "{{").replace("}", "}}")), HOOK)
    seen = [(name, payload["session"], payload.get("subagent")) for name, payload in rows]
    assert seen == [
        ("session_start", "s-1", None),
        ("tool_result", "s-1", "s-2"),
        ("subagent_end", "s-1", "s-2"),
        ("session_shutdown", "s-1", None),
    ]


@pytest.mark.parametrize("agent", ["pi", "oh-my-pi", "openclaw"])
def test_nothing_that_an_agent_says_makes_it_throw(agent: str, tmp_path: Path) -> None:
    run(agent, tmp_path, JUNK, HOOK)


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["pi", "oh-my-pi", "openclaw"])
def test_a_hook_that_hangs_holds_up_neither_prompt_nor_end_for_long(agent: str, tmp_path: Path) -> None:
    seconds, _ = run(agent, tmp_path, _given_nothing(agent), "#!/bin/sh\nexec sleep 300\n")
    assert seconds < 30


@pytest.mark.parametrize("agent", ["pi", "oh-my-pi", "openclaw"])
def test_a_hook_that_is_not_there_is_no_fault(agent: str, tmp_path: Path) -> None:
    run(agent, tmp_path, _given_nothing(agent), "not a program")


def _given_nothing(agent: str) -> str:
    """A session in which the hook says nothing."""
    lines = (TURNS if agent == "openclaw" else SESSION).splitlines()
    return "\n".join(line for line in lines if "throw new Error" not in line)
