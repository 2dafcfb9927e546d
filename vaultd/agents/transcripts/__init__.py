"""What agents' own transcripts tell that their hooks do not. Pure parsers, one module per format."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vaultd.agents.transcripts.answers import last_told
from vaultd.agents.transcripts.rollout import Outcome, outcomes

__all__ = ["OUTCOMES", "Outcome", "last_told"]

OUTCOMES: Mapping[str, Callable[[bytes], Mapping[str, Outcome]]] = {"rollout": outcomes}
"""By format: the outcomes of the calls that a transcript, or its last bytes, tells about, by call id."""
