"""Bounded reading of files that somebody else writes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vaultd.store.transcripts import Growth, newest, tail


def test_the_last_bytes_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"0123456789" * 300_000)
    assert tail(path, 4) == b"6789"
    assert tail(str(path), 2_500_000) == b"0123456789" * 250_000
    assert tail(path, 10**9) == b"0123456789" * 300_000
    assert tail(path, 0) == b""
    link = tmp_path / "link"
    link.symlink_to(path)
    assert tail(link, 3) == b"789"


@pytest.mark.parametrize(
    "name", ["missing", "folder", "fifo", "loop", "secret", "nul\0byte", "/dev/zero", "/proc/self/mem"]
)
def test_what_is_no_readable_file_is_empty(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "secret").symlink_to("fifo")
    path = name if name.startswith("/") else f"{tmp_path}/{name}"
    assert tail(path, 100) == b""


def test_the_newest_file_at_a_pattern(tmp_path: Path) -> None:
    for name, at in (("a/1.jsonl", 100), ("b/2.jsonl", 300), ("b/c/3.jsonl", 900), ("b/4.txt", 800), ("5.jsonl", 700)):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
        os.utime(path, (at, at))
    (tmp_path / "b/away.jsonl").symlink_to("nowhere")
    assert newest(tmp_path, "*/*.jsonl") == Growth(tmp_path / "b/2.jsonl", 300, 1)
    assert newest(tmp_path, "*/*/*.jsonl") == Growth(tmp_path / "b/c/3.jsonl", 900, 1)
    assert newest(tmp_path, "*/x*") is None
    assert newest(tmp_path / "none", "*") is None
    assert newest(tmp_path, "*.jsonl", limit=0) is None
