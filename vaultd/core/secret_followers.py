"""Secrets that follow their name without a sign of assignment: `aws configure set aws_secret_access_key ...`.

Pure. Between the name and its value stand blanks, the end of a YAML line, a bracket, or `value:` as in the variables
of a container. What follows a name so is most often another word of a sentence or of code, so the value must show by
itself that it is a secret (`secret_values.evident`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from vaultd.core.assignments import name_start
from vaultd.core.secret_names import Strength, owner_in_front, strength
from vaultd.core.secret_values import evident
from vaultd.core.secrets import Hit

__all__ = ["followed"]

_QUOTE = r"""\\*["']?"""
_BETWEEN = "|".join(
    (
        r"(?P<blank>[ \t]{1,4})",
        r"[ ]?:[ ]?(?:[|>][+-]?)?(?:\r?\n|\\n)[ \t]{1,24}(?!-[ ])",
        r"[ ]?[:=][ ]?\[\s{0,24}(?=\\*[\"'])",
        rf"(?:[,;](?:\s|\\n){{0,24}}|(?:\s|\\n){{1,24}}){_QUOTE}value{_QUOTE}[ ]?[:=][ ]?",
    )
)
_FORMS = tuple(
    re.compile(
        rf"({word})(?:_id|_?[0-9]{{1,2}})?{_QUOTE}(?:{_BETWEEN}){_QUOTE}(?P<v>[^\s\"'`<>\\,;()\[\]{{}}]{{10,256}})"
    )
    for word in ("key", "token", "secret", "pass(?:wor[dt]|wd|phrase)")
)


def followed(text: str, low: str) -> Iterator[Hit]:
    """Every secret that follows its name, in no order; `low` is `secrets.folded(text)`."""
    for form in _FORMS:
        for found in form.finditer(low):
            lo, hi = found.span("v")
            start = name_start(text, found.start())
            name = text[start : found.end(1)]
            bare = len(name) == len(found[1])
            owner = owner_in_front(low[max(0, start - 12) : start]) if bare else ""
            promise = strength(name, found[1], owner)
            spoken = found["blank"] is not None and bare and not owner
            least = Strength.PASSWORD if spoken else Strength.STRONG
            value = text[lo:hi].rstrip(".:!?")
            if promise >= least and evident(value, password=promise is Strength.PASSWORD):
                yield Hit(start, lo, lo + len(value))
