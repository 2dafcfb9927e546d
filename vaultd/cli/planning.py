"""A change of other programs' settings, printed, and made when a person wants it."""

from __future__ import annotations

from collections.abc import Callable

from vaultd.cli.terminal import Terminal
from vaultd.config import Config
from vaultd.engine.foreign import Plan, apply
from vaultd.engine.setup import needs_init
from vaultd.engine.stores import local_now
from vaultd.errors import ConflictError

__all__ = ["show_plan"]

_ATTEMPTS = 5  # a program that runs may write its settings all the time


def show_plan(
    terminal: Terminal, config: Config, plan_of: Callable[[], Plan], *, wanted: bool, first: Callable[[], object]
) -> None:
    """Print a plan and, when it is `wanted`, carry it out after `first`. RefusedError; ConflictError when the settings
    changed again and again meanwhile.
    """
    plan = plan_of()
    if not plan.empty:
        terminal.say(plan.text.rstrip("\n"))
    if wanted:
        first()
        for text in _carried_out(config, plan, plan_of):
            terminal.say(text)
    elif not plan.empty:
        terminal.say("Nothing was changed. Add --apply to do it.")
    for note in plan.notes:
        terminal.say(note)
    if wanted and needs_init(config):
        terminal.say("There is no vault yet: `vaultd up` makes one.")


def _carried_out(config: Config, plan: Plan, plan_of: Callable[[], Plan]) -> list[str]:
    """Carry a plan out; what was done. One that the settings have left behind is made anew."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return apply(plan, config.places, local_now())
        except ConflictError:
            plan = plan_of()
    return apply(plan, config.places, local_now())
