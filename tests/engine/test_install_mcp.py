"""`install-mcp` and what takes it back: by the command line, in a home of its own."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tests.scratch import Scratch
from vaultd.agents import Agent, load_agents
from vaultd.config import Places
from vaultd.engine.foreign import agent_path

CLIENTS = ("claude-code", "codex")
FILES = {"claude-code": ".claude.json", "codex": ".codex/config.toml"}
BEFORE = {
    "claude-code": '{\n  "numStartups": 7,\n  "projects": {"/src/shop": {"mcpServers": {}}}\n}',
    "codex": 'model = "x" # mine\n\n[features]\nhooks = true',
}


def file(scratch: Scratch, client: str) -> Path:
    return scratch.home / FILES[client]


def furnish(scratch: Scratch, client: str) -> bytes:
    path = file(scratch, client)
    path.parent.mkdir(exist_ok=True)
    path.write_text(BEFORE[client])
    path.chmod(0o600)
    return path.read_bytes()


def mcp_path(agent: Agent, places: Places, environ: dict[str, str]) -> Path:
    assert agent.mcp is not None
    return agent_path(agent, places, environ, agent.mcp.file, agent.mcp.folder)


def install(scratch: Scratch, client: str, *more: str) -> str:
    return scratch.run("install-mcp", "--client", client, *more, check=True).stdout


@pytest.mark.parametrize("client", CLIENTS)
def test_it_prints_what_it_would_change_and_changes_it_when_told_to(scratch: Scratch, client: str) -> None:
    before = furnish(scratch, client)
    said = install(scratch, client)
    assert "+" in said and "vaultd" in said and "--apply" in said
    assert file(scratch, client).read_bytes() == before
    said = install(scratch, client, "--apply")
    assert "kept a copy" in said and "vaultd up" in said
    text = file(scratch, client).read_text()
    told = tomllib.loads(text)["mcp_servers"] if client == "codex" else json.loads(text)["mcpServers"]
    assert told["vaultd"]["args"][-1] == "mcp" and Path(told["vaultd"]["command"]).name == "vaultd"
    assert file(scratch, client).stat().st_mode & 0o777 == 0o600
    again = file(scratch, client).read_bytes()
    assert "already" in install(scratch, client, "--apply")
    assert file(scratch, client).read_bytes() == again


@pytest.mark.parametrize("client", CLIENTS)
def test_uninstall_gives_back_the_very_bytes(scratch: Scratch, client: str) -> None:
    before = furnish(scratch, client)
    install(scratch, client, "--apply")
    scratch.run("uninstall", "--apply", check=True)
    assert file(scratch, client).read_bytes() == before
    assert [path.name for path in file(scratch, client).parent.glob("*.bak-*")] == []


@pytest.mark.parametrize("client", CLIENTS)
def test_uninstall_takes_out_only_ours_when_others_wrote_since(scratch: Scratch, client: str) -> None:
    furnish(scratch, client)
    install(scratch, client, "--apply")
    path = file(scratch, client)
    added = "\n[more]\nx = 1\n" if client == "codex" else ""
    path.write_text(path.read_text().replace("7,", "8,") + added)
    scratch.run("uninstall", "--apply", check=True)
    assert path.read_text() in (
        BEFORE[client].replace("7,", "8,") + added,
        BEFORE[client].replace("7,", "8,") + "\n" + added,
    )


@pytest.mark.parametrize("client", CLIENTS)
def test_a_file_that_is_ours_alone_goes(scratch: Scratch, client: str) -> None:
    install(scratch, client, "--apply")
    assert file(scratch, client).exists()
    scratch.run("uninstall", "--apply", check=True)
    assert not file(scratch, client).exists()


def test_the_folder_that_an_agents_variable_names_counts(scratch: Scratch) -> None:
    agents = load_agents()
    environ = {"CLAUDE_CONFIG_DIR": "/elsewhere/c", "CODEX_HOME": "/elsewhere/x"}
    places = scratch.config.places
    assert mcp_path(agents["claude-code"], places, {}) == scratch.home / ".claude.json"
    assert mcp_path(agents["claude-code"], places, environ) == Path("/elsewhere/c/.claude.json")
    assert mcp_path(agents["codex"], places, environ) == Path("/elsewhere/x/config.toml")


def test_a_vault_that_only_this_environment_leads_to_is_named(scratch: Scratch) -> None:
    install(scratch, "codex", "--apply")
    told = tomllib.loads(file(scratch, "codex").read_text())["mcp_servers"]["vaultd"]
    assert told["args"] == ["--vault", str(scratch.vault), "mcp"]
    scratch.init()
    scratch.run("up", check=True)
    try:
        install(scratch, "codex", "--apply")
        told = tomllib.loads(file(scratch, "codex").read_text())["mcp_servers"]["vaultd"]
        assert told["args"] == ["mcp"], "the pointer leads there now"
    finally:
        scratch.run("down", check=True)


@pytest.mark.parametrize("client", CLIENTS)
def test_wiring_mcp_does_not_count_as_wiring_hooks(scratch: Scratch, client: str) -> None:
    scratch.init()
    install(scratch, client, "--apply")
    assert not [text for text in scratch.json("status", "--json")["problems"] if "hooks" in text]


@pytest.mark.parametrize("client", CLIENTS)
def test_an_entry_whose_program_is_gone_is_told(scratch: Scratch, client: str) -> None:
    scratch.init()
    furnish(scratch, client)
    install(scratch, client, "--apply")
    path = file(scratch, client)
    command = scratch.config.command
    path.write_text(path.read_text().replace(json.dumps(command), json.dumps("/gone/bin/vaultd")))
    problems = scratch.json("status", "--json")["problems"]
    assert [text for text in problems if "/gone/bin/vaultd" in text and f"vaultd connect {client}" in text]
    assert "/gone/bin/vaultd" in scratch.run("doctor").stdout
    install(scratch, client, "--apply")
    assert not [text for text in scratch.json("status", "--json")["problems"] if "/gone/bin/vaultd" in text]


def test_what_cannot_be_edited_is_refused_with_the_lines_to_paste(scratch: Scratch) -> None:
    file(scratch, "codex").parent.mkdir()
    file(scratch, "codex").write_text("mcp_servers = {}\nbroken = \n")
    done = scratch.run("install-mcp", "--client", "codex", "--apply")
    assert done.returncode == 6 and "[mcp_servers.vaultd]" in done.stderr
    assert scratch.run("install-mcp", "--client", "nobody").returncode == 2


def test_what_a_client_noted_about_our_entry_goes_with_it_and_the_very_bytes_are_back(scratch: Scratch) -> None:
    before = furnish(scratch, "codex")
    install(scratch, "codex", "--apply")
    path = file(scratch, "codex")
    path.write_text(path.read_text() + '\n[mcp_servers.vaultd.tools.memory_query]\napproval_mode = "approve"\n')
    scratch.run("uninstall", "--apply", check=True)
    assert path.read_bytes() == before, "also the last line, which nothing ended"
