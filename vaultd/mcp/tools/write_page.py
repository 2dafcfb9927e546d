"""`memory_write_page`: make a page, or give it another body."""

from __future__ import annotations

from vaultd.engine.service import Page
from vaultd.mcp.tool import FLAG, TEXT, TEXTS, Answer, Call, Tool
from vaultd.mcp.wording import place, shown

__all__ = ["SCOPE", "TOOL"]

SCOPE = {"type": "string", "enum": ["project", "global"]}
"""Where a page lies: in the project, or among what holds for all of them."""


def _run(call: Call) -> Answer:
    values = call.values
    page = Page(
        path=call.text("path"),
        body=call.text("body"),
        title=values.get("title"),
        tier=values.get("tier"),
        pinned=values.get("pinned"),
        tags=values.get("tags"),
        everywhere=values.get("scope") == "global",
    )
    reply = call.service.write_page(call.scope, page)
    where = place(reply, everywhere=page.everywhere)
    text = f"{where}: {'made' if reply['created'] else 'rewrote'} {shown(reply['path'])}."
    if reply["redacted"]:
        text += f" {reply['redacted']} secrets in it were replaced by [REDACTED] before it was kept."
    return Answer(text, reply)


TOOL = Tool(
    name="memory_write_page",
    title="Write a page",
    description=(
        "Keep knowledge as a Markdown page; replaces the body of one that exists (git keeps it). "
        "Secrets are redacted. scope global: for all projects."
    ),
    run=_run,
    arguments={
        "path": {**TEXT, "description": "e.g. decisions/use-x.md"},
        "body": TEXT,
        "title": TEXT,
        "tier": TEXT,
        "tags": TEXTS,
        "pinned": FLAG,
        "scope": SCOPE,
    },
    required=("path", "body"),
    aliases={"page": "path", "content": "body", "text": "body", "markdown": "body"},
    repeats=True,  # and destroys nothing: what a page said before is in git by then
)
