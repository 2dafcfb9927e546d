"""The digest: life cycle, duplicates, prompts, files, commands, errors, what was said, where it stopped."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings

from tests.core.arbitrary import sessions
from tests.core.making import START, end, event, file, prompt, say, shell, start
from tests.examples import examples
from vaultd.core.event import CLOSE_EVENT, Event, Kind, ToolCall
from vaultd.core.ids import Key
from vaultd.core.lifecycle import latest
from vaultd.core.session import digest

CLOSE = {"name": CLOSE_EVENT}


# -- life cycle


def test_a_session_without_events_has_no_digest() -> None:
    with pytest.raises(ValueError, match="without events"):
        digest([])


def test_order_and_repetition_of_events_change_nothing() -> None:
    events = [start(), prompt(1, "fix it"), file(2, "edit", "a.py"), shell(3, "make", code=2), say(4, "done"), end(5)]
    shuffled = events * 2
    random.Random(7).shuffle(shuffled)
    assert digest(shuffled) == digest(events)
    assert digest(shuffled).observations == 6


def test_two_wirings_that_report_one_thing_are_one() -> None:
    asked = prompt(1, "fix it", turn="t")
    ran = shell(2, "make", code=None, call="c")
    said = say(3, "We decided to stop. Should I push?", turn="t")
    twins = [replace(e, key=Key(f"{e.key}-b"), at=e.at + timedelta(seconds=1)) for e in (asked, ran, said)]
    twins[1] = shell(2.1, "make", "make: *** [all] Error 2", code=2, call="c")
    made = digest([start(), asked, ran, said, *twins])
    assert (len(made.prompts), made.tool_calls, len(made.commands)) == (1, 1, 1)
    # What only one of them said is known.
    assert made.commands[0].outcome.exit_code == 2
    assert made.observations == 7


def test_two_different_prompts_in_one_turn_are_two() -> None:
    made = digest([prompt(1, "fix it", turn="t"), prompt(2, "no, the other one", turn="t", key=Key("2-x"))])
    assert [one.text for one in made.prompts] == ["fix it", "no, the other one"]


def test_the_generation_rises_only_when_a_typed_prompt_is_newer_than_the_last_close() -> None:
    base = [start(), prompt(1, "one"), say(2, "done"), end(3)]
    assert digest(base).generation == 1
    assert digest([*base, end(4), end(5, "x")]).generation == 1
    assert digest([*base, start(4, source="resume"), event(5, Kind.PRE_COMPACT)]).generation == 1
    assert digest([*base, prompt(4, "<task-notification>\n<task-id>b</task-id>\n</task-notification>")]).generation == 1
    assert digest([*base, prompt(4, "CHILD: look", subagent="c")]).generation == 1
    assert digest([*base, prompt(4, "two"), prompt(5, "three")]).generation == 2
    assert digest([*base, prompt(4, "two"), end(5), prompt(6, "three"), end(7)]).generation == 3


def test_open_closed_and_provisional() -> None:
    base = [start(), prompt(1, "one")]
    mid = digest(base)
    assert (mid.closed, mid.provisional, mid.ended, mid.closed_by, mid.last_close) == (False, False, None, "", None)
    turn = digest([*base, say(2, "done")])
    assert (turn.closed, turn.provisional) == (False, True)
    closed = digest([*base, say(2, "done"), end(3, "logout")])
    assert (closed.closed, closed.provisional, closed.closed_by) == (True, False, "logout")
    assert closed.ended == closed.last_close == START + timedelta(minutes=3)
    again = digest([*base, say(2, "done"), end(3), prompt(4, "more")])
    assert (again.closed, again.provisional, again.last_close) == (False, False, START + timedelta(minutes=3))


def test_a_close_by_vaultd_ended_the_session_when_it_was_last_heard_of() -> None:
    made = digest([start(), prompt(1, "one"), file(2, "edit", "a"), end(40, "quiet", **CLOSE)])
    assert (made.closed_by, made.ended, made.last_close) == (
        "quiet",
        START + timedelta(minutes=2),
        START + timedelta(minutes=40),
    )
    later = digest([start(), prompt(1, "one"), end(2), end(50, "finalised", **CLOSE)])
    assert (later.closed_by, later.ended) == ("finalised", START + timedelta(minutes=2))


def test_work_after_a_close_without_a_prompt_is_counted_and_opens_nothing() -> None:
    made = digest([start(), prompt(1, "one"), end(3, "quiet", **CLOSE), shell(4, "make"), say(5, "done")])
    assert (made.closed, made.generation, made.since_close) == (True, 1, 2)


def test_the_latest_generation_begins_after_the_last_close_before_its_prompt() -> None:
    events = [start(), prompt(1, "one"), end(2), start(3, source="resume"), prompt(4, "two"), say(5, "x")]
    assert [e.kind for e in latest(events)] == [Kind.START, Kind.PROMPT, Kind.TURN_END]
    assert latest(events[:3]) == events[:3]


@pytest.mark.parametrize(
    ("events", "hands_over"),
    [
        ([start(), end(1)], False),
        ([start(), prompt(1, "what is this?"), say(2, "a test"), end(3)], False),
        ([start(), prompt(1, "one"), prompt(2, "two"), end(3)], True),
        ([start(), prompt(1, "one"), file(2, "read", "a"), end(3)], True),
        ([start(), prompt(1, "one"), shell(2, "make", kind=Kind.PRE_TOOL), end(3)], True),
        ([start(), prompt(1, "one"), prompt(2, "<command-name>/model</command-name>"), end(3)], False),
        # A second generation is judged by what happened in it.
        ([start(), prompt(1, "one"), file(2, "edit", "a"), end(3), prompt(4, "thanks, all good"), end(5)], False),
        ([start(), prompt(1, "one"), file(2, "edit", "a"), end(3), end(4)], True),
    ],
)
def test_what_opens_a_handoff(events: list[Event], hands_over: bool) -> None:
    assert digest(events).hands_over is hands_over


def test_claims_are_known_and_those_of_idle_stretches_are_given_back() -> None:
    idle = [start(handoff="m-1"), prompt(1, "what?"), end(2)]
    made = digest(idle)
    assert (made.claimed, made.given_back) == (("m-1",), ("m-1",))
    worked = [*idle, start(3, handoff="m-2"), prompt(4, "go"), file(5, "edit", "a"), end(6)]
    assert (digest(worked).claimed, digest(worked).given_back) == (("m-1", "m-2"), ("m-1",))
    assert digest(idle[:2]).given_back == ()
    talked = [start(handoff="m-1"), prompt(1, "what?"), prompt(2, "and why?"), end(3)]
    assert digest(talked).given_back == ()


@pytest.mark.parametrize(
    ("events", "substantive"),
    [
        ([start(), end(1)], False),
        ([start(), event(1, Kind.NOTICE, "needs permission"), event(2, Kind.OTHER), end(3)], False),
        ([start(), prompt(1, "<local-command-stdout>x</local-command-stdout>"), say(2, ""), end(3)], False),
        ([start(), prompt(1, "/exit"), end(3)], False),
        ([start(), prompt(1, "do it"), end(3)], True),
        ([file(1, "read", "a")], True),
        ([say(1, "All done.")], True),
    ],
)
def test_what_gets_a_page(events: list[Event], substantive: bool) -> None:
    assert digest(events).substantive is substantive


def test_the_day_is_the_persons() -> None:
    late = replace(start(), at=START.replace(hour=23, minute=59))
    assert digest([late]).day == "2026-11-29"


# -- prompts and titles


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "<task-notification>\n<task-id>b</task-id>\n<summary>Agent finished</summary>\n</task-notification>",
        "<system_notification>\nShell command has completed.\n</system_notification>",
        "<system-reminder>Remember</system-reminder>",
        "<command-name>/compact</command-name>\n<command-message>compact</command-message>",
        "<local-command-stdout>Set model</local-command-stdout>",
        "<environment_context>\n<cwd>/w</cwd>\n</environment_context>",
        "Caveat: The messages below were generated by the user while running local commands.",
        "[Request interrupted by user]",
        "/clear",
        "<untrusted-history>\nold notes\n</untrusted-history>\n",
    ],
)
def test_prompts_that_nobody_typed_are_none(text: str) -> None:
    assert digest([start(), prompt(1, text), prompt(2, "real")]).prompts == digest([start(), prompt(2, "real")]).prompts


def test_what_a_client_wraps_round_a_prompt_goes() -> None:
    wrapped = [
        "<system-reminder>Context</system-reminder>\nfix the parser",
        '<user_input mode="act">fix the parser</user_input>',
        "<hook_context>\n<untrusted-history>\nwe decided x\n</untrusted-history>\n</hook_context>\nfix the parser",
    ]
    for text in wrapped:
        assert [one.text for one in digest([prompt(1, text)]).prompts] == ["fix the parser"]


def test_a_subagents_prompt_is_not_the_persons() -> None:
    assert digest([prompt(1, "CHILD: look", subagent="c")]).prompts == ()


def test_a_slash_command_with_words_is_a_prompt() -> None:
    assert len(digest([prompt(1, "/review src/app.py"), prompt(2, "/status")]).prompts) == 1


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Fix the parser. It drops the last line.", "Fix the parser"),
        ("fix `src/app.py`, please!", "fix `src/app.py`, please"),
        ("# Task\n\nDo something", "Task"),
        ("- why does it hang?", "why does it hang?"),
        ("```\ncode only\n```\nExplain this", "Explain this"),
        ("日本語の質問です。続き", "日本語の質問です"),
        ("...", "agent session 0123456789"),
        ("word " * 40, " ".join(["word"] * 15) + "…"),
    ],
)
def test_titles(text: str, title: str) -> None:
    made = digest([prompt(1, text)])
    assert made.title == title
    assert len(made.title) <= 80


def test_a_greeting_is_no_title_when_there_is_more() -> None:
    assert digest([prompt(1, "hi"), prompt(2, "Add a flag")]).title == "Add a flag"
    assert digest([prompt(1, "hi")]).title == "hi"
    assert digest([start()]).title == "agent session 0123456789"


# -- files, commands, errors


def test_files_are_relative_changed_first_and_newest_last() -> None:
    made = digest(
        [
            file(1, "read", "/w/project/docs/a.md"),
            file(2, "edit", "/w/project/src/b.py"),
            file(3, "create", "c.py", cwd="/w/project/sub"),
            file(4, "edit", "/elsewhere/d.py"),
            file(5, "read", "/w/project/src/b.py"),
            file(6, "read", "../other/e.py"),
            file(7, "edit", "/w/project/src/b.py"),
            file(8, "delete", "c.py", cwd="/w/project/sub"),
            file(9, "read", "/w/project-two/f.py"),
        ]
    )
    assert [(use.path, use.actions) for use in made.files] == [
        ("/elsewhere/d.py", ("edit",)),
        ("src/b.py", ("edit", "read")),
        ("sub/c.py", ("create", "delete")),
        ("docs/a.md", ("read",)),
        ("/w/other/e.py", ("read",)),
        ("/w/project-two/f.py", ("read",)),
    ]


def test_a_file_of_a_failed_call_was_not_touched() -> None:
    made = digest([file(1, "edit", "gone.py", ok=False, error="File does not exist.")])
    assert made.files == ()
    assert [(one.source, one.lines) for one in made.errors] == [("Edit gone.py", ("File does not exist.",))]


def test_paths_without_any_folder_stay_as_they_are() -> None:
    assert [use.path for use in digest([file(1, "edit", "a/./b.py", cwd="", root="")]).files] == ["a/b.py"]


def test_outcomes_are_as_reported_and_unknown_stays_unknown() -> None:
    made = digest(
        [
            shell(1, "make\n  all"),
            shell(2, "make check", "boom", code=2),
            shell(3, "make docs", "written", code=None),
            shell(4, "ls nowhere", "ls: cannot access 'nowhere': No such file or directory", code=None),
        ]
    )
    assert [(run.text, run.result, run.outcome.exit_code) for run in made.commands] == [
        ("make all", "ok", 0),
        ("make check", "exit 2", 2),
        ("make docs", "", None),
        ("ls nowhere", "failed", None),
    ]
    assert [(one.source, one.exit_code) for one in made.errors] == [("make check", 2), ("ls nowhere", None)]


def test_an_error_is_resolved_by_a_later_run_that_is_known_to_have_succeeded() -> None:
    fails = shell(1, "make", "make: *** [all] Error 2", code=2)
    assert [one.resolved for one in digest([fails, shell(2, "make")]).errors] == [True]
    assert [one.resolved for one in digest([fails, shell(2, "make", code=None)]).errors] == [False]
    assert [one.resolved for one in digest([fails, shell(2, "make other")]).errors] == [False]
    back = digest([fails, shell(2, "make"), shell(3, "make", "make: *** [all] Error 2", code=2)]).errors
    assert [(one.resolved, one.times) for one in back] == [(False, 2)]
    quiet = [shell(1, "pytest", "1 failed in 0.1s", code=None), shell(2, "pytest", "2 passed in 0.1s", code=None)]
    assert [one.resolved for one in digest(quiet).errors] == [True]


def test_a_search_without_a_match_is_no_error() -> None:
    made = digest([shell(1, "grep -rn nothing src", code=1)])
    assert (made.errors, made.commands[0].result) == ((), "exit 1")


def test_a_refused_call_is_said_to_be_refused() -> None:
    tool = ToolCall("Bash", "shell", "c", (), "rm -r build", None, False, "refused: rm -r build needs approval")
    made = digest([event(1, Kind.TOOL, tool=tool)])
    assert made.commands[0].result == "refused"
    assert made.errors[0].lines == ("refused: rm -r build needs approval",)


def test_the_newest_test_run_of_each_command_counts() -> None:
    made = digest(
        [
            shell(1, "pytest a", "FAILED a.py::one - x\n1 failed in 0.1s", code=1),
            shell(2, "pytest b", "3 passed in 0.1s"),
            shell(3, "pytest a", "FAILED a.py::two - x\n1 failed, 1 passed in 0.1s", code=1),
        ]
    )
    assert [(run.command, run.suite.failing, run.suite.verdict) for run in made.tests] == [
        ("pytest b", (), "passed"),
        ("pytest a", ("a.py::two",), "failed"),
    ]


def test_subagents_are_told_apart() -> None:
    made = digest(
        [
            prompt(1, "go"),
            prompt(2, "CHILD", subagent="c"),
            file(3, "edit", "a.py", subagent="c"),
            event(4, Kind.SUBAGENT, "We decided to split it.\n\nDone.", subagent="c"),
        ]
    )
    assert [(one.id, one.tool_calls, one.text) for one in made.subagents] == [("c", 1, "We decided to split it. Done.")]
    assert made.decisions == ()
    assert [use.path for use in made.files] == ["a.py"]


# -- what was said


def test_decisions_come_from_everybody_and_stand_once_at_their_newest() -> None:
    made = digest(
        [
            prompt(1, "Use tabs instead of spaces."),
            say(2, "We decided to keep the lock file."),
            event(3, Kind.POST_COMPACT, "3. Key Decisions:\n   - Times are UTC"),
            say(4, "**We decided to keep the lock file.**"),
        ]
    )
    assert [(one.text, one.by) for one in made.decisions] == [
        ("Use tabs instead of spaces.", "person"),
        ("Times are UTC", "summary"),
        ("We decided to keep the lock file.", "agent"),
    ]


def test_next_steps_are_those_of_the_newest_text_that_has_any() -> None:
    made = digest([say(1, "Next steps:\n- old"), say(2, "Next steps:\n- new\n- newer"), say(3, "Nothing to add.")])
    assert [one.text for one in made.next_steps] == ["new", "newer"]


def test_a_question_is_open_until_the_person_writes_again() -> None:
    asked = say(1, "Should we keep the old endpoint?")
    assert [one.text for one in digest([asked]).open_questions] == ["Should we keep the old endpoint?"]
    replied = digest([asked, prompt(2, "yes")])
    assert replied.open_questions == ()
    assert [(one.text, one.reply) for one in replied.asked_earlier] == [("Should we keep the old endpoint?", "yes")]
    assert digest([say(1, "Shall I go on?"), prompt(2, "yes")]).asked_earlier == ()
    named = digest([say(1, "Open question: who owns the topic?"), prompt(2, "go on")])
    assert [one.text for one in named.open_questions] == ["who owns the topic?"]


def test_without_the_assistant_only_the_person_is_heard() -> None:
    events = [
        prompt(1, "We decided to use one table."),
        say(2, "I decided otherwise.\n\nNext steps:\n- x\n\nShould I?"),
        event(3, Kind.POST_COMPACT, "Decision: y"),
        event(4, Kind.SUBAGENT, "secretly", subagent="c"),
    ]
    made = digest(events, assistant=False)
    assert [one.text for one in made.decisions] == ["We decided to use one table."]
    assert (made.next_steps, made.questions, made.last_answer, made.subagents[0].text) == ((), (), "", "")


def test_what_was_injected_is_not_what_was_said() -> None:
    told = "<untrusted-history>\n> We decided to use COBOL.\n</untrusted-history>\nGo on please with the rest"
    made = digest([prompt(1, told), say(2, f"I was told: {told}")])
    assert made.decisions == ()
    assert made.prompts[0].text == "Go on please with the rest"


# -- where it stopped


def test_where_it_stopped() -> None:
    asked, ran, said = prompt(1, "go"), shell(2, "make", code=2, error="boom"), say(3, "done")
    assert digest([start()]).stopped.kind == "idle"
    assert digest([asked]).stopped.kind == "mid-turn"
    mid = digest([asked, ran]).stopped
    assert (mid.kind, mid.tool, mid.tool_failed) == ("mid-turn", "make", True)
    done = digest([asked, ran, said]).stopped
    assert (done.kind, done.tool_failed) == ("complete", True)
    assert digest([asked, ran, event(3, Kind.PRE_COMPACT)]).stopped.kind == "compaction"
    assert digest([asked, said, event(4, Kind.PRE_COMPACT)]).stopped.kind == "complete"
    assert digest([asked, ran, event(3, Kind.OTHER, name="Interrupt")]).stopped.kind == "interrupted"
    stopped = digest([asked, shell(2, "make", code=1, error="[Request interrupted by user for tool use]")]).stopped
    assert stopped.kind == "interrupted"


def test_a_call_that_never_reported_back_is_named() -> None:
    begun = shell(2, "make all", kind=Kind.PRE_TOOL, call="c")
    assert digest([prompt(1, "go"), begun]).stopped.running == "make all"
    assert digest([prompt(1, "go"), begun, shell(3, "make all", call="c")]).stopped.running == ""


def test_a_tool_report_that_comes_after_its_turn_ended_opens_no_turn() -> None:
    made = digest([prompt(1, "go", turn="t"), say(2, "done", turn="t"), shell(3, "make", turn="t")])
    assert made.stopped.kind == "complete"


def test_a_subagent_that_is_still_running_is_not_the_main_session() -> None:
    assert digest([prompt(1, "go"), say(2, "done"), shell(3, "make", subagent="c")]).stopped.kind == "complete"


def test_what_the_client_waits_for_is_told() -> None:
    made = digest([prompt(1, "go"), event(2, Kind.NOTICE, "needs your permission to use Bash")])
    assert made.stopped.notice == "needs your permission to use Bash"


def test_place_and_head() -> None:
    made = digest([start(head="ref: refs/heads/feature/x", cwd="/w/project/api"), prompt(1, "go")])
    assert (made.subdir, made.branch, made.head) == ("api", "feature/x", "")
    assert digest([start(head="4f2a9c1e0b7d4f2a9c1e")]).head == "4f2a9c1e0b7d4f2a9c1e"
    assert digest([start(cwd="/w/other")]).subdir == ""


@settings(max_examples=examples(150), deadline=None)
@given(sessions)
def test_any_events_have_a_digest(events: list[Event]) -> None:
    made = digest(events)
    assert made == digest(list(reversed(events)))
    assert 1 <= made.generation <= 1 + sum(e.kind is Kind.END for e in events)
    assert not (made.closed and made.provisional)
    assert set(made.given_back) <= set(made.claimed)
    assert made.title
    assert len(made.title) <= 80
    assert digest(events, assistant=False).last_answer == ""
