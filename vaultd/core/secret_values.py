"""Whether the value of a name that promises a secret is one, or is code that refers to it.

Pure. How much a value must look like a secret depends on what its name promises (`core.secret_names`):

    WEAK      letters and digits, 12 or more, not words joined by dashes
    MEDIUM    any value; in code only one that is not plain words
    STRONG    any value that is not code
    PASSWORD  the same, and a word that stands alone on its line, and four digits

Code is what refers to a value instead of being one: a type (`password: str`), a name (`token = parse_token`), a call, a
subscript, a shell or template variable. An unquoted value in code is a name far more often than a secret, in an
environment file it is always a literal: the form of the assignment decides.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from vaultd.core.secret_names import Strength
from vaultd.core.secrets import mixed, says_something

__all__ = ["Site", "counts", "evident", "fields", "follows_scheme"]


class Site(NamedTuple):
    """Where a value was found: what its name promises and the form of the assignment.

    `colon`: `name: value`. `tight`: `name=value`, no blanks. `named`: the name is in quotes or brackets. `plain`: in a
    query, a connection string, a tag or after a flag, never a name in code. `said`: "the password is ...". `schemed`:
    the value may begin with `Bearer` or its like.
    """

    name: str
    strength: Strength
    colon: bool = False
    tight: bool = False
    named: bool = False
    plain: bool = False
    said: bool = False
    schemed: bool = False

    @property
    def env(self) -> bool:
        """`FOO_TOKEN`: the name of an environment variable."""
        return self.name.isupper()

    @property
    def header(self) -> bool:
        """`X-Api-Key: ...`."""
        return self.colon and "-" in self.name and not self.name.startswith("-")


_PLACEHOLDER = re.compile(
    r"\$\{[^{}]*\}?\Z|\$[A-Za-z_]\w*\Z|\$\(|\$\{\{|%\(\w*\)?[sd]?\Z|%\w+%\Z|%[sdvq]\Z|\{[^{}]*\}\Z|\{\{|<[^<>]*>\Z|#\{"
    r"|[xX]{3,}\Z|[yY][oO][uU][rR][-_ ]|![A-Za-z/]+\Z|&(?:lt|#x3[cC]|#60);|arn:aws:|op://|vault:|ref\+|env:|https?://[^\s@]*\Z"
)
_PLAIN_VALUES = frozenset(
    [
        "any",
        "array",
        "base64",
        "bearer",
        "bool",
        "boolean",
        "buffer",
        "byte",
        "bytearray",
        "bytes",
        "char",
        "default",
        "disabled",
        "empty",
        "enabled",
        "expired",
        "false",
        "final",
        "float",
        "hidden",
        "inherit",
        "int",
        "integer",
        "invalid",
        "missing",
        "memoryview",
        "never",
        "nil",
        "no",
        "none",
        "null",
        "number",
        "object",
        "off",
        "on",
        "optional",
        "password",
        "readonly",
        "required",
        "revoked",
        "secret",
        "str",
        "string",
        "text",
        "true",
        "type",
        "undefined",
        "unknown",
        "unset",
        "uuid",
        "valid",
        "varchar",
        "void",
        "yes",
        "&str",
        "*string",
    ]
)
_SEGMENT = r"(?:[A-Za-z]{1,24}[0-9]{0,3}|[0-9]{1,6})"
_SLUG = re.compile(rf"[-_./: ]?{_SEGMENT}(?:[-_./: ]+{_SEGMENT})*")
_OPAQUE = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9+/=_.~:%-]{12,}")
_FIELDS = re.compile(r"%[sdrvq]|%\(\w*\)[sd]|\{[^{}]*\}")
_PATH = re.compile(r"(?:~|\.{0,2})/(?:[A-Za-z._-]{1,24}[0-9]{0,3}/)*[A-Za-z._-]{1,32}[0-9]{0,3}(?:\.[A-Za-z0-9]{1,6})?")
_FILE = re.compile(r"(?:[\w.-]{1,64}/){1,16}[\w.-]{1,64}\.[a-z]{1,5}")
_CALL = re.compile(r"(?:new |await )?[A-Za-z_$][\w$]*(?:(?:\.|::|\?\.|->)[\w$]+)*!?[(\[{<]")
_IDENT = re.compile(r"[&*@!~+-]{0,2}[A-Za-z_$][\w$]*(?:(?:\.|::|\?\.|->)[A-Za-z_$][\w$]*)*[?!]?")
_TYPE = re.compile(r"(?:[A-Z][a-z]+)*(?:Str|String|Bytes|Key|Secret|Token|Password|Option|Type)")
_TELLS = re.compile(
    r"key|token|secret|pass|pwd|cred|auth|(?:^|\W)(?:os|process|settings|config|self|this|env|args|options|secrets)\b"
)
_TOKEN_START = re.compile(r"[A-Za-z0-9+/_.~-]{4}")


def fields(value: str) -> bool:
    """Whether a template has fields and nothing beside them that could be a secret: `JWT {jwt}`."""
    return "{" in value and not mixed(_FIELDS.sub("", value), 8)


def follows_scheme(value: str) -> bool:
    """Whether what follows `Basic` or `Bearer` is a token and not a word of prose or a variable."""
    if _TOKEN_START.match(value) is None:
        return False
    return len(value) >= 16 or mixed(value, 6) or not (value.islower() or value.istitle())


def counts(site: Site, value: str, *, quoted: bool, ended: str = "", alone: bool = False) -> bool:
    """Whether a value is a secret; `ended` is the punctuation cut off behind it, `alone`: the line ends there."""
    if not says_something(_FIELDS.sub("", value) if "{" in value or "%" in value else value):
        return False
    if _PLACEHOLDER.match(value) or _PATH.fullmatch(value) or (value.lower() in _PLAIN_VALUES and not site.plain):
        return False
    if len(value) < 2 and not (site.env and site.tight):  # `accesskey="n"`
        return False
    password = site.strength is Strength.PASSWORD
    if site.said:
        return mixed(value, 6) if password else _opaque(value)
    if value.isdigit():
        return site.strength >= Strength.MEDIUM and len(value) >= (
            4 if password else 5 if site.env and site.tight else 9
        )
    if site.strength is Strength.WEAK:
        return _opaque(value)
    if quoted:
        return site.strength >= Strength.STRONG or (site.env and site.tight) or _SLUG.fullmatch(value) is None
    return site.plain or (_CALL.match(value) is None and _bare(site, value, ended, alone))


def evident(value: str, *, password: bool) -> bool:
    """Whether a value shows by itself what its name promises: what stands behind the name may be other text too."""
    if _PLACEHOLDER.match(value) or _PATH.fullmatch(value) or _FILE.fullmatch(value):
        return False
    if password and mixed(value, 10) and not value.isalnum() and any(map(str.isdigit, value)):
        return _IDENT.fullmatch(value) is None and _CALL.match(value) is None and _SLUG.fullmatch(value) is None
    return _opaque(value)


def _opaque(value: str) -> bool:
    """Whether it looks like a token whatever its name: letters and digits, 12 or more, no name or words in code."""
    if _OPAQUE.fullmatch(value) is None or _SLUG.fullmatch(value) is not None:
        return False
    return _IDENT.fullmatch(value) is None or not ("." in value or _TELLS.search(value.lower()))


def _bare(site: Site, value: str, ended: str, alone: bool) -> bool:
    """Whether a value without quotes is a literal, and not a name in code."""
    ident = _IDENT.fullmatch(value) is not None
    tells = ident and _TELLS.search(value.lower()) is not None
    password = site.strength is Strength.PASSWORD
    if site.env and site.tight:  # a shell or an environment file, or a keyword argument in capitals
        return not (tells and (ended[:1] in {")", ","} or "." in value))
    if site.env and site.colon:
        return (alone and _TYPE.fullmatch(value) is None) or mixed(value, 4)
    if site.header and not (ident and (site.named or "." in value)):
        return len(value) >= 8
    digits = sum(map(str.isdigit, value))
    if ident and (not digits or (tells and (digits < 2 or "_" in value or "." in value))):
        # A word that is all there is on the line of a YAML or properties file.
        word = password and alone and not site.named and value.isalpha() and value.islower() and len(value) >= 8
        return word and (site.colon or site.tight) and value not in site.name.lower()
    return mixed(value, 6 if password else 8)
