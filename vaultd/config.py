"""Settings and places: the only module that reads the environment and configuration files.

`load()` is called once by the command line; everything below it is passed down as values. Two files are read:
`~/.config/vaultd/config.toml` (this machine's) and `<vault>/vaultd.toml` (travels with the vault; its value wins where
both set a key). All problems are reported together.
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from vaultd.core.embedding import Choice
from vaultd.core.sanitize import Rules
from vaultd.errors import UsageError

__all__ = [
    "KEYS",
    "Config",
    "KeyInfo",
    "Places",
    "current_environment",
    "load",
    "places",
    "settings_state",
    "vault_path",
]


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """A configuration key: its TOML type, default and meaning (the README table is made from these)."""

    type: type
    default: object
    meaning: str


KEYS: Mapping[str, KeyInfo] = {
    "capture.assistant": KeyInfo(
        bool, True, "keep what the assistant said last (decisions, next steps are read from it)"
    ),
    "capture.ignore_paths": KeyInfo(list, [], "globs; an event about a matching file is dropped before it is stored"),
    "capture.allow_list": KeyInfo(bool, False, "record only in folders that have a `.vaultd.toml`, and below them"),
    "handoff.claim_on_session_start": KeyInfo(
        bool, True, "a session that starts is given the open handoff; false: it is told of it, and it stays open"
    ),
    "sanitize.extra_patterns": KeyInfo(list, [], "regular expressions whose matches become [REDACTED] too"),
    "sanitize.allow": KeyInfo(list, [], "texts that are never redacted"),
    "daemon.watch": KeyInfo(bool, True, "see edits at once; without, a scan of the vault sees them within seconds"),
    "daemon.autostart": KeyInfo(bool, True, "a session's end starts one ingest pass when no daemon runs"),
    "git.commit_edits": KeyInfo(bool, True, "commit a person's edits after a quiet minute"),
    "http.bind": KeyInfo(str, "127.0.0.1:7426", "where the daemon listens besides its socket; `off` for nowhere"),
    "http.hosts": KeyInfo(list, [], "names that clients may call it by; needed for an address that is not loopback"),
    "vectors.provider": KeyInfo(
        str, "off", "who makes vectors of pages: `off`, `local` (a model in the extra) or `endpoint`"
    ),
    "vectors.url": KeyInfo(
        str, "", "an endpoint's address, like `http://localhost:11434/v1`; page texts are sent there"
    ),
    "vectors.model": KeyInfo(str, "", "the model that an endpoint is asked for"),
    "vectors.key_env": KeyInfo(str, "", "the environment variable that holds an endpoint's key"),
    "vectors.key_file": KeyInfo(str, "", "or the file that holds it, for a daemon that a client starts"),
    "vectors.dimensions": KeyInfo(int, 0, "numbers of a vector, where the model lets one choose; 0 for its own"),
}
"""Every key that may stand in a configuration file."""

_MACHINE = ("http.", "vectors.")
"""Keys that count only in this machine's file: a vault that came by sync or clone must not open a port, nor say where
pages are sent."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where things are on this machine (all absolute)."""

    home: Path
    config: Path
    data: Path
    state: Path
    cache: Path
    runtime: tuple[Path, ...] = ()

    @property
    def pointer(self) -> Path:
        """One line: the path of the default vault; read by the hook and the command line alike."""
        return self.config / "vault"

    @property
    def settings(self) -> Path:
        """This machine's settings."""
        return self.config / "config.toml"

    @property
    def hook(self) -> Path:
        """The installed copy of the hook script."""
        return self.data / "vaultd-hook"

    @property
    def spool(self) -> Path:
        """Where events wait while the vault is away."""
        return self.state / "spool"

    @property
    def token(self) -> Path:
        """What a client over TCP must know: one line, its owner's alone."""
        return self.config / "token"

    def index(self, vault: Path) -> Path:
        """The index folder of a vault."""
        return self.cache / _short(vault) / "index"

    def vectors(self, vault: Path) -> Path:
        """The folder of a vault's vectors."""
        return self.cache / _short(vault) / "vectors"

    def socket(self, vault: Path) -> Path:
        """The daemon's socket, for local clients: the first place whose path is short enough for one."""
        paths = [folder / f"{_short(vault)}.sock" for folder in self.runtime]
        return next((path for path in paths if len(os.fsencode(path)) <= _SOCKET_BYTES), paths[-1])


_SOCKET_BYTES = 107
"""The longest path of a socket (sun_path, without its final zero)."""


def _short(vault: Path) -> str:
    """Sixteen hex digits of sha256 of a vault's real path."""
    return hashlib.sha256(os.fsencode(os.path.realpath(vault))).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that was read, once.

    `problems` says what is wrong with the settings (only when they were read forgivingly), `read` is the
    `settings_state` from before they were read.
    """

    vault: Path
    places: Places
    host: str
    environ: Mapping[str, str] = field(repr=False)
    command: str = "vaultd"
    assistant: bool = True
    ignore_paths: tuple[str, ...] = ()
    allow_list: bool = False
    claims: bool = True
    rules: Rules = field(default_factory=Rules)
    watch: bool = True
    autostart: bool = True
    commit_edits: bool = True
    bind: str = "off"
    hosts: tuple[str, ...] = ()
    vectors: Choice = field(default_factory=Choice)
    problems: tuple[str, ...] = ()
    read: tuple[int, int] = field(default=(0, 0), compare=False)


def current_environment() -> dict[str, str]:
    """A copy of the process environment (for passing down, and for children)."""
    return dict(os.environ)


def places(environ: Mapping[str, str]) -> Places:
    """Where things are for an environment; blank and relative XDG variables are none. UsageError without a home."""
    home = environ.get("HOME") or environ.get("USERPROFILE") or ""
    if not os.path.isabs(home):  # noqa: PTH117  # text that may be empty
        raise UsageError("HOME names no folder. Set it, or run vaultd as a user who has a home folder.")
    base = Path(home)

    def under(name: str, default: str) -> Path:
        value = environ.get(name, "").strip()
        return (Path(value) if value.startswith("/") else base / default) / "vaultd"

    return Places(
        home=base,
        config=under("XDG_CONFIG_HOME", ".config"),
        # The hook's path stands in other programs' trusted settings: it never follows XDG_DATA_HOME.
        data=base / ".local/share/vaultd",
        state=under("XDG_STATE_HOME", ".local/state"),
        cache=under("XDG_CACHE_HOME", ".cache"),
        runtime=_runtime(environ),
    )


def _runtime(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Folders for the socket: the session's runtime folder, else one of the user's own in the temp folder."""
    own = environ.get("XDG_RUNTIME_DIR", "").strip()
    temp = environ.get("TMPDIR", "").strip()
    user = f"vaultd-{os.getuid() if hasattr(os, 'getuid') else 'me'}"
    temps = [Path(temp) / user] if temp.startswith("/") else []
    return (*([Path(own) / "vaultd"] if own.startswith("/") else []), *temps, Path("/tmp") / user)


def load(vault: str | None = None, environ: Mapping[str, str] | None = None, *, forgiving: bool = False) -> Config:
    """Read the environment and both files. UsageError lists every problem at once; a missing file is no problem.

    What the vault's file says counts, lists of both files add up. `forgiving`, for what stores nothing: wrong settings
    are as if they were not there, and `problems` names them.
    The vault is, in this order: `vault`, VAULTD_VAULT, the pointer file, `~/vaultd`. It need not exist.
    """
    env = dict(environ) if environ is not None else current_environment()
    where = places(env)
    root = vault_path(vault, env, where)
    values: dict[str, object] = {}
    problems: list[str] = []
    read = _times(where, root)  # before they are read: a change in between is noticed
    for path in (where.settings, root / "vaultd.toml"):
        for key, value in _read(path, problems, own=path == where.settings).items():
            before = values.get(key)
            values[key] = [*before, *value] if isinstance(before, list) and isinstance(value, list) else value
    vectors = _choice(values, where)
    wrong = vectors.flaws()
    problems += [f"{where.settings}: {flaw}" for flaw in wrong]
    if problems and not forgiving:
        raise UsageError("Settings are wrong:\n  " + "\n  ".join(problems) + "\nMend these lines and run it again.")
    return Config(
        vault=root,
        places=where,
        host=env.get("VAULTD_HOST") or socket.gethostname(),
        environ=env,
        command=_own_command(),
        assistant=bool(values.get("capture.assistant", True)),
        ignore_paths=tuple(_at_home(pattern, where) for pattern in _texts(values, "capture.ignore_paths")),
        allow_list=bool(values.get("capture.allow_list", False)),
        claims=bool(values.get("handoff.claim_on_session_start", True)),
        rules=Rules.compile(_texts(values, "sanitize.extra_patterns"), _texts(values, "sanitize.allow")),
        watch=bool(values.get("daemon.watch", True)),
        autostart=bool(values.get("daemon.autostart", True)),
        commit_edits=bool(values.get("git.commit_edits", True)),
        bind=env.get("VAULTD_HTTP", "").strip() or str(values.get("http.bind", KEYS["http.bind"].default)),
        hosts=_texts(values, "http.hosts"),
        vectors=Choice() if wrong else vectors,
        problems=tuple(problems),
        read=read,
    )


def _choice(values: Mapping[str, object], where: Places) -> Choice:
    """The settings of vectors."""

    def text(name: str) -> str:
        return str(values.get(f"vectors.{name}", KEYS[f"vectors.{name}"].default)).strip()

    return Choice(
        provider=text("provider"),
        url=text("url"),
        model=text("model"),
        key_env=text("key_env"),
        key_file=_at_home(text("key_file"), where),
        dimensions=int(text("dimensions")),
    )


def settings_state(config: Config) -> tuple[int, int]:
    """The times of both settings files, in nanoseconds (0 for none): another than `config.read` when one changed."""
    return _times(config.places, config.vault)


def _times(where: Places, root: Path) -> tuple[int, int]:
    def time_of(path: Path) -> int:
        try:
            return path.stat().st_mtime_ns
        except OSError:
            return 0

    return time_of(where.settings), time_of(root / "vaultd.toml")


def vault_path(given: str | None, env: Mapping[str, str], where: Places) -> Path:
    """The vault's path, absolute: `given`, VAULTD_VAULT, the first line of the pointer file, `~/vaultd`.

    A blank one is none. What the file names is relative to the home folder, what the others name to the working one.
    """
    for text in (given, env.get("VAULTD_VAULT")):
        if text and text.strip():
            return Path(os.path.abspath(_at_home(text, where)))  # noqa: PTH100  # keeps a link that the person named
    try:
        line = where.pointer.read_bytes().split(b"\n", 1)[0].removesuffix(b"\r")
    except OSError:
        line = b""
    return where.home / (_at_home(os.fsdecode(line), where) if line.strip() else "vaultd")


def _at_home(path: str, where: Places) -> str:
    """A path or pattern with a leading `~` written out."""
    return f"{where.home}{path[1:]}" if path == "~" or path.startswith("~/") else path


def _own_command() -> str:
    """The executable that a hook starts for a detached pass: the `vaultd` beside this interpreter, else by name."""
    beside = Path(sys.executable).parent / "vaultd"
    return str(beside) if beside.exists() else "vaultd"


def _read(path: Path, problems: list[str], *, own: bool) -> dict[str, object]:
    """The known keys of one file, flat (`section.key`); problems are added to the list. `own`: this machine's file."""
    try:
        tables = tomllib.loads(path.read_text("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        problems.append(f"{path}: {error}")
        return {}
    found: dict[str, object] = {}
    for section, table in tables.items():
        if not isinstance(table, dict):
            problems.append(f"{path}: `{section}` must be a [section]")
            continue
        for name, value in table.items():
            key = f"{section}.{name}"
            flaws = _flaws(key, value)
            if not flaws and not own and key.startswith(_MACHINE):
                flaws = [f"`{key}` counts only in this machine's settings; move it there"]
            problems.extend(f"{path}: {flaw}" for flaw in flaws)
            if not flaws:
                found[key] = value
    return found


_SHAPES = {list: "a list of texts", bool: "true or false", str: "a text", int: "a whole number"}


def _flaws(key: str, value: object) -> list[str]:
    """What is wrong with a setting, in words."""
    info = KEYS.get(key)
    if info is None:
        return [f"unknown key `{key}`; known are {', '.join(KEYS)}"]
    if type(value) is not info.type or (isinstance(value, list) and not all(isinstance(v, str) for v in value)):
        return [f"`{key}` must be {_SHAPES[info.type]}"]
    entries = [str(entry) for entry in value] if isinstance(value, list) else []
    if any(not entry.strip() for entry in entries):
        return [f"`{key}` has a blank entry"]
    flaws = []
    for pattern in entries if key == "sanitize.extra_patterns" else ():
        try:
            Rules.compile([pattern])
        except UsageError as error:
            flaws.append(f"`{key}`: {error}")
    return flaws


def _texts(values: Mapping[str, object], key: str) -> tuple[str, ...]:
    """A list setting as a tuple of texts."""
    value = values.get(key, [])
    return tuple(str(v) for v in value) if isinstance(value, list) else ()
