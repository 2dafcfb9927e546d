"""The service beside a vault: what clients ask, answered from the project that they mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.scratch import Scratch, git
from vaultd.core import frontmatter
from vaultd.engine.health import Pulse
from vaultd.engine.history import History, Recorded
from vaultd.engine.live import Live
from vaultd.engine.local import LocalService
from vaultd.engine.passes import Passes
from vaultd.engine.reconcile import Reconcile
from vaultd.engine.service import Page, Scope, Search
from vaultd.errors import ConflictError, NotFoundError, NoVaultError, RefusedError, UsageError, VaultdError


@dataclass
class World:
    """A vault with one project that has a session behind it, and the service on it."""

    scratch: Scratch
    checkout: Path
    service: LocalService
    live: Live
    written: set[str] = field(default_factory=set)

    @property
    def here(self) -> Scope:
        return Scope(cwd=str(self.checkout))

    def page(self, path: str) -> Path:
        return self.scratch.vault / path

    def commit(self) -> None:
        git("add", "-A", cwd=self.scratch.vault)
        git("commit", "-q", "-m", "all", "--allow-empty", cwd=self.scratch.vault)

    def query(self, text: str, **more: Any) -> list[str]:
        return [hit["path"] for hit in self.service.query(self.here, text, **more)["hits"]]


@pytest.fixture
def world(scratch: Scratch) -> Iterator[World]:
    scratch.init()
    checkout = scratch.checkout("shop")
    scratch.session(checkout, prompts=("Mend the price loader",))
    stores = scratch.stores()
    Passes(stores).drain()
    written: set[str] = set()
    live = Live(stores)
    yield World(scratch, checkout, LocalService(scratch.stores, live, Pulse(), written.update), live, written)
    live.close()


def test_a_query_is_answered_from_the_project_of_the_folder_and_says_so(world: World) -> None:
    told = world.service.query(world.here, "price loader")
    assert told["project"] == "shop"
    assert any("/sessions/" in hit["path"] for hit in told["hits"])
    assert {hit["project"] for hit in told["hits"]} == {"shop"}
    assert told["pending"] == 0


def test_a_written_page_is_found_by_the_next_query(world: World) -> None:
    told = world.service.write_page(world.here, Page("decisions/retry", "Retry thrice because the zebra flaps."))
    assert told["path"] == "projects/shop/decisions/retry.md" and told["created"] and told["project"] == "shop"
    assert world.query("zebra") == ["projects/shop/decisions/retry.md"]
    assert world.service.read_page(world.here, "decisions/retry.md")["revision"] == told["revision"]
    assert told["path"] in world.written


def test_a_page_that_went_before_the_index_had_it_is_told_of(world: World) -> None:
    world.query("loader")
    world.live.take_changed()
    world.live.touched(["projects/shop/handoffs/open/gone.md", "projects/shop/handoffs"])
    world.live.bring_named()
    assert world.live.take_changed() == {"projects/shop/handoffs/open/gone.md"}


def test_a_secret_in_a_page_is_redacted_and_counted(world: World) -> None:
    secret = "ghp_" + "a1B2" * 9
    told = world.service.write_page(world.here, Page("notes/x", f"token {secret}\n", title=f"of {secret}"))
    text = world.page(told["path"]).read_text("utf-8")
    assert told["redacted"] == 2 and secret not in text and text.count("[REDACTED]") == 2
    assert world.service.write_page(world.here, Page("notes/y", "plain [REDACTED]"))["redacted"] == 0


def test_a_persons_text_is_in_git_before_it_is_replaced_and_its_frontmatter_stays(world: World) -> None:
    page = world.page("projects/shop/notes/mine.md")
    page.parent.mkdir(exist_ok=True)
    page.write_text("---\nmood: fine # mine\ntags: [a]\n---\n\nBy hand.\n")
    told = world.service.write_page(world.here, Page("notes/mine", "By tool.", tags=["b"]))
    assert not told["created"]
    assert page.read_text().startswith("---\nmood: fine # mine\ntags: [b]\n")
    assert page.read_text().endswith("---\n\nBy tool.\n")
    assert "By hand." in git("show", "HEAD:projects/shop/notes/mine.md", cwd=world.scratch.vault)


@pytest.mark.parametrize(
    "before", ["By hand.\n", "\ufeffBy hand.\r\n", "---\n\nprose of a person\n\n---\n\nmore\n", ""]
)
def test_a_page_without_frontmatter_is_replaced_too_and_gets_none(world: World, before: str) -> None:
    page = world.page("projects/shop/notes/mine.md")
    page.parent.mkdir(exist_ok=True)
    page.write_bytes(before.encode())
    world.commit()
    told = world.service.write_page(world.here, Page("notes/mine", "By tool."))
    assert not told["created"]
    assert page.read_bytes().removeprefix(b"\xef\xbb\xbf") == b"By tool.\n"
    assert page.read_bytes().startswith(b"\xef\xbb\xbf") == before.startswith("\ufeff")


def test_a_page_whose_frontmatter_does_not_parse_is_left_alone(world: World) -> None:
    page = world.page("projects/shop/notes/mine.md")
    page.parent.mkdir(exist_ok=True)
    page.write_text("---\na: b: c\n---\n\nBy hand.\n")
    world.commit()
    with pytest.raises(RefusedError, match="left alone"):
        world.service.write_page(world.here, Page("notes/mine", "By tool."))
    assert "By hand." in page.read_text()


def test_a_handoff_says_who_left_it(world: World) -> None:
    begun = world.service.handoff_begin(world.here, "Go on", by="some-client")
    assert "from some-client" in world.service.handoff_accept(world.here, begun["id"])["text"]


def test_what_the_settings_allow_stays_in_a_page_that_is_replaced_too(world: World) -> None:
    secret = "ghp_" + "a1B2" * 9
    settings = world.scratch.home / ".config/vaultd/config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(f'[sanitize]\nallow = ["{secret}"]\n')
    for text in ("An example:", "A better example:"):
        told = world.service.write_page(world.here, Page("notes/x", f"{text} {secret}\n"))
        assert told["redacted"] == 0 and secret in world.page(told["path"]).read_text("utf-8")


def test_git_is_waited_for_without_the_write_lock(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.service.write_page(world.here, Page("notes/x", "One."))
    held: list[bool] = []
    record = History.record

    def seen(self: History, written: Iterable[str], message: str) -> Recorded:
        lock = world.scratch.stores().write_lock
        held.append(not lock.acquire(blocking=False))
        lock.release()
        return record(self, written, message)

    monkeypatch.setattr(History, "record", seen)
    world.service.write_page(world.here, Page("notes/x", "Two."))
    world.service.write_page(world.here, Page("notes/x", "Three."))
    world.service.delete_page(world.here, "notes/x")
    begun = world.service.handoff_begin(world.here, "Go on")
    world.service.handoff_cancel(world.here, begun["id"])
    world.service.handoff_accept(world.here)
    assert len(held) >= 6 and not any(held)


def test_what_git_cannot_keep_is_neither_replaced_nor_deleted(world: World) -> None:
    page = world.page("projects/shop/notes/secret.md")
    page.parent.mkdir(exist_ok=True)
    page.write_text("By hand.\n")
    world.page(".gitignore").write_text("secret.md\n/.vaultd/\n")
    with pytest.raises(ConflictError, match="git does not keep"):
        world.service.write_page(world.here, Page("notes/secret", "By tool."))
    with pytest.raises(ConflictError, match="git does not keep"):
        world.service.delete_page(world.here, "notes/secret")
    assert page.read_text() == "By hand.\n"


def test_a_deleted_page_is_gone_from_search_and_in_git(world: World) -> None:
    told = world.service.write_page(world.here, Page("notes/x", "A quagga."))
    gone = world.service.delete_page(world.here, "notes/x.md")
    assert not world.page(told["path"]).exists() and world.query("quagga") == []
    assert "quagga" in git("show", f"{gone['commit']}:{gone['path']}", cwd=world.scratch.vault)
    with pytest.raises(NotFoundError):
        world.service.delete_page(world.here, "notes/x.md")


def test_a_pinned_page_is_not_deleted(world: World) -> None:
    world.service.write_page(world.here, Page("notes/x", "Keep.", pinned=True))
    with pytest.raises(RefusedError, match="pinned"):
        world.service.delete_page(world.here, "notes/x")


@pytest.mark.parametrize(
    "path",
    [
        *("", " ", ".", "..", "../x", "notes/../../x", "/etc/passwd", "~/x", "notes//x", "notes/", ".git/config"),
        *(".vaultd/vault-id", "notes/.hidden", "con", "notes/NUL.md", "com1.md", "a\\..\\b", "x\0y", "x\ny", "a:b"),
        *("notes/x .md/../y", "notes/x.md/", "projects/other/notes/x", "_global/x", "notes/" + "x" * 300),
    ],
)
def test_every_tool_refuses_tricks_in_a_path(world: World, path: str) -> None:
    other = world.scratch.checkout("other")
    world.scratch.session(other)
    Passes(world.scratch.stores()).drain()
    before = sorted(str(p) for p in world.scratch.base.rglob("*") if ".git/" not in str(p) and "/home" not in str(p))
    calls: list[Callable[[], object]] = [
        lambda: world.service.write_page(world.here, Page(path, "Text.")),
        lambda: world.service.delete_page(world.here, path),
    ]
    for call in calls:
        with pytest.raises(RefusedError):
            call()
    if not path.startswith(("projects/other", "_global")):
        with pytest.raises((RefusedError, UsageError)):
            world.service.read_page(world.here, path)
    after = sorted(str(p) for p in world.scratch.base.rglob("*") if ".git/" not in str(p) and "/home" not in str(p))
    assert before == after


def test_a_link_out_of_the_vault_is_refused(world: World) -> None:
    outside = world.scratch.base / "outside"
    outside.mkdir()
    (outside / "x.md").write_text("Mine.\n")
    world.page("projects/shop/out").symlink_to(outside)
    calls: list[Callable[[], object]] = [
        lambda: world.service.write_page(world.here, Page("out/x", "Text.")),
        lambda: world.service.write_page(world.here, Page("out/new", "Text.")),
        lambda: world.service.delete_page(world.here, "out/x"),
        lambda: world.service.read_page(world.here, "out/x"),
    ]
    for call in calls:
        with pytest.raises(RefusedError):
            call()
    assert (outside / "x.md").read_text() == "Mine.\n" and not (outside / "new.md").exists()


@pytest.mark.parametrize("path", ["sessions/x", "handoffs/open/x", "project", "log-2026-11", "_tombstones/x"])
def test_pages_that_vaultd_makes_are_not_a_tools_to_write(world: World, path: str) -> None:
    with pytest.raises(RefusedError, match="cannot be changed with this tool"):
        world.service.write_page(world.here, Page(path, "Text."))


def test_without_a_place_the_projects_are_listed(world: World) -> None:
    with pytest.raises(UsageError, match="Projects: shop"):
        world.service.query(Scope(), "x")
    with pytest.raises(NotFoundError, match="Projects: shop"):
        world.service.query(Scope(project="shoe"), "x")


def test_a_named_project_wins_over_the_folder(world: World) -> None:
    other = world.scratch.checkout("other")
    told = world.service.handoff_begin(Scope(project="shop", cwd=str(other)), "Go on with the loader")
    assert told["project"] == "shop" and told["path"].startswith("projects/shop/")
    assert world.service.handoff_list(Scope(cwd=str(other)))["handoffs"] == []


def test_a_read_from_a_new_folder_makes_nothing_and_sees_no_projects_pages(world: World) -> None:
    fresh = world.scratch.checkout("fresh")
    told = world.service.query(Scope(cwd=str(fresh)), "price loader")
    assert told["project"] == "" and told["hits"] == [] and told["other_hits"] == []
    assert not world.page("projects/fresh").exists()


def test_a_write_from_a_folder_that_is_kept_out_is_refused(world: World) -> None:
    fresh = world.scratch.checkout("fresh")
    (fresh / ".vaultd.toml").write_text("enabled = false\n")
    with pytest.raises(UsageError, match="kept out by"):
        world.service.write_page(Scope(cwd=str(fresh)), Page("notes/x", "Text."))
    assert not world.page("projects/fresh").exists()


def test_handoffs_are_begun_listed_taken_once_and_cancelled(world: World) -> None:
    begun = world.service.handoff_begin(
        world.here, "Look at the loader", questions=["Why thrice?"], next_steps=["Measure"], files=["src/app.py"]
    )
    listed = world.service.handoff_list(world.here)["handoffs"]
    assert listed[0]["id"] == begun["id"] and len(listed) == 2  # by hand before the session's own
    taken = world.service.handoff_accept(world.here)
    assert taken["id"] == begun["id"] and "Why thrice?" in taken["text"]
    assert taken["text"].startswith("<untrusted-history>")
    with pytest.raises(ConflictError):
        world.service.handoff_accept(world.here, begun["id"])
    with pytest.raises(NotFoundError):
        world.service.handoff_cancel(world.here, "m-0000000000")
    left = world.service.handoff_list(world.here)["handoffs"][0]
    assert world.service.handoff_cancel(world.here, left["id"])["path"].startswith("projects/shop/handoffs/expired/")
    with pytest.raises(NotFoundError, match="No handoff waits"):
        world.service.handoff_accept(world.here)


def test_a_handoff_of_another_project_cannot_be_taken_or_cancelled(world: World) -> None:
    other = world.scratch.checkout("other")
    world.scratch.session(other)
    Passes(world.scratch.stores()).drain()
    mine = world.service.handoff_list(world.here)["handoffs"][0]["id"]
    for call in (world.service.handoff_accept, world.service.handoff_cancel):
        with pytest.raises(NotFoundError):
            call(Scope(cwd=str(other)), mine)


def test_what_was_recorded_of_a_session_is_told(world: World) -> None:
    row = world.service.sessions(world.here)["sessions"][0]
    for name in (row["session_id"], row["id"], row["path"]):
        told = world.service.observations(world.here, name)
        assert told["project"] == "shop" and told["total"] == len(told["observations"]) >= 5
    prompts = world.service.observations(world.here, row["session_id"], kinds=["prompt"])["observations"]
    assert [p["text"] for p in prompts] == ["Mend the price loader"]
    found = world.service.observations(world.here, row["session_id"], text="NO RULE for", newest_first=True)
    assert found["total"] == 1 and found["observations"][0]["ok"] is False
    with pytest.raises(NotFoundError):
        world.service.observations(world.here, "nobody")


def test_a_briefing_has_handoffs_recent_and_pinned_pages(world: World) -> None:
    world.service.write_page(world.here, Page("_rules/tabs", "Use tabs.", pinned=True))
    world.service.query(world.here, "tabs")
    told = world.service.briefing(world.here)
    assert [p["path"] for p in told["pinned"]] == ["projects/shop/_rules/tabs.md"]
    assert len(told["handoffs"]) == 1 and told["recent"][0]["path"] == "projects/shop/_rules/tabs.md"
    assert all(p["kind"] not in ("handoff", "log", "project") for p in told["recent"])


def test_a_page_is_read_by_path_name_session_and_query(world: World) -> None:
    world.service.write_page(world.here, Page("gotchas/okapi", "The okapi bites.", title="On okapis"))
    for path, query in (("gotchas/okapi", ""), ("okapi", ""), ("", "okapi bites")):
        told = world.service.read_page(world.here, path, query)
        assert told["path"] == "projects/shop/gotchas/okapi.md" and told["title"] == "On okapis"
        assert "The okapi bites." in told["text"] and told["project"] == "shop"
    row = world.service.sessions(world.here)["sessions"][0]
    assert world.service.read_page(world.here, row["session_id"])["path"] == row["path"]


def test_a_page_for_every_project_lies_apart(world: World) -> None:
    told = world.service.write_page(world.here, Page("style", "Write plainly, says the ibex.", everywhere=True))
    assert told["path"] == "_global/style.md"
    answer = world.service.query(world.here, "ibex")
    assert answer["hits"] == [] and [h["path"] for h in answer["global_hits"]] == ["_global/style.md"]


def test_frontmatter_in_the_text_counts_and_a_foreign_key_is_refused(world: World) -> None:
    text = "---\ntitle: Of text\ntags: [x]\n---\nBody.\n"
    told = world.service.write_page(world.here, Page("notes/a", text, title="Of argument"))
    values = frontmatter.parse(world.page(told["path"]).read_bytes()).meta.values
    assert values["title"] == "Of argument" and values["tags"] == ["x"] and "created" in values
    with pytest.raises(UsageError, match="'mood' is not a key"):
        world.service.write_page(world.here, Page("notes/b", "---\nmood: x\n---\nBody.\n"))
    with pytest.raises(UsageError, match="empty"):
        world.service.write_page(world.here, Page("notes/c", "   "))


def test_a_page_that_an_editor_has_open_is_left_and_the_client_told(world: World) -> None:
    told = world.service.write_page(world.here, Page("notes/x", "One."))
    world.commit()
    with world.page(told["path"]).open("r+b"), pytest.raises(ConflictError, match="open in an editor"):
        world.service.write_page(world.here, Page("notes/x", "Two."))
    assert "One." in world.page(told["path"]).read_text()


def test_status_and_routing_name_the_project(world: World) -> None:
    assert world.service.status(world.here)["project"] == "shop"
    assert world.service.status(Scope())["project"] == ""
    assert "memory_query" in world.service.routing(world.here)["text"]


def test_reads_list_and_page(world: World) -> None:
    told = world.service.pages(world.here, limit=2)
    assert told["total"] > 2 and len(told["pages"]) == 2
    rest = world.service.pages(world.here, limit=100, offset=2)["pages"]
    assert len(rest) == told["total"] - 2
    assert [p["slug"] for p in world.service.projects()["projects"]] == ["shop"]
    for limit, offset in ((0, 0), (1001, 0), (5, -1)):
        with pytest.raises(UsageError):
            world.service.pages(world.here, limit=limit, offset=offset)


def test_the_prepared_text_is_claimed_by_nobody(world: World) -> None:
    text = world.service.prepared(world.here, "codex")
    assert text == world.service.prepared(world.here, "codex") and "Mend the price loader" in text
    with pytest.raises(UsageError):
        world.service.prepared(world.here, "nobody")


def test_calls_from_many_threads_give_each_its_answer(world: World) -> None:
    def work(number: int) -> list[str]:
        word = "gnu" + "abcdefghijkl"[number] * 4
        world.service.write_page(world.here, Page(f"notes/n{number}", f"About {word}."))
        return world.query(word)

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(work, range(12)))
    assert found == [[f"projects/shop/notes/n{n}.md"] for n in range(12)]


def test_every_error_of_the_service_is_one_of_ours(world: World) -> None:
    calls: list[Callable[[], object]] = [
        lambda: world.service.query(world.here, "x", Search(limit=0)),
        lambda: world.service.read_page(world.here),
        lambda: world.service.read_page(world.here, "nothing-there"),
        lambda: world.service.query(Scope(cwd="relative"), "x"),
        lambda: world.service.write_page(world.here, Page("notes/x", "x", tier="golden")),
    ]
    for call in calls:
        with pytest.raises(VaultdError):
            call()


def test_a_vault_that_is_away_does_not_look_empty(world: World) -> None:
    away = world.scratch.vault.with_name("away")
    before = world.query("price loader")
    assert before
    world.scratch.vault.rename(away)
    for call in (lambda: world.query("price loader"), lambda: world.service.read_page(world.here, before[0])):
        with pytest.raises(NoVaultError, match="There is no vault at"):
            call()
    assert not world.service.health().ok
    away.rename(world.scratch.vault)
    assert world.query("price loader") == before


def test_a_huge_page_is_pending_until_it_is_in(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert world.query("price loader")
    world.page("notes").mkdir()
    world.page("notes/huge.md").write_text("heron " * 60_000)
    world.live.touched(["notes/huge.md"])
    asked, bring_in = Search(everywhere=True), Reconcile.bring_in
    assert world.service.query(Scope(), "heron", asked)["pending"] == 1
    seen = []

    def watched(self: Reconcile, paths: Sequence[str]) -> None:
        seen.append(world.live._behind)
        bring_in(self, paths)

    monkeypatch.setattr(Reconcile, "bring_in", watched)
    world.live.bring_named()
    assert seen == [1]
    told = world.service.query(Scope(), "heron", asked)
    assert told["pending"] == 0 and [hit["path"] for hit in told["hits"]] == ["notes/huge.md"]
