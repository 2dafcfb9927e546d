"""What the server takes: events over HTTP from 16 connections at once, against a daemon of its own.

    python tests/bench/http.py [--connections 16] [--seconds 60] [--port]

Prints, and asserts nothing: requests a second, latency p50, p95, p99 and most, how often each status came, the daemon's
memory at the start, in the middle and at the end; how many of the accepted events are recorded in the end. 429 is an
answer; any other than 202 and 429, and any broken connection, is a fault. `--port` goes over TCP, not the socket.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parent.parent.parent)  # not this folder, where this file is `http`

import argparse
import http.client
import json
import shutil
import socket
import statistics
import tempfile
import threading
import time
import uuid
from collections import Counter

from tests.bench.watch import memory
from tests.scratch import Scratch
from tests.waiting import until


class Client:
    """One connection that sends events as fast as it is answered."""

    def __init__(self, address: str, token: str) -> None:
        self.address = address
        self.token = token
        self.took: list[float] = []
        self.statuses: Counter[str] = Counter()

    def connect(self) -> http.client.HTTPConnection:
        """A fresh connection."""
        if not self.address.startswith("/"):
            host, _, port = self.address.rpartition(":")
            return http.client.HTTPConnection(host, int(port), timeout=60)
        connection = http.client.HTTPConnection("localhost", timeout=60)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(60)
        connection.sock.connect(self.address)
        return connection

    def run(self, cwd: str, until_: float) -> None:
        """Send until the time is over."""
        connection, session = self.connect(), str(uuid.uuid4())
        headers = {"Authorization": f"Bearer {self.token}"}
        number = 0
        while time.monotonic() < until_:
            number += 1
            if number % 50 == 0:
                session = str(uuid.uuid4())
            body = json.dumps({"session_id": session, "cwd": cwd, "prompt": f"Event {number} " + "word " * 100})
            target = f"/hook?agent=claude-code&event=UserPromptSubmit&ingest_key={uuid.uuid4().hex}"
            began = time.perf_counter()
            try:
                connection.request("POST", target, body, headers)
                answer = connection.getresponse()
                answer.read()
                self.statuses[str(answer.status)] += 1
                if answer.status == 429:
                    time.sleep(0.05)
            except (OSError, http.client.HTTPException) as error:
                self.statuses[type(error).__name__] += 1
                connection.close()
                connection = self.connect()
            self.took.append(time.perf_counter() - began)
        connection.close()


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--port", action="store_true")
    options = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="vaultd-bench-"))
    scratch = Scratch(base, extra={"VAULTD_HTTP": "127.0.0.1:0"})
    try:
        scratch.run("up", check=True)
        checkout = scratch.checkout("shop")
        told = json.loads((scratch.vault / ".vaultd/daemon.json").read_text())
        address = told["http"] if options.port else told["socket"]
        token = (scratch.home / ".config/vaultd/token").read_text().strip()
        clients = [Client(address, token) for _ in range(options.connections)]
        end = time.monotonic() + options.seconds
        threads = [threading.Thread(target=client.run, args=(str(checkout), end)) for client in clients]
        sizes = [memory(told["pid"])]
        for thread in threads:
            thread.start()
        time.sleep(options.seconds / 2)
        sizes.append(memory(told["pid"]))
        for thread in threads:
            thread.join()
        sizes.append(memory(told["pid"]))
        took = sorted(1000 * seconds for client in clients for seconds in client.took)
        statuses: Counter[str] = sum((client.statuses for client in clients), Counter())
        at = [took[int(share * (len(took) - 1))] for share in (0.95, 0.99, 1)]
        print(f"{options.connections} connections, {options.seconds:.0f} s, {'TCP' if options.port else 'socket'}")
        print(f"{len(took) / options.seconds:.0f} requests a second; {dict(statuses)}")
        print(f"p50 {statistics.median(took):.1f}, p95 {at[0]:.1f}, p99 {at[1]:.1f}, most {at[2]:.1f} ms")
        print(f"memory {' -> '.join(map(str, sizes))} MB")
        new = scratch.vault / ".vaultd/inbox/new"
        print(f"{len(list(new.iterdir()))} events wait at the end")
        began = time.monotonic()
        until(lambda: not any(new.iterdir()), 600, 0.5)
        print(f"all are taken in after {time.monotonic() - began:.0f} s; memory {memory(told['pid'])} MB")
        done = sum(1 for path in (scratch.vault / ".vaultd/done").rglob("h*") if path.is_file())
        print(f"{done} of {statuses['202']} accepted events are recorded")
    finally:
        scratch.run("down")
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main()
