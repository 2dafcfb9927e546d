"""What redaction costs grows with the text, whatever the text: nobody can make a hook's event take minutes."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.secret_samples import MARK, PARTS
from tests.examples import THOROUGH
from vaultd.core.sanitize import redact

REPEATED = [
    *("a", "-", "_", ".", "=", ":", '"', "\\", "@", "<", " ", "\n", "A", "0", "\ud800", "İ", "\x1b["),
    *("key=", "token=", "password=", "password: ", '"password":"', "password='", "FOO_KEY=a", 'x_key="\\"', "token:\t"),
    *("sk-", "-sk-", "hf_", "eyJ", "-eyJ", ".eyJ", "://", "://a:", "://a@", "@a/", ":AA", "1//", "EAA", "bearer "),
    *(".ssh/", "a.ssh/a", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----x", "-----END PRIVATE KEY-----"),
    *("AAAA\n", "<private>", "</private>", "<private></private>", "--", "--a", "--token ", " -p", "curl -u ", "mysql "),
    *("machine a login b ", "cookie: a=", "Authorization: Basic ", "?sig=", "<token>", "api_key=a1b2c3d4 ", MARK, "["),
    *("password is ", "token is a1", "key: str = ", "token=secret=", "a=password:'", "login ", "{password}", "${"),
]


def work(unit: str, size: int) -> float:
    """Seconds of processor time that one repeated unit costs; the better of two."""
    text = (unit * (size // len(unit) + 1))[:size]
    best = float("inf")
    for _ in range(2):
        start = time.process_time()
        redact(text)
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.parametrize("unit", REPEATED)
def test_work_grows_with_the_text_and_not_with_its_square(unit: str) -> None:
    size = 24_000 if THOROUGH else 6_000
    small, large = work(unit, size), work(unit, 10 * size)
    # Ten times as much text: 10 when linear, 100 when quadratic. What costs next to nothing cannot be compared.
    assert large < max(small, size * 0.002 / 24_000) * 30


@given(st.lists(st.one_of(st.sampled_from(PARTS), st.sampled_from(REPEATED)), min_size=1, max_size=4).map("".join))
@settings(deadline=None, max_examples=40)
def test_work_grows_likewise_for_texts_that_nobody_thought_of(unit: str) -> None:
    small, large = work(unit, 4_000), work(unit, 32_000)
    assert large < max(small, 0.004) * 24
