"""The command line as a person and a script meet it: outputs, exit codes, errors that say what to do."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from tests.scratch import Scratch, git
from vaultd.cli.main import COMMANDS, command_module
from vaultd.engine.once import finalize, ingest_once
from vaultd.engine.stores import open_stores


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder with its hash and permissions."""
    return {
        str(p.relative_to(folder)): f"{hashlib.sha256(p.read_bytes()).hexdigest()} {p.stat().st_mode:o}"
        for p in sorted(folder.rglob("*"))
        if p.is_file() and not p.is_symlink() and ".git/" not in str(p) and ".vaultd/" not in str(p)
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "git", "git with ignore files"])
def test_init_on_an_existing_vault_of_2000_pages(scratch: Scratch, kind: str) -> None:
    for number in range(2000):
        page = scratch.vault / f"area {number % 40}" / f"Note {number} ünï.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_bytes(f"---\ntags: [a, b] # mine\r\n---\r\n# Note {number}\r\nabout thing{number}".encode())
    (scratch.vault / ".obsidian").mkdir()
    (scratch.vault / ".obsidian/app.json").write_text("{}")
    if kind != "plain":
        git("init", "-q", "-b", "trunk", cwd=scratch.vault)
        if "ignore" in kind:
            (scratch.vault / ".gitignore").write_text("*.tmp\n")
            (scratch.vault / ".gitattributes").write_text("*.png binary\n")
        git("add", ".", cwd=scratch.vault)
        git("commit", "-q", "-m", "mine", cwd=scratch.vault)
        (scratch.vault / "area 1/Note 1 ünï.md").write_bytes(b"staged by me")
        git("add", "area 1", cwd=scratch.vault)
    before, staged = (
        tree(scratch.vault),
        git("diff", "--cached", "--stat", cwd=scratch.vault) if kind != "plain" else "",
    )
    done = scratch.run("init", str(scratch.vault))
    assert done.returncode == 0, done.stderr
    after = tree(scratch.vault)
    assert {k: v for k, v in after.items() if k in before} == before
    for path in sorted(set(after) - set(before)):
        assert path in done.stdout, f"{path} was added and not printed"
    assert "Home.md" not in after
    if kind != "plain":
        assert git("diff", "--cached", "--stat", cwd=scratch.vault) == staged
    again = scratch.run("init", str(scratch.vault))
    assert again.returncode == 0 and "nothing to add" in again.stdout
    assert tree(scratch.vault) == after
    found = scratch.json("search", "--json", "thing1234")
    assert found["hits"][0]["path"] == "area 34/Note 1234 ünï.md" and found["pending"] == 0


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["status"], 3, "vaultd init"),
        (["search", "x"], 3, "vaultd init"),
        (["ingest"], 3, "vaultd init"),
        (["init", "/"], 2, "folder in it"),
        (["install-hooks", "--agent", "nobody"], 2, "Known are"),
        (["--vault", "/nowhere/at/all", "recent"], 3, "/nowhere/at/all"),
    ],
)
def test_errors_say_what_to_do(scratch: Scratch, args: list[str], code: int, says: str) -> None:
    done = scratch.run(*args)
    assert done.returncode == code
    assert says in done.stderr and "Traceback" not in done.stderr
    assert done.stdout == ""


def test_usage_and_not_found(scratch: Scratch) -> None:
    scratch.init()
    assert scratch.run().returncode == 2
    assert scratch.run("nonsense").returncode == 2
    assert scratch.run("search", "--limit", "0", "x").returncode == 2
    assert scratch.run("search", "--limit", "1000", "x").returncode == 0, "a person may want them all"
    assert scratch.run("search", "--where", "x", "y").returncode == 2
    missing = scratch.run("read", "no such page")
    assert missing.returncode == 4 and "vaultd search" in missing.stderr
    assert scratch.run("finalize-session").returncode == 4
    assert scratch.run("read", "../../etc/passwd").returncode in (4, 6)


def test_wrong_settings_are_reported_all_at_once(scratch: Scratch) -> None:
    scratch.init()
    (scratch.vault / "vaultd.toml").write_text(
        '[capture]\nassistant = "yes"\nnonsense = 1\n[sanitize]\nextra_patterns = ["("]\n'
    )
    (scratch.home / ".config/vaultd/config.toml").write_text("[git]\ncommit_edits = 3\n")
    done = scratch.run("ingest")
    assert done.returncode == 2
    for word in ("capture.assistant", "capture.nonsense", "(", "git.commit_edits"):
        assert word in done.stderr
    for brake in (["status"], ["doctor"]):
        done = scratch.run(*brake)
        assert done.returncode == 7 and "capture.nonsense" in done.stdout
    for brake in (["pause"], ["resume-capture"], ["down"], ["uninstall", "--apply"]):
        assert scratch.run(*brake).returncode == 0


def test_init_says_where_agents_write_from_now_on(scratch: Scratch) -> None:
    scratch.init()
    other = scratch.base / "other"
    told = scratch.run("init", str(other), check=True).stdout
    assert f"no longer to {scratch.vault}" in told and f"vaultd --vault {scratch.vault} down" in told
    assert "no longer" not in scratch.run("init", str(other), check=True).stdout


def test_a_command_that_is_none(scratch: Scratch) -> None:
    done = scratch.run("statsu")
    assert (done.returncode, done.stdout) == (2, "") and "`vaultd status`" in done.stderr
    done = scratch.run("--vault", "x", "frobnicate")
    assert done.returncode == 2 and "Did you mean" not in done.stderr and "--help" in done.stderr
    done = scratch.run()
    assert done.returncode == 2 and all(name in done.stdout for name in COMMANDS)


def test_status_tells_who_is_at_work_and_of_this_folder(scratch: Scratch) -> None:
    scratch.init()
    cwd = scratch.checkout()
    native = scratch.session(cwd, prompts=("Mend the plugh",), end=False)
    scratch.session(cwd, prompts=("Over",))
    scratch.run("ingest", check=True)
    told = scratch.run("status", cwd=cwd).stdout
    assert "recorded in projects/project" in told and "Mend the plugh" in told and native in told
    assert "Over" not in told
    assert "no session was here yet" in scratch.run("status", cwd=scratch.checkout("other")).stdout
    (cwd / ".vaultd.toml").write_text("enabled = false\n")
    assert f"kept out by {cwd}/.vaultd.toml" in scratch.run("status", cwd=cwd).stdout


def test_search_output(scratch: Scratch) -> None:
    stores = scratch.init()
    cwd = scratch.checkout()
    scratch.session(cwd)
    scratch.run("ingest", check=True)
    (scratch.vault / "_global/style.md").write_text("# Style\n\nThe greeting is always polite. ^polite\n")
    (scratch.vault / "Loose page.md").write_text("# Loose\n\nA greeting outside all projects.\n")
    answer = scratch.json("search", "--json", "greeting", cwd=cwd)
    assert list(answer) == ["query", "project", "generation", "pending", "hits", "global_hits", "other_hits"]
    assert list(answer["hits"][0]) == [
        "path",
        "anchor",
        "title",
        "project",
        "kind",
        "tier",
        "score",
        "snippet",
        "updated",
        "passages",
    ]
    assert [h["path"] for h in answer["global_hits"]] == ["_global/style.md"]
    assert answer["global_hits"][0]["anchor"] == "#^polite"
    assert "^polite" not in scratch.run("search", "greeting", cwd=cwd).stdout
    assert [h["path"] for h in answer["other_hits"]] == ["Loose page.md"]
    assert all(h["project"] == answer["project"] for h in answer["hits"])
    paths = scratch.run("search", "--paths", "greeting", cwd=cwd).stdout.splitlines()
    assert set(paths) == {h["path"] for key in ("hits", "global_hits", "other_hits") for h in answer[key]}
    outside = scratch.json("search", "--json", "greeting")
    assert outside["project"] == "" and len(outside["hits"]) == len(paths)
    only = scratch.json("search", "--json", "--all", "--where", "kind=session", "greeting", cwd=cwd)
    assert {h["kind"] for h in only["hits"]} == {"session"}
    nothing = scratch.run("search", "xyzzyplugh", cwd=cwd)
    assert nothing.returncode == 0 and "Nothing found" in nothing.stdout
    for query in ('"', "( AND", "*", "-", "🙂", "a:b OR NOT", "\\", "[[", "'"):
        assert scratch.run("search", "--json", "--", query, cwd=cwd).returncode == 0
    assert stores.inbox.pending() == []


def test_what_is_not_in_yet_is_counted(scratch: Scratch) -> None:
    scratch.init()
    cwd = scratch.checkout()
    scratch.session(cwd)
    done = scratch.run("search", "greeting", cwd=cwd)
    assert done.returncode == 0 and "6 events or pages are not in yet" in done.stderr


def test_an_edit_is_found_at_once_and_a_deleted_page_is_not(scratch: Scratch) -> None:
    scratch.init()
    page = scratch.vault / "note.md"
    page.write_text("# Note\n\nplugh\n")
    assert [h["path"] for h in scratch.json("search", "--json", "plugh")["hits"]] == ["note.md"]
    page.write_text("# Note\n\nxyzzy\n")
    assert scratch.json("search", "--json", "plugh")["hits"] == []
    assert [h["path"] for h in scratch.json("search", "--json", "xyzzy")["hits"]] == ["note.md"]
    page.unlink()
    assert scratch.json("search", "--json", "xyzzy")["hits"] == []


def test_the_cache_can_be_deleted_at_any_time(scratch: Scratch) -> None:
    scratch.init()
    cwd = scratch.checkout()
    scratch.session(cwd)
    scratch.run("ingest", check=True)
    before = scratch.json("search", "--json", "greeting", cwd=cwd)["hits"]
    subprocess.run(["rm", "-rf", str(scratch.home / ".cache/vaultd")], check=True)
    assert scratch.json("search", "--json", "greeting", cwd=cwd)["hits"] == before
    done = scratch.run("reindex")
    assert done.returncode == 0 and done.stderr == ""
    assert scratch.json("search", "--json", "greeting", cwd=cwd)["hits"] == before


def test_recent_read_and_a_closed_pipe(scratch: Scratch) -> None:
    scratch.init()
    for number in range(300):
        (scratch.vault / f"Page {number}.md").write_text(
            f"---\ntitle: Title {number}\n---\nText {number}\n" + "x\n" * 50
        )
    rows = scratch.run("recent", "--limit", "5").stdout.splitlines()
    assert len(rows) == 5
    assert "Text 7\n" in scratch.run("read", "Page 7").stdout
    assert "Text 7\n" in scratch.run("read", "Page 7.md").stdout
    (scratch.vault / "parts.md").write_text("# Parts\n\n## One\nfirst\n\n## Two\nsecond ^b\n")
    for anchor in ("#Two", "#^b"):
        assert scratch.run("read", f"parts{anchor}").stdout == "## Two\nsecond ^b\n"
    missing = scratch.run("read", "parts#Three")
    assert missing.returncode == 4 and "has no 'Three'" in missing.stderr
    command = f'"{sys.executable}" -m vaultd recent --limit 300 | head -n 1'
    done = subprocess.run(
        ["sh", "-c", command], env=scratch.environ, capture_output=True, text=True, check=False, cwd=scratch.base
    )
    assert done.returncode == 0 and done.stderr == "" and done.stdout.count("\n") == 1


def test_control_characters_in_a_page_reach_no_terminal(scratch: Scratch) -> None:
    scratch.init()
    (scratch.vault / "evil.md").write_text("# Evil\n\nplugh \x1b]0;owned\x07 \x1b[31mred\n")
    assert "\x1b" not in scratch.run("read", "evil").stdout
    assert "\x1b" not in scratch.run("search", "plugh").stdout


def test_pause_writes_nothing(scratch: Scratch) -> None:
    stores = scratch.init()
    cwd = scratch.checkout()
    scratch.run("pause", check=True)
    scratch.hook("claude-code", "UserPromptSubmit", {"session_id": "s", "cwd": str(cwd), "prompt": "x"}, cwd)
    assert stores.inbox.pending() == []
    status = scratch.run("status")
    assert status.returncode == 7 and "vaultd resume" in status.stdout
    scratch.run("resume-capture", check=True)
    scratch.hook("claude-code", "UserPromptSubmit", {"session_id": "s", "cwd": str(cwd), "prompt": "x"}, cwd)
    assert len(stores.inbox.pending()) == 1


def test_finalize_session(scratch: Scratch) -> None:
    scratch.init()
    cwd = scratch.checkout()
    native = scratch.session(cwd, end=False)
    scratch.run("ingest", check=True)
    assert "Closed claude-code-" in scratch.run("finalize-session", "--session-id", native, cwd=cwd).stdout
    [handoff] = scratch.json("handoffs", "list", "--json", cwd=cwd)
    assert handoff["provisional"] is False
    assert scratch.run("finalize-session", "--session-id", native, cwd=cwd).returncode == 4
    assert git("status", "--porcelain", cwd=scratch.vault) == ""


def test_finalize_session_sees_what_waits_and_no_other_project(scratch: Scratch) -> None:
    scratch.init()
    cwd = scratch.checkout()
    native = scratch.session(cwd, end=False)
    assert scratch.run("finalize-session", cwd=scratch.checkout("other")).returncode == 4
    assert scratch.run("finalize-session", cwd=scratch.home).returncode == 4
    assert scratch.run("finalize-session", native, cwd=scratch.home).returncode == 0


def test_a_session_is_closed_twice_within_a_second(scratch: Scratch) -> None:
    scratch.init()
    cwd, begun = scratch.checkout(), scratch.now
    stores = open_stores(scratch.config, lambda: begun)
    native = scratch.session(cwd, end=False)
    for _ in range(2):
        ingest_once(stores)
        finalize(stores, None, native, None, everything=False)
        scratch.session(cwd, native=native, end=False)
    ingest_once(stores)
    [page] = scratch.vault.glob("*/*/sessions/*.md")
    assert "generation: 3" in page.read_text("utf-8")


def test_a_session_is_closed_although_the_clock_was_set_back(scratch: Scratch) -> None:
    scratch.init()
    cwd = scratch.checkout()
    scratch.now += timedelta(hours=1)
    scratch.session(cwd, end=False)
    scratch.run("ingest", check=True)
    scratch.run("finalize-session", cwd=cwd, check=True)
    [handoff] = scratch.json("handoffs", "list", "--json", cwd=cwd)
    assert handoff["provisional"] is False
    assert scratch.run("finalize-session", cwd=cwd).returncode == 4


def test_status_json_has_its_keys(scratch: Scratch) -> None:
    scratch.init()
    cwd = scratch.checkout()
    scratch.session(cwd)
    scratch.run("ingest", check=True)
    status = scratch.json("status", "--json")
    assert list(status) == [
        "ok",
        "problems",
        "vault",
        "version",
        "daemon",
        "pages",
        "inbox",
        "agents",
        "injected",
        "git",
        "index",
    ]
    assert status["ok"] is True and status["problems"] == []
    assert status["agents"]["claude-code"]["PostToolUse"]["count"] == 1
    assert status["pages"]["disk"] == status["pages"]["indexed"] > 0
    assert set(status["git"]) == {"commit", "at", "pending", "blocked"} and status["git"]["pending"] == 0
    (scratch.vault / "broken.md").write_text('---\ndescription: "a "b" c"\n---\nplugh\n')
    scratch.run("search", "plugh")
    status = scratch.json("status", "--json")
    assert status["pages"]["unparsable"] == ["broken.md"] and status["ok"] is False


def test_many_deletions_wait_for_consent(scratch: Scratch) -> None:
    scratch.init()
    for number in range(60):
        (scratch.vault / f"p{number}.md").write_text(f"page {number}\n")
    git("add", ".", cwd=scratch.vault)
    git("commit", "-q", "-m", "mine", cwd=scratch.vault)
    for number in range(40):
        (scratch.vault / f"p{number}.md").unlink()
    cwd = scratch.checkout()
    scratch.session(cwd)
    done = scratch.run("ingest")
    assert done.returncode == 0 and "accept-deletions" in done.stderr
    assert "accept-deletions" in scratch.run("status").stdout
    assert len(list(scratch.vault.glob("*/*/sessions/*.md"))) == 1  # truth does not wait for history
    assert scratch.run("accept-deletions").returncode == 0
    assert scratch.run("ingest").stderr == ""
    assert "sessions/" in git("log", "-1", "--name-only", cwd=scratch.vault)


def test_help_reads_only_the_standard_library(scratch: Scratch) -> None:
    code = (
        "import sys; from vaultd.cli.main import build_parser; build_parser().format_help();"
        "print([m for m in ('yaml','whoosh','markdown_it','vaultd.engine.stores') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], env=scratch.environ, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(scratch: Scratch, name: str) -> None:
    assert command_module(name).HELP
    done = scratch.run(name, "--help")
    assert done.returncode == 0 and "usage: vaultd" in done.stdout


def test_the_twin_of_the_hook(scratch: Scratch) -> None:
    stores = scratch.init()
    cwd = scratch.checkout()
    payload = {"session_id": "s", "cwd": str(cwd), "prompt": "From the twin — žluť 漢字"}
    done = scratch.run("hook", "claude-code", "UserPromptSubmit", text=json.dumps(payload, ensure_ascii=False), cwd=cwd)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    [key] = stores.inbox.pending()
    data = (stores.inbox.new / key).read_bytes()
    assert data.startswith(b"vaultd-event 1\n") and "žluť 漢字".encode() in data and os.fsencode(cwd) in data
    assert scratch.run("hook", cwd=cwd).returncode == 0
    (stores.inbox.new / key).unlink()
    scratch.session(cwd)
    scratch.run("ingest", check=True)
    start = json.dumps({"session_id": "n", "cwd": str(cwd), "source": "startup"})
    given = scratch.run("hook", "codex", "SessionStart", text=start, cwd=cwd)
    assert "src/app.py" in json.loads(given.stdout)["hookSpecificOutput"]["additionalContext"]
    assert scratch.run("hook", "codex", "SessionStart", text=start.replace('"n"', '"m"'), cwd=cwd).stdout == ""
    scratch.run("ingest", check=True)
    [entry] = scratch.json("handoffs", "list", "--all", "--json")
    assert entry["state"] == "accepted" and entry["accepted_by"].startswith("codex-")


def test_the_twin_of_the_hook_gives_text_once_in_a_session(scratch: Scratch) -> None:
    scratch.init()
    cwd = scratch.checkout()
    scratch.session(cwd)
    scratch.run("ingest", check=True)

    def prompt(native: str) -> str:
        payload = json.dumps({"session_id": native, "cwd": str(cwd), "prompt": "What is left?"})
        return scratch.run("hook", "kimi-code", "UserPromptSubmit", text=payload, cwd=cwd).stdout

    elsewhere = scratch.checkout("elsewhere")
    other = json.dumps({"session_id": "a", "cwd": str(elsewhere), "prompt": "x"})
    assert scratch.run("hook", "kimi-code", "UserPromptSubmit", text=other, cwd=elsewhere).stdout == ""
    assert prompt("a") == "", "its first prompt was elsewhere"
    assert "src/app.py" in prompt("b")
    assert prompt("b") == "" == prompt("c")


def test_the_allow_list(scratch: Scratch) -> None:
    stores = scratch.init()
    (scratch.vault / "vaultd.toml").write_text("[capture]\nallow_list = true\n")
    scratch.run("ingest", check=True)
    cwd = scratch.checkout()
    scratch.hook("claude-code", "UserPromptSubmit", {"session_id": "s", "cwd": str(cwd), "prompt": "x"}, cwd)
    assert stores.inbox.pending() == []
    (cwd / ".vaultd.toml").write_text("")
    scratch.hook("claude-code", "UserPromptSubmit", {"session_id": "s", "cwd": str(cwd), "prompt": "x"}, cwd)
    assert len(stores.inbox.pending()) == 1


def test_the_spool_keeps_vaults_apart_and_pause_holds_there(scratch: Scratch) -> None:
    stores = scratch.init()
    cwd = scratch.checkout()
    prompt = {"session_id": "s", "cwd": str(cwd), "prompt": "x"}
    scratch.extra["VAULTD_VAULT"] = str(scratch.base / "work vault, away")
    scratch.hook("claude-code", "UserPromptSubmit", prompt, cwd)
    del scratch.extra["VAULTD_VAULT"]
    spool = scratch.home / ".local/state/vaultd/spool/new"
    assert len(list(spool.iterdir())) == 1
    assert any("wait in" in p for p in scratch.json("status", "--json")["problems"])
    scratch.run("ingest", check=True)
    assert len(list(spool.iterdir())) == 1 and stores.inbox.sessions() == []
    scratch.run("pause", check=True)
    away = scratch.base / "away"
    scratch.vault.rename(away)
    scratch.hook("claude-code", "UserPromptSubmit", prompt, cwd)
    away.rename(scratch.vault)
    scratch.run("resume-capture", check=True)
    assert len(list(spool.iterdir())) == 1
    scratch.vault.rename(away)
    scratch.hook("claude-code", "UserPromptSubmit", prompt, cwd)
    away.rename(scratch.vault)
    scratch.run("ingest", check=True)
    assert len(list(spool.iterdir())) == 1 and len(stores.inbox.sessions()) == 1


def test_any_locale_is_utf_8(scratch: Scratch) -> None:
    scratch.extra |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    scratch.init()
    cwd = scratch.checkout("検索 café")
    scratch.session(cwd, prompts=("Hello — žluť 漢字 🙂",))
    done = scratch.run("ingest")
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    [page] = scratch.vault.glob("projects/検索-café/sessions/*.md")
    assert "žluť 漢字 🙂" in page.read_text("utf-8")
    assert scratch.json("search", "--json", "漢字", cwd=cwd)["hits"]


def test_a_vault_that_is_gone_is_not_made_anew_by_up(scratch: Scratch) -> None:
    scratch.init()
    scratch.vault.rename(scratch.base / "moved")
    done = scratch.run("up")
    assert done.returncode == 3 and "--vault NEW up" in done.stderr and not scratch.vault.exists()


def test_a_checkout_of_code_is_no_vault(scratch: Scratch) -> None:
    cwd = scratch.checkout()
    for number in range(6):
        (cwd / f"module{number}.py").write_text("x = 1\n")
    git("add", ".", cwd=cwd)
    git("commit", "-q", "-m", "code", cwd=cwd)
    done = scratch.run("init", str(cwd))
    assert done.returncode == 6 and "--force" in done.stderr
    assert git("status", "--porcelain", cwd=cwd) == "" and not (cwd / ".vaultd").exists()
    assert scratch.run("init", "--force", str(cwd)).returncode == 0


def test_a_session_is_read_by_its_own_id(scratch: Scratch) -> None:
    scratch.init()
    native = scratch.session(scratch.checkout())
    scratch.run("ingest", check=True)
    assert "Fix the greeting" in scratch.run("read", native).stdout
    assert "Fix the greeting" in scratch.run("handoffs", "--all").stdout


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("enable = false\n", "unknown: enable"),
        ('[capture]\nignore_path = ["*.pem"]\n', "unknown: capture.ignore_path"),
        ("enabled = fals\n", "it is no TOML"),
    ],
)
def test_a_slip_in_a_marker_is_told(scratch: Scratch, text: str, told: str) -> None:
    scratch.init()
    cwd = scratch.checkout()
    (cwd / ".vaultd.toml").write_text(text)
    assert told in scratch.run("status", cwd=cwd).stdout
    (cwd / ".vaultd.toml").write_text('enabled = true\n[capture]\nignore_paths = ["*.pem"]\n')
    assert "unknown" not in scratch.run("status", cwd=cwd).stdout
