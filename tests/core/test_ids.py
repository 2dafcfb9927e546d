"""Names that are derived: what may be a key, sids, handoff ids, folder names of projects."""

from __future__ import annotations

import hashlib
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaultd.core.ids import AUTO_HANDOFF, KEY, handoff_id, key_epoch, project_id, session_id, slug
from vaultd.store.pages import flaw_of

KEYS = [
    "1795982852-0f3e1b1c-54f2-4c5a-9a55-0d7f0c6f1a2b",
    "1795982852-4711-4712",
    "1795982852-4711-4712-3",
    "1795982852-close-0123456789",
    "1-x",
    "999999999999-" + "a" * 80,
    "h" + "0123456789abcdef" * 2,
]
NO_KEYS = [
    "",
    "-x",
    "1795982852-",
    "1795982852",
    "1795982852-a/b",
    "../1795982852-a",
    "1795982852-a b",
    "1795982852-a\n",
    "1795982852-é",
    "١٢٣-a",  # digits, but not those that a hook writes
    "²-a",
    ".vaultd-tmp-0123456789abcdef",
    "1234567890123-a",
    "1-" + "a" * 81,
    "h" + "0123456789ABCDEF" * 2,
    "h" + "0" * 31,
    "h" + "0" * 33,
    "1795982852-a.reason.json",  # would be taken for the reason of another
]


@pytest.mark.parametrize("key", KEYS)
def test_keys(key: str) -> None:
    assert KEY.match(key)
    assert key_epoch(key) == (int(key.split("-")[0]) if key[0] != "h" else 0)


@pytest.mark.parametrize("name", NO_KEYS)
def test_names_that_are_no_key(name: str) -> None:
    assert not KEY.match(name)
    assert key_epoch(name) == 0


@given(st.text())
def test_the_epoch_of_any_name_is_a_number(name: str) -> None:
    assert key_epoch(name) >= 0
    assert key_epoch(f"{name}-x") >= 0


@given(st.text(), st.text())
def test_a_sid_is_ten_hex_digits_of_agent_and_native_id(agent: str, native: str) -> None:
    sid = session_id(agent, native)
    assert re.fullmatch(r"[0-9a-f]{10}", sid)
    assert sid == hashlib.sha256(agent.encode() + b"\0" + native.encode()).hexdigest()[:10]


def test_a_sid_of_a_name_that_is_not_utf8() -> None:
    native = b"caf\xe9".decode("utf-8", "surrogateescape")
    assert session_id("a", native) == hashlib.sha256(b"a\0caf\xe9").hexdigest()[:10]


def test_two_agents_with_one_native_id_are_two_sessions() -> None:
    assert session_id("a", "1") != session_id("b", "1")
    assert session_id("a", "b1") != session_id("ab", "1")


@given(st.text(), st.integers(1, 999_999))
def test_handoff_ids_are_recognised_and_give_back_sid_and_generation(native: str, generation: int) -> None:
    sid = session_id("agent", native)
    found = AUTO_HANDOFF.match(handoff_id(sid, generation))
    assert found is not None
    assert (found["sid"], int(found["generation"])) == (sid, generation)


@pytest.mark.parametrize(
    "other", ["m-a1b2c3d4e5", "0123456789-g", "0123456789-g1x", "0123456789-g1\n", "012345678-g1", "0123456789-g1-g2"]
)
def test_other_names_are_no_automatic_handoffs(other: str) -> None:
    assert AUTO_HANDOFF.match(other) is None


def test_a_project_is_known_by_its_remote() -> None:
    assert project_id("github.com/x/y") == "p-" + hashlib.sha256(b"github.com/x/y").hexdigest()[:12]


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("vaultd", "vaultd"),
        ("My Project", "my-project"),
        ("a  b", "a-b"),
        ("a -- b", "a-b"),
        ("MixedCase_2.0", "mixedcase_2.0"),
        (".hidden", "hidden"),
        ("_underscore", "underscore"),
        ("--dashes--", "dashes"),
        ("trailing...", "trailing"),
        ("a/b\\c", "a-b-c"),
        ("tab\tline\nend", "tab-line-end"),
        ("cafe\u0301", "café"),
        ("Straße", "straße"),
        ("日本語プロジェクト", "日本語プロジェクト"),
        ("हिन्दी", "हिन्दी"),
        ("พื้นที่", "พื้นที่"),
        ("H\u0331", "ẖ"),  # has one letter only in lower case
        ("\u0301abc", "abc"),
        ("a\ufe0fb", "a-b"),
        ("❤️", "project"),
        ("", "project"),
        ("...", "project"),
        ("//", "project"),
        ("\udce9t\ud800", "t"),
        ("x" * 100, "x" * 64),
        ("é" * 100, "é" * 32),
        ("界" * 100, "界" * 21),
        ("x" * 63 + "-y", "x" * 63),
    ],
)
def test_folder_names(name: str, folder: str) -> None:
    assert slug(name) == folder


@given(
    st.text(st.characters(codec=None), max_size=120)
    | st.text(st.sampled_from("aA.-_ é\u0301Iİßſ界क\u093f"), max_size=80)
)
def test_a_folder_name_is_always_valid_short_and_settled(name: str) -> None:
    folder = slug(name)
    assert 0 < len(folder.encode("utf-8")) <= 64
    assert flaw_of(folder) is None
    assert "/" not in folder and folder[0] not in "._-" and folder[-1] not in ".-"
    assert folder == folder.lower() == unicodedata.normalize("NFC", folder)
    assert slug(folder) == folder


@given(st.text(max_size=60))
def test_both_ways_of_writing_an_accent_give_one_folder(name: str) -> None:
    assert slug(unicodedata.normalize("NFD", name)) == slug(unicodedata.normalize("NFC", name))


def test_a_very_long_name_takes_no_time() -> None:
    assert slug("界" * 1_000_000) == "界" * 21
