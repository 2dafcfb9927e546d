"""Secrets that the name before them gives away: `FOO_TOKEN=...`, `X-Api-Key: ...`, `"password": "..."`, `--token ...`.

Pure. The name stays, the value goes. Here assignments are found in all the forms that they have in shells,
configuration, code, headers, queries and prose; what a name promises is in `core.secret_names`, whether a value keeps
the promise in `core.secret_values`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from vaultd.core.secret_names import Strength, owner_in_front, strength
from vaultd.core.secret_values import Site, counts, fields, follows_scheme
from vaultd.core.secrets import MARK, Hit

__all__ = ["assigned", "name_start"]

_KEYWORDS = (
    # A bare `key` promises nothing, unless `api` or its like stands in front of it.
    *(
        "key(?:(?<=[a-z0-9_-]key)|(?<=[a-z][ ]key))",
        "token",
        "secret",
        "pass(?:wor[dt]|wd|phrase)?",
        *("pwd", "pw(?![a-z0-9])", "psk"),
        "credentials?",
    ),
    *("auth(?:orization)?", "cookie", "sig(?:nature)?"),
)
_ABROAD = ("contraseña", "密[码碼]", "パスワード", "비밀번호", "пароль")
_SUFFIX = r"[-_]data|_base(?:64)?|_b64|_pem|_hex|_value|_id|_?[0-9]{1,2}|"
_THEN = r"""[\\"'`\]]{0,6}[ \t]{0,8}[=:：]|\\*["'],[ \t]?\\*["']|>|[ ](?:is|was|to|ist|lautet|es)[: ]|[是は]"""
_PLACES, _PLACES_ABROAD = (
    tuple(re.compile(f"({word})({_SUFFIX})(?={_THEN})") for word in words) for words in (_KEYWORDS, _ABROAD)
)
_SEPARATOR = re.compile(
    r"""(?P<close>[\\"'`\]]{0,6})(?P<gap>[ \t]{0,8})"""
    r"""(?P<sign>={1,3}>?|:=|:(?!:)|：|(?<=["']),|>|(?<=[ ])(?:ist|is|was|to|lautet|es):?|[是は])"""
    r"""(?P<blank>[ \t]{0,8})(?P<type>(?<=:[ \t])[A-Za-z_&][\w.\[\]| ]{0,40}? =[ \t](?!=))?"""
)
_FLAG = re.compile(
    r"--(?<![a-z0-9_-]--)[a-z0-9-]{0,40}?"
    r"(?:pass(?:word|wd|phrase)?|token|secret|(?:api|access|secret|private|auth)-?key)[ \t]{1,4}"
)

_OPEN = re.compile(r"""(?:[rRbBuU]?(?P<kind>[rRbBuUfF])[rR]?(?=["']))?(?P<quote>\\*(?:"{3}|'{3}|["'`]))""")
_RUN = re.compile(r"""(?:[^\s"'`<>\\;]++|;(?![ \w]{1,32}=)|\\(?![nrtu"'\\]))+""")
_QUERY_RUN = re.compile(r"""(?:[^\s"'`<>\\&;#]++|\\(?![nrtu"'\\]))+""")
_TAG_RUN = re.compile(r"[^\s<>]{1,256}(?=</)")
_REST = re.compile(r"""[^\s"'`<>]*+""")
_SCHEME = re.compile(
    r"(?:basic|bearer|token|digest|negotiate|ntlm|jwt|api-?key|key|bot|hmac-\w+|aws4-hmac-\w+)[ \t]+", re.IGNORECASE
)
_COOKIE = re.compile(r"""\\*["']?(?P<v>[A-Za-z0-9_.-]{1,64}=[^\r\n"'`\\]{8,})""")
_CHAIN = re.compile(r"""(?:[?&;,"']{0,2}+[\w.-]{1,32}+["'\\]{0,3}+[=:][ \t]?+["'\\]{0,3}+){6,}+\S*+""")
"""Six assignments without a value, a fingerprint at best: goes whole, for looking at each would take long."""
_MARKED = re.compile(r"""\\*["'`]{0,3}""" + re.escape(MARK) + r"""(?=[\s"'`,;)\\]|\Z)""")
_USER = re.compile(r"""[^\s"'/@]{1,256}@""")
_LONGEST_NAME = 64
_LONGEST_QUOTED = 4096
_LOOK = 256
"""How much of a value is looked at to tell whether it is a secret; one that is goes whole."""


def assigned(text: str, low: str) -> Iterator[Hit]:
    """Every value that its name makes a secret, in no order; `low` is `secrets.folded(text)`."""
    for pattern in _PLACES if text.isascii() else (*_PLACES, *_PLACES_ABROAD):
        done = 0
        for found in pattern.finditer(low):
            hit = _at(text, low, found) if found.start() >= done else None
            if hit is not None:
                done = hit.hi
                yield hit
    for found in _FLAG.finditer(low):
        hit = _flag(text, found)
        if hit is not None:
            yield hit


def _at(text: str, low: str, found: re.Match[str]) -> Hit | None:
    """The secret that is assigned to the name which ends here."""
    sign = _SEPARATOR.match(text, found.end())
    if sign is None or _MARKED.match(text, sign.end()) is not None:
        return None
    start = name_start(text, found.start())
    name, before = text[start : found.end(1)], low[max(0, start - 12) : start]
    promise = strength(name, found[1], owner_in_front(before) if len(name) == len(found[1]) else "")
    if promise is Strength.NONE or (found[2] == "_id" and not name.lower().endswith("access_key")):
        return None
    if before.endswith("//") and _USER.match(text, sign.end()):  # `https://x-access-token:...@host`
        return None
    site, at = _site(name, before, promise, found[1], sign), sign.end()
    if site is None:
        return None
    if found[1] == "cookie":
        pairs = _COOKIE.match(text, at) if site.colon else None
        return None if pairs is None else Hit(start, *pairs.span("v"))
    chain = _CHAIN.match(text, at)
    if chain is not None:
        return Hit(start, at, chain.end())
    # The end of a string, as in `input("Password:")`, and not `{password:"..."}`.
    ends = sign["sign"] == ":" and not (sign["close"] or sign["blank"]) and text[at : at + 1] in {'"', "'"}
    # And of one that holds the name alone: `prompt='Password: ', stream=None`.
    if site.colon and not sign["close"] and before[-1:] in {'"', "'"} and text[at : at + 1] == before[-1:]:
        return None
    if ends and before.strip()[-1:] not in {"{", ",", "("}:
        return None
    if sign["sign"] == ">" and _TAG_RUN.match(text, at) is None:
        return None
    span = _value(text, at, site)
    return None if span is None else Hit(start, *span)


def _site(name: str, before: str, promise: Strength, keyword: str, sign: re.Match[str]) -> Site | None:
    """The form of an assignment; None when it is none. `before` is the lower-case text in front of the name."""
    kind = sign["sign"]
    tight = kind == "=" and not sign["gap"] and not sign["blank"]
    flag = tight and name.startswith("--")
    if flag and promise is Strength.WEAK and keyword in {"key", "token"}:  # `--token=...`
        promise = Strength.MEDIUM
    query = flag or (tight and before.endswith(("?", "&", ";", "; ")))
    if (kind == ">" and not before.endswith("<")) or (keyword in {"signature", "sig"} and not query):
        return None
    return Site(
        name,
        Strength.WEAK if kind == "," else promise,
        colon=kind in ":：" and not sign["type"],
        tight=tight,
        named=sign["close"] != "",
        plain=query or kind == ">",
        said=kind[0] in "iwtle是は",
        schemed=keyword in {"authorization", "auth", "token", "key"},
    )


def name_start(text: str, at: int) -> int:
    """Where the name begins that holds the word at `at`."""
    floor = max(0, at - _LONGEST_NAME)
    while at > floor and (text[at - 1].isalnum() or text[at - 1] in "_-."):
        at -= 1
    return at


def _value(text: str, at: int, site: Site) -> tuple[int, int] | None:
    """Where the secret that begins at `at` is; None when the value is no secret."""
    opening = _OPEN.match(text, at)
    if opening is not None:
        return _quoted(text, opening, site)
    scheme = _SCHEME.match(text, at) if site.schemed else None
    at = at if scheme is None else scheme.end()
    query = site.plain and not site.name.startswith("-")
    run = (_QUERY_RUN if query else _RUN).match(text, at, at + _LOOK)
    if run is None:
        return None
    value = _trimmed(run.group())
    if scheme is not None:
        secret = follows_scheme(value)
    else:
        ended, after = run.group()[len(value) :], text[run.end() : run.end() + 2]
        alone = not ended and (not after or after.startswith(("\n", "\r", "\\n", "\\r")))
        secret = counts(site, value, quoted=False, ended=ended, alone=alone)
    if not secret:
        return None
    rest = _REST.match(text, run.end()) if run.end() - at == _LOOK else None
    return at, at + len(value) if rest is None else rest.end()


def _quoted(text: str, opening: re.Match[str], site: Site) -> tuple[int, int] | None:
    """The same for a value in quotes, which may be escaped ones of JSON in JSON."""
    lo = opening.end()
    hi = _quoted_end(text, lo, opening["quote"])
    if site.schemed and (scheme := _SCHEME.match(text, lo, hi)) is not None:
        lo = scheme.end()
    value = text[lo : min(hi, lo + _LOOK)]
    if (site.schemed or opening["kind"] in {"f", "F"}) and fields(value):
        return None
    # Between backticks is code in prose too: "a secret: `start`".
    return (lo, hi) if counts(site, value, quoted=opening["quote"][-1] != "`") else None


def _quoted_end(text: str, at: int, quote: str) -> int:
    """Where a quoted value ends: at its quote, not an escaped one; else at the end of the line."""
    line = text.find("\n", at, at + _LONGEST_QUOTED)
    stop = min(len(text), at + _LONGEST_QUOTED) if line < 0 else line
    close = text.find(quote, at, stop)
    while close > at and text[close - 1] == "\\":
        before = text[max(at, close - _LOOK) : close]
        if quote[0] != "\\" and (len(before) - len(before.rstrip("\\"))) % 2 == 0:
            break
        close = text.find(quote, close + 1, stop)
    if close >= 0:
        return close
    rest = _REST.match(text, stop) if line < 0 else None
    return stop if rest is None else rest.end()


def _trimmed(run: str) -> str:
    """The run without the punctuation of the sentence or code round it; brackets that it opens itself stay."""
    while run and run[-1] in ".,;:)]}":
        opened = {")": "(", "]": "[", "}": "{"}.get(run[-1])
        if opened is not None and run.count(opened) >= run.count(run[-1]):
            break
        run = run[:-1]
    return run


def _flag(text: str, found: re.Match[str]) -> Hit | None:
    """`--password VALUE`: a value, not the next word of a sentence, a flag or `PASSWORD` in a synopsis."""
    kind = Strength.PASSWORD if "pass" in found.group() else Strength.STRONG
    span = _value(text, found.end(), Site("--flag", kind, tight=True, plain=True))
    if span is None:
        return None
    value = text[span[0] : span[1]]
    words = value.replace("_", "").replace("-", "")
    ordinary = words.isalpha() and (words.islower() or words.isupper() or words.istitle())
    if _OPEN.match(text, found.end()) is None and (ordinary or value[0] in "-[|"):
        return None
    return Hit(found.start(), *span)
