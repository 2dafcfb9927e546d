"""`vaultd hook AGENT EVENT`: the portable twin of the hook script, for systems without a POSIX shell.

Reads the payload from standard input, delivers an event file and, at a session's start, claims and prints what was
prepared: the same files in the same order as `hooks/vaultd-hook`. Exits 0 whatever happens and prints nothing else: an
agent must never be held up by its memory.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

__all__ = ["run_hook"]

_LIMIT = 8 * 1024 * 1024  # bytes of a payload that are kept
_LOOK = 4096  # bytes of a payload that are looked at for a claim
_SOURCE = re.compile(rb'"source"\s*:\s*"(?:compact|clear)"')


def run_hook(argv: list[str]) -> int:
    """Deliver one event; always 0."""
    try:
        if len(argv) >= 2:
            _run(argv[0], argv[1])
    except Exception:  # noqa: BLE001  # fail open: no fault of ours may reach the agent
        pass
    return 0


def _run(agent: str, event: str) -> None:
    """Everything the hook does, in its order."""
    from vaultd.config import current_environment, places, vault_path
    from vaultd.store.surroundings import checkout_of, switched_off

    payload = sys.stdin.buffer.read(_LIMIT) if sys.stdin is not None else b""
    while sys.stdin is not None and sys.stdin.buffer.read(1 << 20):
        pass
    environ = current_environment()
    where = places(environ)
    room = vault_path(None, environ, where) / ".vaultd"
    away = not (room / "vault-id").is_file()
    try:
        cwd = os.fsencode(os.getcwd())  # noqa: PTH109  # bytes: a name that is not UTF-8 must survive
    except OSError:
        cwd = b""  # it is gone
    root, gitfile, marker = checkout_of(cwd, os.fsencode(where.home))
    if (
        (room / "paused").exists()
        or (away and (where.state / "paused").exists())
        or switched_off(marker)
        or ((room / "allow-list").exists() and not marker)
    ):
        return
    line = "" if away else _first_line(room / f"outbox/map/{agent}.{event}")
    shape, moment, drain, once = [*line.split(), *["-"] * 4][:4]
    handoff, mark = "", room / "inbox/tmp" / f"{int(time.time())}-{os.getpid()}"
    wanted = moment != "-" and not away and not _SOURCE.search(payload[:_LOOK])
    if wanted and (once == "-" or _is_first(room, agent, once, payload[:_LOOK])):
        handoff = _claim(room, mark, shape, root, cwd, gitfile, payload[:_LOOK])
    inbox = where.spool if away else room / "inbox"
    vault = os.fsencode(room.parent) if away else b""  # a spool holds the events of all vaults that are away
    header = _header(agent, event, environ, (cwd, root, gitfile), handoff, vault)
    _deliver(inbox, header + payload, mark if handoff else None)
    if not away and (drain == "drain" or not (room / "outbox/map").is_dir()):
        _drain(room, environ)


def _first_line(path: Path) -> str:
    """A file's first line, "" when there is none."""
    try:
        return path.read_text("utf-8", "replace").split("\n", 1)[0]
    except OSError:
        return ""


def _is_first(room: Path, agent: str, once: str, head: bytes) -> bool:
    """Whether this is the first such event of its session, by the id at `once`; where there is none, it is not."""
    found = re.search(rb'"' + re.escape(once.encode()) + rb'"\s*:\s*"([0-9A-Za-z._:-]+)"', head)
    if found is None:
        return False
    try:
        (room / "outbox/given" / f"{agent}-{found[1].decode()}").open("x").close()
    except OSError:
        return False
    return True


def _claim(room: Path, mark: Path, shape: str, root: bytes, cwd: bytes, gitfile: bytes, head: bytes) -> str:
    """Claim and print what is prepared for this place; the handoff's id, "" when nothing was claimed.

    `mark` is a file that names the handoff until it becomes the event: so a claim whose process died comes back.
    """
    from vaultd.store import fs

    found = _prepared(room, root, cwd, gitfile)
    if found is None:
        return ""
    lines = (found / "claim").read_bytes().split(b"\n")
    origin, owner, not_before = lines[2], lines[3].split(), int(lines[4] or 0)
    if (origin and origin in head) or _lives(owner) or not_before > time.time():
        return ""
    text = (found / shape).read_bytes()
    if not text:  # a power cut may leave that of a text that was not synced
        return ""
    if lines[1] == b"-":  # it is offered, and stays open
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
        return ""
    opened, accepted = Path(os.fsdecode(lines[0])), Path(os.fsdecode(lines[1]))
    fs.write_private(mark, f"vaultd-event 1\noffered={opened.stem}\n\n".encode())
    try:
        fs.move(opened, accepted)
    except OSError:
        fs.remove(mark)
        return ""
    try:
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
    except OSError:
        fs.move(accepted, opened)
        fs.remove(mark)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that nothing is flushed into the closed pipe at exit
        return ""
    return opened.stem


def _prepared(room: Path, root: bytes, cwd: bytes, gitfile: bytes) -> Path | None:
    """The nearest prepared folder, from the working directory up to the checkout's root."""
    main = root or cwd
    if gitfile.startswith(b"gitdir: /") and b"/.git/worktrees/" in gitfile:
        main = gitfile[8:].split(b"/.git/worktrees/", 1)[0]
    sub = cwd[len(root) :].strip(b"/") if root else b""
    while True:
        folder = room / "outbox/at" / os.fsdecode(main).lstrip("/") / os.fsdecode(sub) / "@vaultd"
        if (folder / "claim").is_file():
            return folder
        if not sub:
            return None
        sub = os.path.dirname(sub)  # noqa: PTH120  # bytes paths


def _lives(owner: list[bytes]) -> bool:
    """Whether the client that a claim names (pid, start ticks, boot id) is still there."""
    from vaultd.core.event import Process
    from vaultd.engine.processes import alive, boot_id

    if len(owner) < 3:
        return False
    return owner[2].decode() == boot_id() and alive(Process(int(owner[0]), int(owner[1]), owner[2].decode()))


def _header(
    agent: str, event: str, environ: Mapping[str, str], where: tuple[bytes, bytes, bytes], handoff: str, vault: bytes
) -> bytes:
    """The header of the event file, blank line included; `where`: working directory, root, line of the .git file."""
    cwd, root, gitfile = where
    values: dict[str, bytes] = {
        "agent": agent.encode(),
        "event": event.encode(),
        "at": datetime.now().astimezone().isoformat(timespec="seconds").encode(),
        "cwd": cwd,
        "root": root,
        "gitfile": gitfile,
        "run": environ.get("VAULTD_RUN_ID", "").encode(),
        "workstream": environ.get("VAULTD_WORKSTREAM_ID", "").encode(),
        "handoff": handoff.encode(),
        **_processes(),
        "vault": vault,
    }
    rows = [b"vaultd-event 1"]
    for name, value in values.items():
        if value:
            safe = value.replace(b"%", b"%25").replace(b"\n", b"%0A").replace(b"\r", b"%0D")
            rows.append(name.encode() + b"=" + safe)
    return b"\n".join(rows) + b"\n\n"


def _processes() -> dict[str, bytes]:
    """The stat lines of parent and grandparent and the boot id, where the system has them."""
    try:
        parent = Path(f"/proc/{os.getppid()}/stat").read_bytes().strip()
        grand = int(parent.rpartition(b")")[2].split()[1])
        boot = Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
        return {"proc": parent, "pproc": Path(f"/proc/{grand}/stat").read_bytes().strip(), "boot": boot}
    except (OSError, ValueError, IndexError):
        return {}


def _deliver(inbox: Path, data: bytes, mark: Path | None) -> None:
    """Publish the event file; after a claim the file that marks it becomes the event."""
    from vaultd.store import fs

    fs.make_folder(inbox / "new", mode=0o700)
    target = inbox / "new" / f"{int(time.time())}-{uuid.uuid4()}"
    if mark is None:
        fs.publish(target, data, sync=False, mode=0o600)
    else:
        fs.write_private(mark, data)
        fs.move(mark, target)


def _drain(room: Path, environ: Mapping[str, str]) -> None:
    """Start a detached ingest pass when no daemon runs."""
    from vaultd.config import load
    from vaultd.engine.processes import told_process

    if (room / "no-autostart").exists() or told_process(room) is not None:
        return
    subprocess.Popen(
        [load(None, environ).command, "ingest", "--quiet"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={**environ, "VAULTD_VAULT": str(room.parent)},
        start_new_session=True,
    )
