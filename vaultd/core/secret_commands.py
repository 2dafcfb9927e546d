"""Secrets that their place in a command gives away: `redis-cli -a ...`, `echo ... | docker login --password-stdin`.

Pure. An option of one letter promises nothing by itself, so each form names the command that it belongs to; SQL that
makes users and phrases of a wallet stand here too. What names its value (`--password`, `FOO_TOKEN`) is found wherever
it stands (`core.assignments`).
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping

from vaultd.core.secrets import Hit, not_numbers

__all__ = ["commanded"]

_VALUE = r"""["']?(?P<v>[^\s"'|;&<>-][^\s"'|;&<>]{2,256})"""
_FAR = r"(?:\\\n|[^\n|;&]){0,160}?"
_PRINTED = r"""["']?(?P<v>[^\s"'|<>]{3,256})["']?[ \t]{0,4}"""
_READ = r"\|[^\n|;&]{0,80}?(?:password-stdin|--with-token|--passphrase-fd|sudo -S|chpasswd)"

# Patterns by the letter of an option that must be in the text for them to be tried; `v` is what must go.
_COMMANDS = {
    "p": (
        rf"-pass(?:in|out)?[ =][\"']?pass:{_VALUE}",
        rf"7z[a-z]{{0,2}}[ ]{_FAR}(?<= )-p{_VALUE}",
        rf"mongo[a-z]{{0,8}}[ ]{_FAR}(?<= )-p[ =]?{_VALUE}",
    ),
    "P": (
        rf"zip[ ]{_FAR}(?<= )-P[ ]{_VALUE}",
        rf"sqlcmd[ ]{_FAR}(?<= )-P[ ]?{_VALUE}",
        rf"ssh-keygen[ ]{_FAR}(?<= )-P[ ]{_VALUE}",
    ),
    "N": (rf"ssh-keygen[ ]{_FAR}(?<= )-N[ ]{_VALUE}",),
    "a": (
        rf"redis-cli[ ]{_FAR}(?<= )-a[ ]{_VALUE}",
        rf"""https?[ ]{_FAR}(?<= )-a[ =]["']?[^\s:"']{{1,64}}:{_VALUE}""",
    ),
    "-": (
        rf"redis-cli[ ]{_FAR}--pass[ ]{_VALUE}",
        rf"""https?[ ]{_FAR}--auth[ =]["']?[^\s:"']{{1,64}}:{_VALUE}""",
        rf"gh secret set[ ]{_FAR}--body[ =]{_VALUE}",
        rf"(?:password-stdin|--with-token)[^\n|;&]{{0,80}}?<<<[ \t]?{_VALUE}",
    ),
    "b": (
        rf"gh secret set[ ]{_FAR}(?<= )-b[ ]?{_VALUE}",
        rf"htpasswd[ ]-\w{{0,4}}b\w{{0,4}}[ ](?:[^\s|;&]{{1,128}}[ ]){{1,3}}?{_VALUE}(?:[\"'\n]|\Z)",
    ),
    "k": (rf"openssl[ ](?:enc|aes|des){_FAR} -k[ ]{_VALUE}",),
    "K": (rf"openssl[ ](?:enc|aes|des){_FAR} -K[ ]{_VALUE}",),
    "w": (rf"ldap[a-z]{{2,8}}[ ]{_FAR}(?<= )-w[ ]?{_VALUE}",),
}
# By a part of the text.
_SENTENCES = {
    "password '": (r"(?:create|alter)[ ](?:user|role)[ ][^\n;]{1,160}?password[ ]'(?P<v>[^'\n]{2,256})",),
    "identified": (
        r"(?:create|alter|grant|set)[ ][^\n;]{1,160}?identified[ ]"
        r"[^\n;']{0,60}?by[ ]{1,4}(?:password[ ])?'(?P<v>[^'\n]{2,256})",
    ),
    "phrase": (
        r"(?:seed|recovery|mnemonic|secret)[ -]phrase(?: is)?[ ]?[:=]?[ ]?[\"'`]?"
        r"(?P<v>[a-z]{3,8}(?:[ ][a-z]{3,8}){11,23})(?![a-z])",
    ),
}
_PIPES = {
    "|": (
        rf"echo[ \t]{{1,4}}(?:-[a-z]{{1,3}}[ \t])?{_PRINTED}{_READ}",
        rf"""printf[ \t]{{1,4}}(?:["']?%s(?:\\n)?["']?[ \t])?{_PRINTED}{_READ}""",
    ),
}
_SEVERAL = {
    "secret": (r"secrets[ ]set[ ](?P<v>[^\n|;&]{1,400})", r"--from-literal[= ](?P<v>[^\s|;&]{1,400})"),
    "config:set": (r"config:set[ ](?P<v>[^\n|;&]{1,400})",),
    "vault ": (r"vault[ ](?:kv[ ]put|write)[ ](?P<v>[^\n|;&]{1,400})",),
}
_PAIR = re.compile(rf"(?<![\w./-])(?!-|(?:ttl|type|mount|policies)=)[\w./-]{{1,64}}={_VALUE}")

_Forms = tuple[tuple[str, tuple[re.Pattern[str], ...]], ...]


def _compiled(forms: Mapping[str, Iterable[str]]) -> _Forms:
    return tuple((part, tuple(map(re.compile, patterns))) for part, patterns in forms.items())


_ONE, _SAID = _compiled(_COMMANDS), _compiled(_SENTENCES)
_PIPED, _MANY = _compiled(_PIPES), _compiled(_SEVERAL)
_OPTIONS = re.compile(" -(-|[A-Za-z]{1,4})")


def commanded(text: str, low: str) -> Iterator[Hit]:
    """Every secret that its place in a command gives away, in no order; `low` is `secrets.folded(text)`."""
    yield from _values(text, _found(text, set("".join(_OPTIONS.findall(text))), _ONE))
    yield from _values(text, _found(low, low, _SAID))
    yield from _values(text, _found(text, text, _PIPED))
    for found in _found(text, text, _MANY):
        yield from _values(text, _PAIR.finditer(text, *found.span("v")))


def _found(text: str, parts: Container[str], forms: _Forms) -> Iterator[re.Match[str]]:
    """What the patterns find whose part is among `parts`."""
    for part, patterns in forms:
        if part in parts:
            for pattern in patterns:
                yield from pattern.finditer(text)


def _values(text: str, found: Iterator[re.Match[str]]) -> Iterator[Hit]:
    for match in found:
        lo, hi = match.span("v")
        if not_numbers(text[lo:hi]):
            yield Hit(match.start(), lo, hi)
