"""Which paths the patterns of `capture.ignore_paths` keep out."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaultd.core.ignore import matches

BASE = "/w/p"


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        (".env", "/w/p/.env"),
        (".env", ".env"),
        (".env", "/w/p/deep/down/.env"),
        (".env", "/elsewhere/.env"),
        ("secrets", "/w/p/a/secrets/b/c.txt"),
        ("secrets/", "/w/p/secrets/c.txt"),
        ("*.pem", "/w/p/keys/server.pem"),
        ("id_?", "/w/p/id_a"),
        ("config/*.json", "/w/p/config/a.json"),
        ("config/*.json", "config/a.json"),
        ("config/**/x", "/w/p/config/x"),
        ("config/**/x", "/w/p/config/a/b/x"),
        ("config/**", "/w/p/config/a/b"),
        ("**/private/*", "/w/p/a/private/b"),
        ("./config/a", "/w/p/config/a"),
        ("config", "/w/p/config"),
        ("/home/me/.ssh", "/home/me/.ssh/id_ed25519"),
        ("/home/me/.ssh/**", "/home/me/.ssh/id_ed25519"),
        ("/**/node_modules", "/w/p/a/node_modules/x"),
        ("/", "/anything/at/all"),
        ("secrets/*", "/w/p/src/../secrets/key"),  # the same file by another way
        ("secrets/*", "src/.././secrets//key"),
        ("/w/secrets", "../secrets/key"),
        ("a[1].txt", "/w/p/a[1].txt"),  # brackets stand for themselves
        ("(x|y)+", "/w/p/(x|y)+"),
        ("line\nend", "/w/p/line\nend"),
        ("a*b*c", "/w/p/aXbbYc"),
        ("a**c", "/w/p/abc"),
        ("**", "/w/p/x"),
    ],
)
def test_kept_out(pattern: str, path: str) -> None:
    assert matches([pattern], path, BASE)
    assert matches(["nothing-else", pattern], path, BASE)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        (".env", "/w/p/.env.example"),
        (".env", "/w/p/x.env"),
        (".env", "/w/p/Xenv"),
        ("*.pem", "/w/p/a.pem/../b.txt"),
        ("config/*.json", "/w/p/config/deep/a.json"),
        ("config/*.json", "/w/p/other/config/a.json"),
        ("config/a", "/elsewhere/config/a"),
        ("config/a", "/w/project/config/a"),  # begins as the base does
        ("/home/me/.ssh", "/home/me/.sshx"),
        ("id_?", "/w/p/id_"),
        ("id_?", "/w/p/id_/"),
        ("a[1].txt", "/w/p/a1.txt"),
        ("", "/w/p/x"),
        ("", "/elsewhere/x"),
        (" ", "/w/p/x"),
        (".", "/w/p/x"),
        ("SECRETS", "/w/p/secrets"),
        ("a*a", "/w/p/a"),
        ("ab*bc", "/w/p/abc"),
        ("a**c", "/w/p/a/b/c"),
    ],
)
def test_let_through(pattern: str, path: str) -> None:
    assert not matches([pattern], path, BASE)


def test_no_patterns_keep_nothing_out() -> None:
    assert not matches([], "/w/p/x", BASE)


@pytest.mark.parametrize("base", ["", "/", "/w/p", "/w/p/", "relative"])
def test_a_name_is_found_whatever_the_base_is(base: str) -> None:
    assert matches([".env"], ".env", base)
    assert matches([".env"], "a/.env", base)
    assert matches(["a/*"], "a/x", base)
    assert matches(["/etc/*"], "/etc/passwd", base)


names = st.text(st.sampled_from("abc.*?[]-é"), min_size=1, max_size=6).filter(lambda name: name.strip("."))


@given(names, st.text(st.sampled_from("abc.-é"), min_size=1, max_size=6).filter(lambda name: name.strip(".")))
def test_one_name_is_matched_as_a_shell_does(pattern: str, name: str) -> None:
    literal = pattern.replace("[", "[[]")
    assert matches([pattern], f"/w/p/{name}", BASE) == fnmatch.fnmatchcase(name, literal)


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_nothing_raises(pattern: str, path: str, base: str) -> None:
    matches([pattern], path, base)


def test_many_stars_take_no_time() -> None:
    assert not matches(["**/" * 30 + "x*" * 30 + "/y"], "/w/p/" + "x/" * 500, BASE)
    assert not matches(["*x" * 60 + "y"], "/w/p/" + "x" * 1000, BASE)
