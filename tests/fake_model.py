"""A scripted stand-in for a model provider, so that real agent CLIs run with no account and no network but loopback.

Speaks, on one loopback port, the APIs that the supported agents use, streamed (SSE) and as plain JSON: Anthropic
Messages (`POST .../messages`, `.../messages/count_tokens`), OpenAI Responses (`POST .../responses`) and Chat
Completions (`POST .../chat/completions`), Gemini (`POST ...:generateContent`), and `GET .../models`. What stands before
these in the path is ignored, so a client may use any base URL on the port.

A scenario says what the "model" answers:

    {"turns": [                         entry N answers a request that has seen N tool results since the user's prompt;
       {"shell": "echo hi"},            past the end the last entry is repeated
       {"text": "done"}],
     "routes": [                        optional: the first whose regex is found in the user's prompt replaces "turns"
       {"match": "remember", "turns": [...]}],
     "by": "requests",                  optional: count requests that offered tools (per route) instead of tool results:
                                        for a script that goes across a compaction, which removes the results
     "side_text": "ok"}                 answer to requests that offer no tools (titles, summaries); a JSON example of
                                        the schema where the request asks for one

An entry is one of `{"text": ...}`, `{"shell": CMD}` and `{"write": {"path", "content"}}` (the client's own tool,
whatever its name), `{"patch": TEXT}` (Codex's `apply_patch`), `{"tool": NAME, "input": {...}}` (exactly that tool),
`{"mcp": NAME, "server": SERVER, "input": {...}}` (a tool of an MCP server, as the client calls it),
`{"calls": [entry, ...]}` (several in one answer). All but `tool` also work in Codex's code mode, where they are called
from the JavaScript of its one tool. An entry may carry `say` (text before the call), `delay` (seconds before
answering), `status` (answer with that HTTP error), `usage` (`{"input": tokens, "output": tokens}`, to force a
compaction).

Each request is kept (and appended to the log file as a JSON line): n, time, api, path, agent (User-Agent), tools (names
offered), results (seen since the prompt), prompt (its text), reply, body (as sent). Headers are not kept, so no key is.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from tests.fake_chat import chat_events, chat_reply, chat_tools, gemini_events, gemini_reply, gemini_tools
from tests.fake_wire import (
    Answer,
    Call,
    Json,
    Tool,
    anthropic_reply,
    example,
    messages_events,
    offered,
    progress,
    responses_events,
    responses_reply,
    wanted_schema,
)

DEFAULT_TURNS: list[Json] = [{"text": "Hello from the fake model."}]
SHELL_TOOLS = (
    *("Bash", "bash", "exec_command", "shell_command", "shell", "local_shell"),
    *("run_shell_command", "run_commands", "exec"),
)
WRITE_TOOLS = ("Write",)


def _find(tools: list[Tool], names: Sequence[str]) -> Tool | None:
    return next((tool for name in names for tool in tools if tool.name == name), None)


def _made(tool: Tool, given: Json) -> Call:
    """A call of a tool, with example values for the required arguments that the scenario left out."""
    properties = tool.schema.get("properties") or {}
    missing = {name: example(properties.get(name)) for name in tool.schema.get("required") or [] if name not in given}
    return Call(tool.name, {**given, **missing}, tool.kind, tool.namespace)


def _patch(turn: Json) -> str:
    """The text of an `apply_patch`: as given, or one that makes a file."""
    if "patch" in turn:
        return str(turn["patch"])
    path, content = turn["write"]["path"], turn["write"]["content"]
    lines = "".join(f"+{line}\n" for line in content.splitlines())
    return f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch"


def _code_mode(turn: Json, code: Tool) -> Call:
    """The call as JavaScript for the one tool of Codex's code mode."""
    if "shell" in turn:
        script = f"tools.exec_command({json.dumps({'cmd': turn['shell']})})"
    elif "mcp" in turn:
        script = f"tools.mcp__{turn['server']}__{turn['mcp']}({json.dumps(turn.get('input') or {})})"
    else:
        script = f"tools.apply_patch({json.dumps(_patch(turn))})"
    return Call("exec", f"text(await {script})", "custom", code.namespace)


def _call(turn: Json, tools: list[Tool]) -> Call | str:
    """A scripted call as the client's tool takes it; a text when there is no such tool."""
    code = _find(tools, ("exec",))
    if code and code.kind == "custom" and "tool" not in turn:
        return _code_mode(turn, code)
    if "shell" in turn:
        tool = _find(tools, SHELL_TOOLS)
        if tool is None:
            return "[fake model: no shell tool offered]"
        properties = tool.schema.get("properties") or {}
        key = next((name for name in ("command", "cmd", "commands") if name in properties), "command")
        wanted = (properties.get(key) or {}).get("type")
        words = [turn["shell"]] if key == "commands" else ["bash", "-lc", turn["shell"]]
        return _made(tool, {key: words if wanted == "array" else turn["shell"]})
    if "write" in turn and (tool := _find(tools, WRITE_TOOLS)):
        return _made(tool, {"file_path": turn["write"]["path"], "content": turn["write"]["content"]})
    if "write" in turn or "patch" in turn:
        tool = _find(tools, ("apply_patch",))
        if tool is None:
            return "[fake model: no file-writing tool offered]"
        return Call(tool.name, _patch(turn), tool.kind, None)
    if "mcp" in turn:
        name = f"mcp__{turn['server']}__{turn['mcp']}"
        ends = re.compile(rf"(?:^|[_.\-/:]){re.escape(turn['mcp'])}$")
        found = next((tool for tool in tools if ends.search(tool.name)), None)
        return _made(found, turn.get("input") or {}) if found else f"[fake model: no tool {name} offered]"
    tool = _find(tools, (turn["tool"],)) or Tool(turn["tool"])
    given = turn.get("input", {})
    return _made(tool, given) if isinstance(given, dict) else Call(tool.name, given, "custom", tool.namespace)


def choose(scenario: Json, api: str, body: Json, counts: dict[str, int]) -> Answer:
    """The answer to a request; `counts` (requests answered per route) is updated."""
    results, prompt = progress(EVENTS[api](body))
    tools = {"chat": chat_tools, "gemini": gemini_tools}.get(api)
    answer = Answer(tools(body) if tools else offered(api, body), results, prompt)
    if schema := wanted_schema(api, body):
        answer.text = json.dumps(example(schema))
        return answer
    if not answer.tools:
        answer.text = scenario.get("side_text", "ok")
        return answer
    turns, name = scenario.get("turns") or DEFAULT_TURNS, ""
    for entry in scenario.get("routes") or []:
        if re.search(entry["match"], prompt):
            turns, name = entry["turns"], entry["match"]
            break
    position = results
    if scenario.get("by") == "requests":
        position = counts.get(name, 0)
        counts[name] = position + 1
    turn = turns[min(position, len(turns) - 1)]
    answer.delay, answer.status = turn.get("delay", 0), turn.get("status", 200)
    answer.usage = turn.get("usage", {})
    answer.text = turn.get("text") or turn.get("say") or ""
    if "text" not in turn and answer.status == 200:
        for part in turn.get("calls") or [turn]:
            call = _call(part, answer.tools)
            if isinstance(call, str):
                answer.text += call
            else:
                answer.calls.append(call)
    return answer


def route(path: str) -> str:
    """Which API a POST path belongs to; "" for none."""
    ends = {"/messages/count_tokens": "count", "/messages": "anthropic", "/responses": "responses"}
    ends |= {"/chat/completions": "chat", ":countTokens": "count", "enerateContent": "gemini"}
    return next((api for end, api in ends.items() if path.endswith(end)), "")


EVENTS = {
    "anthropic": messages_events,
    "responses": responses_events,
    "chat": chat_events,
    "gemini": gemini_events,
}
REPLIES = {
    "anthropic": anthropic_reply,
    "responses": responses_reply,
    "chat": chat_reply,
    "gemini": gemini_reply,
}


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *args: object) -> None:
        """Say nothing: the requests are in the log."""

    def _json(self, data: Json, status: int = 200) -> None:
        raw = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def do_HEAD(self) -> None:
        self._json({})

    def do_GET(self) -> None:
        models = [{"type": "model", "object": "model", "id": "fake-model", "display_name": "fake-model"}]
        self._json({"data": models, "object": "list", "has_more": False})

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        path = urlsplit(self.path).path
        try:
            body = json.loads(self.rfile.read(length) or b"{}")
        except ValueError:  # telemetry and the like, compressed
            body = {}
        api = route(path)
        if api == "count":
            return self._json({"input_tokens": 100, "totalTokens": 100})
        if not api:
            return self._json({})
        answer = self.server.fake.answered(api, path, self.headers.get("User-Agent") or "", body)
        if answer.delay:
            self.server.fake.stopping.wait(answer.delay)
        if answer.status != 200:
            error = {"type": "api_error", "code": answer.status, "message": answer.text or "scripted error"}
            return self._json({"type": "error", "error": error}, answer.status)
        full, events = REPLIES[api](body, answer)
        streams = body.get("stream") or path.endswith(":streamGenerateContent")
        return self._stream(events, api) if streams else self._json(full)

    def _stream(self, events: list[tuple[str, Json]], api: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Connection", "close")
        self.end_headers()
        for name, data in events:
            named = f"event: {name}\n" if name else ""
            self.wfile.write(f"{named}data: {json.dumps(data)}\n\n".encode())
            self.wfile.flush()
        if api == "chat":
            self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def handle(self) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the client was killed: tests do that
            super().handle()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    fake: FakeModel


class FakeModel:
    """The server, in the process of the test: `with FakeModel(scenario) as model: ... model.url, model.requests()`."""

    def __init__(self, scenario: Json | None = None, log: Path | None = None) -> None:
        self.log = log
        self.stopping = threading.Event()
        self._entries: list[Json] = []
        self._lock = threading.Lock()
        self._scenario: Json = scenario or {}
        self._counts: dict[str, int] = {}
        self._server = _Server(("127.0.0.1", 0), _Requests)
        self._server.fake = self
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def load(self, scenario: Json) -> None:
        """Replace the scenario, and start its counts again."""
        with self._lock:
            self._scenario, self._counts = scenario, {}

    def answered(self, api: str, path: str, agent: str, body: Json) -> Answer:
        """Choose the answer to a request and keep both."""
        with self._lock:
            answer = choose(self._scenario, api, body, self._counts)
            reply = {"text": answer.text, "status": answer.status}
            entry: Json = {"n": len(self._entries) + 1, "time": time.time(), "api": api, "path": path, "agent": agent}
            entry |= {"tools": [tool.name for tool in answer.tools], "results": answer.results, "body": body}
            entry |= {"prompt": answer.prompt, "reply": {**reply, "calls": [(c.name, c.input) for c in answer.calls]}}
            self._entries.append(entry)
            if self.log:
                with self.log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(entry) + "\n")
        return answer

    def requests(self) -> list[Json]:
        """The requests so far, in order."""
        with self._lock:
            return list(self._entries)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
