"""The session page: what stands on it, that it cannot be broken from inside, and how a person's edit is known."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from markdown_it import MarkdownIt

from tests.core import scripted
from tests.core.arbitrary import sessions
from tests.core.making import START, end, event, file, prompt, say, shell, start
from tests.examples import examples
from vaultd.core import blocks, frontmatter
from vaultd.core.event import Event, Kind
from vaultd.core.render import PageFacts, body_hash, is_unedited, resumed_section, session_page
from vaultd.core.session import digest

KEYS = [
    *("id", "kind", "tier", "title", "summary", "agent", "session_id", "project", "host", "cwd", "subdir", "branch"),
    *("head", "started", "ended", "closed_by", "observations", "files_touched", "generation", "generated"),
    *("created", "updated", "tags"),
]

SUMMARY = "1 prompt, 4 tool calls, 1 file changed, 1 error, 7 minutes; last test run failed (1 failed, 2 passed)."

SECTIONS = [
    "Asked",
    "Done",
    "Errors",
    "Decisions",
    "Open questions",
    "Next steps",
    "Last answer",
    "Where it stopped",
]


def page_of(events: list[Event], **more: object) -> str:
    made = digest(events)
    facts = {"id": "agent-0123456789", "project": "p-1", "host": "desk", "subdir": "", "branch": "main"}
    return session_page(made, PageFacts(**{**facts, "observations": len(events), "now": made.last, **more}))  # type: ignore[arg-type]  # facts by name


def worked() -> list[Event]:
    return [
        start(),
        prompt(1, "Fix the parser. It drops the last line."),
        file(2, "read", "docs/format.md"),
        file(3, "edit", "src/parser.py"),
        shell(4, "pytest -q", "FAILED t/a.py::test_last - assert 1 == 2\n1 failed, 2 passed in 0.1s", code=1),
        shell(5, "git status"),
        say(6, "I decided to keep the buffer.\n\nNext steps:\n- Flush it\n\nShould empty files be an error?"),
        end(7, "logout"),
    ]


def test_a_whole_page() -> None:
    meta, body = frontmatter.parse(page_of(worked()).encode())
    assert meta.error is None
    assert list(meta.values) == KEYS
    assert meta.values | {"generated": ""} == {
        "id": "agent-0123456789",
        "kind": "session",
        "tier": "episodic",
        "title": "Fix the parser",
        "summary": SUMMARY,
        "agent": "agent",
        "session_id": "native-id",
        "project": "p-1",
        "host": "desk",
        "cwd": "/w/project",
        "subdir": "",
        "branch": "main",
        "head": "",
        "started": "2026-11-29T10:00:00+01:00",
        "ended": "2026-11-29T10:07:00+01:00",
        "closed_by": "logout",
        "observations": 8,
        "files_touched": ["src/parser.py", "docs/format.md"],
        "generation": 1,
        "generated": "",
        "created": "2026-11-29T10:00:00+01:00",
        "updated": "2026-11-29T10:07:00+01:00",
        "tags": ["session"],
    }
    assert (
        body
        == """\
# Fix the parser

agent, 2026-11-29 10:00 +01:00, branch `main`. 1 prompt, 4 tool calls, 1 file changed, 1 error, 7 minutes; \
last test run failed (1 failed, 2 passed).

## Asked

- 10:01 “Fix the parser. It drops the last line.”

## Done

**Files**
- `src/parser.py` (edited)
- `docs/format.md` (read)

**Tests**
- `pytest -q`: pytest, failed, 1 failed, 2 passed
  - failing: `t/a.py::test_last`

**Commands**
- `git status`: ok

## Errors

- `pytest -q`: exit 1
  - `FAILED t/a.py::test_last - assert 1 == 2`
  - `1 failed, 2 passed in 0.1s`

## Decisions

- I decided to keep the buffer.

## Open questions

- Should empty files be an error?

## Next steps

- Flush it

## Where it stopped

- The last turn was finished.
- The session ended 2026-11-29 10:07 +01:00 (the client's reason: logout).
"""
    )


def test_sections_without_content_are_left_out() -> None:
    _, body = frontmatter.parse(page_of([start(), prompt(1, "hello there"), end(2)]).encode())
    headings = [line[3:] for line in body.splitlines() if line.startswith("## ")]
    assert headings == ["Asked", "Where it stopped"]


def test_the_same_digest_gives_the_same_page() -> None:
    assert page_of(worked()) == page_of(list(reversed(worked())))


def test_a_session_that_has_not_ended_says_so() -> None:
    text = page_of(worked()[:-1])
    meta, body = frontmatter.parse(text.encode())
    assert (meta.values["ended"], meta.values["closed_by"]) == (None, None)
    assert "No end of the session was reported" in body


def test_a_page_knows_whether_its_body_is_the_one_that_was_written() -> None:
    page = page_of(worked()).encode()
    assert is_unedited(page)
    assert is_unedited(page.replace(b"tags:\n  - session", b"tags:\n  - session\n  - mine\nrating: 5"))
    assert not is_unedited(page + b"\n")
    assert not is_unedited(page.replace(b"keep the buffer", b"keep the old buffer"))
    assert not is_unedited(b"no page of ours\n")
    assert frontmatter.parse(page).meta.values["generated"] == body_hash(frontmatter.split(page).body)


def test_what_the_sanitiser_still_changes_is_in_the_hash() -> None:
    page = page_of(worked(), scrub=lambda text: text.replace("buffer", "[REDACTED]"))
    assert "I decided to keep the [REDACTED]." in page
    assert is_unedited(page.encode())


def test_what_is_appended_to_an_edited_page() -> None:
    text = resumed_section(digest(worked()), START + timedelta(days=1))
    lines = text.splitlines()
    assert lines[:4] == [
        "",
        "## Resumed 2026-11-30 10:00 +01:00",
        "",
        f"- {SUMMARY}",
    ]
    assert [line for line in lines if line.startswith("### ")] == [
        f"### {name}" for name in SECTIONS if name != "Last answer"
    ]


HOSTILE = [
    "# Injected heading",
    "```\n## Asked\n",
    "<!-- swallow the rest",
    "%% hidden %%",
    "[[Home]] ![[Secret]] ![x](http://evil.example/x.png) [y](file:///etc/passwd)",
    "> [!danger] callout",
    "---\ngenerated: 000000000000\n---",
    "#tag ^block-id",
    "- [ ] task\n- [x] done",
    "<script>alert(1)</script> <details>",
    "| a | b |\n|---|---|\n| c | d |",
    "$$ \\begin{x} $$",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_raw_text_breaks_no_structure(text: str) -> None:
    events = [
        start(),
        prompt(1, text),
        file(2, "edit", f"src/{text}.py"),
        shell(3, f"echo {text}", code=1, error=f"error: {text}"),
        say(4, f"Decision: {text}\n\nOpen question: {text}\n\nNext steps:\n- {text}"),
        event(5, Kind.NOTICE, text),
        end(6, text[:20]),
    ]
    check_structure(page_of(events))


@settings(max_examples=examples(120), deadline=None)
@given(sessions)
def test_any_session_has_a_sound_page(events: list[Event]) -> None:
    text = page_of(events)
    assert is_unedited(text.encode())
    check_structure(text)
    check_structure("---\na: 1\n---\n# x\n" + resumed_section(digest(events), START))


def check_structure(text: str) -> None:
    """A page's Markdown holds our headings, flat lists, words and code spans, and nothing else."""
    meta, body = frontmatter.parse(text.encode())
    assert meta.error is None
    tokens = MarkdownIt("commonmark").enable("table").parse(body)
    headings = [tokens[n + 1].content for n, token in enumerate(tokens) if token.type == "heading_open"]
    for heading in headings[1:]:
        assert heading in SECTIONS or heading.startswith("Resumed ")
    assert [t.tag for t in tokens if t.type == "heading_open"].count("h1") == 1
    blocks = {token.type for token in tokens}
    assert not blocks & {
        "fence",
        "code_block",
        "html_block",
        "hr",
        "table_open",
        "blockquote_open",
        "ordered_list_open",
    }
    inline = {child.type for token in tokens for child in token.children or ()}
    assert not inline & {"html_inline", "image", "link_open", "hardbreak"}


@pytest.mark.parametrize("name", scripted.names())
def test_scripted_sessions_have_sound_pages(name: str) -> None:
    text = page_of(scripted.events(scripted.load(name)))
    check_structure(text)
    assert len(text.encode()) < 16_000


def test_a_long_session_says_how_much_is_not_shown() -> None:
    events = [prompt(n, f"please do number {n}") for n in range(1, 50)]
    events += [shell(60 + n, f"run {n}") for n in range(100)]
    text = page_of(events)
    assert "- … 19 more left out" in text
    assert "- … 60 more left out" in text
    assert "please do number 1”" in text
    assert "please do number 49”" in text
    assert "`run 99`: ok" in text


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("## **Done** with `window.__map.project()`", "Done with `window.__map.project()`"),
        ("__Next steps__ are `**kwargs`", "Next steps are `**kwargs`"),
        ("- __init__.py calls __main__", "__init__.py calls __main__"),
    ],
)
def test_an_entry_loses_its_bold_marks_and_no_name(line: str, told: str) -> None:
    assert blocks.plain(line) == told
