"""vaultd's entry among an agent's MCP servers: in and out again, and not a byte of anybody else's touched."""

from __future__ import annotations

import json
import tomllib

import pytest

from tests.agents.recorded import an
from vaultd.agents import load_agents
from vaultd.agents.edits import EditError
from vaultd.agents.mcpfile import McpEntry, server_in, server_snippet, with_server, without_server

COMMAND, ARGS = "/opt/v/bin/vaultd", ("mcp",)

JSONS = [
    "{}",
    "{}\n",
    '{"numStartups": 3}',
    '{"a":1,"projects":{"/x":{"mcpServers":{}}}}',
    '{\n  "a": 1,\n  "oauthAccount": {\n    "x": "é\\u00e9"\n  }\n}\n',
    '{\n\t"a": 1\n}',
    '{\r\n  "a": 1\r\n}\r\n',
    '\ufeff{\n  "a": 1\n}\n',
    '{\n  "mcpServers": {\n    "other": {\n      "command": "x"\n    }\n  },\n  "z": [1,2]\n}\n',
    '{"mcpServers":{"other":{"url":"u"}},"a":1}',
]
TOMLS = [
    'model = "x" # c\n',
    "# only a comment\n",
    'model = "x"\n\n[features]\nhooks = true\n',
    'model = "x"\r\n\r\n[features]\r\nhooks = true\r\n',
    '[mcp_servers.other]\ncommand = "x"\nargs = [\n  "a",\n  "b",\n]\n',
    '[mcp_servers]\n[mcp_servers.other]\ncommand = "x"\n',
    'text = """\n[mcp_servers.vaultd]\ncommand = "no"\n"""\n',
    '\ufeffmodel = "x"\n',
]
TEXTS = [("claude-code", text) for text in JSONS] + [("codex", text) for text in TOMLS]


@pytest.mark.parametrize(("agent", "text"), TEXTS)
def test_the_entry_goes_in_and_out_again_byte_for_byte(agent: str, text: str) -> None:
    assert server_in(an(agent), text) is None
    wired = with_server(an(agent), text, COMMAND, ARGS)
    assert server_in(an(agent), wired) == McpEntry(COMMAND, ARGS)
    assert with_server(an(agent), wired, COMMAND, ARGS) == wired
    left = without_server(an(agent), wired)
    assert left == text or (left is None and not text.strip("{} \r\n\ufeff"))


@pytest.mark.parametrize(("agent", "text"), TEXTS)
def test_every_byte_that_is_not_ours_stays(agent: str, text: str) -> None:
    wired = with_server(an(agent), text, COMMAND, ARGS)
    rest = iter(wired)
    assert all(char in rest for char in text), "the text is still there, in order"


@pytest.mark.parametrize(("agent", "text"), TEXTS)
def test_an_entry_that_starts_another_place_is_mended_where_it_stands(agent: str, text: str) -> None:
    old = with_server(an(agent), text, "/old/vaultd", ("--vault", "/v", "mcp"))
    new = with_server(an(agent), old, COMMAND, ARGS)
    assert server_in(an(agent), new) == McpEntry(COMMAND, ARGS)
    assert without_server(an(agent), new) == without_server(an(agent), old)


def test_what_an_entry_says() -> None:
    told = json.loads(with_server(an("claude-code"), "", COMMAND, ARGS))
    assert told == {"mcpServers": {"vaultd": {"type": "stdio", "command": COMMAND, "args": ["mcp"]}}}
    told = tomllib.loads(with_server(an("codex"), "", COMMAND, ARGS))
    assert told == {"mcp_servers": {"vaultd": {"command": COMMAND, "args": ["mcp"]}}}


@pytest.mark.parametrize("agent", list(load_agents()))
def test_a_snippet_is_what_would_be_written(agent: str) -> None:
    if an(agent).mcp is not None:
        assert server_in(an(agent), server_snippet(an(agent), COMMAND, ARGS)) == McpEntry(COMMAND, ARGS)


def test_what_a_person_added_to_the_entry_stays() -> None:
    text = '{"mcpServers":{"vaultd":{"type":"stdio","alwaysLoad":true,"command":"/old/vaultd","args":["mcp"]}}}'
    assert with_server(an("claude-code"), text, COMMAND, ARGS) == text.replace("/old/vaultd", COMMAND)
    toml = '[mcp_servers.vaultd]\nargs = ["mcp"]\n# mine\nenabled = true\ncommand = "/old/vaultd" # moved\n'
    mended = with_server(an("codex"), toml, COMMAND, ARGS)
    assert tomllib.loads(mended)["mcp_servers"]["vaultd"] == {"command": COMMAND, "args": ["mcp"], "enabled": True}
    assert "# mine\nenabled = true\n" in mended


def test_tables_below_the_entry_go_with_it() -> None:
    ours = with_server(an("codex"), "a = 1\n", COMMAND, ARGS)
    theirs = '\n[mcp_servers.vaultd.tools.memory_query]\napproval_mode = "approve"\n\n[projects."/x"]\ntrust = 1\n'
    assert without_server(an("codex"), ours + theirs) == 'a = 1\n\n[projects."/x"]\ntrust = 1\n'


def test_comments_before_the_next_table_stay() -> None:
    ours = with_server(an("codex"), "a = 1\n", COMMAND, ARGS)
    assert without_server(an("codex"), ours + "\n# about b\n[b]\nc = 1\n") == "a = 1\n\n# about b\n[b]\nc = 1\n"


@pytest.mark.parametrize(
    ("agent", "text"),
    [
        ("claude-code", '{"mcpServers":{"vaultd":{"type":"http","url":"http://127.0.0.1:1/mcp"}}}'),
        ("claude-code", '{"mcpServers":{"vaultd":{"command":"other","args":["mcp"]}}}'),
        ("codex", '[mcp_servers.vaultd]\nurl = "http://127.0.0.1:1/mcp"\n'),
    ],
)
def test_an_entry_of_that_name_which_is_not_ours_is_left_alone(agent: str, text: str) -> None:
    with pytest.raises(EditError, match="not ours"):
        with_server(an(agent), text, COMMAND, ARGS)
    assert without_server(an(agent), text) == text


@pytest.mark.parametrize(
    ("agent", "text"),
    [
        ("claude-code", "{"),
        ("claude-code", "[]"),
        ("claude-code", '{"mcpServers": 3}'),
        ("claude-code", '{"mcpServers": {}, "mcpServers": {}}'),
        ("codex", "a = "),
        ("codex", 'mcp_servers = { other = { command = "x" } }\n'),
        ("codex", "mcp_servers = 3\n"),
    ],
)
def test_what_cannot_be_edited_safely_is_refused(agent: str, text: str) -> None:
    with pytest.raises(EditError):
        with_server(an(agent), text, COMMAND, ARGS)


def test_an_entry_in_a_form_that_is_not_edited_is_refused_not_damaged() -> None:
    inline = 'mcp_servers = { vaultd = { command = "/old/vaultd", args = ["mcp"] } }\n'
    with pytest.raises(EditError):
        with_server(an("codex"), inline, COMMAND, ARGS)
    shared = inline.replace("vaultd = ", 'other = { command = "x" }, vaultd = ')
    with pytest.raises(EditError):
        without_server(an("codex"), shared)
