from __future__ import annotations

import json
import math
import unicodedata
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaultd.core.query import LONGEST, STOP_WORDS, TAILS, fold, halves, places, stem, terms, tokens

DATA = Path(__file__).parent.parent / "data/code-queries.json"

CJK = "日本語検索設計書東京都会議録猫犬税のをがはノート한국어문서검색데이터"


def ranked(lines: list[str], query: str) -> list[int]:
    """Numbers of the lines that have a term of the query, by BM25, best first."""
    found: dict[str, dict[int, int]] = defaultdict(dict)
    lengths = [len(tokens(line)) for line in lines]
    for number, line in enumerate(lines):
        for term, count in Counter(tokens(line)).items():
            found[term][number] = count
    mean = sum(lengths) / len(lines)
    scores: dict[int, float] = defaultdict(float)
    for term in terms(query):
        for number, count in found[term].items():
            weight = math.log(len(lines) / (len(found[term]) + 1)) + 1
            scores[number] += weight * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * lengths[number] / mean))
    return sorted(scores, key=lambda number: (-scores[number], number))


def test_code_queries_put_the_right_line_first() -> None:
    data = json.loads(DATA.read_text("utf-8"))
    wrong = []
    for case in data["queries"]:
        first = ranked(data["lines"], case["query"])[:1]
        if first != ([case["line"]] if case["line"] >= 0 else []):
            wrong.append((case["query"], case["line"], first))
    assert len(data["queries"]) == 46
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("XMLHttpRequest", "xmlhttprequest xml http request"),
        ("getUserById", "getuserbyid get user by id"),
        ("MAX_RETRY_COUNT", "maxretrycount max retry count"),
        ("max-retry-count", "maxretrycount max retry count"),
        ("__init__", "init"),
        ("src/core/file.py:12", "src/core/file.py core/file.py src core file.py file py 12"),
        ("./src/core/file.py", "src/core/file.py core/file.py src core file.py file py"),
        (r"C:\src\file.py", "c/src/file.py src/file.py c src file.py file py"),
        ("$HOME/.config", "home/.config home .config config"),
        ("(config.yaml).", "config.yaml config yaml"),
        ("@group/pkg", "group/pkg group pkg"),
        ("std::vector<int>", "std::vector std vector int"),
        ("foo->bar()", "foo bar"),
        ("E0308", "e0308 0308"),
        ("PR-567", "pr567 pr 567"),
        ("#1234", "#1234 1234"),
        ("## Title", "titl"),
        ("v2.7.4", "v2.7.4 2.7.4 2.7"),
        ("2.7.4-rc1", "2.7.4rc1 2.7.4 2.7 rc1 rc 1"),
        ("127.0.0.1:8080", "127.0.0.1:8080 127.0.0.1 127.0 8080"),
        ("10:30", "10:30 10 30"),
        ("C++, C# and .NET", "c++ c# and .net net"),
        ("C++17", "c++17 c++ 17"),
        ("UTF-8", "utf8 utf 8"),
        ("utf8", "utf8 utf 8"),
        ("don't", "dont"),
        ("the user's", "the user"),
        ("--no-verify", "noverify no verify"),
        ("URLs", "url"),
        ("a/", "a"),
        ("... --- !? ->", ""),
        ("", ""),
    ],
)
def test_terms_of_names(text: str, expected: str) -> None:
    assert tokens(text) == expected.split()


def test_ways_to_write_one_name_share_a_term() -> None:
    ways = ["TypeError", "typeError", "type_error", "type-error", "TYPE_ERROR", "typeerror"]
    assert {tokens(way)[0] for way in ways} == {"typeerror"}
    assert "typeerror" in terms("type error")
    assert "xmlhttprequest" in terms("xml http request")


def test_a_dot_or_slash_does_not_join() -> None:
    assert not set(terms("filepy")) & set(tokens("file.py"))
    assert not set(terms("srcfile")) & set(tokens("src/file"))


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("café", "cafe"),
        ("cafe\u0301", "cafe"),
        ("Zürich", "zurich"),
        ("Straße", "strasse"),
        ("STRASSE", "strasse"),
        ("Łódź", "lodz"),
        ("smørrebrød", "smorrebrod"),
        ("İstanbul", "istanbul"),
        ("ﬁle", "file"),
        ("ＰＹＴＨＯＮ", "python"),
        ("Ёлка", "елка"),
        ("Ὀδυσσεύς", "οδυσσευσ"),
        ("so\u00adft", "soft"),
    ],
)
def test_accents_and_compatibility_forms_fold(text: str, plain: str) -> None:
    assert tokens(text)[0] == stem(plain)


def test_voiced_kana_are_not_accents() -> None:
    assert fold("が") == "が"
    assert fold("か\u3099") == "が"
    assert fold("ｶﾞｷﾞ") == "ガギ"


def test_words_of_indic_scripts_stay_whole() -> None:
    assert tokens("हिन्दी पाठ") == ["हिन्दी", "पाठ"]


@pytest.mark.parametrize(
    "words",
    [
        "run runs running",
        "runner runners",
        "city cities",
        "cache caches cached caching",
        "use uses",
        "class classes",
        "box boxes",
        "push pushes pushed pushing",
        "stop stopped stopping",
        "call calls called calling",
        "retry retries retried retrying",
        "migrate migrates migrated migrating migration migrations",
        "validate validation",
        "file files",
    ],
)
def test_inflected_words_share_a_stem(words: str) -> None:
    assert len({stem(word) for word in words.split()}) == 1


@pytest.mark.parametrize(
    "words", ["string strip", "status state", "bus busy", "redis red", "this thing", "needed need ness"]
)
def test_other_words_do_not(words: str) -> None:
    stems = [stem(word) for word in words.split()]
    assert len(set(stems)) > 1
    assert all(len(each) >= 2 for each in stems)


def test_stop_words_are_dropped_unless_there_is_nothing_else() -> None:
    assert terms("how does the daemon start")[:2] == ["daemon", "start"]
    assert terms("what is it") == ["what", "is", "it"]
    assert "the" in tokens("the daemon")
    assert terms("to be or not to be") == ["to", "be", "or", "not"]
    assert "may" not in STOP_WORDS  # the month


def test_two_words_run_together_are_read_as_two() -> None:
    assert ("type", "error") in list(halves("typeerror"))
    assert list(halves("filepy")) == [("fil", "epy")]
    assert list(halves("e0308")) == []


def test_spaces_between_cjk_words_do_not_matter() -> None:
    assert terms("数据库 连接") == terms("数据库连接")
    assert terms("設計 書") == terms("設計書")
    assert set(terms("A B 数据")) == {*terms("A B"), "数据"}


def test_one_cjk_character_is_found() -> None:
    assert set(terms("猫")) <= set(tokens("黒猫がいる"))


@given(st.data())
def test_any_two_neighbouring_cjk_characters_are_found(data: st.DataObject) -> None:
    text = data.draw(st.text(alphabet=CJK + "。、 \nab1", min_size=2, max_size=40))
    start = data.draw(st.integers(0, len(text) - 2))
    part = text[start : start + data.draw(st.integers(2, 12))]
    wanted = terms(part)
    if sum(char in CJK for char in part) >= 2 or any(char.isalnum() for char in part):
        assert wanted
    if all(char in CJK for char in part):
        assert set(wanted) <= set(tokens(text))


TEXTS = st.one_of(
    st.text(max_size=60),
    st.text(alphabet=st.characters(), max_size=40),
    st.text(alphabet=" .,:;/\\#@'’\"-_+*()[]{}!?&|<>=~^%$`aB1é猫\u0301\u200b\ud800\U0001f525\n\t\0", max_size=60),
    st.sampled_from(
        ["AND", "NOT", "OR (", "title:x", "a*", '"unclosed', "🔥🔥", "[[x]]", "-", "#", "++", ".", "a" * 5000]
    ),
)


@given(TEXTS)
def test_no_text_is_an_error_and_terms_are_clean(text: str) -> None:
    found = tokens(text)
    asked = terms(text)
    for term in [*found, *asked]:
        assert term
        assert len(term) <= LONGEST
        assert term.encode("utf-8")
        assert not any(char.isspace() for char in term)
    assert len(asked) == len(set(asked))


@given(TEXTS)
def test_a_page_that_is_the_query_answers_it(text: str) -> None:
    asked = set(terms(text))
    assert bool(asked) == bool(tokens(text))
    assert not asked or asked & set(tokens(text))


@given(TEXTS)
def test_places_lie_inside_the_text(text: str) -> None:
    end_before = 0
    for start, end, _ in places(text):
        assert end_before <= start < end <= len(text)
        end_before = end


@given(st.text(alphabet="abcXYZ_09", min_size=1, max_size=30))
def test_case_of_a_plain_name_does_not_lose_it(name: str) -> None:
    whole = tokens(name)[:1]
    assert not whole or whole[0] in tokens(name.lower()) or whole[0] in tokens(name.upper())


@given(st.text())
def test_folding_twice_is_folding_once(text: str) -> None:
    once = fold(text)
    assert fold(once) == once
    assert not any(unicodedata.category(char) == "Cs" for char in once)


def test_long_texts_take_time_in_proportion() -> None:
    for text in (
        "a/" * 50_000,
        ":1" * 50_000,
        "aB" * 50_000,
        "." * 100_000,
        "é" * 100_000,
        "猫" * 100_000,
        "a-" * 50_000,
    ):
        tokens(text)
        terms(text)


def test_a_deep_path_gives_a_bounded_number_of_tails() -> None:
    path = "/".join(f"folder{number}" for number in range(40))
    assert sum("/" in term for term in tokens(path)) == TAILS - 1
