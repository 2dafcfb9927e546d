"""An event with what only the agent's own transcript tells: outcomes of calls, answers, prompts."""

from __future__ import annotations

from vaultd.agents import Agent, complete, reads_transcript, transcript_pattern
from vaultd.config import Config
from vaultd.core.event import Event
from vaultd.engine.foreign import agent_path
from vaultd.store import transcripts

__all__ = ["completed"]


def completed(agent: Agent, event: Event, config: Config) -> Event:
    """The event, completed; as it was where the transcript is not found or does not know."""
    if not reads_transcript(agent, event):
        return event
    pattern, told = transcript_pattern(agent, event), agent.transcripts
    if not pattern:
        return complete(agent, event, transcripts.tail(event.transcript))
    found = transcripts.newest(agent_path(agent, config.places, config.environ, told.folder, told.home), pattern)
    return complete(agent, event, transcripts.tail(found.path)) if found is not None else event
