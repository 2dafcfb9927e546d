"""Parsing of the command line, and the one place where errors become messages and exit codes."""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from vaultd import __version__
from vaultd.cli.terminal import Terminal
from vaultd.errors import VaultdError

__all__ = ["COMMANDS", "build_parser", "run"]

COMMANDS: tuple[str, ...] = (
    "up",
    "connect",
    "disconnect",
    "down",
    "status",
    "search",
    "read",
    "recent",
    "handoffs",
    "finalize-session",
    "install-hooks",
    "install-mcp",
    "install-instructions",
    "uninstall",
    "init",
    "serve",
    "ingest",
    "failed",
    "reindex",
    "embed",
    "doctor",
    "pause",
    "resume-capture",
    "accept-deletions",
    "demo",
    "mcp",
    "hook",
)
"""All commands, in the order of `vaultd --help`: what a person needs first comes first."""


def command_module(name: str) -> ModuleType:
    """The module of a command."""
    return importlib.import_module(f"vaultd.cli.commands.{name.replace('-', '_')}")


def build_parser(names: Sequence[str] = COMMANDS) -> argparse.ArgumentParser:
    """The parser with these commands' arguments."""
    parser = argparse.ArgumentParser(
        prog="vaultd",
        description="One long-term memory for your coding agents, kept as a plain Markdown git vault.",
        epilog="Start with `vaultd up`, then `vaultd connect`.",
    )
    parser.add_argument("--version", action="version", version=f"vaultd {__version__}")
    parser.add_argument(
        "--vault", metavar="PATH", help="the vault to use (default: VAULTD_VAULT, else the one of `init`)"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in names:
        module = command_module(name)
        sub = commands.add_parser(name, help=module.HELP, description=module.__doc__)
        sub.add_argument("--vault", metavar="PATH", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        module.configure(sub)
    return parser


def _named(argv: Sequence[str]) -> str:
    """The command in a command line, known or not; "" when it begins with another option than `--vault`."""
    rest = list(argv)
    while rest and rest[0].partition("=")[0] == "--vault":
        del rest[: 1 if "=" in rest[0] else 2]
    return rest[0] if rest and not rest[0].startswith("-") else ""


def run(argv: list[str]) -> int:
    """Run one command line; the exit code. Errors are one message on standard error."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    named = _named(argv)
    if not argv:
        build_parser().print_help()
        return 2
    if named and named not in COMMANDS:
        close = difflib.get_close_matches(named, COMMANDS, 1)
        hint = f" Did you mean `vaultd {close[0]}`?" if close else ""
        print(f"vaultd: There is no command {named!r}.{hint} `vaultd --help` lists all.", file=sys.stderr)
        return 2
    args = build_parser([named] if named else COMMANDS).parse_args(argv)
    try:
        code = command_module(args.command).run(args, Terminal())
        sys.stdout.flush()
    except VaultdError as error:
        print(f"vaultd: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader went away (`vaultd recent | head`): not an error, and nothing more may be printed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = f" ({os.fsdecode(error.filename)})" if error.filename else ""
        print(
            f"vaultd: {error.strerror or error}{where}. Nothing was left half done; mend this and run it again.",
            file=sys.stderr,
        )
        return 1
    return int(code)
