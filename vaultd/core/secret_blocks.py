"""Secrets with a beginning and an end: private keys in PEM, and paths under the folders where keys are kept. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vaultd.core.secrets import Hit

__all__ = ["blocks"]

_KEY_FOLDER = re.compile(r"\.(?:ssh|aws|kube|gnupg|config(?:/|\\{1,4})gcloud)(?:/|\\{1,4})(?=[^\s\"'`<>|;,)\]}/\\])")
_BEFORE_PATH = frozenset(" \t\r\n\"'`<>|;,=(){}[]:")
_PATH_REST = re.compile(r"[^\s\"'`<>|;,)\]}]*+")
_LONGEST = 512
"""How far before the folder a path may begin."""

_PEM_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)?-----")
_PEM_GOES_ON = re.compile(r"\s*\Z|[ \t]*(?:\r?\n|\\+[rn])|[\s\"'+,]{0,16}[A-Za-z0-9+/=]{16}")
_PEM_BREAK = re.compile(r"(\r?\n|\\+[rn])")
_PEM_LINE = re.compile(r"[A-Za-z0-9+/=]{4,80}")


def blocks(text: str, low: str) -> Iterator[Hit]:
    """Paths under `.ssh`, `.aws`, `.kube`, `.gnupg` and `.config/gcloud`, and private-key blocks."""
    if _KEY_FOLDER.search(text) is not None:
        yield from _key_paths(text)
    if "PRIVATE KEY" in text:
        yield from _pem(text)


def _key_paths(text: str) -> Iterator[Hit]:
    """The whole path, from its start to its end; what ends a sentence does not belong to it."""
    done = 0
    for match in _KEY_FOLDER.finditer(text):
        if match.start() < done:
            continue
        lo, floor = match.start(), max(done, match.start() - _LONGEST)
        while lo > floor and text[lo - 1] not in _BEFORE_PATH:
            lo -= 1
        rest = _PATH_REST.match(text, match.end())
        done = match.end() if rest is None else rest.end()
        yield Hit(lo, lo, lo + len(text[lo:done].rstrip(".:")))


def _pem(text: str) -> Iterator[Hit]:
    """Private-key blocks: closed ones, ones that were cut off (to the end of the text), and ends without a beginning.

    A header that prose merely mentions stays: nothing that looks like a key follows it.
    """
    at, closed = 0, True
    for begin in _PEM_BEGIN.finditer(text):
        if begin.start() < at:
            continue
        end = _PEM_END.search(text, begin.end()) if closed else None
        closed = end is not None
        if end is None and _PEM_GOES_ON.match(text, begin.end()) is None:
            continue
        at = len(text) if end is None else end.end()
        yield Hit(begin.start(), begin.start(), at)
    done = 0
    for end in _PEM_END.finditer(text):
        lo = _first_line(text, done, end.start())
        done = end.end()
        yield Hit(lo, lo, done)


def _first_line(text: str, floor: int, end: int) -> int:
    """Where the lines of base64 before an END line begin, not before `floor`."""
    at = first = end
    for line in reversed(_PEM_BREAK.split(text[floor:end])):
        at -= len(line)
        if _PEM_LINE.fullmatch(line.strip()):
            first = at
        elif line and not _PEM_BREAK.fullmatch(line):
            break
    return first
