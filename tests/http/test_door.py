"""Who may ask, and how much: tokens, names, sizes, slowness, numbers."""

from __future__ import annotations

import ast
import gzip
import http.client
import inspect
import json
import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import pytest

from tests.http.served import TOKEN, Served, serving
from tests.scratch import Scratch
from tests.waiting import until
from vaultd.engine.access import token_of
from vaultd.engine.service import Service
from vaultd.errors import RefusedError, UsageError
from vaultd.http import guard
from vaultd.http.server import HttpServer
from vaultd.http.settings import Address, HttpSettings, parse_bind
from vaultd.store.sockets import listen_local


@pytest.fixture
def served(scratch: Scratch) -> Iterator[Served]:
    with serving(scratch) as served:
        yield served


@pytest.mark.parametrize("target", ["/api/v1/status", "/api/v1/openapi.json", "/handoff?agent=codex", "/nothing", "/"])
@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], TOKEN + "x"])
def test_over_tcp_nothing_is_answered_without_the_token(served: Served, target: str, token: str | None) -> None:
    told = served.ask(target, tcp=True, token=token)
    assert told.status == 401 and told.headers["www-authenticate"] == "Bearer"
    assert served.ask("/hook?agent=codex&event=Stop", "POST", "{}", tcp=True, token=token).status == 401


def test_health_needs_no_token_and_says_no_path(served: Served) -> None:
    told = served.ask("/health", tcp=True, token=None)
    assert told.status == 200 and told.json == {"ok": True, "problems": []}
    assert str(served.scratch.vault) not in told.body.decode()


def test_the_token_is_compared_in_a_time_that_says_nothing() -> None:
    calls = [n for n in ast.walk(ast.parse(inspect.getsource(guard))) if isinstance(n, ast.Call)]
    assert any(isinstance(c.func, ast.Attribute) and c.func.attr == "compare_digest" for c in calls)
    compared = [n for n in ast.walk(ast.parse(inspect.getsource(guard))) if isinstance(n, ast.Compare)]
    assert not any("token" in ast.unparse(n) for n in compared)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:{port}", 200),
        ("localhost:{port}", 200),
        ("[::1]:{port}", 200),
        ("memory.example", 200),
        ("memory.example:8080", 200),
        ("evil.example", 403),
        ("evil.example:{port}", 403),
        ("127.0.0.1", 403),
        ("127.0.0.1:1", 403),
        ("127.0.0.1.evil.example:{port}", 403),
    ],
)
def test_a_request_for_another_name_is_refused(served: Served, host: str, status: int) -> None:
    headers = {"Host": host.format(port=served.port)}
    assert served.ask("/api/v1/projects", headers=headers, tcp=True).status == status
    assert served.ask("/health", headers=headers, tcp=True).status == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [("http://127.0.0.1:{port}", 200), ("http://evil.example", 403), ("null", 403), ("", 403), ("file://", 403)],
)
def test_a_request_from_a_web_page_of_others_is_refused(served: Served, origin: str, status: int) -> None:
    told = served.ask("/api/v1/projects", headers={"Origin": origin.format(port=served.port)}, tcp=True)
    assert told.status == status and "access-control-allow-origin" not in told.headers


def test_an_origin_that_is_none_and_one_of_two_are_refused(served: Served) -> None:
    own = f"Host: localhost:{served.port}\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n"
    for origins in (["http://[evil"], [f"http://localhost:{served.port}", "http://evil.example"]):
        head = "GET /api/v1/projects HTTP/1.1\r\n" + own + "".join(f"Origin: {o}\r\n" for o in origins) + "\r\n"
        assert served.raw(head.encode()).split()[1] == b"403"
    twice = f"GET /health HTTP/1.1\r\nHost: localhost:{served.port}\r\n{own}\r\n"
    assert served.raw(twice.encode()).split()[1] == b"400"


def test_a_request_without_a_name_is_refused(served: Served) -> None:
    assert served.raw(b"GET /health HTTP/1.0\r\n\r\n").split()[1] == b"400"


def test_every_answer_has_its_headers(served: Served) -> None:
    for target in ("/health", "/api/v1/projects", "/nothing", "/api/v1/search", "/handoff?project=shop"):
        headers = served.ask(target).headers
        assert headers["x-content-type-options"] == "nosniff" and headers["cache-control"] == "no-store"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["server"] == "vaultd"


def test_a_body_that_is_too_large_is_refused(served: Served) -> None:
    big = b'{"prompt": "' + b"x" * (10 * 1024 * 1024) + b'"}'
    assert served.hook(big).status == 413
    assert served.new() == []
    assert served.hook(b'{"session_id": "s", "prompt": "' + b"x" * (9 * 1024 * 1024) + b'"}').status == 202
    [name] = served.new()
    kept = (served.scratch.vault / ".vaultd/inbox/new" / name).read_bytes().partition(b"\n\n")[2]
    assert len(kept) == 8 * 1024 * 1024


@pytest.mark.parametrize(
    "said",
    [
        b"okapi\r\n\r\n",
        b"GET /okapi HTTP/9.9\r\n\r\n",
        b"GET /\r\n okapi\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nokapi\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01okapi\r\n\r\n",
    ],
)
def test_what_is_no_http_is_answered_like_everything_and_not_repeated(
    served: Served, caplog: pytest.LogCaptureFixture, said: bytes
) -> None:
    head, _, body = served.raw(said).partition(b"\r\n\r\n")
    assert head.split()[1] == b"400" and json.loads(body)["error"]["code"] == "malformed"
    assert b"nosniff" in head and b"Server: vaultd" in head and b"okapi" not in body
    assert caplog.records == []


def test_a_body_that_is_compressed_or_not_what_its_head_says_is_refused(served: Served) -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    for target in ("/hook?agent=codex&event=Stop", "/hook/batch"):
        assert served.ask(target, "POST", bomb, {"Content-Encoding": "gzip"}).status == 415
    name = f"Host: localhost:{served.port}\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
    post = b"POST /hook?agent=codex&event=Stop HTTP/1.1\r\n" + name
    assert served.raw(post + b"Transfer-Encoding: chunked\r\n\r\nokapi\r\n\r\n").split()[1] == b"400"
    assert served.new() == []


def test_a_body_that_does_not_say_its_length_is_bounded_too(served: Served) -> None:
    def pieces(number: int) -> Iterator[bytes]:
        return (b" " * 1_000_000 for _ in range(number))

    assert served.ask("/hook/batch", "POST", pieces(5)).status == 413
    assert served.ask("/hook/batch", "POST", pieces(4)).json["error"]["message"] == "The body is not JSON."
    assert served.ask("/hook?agent=codex&event=Stop", "POST", pieces(11)).status == 413


def test_heads_without_end_are_refused(served: Served) -> None:
    long = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 20_000 + b"\r\n\r\n"
    assert served.raw(long).split()[1] == b"400"
    many = b"GET /health HTTP/1.0\r\nHost: localhost:%d\r\n" % served.port
    many += b"".join(b"X-%d: y\r\n" % n for n in range(20_000)) + b"\r\n"
    assert served.raw(many).split()[1] in (b"200", b"400")
    assert served.ask("/health").status == 200


def test_a_client_that_says_nothing_or_speaks_slowly_is_cut_off(scratch: Scratch) -> None:
    with serving(scratch, head_s=0.2, body_s=0.3, idle_s=0.3) as served:
        for said in (b"", b"GET /health HTTP/1.1\r\nHost:"):
            assert served.raw(said) == b""
        name = f"Host: localhost:{served.port}\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
        post = b"POST /hook?agent=codex&event=Stop HTTP/1.1\r\n" + name + b"Content-Length: 100\r\n\r\n{"
        assert served.raw(post).split()[1] == b"408"
        idle = b"GET /health HTTP/1.1\r\n" + name + b"\r\n"
        assert served.raw(idle).split()[1] == b"200"  # and then closed, since nothing more came
        assert served.new() == []


def test_more_connections_than_there_is_room_for_are_closed(scratch: Scratch) -> None:
    with serving(scratch, connections=4) as served, ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(socket.create_connection(("127.0.0.1", served.port), 10))
        with socket.create_connection(("127.0.0.1", served.port), 10) as fifth:
            assert fifth.recv(1) == b""
        stack.close()
        until(lambda: served.ask("/health", tcp=True).status == 200)


def test_the_socket_is_its_owner_s_alone_and_goes_with_the_server(scratch: Scratch) -> None:
    path = scratch.config.places.socket(scratch.vault)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))  # what a killed daemon leaves
    left.close()
    with serving(scratch) as served:
        assert Path(served.socket) == path
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700 and path.parent.stat().st_uid == os.getuid()
        assert served.ask("/api/v1/projects").status == 200  # no token needed
    assert not path.exists()


@pytest.mark.parametrize("mode", [0o755, 0o777, 0o710])
def test_a_folder_that_others_can_enter_has_no_socket(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "folder/socket"
    path.parent.mkdir()
    path.parent.chmod(mode)
    with pytest.raises(RefusedError, match="chmod 700"):
        listen_local(path)
    assert list(path.parent.iterdir()) == [] and stat.S_IMODE(path.parent.stat().st_mode) == mode
    path.parent.chmod(0o700)
    path.write_text("no socket")
    with pytest.raises(RefusedError, match="in the way"):
        listen_local(path)
    aside = path.parent.rename(path.parent.with_name("aside"))
    path.parent.symlink_to(aside)
    with pytest.raises(RefusedError, match="not a folder of yours"):
        listen_local(path)


def test_without_its_folder_there_is_the_port_and_the_log_says_why(
    scratch: Scratch, caplog: pytest.LogCaptureFixture
) -> None:
    path = scratch.base / "open/socket"
    path.parent.mkdir(mode=0o755)
    server = HttpServer(cast(Service, None), HttpSettings(path, Address("127.0.0.1", 0), TOKEN))
    told = server.start()
    server.stop()
    assert set(told) == {"http"} and "no socket for local clients" in caplog.text and "chmod 700" in caplog.text


def test_another_address_of_loopback_is_called_by_itself(scratch: Scratch) -> None:
    server = HttpServer(cast(Service, None), HttpSettings(None, Address("127.0.0.5", 0), TOKEN))
    where = server.start()["http"]
    try:
        for host, status in ((where, 401), (where.replace(".5", ".6"), 403)):
            link = http.client.HTTPConnection(where, timeout=10)
            link.request("GET", "/api/v1/projects", headers={"Host": host})
            assert link.getresponse().status == status
            link.close()
    finally:
        server.stop()


def test_one_that_never_began_or_has_ended_is_stopped_at_once(scratch: Scratch) -> None:
    server = HttpServer(cast(Service, None), HttpSettings(None, None, ""))
    server.stop()
    assert server.start() == {}
    began = time.monotonic()
    server.stop()
    server.stop()
    assert time.monotonic() - began < 2


def test_a_token_is_made_once_and_one_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vaultd/token"
    with pytest.raises(RefusedError, match="There is no token"):
        token_of(path, make=False)
    first = token_of(path, make=True)
    assert len(first) >= 32 and token_of(path, make=True) == first == token_of(path, make=False)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    with pytest.raises(RefusedError, match="chmod 600"):
        token_of(path, make=True)
    path.chmod(0o600)
    for text in ("", "short", "x" * 40 + " " + "y" * 40, "é" * 40):
        path.write_text(text)
        with pytest.raises(RefusedError, match="at least 32"):
            token_of(path, make=True)


def test_an_open_address_needs_a_list_of_hosts_and_a_token() -> None:
    for bind in ("0.0.0.0:80", "[::]:80", "192.168.1.5:80"):
        with pytest.raises(RefusedError, match=r"http\.hosts"):
            parse_bind(bind, ())
        address = parse_bind(bind, ("memory.example",))
        assert address is not None and not address.loopback
    for bind in ("127.0.0.1:0", "localhost:7426", "[::1]:7426", "127.9.9.9:1"):
        address = parse_bind(bind, ())
        assert address is not None and address.loopback
    assert parse_bind("off", ()) is None
    for bind in ("", "7426", "example.com:80", "127.0.0.1:x", "127.0.0.1:70000", "127.0.0.1"):
        with pytest.raises(UsageError):
            parse_bind(bind, ("h",))


def test_serve_refuses_an_open_address_and_says_what_is_missing(scratch: Scratch) -> None:
    scratch.init()
    scratch.extra["VAULTD_HTTP"] = "0.0.0.0:0"
    done = scratch.run("serve")
    assert done.returncode == 6 and "http.hosts" in done.stderr
    settings = scratch.home / ".config/vaultd/config.toml"
    settings.write_text('[http]\nhosts = ["memory.example"]\n')
    done = scratch.run("serve")
    assert done.returncode == 6 and "There is no token" in done.stderr


def test_a_port_that_is_taken_leaves_the_socket(scratch: Scratch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        scratch.extra["VAULTD_HTTP"] = f"127.0.0.1:{taken.getsockname()[1]}"
        scratch.run("up", check=True)
        try:
            told = (scratch.vault / ".vaultd/daemon.json").read_text()
            assert '"socket"' in told and '"http"' not in told
            assert "nothing listens" in (scratch.vault / ".vaultd/daemon.log").read_text()
            assert "nothing listens" in scratch.run("status").stdout
            assert "nothing listens" in scratch.run("up").stdout
        finally:
            scratch.run("down")


@pytest.mark.slow
def test_a_running_daemon_lives_on_when_its_new_address_is_refused_and_says_why(scratch: Scratch) -> None:
    scratch.extra["VAULTD_HTTP"] = " "  # as if it were not set
    settings = scratch.home / ".config/vaultd/config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[http]\nbind = "off"\n')
    scratch.run("up", check=True)
    try:
        pid = scratch.json("status", "--json")["daemon"]["pid"]
        settings.write_text('[http]\nbind = "0.0.0.0:0"\n')
        until(lambda: any("http.hosts" in p for p in scratch.json("status", "--json")["problems"]), 15)
        report = scratch.json("status", "--json")
        again = scratch.run("up")
        assert again.returncode != 0 and "http.hosts" in again.stderr
        assert report["daemon"]["pid"] == pid and report["daemon"]["running"]
        settings.write_text('[http]\nbind = "127.0.0.1:0"\n')
        until(lambda: '"http"' in (scratch.vault / ".vaultd/daemon.json").read_text(), 15)
        assert scratch.json("status", "--json")["problems"] == []
    finally:
        scratch.run("down")
