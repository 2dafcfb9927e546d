"""Secrets that show by their own shape: keys of fixed form, credentials in URLs and in commands.

Pure. Six modules find secrets, each giving hits in no order and perhaps overlapping; `core.sanitize` replaces them:

    secrets          shapes one pattern can tell: bearer, AKIA..., eyJ..., scheme://user:pass@host, curl -u
    secret_prefixes  keys that begin with a vendor's prefix: sk-, ghp_, xoxb-, glpat-
    secret_blocks    what has a beginning and an end: PEM blocks, paths under .ssh and its like
    secret_commands  what its place in a command gives away: redis-cli -a, IDENTIFIED BY
    assignments      what the name before it gives away: FOO_TOKEN=, X-Api-Key:, "password": (names: secret_names)
    secret_followers what follows its name without such a sign: aws configure set aws_secret_access_key ...

All take the text and `low`, which is `folded(text)`: the text in lower case, of the same length.

This is the hot path of every event, so each pattern begins with a literal (the regex engine then skips through the text
at half a nanosecond per character, where an alternation costs a hundred times that) and looks *back* for what must
stand before it. Repeats are bounded or possessive and what matched is consumed: linear in any text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

__all__ = [
    "MARK",
    "Hit",
    "folded",
    "literal",
    "marked",
    "mixed",
    "not_numbers",
    "not_words",
    "says_something",
    "shaped",
]

MARK = "[REDACTED]"
"""What stands in a text where a secret was."""


class Hit(NamedTuple):
    """A secret: `start` is where the match begins (for the allowlist), `text[lo:hi]` is what must go."""

    start: int
    lo: int
    hi: int


def folded(text: str) -> str:
    """The text in lower case, position for position (one letter of Unicode would grow by a character)."""
    low = text.lower()
    return low if len(low) == len(text) else text.replace("\u0130", "I").lower()


_WORDS = re.compile(r"[a-z]{1,15}(?:[-_.][a-z]{1,15})*[-_.]?")
_ALNUM = re.compile(r"[^\W_]")
_LETTER = re.compile(r"[^\W\d_]")
_SIGN = re.compile(r"[\d!@#$%^&*+~?]")
_REFERENCE = re.compile(r"[$%]?\{|\$[A-Za-z_(]|%[A-Za-z(]|&lt;")


def not_words(value: str) -> bool:
    """Whether it is more than lower-case words joined by dashes, as in the class name `sk-estimator-doc-link`."""
    return _WORDS.fullmatch(value) is None


def mixed(value: str, least: int) -> bool:
    """Whether it has letters and digits, or letters and the signs that people put into passwords."""
    return len(value) >= least and _LETTER.search(value) is not None and _SIGN.search(value) is not None


def says_something(value: str) -> bool:
    """Whether there is a letter or digit in it, marks aside."""
    return _ALNUM.search(value.replace(MARK, "") if MARK in value else value) is not None


def literal(value: str) -> bool:
    """Whether it is a value and not a reference to one: `$PASS`, `${PASS}`, `{password}`, `%s`, `***`."""
    return _REFERENCE.match(value) is None and says_something(value)


def _any(value: str) -> bool:
    return True


def not_numbers(value: str) -> bool:
    """Whether it is a value and not numbers only, as in `-u 1000:1000` and `-p3306:3306`."""
    return literal(value) and not all(c.isdigit() or c in ":.-/" for c in value)


def _refresh(value: str) -> bool:
    """Whether what follows `1//` is no name that something is divided by."""
    return not_words(value[3:])


def _jwt(value: str) -> bool:
    """Whether three segments of 16 in a row begin with a header, or two of which the second is a payload (cut off)."""
    parts = value.split(".")
    for first, second, third in zip(parts, parts[1:], [*parts[2:], ""], strict=False):
        if first.startswith("eyJ") and min(len(first), len(second)) >= 16:
            return len(third) >= 16 or second.startswith("eyJ")
    return False


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a secret looks like in the text, or (`fold`) in its lower-case twin; `v` is the part that must go."""

    pattern: re.Pattern[str]
    counts: Callable[[str], bool]
    fold: bool
    group: str | int

    def hits(self, text: str, low: str) -> Iterator[Hit]:
        for match in self.pattern.finditer(low if self.fold else text):
            lo, hi = match.span(self.group)
            if self.counts(text[lo:hi]):
                yield Hit(match.start(), lo, hi)


def _shape(pattern: str, counts: Callable[[str], bool] = _any, *, fold: bool = False) -> _Shape:
    compiled = re.compile(pattern)
    return _Shape(compiled, counts, fold, "v" if "v" in compiled.groupindex else 0)


_T = "[A-Za-z0-9_-]"
_USER = r"""[^\s/?#@:"'<>`\\]*+"""
_PASS = r"""(?P<v>[^\s/?"'<>`]+)"""

_LOGINS = "(?:" + "|".join(f"(?<={tool} login)" for tool in ("docker", "podman", "registry", "az", "oc", "cf")) + ")"

_ANYWHERE = (
    _shape("AGE-SECRET-KEY-1[A-Z0-9]{50,}+"),
    _shape(r"bearer(?<![a-z0-9_]bearer)\s{1,8}(?P<v>[a-z0-9._~+/=-]{16,}+)", not_words, fold=True),
    _shape(rf"A(?:[KS]IA(?<![A-Za-z0-9]A[KS]IA)[A-Z0-9]{{16}}(?![A-Za-z0-9])|Iza(?<![A-Za-z0-9+]AIza){_T}{{30,}}+)"),
    _shape(rf"1//(?<![A-Za-z0-9+/]1//){_T}{{20,}}+", _refresh),
    _shape(r"EAA(?<![A-Za-z0-9+]EAA)[A-Za-z0-9]{20,}+"),
    _shape(rf"eyJ(?<![A-Za-z0-9]eyJ){_T}*+(?:\.{_T}*+){{0,4}}", _jwt),
)
_WITH_AT = (
    # With `\/` too: some writers of JSON escape the slashes.
    _shape(rf":(?:\\?/){{2}}{_USER}:{_PASS}@", literal),
    # A database's password may hold a sign that nobody escaped; a port and what follows it is none.
    _shape(
        rf"""://(?<=(?:res|sql|adb|odb|srv|dis|iss|mqp|qps)://){_USER}:(?!\d{{1,5}}[/?#])(?P<v>[^\s"'<>`@]{{1,128}}+)@""",
        literal,
    ),
    _shape(r"://(?P<v>(?=[A-Za-z_~.-]*+[0-9])(?=[0-9_~.-]*+[A-Za-z])[A-Za-z0-9_~.-]{20,}+)@"),
)
_WITH_HOOKS = (
    _shape(r"hooks\.slack\.com/(?:services|workflows)/(?P<v>[A-Za-z0-9_/-]{16,}+)"),
    _shape(rf"/api/webhooks/[0-9]{{15,22}}/(?P<v>{_T}{{30,}}+)"),
)
_WITH_MACHINE = (
    _shape(
        r"""machine\s{1,8}\S{1,128}\s{1,8}login\s{1,8}\S{1,128}\s{1,8}password\s{1,8}(?P<v>"[^"\n]{1,256}"|\S++)""",
        literal,
        fold=True,
    ),
)
_WITH_CURL = (
    _shape(
        r""" -(?:b|-cookie)[ =]{0,2}["']?[\w.-]{0,40}?(?:sess|sid|auth|token|jwt)[\w.-]{0,20}=(?P<v>[^\s"';]{6,512})""",
        literal,
    ),
    _shape(r""" -(?:u|-user)[ =]{0,2}["']?[^\s:"'$]{1,64}:(?P<v>[^\s"']{3,256})""", not_numbers),
)
_WITH_PASS_FLAG = (
    _shape(r"""sshpass[ \t]{1,4}-p[ \t]{0,4}["']?(?P<v>[^\s"']++)""", literal),
    _shape(
        rf"""login{_LOGINS}[ ](?:\\\n|[^\n|;&]){{0,80}}?(?<= )-p[ =]{{0,2}}["']?(?P<v>[^\s"'-][^\s"']{{2,128}})""",
        not_numbers,
    ),
    _shape(
        r"""mysql(?<![\w.-]mysql)(?:dump|admin|import|show|check|slap|sh)?[ ]"""
        r"""(?:\\\n|[^\n|;&]){0,80}?(?<= )-p["']?(?P<v>[^\s"']{3,128})""",
        not_numbers,
    ),
)


def _shapes(text: str, low: str) -> Iterator[_Shape]:
    """The shapes that can occur at all."""
    yield from _ANYWHERE
    if "@" in text and ("://" in text or ":\\/" in text):
        yield from _WITH_AT
    if " -" in text:
        if " -p" in text:
            yield from _WITH_PASS_FLAG
        if "curl" in text:
            yield from _WITH_CURL
    if "hooks" in low:
        yield from _WITH_HOOKS
    if "machine" in low:
        yield from _WITH_MACHINE


_DSN = re.compile(
    r"@(?=(?:tcp|unix)\(|[A-Za-z0-9.-]{1,100}(?::[0-9]{2,5}\b|/)|(?:[A-Za-z0-9-]{1,63}\.){1,4}[A-Za-z]{2,12}\b)"
)
_DSN_PASS = re.compile(r"""[^\s"'`/]{6,64}""")
_DSN_USER = re.compile(
    r"""(?:\A|(?<=[\s"'`=(,]))(?!(?:mailto|sips?|xmpp|acct|e?mail|from|to|b?cc):)[A-Za-z0-9_.-]{1,32}:\Z""", re.I
)


def _without_scheme(text: str) -> Iterator[Hit]:
    """`user:pass@host:port`, `user:pass@tcp(host)` and `user:pass@host.tld`, when the password looks like one."""
    for match in _DSN.finditer(text):
        at = match.start()
        colon = text.rfind(":", max(0, at - 64), at)
        value = text[colon + 1 : at] if colon > 0 else ""
        if _DSN_PASS.fullmatch(value) is None or not mixed(value, 6) or not literal(value):
            continue
        user = _DSN_USER.search(text, max(0, colon - 33), colon + 1)
        if user is not None:
            yield Hit(user.start(), colon + 1, at)


def shaped(text: str, low: str) -> Iterator[Hit]:
    """Secrets that one pattern can tell, and passwords before a host."""
    for shape in _shapes(text, low):
        if shape.pattern.search(low if shape.fold else text) is not None:
            yield from shape.hits(text, low)
    if "@" in text:
        yield from _without_scheme(text)


def marked(text: str, hits: Iterable[Hit]) -> str:
    """The text with its hits replaced; overlapping and touching ones, and marks that they touch, become one mark."""
    spans = [(hit.lo, hit.hi, True) for hit in hits]
    if MARK in text:
        spans.extend((m.start(), m.end(), False) for m in re.finditer(re.escape(MARK), text))
    pieces, done = [], 0
    lo, hi, secret = 0, 0, False
    for start, end, is_secret in [*sorted(spans), (len(text) + 1, 0, False)]:
        if start <= hi and (secret or is_secret):
            hi, secret = max(hi, end), True
            continue
        if secret:
            pieces += [text[done:lo], MARK]
            done = hi
        lo, hi, secret = start, end, is_secret
    return "".join(pieces) + text[done:]
