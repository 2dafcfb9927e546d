"""The frontmatter keys that are vaultd's own."""

from __future__ import annotations

__all__ = ["OWN_KEYS"]

_ANY_PAGE = """kind tier title aliases tags entities relations summary pinned salience access_count last_accessed
    expires_at supersedes superseded_by review created updated"""
_SESSION = """id agent session_id project host cwd subdir branch head started ended closed_by observations files_touched
    generation generated"""
_HANDOFF = """from_agent from_session shared provisional accepted_at accepted_by open_questions next_steps"""
_PROJECT = """repos"""

OWN_KEYS = frozenset(f"{_ANY_PAGE} {_SESSION} {_HANDOFF} {_PROJECT}".split())
"""The keys of the format (section 5): the only ones whose values are changed in a page that exists."""
