"""The vault as a git repository: made where there is none, and told what not to carry, without touching a line of the
person's.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vaultd.errors import VaultdError
from vaultd.store import fs, gitdir, gitlocks
from vaultd.store.gitanswers import Ran, words

__all__ = ["Ensured", "ensure"]

_IGNORE = "/.vaultd/\n.vaultd-tmp-*"  # the room, and pages half written
_UNION = "log-*.md merge=union"


@dataclass(frozen=True, slots=True)
class Ensured:
    """What `ensure` did. `created`: there was no repository; `enclosing`: the top of a bigger one around the vault, or
    None; `added`: one line for the person per file that was made or added to; `own`: the files at the vault's root that
    say what was made here and nothing else.
    """

    created: bool
    enclosing: str | None
    added: tuple[str, ...]
    own: tuple[str, ...] = ()


def ensure(root: Path, git: Callable[..., Ran], now: float) -> Ensured:
    """Make the vault's root the top of a git repository that ignores `.vaultd` and joins log lines on a merge.

    `git` runs git in `root`. What an existing repository already says so is left; else `.gitignore` and
    `.gitattributes` are made, and where a person has them, the repository's own `info/exclude` and `info/attributes`
    get the line. A crash leaves some of these steps, perhaps half a repository with locks; doing it again ends them,
    once the locks are old by `now` (epoch seconds). VaultdError when git refuses.
    """
    real = os.path.realpath(root)
    gitlocks.clear_stale([Path(real, ".git", name) for name in ("HEAD.lock", "config.lock")], real, now)
    place = gitdir.locate(real)
    created = place is None or place.top != real
    if created or not Path(place.common if place else real, "config").exists():
        _demand(git("-c", "init.defaultBranch=main", "init", "-q"), "git init")
        place = gitdir.locate(real)
    if place is None or place.top != real:
        raise VaultdError(f"{root / '.git'} is not a git repository. Move it away or repair it, then try again.")
    around = gitdir.locate(os.path.dirname(real))  # noqa: PTH120 - of a resolved text path
    added = []
    ignored = git("check-ignore", "-q", "--no-index", ".vaultd/x")
    if ignored.code == 1:
        added.append(_add(root / ".gitignore", Path(place.common, "info", "exclude"), _IGNORE))
    elif not ignored.ok:
        _demand(ignored, "git check-ignore")
    attributes = git("check-attr", "-z", "merge", "--", "projects/x/log-2000-01.md")
    _demand(attributes, "git check-attr")
    if not attributes.out.endswith(b"\0union\0"):
        added.append(_add(root / ".gitattributes", Path(place.common, "info", "attributes"), _UNION))
    texts = {".gitignore": _IGNORE, ".gitattributes": _UNION}
    own = tuple(name for name, text in texts.items() if _says(root / name, f"{text}\n".encode()))
    return Ensured(created, around.top or around.own if around else None, tuple(added), own)


def _says(path: Path, data: bytes) -> bool:
    """Whether a file holds these bytes."""
    return path.is_file() and path.read_bytes() == data


def _demand(ran: Ran, doing: str) -> None:
    if not ran.ok:
        raise VaultdError(f"The vault cannot be a git repository: {words(ran, doing)}.")


def _add(own: Path, aside: Path, line: str) -> str:
    """Write the line to a new file, or, when the person has that file, to the repository's private one."""
    try:
        fs.publish(own, f"{line}\n".encode())
        return f"{own.name}: new, says `{line.replace(chr(10), ', ')}`"
    except FileExistsError:
        pass
    target = Path(os.path.realpath(aside))
    try:
        before, mode = target.read_bytes(), target.stat().st_mode & 0o777
    except FileNotFoundError:
        before, mode = b"", 0o644
    gap = b"" if not before or before.endswith(b"\n") else b"\n"
    fs.write_private(target, before + gap + line.encode() + b"\n", sync=True, mode=mode)
    return f".git/info/{aside.name}: added `{line}`"
