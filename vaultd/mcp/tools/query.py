"""`memory_query`: search."""

from __future__ import annotations

from vaultd.engine.service import RECORDS, Reply, Search
from vaultd.mcp.tool import FLAG, NUMBER, TEXT, TEXTS, Answer, Call, Tool
from vaultd.mcp.wording import past, place, rows, safe

__all__ = ["TOOL"]

_TOKENS = 1500
"""What an answer may cost unless the caller says more: ten hits with a passage each, mostly."""


def _run(call: Call) -> Answer:
    search = Search(
        limit=call.number("limit", 10),
        everywhere=call.flag("global"),
        projects=call.texts("scopes"),
        expired=call.flag("include_expired"),
        superseded=call.flag("include_superseded"),
        pinned_first=call.flag("pin_first"),
        explain=call.flag("explain"),
        tokens=call.number("tokens", _TOKENS),
        as_of=call.text("as_of"),
    )
    reply = call.service.query(call.scope, call.text("query"), search)
    lists = {name: [_once(hit) for hit in reply[name]] for name in ("hits", "global_hits", "other_hits")}
    reply = {**reply, **lists}
    hits = reply["hits"]
    found = f"{len(hits)} {'hit' if len(hits) == 1 else 'hits'}." if hits else "no page answers this."
    then = f" as of {reply['as_of']['at']} (commit {reply['as_of']['commit'][:10]}), not now" if search.as_of else ""
    head = f"{place(reply, everywhere=search.everywhere)}{then}: {found}"
    if reply.get("cut"):
        head += f" {reply['cut']} more would be too long; ask with more `tokens`."
    if reply["pending"]:
        head += f" {reply['pending']} new events and pages are not searchable yet."
    if note := reply.pop("note", ""):
        head += f" {note}"
    lines = rows(hits)
    for name, title in (("global_hits", "For all projects:"), ("other_hits", "Outside projects:")):
        if reply[name]:
            lines += [title, *rows(reply[name])]
    if reply.get("observations"):
        lines.append(RECORDS)
        for record in reply["observations"]:
            lines.append("- " + " ".join(record[key] for key in ("at", "agent", "session", "kind")))
            lines.append(f"    {record['text']}")
    return Answer(past(head, lines), safe(reply))


def _once(hit: Reply) -> Reply:
    """A hit whose best passage is told once: as its snippet; `more` are the others, if there are any."""
    told = {key: value for key, value in hit.items() if key != "passages"}
    more = [{"anchor": passage["anchor"], "snippet": passage["snippet"]} for passage in hit["passages"][1:]]
    return {**told, "more": more} if more else told


TOOL = Tool(
    name="memory_query",
    title="Search the memory",
    description="Search past sessions, decisions and notes of this project by their words.",
    run=_run,
    arguments={
        "query": TEXT,
        "limit": {**NUMBER, "description": "1-100, default 10"},
        "tokens": {**NUMBER, "description": f"length of the answer, default {_TOKENS}"},
        "scopes": {**TEXTS, "description": "other projects too"},
        "global": {**FLAG, "description": "all projects"},
        "pin_first": FLAG,
        "include_expired": FLAG,
        "include_superseded": FLAG,
        "explain": FLAG,
        "as_of": {**TEXT, "description": "a past day or time"},
    },
    required=("query",),
    aliases={
        "q": "query",
        "search": "query",
        "n": "limit",
        "top_k": "limit",
        "k": "limit",
        "everywhere": "global",
        "max_tokens": "tokens",
        "budget": "tokens",
        "projects": "scopes",
    },
    reads=True,
)
