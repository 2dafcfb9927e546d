"""Two more wire formats of the fake model: OpenAI Chat Completions ("chat") and Gemini's generateContent ("gemini").

Shapes are those that OpenCode, Pi, Qwen Code, Kimi Code, Copilot CLI, Cline and Gemini CLI were seen to send and take.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator

from tests.fake_wire import Answer, Json, Reply, Tool, texts

__all__ = ["chat_events", "chat_reply", "chat_tools", "gemini_events", "gemini_reply", "gemini_tools"]


def chat_events(body: Json) -> Iterator[tuple[str, object]]:
    """The conversation in order, as `fake_wire.progress` reads it."""
    for message in body.get("messages") or []:
        if message.get("role") == "tool":
            yield "result", None
        elif message.get("role") == "assistant":
            yield "assistant", bool(message.get("tool_calls"))
        elif message.get("role") == "user":
            yield "user", "\n".join(texts(message.get("content")))


def gemini_events(body: Json) -> Iterator[tuple[str, object]]:
    """The conversation in order, as `fake_wire.progress` reads it."""
    for message in body.get("contents") or []:
        parts = message.get("parts") or []
        results = sum(1 for part in parts if "functionResponse" in part)
        if message.get("role") == "model":
            yield "assistant", any("functionCall" in part for part in parts)
        elif results:
            yield from [("result", None)] * results
        else:
            yield "user", "\n".join(texts(parts))


def chat_tools(body: Json) -> list[Tool]:
    """The tools that a request offers."""
    told = [tool.get("function") or {} for tool in body.get("tools") or []]
    return [Tool(one.get("name", ""), one.get("parameters") or {}) for one in told]


def gemini_tools(body: Json) -> list[Tool]:
    """The tools that a request offers."""
    told = [one for tool in body.get("tools") or [] for one in tool.get("functionDeclarations") or []]
    return [Tool(one.get("name", ""), one.get("parametersJsonSchema") or one.get("parameters") or {}) for one in told]


def chat_reply(body: Json, answer: Answer) -> Reply:
    """The answer in the shape of Chat Completions; a stream ends with [DONE]."""
    calls: list[Json] = [
        {"id": f"call_{c.id}", "type": "function", "function": {"name": c.name, "arguments": json.dumps(c.input)}}
        for c in answer.calls
    ]
    given, out = answer.usage.get("input", 100), answer.usage.get("output", 10)
    usage = {"prompt_tokens": given, "completion_tokens": out, "total_tokens": given + out}
    finish = "tool_calls" if calls else "stop"
    head: Json = {"id": f"chatcmpl-{uuid.uuid4().hex[:24]}", "created": int(time.time())}
    head["model"] = body.get("model", "fake")
    message = {"role": "assistant", "content": answer.text or None, **({"tool_calls": calls} if calls else {})}
    whole: Json = {**head, "object": "chat.completion", "usage": usage}
    whole["choices"] = [{"index": 0, "message": message, "finish_reason": finish}]
    deltas: list[Json] = [{"role": "assistant", "content": answer.text}]
    deltas += [{"tool_calls": [{"index": index, **call}]} for index, call in enumerate(calls)]
    chunk: Json = {**head, "object": "chat.completion.chunk"}
    chunks = [{**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({**chunk, "usage": usage, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return whole, [("", one) for one in chunks]


def gemini_reply(body: Json, answer: Answer) -> Reply:
    """The answer in the shape of generateContent."""
    parts: list[Json] = [{"text": answer.text}] if answer.text else []
    parts += [{"functionCall": {"id": c.id, "name": c.name, "args": c.input}} for c in answer.calls]
    given, out = answer.usage.get("input", 100), answer.usage.get("output", 10)
    usage = {"promptTokenCount": given, "candidatesTokenCount": out, "totalTokenCount": given + out}
    content = {"role": "model", "parts": parts}
    whole: Json = {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}
    whole |= {"modelVersion": "fake", "responseId": uuid.uuid4().hex}
    return whole, [("", whole)]
