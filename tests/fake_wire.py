"""The two providers' wire formats that the fake model speaks: what a request holds, and how an answer is written.

`progress` and `offered` read a request of the Anthropic Messages ("anthropic") or OpenAI Responses ("responses") API,
`anthropic_reply` and `responses_reply` write an `Answer` as whole JSON and as stream events. Shapes are those that
Claude Code 2.1.332 and Codex 0.171.0 were seen to send and to take.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
"""A JSON object as a client sent it or as it is sent: its shape is the provider's and checked by nobody here."""

REMINDER = re.compile(
    r"<(system-reminder|environment_context|session_context|hook_context|untrusted-history)>.*?</\1>", re.S
)


@dataclass
class Tool:
    """A tool that a request offered."""

    name: str
    schema: Json = field(default_factory=dict)
    kind: str = "function"
    namespace: str | None = None


@dataclass
class Call:
    """A tool call that is answered; `input` is text for a custom tool."""

    name: str
    input: Any
    kind: str
    namespace: str | None
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:24])


@dataclass
class Answer:
    """What a request is answered, and what was seen in it."""

    tools: list[Tool]
    results: int
    prompt: str
    text: str = ""
    calls: list[Call] = field(default_factory=list)
    delay: float = 0
    status: int = 200
    usage: dict[str, int] = field(default_factory=dict)


def texts(content: object) -> list[str]:
    """All text in a message's content, a string or a list of parts."""
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]


def responses_events(body: Json) -> Iterator[tuple[str, object]]:
    items = body.get("input") or []
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
        kind = str(item.get("type", ""))
        if kind.endswith("_output"):
            yield "result", None
        elif kind.endswith("_call"):
            yield "assistant", True
        elif item.get("role") == "user":
            yield "user", "\n".join(texts(item.get("content")))
        elif item.get("role") == "assistant":
            yield "assistant", False


def messages_events(body: Json) -> Iterator[tuple[str, object]]:
    for message in body.get("messages") or []:
        content = message.get("content")
        kinds = [part.get("type") for part in content] if isinstance(content, list) else []
        if message.get("role") == "assistant":
            yield "assistant", "tool_use" in kinds
        elif "tool_result" in kinds:
            yield from [("result", None)] * kinds.count("tool_result")
        elif message.get("role") == "user":
            yield "user", "\n".join(texts(content))


def progress(events: Iterable[tuple[str, object]]) -> tuple[int, str]:
    """Tool results in the turn under way, and the user texts that began it.

    A turn begins at the first user message after an answer that called no tool, so text that a hook adds in the middle
    of one does not restart the script.
    """
    count = 0
    said: list[str] = []
    before: tuple[str, object] = ("assistant", False)
    for event in events:
        kind, value = event
        if kind == "result":
            count += 1
        elif kind == "user":
            if before == ("assistant", False):
                count, said = 0, []
            said.append(REMINDER.sub("", str(value)).strip())
        before = event
    return count, "\n".join(text for text in said if text)


def offered(api: str, body: Json) -> list[Tool]:
    """The tools that a request offers, those of Codex's code mode (inside the conversation) and namespaces included."""
    if api == "anthropic":
        return [Tool(t.get("name", ""), t.get("input_schema") or {}) for t in body.get("tools") or []]
    given = list(body.get("tools") or [])
    for item in body["input"] if isinstance(body.get("input"), list) else []:
        if item.get("type") == "additional_tools":
            given += item.get("tools") or []
    out = []
    for tool in given:
        inner = tool.get("tools") or [] if tool.get("type") == "namespace" else [tool]
        space = tool.get("name") if tool.get("type") == "namespace" else None
        for one in inner:
            kind = one.get("type", "function")
            out.append(Tool(one.get("name") or kind, one.get("parameters") or {}, kind, space))
    return out


def wanted_schema(api: str, body: Json) -> Json | None:
    """The JSON schema that a request wants its answer in."""
    if api == "gemini":
        config = body.get("generationConfig") or {}
        found = config.get("responseJsonSchema") or config.get("responseSchema")
    elif api == "chat":
        found = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
    else:
        holder = body.get("text") if api == "responses" else body.get("output_config")
        found = ((holder or {}).get("format") or {}).get("schema")
    return found if isinstance(found, dict) else None


def example(schema: object) -> Any:
    """A small value that fits a JSON schema."""
    if not isinstance(schema, dict):
        return "ok"
    if schema.get("enum"):
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return example(schema[key][0])
    kind = schema.get("type")
    kind = str(kind[0] if isinstance(kind, list) else kind).lower()
    if kind == "object" or "properties" in schema:
        return {name: example(value) for name, value in (schema.get("properties") or {}).items()}
    plain: Json = {"array": [], "integer": 0, "number": 0, "boolean": False, "null": None}
    return plain.get(str(kind), "ok")


Reply = tuple[Json, list[tuple[str, Json]]]
"""A whole answer, and the same as (event name, data) of a stream."""


def anthropic_reply(body: Json, answer: Answer) -> Reply:
    """The answer in the shape of the Messages API."""
    usage = {"input_tokens": answer.usage.get("input", 100), "output_tokens": 1}
    usage |= {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    used = {**usage, "output_tokens": answer.usage.get("output", 10)}
    blocks: list[Json] = [{"type": "text", "text": answer.text}] if answer.text else []
    blocks += [{"type": "tool_use", "id": f"toolu_{c.id}", "name": c.name, "input": c.input} for c in answer.calls]
    ended: Json = {"stop_reason": "tool_use" if answer.calls else "end_turn", "stop_sequence": None}
    head: Json = {"id": f"msg_{uuid.uuid4().hex[:24]}", "type": "message", "role": "assistant", "content": []}
    head |= {"model": body.get("model", "fake"), "stop_reason": None, "stop_sequence": None, "usage": usage}
    events: list[Json] = [{"type": "message_start", "message": head}]
    for index, block in enumerate(blocks):
        start: Json
        if block["type"] == "text":
            start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": ended, "usage": used})
    events.append({"type": "message_stop"})
    return {**head, **ended, "content": blocks, "usage": used}, [(event["type"], event) for event in events]


def _response_items(answer: Answer) -> list[Json]:
    items: list[Json] = []
    if answer.text:
        content = [{"type": "output_text", "text": answer.text, "annotations": []}]
        items.append({"type": "message", "id": f"msg_{uuid.uuid4().hex[:24]}", "role": "assistant"})
        items[-1] |= {"status": "completed", "content": content}
    for call in answer.calls:
        text = call.input if isinstance(call.input, str) else json.dumps(call.input)
        item: Json = {"call_id": f"call_{call.id}", "name": call.name, "status": "completed"}
        if call.kind == "custom":
            item |= {"type": "custom_tool_call", "id": f"ctc_{call.id}", "input": text}
        else:
            item |= {"type": "function_call", "id": f"fc_{call.id}", "arguments": text}
        items.append({**item, **({"namespace": call.namespace} if call.namespace else {})})
    return items


def _item_events(index: int, item: Json) -> list[Json]:
    """The stream events that tell one output item."""
    hollow: dict[str, Json] = {"message": {"content": []}, "function_call": {"arguments": ""}}
    begun = {**item, "status": "in_progress", **hollow.get(item["type"], {})}
    where: Json = {"item_id": item["id"], "output_index": index}
    events: list[Json] = [{"type": "response.output_item.added", "output_index": index, "item": begun}]
    if item["type"] == "message":
        where["content_index"], part = 0, item["content"][0]
        events.append({"type": "response.content_part.added", **where, "part": {**part, "text": ""}})
        events.append({"type": "response.output_text.delta", **where, "delta": part["text"]})
        events.append({"type": "response.output_text.done", **where, "text": part["text"]})
        events.append({"type": "response.content_part.done", **where, "part": part})
    elif item["type"] == "function_call":
        events.append({"type": "response.function_call_arguments.delta", **where, "delta": item["arguments"]})
        events.append({"type": "response.function_call_arguments.done", **where, "arguments": item["arguments"]})
    return [*events, {"type": "response.output_item.done", "output_index": index, "item": item}]


def responses_reply(body: Json, answer: Answer) -> Reply:
    """The answer in the shape of the Responses API."""
    given, out = answer.usage.get("input", 100), answer.usage.get("output", 10)
    usage: Json = {"input_tokens": given, "input_tokens_details": {"cached_tokens": 0}, "total_tokens": given + out}
    usage |= {"output_tokens": out, "output_tokens_details": {"reasoning_tokens": 0}}
    head: Json = {"id": f"resp_{uuid.uuid4().hex[:24]}", "object": "response", "created_at": int(time.time())}
    head |= {"model": body.get("model", "fake"), "status": "in_progress", "output": []}
    items = _response_items(answer)
    full = {**head, "status": "completed", "output": items, "usage": usage}
    events: list[Json] = [{"type": "response.created", "response": head}]
    for index, item in enumerate(items):
        events += _item_events(index, item)
    events.append({"type": "response.completed", "response": full})
    return full, [(event["type"], {**event, "sequence_number": n}) for n, event in enumerate(events)]
