"""The README's reference tables, made from the code.

python -m tests.readme_tables        # writes them into README.md
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from vaultd.agents import load_agents
from vaultd.cli.main import COMMANDS, command_module
from vaultd.config import KEYS
from vaultd.core.event import Kind
from vaultd.core.keys import PAGE_KEYS
from vaultd.errors import VaultdError
from vaultd.mcp.tools import TOOLS

README = Path(__file__).parent.parent / "README.md"
MARK = re.compile(r"(<!-- table:(?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def commands() -> str:
    return table(("command", "what it does"), [(f"`vaultd {name}`", command_module(name).HELP) for name in COMMANDS])


def exit_codes() -> str:
    classes: list[type[VaultdError]] = [VaultdError, *VaultdError.__subclasses__()]
    rows: list[tuple[str, ...]] = [("0", "it worked (also when nothing was found)")]
    rows += [
        (str(c.exit_code), (c.__doc__ or "").split(";")[0].split(".")[0].strip())
        for c in sorted(classes, key=lambda c: c.exit_code)
    ]
    return table(("code", "meaning"), rows)


def settings() -> str:
    def shown(value: object) -> str:
        return {True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value) or '""'

    return table(
        ("key", "default", "meaning"), [(f"`{k}`", f"`{shown(i.default)}`", i.meaning) for k, i in KEYS.items()]
    )


MOMENTS = {"start": "at the start", "prompt": "with the first prompt", "tool": "after the first tool call"}


def agents() -> str:
    rows = []
    for agent in load_agents().values():
        wired = {spec.kind for spec in agent.wired}
        recorded = [
            word
            for word, kinds in (
                ("prompts", {Kind.PROMPT}),
                ("tool calls", {Kind.TOOL}),
                ("turns", {Kind.TURN_END}),
                ("its end", {Kind.END}),
            )
            if kinds & wired
        ]
        moments = {spec.moment for spec in agent.wired if spec.shape}
        proof = agent.evidence.get("hooks") or agent.evidence.get("mcp")
        rows.append(
            (
                f"{agent.title} (`{agent.id}`)",
                ", ".join(recorded) or "nothing",
                ", ".join(MOMENTS[moment] for moment in MOMENTS if moment in moments) or "no",
                "yes" if agent.mcp is not None else "no",
                "yes" if agent.instructions is not None else "no",
                f"run: {proof.version}, {proof.date}" if proof is not None and proof.version else "documentation",
            )
        )
    rows.sort(key=lambda row: (row[5] == "documentation", row[0].lower()))
    return table(("agent", "recorded", "is given the handoff", "MCP", "instructions", "known from"), rows)


def frontmatter() -> str:
    return table(("key", "in", "meaning"), [(f"`{k}`", where, meaning) for k, (where, meaning) in PAGE_KEYS.items()])


def tools() -> str:
    rows = []
    for tool in TOOLS.values():
        given = [f"`{name}`" if name in tool.required else f"[`{name}`]" for name in tool.properties]
        rows.append((f"`{tool.name}`", "" if tool.reads else "writes", ", ".join(given), tool.description))
    return table(("tool", "", "takes (in brackets: may be left out)", "what it does"), rows)


TABLES = {
    "tools": tools,
    "commands": commands,
    "exit-codes": exit_codes,
    "settings": settings,
    "agents": agents,
    "frontmatter": frontmatter,
}


def current(text: str) -> str:
    """The README with its tables as the code says."""
    return MARK.sub(lambda m: m.group(1) + TABLES[m.group("name")]() + m.group(3), text)


if __name__ == "__main__":
    README.write_text(current(README.read_text("utf-8")), "utf-8")
    sys.exit(0)
