"""vaultd's search as an evaluator of outside retrieval sets wants it: a folder of pages in, ranked paths out.

    python -m tests.bench.outside FOLDER [SET...] [--turns]     # FOLDER holds `evaluate.py` and the sets

Each folder of pages becomes a vault of its own, and every question goes through the service that the daemon's tools
answer from. The sets are other people's and no part of this project.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vaultd.config import load
from vaultd.engine.health import Pulse
from vaultd.engine.live import Live
from vaultd.engine.local import LocalService
from vaultd.engine.service import Scope, Search
from vaultd.engine.setup import init
from vaultd.engine.stores import local_now, open_stores

__all__ = ["SETS", "factory", "turns"]

SETS = ("locomo", "beam", "cosqa", "scifact", "pmb")


def _service(vault: str) -> LocalService:
    """The service on a folder of pages, made a vault, with everything indexed."""
    home = f"{vault}-home"  # beside it, where the evaluator removes all
    Path(home).mkdir()
    config = load(vault, {"HOME": home, "PATH": os.environ["PATH"], "VAULTD_VAULT": vault})
    init(config)
    live = Live(open_stores(config, local_now))
    live.scan()
    return LocalService(lambda: open_stores(config, local_now), live, Pulse(), lambda _: None)


def factory(vault: str) -> Callable[[str, int, dict[str, Any]], list[str]]:
    """Search by pages."""
    service = _service(vault)

    def search(query: str, k: int, meta: dict[str, Any]) -> list[str]:
        where: dict[str, list[str]] = {
            key: [meta[key]] if isinstance(meta[key], str) else meta[key] for key in ("scope", "user") if key in meta
        }
        return [hit["path"] for hit in service.query(Scope(), query, Search(k, True, where=where))["hits"]]

    return search


def turns(vault: str) -> Callable[[str, int], list[str]]:
    """Search by passages: `page.md#^block-id`."""
    service = _service(vault)

    def search(query: str, k: int) -> list[str]:
        hits = service.query(Scope(), query, Search(k, True))["hits"]
        found = [(-part["score"], hit["path"] + part["anchor"]) for hit in hits for part in hit["passages"]]
        return [place for _, place in sorted(found)][:k]

    return search


def main() -> None:
    """Print a table for each set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--turns", action="store_true")
    args = parser.parse_args()
    sys.path.insert(0, str(args.folder))
    outside: Any = importlib.import_module("evaluate")
    for name in args.sets:
        data = outside.load_set(str(args.folder / name))
        rows, extra = outside.evaluate(data, turns if args.turns else factory, turns=args.turns)
        print(f"## {name}")
        print(outside.table(rows, sorted({category for category, _ in rows})))
        print(" ".join(f"{key}={value:.3f}" for key, value in extra.items()), flush=True)


if __name__ == "__main__":
    main()
