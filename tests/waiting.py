"""Waiting on something that another process does, with a deadline instead of a fixed sleep."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(probe: Callable[[], T], timeout: float = 10.0, every: float = 0.02) -> T:
    """Call `probe` until it gives something true; its value. AssertionError after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    pause = threading.Event()
    while True:
        value = probe()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"nothing after {timeout} s: {probe!r}")
        pause.wait(every)
