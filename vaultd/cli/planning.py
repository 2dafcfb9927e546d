"""A change of other programs' settings, printed, and made when a person wants it."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Iterable, Sequence

from vaultd.agents import Agent, load_agents
from vaultd.cli.opening import configured
from vaultd.cli.terminal import Terminal
from vaultd.config import Config
from vaultd.engine.connecting import single_plan
from vaultd.engine.foreign import Plan, apply
from vaultd.engine.install import refresh_hook
from vaultd.engine.parts import parts_of
from vaultd.engine.setup import hook_source, needs_init
from vaultd.engine.stores import local_now
from vaultd.errors import ConflictError, UsageError

__all__ = ["carried_out", "declined", "install_part", "named_agents"]

_ATTEMPTS = 5  # a program that runs may write its settings all the time


def named_agents(names: Iterable[str]) -> list[Agent]:
    """The agents of these ids. UsageError."""
    agents = load_agents()
    titles = {agent.title.casefold(): agent.id for agent in agents.values()}
    found = []
    for name in names:
        known = titles.get(name.casefold(), name)
        if known not in agents:
            close = difflib.get_close_matches(name.casefold(), [*agents, *titles], 1)
            hint = f" Did you mean {titles.get(close[0], close[0])}?" if close else ""
            raise UsageError(f"Unknown agent {name!r}.{hint} Known are: {', '.join(agents)}.")
        found.append(agents[known])
    return [agent for place, agent in enumerate(found) if agent not in found[:place]]


def declined(terminal: Terminal, args: argparse.Namespace) -> int:
    """Say that nothing was done; 2 where nobody could be asked and nothing said that this was meant."""
    if args.only_print or terminal.asks():
        terminal.say("Nothing was changed.")
        return 0
    terminal.warn("Nothing was changed. Add --yes to do it, or --print to only see it.")
    return 2


def install_part(args: argparse.Namespace, terminal: Terminal, kind: str) -> int:
    """Print what it takes to put one kind of part into an agent's files, and do it with `--apply`. RefusedError."""
    if not (args.agent or args.named):
        raise UsageError(f"Name an agent. Known are: {', '.join(load_agents())}.")
    config, agent = configured(args), named_agents([args.agent or args.named])[0]
    if not _has(agent, kind):
        raise UsageError(f"{agent.title} has no {_KINDS[kind]} that vaultd knows to be true. README lists what it has.")

    def plan_of() -> Plan:
        parts = parts_of(agent, config, [kind])
        if not parts:
            raise UsageError(
                f"{agent.title} has none yet that hooks could go into: make an agent of your own in it first."
            )
        return single_plan(parts, config.places)

    plan = plan_of()
    if not plan.empty:
        terminal.say(plan.text.rstrip("\n"))
    if args.apply:
        if kind == "hooks":
            refresh_hook(hook_source(), config.places)
        for text in carried_out(config, plan, plan_of):
            terminal.say(text)
    elif not plan.empty:
        terminal.say("Nothing was changed. Add --apply to do it.")
    for note in plan.notes:
        terminal.say(note)
    if args.apply and needs_init(config):
        terminal.say("There is no vault yet: `vaultd up` makes one.")
    return 0


def carried_out(config: Config, plan: Plan, plan_of: Callable[[], Plan]) -> Sequence[str]:
    """Carry a plan out; what was done. One that the settings have left behind is made anew; ConflictError when they
    changed again and again.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return apply(plan, config.places, local_now())
        except ConflictError:
            plan = plan_of()
    return apply(plan, config.places, local_now())


_KINDS = {"hooks": "hooks", "mcp": "file of MCP servers", "instructions": "instructions file"}


def _has(agent: Agent, kind: str) -> bool:
    return {"hooks": agent.hooks, "mcp": agent.mcp, "instructions": agent.instructions}[kind] is not None
