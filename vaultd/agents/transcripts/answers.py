"""What was said last, in a transcript of one JSON object a line, or in a file that is one."""

from __future__ import annotations

from vaultd.agents.model import Told
from vaultd.agents.payload import lookup, parse, text

__all__ = ["last_told"]


def last_told(answer: Told, transcript: bytes) -> str:
    """The text of the last line that has it; "" when there is none."""
    if answer.file:
        return text(lookup(parse(transcript), answer.text)).strip()
    mark = max((value.encode() for value in answer.when.values()), key=len, default=b"")
    for line in reversed(transcript.split(b"\n")):
        if mark in line:
            record = parse(line)
            if all(lookup(record, path) == value for path, value in answer.when.items()):
                said = text(lookup(record, answer.text)).strip()
                if said:
                    return said
    return ""
