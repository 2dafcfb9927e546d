"""A page for a client: the part of it that is asked for, and the pages around it."""

from __future__ import annotations

from collections.abc import Mapping

from vaultd.core import frontmatter
from vaultd.core.cutting import bounded
from vaultd.core.markdown import title_of
from vaultd.core.passages import lines_of
from vaultd.core.sections import lines_named, section
from vaultd.engine.service import Reply
from vaultd.errors import NotFoundError, UsageError
from vaultd.store.index import Index
from vaultd.store.vault import PageFile

__all__ = ["HOPS", "part", "related"]

HOPS = 3
"""Links one after the other that `related` follows, at most."""

_RELATED = 50
"""Pages that it tells of, at most."""

_FAN = 200
"""Links of a page that are followed: one with more is a list of everything."""

_TEXT_BYTES = 64 * 1024
"""Of a page that is read, so much is given: a model has no use for more at once."""


def part(page: PageFile, anchor: str, lines: str) -> Reply:
    """`{title, revision, lines, of, text}` of what an anchor or a range of lines names, of the whole page for neither.

    Lines count from 1 over the whole file, its frontmatter too. NotFoundError for an anchor that names nothing there,
    UsageError for lines that are none.
    """
    meta, body = frontmatter.parse(page.data)
    text = page.data.decode("utf-8", "replace").removeprefix("\ufeff")
    rows = lines_of(text)
    rows = rows[:-1] if rows[-1] == "" and len(rows) > 1 else rows
    asked = range(len(rows))
    if lines.strip():
        named = lines_named(lines, len(rows))
        if named is None:
            raise UsageError(f"The page has lines 1-{len(rows)}; {lines[:40]!r} is no range in them, like 12-40.")
        asked = named
    elif anchor.strip("# "):
        named = section(body, anchor)
        if named is None:
            raise NotFoundError(f"{page.path} has no {anchor[:100]!r}. Read it without an anchor.")
        above = len(lines_of(text)) - len(lines_of(body))
        asked = range(named.start + above, min(named.stop + above, len(rows)))
    told = text if len(asked) == len(rows) else "\n".join(rows[asked.start : asked.stop]) + "\n"
    return {
        "title": title_of(meta.values, body, page.path),
        "revision": str(page.revision),
        "lines": f"{asked.start + 1}-{asked.stop}",
        "of": len(rows),
        "text": bounded(told, _TEXT_BYTES, 0.1),
    }


def related(index: Index, path: str, hops: int) -> list[Reply]:
    """The pages around a page, nearest first: `[{path, title, kind, hops, by}]`, `by` the page whose link leads there,
    or that it links to. Those around one page come together, by path.
    """
    seen: dict[str, Reply] = {}
    edge: Mapping[str, None] = {path: None}
    for hop in range(1, hops + 1):
        reached: dict[str, None] = {}
        for source in edge:
            for page in sorted(index.linked(source, _FAN), key=lambda page: page.path):
                if page.path == path or page.path in seen:
                    continue
                if len(seen) == _RELATED:
                    return list(seen.values())
                row = {"path": page.path, "title": page.title, "kind": page.kind, "hops": hop, "by": source}
                seen[page.path] = row
                reached[page.path] = None
        edge = reached
    return list(seen.values())
