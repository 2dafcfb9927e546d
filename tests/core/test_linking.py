"""Which page a link leads to, form by form; the order of the files never matters."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaultd.core.linking import Resolver

PATHS = [
    "Home.md",
    "log.md",
    "pic.png",
    "People/Ada Lovelace.md",
    "Café/Crème brûlée.md",
    "projects/api/project.md",
    "projects/api/log.md",
    "projects/api/gotchas/build.md",
    "projects/api/notes/today.md",
    "projects/api/notes/deep/build.md",
    "projects/api/img/pic2.png",
    "projects/web/project.md",
    "projects/web/gotchas/build.md",
    "projects/web/notes/build.md",
    "projects/web/api/project.md",
    "projects/web/x.md.md",
    "work/shop/project.md",
    "work/shop/notes/only.md",
    "z/dup.md",
    "y/dup.md",
]
ALIASES = {"People/Ada Lovelace.md": ["Ada", "The Countess "], "projects/web/project.md": ["Ada"]}
API = "projects/api/notes/today.md"


def resolve(target: str, source: str = API) -> str | None:
    return Resolver(PATHS, ALIASES).resolve(target, source)


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("", API),
        ("Home", "Home.md"),
        ("home.MD", "Home.md"),
        ("log", "log.md"),  # exact from the root, wherever it stands
        ("/log", "log.md"),
        ("/today", None),
        ("./log", None),
        ("../log", "projects/api/log.md"),
        ("../log.md", "projects/api/log.md"),
        ("../../../log", "log.md"),
        ("../../../../log", None),
        ("./deep/../today", API),
        ("projects/web/notes/build", "projects/web/notes/build.md"),
        ("PROJECTS/Web/notes/build.md", "projects/web/notes/build.md"),
        ("build", "projects/api/notes/deep/build.md"),  # below the folder of the page
        ("gotchas/build", "projects/api/gotchas/build.md"),  # in its own project
        ("uild", None),
        ("otchas/build", None),
        ("project", "projects/api/project.md"),
        ("dup", "y/dup.md"),  # as long as the other, the first by name
        ("pic.png", "pic.png"),
        ("img/pic2.PNG", "projects/api/img/pic2.png"),
        ("pic", None),
        ("missing.png", None),
        ("x.md", "projects/web/x.md.md"),
        ("ada lovelace", "People/Ada Lovelace.md"),
        ("cafe\u0301/creme bru\u0302le\u0301e", None),
        ("Cafe\u0301/Cre\u0300me bru\u0302le\u0301e", "Café/Crème brûlée.md"),
        ("ada", "projects/web/project.md"),  # an alias, the nearest
        ("the countess", "People/Ada Lovelace.md"),
        ("web:notes/build", "projects/web/notes/build.md"),
        ("web:build.md", "projects/web/notes/build.md"),
        ("WEB:gotchas/build", "projects/web/gotchas/build.md"),
        ("web:today", None),
        ("web:Ada", "projects/web/project.md"),
        ("api:project", "projects/api/project.md"),  # a workspace's folder before one inside a project
        ("shop:only", "work/shop/notes/only.md"),
        ("work/shop:project", "work/shop/project.md"),
        ("work/web:project", None),
        ("none:project", None),
        ("web:", None),
        (":build", None),
        ("https://x.org", None),
        ("C:\\log", None),
    ],
)
def test_resolve(target: str, path: str | None) -> None:
    assert resolve(target) == path


def test_the_folder_of_the_page_comes_before_all_others() -> None:
    assert resolve("build", "projects/web/notes/a.md") == "projects/web/notes/build.md"
    assert resolve("build", "projects/web/gotchas/a.md") == "projects/web/gotchas/build.md"
    assert resolve("build", "projects/web/a.md") == "projects/web/notes/build.md"
    assert resolve("build", "Home.md") == "projects/web/notes/build.md"  # the shortest of all
    assert resolve("", "gone.md") is None


def test_of_names_that_differ_in_case_the_written_one_is_meant() -> None:
    resolver = Resolver(["a/Note.md", "a/note.md"])
    assert resolver.resolve("a/note.md", "x.md") == "a/note.md"
    assert resolver.resolve("a/Note.md", "x.md") == "a/Note.md"
    assert resolver.resolve("note", "x.md") == "a/Note.md"


SEGMENTS = st.sampled_from(["a", "b", "note", "Note", "é", "e\u0301", "api", "x.png", "..", ".", ""])
FILES = st.lists(SEGMENTS.filter(lambda name: name.strip(".")), min_size=1, max_size=4).map("/".join)


@given(
    st.lists(st.tuples(FILES, st.sampled_from([".md", ""])).map("".join), unique=True, max_size=12),
    st.one_of(st.lists(SEGMENTS, max_size=4).map("/".join), st.text(max_size=12)),
    FILES,
    st.randoms(use_true_random=False),
)
def test_the_answer_is_a_file_whatever_their_order(paths: list[str], target: str, source: str, random: object) -> None:
    aliases: Mapping[str, list[str]] = {path: ["b", "other"] for path in paths[:3]}
    answer = Resolver(paths, aliases).resolve(target, source)
    assert answer is None or answer in paths
    assert Resolver(reversed(paths), aliases).resolve(target, source) == answer
    swapped = unicodedata.normalize("NFD", target)
    again = Resolver(paths, aliases).resolve(swapped, source)
    assert (again is None) == (answer is None)


@given(st.lists(FILES.map(lambda path: f"{path}.md"), unique=True, min_size=1, max_size=12))
def test_every_page_is_found_by_its_path(paths: list[str]) -> None:
    resolver = Resolver(paths)
    assert all(resolver.resolve(path, "elsewhere.md") == path for path in paths)
