"""What embedding is, whoever does it: the texts of a page, the vectors they become, and a person's choice of provider.

Vectors are derived data: kept in the cache by page revision, provider, model and dimension, and made anew on any doubt.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias
from urllib.parse import urlsplit

from vaultd.core.passages import MOST_WORDS, passages

__all__ = ["PROVIDERS", "TEXTS", "Choice", "Embedder", "Vector", "texts", "unit"]

Vector: TypeAlias = "array[float]"
"""Single precision numbers (`array("f")`) of length 1: the product of two is their similarity, -1 to 1."""

PROVIDERS = ("off", "local", "endpoint")
"""What may stand for `vectors.provider`."""

TEXTS = 1
"""Number of what `texts` gives: to be raised with every change, so that vectors are made anew."""

_MOST_CHARACTERS = 1000  # of a text: some 250 tokens, which every model takes; longer lines are cut into pieces
_TOGETHER = MOST_WORDS // 2  # words of passages that are taken together
_MOST_TEXTS = 256  # of a page: its first 15,000 words or so; more is a log that words find better


class Embedder(Protocol):
    """Makes vectors of texts. Two with the same provider, model and dimension make vectors that can be compared."""

    @property
    def provider(self) -> str:
        """Who makes them, as it is shown and kept."""

    @property
    def model(self) -> str:
        """The model's name."""

    @property
    def dimension(self) -> int:
        """Numbers of a vector; 0 while it is not known before the first answer."""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Vector]:
        """A vector for each text, in their order. `query`: they are asked, not kept, and somebody waits.

        UsageError when these texts or the settings are refused, other VaultdErrors when nothing can be had now; both
        say what to do.
        """


@dataclass(frozen=True, slots=True)
class Choice:
    """The `[vectors]` settings. `dimensions`: 0 for the model's own."""

    provider: str = "off"
    url: str = ""
    model: str = ""
    key_env: str = ""
    key_file: str = ""
    dimensions: int = 0

    @property
    def on(self) -> bool:
        """Whether there are vectors at all."""
        return self.provider != "off"

    def flaws(self) -> list[str]:
        """What is wrong with them, in words."""
        if self.provider not in PROVIDERS:
            return [f"`vectors.provider` must be one of {', '.join(PROVIDERS)}"]
        found = []
        if self.dimensions < 0:
            found.append("`vectors.dimensions` must be a positive number, or 0 for the model's own")
        if self.url and not _plain(self.url):
            found.append("`vectors.url` must be like http://localhost:11434/v1, without a name or a key in it")
        if self.key_env and self.key_file:
            found.append("`vectors.key_env` and `vectors.key_file` are both set; one of them is enough")
        if self.provider == "endpoint":
            found += [f"`vectors.{name}` is needed for an endpoint" for name in ("url", "model") if not self.told(name)]
        if self.provider == "local":
            given = [name for name in ("url", "model", "key_env", "key_file", "dimensions") if self.told(name)]
            found += [f"`vectors.{name}` is an endpoint's; take it out for the local model" for name in given]
        return found

    def told(self, name: str) -> bool:
        """Whether a setting other than its default is given."""
        return bool(getattr(self, name))


def _plain(url: str) -> bool:
    """Whether an address is one that a request may go to."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    clean = url.isascii() and url.isprintable() and " " not in url
    named = parts.username is None and parts.password is None and not parts.query and not parts.fragment
    return clean and named and parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0


def texts(title: str, body: str) -> list[str]:
    """The texts that stand for a page, at least one: its passages, short neighbours together, each below the title.

    Measured with the local model on 964 questions about conversations: similarity alone has the page among the first
    five for 0.713 with each turn by itself, 0.736 with turns together up to 60 words, 0.713 up to 120.
    """
    found: list[str] = []
    held: list[str] = []
    words = 0
    for passage in passages(body):
        count = len(passage.split())
        if held and words + count > _TOGETHER:
            found += _pieces("\n".join(held))
            held, words = [], 0
        held.append(passage)
        words += count
        if len(found) >= _MOST_TEXTS:
            break
    found += _pieces("\n".join(held))
    head = title.strip()[: _MOST_CHARACTERS // 4]
    return [f"{head}\n{text}" for text in found[:_MOST_TEXTS]] or [head or "-"]


def _pieces(text: str) -> list[str]:
    """A text in pieces that a model takes whole."""
    pieces = (text[start : start + _MOST_CHARACTERS] for start in range(0, len(text), _MOST_CHARACTERS))
    return [piece for piece in pieces if piece.strip()]


def unit(numbers: Iterable[float]) -> Vector:
    """Numbers as a vector of length 1. ValueError when they have no direction."""
    values = array("d", numbers)
    length = math.hypot(*values)
    if not math.isfinite(length) or not length:
        raise ValueError("a vector without a direction")
    return array("f", (value / length for value in values))
