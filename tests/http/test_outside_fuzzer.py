"""A public fuzzer on the interface's own description."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.http.served import TOKEN, serving
from tests.scratch import Scratch
from vaultd.http.table import BASE


@pytest.mark.slow
def test_schemathesis_finds_no_answer_that_the_description_does_not_allow(scratch: Scratch, tmp_path: Path) -> None:
    with serving(scratch) as served:
        done = subprocess.run(
            [
                str(Path(sys.executable).parent / "schemathesis"),
                "run",
                f"http://127.0.0.1:{served.port}{BASE}/openapi.json",
                f"--header=Authorization: Bearer {TOKEN}",
                "--checks=not_a_server_error,status_code_conformance,content_type_conformance",
                "--max-examples=100",
                "--seed=7",
                "--no-color",
            ],
            cwd=tmp_path,
            env={**os.environ, "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
