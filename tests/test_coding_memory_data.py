"""The coding memory of our own: that its pages and questions are what they say they are. Nothing is searched here."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TypedDict

from vaultd.core import frontmatter
from vaultd.core.kinds import kind_of
from vaultd.core.render import is_unedited

DATA = Path(__file__).parent / "data/coding_memory"
VAULT = DATA / "vault"
PROJECTS = ("meterflow", "switchback", "tollgate")

MOST_SHARED = 2
"""Telling words that a question may share with the title of its answer."""

STOP_WORDS = frozenset(
    """about above after again also back because been before being below between both cannot come could does doing
    done down during each every from further have having here into itself just more most much must never once only
    other over same should some still such than that their them then there these they this those through under until
    upon very want were what when where which while whom with without would your""".split()  # noqa: SIM905 - a word list
)

_WIKILINK = re.compile(r"\[\[([^\]|#]+)[^\]]*\]\]")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^# (.+)$", re.MULTILINE)


class Asked(TypedDict):
    """One question: asked from within `project`, answered by any of `answers`; `kept` for a last run."""

    id: str
    project: str
    question: str
    answers: list[str]
    kept: bool


@cache
def pages() -> dict[str, frontmatter.Page]:
    return {
        path.relative_to(VAULT).as_posix(): frontmatter.parse(path.read_bytes()) for path in sorted(VAULT.rglob("*.md"))
    }


@cache
def questions() -> tuple[Asked, ...]:
    return tuple(json.loads((DATA / "questions.json").read_text("utf-8")))


def title(path: str) -> str:
    """The title in the frontmatter, else the first heading, else the file's name."""
    meta, body = pages()[path]
    heading = _HEADING.search(body)
    return str(meta.values.get("title") or (heading[1] if heading else Path(path).stem))


def telling(text: str) -> set[str]:
    """Words longer than three letters that are no stop words, case folded, in the singular as far as a rule goes."""
    words = re.findall(r"\w+", text.casefold())
    return {singular(word) for word in words if len(word) > 3 and word not in STOP_WORDS}


def singular(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def test_the_projects_have_pages_of_each_kind() -> None:
    kinds = Counter((path.split("/")[1], kind_of(path, page.meta.values)) for path, page in pages().items())
    for project in PROJECTS:
        assert kinds[project, "project"] == 1
        assert kinds[project, "decision"] >= 6
        assert kinds[project, "gotcha"] == kinds[project, "session"] == 5
        assert kinds[project, "rule"] == kinds[project, "procedure"] == 2
        assert kinds[project, "note"] >= 1
    assert sum(path.startswith("_global/") for path in pages()) == 5


def test_every_page_reads() -> None:
    for path, (meta, body) in pages().items():
        assert meta.error is None, (path, meta.error)
        assert not meta.has or {"title", "created"} <= set(meta.values), path
        assert 60 <= len(body.split()) <= 400, (path, len(body.split()))
    assert sum(not page.meta.has for page in pages().values()) == 2  # a person's own, written without any


def test_session_pages_are_as_they_were_written() -> None:
    sessions = [path for path in pages() if "/sessions/" in path]
    assert len(sessions) == 15
    for path in sessions:
        values = pages()[path].meta.values
        assert is_unedited((VAULT / path).read_bytes()), path
        assert Path(path).stem == f"{str(values['started'])[:10]}-{values['id']}"
        assert values["project"] == pages()[f"projects/{path.split('/')[1]}/project.md"].meta.values["id"]


def test_every_wikilink_leads_to_a_page() -> None:
    names = Counter(Path(path).stem for path in pages())
    assert {name: count for name, count in names.items() if count > 1} == {"project": len(PROJECTS)}
    links = [(path, link) for path, page in pages().items() for link in _WIKILINK.findall(_FENCE.sub("", page.body))]
    assert len(links) > 20
    assert [(path, link) for path, link in links if link not in names] == []


def test_what_is_superseded_says_by_what() -> None:
    stems = {Path(path).stem: page.meta.values for path, page in pages().items()}
    replaced = {stem: str(values["superseded_by"]) for stem, values in stems.items() if "superseded_by" in values}
    assert len(replaced) == 2
    for old, new in replaced.items():
        assert stems[new]["supersedes"] == old
        assert str(stems[new]["created"]) > str(stems[old]["created"])


def test_the_dates_lie_over_eight_months() -> None:
    months = {str(page.meta.values["created"])[:7] for page in pages().values() if page.meta.has}
    assert sorted(months) == [f"2026-{month:02}" for month in range(3, 12)]


def test_a_hundred_questions_a_third_of_them_kept() -> None:
    assert [asked["id"] for asked in questions()] == [f"q{number:03}" for number in range(1, 101)]
    assert len({asked["question"].casefold() for asked in questions()}) == 100
    assert Counter(asked["project"] for asked in questions()) == {"tollgate": 34, "switchback": 33, "meterflow": 33}
    kept = Counter(asked["project"] for asked in questions() if asked["kept"])
    assert sum(kept.values()) == 33
    assert all(10 <= kept[project] <= 12 for project in PROJECTS), kept


def test_answers_are_pages_of_the_project_or_of_all_projects() -> None:
    for asked in questions():
        assert 1 <= len(asked["answers"]) <= 3
        for path in asked["answers"]:
            assert path in pages(), asked
            assert path.startswith((f"projects/{asked['project']}/", "_global/")), asked


def test_nearly_every_page_answers_a_question() -> None:
    answering = {path for asked in questions() for path in asked["answers"]}
    assert len(answering) >= len(pages()) - 5


def test_no_question_is_the_title_of_its_answer() -> None:
    for asked in questions():
        for path in asked["answers"]:
            shared = telling(asked["question"]) & telling(title(path))
            assert len(shared) <= MOST_SHARED, (asked["question"], title(path), shared)


def test_what_a_telling_word_is() -> None:
    assert telling("Why do the Retries of queries hang in both boxes?") == {"retry", "query", "hang", "box"}
