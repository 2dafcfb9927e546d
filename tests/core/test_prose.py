"""Decisions, next steps and questions out of what people and assistants write."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings

from tests.core.arbitrary import texts
from tests.examples import examples
from vaultd.core.blocks import plain, sentences
from vaultd.core.prose import headline, is_offer, mine, prose, statements

DECIDED = [
    "We decided to keep the lock file.",
    "I've decided that retries stop after three.",
    "I chose aiohttp over httpx because of the pool.",
    "We agreed on one hash per cart.",
    "We settled on port 8080 for the daemon.",
    "I went with option B, since A leaks.",
    "I opted for a single table.",
    "You decided against a cache.",
    "It was decided that the old API stays.",
    "The decision is to drop Python 3.9.",
    "Let's use sqlite for the queue.",
    "ok, let's keep the old name.",
    "let's not touch the migration.",
    "Use tabs instead of spaces.",
    "Please return an empty list rather than None.",
    "Don't use mocks, use the real server.",
    "We'll go with the second design.",
    "We will use UUIDs for the keys.",
    "We won't support Windows in this release.",
    "Wir haben entschieden, JSON zu nehmen.",
    "Wir nehmen JSON statt YAML.",
    "Nous avons décidé de garder la base.",
    "Hemos decidido usar Redis.",
    "我们决定使用 Redis。",
    "丸めは最後に一度だけ行うことにしました。",
]
NOT_DECIDED = [
    "We haven't decided on the port yet.",
    "Should we use tabs instead of spaces?",
    "The code uses a list instead of a set.",
    "I picked up the failing test.",
    "Once we have decided, I will write it down.",
    "It is still to be decided.",
    "I would have chosen another name.",
    "Let's run the tests.",
    "If you decided otherwise, tell me.",
    "The function returns None instead of raising.",
    "We will use the following command to check.",
]


@pytest.mark.parametrize("sentence", DECIDED)
def test_a_sentence_that_states_a_decision(sentence: str) -> None:
    assert mine(f"Some words before. {sentence} Some words after.").decisions == (sentence,)


@pytest.mark.parametrize("sentence", NOT_DECIDED[:-1])
def test_a_sentence_that_only_speaks_of_deciding(sentence: str) -> None:
    assert mine(sentence).decisions == ()


@pytest.mark.parametrize(
    ("text", "decisions"),
    [
        (
            "Decision: one file per event. The name is the key. More words.",
            ("one file per event. The name is the key.",),
        ),
        ("**Decision:** one file per event.", ("one file per event.",)),
        ("I looked at both. Decision: one file per event.", ("one file per event.",)),
        (
            "## Decisions\n\n- Times are UTC\n- Keep the lock\n\n## Other\n\n- no decision",
            ("Times are UTC", "Keep the lock"),
        ),
        ("3. Key Technical Decisions:\n   - Times are UTC\n4. Files:\n   - a.py", ("Times are UTC",)),
        ("### Decisions made\n\nWe use UUIDs.\n\nThe weather is fine.", ("We use UUIDs.",)),
        ("I decided two things:\n1. Times are UTC\n2. Keep the lock", ("Times are UTC", "Keep the lock")),
        ("Entscheidungen:\n* JSON statt YAML", ("JSON statt YAML",)),
        ("Decisions: none", ()),
        ("The decision table:\n- a\n- b", ()),
        ("```\n# Decision: not this\nwe decided nothing\n```", ()),
        ("> We decided long ago.\n\n| We decided | x |", ()),
        ("<!-- We decided to hide. -->", ()),
        ("<analysis>\nWe decided to guess.\n</analysis>", ()),
    ],
)
def test_decisions(text: str, decisions: tuple[str, ...]) -> None:
    assert mine(text).decisions == decisions


@pytest.mark.parametrize(
    "heading",
    [
        "Next steps:",
        "## Next steps",
        "**Next Steps**",
        "**Next steps:**",
        "### What's next?",
        "Remaining work:",
        "What is left:",
        "Here are the next steps:",
        "TODO:",
        "Still to do:",
        "8. Optional Next Step:",
        "Follow-ups:",
        "Open tasks:",
        "🚀 Next steps:",
        "Nächste Schritte:",
        "## Offene Punkte",
        "### Prochaines étapes",
        "Próximos pasos:",
        "**次のステップ**",
        "下一步：",
    ],
)
def test_headings_of_next_steps(heading: str) -> None:
    text = f"All is green.\n\n{heading}\n\n1. Add the comma\n   in `a.py`\n2. Run it\n\nThat is all."
    assert mine(text).next_steps == ("Add the comma in `a.py`", "Run it")


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("Next step: run the migration.\nThe rest is done.", ("run the migration.",)),
        ("Done.\nTODO: guard the price.", ("guard the price.",)),
        ("Next steps:\n- [x] done\n- [ ] not done\n- None", ("not done",)),
        ("The next step is to write docs.", ("The next step is to write docs.",)),
        ("Next, I would run the tests.", ("Next, I would run the tests.",)),
        ("The index still needs a lock.", ("The index still needs a lock.",)),
        ("Remaining:\nWrite the docs. Then ship.\n\nBye for now.", ("Write the docs.", "Then ship.")),
        ("5. Pending Tasks:\n   - fix a\n6. Current Work:\n   Editing.", ("fix a",)),
        ("Next steps: none.", ()),
        ("The next stop is Berlin.", ()),
        ("```\n# TODO: in code\n```", ()),
    ],
)
def test_next_steps(text: str, steps: tuple[str, ...]) -> None:
    assert mine(text).next_steps == steps


@pytest.mark.parametrize(
    ("text", "named", "asks"),
    [
        ("Open question: do we support Windows?", ("do we support Windows?",), ()),
        ("**Open questions:**\n- Which port?\n- Who owns it", ("Which port?", "Who owns it"), ()),
        ("## Questions for you\n\n1. Drop it?", ("Drop it?",), ()),
        ("Offene Fragen:\n- Welche Version?", ("Welche Version?",), ()),
        ("Unresolved questions:\n- None", (), ()),
        ("Should we keep v1? I would drop it.\n\nThe end.", (), ("Should we keep v1?",)),
        ("It is done. Which port is it?", (), ("Which port is it?",)),
        ("Why did it fail? Because of the lock.\n\nFixed.", (), ()),
        ("Anything else I can help with?", (), ()),
        ("Is the cache stale? I did not look.\n\nFixed.", (), ()),
        ("どうしますか？", (), ("どうしますか？",)),
        ("```\nreally?\n```\n> really?", (), ()),
    ],
)
def test_questions(text: str, named: tuple[str, ...], asks: tuple[str, ...]) -> None:
    assert (mine(text).open_questions, mine(text).asks) == (named, asks)


def test_offers_are_told_from_questions() -> None:
    assert is_offer("Shall I go on?")
    assert is_offer("Do you want me to commit this?")
    assert not is_offer("Should the cache be shared?")


@pytest.mark.parametrize(
    ("paragraph", "parts"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("See `a. B` and e.g. this. Next.", ["See `a. B` and e.g. this.", "Next."]),
        ("Version 1.2 is in app.py today. ok", ["Version 1.2 is in app.py today.", "ok"]),
        ("一つ。二つ。", ["一つ。", "二つ。"]),
        ("", []),
    ],
)
def test_sentences(paragraph: str, parts: list[str]) -> None:
    assert sentences(paragraph) == parts


def test_prose_marks_where_code_was_left_out() -> None:
    assert prose("before\n```\ncode\n```\nafter") == "before\n…\nafter"
    assert prose("```\nonly code\n```") == "```\nonly code\n```"
    assert plain("## **Bold** title") == "Bold title"
    assert headline("```\nx\n```\n") == ""


def test_statements_are_what_is_said_below_headings() -> None:
    text = "# Title\n\nDone it.\n\nNext steps:\n- one\n\n**Bold heading**\n\nTODO: two"
    assert statements(text) == ["Done it.", "one", "TODO: two"]


@pytest.mark.parametrize(
    "piece", ["we decided ", "a.\n", "wir haben ", "- ", "Next steps:\n", "**", "`", "```\n", "x? ", "use "]
)
def test_a_long_text_of_one_kind_is_read_in_time(piece: str) -> None:
    text = (piece * 16_384)[:16_384]
    began = time.process_time()
    mine(text)
    headline(text)
    assert time.process_time() - began < 5  # a quadratic pattern takes minutes


@settings(max_examples=examples(300), deadline=None)
@given(texts)
def test_any_text_is_read_and_nothing_is_made_up(text: str) -> None:
    found = mine(text)
    letters = "".join(c for c in text.casefold() if c.isalnum())
    for entry in (*found.decisions, *found.next_steps, *found.open_questions, *found.asks):
        assert entry
        assert "\n" not in entry
        assert len(entry.encode()) <= 500
        assert "".join(c for c in entry.rstrip("…").casefold() if c.isalnum()) in letters
