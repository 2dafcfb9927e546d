"""The address of a git remote in one form, whatever the transport: what makes two clones one project.

`git@github.com:owner/app.git`, `ssh://git@github.com:22/owner/app` and `https://me:secret@GitHub.com/owner/app/` are
all `github.com/owner/app`. A normal form never holds a user name, a password, a query or a fragment. It is part of
project ids and must not change.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from urllib.parse import unquote

from vaultd.core.checkout import path_text, posix_path

__all__ = ["LOCAL", "normalise_remote"]

LOCAL = "file:"
"""How the normal form of a repository on this machine's own disk begins; its path follows."""

_LIMIT = 2048
_REDACTED = "[REDACTED]"
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)\Z", re.DOTALL)
_HELPER = re.compile(r"([A-Za-z0-9][A-Za-z0-9+.-]*)::(.*)\Z", re.DOTALL)
_SCP = re.compile(r"(?P<user>[^/@]*@)?(?P<host>\[[^\]/]+\]|[^/:]+):(?P<path>.*)\Z", re.DOTALL)
_REDACTED_USER = re.compile(r"(\A|//)[^/@]*\[REDACTED\][^/@]*@")
_DRIVE = re.compile(r"[A-Za-z]:(?:[\\/]|\Z)")
_LOOPBACK = re.compile(r"(?:localhost|127\.[0-9.]+|::1)\Z")
_HOSTED = frozenset({"ssh", "git", "http", "https", "ftp", "ftps", "git+ssh", "ssh+git", "git+https", "git+http"})
# The addresses that three forges document for SSH over the HTTPS port: the same repositories.
_SAME_HOST = {
    "ssh.github.com": "github.com",
    "altssh.gitlab.com": "gitlab.com",
    "altssh.bitbucket.org": "bitbucket.org",
}


def normalise_remote(url: str, base: str = "") -> str:
    """The normal form of a remote's address; "" when there is none that two clones could share.

    Hosted: `host[:port]/path`, the host in lower case, the path's case kept; ports count on loopback hosts only, where
    they tell servers apart. On the own disk: `file:` and the path, relative ones joined to `base`. Other transports
    keep their scheme. One whose host or path was redacted, with control characters or over 2,048 long gives "".
    """
    text = _REDACTED_USER.sub(r"\1", url.strip())
    if not text or len(text) > _LIMIT or _REDACTED in text or any(ord(c) < 32 or ord(c) == 127 for c in text):
        return ""
    return path_text(unicodedata.normalize("NFC", _form(text, base)))


def _form(text: str, base: str) -> str:
    """The normal form of a plausible address."""
    if url := _URL.match(text):
        return _from_url(url[1].lower(), url[2], base)
    if helper := _HELPER.match(text):
        inner = _form(helper[2], "") if helper[2] else ""
        return f"{helper[1].lower()}::{inner}" if inner else ""
    if _DRIVE.match(text) or text.startswith("\\\\"):
        return _local(text)
    scp = _SCP.match(text)
    if scp:
        return _hosted(*_split_port(scp["host"]), scp["path"])
    return _local(text if text.startswith("/") else posixpath.join(base, text) if base else "")


def _from_url(scheme: str, rest: str, base: str) -> str:
    """The form of `scheme://rest`."""
    rest = rest.partition("#")[0].partition("?")[0]
    authority, slash, path = rest.partition("/")
    path = unquote(path, errors="surrogateescape")
    if scheme == "file":
        if authority in ("", "localhost"):
            return _local(path if _DRIVE.match(path) else "/" + path)
        return _local(authority + "/" + path if _DRIVE.match(authority + "/") else f"\\\\{authority}\\{path}")
    host, port = _split_port(authority.rpartition("@")[2])
    if scheme in _HOSTED:
        return _hosted(host, port, path)
    tail = _tidy(path)
    return f"{scheme}://{host}{slash and tail and '/' + tail}" if host or tail else ""


def _split_port(host: str) -> tuple[str, str]:
    """Host and port of `host:port`, `[IPv6]:port` or `[host:port]`, with the brackets taken off."""
    inner, _, after = host.removeprefix("[").partition("]")
    if inner.count(":") > 1:
        return inner, after.removeprefix(":")
    name, _, port = inner.partition(":")
    return name, port


def _hosted(host: str, port: str, path: str) -> str:
    """`host/path`; "" without either."""
    name = host.lower().rstrip(".")
    name = _SAME_HOST.get(name, name)
    tail = _tidy(path)
    if not name or not tail:
        return ""
    return f"{name}:{port}/{tail}" if port and _LOOPBACK.match(name) else f"{name}/{tail}"


def _tidy(path: str) -> str:
    """A repository's path on its host: one slash between names, none around, no `.git` at the end."""
    names = [name for name in path.replace("\\", "/").split("/") if name not in ("", ".")]
    tail = "/".join(names)
    return tail.removesuffix(".git").rstrip("/") if tail != ".git" else ""


def _local(path: str) -> str:
    """The form of a path on the own disk."""
    text = posix_path(path)
    if _DRIVE.match(text):
        text = text[0].lower() + text[1:]
    if text.endswith("/.git"):
        text = text.removesuffix("/.git")
    text = text.removesuffix(".git").rstrip("/")
    return f"{LOCAL}{text}" if text not in ("", ".") else ""
