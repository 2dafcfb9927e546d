"""Searching the vault as git had it at a time in the past, with real git."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.repositories import write
from tests.scratch import ZONE, Scratch, git
from vaultd.engine.health import Pulse
from vaultd.engine.live import Live
from vaultd.engine.local import LocalService
from vaultd.engine.past import moment_of
from vaultd.engine.service import Scope, Search
from vaultd.errors import NotFoundError, UsageError
from vaultd.store.gitpast import Past

NOW = datetime(2026, 4, 1, 12, tzinfo=ZONE)
BEGIN = "2026-01-01T09:00:00+01:00"


@dataclass
class World:
    """A vault with two projects, and the service on it; each page is written and committed at a time of its own."""

    scratch: Scratch
    service: LocalService

    @property
    def vault(self) -> Path:
        return self.scratch.vault

    def commit(self, at: str) -> str:
        git("add", "-A", cwd=self.vault)
        git("commit", "-q", "-m", "then", cwd=self.vault, at=at)
        return git("rev-parse", "HEAD", cwd=self.vault).strip()

    def page(self, path: str, text: str, at: str) -> str:
        write(self.vault / path, text)
        return self.commit(at)

    def ask(self, text: str, as_of: str, project: str = "shop", **more: Any) -> dict[str, Any]:
        return self.service.query(Scope(project), text, Search(as_of=as_of, **more))

    def hits(self, text: str, as_of: str, project: str = "shop", **more: Any) -> list[str]:
        return [hit["path"] for hit in self.ask(text, as_of, project, **more)["hits"]]


@pytest.fixture
def world(scratch: Scratch) -> Iterator[World]:
    yield from made(scratch)


def made(scratch: Scratch) -> Iterator[World]:
    scratch.now = NOW
    stores = scratch.init()
    for number, slug in enumerate(("shop", "mill")):
        write(scratch.vault / f"projects/{slug}/project.md", f"---\nkind: project\nid: p-00000000000{number}\n---\n")
    git("add", "-A", cwd=scratch.vault)
    git("commit", "-q", "--amend", "-m", "start", cwd=scratch.vault, at=BEGIN)
    live = Live(stores)
    yield World(scratch, LocalService(scratch.stores, live, Pulse(), lambda _: None))
    live.close()


NOTE = "projects/shop/notes/loader.md"


def test_a_page_is_found_with_its_text_of_then_and_the_answer_says_from_when(world: World) -> None:
    old = world.page(NOTE, "# Loader\n\nThe heron loads prices.\n", "2026-02-01T10:00:00+01:00")
    world.page(NOTE, "# Loader\n\nThe egret loads prices.\n", "2026-03-01T10:00:00+01:00")
    told = world.ask("loads prices", "2026-02-15")
    assert [hit["path"] for hit in told["hits"]] == [NOTE] and "heron" in told["hits"][0]["snippet"]
    assert told["as_of"] == {"commit": old, "at": "2026-02-01T10:00:00+01:00"}
    assert (told["project"], told["hits"][0]["project"], told["pending"], "note" in told) == ("shop", "shop", 0, False)
    assert "egret" in world.ask("loads prices", "2026-03-15")["hits"][0]["snippet"]
    assert world.hits("egret", "2026-02-15") == world.hits("heron", "2026-03-15") == []
    assert "as_of" not in world.ask("loads prices", "")


@pytest.mark.parametrize(
    ("as_of", "there"),
    [
        ("2026-01-31", False),
        ("2026-02-01", True),
        (" 2026-02-01\n", True),
        ("2026-02-01T09:59:59+01:00", False),
        ("2026-02-01T10:00:00+01:00", True),
        ("2026-02-01T09:00Z", True),
        ("2026-02-01T09:59+01:00", False),
        ("2026-02-01 10:00+02:00", False),
        ("2026-04-01", True),
        ("2126-01-01", True),
        ("9999-12-31T23:59:59-12:00", True),
    ],
)
def test_a_day_means_its_end_a_time_itself_and_the_future_now(world: World, as_of: str, there: bool) -> None:
    world.page(NOTE, "The heron loads.\n", "2026-02-01T10:00:00+01:00")
    assert world.hits("heron", as_of) == ([NOTE] if there else [])


def test_a_day_ends_in_the_persons_zone(world: World) -> None:
    world.page(NOTE, "The heron loads.\n", "2026-02-01T23:30:00+00:00")
    assert not world.hits("heron", "2026-02-01") and world.hits("heron", "2026-02-02")
    assert moment_of("2026-02-01", NOW).isoformat() == "2026-02-01T23:59:59+01:00"


NO_TIMES = """2026 yesterday 2026-02-30 2026-02-01T10:00 2026-W05 20260201 2026-02-01T10+01 2026-02-01T10:00+99:00
0001-01-01T00:00+14:00 ٢٠٢٦-02-01 -1 --output=x HEAD"""


@pytest.mark.parametrize("as_of", [*NO_TIMES.split(), " "])
def test_what_is_no_time_is_refused(world: World, as_of: str) -> None:
    with pytest.raises(UsageError, match="2026-11-29"):
        world.ask("heron", as_of)


def test_before_the_first_commit_there_is_nothing_and_that_is_said(world: World) -> None:
    for as_of in ("2025-12-31", "2026-01-01T08:59:59+01:00", "1901-01-01", "0001-01-02"):
        with pytest.raises(NotFoundError, match=re.escape(f"first commit is of {BEGIN}")):
            world.ask("heron", as_of)


def test_a_vault_without_commits_or_git_has_no_past(world: World) -> None:
    git("update-ref", "-d", "HEAD", cwd=world.vault)
    with pytest.raises(NotFoundError, match="Nothing of the vault is in git yet"):
        world.ask("heron", "2026-02-01")
    (world.vault / ".git").rename(world.scratch.base / "gone")
    with pytest.raises(NotFoundError, match="no git repository"):
        world.ask("heron", "2026-02-01")


def test_deleted_and_renamed_pages_are_where_they_were(world: World) -> None:
    world.page(NOTE, "The heron loads.\n", "2026-02-01T10:00:00+01:00")
    git("mv", NOTE, "projects/shop/decisions.md", cwd=world.vault)
    world.commit("2026-02-02T10:00:00+01:00")
    (world.vault / "projects/shop/decisions.md").unlink()
    world.commit("2026-02-03T10:00:00+01:00")
    assert world.hits("heron", "2026-02-01") == [NOTE]
    assert world.hits("heron", "2026-02-02") == ["projects/shop/decisions.md"]
    assert world.hits("heron", "2026-02-03") == world.hits("heron", "") == []


def test_replaced_and_expired_pages_count_as_they_did_then(world: World) -> None:
    world.page(NOTE, "---\nexpires_at: 2026-02-20\n---\nThe heron loads.\n", "2026-02-01T10:00:00+01:00")
    replaced = "---\nsuperseded_by: other\nexpires_at: 2026-02-20\n---\nThe heron loads.\n"
    world.page(NOTE, replaced, "2026-02-10T10:00:00+01:00")
    assert "superseded" not in world.ask("heron", "2026-02-05")["hits"][0]
    assert world.ask("heron", "2026-02-15")["hits"][0]["superseded"]
    assert world.hits("heron", "2026-02-25") == []
    assert world.hits("heron", "2026-02-25", expired=True) == [NOTE]


def test_times_in_words_are_as_of_then(world: World) -> None:
    world.page(NOTE, "---\ncreated: 2026-02-03T10:00:00+01:00\n---\nThe heron.\n", "2026-02-03T10:00:00+01:00")
    assert world.hits("what was last week", "2026-02-10") == [NOTE]
    assert world.hits("what was last week", "2026-03-10") == []


def test_scopes_and_filters_are_those_of_any_search(world: World) -> None:
    for path in ("projects/mill/notes/m.md", "_global/g.md", "Loose.md"):
        write(world.vault / path, "The heron stands.\n")
    world.page(NOTE, "---\nkind: gotcha\npinned: true\n---\nThe heron loads.\n", "2026-02-01T10:00:00+01:00")
    told = world.ask("heron", "2026-02-01")
    lists = [[hit["path"] for hit in told[name]] for name in ("hits", "global_hits", "other_hits")]
    assert lists == [[NOTE], ["_global/g.md"], ["Loose.md"]]
    assert world.hits("heron", "2026-02-01", "mill") == ["projects/mill/notes/m.md"]
    both = world.hits("heron", "2026-02-01", projects=("mill",))
    assert sorted(both) == ["projects/mill/notes/m.md", NOTE]
    assert len(world.hits("heron", "2026-02-01", everywhere=True)) == 4
    assert world.hits("heron", "2026-02-01", where={"kind": ["gotcha"]}, everywhere=True) == [NOTE]
    assert world.hits("plover", "2026-02-01", pinned_first=True) == [NOTE]
    assert world.ask("heron", "2026-02-01", explain=True)["hits"][0]["why"]["matched"] == ["heron"]
    with pytest.raises(UsageError, match="limit"):
        world.ask("heron", "2026-02-01", limit=0)


def test_the_same_files_are_pages_as_on_disk(world: World) -> None:
    pages = ["projects/shop/Größe und  Maß.MD", "projects/shop/漢字/日本.md", "projects/shop/x.md/deep 'q\" \\.md"]
    others = ["projects/shop/.hidden.md", "projects/shop/.obsidian/x.md", "projects/shop/two\nlines.md"]
    others += ["projects/shop/tab\tbed.md", "projects/shop/picture.png"]
    for path in (*pages, *others):
        write(world.vault / path, "The heron loads.\n")
    write(Path(os.fsdecode(os.fsencode(world.vault) + b"/projects/shop/caf\xe9.md")), "The heron loads.\n")
    (world.vault / "projects/shop/link.md").symlink_to("heron.md")
    write(world.vault / ".gitignore", "ignored.md\n.vaultd\n")
    write(world.vault / "projects/shop/ignored.md", "The heron loads.\n")
    world.commit("2026-02-01T10:00:00+01:00")
    assert sorted(world.hits("heron", "2026-02-01")) == sorted(pages)
    on_disk = [path for path in world.hits("heron", "") if not path.endswith("ignored.md")]
    assert sorted(on_disk) == sorted(pages)


def test_what_a_person_is_at_does_not_matter(world: World) -> None:
    world.page(NOTE, "The heron loads.\n", "2026-02-01T10:00:00+01:00")
    git("checkout", "-q", "-b", "side", cwd=world.vault)
    world.page(NOTE, "The egret loads.\n", "2026-02-02T10:00:00+01:00")
    git("checkout", "-q", "main", cwd=world.vault)
    world.page(NOTE, "The ibis loads.\n", "2026-02-03T10:00:00+01:00")
    with pytest.raises(Exception, match="merge"):
        git("merge", "side", cwd=world.vault)
    write(world.vault / "projects/shop/staged.md", "The heron is staged.\n")
    git("add", "projects/shop/staged.md", cwd=world.vault)
    write(world.vault / ".git/index.lock", "")
    before = git("status", "--porcelain", cwd=world.vault)
    assert world.hits("heron", "2026-02-02") == world.hits("ibis", "2026-02-03") == [NOTE]
    assert world.hits("heron", "2026-04-01") == world.hits("egret", "2026-04-01") == []
    assert git("status", "--porcelain", cwd=world.vault) == before
    (world.vault / ".git/index.lock").unlink()
    git("checkout", "-q", "--force", "--detach", "HEAD~1", cwd=world.vault)
    assert world.hits("heron", "2026-04-01") == [NOTE], "HEAD is what counts"


def test_what_came_in_by_a_merge_is_there_from_the_merge_on(world: World) -> None:
    git("checkout", "-q", "-b", "side", cwd=world.vault)
    world.page(NOTE, "The heron loads.\n", "2026-02-02T10:00:00+01:00")
    git("checkout", "-q", "main", cwd=world.vault)
    world.page("Loose.md", "Something else.\n", "2026-02-01T10:00:00+01:00")
    git("merge", "-q", "-m", "merged", "side", cwd=world.vault, at="2026-02-03T10:00:00+01:00")
    assert not world.hits("heron", "2026-02-02") and world.hits("heron", "2026-02-03")


def test_a_persons_settings_do_not_matter(world: World) -> None:
    world.page(NOTE, "The heron loads (a price).\n", "2026-02-01T10:00:00+01:00")
    settings = {
        "core": "quotePath = true\npager = false",
        "color": "ui = always\ngrep = always",
        "grep": "patternType = perl\nlineNumber = true\ncolumn = true\nfullName = false\nthreads = 1",
        "log": "showSignature = true\ndate = relative\nfollow = true",
        "pager": "grep = false\nls-tree = false",
        "submodule": "recurse = true",
    }
    text = "".join(f"[{name}]\n{values}\n" for name, values in settings.items())
    config = write(world.scratch.base / "gitconfig", text)
    world.scratch.extra["GIT_CONFIG_GLOBAL"] = str(config)
    crowd(world)
    assert world.hits("heron", "2026-03-01") == [NOTE]


@pytest.mark.parametrize("kind", ["worktree", "sha256"])
def test_the_vault_may_be_any_kind_of_work_tree(scratch: Scratch, kind: str) -> None:
    if kind == "worktree":
        git("worktree", "add", "-q", "-b", "notes", str(scratch.vault), cwd=scratch.checkout("main"))
    else:
        scratch.vault.mkdir()
        git("init", "-q", "-b", "main", "--object-format=sha256", cwd=scratch.vault)
    for world in made(scratch):
        crowd(world)
        commit = world.page(NOTE, "The heron loads.\n", "2026-03-02T10:00:00+01:00")
        assert world.hits("heron", "2026-03-01") == []
        told = world.ask("heron", "2026-03-02")
        assert [hit["path"] for hit in told["hits"]] == [NOTE] and told["as_of"]["commit"] == commit


def test_nothing_is_written_and_nothing_is_left(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world.page(NOTE, "The heron loads.\n", "2026-02-01T10:00:00+01:00")
    room = tmp_path / "temp"
    room.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(room))
    before = {
        path: path.lstat().st_mtime_ns for path in world.scratch.base.rglob("*") if room not in (path, path.parent)
    }
    assert world.hits("heron", "2026-02-01") == [NOTE]
    after = {
        path: path.lstat().st_mtime_ns for path in world.scratch.base.rglob("*") if room not in (path, path.parent)
    }
    assert after == before and not list(room.iterdir())


# --- more pages than are read


def crowd(world: World) -> None:
    """More pages of one project than a search of the past reads, each with the words `common` and its number."""
    for number in range(420):
        day = f"2026-01-{number % 28 + 1:02}"
        text = f"---\ncreated: {day}\n---\nA common page, the number n{number}.\n"
        write(world.vault / f"projects/shop/notes/page-{number}.md", text)
    world.commit("2026-02-20T10:00:00+01:00")


def test_of_many_pages_those_with_most_of_the_words_are_read(world: World) -> None:
    texts = {
        "projects/shop/notes/heron.md": "Its name has the word.\n",
        "projects/shop/a.md": "Herons are COMMON here, as is retrying.\n",
        "projects/shop/b.md": "Die Löschung der Größe.\n",
        "projects/shop/c.md": "漢字の試験。\n",
        "projects/shop/d.md": "---\npinned: true\n---\nNothing else.\n",
        "projects/shop/e.md": "Ошибка.\n",
        "projects/shop/.hidden.md": "Herons hide.\n",
        "projects/mill/notes/heron.md": "Herons of another project.\n",
    }
    for path, text in texts.items():
        write(world.vault / path, text)
    crowd(world)
    day = "2026-02-20"
    assert set(world.hits("heron", day)) == {"projects/shop/notes/heron.md", "projects/shop/a.md"}
    assert world.hits("common retries", day)[0] == "projects/shop/a.md"
    assert world.hits("n417", day) == ["projects/shop/notes/page-417.md"]
    assert world.hits("LÖSCHUNG", day) == world.hits("größe", day) == ["projects/shop/b.md"]
    assert world.hits("試験", day) == ["projects/shop/c.md"]
    assert world.hits("ошибка", day) == ["projects/shop/e.md"]
    assert world.hits("heron", day, pinned_first=True)[0] == "projects/shop/d.md"
    assert len(world.hits("what was last month", day, limit=100)) == 100
    told = world.ask("common", day)
    assert len(told["hits"]) == 10 and told["note"].startswith("Only 400 of 421 pages")
    assert world.hits("\0 \ud800 - -e --", day) == world.hits("", day) == []
    assert "note" not in world.ask("heron", day)


def test_huge_pages_do_not_fill_the_memory(world: World) -> None:
    write(world.vault / "projects/shop/huge.md", "The heron loads.\n" * 600_000)
    world.page(NOTE, "The heron loads.\n", "2026-02-01T10:00:00+01:00")
    told = world.ask("heron", "2026-02-01")
    assert [hit["path"] for hit in told["hits"]] == [NOTE] and told["note"].startswith("Only 4 of 5 pages")


def test_a_page_that_makes_us_fail_keeps_no_other_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = {"a.md": b"\xff\xfe\x00 heron", "b.md": b"---\n: [\n---\nheron\n", "c.md": b"", "d.md": b"heron\0x\r\n"}
    for name, data in odd.items():
        write(world.vault / f"projects/shop/{name}", data)
    world.page(NOTE, "The heron loads.\n", "2026-02-01T10:00:00+01:00")
    assert len(world.hits("heron", "2026-02-01")) == 4
    monkeypatch.setattr(Past, "texts", lambda self, pages: ((p, b"heron") for p in pages if p.path == NOTE))
    assert world.hits("heron", "2026-02-01") == [NOTE], "a blob that is not here"


def test_the_command_says_that_it_is_not_the_present(world: World) -> None:
    commit = world.page(NOTE, "The heron loads.\n", "2026-02-01T10:00:00+01:00")
    (world.vault / NOTE).unlink()
    world.commit("2026-02-02T10:00:00+01:00")
    run = world.scratch.run
    said = run("search", "heron", "--as-of", "2026-02-01").stdout
    assert said.startswith(f"As of 2026-02-01T10:00:00+01:00 (commit {commit[:10]}), not as it is now:\n{NOTE}")
    told = world.scratch.json("search", "heron", "--json", "--as-of", "2026-02-01T10:00+01:00")
    assert told["as_of"]["commit"] == commit and told["hits"][0]["path"] == NOTE
    assert run("search", "heron", "--paths", "--as-of", "2026-02-01").stdout == f"{NOTE}\n"
    assert "Nothing found" in run("search", "heron").stdout
    assert run("search", "heron", "--as-of", "").returncode == 2
    assert run("search", "heron", "--as-of", "2025-01-01").returncode == 4
