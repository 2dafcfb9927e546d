"""What the name of a setting, header or field promises about its value.

Pure. Names come in every style (`FOO_API_KEY`, `apiKey`, `X-Api-Key`, `spring.datasource.password`); what counts is the
last word and the one before it:

    NONE      Idempotency-Key, primary_key, next_token, monkey
    WEAK      sort_by_key, token, credentials, signature, pass
    MEDIUM    FOO_KEY, comma_token
    STRONG    api_key, ACCESS_TOKEN, client_secret, Authorization
    PASSWORD  password, passwd, passphrase, db_pass, and the word in other languages
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache

__all__ = ["Strength", "owner_in_front", "strength"]


class Strength(IntEnum):
    """How much a name promises that its value is a secret."""

    NONE = 0
    WEAK = 1
    MEDIUM = 2
    STRONG = 3
    PASSWORD = 4


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SPLIT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_AUTH = _words(
    """access account admin aes anthropic api app auth aws azure bearer bot client cloudflare consumer csrf datadog
    deploy deployment digitalocean discord docker encryption encrypt gcp git github gitlab google gpg heroku hmac
    hook huggingface id jwt kms license licence mailgun master npm oauth openai openrouter pgp personal private
    provider pypi refresh registry rsa secret security sendgrid sentry service session shared sign signing signature
    slack ssh ssl storage stripe subscription telegram tls twilio upload user vault vercel webhook xsrf"""
)
_PLAIN_KEYS = _words(
    """answer arrow attribute bucket cache cfg column composite config dedup dedupe dict down element end enter entity
    escape event feature field filter flag foreign function group grouping hash header home hot idempotency index
    item join json keyboard label legend list locale lookup map message metric modifier node object option order
    page param parameter partition press primary property public query range react record ref resource routing row
    s3 sequence setting short socket shortcut sort space surrogate tab tag translation unique up websocket xml yaml"""
)
_PLAIN_TOKENS = _words(
    """bos cached cls completion continuation cont current end eof eol eos expected first input last lex mask max min n
    new next num number output pad page parse per peek prev previous prompt sep special start stop sync tok total
    unexpected unk"""
)
_PASS_OWNERS = _words(
    """admin auth become bind db email ftp http imap ldap login mail mongo mysql pg postgres proxy rabbitmq redis root
    smtp ssh sudo user vnc wifi"""
)
_ABROAD = _words("contraseña 密码 密碼 パスワード 비밀번호 пароль")
_OWNER = re.compile(r"(access|account|api|app|auth|client|private|secret|session|service|signing|encryption)[ ]\Z")


def owner_in_front(before: str) -> str:
    """The word before a bare `key` or `token` that makes a secret of it, as in `api key`; "" when there is none."""
    owner = _OWNER.search(before)
    return "" if owner is None else owner.group(1)


@lru_cache(maxsize=1024)
def strength(name: str, keyword: str, owner: str = "") -> Strength:
    """What a name that ends with `keyword` promises; `owner` is what stands in front of a bare one."""
    if keyword in _ABROAD:
        return Strength.PASSWORD
    last_part = name.rsplit(".", 1)[-1].lstrip("-")
    words = [word.lower() for word in _SPLIT.findall(last_part)] or [keyword]
    if len(words) == 1:  # `tls.key`
        words = [word.lower() for word in _SPLIT.findall(name)][-2:]
    glued = words[-1][: -len(keyword)] if words[-1].endswith(keyword) else ""
    owner = glued or (words[-2] if len(words) > 1 else owner)
    upper = last_part.isupper() or ("-" in last_part and last_part[0].isupper()) or last_part.startswith("x-")
    if keyword in {"password", "passwort", "passwd", "passphrase"}:
        return Strength.PASSWORD
    if keyword == "pwd":
        return Strength.NONE if upper and owner in {"", "old"} else Strength.PASSWORD
    if keyword in {"pass", "pw", "psk"}:
        return Strength.PASSWORD if owner in _PASS_OWNERS else Strength.WEAK if owner == "" else Strength.NONE
    if keyword in {"secret", "authorization"}:
        return Strength.STRONG
    if keyword.startswith("credential") and upper:
        return Strength.MEDIUM
    if keyword in {"auth", "sig", "cookie"} and glued:
        return Strength.NONE
    if keyword in {"key", "token"}:
        return _qualified(keyword, owner, glued != "", upper)
    return Strength.WEAK


def _qualified(keyword: str, owner: str, glued: bool, upper: bool) -> Strength:
    """What `<owner>_key` or `<owner>_token` promises."""
    if owner in _AUTH:
        return Strength.STRONG
    if owner in (_PLAIN_KEYS if keyword == "key" else _PLAIN_TOKENS):
        return Strength.NONE
    if keyword == "token":
        return Strength.MEDIUM if owner or upper else Strength.WEAK
    if not owner or glued:  # `key`, `monkey`
        return Strength.NONE
    return Strength.MEDIUM if upper else Strength.WEAK
