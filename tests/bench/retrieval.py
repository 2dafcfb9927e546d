"""How well the search finds what is right, and what each part of its ranking earns.

    python -m tests.bench.retrieval [--memory] [--kept] [--outside FOLDER [SET...]] [--turns] [--tokens N] [--whole]
                                    [--vectors]

Every question goes the way of an agent's: the tool `memory_query`, on the service of the daemon. Each vault is indexed
once. Prints a table for each set, and asserts nothing:

    --memory    our own coding memory, each question asked from within its project
    --kept      of it the questions that are kept for a last run, instead of the others
    --outside   sets of others, in a folder with their `benchlib.py`; each folder of pages becomes a vault of its own
    --turns     passages instead of pages, for the sets that have judgements of these
    --tokens    the length of an answer that is asked for; 0, as it is when not given, for any
    --whole     the whole ranking only
    --vectors   with the local model of the extra `vectors`; embedding takes longer than all else

Below the whole ranking a line for each stream of `fusion.STREAMS` that is left out, for none of the guesses at
misspelt words, and for no floor under weak hits. `tokens` is the mean length of an answer's text, four bytes each;
`noise` how many hits come where nothing is right; `wrong` the share of questions that are given a page that is wrong.
The clock stands still, so that figures compare.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from vaultd.config import load
from vaultd.core import fusion
from vaultd.core.embedding import Choice
from vaultd.engine import answers, local
from vaultd.engine.health import Pulse
from vaultd.engine.live import Live
from vaultd.engine.local import LocalService
from vaultd.engine.nearby import nearby_of
from vaultd.engine.service import Reply, Scope, Search
from vaultd.engine.setup import init
from vaultd.engine.stores import open_stores
from vaultd.mcp.tool import Call
from vaultd.mcp.tools.query import TOOL
from vaultd.store import rarity

__all__ = ["MEMORY", "Asked", "Told", "figures", "memory", "opened", "told"]

MEMORY = Path(__file__).parent.parent / "data/coding_memory"
NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
SETS = ("locomo", "beam", "pmb", "cosqa", "scifact")
LIMIT = 10
COLUMNS = ("recall@1", "recall@5", "recall@10", "hit@1", "hit@5", "mrr", "ndcg@10", "tokens", "noise", "wrong")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and what is right: pages, or passages as `page.md#^block-id`, with their worth.

    `project` is asked, "" for all. `wrong` may not come; `given` is shown anyway and counts for nothing.
    """

    text: str
    right: Mapping[str, int]
    project: str = ""
    where: Mapping[str, Sequence[str]] = field(default_factory=dict)
    wrong: frozenset[str] = frozenset()
    given: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Told:
    """An answer: its hits of all lists, best first, and the text that an agent reads."""

    hits: Sequence[Reply]
    text: str

    @property
    def pages(self) -> list[str]:
        """The pages, best first."""
        return [hit["path"] for hit in self.hits]

    @property
    def passages(self) -> list[str]:
        """The passages, best first, as many as pages were asked for."""
        found = [(-part["score"], hit["path"] + part["anchor"]) for hit in self.hits for part in hit["passages"]]
        return [place for _, place in sorted(found)][:LIMIT]


class _Asking:
    """The service as one call of the tool sees it: with bounds that the tool has no words for; the reply is kept."""

    def __init__(self, service: LocalService, where: Mapping[str, Sequence[str]]) -> None:
        self._service = service
        self._where = where
        self.reply: Reply = {}

    def query(self, scope: Scope, text: str, search: Search) -> Reply:
        self.reply = self._service.query(scope, text, replace(search, where=self._where))
        return self.reply


@contextmanager
def opened(vault: Path, *, vectors: bool = False) -> Iterator[LocalService]:
    """The service on a folder of pages, made a vault, with everything indexed and watched, as the daemon has it."""
    home = vault.with_name(f"{vault.name}-home")
    home.mkdir()
    config = load(None, {"HOME": str(home), "PATH": os.environ["PATH"], "VAULTD_VAULT": str(vault)})
    config = replace(config, vectors=Choice("local" if vectors else "off"))
    init(config)
    stores = partial(open_stores, config, lambda: NOW)
    live = Live(stores(), watch=True)
    live.scan()
    if vectors:
        from vaultd.engine import embedding  # which nothing else needs

        embedder = embedding.embedder_of(config)
        assert embedder is not None
        pages = embedding.revisions(live.index)
        embedding.bring_up(stores(), embedder, embedding.open_vectors(config, embedder), pages)
    try:
        yield LocalService(stores, live, Pulse(), lambda _: None, nearby_of(config))
    finally:
        live.close()


def told(service: LocalService, asked: Asked, tokens: int = 0) -> Told:
    """What the tool answers; scores compare over its lists."""
    asking: Any = _Asking(service, asked.where)
    values = {"query": asked.text, "limit": LIMIT, "tokens": tokens, "global": not asked.project}
    text = TOOL.run(Call(asking, Scope(project=asked.project), values)).text
    lists = ("hits", "global_hits", "other_hits")
    hits = [hit for name in lists for hit in asking.reply[name]]
    return Told(sorted(hits, key=lambda hit: -hit["score"]), text)


def figures(found: Iterable[str], asked: Asked) -> dict[str, float]:
    """How good a ranking is. Recall is of all that is right, a hit any of it; where nothing is right, all is noise."""
    ranked = list(dict.fromkeys(found))[:LIMIT]
    wrong = {"wrong": float(not asked.wrong.isdisjoint(ranked))} if asked.wrong else {}
    ranked = [place for place in ranked if place not in asked.given]
    if not asked.right:
        return {"noise": len(ranked), **wrong}
    worth = [asked.right.get(place, 0) for place in ranked]
    best = sorted(asked.right.values(), reverse=True)[:LIMIT]
    first = next((place for place, value in enumerate(worth, 1) if value), 0)
    return {
        **{f"recall@{k}": sum(map(bool, worth[:k])) / len(asked.right) for k in (1, 5, 10)},
        **{f"hit@{k}": float(0 < first <= k) for k in (1, 5)},
        "mrr": 1 / first if first else 0.0,
        "ndcg@10": _gain(worth) / _gain(best),
        **wrong,
    }


def memory(*, kept: bool | None) -> list[Asked]:
    """The questions of our own memory: those that are kept or not, or all for None."""
    questions = json.loads((MEMORY / "questions.json").read_text("utf-8"))
    chosen = [one for one in questions if kept is None or one["kept"] == kept]
    return [Asked(one["question"], dict.fromkeys(one["answers"], 1), one["project"]) for one in chosen]


def _gain(worth: Sequence[int]) -> float:
    """The discounted gain of a ranking."""
    return sum(value / math.log2(place + 1) for place, value in enumerate(worth, 1))


def _without(stream: str) -> AbstractContextManager[object]:
    """The ranking without a stream."""

    def answer(source: Any, text: str, wanted: answers.Wanted, nearby: Any) -> answers.Answer:
        return answers.answer(source, text, replace(wanted, without=(stream,)), nearby)

    return patch.object(local, "answer", answer)


WAYS: Mapping[str, Callable[[], AbstractContextManager[object]]] = {
    "whole": nullcontext,
    **{f"without {stream}": partial(_without, stream) for stream in fusion.STREAMS},
    "without guesses": lambda: patch.object(rarity, "_near", lambda *_: []),
    "without floor": lambda: patch.multiple(fusion, FLOOR=0.0, FLOOR_OF_ONE=0.0),
}
"""The ways to rank."""


def _table(name: str, asked: Sequence[tuple[LocalService, Asked]], args: argparse.Namespace) -> None:
    """Ask everything in every way, and print a line for each as soon as it is there."""
    head = ""
    for way, changed in list(WAYS.items())[: 1 if args.whole else None]:
        if way == "without vector" and not args.vectors:
            continue
        rows = []
        with changed():
            for service, one in asked:
                answer = told(service, one, args.tokens)
                row = figures(answer.passages if args.turns else answer.pages, one)
                rows.append({**row, "tokens": len(answer.text.encode("utf-8", "replace")) / 4})
        shown = [column for column in COLUMNS if any(column in row for row in rows)]
        if not head:
            head = f"\n{name}, {len(rows)} questions".ljust(35) + "".join(f"{column:>10}" for column in shown)
            print(head)
        cells = [_mean([row[column] for row in rows if column in row]) for column in shown]
        print(f"{way:34}" + "".join(f"{cell:10.{1 if cell >= 10 else 4}f}" for cell in cells), flush=True)


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)


def _own(args: argparse.Namespace) -> None:
    """Our own memory."""
    with tempfile.TemporaryDirectory() as root:
        vault = Path(root) / "vault"
        shutil.copytree(MEMORY / "vault", vault)
        with opened(vault, vectors=args.vectors) as service:
            questions = memory(kept=args.kept)
            _table(f"memory{', kept' if args.kept else ''}", [(service, one) for one in questions], args)


def _outside(library: Any, folder: Path, args: argparse.Namespace) -> None:
    """A set of others: `{docs, queries, qrels, turns, forbidden}`, each question of a group, which is a vault."""
    data = library.load_set(str(folder))
    judged = data["turns" if args.turns else "qrels"]
    if not judged:
        return
    with tempfile.TemporaryDirectory() as root, ExitStack() as stack:
        vaults = {
            group: stack.enter_context(opened(Path(path), vectors=args.vectors))
            for group, path in library.layout(data["docs"], root).items()
        }
        asked = [
            (vaults[query["group"]], _asked(query, judged.get(query["qid"], {}), data["forbidden"]))
            for query in data["queries"]
            if query["qid"] in judged or query.get("empty")
        ]
        _table(f"{folder.name}{', passages' if args.turns else ''}", asked, args)


def _asked(query: Mapping[str, Any], right: Mapping[str, int], forbidden: Mapping[str, Collection[str]]) -> Asked:
    """A question of an outside set, within its own scope and user."""
    bounds = {name: query[name] for name in ("scope", "user") if name in query}
    where = {name: [value] if isinstance(value, str) else value for name, value in bounds.items()}
    wrong, given = forbidden.get(query["qid"], ()), query.get("pinned_ok", ())
    return Asked(query["query"], right, where=where, wrong=frozenset(wrong), given=frozenset(given))


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--kept", action="store_true")
    parser.add_argument("--outside", nargs="+", default=())
    parser.add_argument("--turns", action="store_true")
    parser.add_argument("--tokens", type=int, default=0)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--vectors", action="store_true")
    args = parser.parse_args()
    if args.memory or args.kept:
        _own(args)
    if args.outside:
        folder, *sets = args.outside
        sys.path.insert(0, folder)
        library = importlib.import_module("benchlib")
        for name in sets or SETS:
            _outside(library, Path(folder) / name, args)


if __name__ == "__main__":
    main()
