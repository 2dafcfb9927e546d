"""What vaultd puts into other programs' files: for each agent its hooks, its MCP server, its instructions.

A `Part` is one file with the pure edits that put ours in and take it out again. What is done with parts is the same for
all of them: see `connecting.py` and `uninstall.py`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from vaultd.agents import Agent, blocktext, hookfile, mcpfile, ownfile, setting
from vaultd.agents.edits import EditError
from vaultd.agents.model import HookFile
from vaultd.config import Config, Places, vault_path
from vaultd.engine.foreign import agent_path, read_foreign
from vaultd.engine.routing import ROUTING, SKILL
from vaultd.errors import RefusedError

__all__ = ["PARTS", "Part", "hook_parts", "parts_of", "server_command", "server_problem"]

PARTS = ("hooks", "mcp", "instructions")
"""What can be put in, by the names that the commands use."""


@dataclass(frozen=True, slots=True)
class Part:
    """One file that something of ours goes into.

    `enter` gives the text with ours in it ("" stands for no file), `leave` the text without (None: the file goes; it is
    also given what the file held before ours was in, "" where that is not known), and `holds` whether ours is in. All
    raise EditError for a text that cannot be read or edited safely. `paste` is what a person can put in by hand, `word`
    stands in every file that ours is in. `format` is the file's ("" for text). The file is ours as a `whole`, or it
    `uses` such files, or has entries of ours among others.
    """

    agent: Agent
    name: str
    path: Path
    enter: Callable[[str], str]
    leave: Callable[[str, str], str | None]
    holds: Callable[[str], bool]
    paste: Callable[[], str]
    word: str
    format: str = ""
    whole: bool = False
    uses: bool = False
    executable: bool = False

    @property
    def record(self) -> str:
        """Under which name changes are recorded: hooks under the agent's own."""
        return self.agent.id if self.name == "hooks" else f"{self.agent.id} {self.name}"


def parts_of(agent: Agent, config: Config, names: Iterable[str] = PARTS, *, fresh: bool = False) -> list[Part]:
    """The parts of an agent, of these kinds; a kind that the agent has not gives none.

    `fresh`: the configured vault is about to be made, and will be the default then.
    """
    wanted, found = set(names), list[Part]()
    if "hooks" in wanted:
        found += hook_parts(agent, config.places, config.environ)
    if "mcp" in wanted and agent.mcp is not None:
        found.append(_mcp(agent, config, fresh))
    if "instructions" in wanted and agent.instructions is not None:
        found += _instructions(agent, config.places, config.environ)
    return found


def hook_parts(agent: Agent, places: Places, environ: Mapping[str, str]) -> list[Part]:
    """The files that an agent's hooks go into. Where its files are made by a person (`*`), those that there are."""
    hooks = agent.hooks
    if hooks is None:
        return []
    whole = agent_path(agent, places, environ, hooks.file, hooks.folder)
    if hooks.template:
        return [*_plugin(agent, hooks, places, environ, whole)]
    paths = sorted(whole.parent.glob(whole.name)) if "*" in whole.name else [whole]
    entries = Part(
        agent,
        "hooks",
        whole,
        enter=partial(hookfile.added, agent, hook=places.hook),
        leave=partial(hookfile.removed, agent),
        holds=lambda text: bool(hookfile.entries(agent, text)),
        paste=partial(hookfile.snippet, agent, places.hook),
        word=hookfile.HOOK_NAME,
        format=hooks.format,
    )
    return [replace(entries, path=path) for path in paths]


def server_command(config: Config, fresh: bool = False) -> tuple[str, tuple[str, ...]]:
    """The command and arguments of an entry among MCP servers.

    Clients start servers in an environment of few variables: a vault that only this environment leads to is named.
    """
    usual = config.places.home / ".config/vaultd"
    bare = {name: value for name, value in config.environ.items() if name in ("HOME", "USERPROFILE")}
    found = vault_path(None, bare, replace(config.places, config=usual))
    default = found == config.vault or (fresh and config.places.config == usual)
    named = () if default else ("--vault", str(config.vault))
    return config.command, (*named, "mcp")


def _one_per_event(agent: Agent, path: Path) -> Iterator[tuple[Path, str]]:
    """The files of an agent whose hooks are whole files, and the event that each is for ("" for all)."""
    if "{event}" not in path.name:
        yield path, ""
        return
    for spec in agent.wired:
        yield path.with_name(path.name.replace("{event}", spec.name)), spec.name


def _plugin(agent: Agent, hooks: HookFile, places: Places, environ: Mapping[str, str], whole: Path) -> Iterator[Part]:
    """The files that are wholly ours, then what makes the agent use them."""
    for path, event in _one_per_event(agent, whole):
        yield _own(agent, places, path, partial(ownfile.own_text, agent, hooks.template, places.hook, event))
    for own in hooks.beside:
        path = agent_path(agent, places, environ, own.file, hooks.folder)
        yield _own(agent, places, path, partial(ownfile.own_text, agent, own.template, places.hook))
    if hooks.setting is not None:
        told = hooks.setting
        yield Part(
            agent,
            "hooks",
            agent_path(agent, places, environ, told.file, hooks.folder),
            enter=partial(setting.with_setting, told),
            leave=partial(setting.without_setting, told),
            holds=partial(setting.has_setting, told),
            paste=lambda: setting.with_setting(told, "").rstrip("\n"),
            word=told.path[-1],
            format=told.format,
            uses=True,
        )


def _own(agent: Agent, places: Places, path: Path, wanted: Callable[[], str]) -> Part:
    return Part(
        agent,
        "hooks",
        path,
        enter=lambda text: ownfile.replaced(text, wanted(), agent),
        leave=lambda text, _: None if ownfile.is_own(text, agent) else text,
        holds=lambda text: ownfile.is_own(text, agent),
        paste=wanted,
        word=hookfile.HOOK_NAME,
        whole=True,
        executable=agent.hooks is not None and agent.hooks.executable,
    )


def _mcp(agent: Agent, config: Config, fresh: bool) -> Part:
    command, args = server_command(config, fresh)
    mcp = agent.mcp
    assert mcp is not None

    def holds(text: str) -> bool:
        there = mcpfile.server_in(agent, text)
        return there is not None and there.ours

    return Part(
        agent,
        "mcp",
        agent_path(agent, config.places, config.environ, mcp.file, mcp.folder),
        enter=partial(mcpfile.with_server, agent, command=command, args=args),
        leave=partial(mcpfile.without_server, agent),
        holds=holds,
        paste=partial(mcpfile.server_snippet, agent, command, args),
        word=mcpfile.SERVER,
        format=mcp.format,
    )


def _instructions(agent: Agent, places: Places, environ: Mapping[str, str]) -> Iterator[Part]:
    told = agent.instructions
    assert told is not None
    yield Part(
        agent,
        "instructions",
        agent_path(agent, places, environ, told.file, told.folder),
        enter=partial(blocktext.with_block, content=ROUTING),
        leave=lambda text, _: blocktext.without_block(text),
        holds=lambda text: blocktext.block_in(text) is not None,
        paste=lambda: ROUTING,
        word="vaultd:begin",
    )
    if told.skill:
        yield Part(
            agent,
            "instructions",
            agent_path(agent, places, environ, f"{told.skill}/vaultd-memory/SKILL.md", told.folder),
            enter=lambda text: ownfile.replaced(text, SKILL),
            leave=lambda text, _: None if ownfile.is_own(text) else text,
            holds=ownfile.is_own,
            paste=lambda: SKILL,
            word=blocktext.own_mark,
            whole=True,
        )


def server_problem(agent: Agent, config: Config) -> str:
    """What is wrong with our entry among an agent's MCP servers, a sentence or two; "" for nothing, or no entry."""
    for part in parts_of(agent, config, ["mcp"]):
        try:
            there = mcpfile.server_in(agent, (read_foreign(part.path) or b"").decode("utf-8"))
        except (RefusedError, UnicodeDecodeError, EditError):
            return ""  # it is not ours to judge, and the agent says so itself
        if there is not None and there.ours and shutil.which(there.command, path=config.environ.get("PATH")) is None:
            mend = f"Run `vaultd connect {agent.id}`."
            return f"{agent.title}: its MCP server vaultd starts {there.command}, which is not there. {mend}"
    return ""
