"""Secrets that begin with a prefix which their vendor gave them to be found by: `sk-`, `ghp_`, `xoxb-`, `glpat-`.

Pure. Every prefix ends in a dash, an underscore or a dot; the text is searched for these signs, and only where the two
letters before one and the run of characters behind it can belong to a key is the prefix looked up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from string import ascii_letters, digits

from vaultd.core.secrets import Hit, not_words

__all__ = ["prefixed"]


def _any(rest: str) -> bool:
    return True


def _run(rest: str) -> bool:
    """Whether it begins with 30 letters and digits without a sign between them."""
    return len(rest) >= 30 and rest[:30].isalnum()


def _uuid(rest: str) -> bool:
    return re.match(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}", rest) is not None


# The least length of the rest, and what the rest must be: prefixes that ordinary names have too ask for more.
_PREFIXES: dict[str, tuple[int, Callable[[str], bool]]] = {
    **dict.fromkeys(("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"), (20, _any)),
    **dict.fromkeys(("glpat-", "glptt-", "gldt-", "glrt-", "glcbt-", "glft-", "glsoat-", "glagent-"), (16, _any)),
    **dict.fromkeys(("sk_live_", "rk_live_", "sk_test_", "rk_test_"), (16, _any)),
    **dict.fromkeys(("xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxp-", "xoxr-", "xoxs-", "xapp-"), (10, _any)),
    **dict.fromkeys(("sk-", "whsec_", "dop_v1_", "doo_v1_", "dor_v1_", "shpat_", "shpca_", "shppa_"), (16, not_words)),
    **dict.fromkeys(("shpss_", "lin_api_", "sntrys_", "sntryu_", "figd_", "dckr_pat_", "glsa_"), (16, not_words)),
    **dict.fromkeys(("GOCSPX-", "NRAK-", "PMAK-", "tskey-", "sbp_", "ya29.", "hvs.", "hvb."), (20, not_words)),
    **dict.fromkeys(("hf_", "npm_", "gsk_", "r8_", "ntn_", "xai-", "pplx-", "pypi-"), (30, _run)),
    "SG.": (40, _any),
    "pit-": (36, _uuid),
}
_BY_END = {end: tuple(p for p in _PREFIXES if p.endswith(end)) for end in {p[-3:] for p in _PREFIXES}}
_LETTERS = frozenset(ascii_letters + digits)
_T = "[A-Za-z0-9_-]"
_REST = {"-": re.compile(f"{_T}*+"), "_": re.compile(f"{_T}*+"), ".": re.compile(r"[A-Za-z0-9_.-]*+")}
_LOOK = 256
"""How much of the rest is looked at to tell a key from a name; what matches is taken whole."""


def _ends(sign: str) -> re.Pattern[str]:
    """Where `sign` stands between the last two letters of a known prefix and at least ten characters of a token."""
    tails = sorted({prefix[-3:-1] for prefix in _PREFIXES if prefix.endswith(sign)})
    back = "|".join(re.escape(tail + sign) for tail in tails)
    return re.compile(f"{re.escape(sign)}(?<={back})(?={_T}{{10}})")


_ENDS = tuple((_ends(sign), _REST[sign]) for sign in "-_.")

# Telegram: `<6-10 digits>:AA` and 30 more, or 34 to 35 characters.
_TELEGRAM = re.compile(rf":(?=AA{_T}{{30}}|{_T}{{34,35}}(?!{_T}))(?<=[0-9]{{6}}:)")
_NUMBER = re.compile(r"(?<![0-9])[0-9]{6,10}\Z")


def prefixed(text: str, low: str) -> Iterator[Hit]:
    """Keys with a vendor's prefix, and Telegram's, which begin with the number of the bot."""
    for ends, rest in _ENDS:
        if ends.search(text) is not None:
            yield from _behind(text, ends, rest)
    for match in _TELEGRAM.finditer(text):
        number = _NUMBER.search(text, max(0, match.start() - 10), match.start())
        tail = _REST["-"].match(text, match.end())
        if number is not None and tail is not None:
            yield Hit(number.start(), number.start(), tail.end())


def _prefix(text: str, at: int) -> str:
    """The prefix that ends at `at` and does not begin in the middle of a word; "" when there is none."""
    for prefix in _BY_END.get(text[at - 3 : at], ()):
        start = at - len(prefix)
        if start >= 0 and text.endswith(prefix, 0, at) and (not start or text[start - 1] not in _LETTERS):
            return prefix
    return ""


def _behind(text: str, ends: re.Pattern[str], rest: re.Pattern[str]) -> Iterator[Hit]:
    done = 0
    for match in ends.finditer(text):
        at = match.end()
        if at < done:
            continue
        prefix = _prefix(text, at)
        tail = rest.match(text, at, at + _LOOK) if prefix else None
        if tail is None:
            continue
        least, counts = _PREFIXES[prefix]
        if len(tail.group()) >= least and counts(tail.group()):
            whole = rest.match(text, at)
            done = tail.end() if whole is None else whole.end()
            yield Hit(at - len(prefix), at - len(prefix), done)
        elif len(tail.group()) == _LOOK and counts is not_words:
            done = at + _LOOK // 2  # words as far as one can see: no need to look at each of them
