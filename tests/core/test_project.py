"""Deciding which project a place is: normal forms, paths and markers as text, and the choice itself."""

from __future__ import annotations

import os
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vaultd.core import frontmatter
from vaultd.core.checkout import (
    Marker,
    below,
    main_checkout,
    marker_folders,
    parse_marker,
    path_text,
    posix_path,
    text_path,
    title_of,
)
from vaultd.core.ids import project_id, slug
from vaultd.core.project import Identity, Known, Seen, choose, free_folder, identity, known_project
from vaultd.core.remotes import normalise_remote
from vaultd.core.sanitize import line

APP = "github.com/Owner/App"
A, B = "a" * 40, "b" * 40


# --- remotes


@pytest.mark.parametrize(
    "url",
    [
        "git@github.com:Owner/App.git",
        "github.com:Owner/App",
        "git@GitHub.com:/Owner/App.git/",
        "ssh://git@github.com/Owner/App.git",
        "ssh://git@github.com:22/Owner/App",
        "ssh://git@ssh.github.com:443/Owner/App.git",
        "git+ssh://git@github.com/Owner/App.git",
        "git://github.com/Owner/App.git",
        "https://github.com/Owner/App",
        "https://github.com:443/Owner/App.git/",
        "HTTPS://GITHUB.COM/Owner//App.git",
        "https://me@github.com/Owner/App.git",
        "https://me:s3cret@github.com/Owner/App.git",
        "https://me:p%40ss@github.com/Owner/App.git",
        "https://[REDACTED]@github.com/Owner/App.git",
        "https://me:[REDACTED]@github.com/Owner/App.git",
        "https://github.com/Owner/App.git?token=x#part",
        "https://github.com/%4Fwner/App.git",
        "  git@github.com:Owner/App.git\t",
    ],
)
def test_one_repository_has_one_form(url: str) -> None:
    assert normalise_remote(url) == APP


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("git@example.org:app.git", "example.org/app"),
        ("git@example.org:~bob/app", "example.org/~bob/app"),
        ("[git.example.org:2222]:o/a.git", "git.example.org/o/a"),
        ("git@[fe80::1]:o/a", "fe80::1/o/a"),
        ("ssh://git@[fe80::1]:22/o/a", "fe80::1/o/a"),
        ("http://localhost:3000/o/a.git", "localhost:3000/o/a"),
        ("http://127.0.0.1:4000/o/a.git", "127.0.0.1:4000/o/a"),
        ("https://example.org:8443/o/a.git", "example.org/o/a"),
        ("https://example.org/a%20b.git", "example.org/a b"),
        ("https://example.org/Cafe\u0301.git", "example.org/Caf\u00e9"),
        ("/srv/git/app.git", "file:/srv/git/app"),
        ("/srv/git//app.git/", "file:/srv/git/app"),
        ("/srv/git/app/.git", "file:/srv/git/app"),
        ("file:///srv/git/app.git", "file:/srv/git/app"),
        ("file://localhost/srv/git/app", "file:/srv/git/app"),
        ("../git/app.git", "file:/srv/git/app"),
        ("C:\\src\\app.git", "file:c:/src/app"),
        ("c:/src/app", "file:c:/src/app"),
        ("file:///C:/src/app", "file:c:/src/app"),
        ("\\\\srv\\share\\app", "file://srv/share/app"),
        ("codecommit::eu-west-1://me@Repo", "codecommit::eu-west-1://Repo"),
    ],
)
def test_other_addresses(url: str, form: str) -> None:
    assert normalise_remote(url, "/srv/checkout") == form


@pytest.mark.parametrize(
    "url",
    [
        "",
        " ",
        "https://",
        "https://github.com",
        "https://github.com/",
        "https://[REDACTED]/o/a",
        "https://h/[REDACTED].git",
        "[REDACTED]",
        "git@[REDACTED]:o/a",
        "a\nb",
        "h:" + "x" * 3000,
        "ext::sh -c true",
        "/",
        "/.git",
        "h:.git",
    ],
)
def test_what_no_two_clones_can_share_has_no_form(url: str) -> None:
    assert normalise_remote(url) == ""


def test_a_relative_remote_without_a_base_has_no_form() -> None:
    assert normalise_remote("../app.git") == ""


_NAME = st.text(string.ascii_letters + string.digits + "-_", min_size=1, max_size=12)
_SECRET = st.text(string.ascii_letters + string.digits, min_size=12, max_size=20).map("pw-".__add__)


@given(user=_NAME, password=_SECRET, host=_NAME, owner=_NAME, name=_NAME, port=st.integers(1, 65535))
def test_every_transport_agrees_and_no_password_is_left(
    user: str, password: str, host: str, owner: str, name: str, port: int
) -> None:
    server = f"git.{host}.example"
    forms = {
        normalise_remote(url)
        for url in (
            f"{user}@{server}:{owner}/{name}.git",
            f"ssh://{user}@{server}:{port}/{owner}/{name}",
            f"https://{user}:{password}@{server}/{owner}/{name}.git",
            f"https://{server.upper()}:{port}/{owner}/{name}/",
        )
    }
    assert forms == {f"{server.lower()}/{owner}/{name}"}


@given(st.text(max_size=80) | st.text("@:/[]\\.~%?# \t\u202eagit", max_size=40), st.sampled_from(["", "/w/app"]))
@example("://", "")
@example("[:x", "")
@example("file://", "")
@example("//\udc80", "/w")
def test_any_address_gives_a_form_that_a_page_holds(url: str, base: str) -> None:
    form = normalise_remote(url, base)
    project_id(form)
    assert "\n" not in form
    form.encode()


# --- paths as text


@given(st.binary(max_size=60).map(os.fsdecode) | st.text("% \n\t\u2028\u202e\x85ab/", max_size=20))
def test_a_path_survives_its_stay_in_a_page(path: str) -> None:
    text = path_text(path)
    assert text_path(text) == path
    entry = f"host:{text}x"
    if "[REDACTED]" not in line(entry, 5000):
        assert line(entry, 5000) == entry


def test_half_a_character_is_written_all_the_same() -> None:
    assert path_text("/a\ud800b") == "/a%3Fb"


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("/a//b/./c/../d/", "/a/b/d"),
        ("//a", "/a"),
        ("/", "/"),
        ("", ""),
        ("C:\\Users\\u\\app\\", "C:/Users/u/app"),
        ("\\\\srv\\share\\x", "//srv/share/x"),
        ("/with\\backslash", "/with\\backslash"),
    ],
)
def test_paths_in_one_form(path: str, plain: str) -> None:
    assert posix_path(path) == plain


@pytest.mark.parametrize(
    ("path", "folder", "rest"),
    [
        ("/a/b", "/a", "b"),
        ("/a", "/a", ""),
        ("/ab", "/a", None),
        ("/a", "/a/b", None),
        ("/a/b", "/", "a/b"),
        ("/", "/", ""),
    ],
)
def test_below(path: str, folder: str, rest: str | None) -> None:
    assert below(path, folder) == rest


@pytest.mark.parametrize(
    ("root", "gitfile", "main"),
    [
        ("/w/app", "", "/w/app"),
        ("/w/fix", "gitdir: /w/app/.git/worktrees/fix", "/w/app"),
        ("/w/fix", "/w/app/.git/worktrees/fix", "/w/app"),
        ("/w/fix", "gitdir: ../app/.git/worktrees/fix", "/w/app"),
        ("/w/fix", "gitdir: /srv/app.git/worktrees/fix", "/srv/app.git"),
        ("/w/fix", "gitdir: /w/.bare/worktrees/fix\n", "/w/.bare"),
        ("/w/app/sub", "gitdir: ../.git/modules/sub", "/w/app/sub"),
        ("/w/fix/sub", "gitdir: /w/app/.git/worktrees/fix/modules/sub", "/w/fix/sub"),
        ("/w/subfix", "gitdir: /w/app/.git/modules/sub/worktrees/subfix", "/w/subfix"),
        ("/worktrees/app", "gitdir: /worktrees/super/.git/modules/app", "/worktrees/app"),
        ("/w/app", "gitdir: /elsewhere/app.git", "/w/app"),
        (
            "C:\\Users\\u\\.codex\\worktrees\\1a4b\\my-repo",
            "gitdir: C:\\Projects\\my-repo\\.git\\worktrees\\my-repo",
            "C:/Projects/my-repo",
        ),
        ("C:/Users/u/x/my-repo", "gitdir: C:/Projects/my-repo/.git/worktrees/my-repo", "C:/Projects/my-repo"),
    ],
)
def test_the_main_checkout_by_the_git_file(root: str, gitfile: str, main: str) -> None:
    assert main_checkout(root, gitfile) == main


@pytest.mark.parametrize(
    ("main", "title"),
    [
        ("/w/app", "app"),
        ("/srv/app.git", "app"),
        ("/w/app/.bare", "app"),
        ("/w/app/.git", "app"),
        ("/home/u/.dotfiles", ".dotfiles"),
        ("C:\\Projects\\My Repo", "My Repo"),
        ("/", ""),
    ],
)
def test_titles(main: str, title: str) -> None:
    assert title_of(main) == title


# --- markers


@pytest.mark.parametrize(
    ("text", "marker"),
    [
        ('project = "App"\nworkspace = "Work Stuff"\n', Marker("/m", "work-stuff", "app")),
        ('\ufeffproject = "_global"\n', Marker("/m", "", "global")),
        ('project = "  "\n', None),
        ("[capture]\nignore_paths = ['x']\n", None),
        ("", None),
    ],
)
def test_what_a_marker_decides(text: str, marker: Marker | None) -> None:
    assert parse_marker("/m", text.encode()) == marker


@pytest.mark.parametrize("data", [b"project = ", b"\xff\xfe", b"project = 3\n", b"#" * 70_000, b"a=" + b"[" * 20_000])
def test_a_marker_that_cannot_be_read_says_so_and_decides_nothing(data: bytes) -> None:
    marker = parse_marker("/m", data)
    assert marker is not None
    assert marker.problem
    assert (marker.workspace, marker.project) == ("", "")


@pytest.mark.parametrize(
    ("cwd", "top", "main", "home", "folders"),
    [
        ("/h/w/app/a/b", "/h/w/app", "/h/w/app", "/h", ["/h/w/app/a/b", "/h/w/app/a", "/h/w/app"]),
        ("/w/fix/a", "/w/fix", "/w/app", "/h", ["/w/fix/a", "/w/fix", "/w/app/a", "/w/app"]),
        ("/h/x/y", "", "/h/x/y", "/h", ["/h/x/y", "/h/x", "/h"]),
        ("/srv/x", "", "/srv/x", "/h", ["/srv/x"]),
        ("/h", "", "/h", "/h", ["/h"]),
        ("/hx/y", "", "/hx/y", "/h", ["/hx/y"]),
    ],
)
def test_where_markers_count(cwd: str, top: str, main: str, home: str, folders: list[str]) -> None:
    assert marker_folders(cwd, top, main, home) == folders


# --- the choice


def seen(*paths: str, remotes: tuple[str, ...] = (), root: str = "", **more: object) -> Seen:
    more.setdefault("repository", bool(remotes or root))
    return Seen(frozenset(paths), Identity(remotes, root), **more)  # type: ignore[arg-type] # the two flags and `held`


def test_what_a_repository_is_known_by() -> None:
    both = identity({"origin": "git@h:me/app.git", "upstream": "https://h/org/app", "x": "h:x/x"}, A, "/w/app")
    assert both == Identity(("h/org/app", "h/me/app"), A)
    assert both.id == project_id("h/org/app")
    assert both.repos == ("h/org/app", "h/me/app", f"root:{A}")
    assert identity({"origin": "../app.git"}, "", "/w/app").remotes == ("file:/w/app",)
    assert identity({}, A, "").id == project_id(A)
    assert identity({"origin": "https://h/"}, "", "").id is None


def test_by_remote_whatever_the_path() -> None:
    app, other = Known(project_id("h/o/app"), "projects/app"), Known(project_id("h/o/other"), "projects/other")
    assert choose([other, app], seen("/new", remotes=("h/o/app",), root=A)) is app
    assert choose([other], seen("/new", remotes=("h/o/app",), root=A)) is None


def test_upstream_before_origin_and_earlier_remotes_count() -> None:
    fork, org = Known("p-1", "projects/fork", repos=("h/me/app",)), Known("p-2", "projects/app", repos=("h/org/app",))
    assert choose([fork, org], seen("/x", remotes=("h/org/app", "h/me/app"))) is org
    assert choose([fork], seen("/x", remotes=("h/org/app", "h/me/app"))) is fork


def test_a_fork_elsewhere_is_another_project() -> None:
    org = Known("p-2", "projects/app", repos=("h/org/app", f"root:{A}"), checkouts=("/w/app",))
    assert choose([org], seen("/w/fork", remotes=("h/me/app",), root=A)) is None


def test_a_renamed_remote_in_the_same_place() -> None:
    app = Known("p-1", "projects/app", repos=("h/o/old", f"root:{A}"), checkouts=("/w/app",))
    assert choose([app], seen("/w/app", remotes=("h/o/new",), root=A)) is app
    assert choose([app], seen("/w/app", remotes=("h/o/new",), root=B, held=frozenset({A}))) is app
    assert choose([app], seen("/w/app", remotes=("h/o/new",), root=B)) is None, "another repository took the place"
    assert choose([app], seen("/w/app", root=B)) is None
    assert choose([app], seen("/w/app", repository=True)) is None, "a new repository without a commit"


def test_a_place_without_a_repository_is_known_by_its_path() -> None:
    plain = Known("p-1", "projects/app", checkouts=("/w/app",))
    assert choose([plain], seen("/w/app")) is plain
    assert choose([plain], seen("/w/app", remotes=("h/o/app",), root=A)) is plain, "it became a repository"
    assert choose([plain], seen("/v/app")) is None


def test_a_place_that_is_gone_is_known_by_what_was_recorded() -> None:
    app = Known("p-1", "projects/app", repos=("h/o/app",), checkouts=("/w/app",))
    assert choose([app], seen("/w/app", repository=True, intact=False)) is app
    assert choose([app], seen("/w/app", remotes=("h/o/else",), intact=False)) is None
    assert choose([app], seen("/x", remotes=("h/o/app",), intact=False)) is app


def test_without_a_remote_the_root_decides_if_it_is_one_projects() -> None:
    one = Known("p-1", "projects/one", repos=("h/o/one", f"root:{A}"))
    two = Known("p-2", "projects/two", repos=("h/o/two", f"root:{A}"))
    own = Known(project_id(A), "projects/own")
    assert choose([one], seen("/x", root=A)) is one
    assert choose([one, two], seen("/x", root=A)) is None
    assert choose([one, two, own], seen("/x", root=A)) is own


def test_a_clone_of_a_checkout_on_this_disk_is_the_same_project() -> None:
    source = Known("p-1", "projects/app", repos=(f"root:{A}",), checkouts=("/w/app",))
    assert choose([source], seen("/tmp/clone", remotes=("file:/w/app",), root=A)) is source
    clone = Known(project_id("file:/w/app"), "projects/app", repos=("file:/w/app",), checkouts=("/tmp/clone",))
    assert choose([clone], seen("/w/app", root=B)) is clone
    assert choose([clone], seen("/w/app")) is None, "a plain folder is nobody's origin"


def test_the_id_of_the_remote_goes_before_the_place() -> None:
    other = Known("p-1", "projects/a", repos=("h/o/app", f"root:{A}"), checkouts=("/w/app",))
    exact = Known(project_id("h/o/app"), "projects/b")
    assert choose([other, exact], seen("/w/app", remotes=("h/o/app",), root=A)) is exact
    by_root = Known(project_id(A), "projects/c")
    assert choose([other, by_root], seen("/w/app", root=A)) is other


# --- pages and folders


def test_a_projects_page_is_read() -> None:
    values = {
        "id": "p-0123456789ab",
        "title": "App",
        "aliases": ["App", "the app"],
        "repos": ["h/o/app", f"root:{A}"],
        "checkouts": ["box:/w/a%20", "other:/w/b"],
    }
    known = known_project("work/app", frontmatter.dump(values).encode(), "box")
    assert known == Known(
        id="p-0123456789ab",
        folder="work/app",
        title="App",
        aliases=("App", "the app"),
        repos=("h/o/app", f"root:{A}"),
        checkouts=("/w/a ",),
        elsewhere=("other:/w/b",),
    )
    assert (known.workspace, known.name, known.page) == ("work", "app", "work/app/project.md")


@pytest.mark.parametrize(
    "page",
    [
        "---\nid: p-0123456789ab\ntitle: a: b: c\nrepos: [x\n---\n",
        '---\n<<<<<<< HEAD\nid: "p-0123456789ab"\n=======\n>>>>>>> other\n---\n',
        "---\r\nid: p-0123456789ab\r\n\tx\r\n---\r\n",
    ],
)
def test_a_page_that_does_not_parse_still_gives_its_id(page: str) -> None:
    assert known_project("projects/app", page.encode(), "box") == Known("p-0123456789ab", "projects/app")


@pytest.mark.parametrize(
    "page",
    ["", "# project\n\nid: p-0123456789ab\n", "---\ntitle: x\n---\n", "---\nid: 5\n---\n", "---\nid: mine\n---\n"],
)
def test_a_page_without_our_id_is_no_project(page: str) -> None:
    assert known_project("projects/app", page.encode(), "box") is None


@pytest.mark.parametrize(
    ("workspace", "name", "taken", "folder"),
    [
        ("projects", "My App", (), "projects/my-app"),
        ("projects", "App", ("APP",), "projects/app-1234"),
        ("projects", "App", ("app", "app-1234"), "projects/app-12345678"),
        ("projects", "Unsorted", (), "projects/unsorted-1234"),
        ("work", "Unsorted", (), "work/unsorted"),
        ("projects", "漢字 Ünïcode", (), "projects/漢字-ünïcode"),
        ("projects", "CAFE\u0301", ("caf\u00e9",), "projects/caf\u00e9-1234"),
        ("projects", "\udcff\udcfe", (), "projects/project"),
        ("projects", ".git", (), "projects/git"),
    ],
)
def test_folders_for_new_projects(workspace: str, name: str, taken: tuple[str, ...], folder: str) -> None:
    assert free_folder(workspace, name, "p-123456789abc", taken) == folder


@given(st.text(max_size=40), st.sets(st.text(max_size=10), max_size=5))
def test_a_new_folder_is_always_free_and_plain(name: str, taken: set[str]) -> None:
    folder = free_folder("projects", name, "p-123456789abc", taken)
    last = folder.removeprefix("projects/")
    assert last.casefold() not in {t.casefold() for t in taken} or len(last) > 12
    assert "/" not in last
    assert not last.startswith((".", "_"))
    assert last.startswith(slug(name))
