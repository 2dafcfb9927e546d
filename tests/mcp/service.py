"""A service that remembers what it was asked and answers with what a test put there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from vaultd.engine.service import Scope

ROW = {"path": "projects/shop/notes/x.md", "title": "A title", "kind": "note", "tier": "semantic", "updated": "2026"}

PASSAGE = {"anchor": "#Why", "snippet": "Because.", "score": 1.0}
WHOLE = {"lines": "1-3", "of": 3}

ANSWERS: dict[str, dict[str, Any]] = {
    "query": {
        "query": "x",
        "project": "shop",
        "generation": 1,
        "pending": 0,
        "hits": [
            {**ROW, "anchor": "#Why", "project": "shop", "score": 1.0, "snippet": "Because.", "passages": [PASSAGE]}
        ],
        "global_hits": [],
        "other_hits": [],
    },
    "recent": {"project": "shop", "pages": [ROW]},
    "read_page": {
        "project": "shop",
        **ROW,
        "revision": "abc",
        "lines": "1-3",
        "of": 3,
        "text": "# A title\n\nBecause.\n",
    },
    "status": {
        "project": "shop",
        "ok": True,
        "problems": [],
        "pages": {"disk": 1, "indexed": 1, "unparsable": []},
        "inbox": {"new": 0, "oldest_s": 0, "failed": 0},
    },
    "briefing": {"project": "shop", "handoffs": [], "recent": [ROW], "pinned": []},
    "write_page": {"project": "shop", "path": ROW["path"], "revision": "abc", "created": True, "redacted": 0},
    "delete_page": {"project": "shop", "path": ROW["path"], "commit": "0123abc"},
    "handoff_begin": {"project": "shop", "id": "m-0123456789", "path": "p", "redacted": 0},
    "handoff_list": {
        "project": "shop",
        "handoffs": [
            {
                "id": "m-0123456789",
                "title": "Go on",
                "from_agent": "agent",
                "created": "2026",
                "provisional": False,
                "subdir": "",
                "path": "p",
            }
        ],
    },
    "handoff_accept": {"project": "shop", "id": "m-0123456789", "path": "p", "text": "fenced"},
    "handoff_cancel": {"project": "shop", "id": "m-0123456789", "path": "p"},
    "observations": {
        "project": "shop",
        "session": "0123456789",
        "agent": "agent",
        "total": 1,
        "observations": [{"at": "2026", "kind": "prompt", "text": "Do it", "tool": "", "files": [], "command": ""}],
    },
    "routing": {"project": "shop", "text": "Ask it."},
}


@dataclass
class FakeService:
    """Any use case by name; `asked` holds the calls, `failing` is raised by each."""

    answers: dict[str, dict[str, Any]] = field(default_factory=lambda: dict(ANSWERS))
    asked: list[tuple[str, Scope, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)
    failing: BaseException | None = None

    def __getattr__(self, name: str) -> Any:
        if name not in ANSWERS:
            raise AttributeError(name)

        def use(scope: Scope, *args: Any, **named: Any) -> dict[str, Any]:
            self.asked.append((name, scope, args, named))
            if self.failing is not None:
                raise self.failing
            return self.answers[name]

        return use
