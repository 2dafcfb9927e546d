"""The frontmatter keys that vaultd reads or writes: where they stand and what they mean (format, section 5)."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["OWN_KEYS", "PAGE_KEYS"]

PAGE_KEYS: Mapping[str, tuple[str, str]] = {
    "id": ("session, handoff, project", "the page's own id; a renamed page is found by it"),
    "kind": ("any", "session, handoff, decision, gotcha, concept, procedure, note, rule, slot, ...; else by folder"),
    "tier": ("any", "working, episodic, semantic or procedural; else by kind"),
    "title": ("any", "the title; else the first heading, else the file's name"),
    "aliases": ("any", "other names that search finds the page by"),
    "tags": ("any", "tags"),
    "entities": ("any", "what the page is about"),
    "relations": ("any", "links with a meaning"),
    "summary": ("any", "one plain sentence"),
    "pinned": ("any", "true: never forgotten"),
    "salience": ("any", "how much the page matters"),
    "access_count": ("any", "how often it was recalled"),
    "last_accessed": ("any", "when it was recalled last"),
    "expires_at": ("any", "when it stops to count"),
    "supersedes": ("any", "the page that this one replaces"),
    "superseded_by": ("any", "the page that replaces this one; ranks below it"),
    "review": ("any", "asks a person to look at the page"),
    "created": ("any", "when it was made"),
    "updated": ("any", "when its text changed last"),
    "agent": ("session", "the agent's id"),
    "session_id": ("session", "the agent's own id of the session"),
    "project": ("session, handoff", "the project's id"),
    "host": ("session", "the machine that has the evidence"),
    "cwd": ("session, handoff", "the folder that the session worked in"),
    "subdir": ("session, handoff", "that folder, relative to the checkout; decides who may get a handoff"),
    "branch": ("session", "the git branch at the start"),
    "head": ("session, handoff", "the commit at the start"),
    "started": ("session", "when it began"),
    "ended": ("session", "when it ended"),
    "closed_by": ("session", "what ended it: the agent's own reason, or dead, quiet, replaced, finalised"),
    "observations": ("session", "how many observations the page was made from"),
    "files_touched": ("session, handoff", "files that were changed"),
    "generation": ("session", "rises when a closed session is prompted again"),
    "part": ("session", "true: made of what came after an earlier page of the session was deleted"),
    "generated": ("session, handoff", "a fingerprint of the text as it was written; shows whether a person changed it"),
    "from_agent": ("handoff", "the agent that left it"),
    "from_session": ("handoff", "that agent's own session id"),
    "shared": ("handoff", "true: for everybody who uses the vault"),
    "provisional": ("handoff", "true: its session has not ended yet"),
    "accepted_at": ("handoff", "when it was claimed"),
    "accepted_by": ("handoff", "the session that claimed it"),
    "open_questions": ("handoff", "questions that were left open"),
    "next_steps": ("handoff", "what was to be done next"),
    "repos": ("project", "normalised addresses of its repository, and its root commit"),
    "checkouts": ("project", "where it is checked out, machine by machine"),
}
"""Key to where it stands and what it means."""

OWN_KEYS = frozenset(PAGE_KEYS)
"""The keys of the format: the only ones whose values are changed in a page that exists."""
