"""The outbox: what a hook finds there, in which order it is written and taken away, and that it stays in its place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agents.recorded import an
from tests.scratch import Scratch, git
from vaultd.agents import render
from vaultd.core.prepared import Prepared
from vaultd.core.sanitize import line, redact
from vaultd.store import fs
from vaultd.store.outbox import Claim, Offer, Outbox

SHAPE = "session-start-json"


def offer(name: str, text: str = "hello") -> Offer:
    claim = Claim(f"/v/open/{name}.md", f"/v/accepted/{name}.md", line("native-1", 100))
    return Offer(claim, {SHAPE: render(an("codex"), SHAPE, redact(text))})


def files(outbox: Outbox) -> dict[str, bytes]:
    return {p.relative_to(outbox.at).as_posix(): p.read_bytes() for p in outbox.at.rglob("*") if p.is_file()}


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    return Outbox(tmp_path / "room")


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is written and removed, by name, in order."""
    done: list[str] = []
    write, remove = fs.write_private, fs.remove

    def written(path: Path, data: bytes) -> None:
        done.append(f"write {path.name}")
        write(path, data)

    def removed(path: Path) -> None:
        done.append(f"remove {path.name}")
        remove(path)

    monkeypatch.setattr(fs, "write_private", written)
    monkeypatch.setattr(fs, "remove", removed)
    return done


def test_an_offer_is_a_claim_of_five_lines_and_the_text_of_each_shape(outbox: Outbox) -> None:
    claim = Claim("/v/open/a.md", "/v/accepted/a.md", line("native\n1", 100), "12 345 boot", 1795982852)
    outbox.offer("/w/p", "", Offer(claim, {SHAPE: render(an("codex"), SHAPE, redact("héllo"))}))
    assert files(outbox) == {
        "w/p/@vaultd/claim": b"/v/open/a.md\n/v/accepted/a.md\nnative 1\n12 345 boot\n1795982852\n",
        f"w/p/@vaultd/{SHAPE}": '{"hookSpecificOutput": {"hookEventName": "SessionStart", '
        '"additionalContext": "héllo"}}\n'.encode(),
    }
    assert {p.stat().st_mode & 0o777 for p in outbox.at.rglob("*") if p.is_file()} == {0o600}


def test_paths_that_are_not_utf8_are_kept_byte_for_byte(outbox: Outbox) -> None:
    name = os.fsdecode(b"caf\xe9")
    outbox.offer(f"/w/{name}", "", Offer(Claim(f"/{name}/a.md", "/b.md", line("n", 9)), {}))
    found = list(outbox.at.rglob("claim"))
    assert os.fsencode(found[0]).endswith(b"/w/caf\xe9/@vaultd/claim")
    assert found[0].read_bytes().startswith(b"/caf\xe9/a.md\n")


def test_the_claim_is_written_last_and_removed_first(outbox: Outbox, steps: list[str]) -> None:
    outbox.offer("/w/p", "", offer("a"))
    assert steps == ["remove claim", f"write {SHAPE}", "write claim"]
    steps.clear()
    outbox.withdraw("/w/p", "")
    assert steps == ["remove claim", f"remove {SHAPE}"]


def test_what_stands_there_already_is_left_alone(outbox: Outbox, steps: list[str]) -> None:
    outbox.offer("/w/p", "", offer("a"))
    steps.clear()
    outbox.offer("/w/p", "", offer("a"))
    assert steps == []
    outbox.offer("/w/p", "", offer("a", "newer text"))
    assert steps == [f"write {SHAPE}"]


def test_no_handoff_is_claimable_with_the_text_of_another(outbox: Outbox, steps: list[str]) -> None:
    outbox.offer("/w/p", "", offer("a"))
    steps.clear()
    outbox.offer("/w/p", "", offer("b", "text of b"))
    assert steps == ["remove claim", f"write {SHAPE}", "write claim"]


def test_withdrawing_nothing_is_fine(outbox: Outbox) -> None:
    outbox.withdraw("/never/offered", "")
    outbox.offer("/w/p", "", offer("a"))
    outbox.withdraw("/w/p/@vaultd/claim", "")  # a file where a folder should be
    outbox.withdraw("/w/p", "sub")
    assert outbox.offered("/w/p") == {""}


def test_offered_places_by_checkout(outbox: Outbox) -> None:
    for checkout, subdir in [("/w/p", ""), ("/w/p", "a"), ("/w/p", "a/b/c"), ("/w/q", ""), ("/w/p2", "")]:
        outbox.offer(checkout, subdir, offer("x"))
    assert outbox.offered("/w/p") == {"", "a", "a/b/c"}
    assert outbox.offered("/w/p/a") == {"", "b/c"}
    assert outbox.offered("/nowhere") == set()
    (outbox.folder("/w/p", "a") / "claim").unlink()
    assert outbox.offered("/w/p") == {"", "a/b/c"}


def test_a_checkout_inside_another_is_its_own(outbox: Outbox) -> None:
    for checkout in ("/w/p", "/w/p/vendor/q", "/w/p/vendor/q2"):
        outbox.offer(checkout, "", offer("x"))
        outbox.offer(checkout, "sub", offer("x"))
    others = ["/w/p", "/w/p/vendor/q", "/w", "/"]
    assert outbox.offered("/w/p", others) == {"", "sub", "vendor/q2", "vendor/q2/sub"}
    assert outbox.offered("/w/p/vendor/q", others) == {"", "sub"}


def test_clearing_keeps_the_places_named(outbox: Outbox) -> None:
    for checkout, subdir in [("/w/p", ""), ("/w/p", "a"), ("/w/q", "")]:
        outbox.offer(checkout, subdir, offer("x"))
    outbox.clear(keep=[("/w/p", "a"), ("/never", "")])
    assert outbox.offered("/") == {"w/p/a"}
    outbox.clear()
    assert files(outbox) == {}
    Outbox(outbox.at / "not there").clear()


PARTS = st.lists(st.sampled_from(["", ".", "..", "a", "é", "@vaultd", " "]), max_size=6).map("/".join)


@given(PARTS, PARTS)
def test_no_place_leads_out_of_the_outbox(checkout: str, subdir: str) -> None:
    outbox = Outbox(Path("/room"))
    folder = os.path.normpath(outbox.folder(f"/{checkout}", subdir))
    assert folder.startswith("/room/outbox/at/")
    assert folder.endswith("/@vaultd")


@pytest.mark.parametrize(
    ("checkout", "subdir", "takes"),
    [
        ("/w/p", "", True),
        ("/w/p", "a/b", True),
        ("/w/with space\nand line", "", True),
        (os.fsdecode(b"/w/caf\xe9"), "", True),
        ("/w/" + "x" * 255, "", True),
        ("relative", "", False),
        ("", "", False),
        ("/w/../etc", "", False),
        ("/w/./p", "", False),
        ("/w/p", "../q", False),
        ("/w/@vaultd/p", "", False),
        ("/w/p", "@vaultd", False),
        ("/w/x@vaultd", "", True),
        ("/w/\0", "", False),
        ("/w/\ud800", "", False),
        ("/w/" + "x" * 256, "", False),
        ("/w/" + "é" * 128, "", False),
        ("/w" * 2000, "", False),
    ],
)
def test_places_that_can_be_mirrored(tmp_path: Path, checkout: str, subdir: str, takes: bool) -> None:
    outbox = Outbox(tmp_path)
    assert outbox.takes(checkout, subdir) == takes
    if takes:
        outbox.offer(checkout, subdir, offer("a"))
        assert outbox.offered(checkout) == {subdir}


def test_the_map_says_exactly_what_it_is_given(outbox: Outbox, steps: list[str]) -> None:
    outbox.write_map({"a.Start": "shape start -", "a.Stop": "- - drain"}, "/bin/vaultd")
    assert {p.name: p.read_bytes() for p in outbox.map.iterdir()} == {
        "a.Start": b"shape start -\n",
        "a.Stop": b"- - drain\n",
        "command": b"/bin/vaultd\n",
    }
    steps.clear()
    outbox.write_map({"a.Start": "shape start -", "a.Stop": "- - -"}, "/bin/vaultd")
    assert steps == ["write a.Stop"]
    outbox.write_map({"a.Start": "shape start -"}, "/bin/vaultd")
    assert sorted(p.name for p in outbox.map.iterdir()) == ["a.Start", "command"]


def test_a_file_that_another_process_is_writing_into_the_map_is_left_to_it(outbox: Outbox) -> None:
    outbox.write_map({}, "vaultd")
    temp = outbox.map / f"{fs.TEMP_PREFIX}0123456789abcdef"
    temp.write_bytes(b"half")
    outbox.write_map({}, "vaultd")
    assert temp.exists()


def test_only_one_function_makes_prepared_bytes() -> None:
    root = Path(__file__).parent.parent.parent / "vaultd"
    makers = {p.relative_to(root).as_posix() for p in root.rglob("*.py") if "Prepared(" in p.read_text("utf-8")}
    assert makers == {"agents/shapes.py"}
    assert Prepared(b"x") == b"x"


def test_a_repository_inside_another_keeps_its_offer(scratch: Scratch) -> None:
    stores = scratch.init()
    outer = scratch.checkout("outer")
    inner = scratch.checkout("outer/inner")
    scratch.session(inner)
    scratch.run("ingest", check=True)
    assert stores.outbox.offered(str(inner)) == {""}
    scratch.session(outer)
    scratch.run("ingest", check=True)
    assert (stores.outbox.folder(str(inner), "") / "claim").exists()
    assert (stores.outbox.folder(str(outer), "") / "claim").exists()
    git("checkout", "-q", "-b", "other", cwd=outer)
    scratch.session(outer)
    scratch.run("ingest", check=True)
    opened = [(stores.outbox.folder(str(place), "") / "claim").read_text().split("\n")[0] for place in (inner, outer)]
    assert [("/inner/" in opened[0]), ("/outer/" in opened[1])] == [True, True]


def test_checkouts_that_cannot_be_mirrored_hold_nothing_up(scratch: Scratch) -> None:
    odd = ["/a\\0b", "/../../../../tmp/x", "/" + "x" * 300, "/a/@vaultd/b"]
    stores, cwd = scratch.init(), scratch.checkout()
    scratch.session(cwd)
    scratch.run("ingest", check=True)
    page = next(scratch.vault.glob("projects/*/project.md"))
    text = page.read_text("utf-8")
    listed = "".join(f'  - "testhost:{path}"\n' for path in odd)
    page.write_text(text.replace("checkouts:\n", "checkouts:\n" + listed), "utf-8")
    assert page.read_text("utf-8") != text
    scratch.run("reindex", check=True)
    scratch.session(cwd)
    scratch.run("ingest", check=True)
    assert list(stores.outbox.at.rglob("claim")) == [stores.outbox.folder(str(cwd), "") / "claim"]
    assert not list(scratch.base.rglob("tmp/x"))
