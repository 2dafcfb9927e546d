"""An interactive program on a pseudo-terminal, driven like a person does: look at the screen, type, look again.

No terminal emulation: what the program wrote is kept with its escape sequences cut out, which is enough to wait for a
word. The few questions that a full-screen program asks of its terminal (cursor position, colours, device) are answered,
because Codex does not start before it has an answer or a time-out.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.waiting import until

ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])")
QUESTIONS = {
    b"\x1b[6n": b"\x1b[1;1R",
    b"\x1b[c": b"\x1b[?62;c",
    b"\x1b[?u": b"\x1b[?0u",
    b"\x1b]10;?": b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\",
    b"\x1b]11;?": b"\x1b]11;rgb:0000/0000/0000\x1b\\",
}
"""What a program asks its terminal, and what a plain one answers."""


class Terminal:
    """A process on a pseudo-terminal of 120 by 40; `goodbye` is what a person types to leave it."""

    def __init__(self, command: Sequence[str], cwd: Path, environment: Mapping[str, str], goodbye: str) -> None:
        self.goodbye = goodbye
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=dict(environment),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # Ctrl-C works only on a controlling terminal
        )
        os.close(slave)
        self._seen = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # EIO: every process on the other side is gone
            while data := os.read(self._master, 65536):
                self._seen += data
                for question, answer in QUESTIONS.items():
                    for _ in range(data.count(question)):
                        os.write(self._master, answer)

    @property
    def position(self) -> int:
        """How much was written so far: what to look after for something new."""
        return len(self._seen)

    def shown(self, after: int = 0) -> str:
        """What the program wrote since `after`, without escape sequences and blanks (a screen is drawn in pieces)."""
        return re.sub(rb"\s+", b"", ESCAPES.sub(b"", self._seen[after:])).decode("utf-8", "replace")

    def say(self, text: str) -> None:
        """Type a line, and Enter once it is on the screen: what comes in one piece counts as pasted."""
        before = self.position
        self.type(text)
        self.wait_for(text, after=before)
        self.type("\r")

    def quit(self) -> None:
        """Leave as a person does, and wait for the end."""
        self.say(self.goodbye)
        self.wait_end()

    def type(self, text: str) -> None:
        """Send keys; Enter is a carriage return."""
        os.write(self._master, text.encode())

    def press(self, key: str, shows: str) -> None:
        """Type a key until the program shows a text, every few seconds: a screen just drawn may not take keys yet."""
        before = self.position
        for _ in range(9):
            self.type(key)
            with contextlib.suppress(AssertionError):
                return self.wait_for(shows, 3, after=before)
        return self.wait_for(shows, 3, after=before)

    def wait_for(self, text: str, timeout: float = 30, after: int = 0) -> None:
        """Wait until the program wrote a text; blanks are not compared."""
        wanted = "".join(text.split())
        with contextlib.suppress(AssertionError):
            until(lambda: wanted in self.shown(after), timeout, 0.1)
        assert wanted in self.shown(after), f"no {text!r} on the screen: {self.shown(after)[-2000:]}"

    def wait_still(self, seconds: float = 0.5) -> None:
        """Wait until the program has written nothing for a while: what is typed before that, it may throw away."""
        state = [self.position, time.monotonic()]

        def still() -> bool:
            if state[0] != self.position:
                state[:] = [self.position, time.monotonic()]
            return time.monotonic() - state[1] >= seconds

        until(still, 30, 0.1)

    def wait_end(self, timeout: float = 30) -> None:
        """Wait until the process ended and everything it wrote was read; then the terminal is gone."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running, with this on the screen: {self.shown()[-2000:]}") from None
        self.close()

    def close(self) -> None:
        """Let go of the terminal, once nothing has it open on the other side any more."""
        self._reader.join(10)
        if self._master >= 0:
            os.close(self._master)
            self._master = -1
