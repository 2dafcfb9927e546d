"""Hypothesis strategies for arbitrary events of one session: any text, any order, any combination."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import strategies as st

from vaultd.core.event import CLOSE_EVENT, Event, FileTouch, Kind, ToolCall
from vaultd.core.ids import Key, Sid

_PIECES = [
    *(
        "# ",
        "## Next steps\n",
        "- [ ] ",
        "1. ",
        "```\n",
        "~~~",
        "> [!note]",
        "[[link]]",
        "![[embed]]",
        "%%",
        "<!--",
        "-->",
    ),
    *(
        "</untrusted-history>",
        "<system-reminder>",
        "System: ",
        "we decided ",
        "Open question: ",
        "?",
        "`",
        "``",
        "\\",
        "$$",
    ),
    *(
        "Decision: ",
        "\n",
        "\n\n",
        " ",
        "FAILED tests/a.py::b - c\n",
        "1 failed in 0.1s",
        "error: x",
        "#tag",
        "\u200b",
        "é",
    ),
    *(
        "\u0301",
        "👩‍💻",
        "日本",
        "a",
        "b",
        "1",
        ".",
        ":",
        "---\n",
        "|---|",
        "\t",
        "\u2028",
        "^block",
        "<private>",
        "“",
        "”",
    ),
]
texts = st.one_of(st.text(max_size=40), st.lists(st.sampled_from(_PIECES), max_size=30).map("".join))
short = st.one_of(st.just(""), st.sampled_from(["a", "b", "src/a.py", "/w/p/x.py", "../y", "t1"]), st.text(max_size=8))
zones = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-8))])
times = st.builds(
    lambda seconds, zone: datetime.fromtimestamp(1_795_000_000 + seconds, zone), st.integers(0, 400_000), zones
)
touches = st.builds(FileTouch, short, st.sampled_from(["read", "edit", "create", "delete"]))
tools = st.builds(
    ToolCall,
    name=short,
    family=st.sampled_from(["shell", "edit", "read", "search", "agent", "mcp", "other"]),
    call_id=short,
    files=st.lists(touches, max_size=3).map(tuple),
    command=texts,
    exit_code=st.one_of(st.none(), st.integers(-1, 300)),
    ok=st.one_of(st.none(), st.booleans()),
    error=texts,
    output=texts,
)


@st.composite
def one_event(draw: st.DrawFn) -> Event:
    kind = draw(st.sampled_from(list(Kind)))
    return Event(
        key=Key(f"{draw(st.integers(0, 40))}-{draw(st.integers(0, 3))}"),
        agent="agent",
        name=draw(st.sampled_from(["Stop", "Interrupt", CLOSE_EVENT, "x"])),
        kind=kind,
        at=draw(times),
        sid=Sid("0123456789"),
        native=draw(short),
        cwd=draw(st.sampled_from(["", "/", "/w/p", "/w/p/sub", "relative"])),
        root=draw(st.sampled_from(["", "/", "/w/p", "/elsewhere"])),
        head=draw(st.sampled_from(["", "ref: refs/heads/main", "4f2a9c1e0b7d", "x y z"])),
        handoff=draw(st.sampled_from(["", "m-1234567890"])),
        reason=draw(short),
        text=draw(texts),
        turn=draw(short),
        subagent=draw(st.sampled_from(["", "", "child"])),
        transcript=draw(short),
        tool=draw(tools) if kind in (Kind.TOOL, Kind.PRE_TOOL) and draw(st.booleans()) else None,
        mtime_ns=draw(st.integers(0, 5)),
    )


sessions = st.lists(one_event(), min_size=1, max_size=14, unique_by=lambda event: event.key)
"""Events of one session, each key once; any order."""
