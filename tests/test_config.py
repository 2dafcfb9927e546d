"""Settings and places: where the vault is, what both files say, and all that is wrong with them at once."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from vaultd.config import KEYS, Config, load, places, vault_path
from vaultd.core.embedding import Choice
from vaultd.core.sanitize import redact
from vaultd.engine.setup import remember
from vaultd.errors import UsageError


def environ(tmp_path: Path, **more: str) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    return {"HOME": str(home), **more}


def pointer(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "home/.config/vaultd/vault"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def settings(tmp_path: Path, mine: str = "", vault: str = "") -> Config:
    for path, text in ((tmp_path / "home/.config/vaultd/config.toml", mine), (tmp_path / "v/vaultd.toml", vault)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return load(str(tmp_path / "v"), environ(tmp_path))


def test_the_vault_is_the_one_named_then_the_variable_then_the_file_then_the_default(tmp_path: Path) -> None:
    env = environ(tmp_path)
    assert load(None, env).vault == tmp_path / "home/vaultd"
    pointer(tmp_path, b"/from/file\nand more lines\n")
    assert load(None, env).vault == Path("/from/file")
    env["VAULTD_VAULT"] = "/from/variable"
    assert load(None, env).vault == Path("/from/variable")
    assert load("/from/flag", env).vault == Path("/from/flag")


@pytest.mark.parametrize("blank", ["", " ", "\t"])
def test_blank_names_are_none(tmp_path: Path, blank: str) -> None:
    pointer(tmp_path, blank.encode() + b"\n/second/line\n")
    assert load(blank, environ(tmp_path, VAULTD_VAULT=blank)).vault == tmp_path / "home/vaultd"


def test_home_is_written_out_and_the_working_directory_counts_for_what_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = environ(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert load("~/notes", env).vault == tmp_path / "home/notes"
    assert load("~", env).vault == tmp_path / "home"
    assert load("a/../b", env).vault == tmp_path / "b"
    assert load("~other/x", env).vault == tmp_path / "~other/x"
    assert load(None, {**env, "VAULTD_VAULT": "c"}).vault == tmp_path / "c"
    pointer(tmp_path, b"d\n")  # the file says the same wherever a command runs
    assert load(None, env).vault == tmp_path / "home/d"


def test_a_link_stays_the_name_that_the_person_gave(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert load(str(tmp_path / "link"), environ(tmp_path)).vault == tmp_path / "link"


@pytest.mark.parametrize("name", [b"caf\xe9", b" two  blanks ", "日本".encode(), b"quote'\"s"])
def test_any_path_that_init_remembers_is_read_back(tmp_path: Path, name: bytes) -> None:
    vault = os.fsdecode(os.fsencode(tmp_path) + b"/" + name)
    remember(load(vault, environ(tmp_path)))
    assert load(None, environ(tmp_path)).vault == Path(vault)
    assert (tmp_path / "home/.config/vaultd/vault").read_bytes() == os.fsencode(vault) + b"\n"


def test_the_file_may_have_come_from_elsewhere(tmp_path: Path) -> None:
    pointer(tmp_path, b"/from/file\r\n")
    assert load(None, environ(tmp_path)).vault == Path("/from/file")
    pointer(tmp_path, b"/no/line/end")
    assert load(None, environ(tmp_path)).vault == Path("/no/line/end")
    (tmp_path / "home/.config/vaultd/vault").unlink()
    (tmp_path / "home/.config/vaultd/vault").mkdir()
    assert load(None, environ(tmp_path)).vault == tmp_path / "home/vaultd"


def test_a_vault_named_absolutely_needs_no_working_directory(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    program = "import os, sys, pathlib; os.chdir(sys.argv[1]); os.rmdir(sys.argv[1]); sys.path[:0] = [sys.argv[2]]\n"
    program += (
        "from vaultd.config import load; print(load('/a/b', {'HOME': '/h'}).vault, load(None, {'HOME': '/h'}).vault)"
    )
    root = str(Path(__file__).parent.parent)
    ran = subprocess.run([sys.executable, "-c", program, str(gone), root], capture_output=True, text=True, check=True)
    assert ran.stdout == "/a/b /h/vaultd\n"


@pytest.mark.parametrize("env", [{}, {"HOME": ""}, {"HOME": "relative"}, {"USERPROFILE": ""}])
def test_without_a_home_there_is_a_clear_word(env: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"HOME names no folder\. Set it"):
        load("/some/vault", env)


def test_the_home_of_another_system(tmp_path: Path) -> None:
    assert places({"USERPROFILE": str(tmp_path)}).home == tmp_path
    assert places({"HOME": "/h", "USERPROFILE": str(tmp_path)}).home == Path("/h")


def test_places_follow_the_variables_but_the_hook_does_not() -> None:
    where = places(
        {
            "HOME": "/h",
            "XDG_CONFIG_HOME": "/c",
            "XDG_STATE_HOME": "/s",
            "XDG_CACHE_HOME": "/k",
            "XDG_DATA_HOME": "/d",
        }
    )
    assert where.pointer == Path("/c/vaultd/vault")
    assert where.settings == Path("/c/vaultd/config.toml")
    assert where.spool == Path("/s/vaultd/spool")
    assert where.cache == Path("/k/vaultd")
    assert where.hook == Path("/h/.local/share/vaultd/vaultd-hook")


@pytest.mark.parametrize("value", ["", " ", "relative/folder", "."])
def test_blank_and_relative_variables_are_none(value: str) -> None:
    names = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
    assert places({"HOME": "/h", **dict.fromkeys(names, value)}) == places({"HOME": "/h"})
    assert places({"HOME": "/h"}).state == Path("/h/.local/state/vaultd")


def test_the_index_is_named_by_the_vaults_real_path(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    where = places({"HOME": "/h"})
    digits = hashlib.sha256(os.fsencode(os.path.realpath(tmp_path / "real"))).hexdigest()[:16]
    assert where.index(tmp_path / "link") == where.index(tmp_path / "real") == where.cache / digits / "index"
    assert where.index(tmp_path / "other") != where.index(tmp_path / "real")


def test_defaults_are_those_of_the_table(tmp_path: Path) -> None:
    config = settings(tmp_path)
    found = {
        "capture.assistant": config.assistant,
        "capture.ignore_paths": list(config.ignore_paths),
        "capture.allow_list": config.allow_list,
        "handoff.claim_on_session_start": config.claims,
        "sanitize.extra_patterns": list(config.rules.extra),
        "sanitize.allow": list(config.rules.allow),
        "daemon.watch": config.watch,
        "daemon.autostart": config.autostart,
        "git.commit_edits": config.commit_edits,
        "http.bind": config.bind,
        "http.hosts": list(config.hosts),
        **{f"vectors.{name}": value for name, value in asdict(config.vectors).items()},
    }
    assert found == {key: info.default for key, info in KEYS.items()}


def test_a_vault_that_came_from_elsewhere_opens_no_port(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"http\.bind. counts only in this machine's settings"):
        settings(tmp_path, vault='[http]\nbind = "0.0.0.0:80"\n')


def test_the_socket_has_a_place_whose_path_is_short_enough(tmp_path: Path) -> None:
    long = "/" + "x" * 120
    own = places({"HOME": "/home/p", "XDG_RUNTIME_DIR": "/run/user/7", "TMPDIR": "/scratch"})
    far = places({"HOME": "/home/p", "XDG_RUNTIME_DIR": long, "TMPDIR": long})
    name = own.index(tmp_path).parent.name + ".sock"
    assert own.socket(tmp_path) == Path("/run/user/7/vaultd") / name
    assert far.socket(tmp_path) == Path(f"/tmp/vaultd-{os.getuid()}") / name


def test_every_key_does_something(tmp_path: Path) -> None:
    config = settings(
        tmp_path,
        "[capture]\nassistant = false\nignore_paths = ['*.pem', '~/.ssh/**', '~x']\n[daemon]\nautostart = false\n"
        "[git]\ncommit_edits = false\n[sanitize]\nextra_patterns = ['ACME-\\d+']\nallow = ['ACME-1']\n",
    )
    assert (config.assistant, config.autostart, config.commit_edits) == (False, False, False)
    assert config.ignore_paths == ("*.pem", f"{tmp_path}/home/.ssh/**", "~x")
    assert redact("ACME-1 ACME-22", config.rules) == "ACME-1 [REDACTED]"


def test_what_the_vault_says_wins_and_lists_add_up(tmp_path: Path) -> None:
    config = settings(
        tmp_path,
        "[capture]\nassistant = false\nignore_paths = ['a']\n[git]\ncommit_edits = false\n",
        "[capture]\nignore_paths = ['b']\n[git]\ncommit_edits = true\n",
    )
    assert (config.assistant, config.ignore_paths, config.commit_edits) == (False, ("a", "b"), True)


def test_what_stores_nothing_forgives(tmp_path: Path) -> None:
    settings(tmp_path)
    (tmp_path / "v/vaultd.toml").write_text("[git]\ncommit_edits = false\nx = 1\n[capture]\nassistant = 2\n")
    config = load(None, environ(tmp_path, VAULTD_VAULT=str(tmp_path / "v")), forgiving=True)
    assert (config.commit_edits, config.assistant) == (False, True)
    assert ["unknown key" in problem for problem in config.problems] == [True, False]


def test_all_problems_of_both_files_are_told_at_once(tmp_path: Path) -> None:
    mine = (
        "top = 1\n[capture]\nassistant = 'yes'\nignore_paths = ['a', 1]\nunknown = 1\n"
        "[sanitize]\nextra_patterns = ['(', 'fine', '[']\n"
    )
    with pytest.raises(UsageError) as error:
        settings(tmp_path, mine, "[sanitize]\nallow = ['x', ' ']\nextra_patterns = ['*']\n[git]\ncommit_edits = 1\n")
    first, *told, last = str(error.value).split("\n")
    assert first == "Settings are wrong:" and last.startswith("Mend these lines")
    own, vaults = f"  {tmp_path}/home/.config/vaultd/config.toml: ", f"  {tmp_path}/v/vaultd.toml: "
    wanted = [
        own + "`top` must be a [section]",
        own + "`capture.assistant` must be true or false",
        own + "`capture.ignore_paths` must be a list of texts",
        own + "unknown key `capture.unknown`; known are capture.assistant, ",
        own + "`sanitize.extra_patterns`: The pattern '(' is not a regular expression",
        own + "`sanitize.extra_patterns`: The pattern '[' is not a regular expression",
        vaults + "`sanitize.allow` has a blank entry",
        vaults + "`sanitize.extra_patterns`: The pattern '*' is not a regular expression",
        vaults + "`git.commit_edits` must be true or false",
    ]
    assert len(told) == len(wanted)
    for line, begins in zip(told, wanted, strict=True):
        assert line.startswith(begins)


@pytest.mark.parametrize(
    "data", [b"[capture\n", b"a = 1\na = 2\n", b"[x]\ny = \xff\n", b"x = " + b"[" * 5000 + b"]" * 5000]
)
def test_a_file_that_is_no_toml_is_named(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "v").mkdir()
    (tmp_path / "v/vaultd.toml").write_bytes(data)
    with pytest.raises(UsageError, match=re.escape(f"{tmp_path}/v/vaultd.toml: ")):
        load(str(tmp_path / "v"), environ(tmp_path))


def test_a_file_that_cannot_be_read_is_named_and_a_missing_one_is_no_problem(tmp_path: Path) -> None:
    assert load(str(tmp_path / "nowhere"), environ(tmp_path)).assistant
    (tmp_path / "file").write_text("a file where the vault should be", "utf-8")
    assert load(str(tmp_path / "file"), environ(tmp_path)).assistant
    (tmp_path / "v/vaultd.toml").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"v/vaultd\.toml: .*[Dd]irectory"):
        load(str(tmp_path / "v"), environ(tmp_path))


def test_a_mark_at_the_beginning_that_editors_make_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "v").mkdir()
    (tmp_path / "v/vaultd.toml").write_bytes(b"\xef\xbb\xbf[capture]\r\nassistant = false\r\n")
    assert not load(str(tmp_path / "v"), environ(tmp_path)).assistant


def same(one: Config, other: Config) -> bool:
    """Whether two settings say the same (rules are compared by identity)."""
    rules = [(c.rules.extra, c.rules.allow) for c in (one, other)]
    return replace(one, rules=other.rules) == other and rules[0] == rules[1]


def test_the_shipped_settings_are_valid_with_and_without_their_examples(tmp_path: Path) -> None:
    text = (Path(__file__).parent.parent / "vault-template/vaultd.toml").read_text("utf-8")
    assert same(settings(tmp_path, vault=text), settings(tmp_path))
    every = re.sub(r"^# (\w+ = )", r"\1", text, flags=re.MULTILINE)
    assert every != text and same(settings(tmp_path, vault=every), settings(tmp_path))


def test_only_what_is_given_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VAULTD_VAULT", "/from/the/process")
    env = environ(tmp_path, VAULTD_HOST="a-name")
    config = load(None, env)
    assert (config.vault, config.host) == (tmp_path / "home/vaultd", "a-name")
    assert load(None, environ(tmp_path)).host
    env["VAULTD_VAULT"] = "/changed/later"
    assert "VAULTD_VAULT" not in config.environ
    assert vault_path(None, env, config.places) == Path("/changed/later")
    assert "/from/the/process" not in repr(config)


def test_vectors_are_off_and_named_in_this_machines_settings_only(tmp_path: Path) -> None:
    assert settings(tmp_path).vectors == Choice() and not Choice().on
    told = settings(
        tmp_path,
        '[vectors]\nprovider = "endpoint"\nurl = " http://localhost:1/v1 "\nmodel = "m"\n'
        'key_file = "~/key"\ndimensions = 8\n',
    ).vectors
    assert told == Choice("endpoint", "http://localhost:1/v1", "m", "", f"{tmp_path}/home/key", 8) and told.on
    with pytest.raises(UsageError, match=r"vectors\.url. counts only in this machine's settings"):
        settings(tmp_path, vault='[vectors]\nurl = "http://elsewhere/v1"\n')


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('provider = "maybe"', "must be one of off, local, endpoint"),
        ('provider = "endpoint"', "`vectors.url` is needed for an endpoint"),
        ("provider = true", "`vectors.provider` must be a text"),
        ("dimensions = true", "`vectors.dimensions` must be a whole number"),
        ("dimensions = -1", "must be a positive number"),
        ('key = "sk-1"', "unknown key `vectors.key`"),
    ],
)
def test_wrong_settings_of_vectors(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError) as raised:
        settings(tmp_path, f"[vectors]\n{text}\n")
    assert says in str(raised.value)
    config = load(str(tmp_path / "v"), environ(tmp_path), forgiving=True)
    assert not config.vectors.on and says in config.problems[0]
