"""The read-only interface: what it gives, how it refuses, and that no request is a fault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.http.served import Served, serving
from tests.scratch import Scratch
from vaultd.engine.service import Page, Scope
from vaultd.http.openapi import document
from vaultd.http.table import BASE, ROUTES


@pytest.fixture
def served(scratch: Scratch) -> Iterator[Served]:
    with serving(scratch) as served:
        yield served


def test_every_route_answers(served: Served) -> None:
    more = {"/search": "&query=loader", "/page": "&path=project", "/projects": ""}
    for route in ROUTES:
        path = route.path.replace("{session}", "one-session")
        query = "" if not route.scoped else "?project=shop" + more.get(route.path, "")
        told = served.ask(BASE + path + query)
        assert told.status == 200, (path, told.body)
        assert told.json.get("project", "shop") == "shop" and told.headers["content-type"].startswith(
            "application/json"
        )


def test_a_search_may_ask_for_the_past(served: Served) -> None:
    served.service.write_page(Scope("shop"), Page("notes/x", "An ibex."))
    path = f"{BASE}/search?project=shop&query=ibex&as_of="
    assert served.ask(path + "1999-12-31").status == 404
    assert served.ask(path + "last+week").status == 400
    bare, encoded = (served.ask(path + time) for time in ("2999-12-31T10:00+01:00", "2999-12-31T10:00%2B01:00"))
    assert bare.status == encoded.status == 200 and bare.json == encoded.json
    assert bare.json["as_of"]["commit"] and "as_of" not in served.ask(path).json


def test_the_description_is_made_of_the_table(served: Served) -> None:
    told = served.ask(f"{BASE}/openapi.json").json
    assert told == document() and set(told["paths"]) == {BASE + route.path for route in ROUTES}


def test_where_the_client_is_comes_from_a_parameter_or_a_header(served: Served) -> None:
    odd = served.scratch.checkout("Straße ü")
    served.service.write_page(Scope(cwd=str(odd)), Page("notes/x", "An ibex."))
    by_header = served.ask(f"{BASE}/search?query=ibex", headers={"X-Vaultd-Cwd": quote(str(odd))})
    by_parameter = served.ask(f"{BASE}/search?" + urlencode({"query": "ibex", "cwd": str(odd)}))
    assert by_header.json == by_parameter.json and by_header.json["hits"]
    nothing = served.ask(f"{BASE}/search?query=ibex")
    assert nothing.status == 400 and "Projects: shop" in nothing.json["error"]["message"]


@pytest.mark.parametrize(
    ("target", "status", "words"),
    [
        ("/search?project=shop", 400, "`query` is needed"),
        ("/search?project=shop&query=x&limit=0", 400, "from 1 to 100"),
        ("/search?project=shop&query=x&limit=1e3", 400, "whole number"),
        ("/search?project=shop&query=x&everywhere=maybe", 400, "true or false"),
        ("/search?project=shop&querry=x", 400, "There are: project, cwd, query"),
        ("/search?project=shop&query=%00", 400, "without NUL"),
        ("/search?project=nothing&query=x", 404, "Projects: shop"),
        ("/search?cwd=relative&query=x", 400, "absolute"),
        ("/page?project=shop&path=..%2F..%2Fetc%2Fpasswd", 403, "plain names"),
        ("/page?project=shop&path=.git%2Fconfig", 403, "plain names"),
        ("/page?project=shop&path=%2Fetc%2Fpasswd", 403, "plain names"),
        ("/page?project=shop&path=nothing", 404, "No page"),
        ("/page?project=shop", 400, "Say which page"),
        ("/sessions/nobody/observations?project=shop", 404, "Nothing is recorded"),
        ("/sessions/a%2F%00.md/observations?project=shop", 404, "Nothing is recorded"),
        ("/sessions/projects%2Fshop%2F..%2Fx.md/observations?project=shop", 404, "Nothing is recorded"),
        ("/page?project=shop&path=" + "x/" * 2040 + "y", 403, "plain names"),
        ("/sessions/one-session/observations?project=shop&kinds=odd", 400, "`kinds` must match"),
        ("/nothing", 404, "Not Found"),
    ],
)
def test_what_cannot_be_answered_is_said_in_words(served: Served, target: str, status: int, words: str) -> None:
    told = served.ask(BASE + target)
    assert told.status == status and words in told.json["error"]["message"]


def test_nothing_is_changed_by_it(served: Served) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        for route in ROUTES:
            told = served.ask(BASE + route.path.replace("{session}", "x"), method, "{}")
            assert told.status == 405 and "GET" in told.headers["allow"]


def test_a_page_that_has_not_changed_is_not_sent_again(served: Served) -> None:
    target = f"{BASE}/page?project=shop&path=project"
    tag = served.ask(target).headers["etag"]
    same = served.ask(target, headers={"If-None-Match": tag})
    assert same.status == 304 and same.body == b""
    page = served.scratch.vault / "projects/shop/project.md"
    page.write_text(page.read_text() + "\nMore.\n")
    assert served.ask(target, headers={"If-None-Match": tag}).status == 200


def test_the_prepared_handoff_is_given_to_whoever_asks_and_claimed_by_nobody(served: Served) -> None:
    first = served.ask("/handoff?agent=codex&project=shop")
    assert first.status == 200 and b"price loader" in first.body
    assert first.headers["content-type"].startswith("text/markdown")
    assert served.ask("/handoff?agent=codex&project=shop").body == first.body
    fresh = served.scratch.checkout("fresh")
    empty = served.ask(f"/handoff?agent=codex&cwd={fresh}")
    assert (empty.status, empty.body) == (200, b"")


def test_a_fault_of_ours_is_one_line_and_the_server_goes_on(served: Served) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("the words of a page")

    served.service.recent = fail  # type: ignore[method-assign]  # a fault
    told = served.ask(f"{BASE}/recent?project=shop")
    assert told.status == 500 and "words of a page" not in told.body.decode()
    assert served.ask(f"{BASE}/projects").status == 200


NAMES = [*sorted({p.name for route in ROUTES for p in route.query}), "odd"]
PATHS = [BASE + route.path.replace("{session}", "one-session") for route in ROUTES]
TEXTS = st.one_of(
    st.sampled_from(["shop", "loader", "1", "-1", "true", "/", "..", "%", "prompt", "9" * 30]), st.text(max_size=20)
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(PATHS), st.lists(st.tuples(st.sampled_from(NAMES), TEXTS), max_size=4), st.text(max_size=10))
def test_no_request_is_a_fault(served: Served, path: str, query: list[tuple[str, str]], tail: str) -> None:
    pairs = urlencode([(name, value.encode("utf-8", "surrogatepass")) for name, value in query])
    for target in (f"{path}?{pairs}", f"{path}/{quote(tail.encode('utf-8', 'surrogatepass'))}?{pairs}"):
        assert served.ask(target).status in (200, 400, 403, 404, 405, 409)
