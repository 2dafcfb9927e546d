"""The vault: pages made, read, changed and scanned, and paths that lead nowhere else."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store import racing
from vaultd.core.sanitize import Clean, redact
from vaultd.errors import RefusedError
from vaultd.store import fs
from vaultd.store.vault import (
    Busy,
    Diverged,
    Exists,
    Gone,
    Moved,
    PageFile,
    Refused,
    Vault,
    Written,
)

ID = "0123456789abcdef"
PAGE = "---\nkind: note # mine\ntags: [a]\n---\n# Title\n\nbody\n"


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    made = Vault(
        tmp_path / "vault", sync=False, quiet=0.0
    )  # where somebody saves meanwhile, the test has done it itself
    made.initialise(ID)
    return made


def text(value: str) -> Clean:
    return redact(value)


def page(vault: Vault, rel: str = "notes/page.md", content: str = PAGE) -> PageFile:
    path = vault.root / rel
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode())
    found = vault.read(rel)
    assert found is not None
    return found


def tree(vault: Vault) -> list[str]:
    """Every file of the vault but those of its room."""
    files = (path.relative_to(vault.root) for path in vault.root.rglob("*") if not path.is_dir())
    return sorted(rel.as_posix() for rel in files if rel.parts[0] != ".vaultd")


# --- making and being there


def test_initialise_makes_the_room(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "new" / "vault")
    assert not vault.presence().here
    assert vault.initialise(ID) == ID
    assert stat.S_IMODE(vault.room.stat().st_mode) == 0o700
    folders = sorted(path.relative_to(vault.room).as_posix() for path in vault.room.rglob("*") if path.is_dir())
    nested = ["inbox/failed", "inbox/new", "inbox/tmp", "outbox/at", "outbox/map"]
    assert folders == sorted([*nested, "done", "inbox", "leases", "outbox", "runs"])
    assert (vault.room / "vault-id").read_text() == f"vaultd-vault 1\n{ID}\n"
    assert vault.presence().here
    assert vault.presence().id == ID


def test_initialise_again_keeps_the_id_and_mends_the_room(vault: Vault) -> None:
    (vault.room / "runs").rmdir()
    vault.room.chmod(0o755)
    assert vault.initialise("f" * 16) == ID
    assert (vault.room / "runs").is_dir()
    assert stat.S_IMODE(vault.room.stat().st_mode) == 0o700


@pytest.mark.parametrize("wrong", ["", "xyz", "ABCDEF0123", f"{ID}\n", "0" * 65])
def test_an_id_is_hexadecimal(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(ValueError, match="hexadecimal"):
        Vault(tmp_path).initialise(wrong)


def test_making_the_object_makes_nothing(tmp_path: Path) -> None:
    Vault(tmp_path / "vault")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"vaultd-vault 2\n" + ID.encode(), "newer vaultd"),
        (b"something\n", "damaged"),
        (b"vaultd-vault 1\n", "damaged"),
        (b"\xff\xfe", "damaged"),
        (None, "cannot be read"),
    ],
)
def test_without_a_good_sentinel_the_vault_is_away(vault: Vault, content: bytes | None, reason: str) -> None:
    sentinel = vault.room / "vault-id"
    if content is None:
        sentinel.unlink()
    else:
        sentinel.write_bytes(content)
        with pytest.raises(RefusedError, match=reason):
            vault.initialise(ID)
    presence = vault.presence()
    assert not presence.here
    assert reason in (presence.reason or "")


def test_an_older_object_notices_another_vault_in_the_place(tmp_path: Path) -> None:
    """The vault's path is a symlink that is turned to an empty folder, to another vault, to nothing, and back."""
    one, two, empty, link = tmp_path / "one", tmp_path / "two", tmp_path / "empty", tmp_path / "link"
    Vault(one).initialise("1" * 16)
    Vault(two).initialise("2" * 16)
    empty.mkdir()
    link.symlink_to(one)
    vault = Vault(link)
    seen = []
    for target in (one, empty, two, tmp_path / "nothing", one):
        link.unlink()
        link.symlink_to(target)
        seen.append(vault.presence())
    assert [presence.here for presence in seen] == [True, False, False, False, True]
    assert seen[2].reason == "another vault is in its place"


def test_a_copy_on_another_device_is_not_the_vault(vault: Vault) -> None:
    other = Path("/dev/shm")
    if not other.is_dir() or other.stat().st_dev == vault.root.stat().st_dev:
        pytest.skip("there is no second file system here")
    copy = other / f"vaultd-test-{os.getpid()}"
    try:
        shutil.copytree(vault.root, copy)
        shutil.rmtree(vault.root)
        vault.root.symlink_to(copy)
        assert vault.presence().reason == "its folder is on another device than before"
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def test_a_vault_that_comes_later_is_taken_as_it_is(tmp_path: Path) -> None:
    early = Vault(tmp_path / "vault")
    Vault(tmp_path / "vault").initialise(ID)
    assert early.presence().here


# --- paths


@pytest.mark.parametrize(
    "rel",
    [
        "",
        ".",
        "..",
        "/",
        "/etc/passwd",
        "../x.md",
        "a/../../x.md",
        "a/../b.md",
        "./a.md",
        "a//b.md",
        "a/",
        ".git/hooks/post-commit",
        ".vaultd/vault-id",
        "a/.hidden/x.md",
        "a\nb.md",
        "a\0b.md",
        "a\x7fb.md",
        "a\u2028b.md",
        "a\udcffb.md",
        "x" * 256 + ".md",
        "/".join(["long"] * 700) + ".md",
    ],
)
def test_paths_that_are_refused(vault: Vault, rel: str) -> None:
    refusals = 0
    for act in (
        lambda: vault.checked(rel),
        lambda: vault.read(rel),
        lambda: vault.create(rel, text("x")),
        lambda: vault.rewrite(rel, text("x"), fs.revision(b"")),
        lambda: vault.splice(rel, {"pinned": True}, fs.revision(b"")),
        lambda: vault.append(rel, text("x"), fs.revision(b"")),
        lambda: vault.move(rel, "free.md"),
        lambda: vault.move("page.md", rel),
        lambda: vault.remove(rel),
        lambda: vault.keep_folder(rel),
    ):
        with pytest.raises(RefusedError):
            act()
        refusals += 1
    assert refusals == 10
    assert tree(vault) == []


def test_symlinks_that_lead_out_are_refused(vault: Vault, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("secret")
    (vault.root / "folder").symlink_to(outside)
    (vault.root / "file.md").symlink_to(outside / "secret.md")
    (vault.root / "room").symlink_to(".vaultd")
    (vault.root / "self").symlink_to(".")
    (vault.root / "broken.md").symlink_to(outside / "not-yet.md")
    for rel in ("folder/secret.md", "folder/new.md", "file.md", "room/vault-id", "self", "broken.md"):
        with pytest.raises(RefusedError):
            vault.read(rel)
        with pytest.raises(RefusedError):
            vault.create(rel, text("x"))
    assert [path.name for path in outside.iterdir()] == ["secret.md"]


def test_a_root_that_is_turned_elsewhere_is_looked_up_anew(vault: Vault, tmp_path: Path) -> None:
    page(vault, "a.md")
    link, other = tmp_path / "turning", tmp_path / "other"
    link.symlink_to(vault.root)
    turned = Vault(link, quiet=0)
    assert turned.checked("a.md") == vault.root.resolve() / "a.md"
    other.mkdir()
    (other / "a.md").write_text("another")
    link.unlink()
    link.symlink_to(other)
    assert turned.checked("a.md") == other.resolve() / "a.md"
    (other / "a.md").unlink()
    (other / "a.md").symlink_to(tmp_path / "outside.md")
    with pytest.raises(RefusedError):
        turned.checked("a.md")


def test_a_neighbour_with_the_same_beginning_is_outside(vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "vault-other").mkdir()
    (vault.root / "link").symlink_to(tmp_path / "vault-other")
    with pytest.raises(RefusedError):
        vault.checked("link/x.md")


def test_symlinks_inside_are_followed_and_stay(vault: Vault) -> None:
    old = page(vault, "real/page.md")
    (vault.root / "link").symlink_to("real")
    assert isinstance(vault.rewrite("link/page.md", text("new\n"), old.revision), Written)
    assert (vault.root / "real" / "page.md").read_bytes() == b"new\n"
    assert (vault.root / "link").is_symlink()


@given(st.text(max_size=20))
@settings(deadline=None)
def test_no_path_leads_out(rel: str) -> None:
    vault = Vault(Path("/tmp/nowhere-at-all"))
    try:
        path = vault.checked(rel)
    except RefusedError:
        return
    assert path.is_relative_to(os.path.realpath("/tmp/nowhere-at-all"))
    assert path.relative_to(os.path.realpath("/tmp/nowhere-at-all")).as_posix() == rel


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_names_stay_in_their_form(vault: Vault, form: str) -> None:
    name = unicodedata.normalize(form, "Café ☕ 日本.md")  # type: ignore[arg-type]  # one of the two forms
    vault.create(f"notes/{name}", text("x"))
    assert [path.name for path in (vault.root / "notes").iterdir()] == [name]
    assert [found.path for found in vault.scan()] == [f"notes/{name}"]


# --- reading and making


def test_reading(vault: Vault) -> None:
    found = page(vault)
    assert (found.path, found.data, found.revision) == ("notes/page.md", PAGE.encode(), fs.revision(PAGE.encode()))
    (vault.root / "notes" / "folder.md").mkdir()
    os.mkfifo(vault.root / "notes" / "pipe.md")
    for missing in ("no.md", "no/no.md", "notes/page.md/below.md", "notes/folder.md", "notes/pipe.md"):
        assert vault.read(missing) is None


def test_creating(vault: Vault) -> None:
    made = vault.create("a/b/new.md", text("text\n"))
    assert made == Written("a/b/new.md", fs.revision(b"text\n"))
    assert vault.create("a/b/new.md", text("other\n")) == Exists("a/b/new.md")
    assert vault.create("a/b", text("other\n")) == Exists("a/b")
    assert (vault.root / "a/b/new.md").read_bytes() == b"text\n"
    assert tree(vault) == ["a/b/new.md"]


def test_a_folder_that_is_kept(vault: Vault) -> None:
    vault.keep_folder("handoffs/open")
    vault.keep_folder("handoffs/open")
    assert tree(vault) == ["handoffs/open/.gitkeep"]
    assert list(vault.scan()) == []


# --- changing


def test_rewriting(vault: Vault) -> None:
    old = page(vault)
    assert vault.rewrite(old.path, text("new\n"), old.revision) == Written(old.path, fs.revision(b"new\n"))
    assert vault.rewrite(old.path, text("newer\n"), old.revision) == Diverged(old.path)
    assert vault.rewrite("no.md", text("x"), old.revision) == Gone("no.md")
    assert (vault.root / old.path).read_bytes() == b"new\n"
    assert tree(vault) == [old.path]


def test_splicing_changes_only_our_values(vault: Vault) -> None:
    old = page(vault)
    done = vault.splice(old.path, {"tags": [text("b: c")], "pinned": True, "summary": None}, old.revision)
    expected = PAGE.replace("tags: [a]\n", 'tags: ["b: c"]\npinned: true\n').encode()
    assert done == Written(old.path, fs.revision(expected))
    assert (vault.root / old.path).read_bytes() == expected
    assert vault.splice(old.path, {"pinned": False}, old.revision) == Diverged(old.path)
    assert vault.splice("no.md", {"pinned": False}, old.revision) == Gone("no.md")


def test_splicing_what_is_there_writes_nothing(vault: Vault) -> None:
    old = page(vault)
    before = (vault.root / old.path).stat()
    assert vault.splice(old.path, {"tags": [text("a")]}, old.revision) == Written(old.path, old.revision)
    after = (vault.root / old.path).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("content", ["# no frontmatter\n", "---\na: b: c\n---\n", "---\n\nprose\n\n---\n"])
def test_a_page_that_cannot_be_spliced_is_left_alone(vault: Vault, content: str) -> None:
    old = page(vault, content=content)
    done = vault.splice(old.path, {"pinned": True}, old.revision)
    assert isinstance(done, Refused)
    assert done.reason
    assert (vault.root / old.path).read_bytes() == content.encode()


@pytest.mark.parametrize(
    ("content", "added", "result"),
    [
        ("a\n", "b\nc\n", b"a\nb\nc\n"),
        ("a", "b", b"a\nb\n"),
        ("", "b", b"b\n"),
        ("a\r\nb", "c\nd", b"a\r\nb\r\nc\r\nd\r\n"),
        ("a\n\n", "\nb\n", b"a\n\n\nb\n"),
    ],
)
def test_appending(vault: Vault, content: str, added: str, result: bytes) -> None:
    old = page(vault, content=content)
    assert vault.append(old.path, text(added), old.revision) == Written(old.path, fs.revision(result))
    assert (vault.root / old.path).read_bytes() == result
    assert vault.append(old.path, text(added), fs.revision(b"other")) == Diverged(old.path)
    assert vault.append("no.md", text(added), old.revision) == Gone("no.md")


@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
def test_an_open_page_is_busy(vault: Vault) -> None:
    old = page(vault)
    with (vault.root / old.path).open("rb"):
        assert vault.rewrite(old.path, text("x"), old.revision) == Busy(old.path)


def test_changes_together_share_one_wait(vault: Vault) -> None:
    vault = Vault(vault.root, sync=False)
    pages = [page(vault, f"notes/{number}.md") for number in range(20)]
    began = time.monotonic()
    with vault.together() as undone:
        for old in pages:
            done = vault.splice(old.path, {"pinned": True}, old.revision)
            assert isinstance(done, Written)
            assert isinstance(vault.append(old.path, text("more"), done.revision), Written)
    assert time.monotonic() - began < 20 * 0.5
    assert undone == []
    assert all((vault.root / old.path).read_bytes().endswith(b"body\nmore\n") for old in pages)
    assert isinstance(vault.rewrite(pages[0].path, text("x"), fs.revision(b"")), Diverged)


def test_a_change_that_did_not_stand_is_named_when_all_are_settled(vault: Vault) -> None:
    saved, later, fine = (page(vault, f"notes/{name}.md") for name in ("saved", "later", "fine"))
    with vault.together() as undone:
        for old in (saved, later, fine):
            assert isinstance(vault.rewrite(old.path, text(f"ours {old.path}\n"), old.revision), Written)
        for old in (saved, later):
            _retired(vault, old).write_bytes(f"theirs {old.path}\n".encode())
        racing.save_by_rename(vault.root / later.path, b"newest\n")
    kept = f"notes/later (kept {fs.revision(b'theirs notes/later.md' + bytes([10]))[:16]}).md"
    assert sorted(undone, key=lambda one: one.path) == [Diverged(later.path, kept), Diverged(saved.path)]
    assert tree(vault) == sorted([saved.path, later.path, fine.path, kept])
    assert (vault.root / saved.path).read_bytes() == b"theirs notes/saved.md\n"
    assert (vault.root / later.path).read_bytes() == b"newest\n"
    assert (vault.root / fine.path).read_bytes() == b"ours notes/fine.md\n"


def test_an_error_inside_together_still_settles(vault: Vault) -> None:
    old = page(vault)
    with pytest.raises(KeyError), vault.together():
        vault.rewrite(old.path, text("new\n"), old.revision)
        raise KeyError
    assert tree(vault) == [old.path]
    assert isinstance(vault.rewrite(old.path, text("newer\n"), fs.revision(b"new\n")), Written)


def _retired(vault: Vault, old: PageFile) -> Path:
    """The temp name under which the old text of this page waits to be settled."""
    (found,) = (vault.root / "notes").glob(f"{fs.SWAP_PREFIX}{old.revision[:16]}-{fs.revision(_ours(old))[:16]}-*")
    return found


def _ours(old: PageFile) -> bytes:
    return f"ours {old.path}\n".encode()


def test_moving(vault: Vault) -> None:
    page(vault, "open/h.md", "x")
    page(vault, "other.md", "y")
    assert vault.move("open/h.md", "other.md") == Exists("other.md")
    assert vault.move("open/h.md", "accepted/h.md") == Moved("accepted/h.md")
    assert vault.move("open/h.md", "expired/h.md") == Gone("open/h.md")
    assert tree(vault) == ["accepted/h.md", "other.md"]
    assert not (vault.root / "expired").exists()


def test_removing(vault: Vault) -> None:
    page(vault)
    assert vault.remove("notes/page.md")
    assert not vault.remove("notes/page.md")
    assert tree(vault) == []


def test_sweeping_clears_litter_and_brings_texts_back(vault: Vault) -> None:
    old = page(vault)
    (vault.root / "notes" / f"{fs.TEMP_PREFIX}1").write_bytes(b"half")
    name = f"{fs.SWAP_PREFIX}{fs.revision(b'old')[:16]}-{old.revision[:16]}-0"
    (vault.root / "notes" / name).write_bytes(b"saved by the person")
    assert vault.sweep(3600.0, time.time()) == []
    assert vault.sweep(3600.0, time.time() + 3700) == ["notes/page.md"]
    assert tree(vault) == ["notes/page.md"]
    assert (vault.root / old.path).read_bytes() == b"saved by the person"


# --- scanning


def test_a_scan_finds_pages_and_passes_over_the_rest(vault: Vault, tmp_path: Path) -> None:
    found = ["Home.md", "a/b/c/deep.md", "a/Upper.MD", "with space/ünï.md", "_global/x.md"]
    passed = [
        "a/text.txt",
        "a/md",
        ".git/x.md",
        ".obsidian/x.md",
        ".trash/x.md",
        "a/.hidden/x.md",
        "a/.hidden.md",
        f"a/{fs.TEMP_PREFIX}1.md",
        ".vaultd/x.md",
    ]
    for rel in [*found, *passed]:
        page_path = vault.root / rel
        page_path.parent.mkdir(parents=True, exist_ok=True)
        page_path.write_text(rel)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.md").touch()
    (vault.root / "out").symlink_to(outside)
    (vault.root / "out.md").symlink_to(outside / "x.md")
    (vault.root / "loop").symlink_to(".")
    (vault.root / "folder.md").mkdir()
    (vault.root / "folder.md" / "inside.md").touch()
    os.mkfifo(vault.root / "pipe.md")
    scan = vault.scan()
    stats = {one.path: one for one in scan}
    assert sorted(stats) == sorted([*found, "folder.md/inside.md"])
    real = (vault.root / "a/b/c/deep.md").stat()
    deep = stats["a/b/c/deep.md"]
    assert (deep.inode, deep.mtime_ns, deep.size) == (real.st_ino, real.st_mtime_ns, real.st_size)
    assert (scan.unnameable, scan.unreadable) == (0, [])


def test_a_scan_counts_names_that_no_path_can_have(vault: Vault) -> None:
    page(vault)
    for name in ("\udcff\udcfe.md", "line\nbreak.md"):
        (vault.root / name).touch()
    (vault.root / "folder-\udcff").mkdir()
    scan = vault.scan()
    assert [one.path for one in scan] == ["notes/page.md"]
    assert scan.unnameable == 3


def test_a_scan_names_folders_that_it_could_not_list(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    page(vault, "a/x.md")
    page(vault, "b/y.md")
    real = os.scandir

    def scandir(path: str) -> object:
        if path.rstrip("/").endswith("/a"):
            raise PermissionError
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    scan = vault.scan()
    assert [one.path for one in scan] == ["b/y.md"]
    assert scan.unreadable == ["a"]


@pytest.mark.bench
def test_how_long_a_scan_of_ten_thousand_pages_takes(vault: Vault) -> None:
    for folder in range(100):
        (vault.root / f"folder-{folder}").mkdir()
        for number in range(100):
            (vault.root / f"folder-{folder}" / f"page-{number}.md").touch()
    times = []
    for _ in range(5):
        began = time.perf_counter()
        assert sum(1 for _ in vault.scan()) == 10_000
        times.append(time.perf_counter() - began)
    print(f"scan of 10,000 pages: {min(times) * 1000:.0f} ms at best, {max(times) * 1000:.0f} ms at worst")
