"""Answers and pages as a client gets them: the service on a real vault of two projects and pages outside of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.embedders import EmbeddingsServer
from tests.scratch import Scratch
from vaultd.core.passages import lines_of
from vaultd.engine import answers
from vaultd.engine.answers import Hit
from vaultd.engine.embedding import bring_up, embedder_of, open_vectors, revisions
from vaultd.engine.health import Pulse
from vaultd.engine.live import Live
from vaultd.engine.local import LocalService
from vaultd.engine.nearby import nearby_of
from vaultd.engine.service import Reply, Scope, Search
from vaultd.errors import NotFoundError, RefusedError, UsageError

SHOP, LAB = Scope(project="shop"), Scope(project="lab")


@dataclass
class World:
    """The vault, and the service on it."""

    scratch: Scratch
    live: Live
    service: LocalService

    def put(self, path: str, body: str, **values: str) -> None:
        head = "".join(f"{key}: {value}\n" for key, value in values.items())
        page = self.scratch.vault / path
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f"---\n{head}---\n{body}" if head else body, "utf-8")

    def ask(self, text: str, scope: Scope = SHOP, **more: Any) -> Reply:
        return self.service.query(scope, text, Search(**more))

    def paths(self, text: str, scope: Scope = SHOP, part: str = "hits", **more: Any) -> list[str]:
        return [hit["path"] for hit in self.ask(text, scope, **more)[part]]

    def read(self, path: str = "", scope: Scope = SHOP, **more: Any) -> Reply:
        return self.service.read_page(scope, path, **more)


@pytest.fixture
def world(scratch: Scratch) -> Iterator[World]:
    stores = scratch.init()
    for name, number in (("shop", 1), ("lab", 2)):
        page = scratch.vault / f"projects/{name}/project.md"
        page.parent.mkdir(parents=True)
        page.write_text(f"---\nkind: project\nid: p-{number:012x}\ntitle: {name}\n---\n")
    live = Live(stores)
    yield World(scratch, live, LocalService(scratch.stores, live, Pulse(), lambda _: None, nearby_of(stores.config)))
    live.close()


SECTIONS = """\
# Birds
intro

## Heron
The heron stands in water. ^stand

## Soup
Nothing of it here.

## Both
heron kestrel together, a heron and a kestrel
"""


# Passages and their places


def test_the_passages_of_a_hit_say_where_they_are_and_the_first_is_the_hits_own(world: World) -> None:
    world.put("projects/shop/notes/a.md", SECTIONS, title="Fowl")
    (hit,) = world.ask("stands kestrel")["hits"]
    assert [part["anchor"] for part in hit["passages"]] == ["#^stand", "#Both"]
    assert hit["passages"][0] == {
        "anchor": hit["anchor"],
        "snippet": hit["snippet"],
        "score": hit["passages"][0]["score"],
    }
    assert hit["snippet"] == "The heron stands in water."
    scores = [part["score"] for part in hit["passages"]]
    assert scores == sorted(scores, reverse=True)
    assert hit["project"] == "shop" and hit["title"] == "Fowl"
    for part in hit["passages"]:
        assert part["snippet"] in world.read(hit["path"] + part["anchor"])["text"]


def test_passages_of_all_hits_are_no_more_than_the_limit_but_each_hit_has_one(world: World) -> None:
    for name in "abc":
        world.put(f"projects/shop/notes/{name}.md", "".join(f"# {name}{n}\nheron {n}\n" for n in range(6)))
    hits = world.ask("heron", limit=3)["hits"]
    assert len(hits) == 3 and all(hit["passages"] for hit in hits)
    told = world.ask("heron", limit=10)["hits"]
    assert sum(len(hit["passages"]) for hit in told) >= 10


def test_a_page_found_by_its_title_shows_its_beginning(world: World) -> None:
    world.put("projects/shop/notes/a.md", "First words.\n\nOther words.\n", title="Heron")
    world.put("projects/shop/notes/b.md", "", title="Heron empty")
    hits = {hit["path"][-4:]: hit for hit in world.ask("heron")["hits"]}
    assert (hits["a.md"]["anchor"], hits["a.md"]["snippet"]) == ("", "First words.")
    assert [part["snippet"] for part in hits["b.md"]["passages"]] == [""]


def test_a_page_that_changed_or_vanished_after_it_was_indexed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.put("projects/shop/notes/a.md", SECTIONS)
    world.put("projects/shop/notes/b.md", "one kestrel, one heron")
    assert len(world.paths("heron kestrel")) == 2
    monkeypatch.setattr(world.live, "catch_up", lambda: 1)  # as if it had not been seen yet
    page = world.scratch.vault / "projects/shop/notes/a.md"
    for now in (b"", b"short", b"\xff\xfe\0", b"---\n---\n", b"a heron\n\n# X\n\nmoved heron kestrel\n", None):
        if now is None:
            page.unlink()
        else:
            page.write_bytes(now)
        told = world.ask("heron kestrel", pinned_first=True)
        hits = {hit["path"][-4:]: hit for hit in told["hits"]}
        assert "b.md" in hits and told["pending"] == 1
        assert ("a.md" in hits) == (now is not None)
        for hit in hits.values():
            assert hit["passages"] and hit["snippet"] == hit["passages"][0]["snippet"]
            body = (world.scratch.vault / hit["path"]).read_bytes().decode("utf-8", "replace")
            assert not hit["anchor"] or hit["anchor"].lstrip("#^") in body


# How much


def size(hits: list[Reply]) -> int:
    """Bytes that hits take, as `Hit.size` reckons."""
    parts = [[p for part in hit["passages"] for p in (part["anchor"], part["snippet"])] for hit in hits]
    own = [[hit["path"], hit["title"], hit["kind"], hit["updated"]] for hit in hits]
    return sum(len(text.encode()) for row in (*parts, *own) for text in row)


def test_the_budget_is_kept_and_what_is_left_out_is_counted(world: World) -> None:
    for number in range(6):
        text = "".join(f"# Part {n} of {number}\nheron {n} änd more of it {'x' * 60}\n" for n in range(3))
        for folder in ("projects/shop/notes", "_global", "notes"):
            world.put(f"{folder}/n{number}.md", text)
    everything = world.ask("heron", limit=6)
    names = ("hits", "global_hits", "other_hits")
    count, whole = sum(len(everything[name]) for name in names), sum(size(everything[name]) for name in names)
    assert (count, everything.get("cut", 0)) == (18, 0)
    for tokens in (1, 20, 60, 100, 200, 400, 800, whole // 4, whole // 4 + 1):
        told = world.ask("heron", limit=6, tokens=tokens)
        left = [hit for name in names for hit in told[name]]
        assert told.get("cut", 0) == count - len(left)
        assert left[0]["path"] == everything["hits"][0]["path"] and all(hit["passages"] for hit in left)
        assert size(left) <= tokens * 4 or (len(left) == 1 and len(left[0]["passages"]) == 1)
        paths = [hit["path"] for name in names for hit in everything[name]]
        assert [hit["path"] for hit in left] == paths[: len(left)]
    assert world.ask("heron", limit=6, tokens=whole // 4 + 1)["hits"] == everything["hits"]


def test_what_does_not_fit_in_the_first_list_leaves_no_room_for_the_next(world: World) -> None:
    world.put("projects/shop/notes/a.md", "heron " + "x" * 200)
    world.put("_global/b.md", "heron")
    told = world.ask("heron", tokens=1)
    assert (len(told["hits"]), told["global_hits"], told.get("cut")) == (1, [], 1)


def test_a_limit_out_of_bounds(world: World) -> None:
    for limit in (0, -1, 101):
        with pytest.raises(UsageError, match="1 to 100"):
            world.ask("heron", limit=limit)


# Pinned pages


def test_pinned_pages_stand_in_front_once_and_only_those_of_the_projects_asked(world: World) -> None:
    world.put("projects/shop/notes/a.md", "a heron, a heron")
    world.put("projects/shop/notes/p.md", "use tabs", pinned="true")
    world.put("projects/shop/notes/q.md", "one heron among others", pinned="true")
    world.put("projects/lab/notes/l.md", "lab rule", pinned="true")
    world.put("projects/shop/notes/old.md", "out of date", pinned="true", expires_at="2020-01-01")
    front = ["projects/shop/notes/p.md", "projects/shop/notes/q.md"]
    told = world.ask("heron", pinned_first=True)
    assert [hit["path"] for hit in told["hits"]] == [*front, "projects/shop/notes/a.md"]
    assert (told["hits"][0]["snippet"], told["hits"][0]["score"]) == ("use tabs", 0)
    assert world.paths("heron")[0] == "projects/shop/notes/a.md"
    assert "projects/shop/notes/old.md" in world.paths("heron", pinned_first=True, expired=True)
    assert world.paths("zebra", pinned_first=True) == front
    assert world.paths("zebra", pinned_first=True, everywhere=True) == ["projects/lab/notes/l.md", *front]


def test_no_more_than_ten_pinned_pages_are_put_in_front(world: World) -> None:
    for number in range(12):
        values = {"expires_at": "2020-01-01"} if number == 0 else {}
        world.put(f"projects/shop/notes/n{number:02}.md", "use tabs", pinned="true", **values)
    assert world.paths("zebra", pinned_first=True) == [f"projects/shop/notes/n{n:02}.md" for n in range(1, 11)]


# Where


def test_the_projects_that_are_asked(world: World) -> None:
    for path in ("projects/shop/a.md", "projects/lab/b.md", "_global/c.md", "outside/d.md"):
        world.put(path, "a heron")
    told = world.ask("heron")
    assert told["project"] == "shop"
    lists = [[hit["path"] for hit in told[name]] for name in ("hits", "global_hits", "other_hits")]
    assert lists == [["projects/shop/a.md"], ["_global/c.md"], ["outside/d.md"]]
    both = ["projects/lab/b.md", "projects/shop/a.md"]
    assert sorted(world.paths("heron", projects=["lab"])) == both
    assert sorted(world.paths("heron", projects=["lab", "shop"])) == both
    assert world.paths("heron", Scope(), projects=["lab"]) == ["projects/lab/b.md"]
    assert sorted(world.paths("heron", everywhere=True)) == ["_global/c.md", "outside/d.md", *both]
    assert {hit["project"] for hit in world.ask("heron", projects=["lab"])["hits"]} == {"shop", "lab"}
    outside = Scope(cwd=str(world.scratch.base))
    assert world.paths("heron", outside) == ["outside/d.md"] and world.paths("heron", outside, "other_hits") == []
    assert world.paths("heron", outside, "global_hits") == ["_global/c.md"]
    for scope, projects in ((SHOP, ["nowhere"]), (Scope(project="nowhere"), [])):
        with pytest.raises(NotFoundError):
            world.ask("heron", scope, projects=projects)
    with pytest.raises(UsageError):
        world.ask("heron", Scope())


def test_filters_reach_the_index(world: World) -> None:
    world.put("projects/shop/a.md", "a heron", kind="decision", status="done")
    world.put("projects/shop/b.md", "a heron", kind="gotcha", superseded_by="a")
    world.put("projects/shop/c.md", "a heron", expires_at="2020-01-01")
    assert world.paths("heron") == ["projects/shop/a.md"]
    assert world.paths("heron", superseded=True) == ["projects/shop/a.md", "projects/shop/b.md"]
    assert "projects/shop/c.md" in world.paths("heron", expired=True)
    assert world.paths("heron", where={"kind": ["gotcha"]}) == ["projects/shop/b.md"]


def test_a_replaced_page_names_what_replaced_it(world: World) -> None:
    world.put("projects/shop/a.md", "a heron", superseded_by='"[[b]]"')
    world.put("projects/shop/c.md", "an egret", status="superseded")
    (hit,) = world.ask("heron")["hits"]
    assert (hit["superseded"], hit["superseded_by"]) == (True, "[[b]]")
    (hit,) = world.ask("egret")["hits"]
    assert hit["superseded"] and "superseded_by" not in hit


def test_why_is_told_only_when_asked(world: World) -> None:
    world.put("projects/shop/a.md", "a heron")
    assert "why" not in world.ask("heron")["hits"][0]
    (hit,) = world.ask("heron kestrel", explain=True)["hits"]
    parts = {name: part for name, part in hit["why"].items() if isinstance(part, dict)}
    assert hit["why"]["matched"] == ["heron"] and set(parts) == {"text", "passage"}
    assert all(part["rank"] == 1 and part["score"] > 0 for part in parts.values())
    assert hit["score"] == pytest.approx(
        sum(part["adds"] for part in parts.values()) * hit["why"]["authority"], abs=1e-3
    )


def test_the_entities_that_a_query_names(world: World) -> None:
    world.put("projects/shop/a.md", "a heron", tags="[bird/heron, soup]", entities="[HeronClient, other]")
    (hit,) = world.ask("the heron client of birds", explain=True)["hits"]
    assert hit["why"]["entities"] == ["bird/heron", "HeronClient"]


def test_the_size_of_a_hit_is_in_bytes() -> None:
    hit = Hit("ä", "#a", "t", "", "k", "", 1.0, "s", "u", passages=[answers.Passage("#a", "ß\ud800", 1.0)])
    assert hit.size == 2 + 3 + 2 + 2 + 1


# Meaning


def test_without_an_answer_of_the_endpoint_words_must_do_and_the_note_says_so(scratch: Scratch) -> None:
    settings = scratch.home / ".config/vaultd/config.toml"
    settings.parent.mkdir(parents=True)
    with EmbeddingsServer() as server:
        settings.write_text(f'[vectors]\nprovider = "endpoint"\nurl = "{server.url}"\nmodel = "m"\n')
        stores = scratch.init()
        live = Live(stores)
        service = LocalService(scratch.stores, live, Pulse(), lambda _: None, nearby_of(stores.config))
        made = World(scratch, live, service)
        outside = Scope(cwd=str(scratch.base))
        made.put("notes/a.md", "A heron stands.")
        made.put("notes/b.md", "Soup of beans.")
        count = len(list(scratch.stores().vault.scan()))
        assert f"{count} pages have no current vector yet" in made.ask("heron", outside)["note"]
        embedder = embedder_of(stores.config)
        assert embedder is not None
        bring_up(stores, embedder, open_vectors(stores.config, embedder), revisions(live.index))
        told = made.ask("heron", outside, explain=True)
        assert "note" not in told and told["hits"][0]["why"]["vector"]["adds"] == pytest.approx(0.35)
        server.answers = [(500, {})] * 9
        told = made.ask("a heron again", outside, explain=True)
        assert told["note"].startswith("Only words were searched: ") and "vector" not in told["hits"][0]["why"]
        assert [hit["path"] for hit in told["hits"]] == ["notes/a.md"]
    assert made.ask("one more heron", outside)["note"].startswith("Only words were searched: ")
    live.close()


# Pages


def test_a_part_of_a_page_by_anchor_block_and_lines(world: World) -> None:
    world.put("projects/shop/notes/a.md", SECTIONS, title="Fowl", kind="note")
    whole = world.read("notes/a")
    assert (whole["lines"], whole["of"]) == ("1-15", 15) and whole["text"].endswith(SECTIONS)
    rows = lines_of(whole["text"])
    ways: list[dict[str, Any]] = [
        {"path": "notes/a#Heron"},
        {"path": "notes/a.md#heron"},
        {"path": "a", "anchor": "#Birds#Heron"},
        {"path": "projects/shop/notes/a.md", "anchor": "Heron"},
        {"path": "[[a#Heron]]"},
        {"path": "shop:a#Heron"},
        {"path": "a#Soup", "anchor": "#Heron"},
        {"path": "a", "lines": "8-10"},
    ]
    for given in ways:
        told = world.read(**given)
        assert (told["lines"], told["of"]) == ("8-10", 15), given
        assert lines_of(told["text"])[:-1] == rows[7:10]
    assert world.read("[[a#^stand]]")["lines"] == world.read("a", anchor="^stand")["lines"] == "8-10"
    assert world.read("a#Both")["lines"] == "14-15"
    assert world.read("a", lines="15-99")["text"] == rows[14] + "\n"
    for anchor in ("#Nowhere", "#^none", "#Heron#Soup"):
        with pytest.raises(NotFoundError, match="has no"):
            world.read("a", anchor=anchor)
    for lines in ("0", "16", "3-1", "x"):
        with pytest.raises(UsageError, match="lines 1-15"):
            world.read("a", lines=lines)


def test_odd_pages_are_read_whole_and_in_part(world: World) -> None:
    crlf = "\ufeff---\r\ntitle: x\r\n---\r\n# A\r\nb\r\n".encode()
    world.put("projects/shop/x.md", "")
    for data in (b"", b"\n", b"one", crlf, b"\xff\n# A\nb"):
        (world.scratch.vault / "projects/shop/x.md").write_bytes(data)
        told = world.read("x")
        assert told["lines"] == f"1-{told['of']}"
        assert told["text"] == data.decode("utf-8", "replace").removeprefix("\ufeff")
        if b"# A" in data:
            assert lines_of(world.read("x#A")["text"])[:2] == ["# A", "b"]


def test_a_hit_can_be_read_whatever_signs_its_name_has(world: World) -> None:
    for name in ("What now?", "C# at work", "a: b", "x.md#y"):
        world.put(f"projects/shop/notes/{name}.md", "# Heron's nest, #2\nheron\n")
    hits = world.ask("heron")["hits"]
    assert len(hits) == 4
    for hit in hits:
        assert world.read(hit["path"])["path"] == hit["path"]
    for name in ("C# at work", "What now?"):
        assert world.read(f"projects/shop/notes/{name}.md", anchor=hits[0]["anchor"])["lines"] == "1-2"


def test_a_page_of_another_project(world: World) -> None:
    world.put("projects/shop/notes/a.md", "ours")
    world.put("projects/lab/notes/a.md", "theirs")
    assert world.read("lab:notes/a")["text"] == world.read("[[lab:notes/a]]")["text"] == "theirs"
    assert world.read("projects/lab/notes/a.md")["project"] == "lab"
    assert world.read("notes/a")["text"] == "ours"
    assert world.read("lab:notes/a", Scope())["text"] == "theirs"
    for name in ("nowhere:a", "lab:none", ":a"):
        with pytest.raises((NotFoundError, RefusedError)):
            world.read(name)


def test_the_page_that_answers_best_may_be_one_that_holds_everywhere(world: World) -> None:
    world.put("projects/shop/notes/a.md", "A heron, and a good deal of other words.")
    world.put("_global/style.md", "heron style guide", title="Heron style guide")
    assert world.read(query="heron style guide")["path"] == "_global/style.md"
    assert world.read(query="good deal of other words")["path"] == "projects/shop/notes/a.md"
    with pytest.raises(NotFoundError):
        world.read(query="zebra")


def test_the_pages_around_a_page(world: World) -> None:
    for name, links in {
        "a": "[[c]] [[b]] [[none]]",
        "b": "[[d]]",
        "c": "[[a]]",
        "d": "[[e]]",
        "e": "",
        "f": "[[a#X|x]]",
    }.items():
        world.put(f"projects/shop/{name}.md", links)
    rows = world.read("a", related=3)["related"]
    assert [(row["path"][-4], row["hops"], row["by"][-4]) for row in rows] == [
        *(("b", 1, "a"), ("c", 1, "a"), ("f", 1, "a"), ("d", 2, "b"), ("e", 3, "d"))
    ]
    assert set(rows[0]) == {"path", "title", "kind", "hops", "by"}
    assert [row["path"][-4] for row in world.read("a", related=1)["related"]] == ["b", "c", "f"]
    assert "related" not in world.read("a") and world.read("e", related=1)["related"][0]["path"][-4] == "d"
    for hops in (-1, 4):
        with pytest.raises(UsageError, match="0 to 3"):
            world.read("a", related=hops)


def test_no_more_than_fifty_pages_around_a_page(world: World) -> None:
    for number in range(60):
        world.put(f"projects/shop/n{number:02}.md", "[[hub]]")
    world.put("projects/shop/hub.md", "")
    rows = world.read("hub", related=2)["related"]
    assert [row["path"] for row in rows] == [f"projects/shop/n{n:02}.md" for n in range(50)]
