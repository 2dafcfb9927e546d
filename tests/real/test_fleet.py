"""Each agent with its real program, from a fresh home wired by `vaultd connect --yes` alone to the next agent's model.

`python -m tests.real.fleet` prints the same as a table.
"""

from __future__ import annotations

import pytest

from tests.real.fleet import FLEET, STEPS, here, prove

pytestmark = [pytest.mark.real, pytest.mark.slow]


@pytest.mark.parametrize("agent", FLEET)
def test_a_fresh_home_is_connected_and_the_next_agent_is_told(agent: str) -> None:
    if reason := here(agent):
        pytest.skip(reason)
    seen = prove(agent).seen
    assert seen == dict.fromkeys(STEPS, "")
