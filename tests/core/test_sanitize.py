"""The sanitiser: every class of secret is gone, ordinary text is as it was, and nothing it is given takes long."""

from __future__ import annotations

import argparse
import ast
import base64
import dataclasses
import difflib
import json.decoder
import random
import re
import tokenize
import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.secret_samples import (
    ASSIGNED,
    HEX32,
    MARK,
    ORDINARY,
    PARTS,
    R24,
    R40,
    SECRETS,
    UUID,
    pem,
    pieces,
    variants,
)
from tests.examples import examples
from vaultd.core import sanitize
from vaultd.core.sanitize import DEFAULT, Clean, Rules, clean, line, redact
from vaultd.core.secrets import folded
from vaultd.errors import UsageError

ROOT = Path(__file__).parent.parent.parent
CASES = [(name, form) for name in SECRETS for form in variants("x")]

texts = st.one_of(
    st.lists(st.sampled_from(PARTS), max_size=12).map("".join),
    st.text(max_size=80),
    st.lists(st.one_of(st.sampled_from(PARTS), st.text(max_size=6)), max_size=10).map("".join),
)
characters = st.text(st.characters(codec=None, categories=None), max_size=60)


@pytest.mark.parametrize(("name", "form"), CASES, ids=lambda v: v)
def test_a_planted_secret_is_gone_and_the_text_round_it_stays(name: str, form: str) -> None:
    secret = SECRETS[name]
    text, empty = variants(secret)[form], variants("")[form]
    clear = redact(text)
    assert MARK in clear
    assert not [piece for piece in pieces(secret) if piece in clear]
    for word in re.findall(r"\b(?:pasted|chat|think|before|next|make|retries|more|sorry)\b", empty):
        assert word in clear
    assert redact(clear) == clear


@pytest.mark.parametrize(("text", "expected"), ASSIGNED, ids=[expected[:40] for _, expected in ASSIGNED])
def test_a_value_goes_and_its_name_stays(text: str, expected: str) -> None:
    assert redact(text) == expected
    assert redact(expected) == expected


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_lines_are_untouched(text: str) -> None:
    assert redact(text) == text


def changed(text: str) -> list[str]:
    """The lines that redaction changes."""
    diff = difflib.unified_diff(text.splitlines(), redact(text).splitlines(), lineterm="", n=0)
    return [entry for entry in diff if entry[0] in "+-" and not entry.startswith(("+++", "---"))]


def test_ordinary_bodies_are_untouched() -> None:
    assert changed("\n".join(ORDINARY)) == []
    for module in (argparse, ast, base64, dataclasses, difflib, json.decoder, re, tokenize, uuid):
        assert module.__file__ is not None
        assert changed(Path(module.__file__).read_text("utf-8")) == []


def test_the_sources_of_vaultd_are_untouched() -> None:
    # These speak of secrets by example; the rest of the program gives no cause.
    speaking = {"sanitize.py", "secrets.py", "secret_commands.py", "secret_followers.py", "remotes.py"}
    for path in [*ROOT.glob("vaultd/**/*.py"), *ROOT.glob("hooks/*"), *ROOT.glob("vault-template/**/*.md")]:
        if path.is_file() and path.name not in speaking:
            assert changed(path.read_text("utf-8")) == [], path


def test_hashes_ids_and_pictures_are_untouched() -> None:
    some = random.Random(7)
    rows = []
    for _ in range(2_000):
        data = some.randbytes(48)
        rows += [
            data.hex(),
            data[:20].hex(),
            str(uuid.UUID(bytes=data[:16])),
            f"{data[:4].hex()}..{data[4:8].hex()} main",
        ]
        rows.append("sha512-" + base64.b64encode(data).decode())
    assert changed("\n".join(rows)) == []
    for size in (200, 3_000, 40_000):
        picture = base64.b64encode(some.randbytes(size)).decode()
        text = f"Look: ![a](data:image/png;base64,{picture}) and {picture}"
        assert redact(text) == text


@given(st.from_regex(sanitize._HARMLESS, fullmatch=True))
@settings(deadline=None, max_examples=examples(300))
def test_what_is_passed_unseen_would_pass_when_looked_at(text: str) -> None:
    assert sanitize._pass(sanitize._presentable(text), DEFAULT) == text == redact(text)


@given(characters)
@settings(deadline=None)
def test_what_comes_out_is_valid_and_has_no_control_characters(text: str) -> None:
    clear = redact(text)
    assert type(clear) is Clean
    clear.encode()
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", clear)


def test_control_characters_go_before_secrets_are_looked_for() -> None:
    assert redact("a\x00b\tc\r\nd\u202ee\u2066f") == "ab\tc\r\ndef"
    assert redact("\x1b[31mred\x1b[0m \x1b]0;title\x07plain \x1b(Bx") == "red plain x"
    assert redact("half \ud83d and whole \ud83d\ude00") == "half \ufffd and whole 😀"
    for split in ("\x00", "\x1b[0m", "\u202e", "\x7f"):
        assert redact("gh" + f"p_{R24[:8]}{split}{R24[8:]}") == MARK
    assert redact("na\xefve caf\xe9 \u2014 \u201cquoted\u201d") == "na\xefve caf\xe9 \u2014 \u201cquoted\u201d"


@given(texts)
@settings(deadline=None, max_examples=examples(400))
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@given(texts, st.integers(0, 400), st.floats(0, 1))
@settings(deadline=None, max_examples=examples(300))
def test_a_bounded_text_fits_and_stays_as_it_is(text: str, limit: int, tail: float) -> None:
    cut = clean(text, limit, tail=tail)
    assert type(cut) is Clean
    assert len(cut.encode()) <= limit
    assert clean(cut, limit, tail=tail) == cut
    if len(redact(text).encode()) <= limit:
        assert cut == redact(text)


@given(texts, st.integers(0, 200))
@settings(deadline=None, max_examples=examples(300))
def test_a_line_is_one_and_fits(text: str, limit: int) -> None:
    one = line(text, limit)
    assert type(one) is Clean
    assert len(one.encode()) <= limit
    assert one.splitlines() in ([], [one])
    assert line(one, limit) == one


def test_head_and_tail_are_kept_with_a_word_between() -> None:
    text = "first line\n" + "x" * 5_000 + "é" * 5_000 + "\nlast line"
    cut = clean(text, 1_000)
    assert cut.startswith("first line\nx") and cut.endswith("é\nlast line")
    note = re.search(r"\n\[\.\.\. (\d+) bytes cut \.\.\.\]\n", cut)
    assert note is not None and len(note[0]) <= 48
    assert len(cut.replace(note[0], "").encode()) + int(note[1]) == len(text.encode())
    assert len(cut.encode()) + 48 >= 990 and len(cut.encode()) <= 1_000
    assert clean(text, 63) == "first line\n" + "x" * 52
    long_tail = clean(text, 1_000, tail=0.7)
    assert long_tail.rindex("]") < 350 and cut.rindex("]") > 450
    assert clean(text) == text


@pytest.mark.parametrize("name", ["openai", "github-p", "aws", "jwt", "telegram", "pem-rsa", "gcloud-path", "google"])
def test_a_secret_is_redacted_before_the_text_is_cut(name: str) -> None:
    secret = SECRETS[name]
    for limit in (63, 300):
        for before in range(limit - len(secret) - 60, limit + 8):
            text = "x" * max(0, before - 1) + " " + secret + " " + "y" * 400
            for cut in (clean(text, limit), line(text, limit)):
                assert not any(secret[at : at + 8] in cut for at in range(0, len(secret) - 8))
                assert "[RED" not in cut.replace(MARK, "")


def test_a_mark_is_never_torn() -> None:
    for after in range(160):
        text = "x" * 300 + " " + SECRETS["aws"] + " " + "y" * after
        for limit in (20, 64, 100, 200, 320):
            for cut in (clean(text, limit), clean(text, limit, tail=0.9), line(text, limit)):
                assert not re.search(
                    r"[A-Z\[\]]", re.sub(r"\[\.\.\. \d+ bytes cut \.\.\.\]", "", cut.replace(MARK, ""))
                )


def test_private_parts_go_whole() -> None:
    assert redact("a <private>b</private> c") == "a  c"
    assert redact("a <PRIVATE>b\nb</Private>c") == "a c"
    assert redact("a <private reason='x'>b</private>c") == "a c"
    assert redact("a<private>b") == "a"
    assert redact("a<private>b<private>c</private>d</private>e") == "ae"
    assert redact("a<private>b<private>c</private>d") == "a"
    assert redact("<pri<private>x</private>vate>secret</private>z") == "z"
    assert redact("a</private>b <private-key> <privateer>") == "a</private>b <private-key> <privateer>"
    assert redact("`<private>` starts it, `</private>` ends it; `<private>x</private>` is gone") == (
        "`<private>` starts it, `</private>` ends it; `` is gone"
    )
    assert redact("gh<private>x</private>p_" + R40) == MARK
    assert clean("x" * 90 + "<private>" + "y" * 900 + "</private>z", 100) == "x" * 90 + "z"


def test_private_keys_that_were_cut_off_go_to_the_end_or_from_the_start() -> None:
    kind = "RSA PRIVATE " + "KEY"
    for newline in ("\n", "\r\n", "\\n", "\\\\n"):
        cut = pem(kind, end=False, newline=newline)
        assert redact(f"before {cut}") == f"before {MARK}"
        assert redact(f"before {cut}{newline}and after") == f"before {MARK}"
        whole = pem(kind, newline=newline)
        assert redact(f"before {whole} after") == f"before {MARK} after"
        rest = whole.split(newline, 2)[2]
        clear = redact(f"cat x{newline}{rest}{newline}after")
        assert clear == f"cat x{newline}{MARK}{newline}after"
    assert redact(pem(kind, end=False).replace("\n", " ")) == MARK
    assert redact(f'["{pem(kind, newline=chr(34) + "," + chr(34))}"]') == f'["{MARK}"]'
    assert redact("-" * 5 + f"BEGIN {kind}" + "-" * 5) == MARK
    certificate = pem("CERTIFICATE")
    assert redact(certificate) == certificate


def test_rules_of_a_person() -> None:
    rules = Rules.compile([r"ACME-\d+", r"(?i)project\s+zebra"], ["EXAMPLE", "deadbeef"])
    assert redact("ACME-12 and Project Zebra, ACME-x", rules) == f"{MARK} and {MARK}, ACME-x"
    assert clean("ACME-12", 100, rules) == line("ACME-12", 100, rules) == MARK
    example = "AKIA" + "ABCDEFGHEXAMPLE1"
    assert redact(f"{example} {SECRETS['aws']}", rules) == f"{example} {MARK}"
    assert redact(example) == MARK
    assert redact("FOO_TOKEN=deadbeef BAR_TOKEN=beef", rules) == f"FOO_TOKEN=deadbeef BAR_TOKEN={MARK}"
    assert redact("DEADBEEF_TOKEN=x1", rules) == f"DEADBEEF_TOKEN={MARK}"
    assert redact("a plain line", Rules.compile([], [])) == "a plain line"
    assert redact("x*y", Rules.compile(["x*"])) == f"{MARK}*y"


@pytest.mark.parametrize("pattern", ["a(", "[", "*x", "(?P<a>x)(?P<a>y)", "x{99999999999}"])
def test_a_pattern_that_is_none_is_named(pattern: str) -> None:
    with pytest.raises(UsageError, match=re.escape(repr(pattern))):
        Rules.compile(["fine", pattern])


@pytest.mark.parametrize("entry", ["", " ", "\n"])
def test_a_blank_allowed_text_would_allow_everything(entry: str) -> None:
    with pytest.raises(UsageError, match="blank"):
        Rules.compile([], ["fine", entry])


@pytest.mark.parametrize(
    "pattern", ["[A-Z]{8}", r"\[[A-Z]+", r"[A-Z]+\]", "RED", r"x\[", r"\]x", ".", r"\S+", "(?s).+"]
)
@given(texts)
@settings(deadline=None, max_examples=40)
def test_patterns_that_match_the_mark_itself_come_to_an_end(pattern: str, text: str) -> None:
    rules = Rules.compile([pattern])
    once = redact(text, rules)
    assert redact(once, rules) == once
    assert redact(f"{MARK}", rules) == MARK


def test_lower_case_keeps_every_position() -> None:
    every = "".join(map(chr, range(0x110000)))
    assert len(folded(every)) == len(every)
    assert all(folded(c).isascii() or c == folded(c) or len(folded(c)) == 1 for c in every[:0x3000])
    assert redact("İİİ password: " + "hunter2") == f"İİİ password: {MARK}"


def test_a_long_secret_goes_whole() -> None:
    for size in (300, 5_000, 200_000):
        long = (R40 + HEX32) * (size // 72 + 1)
        for text in (f"FOO_TOKEN={long}", f'password = "{long}"', f"sk-{long}", f"Bearer {long}", f"api_key: {long}"):
            assert HEX32 not in redact(f"{text} end") and redact(f"{text}\nend").endswith("end")


def test_the_id_of_a_session_is_no_secret() -> None:
    for name in ("session_id", "sessionId", "SESSION_ID", "X-Session-Id", "id"):
        assert redact(f'{{"{name}": "{UUID}"}}') == f'{{"{name}": "{UUID}"}}'
