"""Whatever an editor, a sync or a person does to pages, search is true again by itself, and nothing is rewritten.

Every case with the file system's notifications, and without: then scans alone have to find out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.engine.watching import Kept, Room, kept
from tests.waiting import until


@pytest.fixture(scope="module", params=["watched", "scanned"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    with kept(tmp_path_factory.mktemp("kept"), watch=request.param == "watched") as made:
        yield made


@pytest.fixture
def room(world: Kept) -> Room:
    return world.room()


def in_place(page: Path, data: bytes) -> None:
    """As Obsidian saves: the same file is emptied and written."""
    with page.open("r+b") as file:
        file.truncate()
        file.write(data)


def by_rename(page: Path, data: bytes) -> None:
    """A temporary file beside takes the page's name."""
    beside = page.with_name(f".{page.name}.tmp")
    beside.write_bytes(data)
    beside.rename(page)


def as_vim(page: Path, data: bytes) -> None:
    """vim with backupcopy=no: a probe, the page becomes its backup, a new file is written, the backup goes."""
    probe = page.with_name("4913")
    probe.write_bytes(b"")
    probe.unlink()
    backup = page.with_name(page.name + "~")
    page.rename(backup)
    with page.open("xb") as file:
        file.write(data)
        os.fsync(file.fileno())
    backup.unlink()


def as_vim_copying(page: Path, data: bytes) -> None:
    """vim with backupcopy=yes: a copy is the backup, the page is written in place."""
    backup = page.with_name(page.name + "~")
    shutil.copy2(page, backup)
    with page.open("r+b") as file:
        file.truncate()
        file.write(data)
        os.fsync(file.fileno())
    backup.unlink()


EDITORS = [in_place, by_rename, as_vim, as_vim_copying]


@pytest.mark.parametrize("save", EDITORS)
def test_a_saved_page_is_found_by_its_new_words_only(room: Room, save: Callable[[Path, bytes], None]) -> None:
    old, new = room.word("before"), room.word("after")
    page = room.page("page.md", old)
    save(page, f"# {new}\n".encode())
    with room.untouched():
        room.kept.becomes(new, room.at("page.md"))
        room.kept.becomes(old)


@pytest.mark.parametrize("save", EDITORS)
def test_a_question_right_after_a_save_is_answered_with_it(room: Room, save: Callable[[Path, bytes], None]) -> None:
    page = room.page("page.md", room.word("number"))
    live = room.kept.daemon.live
    for number in range(12):
        word = room.word(f"said{number:02}")
        save(page, word.encode())
        assert live.catch_up() == 0
        assert room.kept.found(word) == {room.at("page.md")}


@pytest.mark.parametrize("command", ["vim", "vim.tiny"])
@pytest.mark.parametrize("copying", ["yes", "no"])
def test_real_vim(room: Room, command: str, copying: str) -> None:
    if shutil.which(command) is None:
        pytest.skip(f"{command} is not installed")
    old, new = room.word("before"), room.word("after")
    page = room.page("page.md", old)
    orders = [f"set backupcopy={copying} backupskip= writebackup", f"s/{old}/{new}/", "wq"]
    words = [command, "-es", "-u", "NONE", "-n", *(part for order in orders for part in ("-c", order)), str(page)]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, timeout=30)
    assert page.read_text() == f"{new}\n"
    with room.untouched():
        room.kept.becomes(new, room.at("page.md"))
        room.kept.becomes(old)


def test_new_folders_that_are_written_to_at_once(room: Room) -> None:
    word = room.word("deep")
    names = [f"a{n}/b/c/page.md" for n in range(20)]
    for name in names:
        (room.path / name).parent.mkdir(parents=True)
        room.write(name, word)
    with room.untouched():
        room.kept.becomes(word, *map(room.at, names))


def test_a_folder_that_is_renamed_moved_out_and_moved_in_again(room: Room, tmp_path: Path) -> None:
    word = room.word("moved")
    (room.path / "one/two").mkdir(parents=True)
    room.write("one/two/page.md", word)
    room.kept.becomes(word, room.at("one/two/page.md"))
    (room.path / "one").rename(room.path / "renamed")
    with room.untouched():
        room.kept.becomes(word, room.at("renamed/two/page.md"))
    (room.path / "renamed").rename(tmp_path / "away")
    with room.untouched():
        room.kept.becomes(word)
    later = room.word("elsewhere")
    (tmp_path / "away/two/page.md").write_text(later)  # its old watch may tell of that under the old name
    (tmp_path / "away").rename(room.path / "back")
    with room.untouched():
        room.kept.becomes(later, room.at("back/two/page.md"))
        room.kept.becomes(word)
    last = room.word("again")
    room.write("back/two/page.md", last)
    with room.untouched():
        room.kept.becomes(last, room.at("back/two/page.md"))
        room.kept.becomes(later)


def test_a_folder_in_the_place_of_one_that_was_moved_out(room: Room, tmp_path: Path) -> None:
    old, new = room.word("old"), room.word("new")
    (room.path / "folder").mkdir()
    room.write("folder/page.md", old)
    room.kept.becomes(old, room.at("folder/page.md"))
    (room.path / "folder").rename(tmp_path / "out")
    (room.path / "folder").mkdir()
    room.write("folder/page.md", new)
    (tmp_path / "out/page.md").write_text(old + " changed where nobody looks")
    with room.untouched():
        room.kept.becomes(new, room.at("folder/page.md"))
        room.kept.becomes(old)


def test_a_page_that_is_hidden_and_shown_again(room: Room) -> None:
    word = room.word("hidden")
    page = room.page("page.md", word)
    (room.path / ".trash").mkdir()
    page.rename(room.path / ".trash/page.md")
    room.kept.becomes(word)
    (room.path / ".trash").rename(room.path / "trash")
    with room.untouched():
        room.kept.becomes(word, room.at("trash/page.md"))


def test_pages_and_folders_that_are_deleted(room: Room) -> None:
    word = room.word("gone")
    (room.path / "folder").mkdir()
    page = room.page("page.md", word)
    room.write("folder/page.md", word)
    room.kept.becomes(word, room.at("page.md"), room.at("folder/page.md"))
    page.unlink()
    room.kept.becomes(word, room.at("folder/page.md"))
    shutil.rmtree(room.path / "folder")
    with room.untouched():
        room.kept.becomes(word)


ODD: dict[str, Callable[[str], bytes]] = {
    "a broken frontmatter": lambda word: f"---\ntags: [a\n: :\n---\n{word}\n".encode(),
    "a byte order mark": lambda word: b"\xef\xbb\xbf" + f"---\ntitle: x\n---\n{word}\n".encode(),
    "line ends of Windows": lambda word: f"---\r\ntitle: x\r\n---\r\n{word}\r\n".encode(),
    "bytes that are not UTF-8": lambda word: b"caf\xe9 \xff\xfe " + word.encode() + b"\n",
    "nothing before its word": lambda word: word.encode(),
    "a zero byte": lambda word: b"\0 " + word.encode(),
}


@pytest.mark.parametrize("what", ODD)
def test_a_page_with(room: Room, what: str) -> None:
    old, new = room.word("before"), room.word("after")
    page = room.write("odd.md", "")
    page.write_bytes(ODD[what](old))
    with room.untouched():
        room.kept.becomes(old, room.at("odd.md"))
    page.write_bytes(ODD[what](new))
    with room.untouched():
        room.kept.becomes(new, room.at("odd.md"))
        room.kept.becomes(old)


@pytest.mark.parametrize(
    "name",
    ["🙂 notes 👩‍🚀.md", "x" * 252 + ".md", "ü" * 126 + ".md", "Weiß (1) [a] #b.MD", "a.md.md", "-n.md"],
    ids=["emoji", "255 bytes", "255 bytes of umlauts", "signs", "twice md", "dash"],
)
def test_a_page_named(room: Room, name: str) -> None:
    old, new = room.word("before"), room.word("after")
    page = room.page(name, old)
    by_rename(page, new.encode()) if len(name.encode()) < 240 else in_place(page, new.encode())
    with room.untouched():
        room.kept.becomes(new, room.at(name))
        room.kept.becomes(old)
    page.unlink()
    room.kept.becomes(new)


def test_two_names_that_differ_in_case_or_unicode_form_only(room: Room) -> None:
    composed = unicodedata.normalize("NFC", "Café.md")
    names = [composed, unicodedata.normalize("NFD", composed), "CAFÉ.md", "café.md"]
    word = room.word("menu")
    for number, name in enumerate(names):
        room.write(name, f"{word} {room.word(f'own{number}')}")
    with room.untouched():
        room.kept.becomes(word, *map(room.at, names))
    (room.path / names[0]).unlink()
    with room.untouched():
        room.kept.becomes(word, *map(room.at, names[1:]))
    (room.path / names[1]).rename(room.path / names[0])  # as a sync between systems does
    with room.untouched():
        room.kept.becomes(room.word("own1"), room.at(names[0]))
        room.kept.becomes(word, room.at(names[0]), *map(room.at, names[2:]))


def test_a_link_is_no_page_and_a_linked_folder_no_folder(room: Room, tmp_path: Path) -> None:
    word = room.word("linked")
    (tmp_path / "far").mkdir()
    (tmp_path / "far/page.md").write_text(word)
    (room.path / "link").symlink_to(tmp_path / "far")
    (room.path / "link.md").symlink_to(tmp_path / "far/page.md")
    room.kept.daemon.live.touched([room.at("link/page.md"), room.at("link.md")])
    room.page("real.md", room.word("real"))
    assert room.kept.found(word) == set()


def test_a_page_saved_over_and_over_is_never_written_by_us(room: Room) -> None:
    page = room.page("page.md", room.word("start"))
    times = []
    for number in range(10):
        in_place(page, f"---\ntitle: {room.word('saved')}\n---\n{room.word(f'n{number:02}')}\n".encode())
        times.append(page.stat().st_mtime_ns)
        until(lambda number=number: room.kept.found(room.word(f"n{number:02}")))  # type: ignore[misc]  # of this round
        assert page.stat().st_mtime_ns == times[-1]
    with room.untouched():
        room.kept.becomes(room.word("n09"), room.at("page.md"))


def test_saves_of_one_size_within_one_tick_of_the_clock(room: Room) -> None:
    first, second = room.word("aaa"), room.word("bbb")
    page = room.page("page.md", first)
    stat = page.stat()
    in_place(page, second.encode())
    os.utime(page, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert (page.stat().st_ino, page.stat().st_size) == (stat.st_ino, stat.st_size)
    room.kept.daemon.live.touched([room.at("page.md")])
    room.kept.becomes(second, room.at("page.md"))


def test_a_huge_page_is_found_and_does_not_hold_up_others(room: Room) -> None:
    big, small = room.word("huge"), room.word("small")
    room.write("big.md", big + "\n" + "some words of a log that nobody reads 1234\n" * 120_000)
    assert (room.path / "big.md").stat().st_size > 5_000_000
    room.write("small.md", small)
    room.kept.becomes(small, room.at("small.md"))
    with room.untouched():
        room.kept.becomes(big, room.at("big.md"), timeout=60)
