"""Clients that ask and do not take the answer: they cost a connection for a while, and no more."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from tests.http.served import TOKEN, serving
from tests.scratch import Scratch
from vaultd.engine.service import Page, Scope


@pytest.mark.parametrize("tcp", [False, True], ids=["socket", "port"])
def test_a_client_that_does_not_read_on_is_cut_off(scratch: Scratch, tcp: bool) -> None:
    with serving(scratch, idle_s=0.3) as served:
        served.service.write_page(Scope(project="shop"), Page("notes/long", "word " * 12_000))
        target = "/api/v1/page?project=shop&path=notes/long"
        head = f"GET {target} HTTP/1.1\r\nHost: localhost:{served.port}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        with socket.socket(socket.AF_INET if tcp else socket.AF_UNIX) as link:
            link.connect(("127.0.0.1", served.port) if tcp else served.socket)
            link.setblocking(False)
            begun = time.monotonic()
            with pytest.raises(ConnectionError):
                while time.monotonic() - begun < 20:  # asks on and on
                    try:
                        link.sendall(head.encode())
                    except BlockingIOError:
                        threading.Event().wait(0.05)
