"""Every way into a store, walked: what writes is known by name, and text gets in only after the sanitiser.

Three nets, each for what the others let through: the syntax trees give every call that puts bytes or names on a disk;
the type hints of every public function of a store module that writes give every parameter that can carry plain text;
a type checker is shown that plain text is refused where clean text is asked for.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import logging
import re
import subprocess
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from vaultd.cli.log import CleanLines
from vaultd.core.prepared import Prepared
from vaultd.core.sanitize import Clean, Observation, Rules

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "vaultd"
STORE = PACKAGE / "store"

# Net 1: every call that writes

WRITERS = {
    "engine/receive.py _deliver": "an event as it came, into the inbox: as raw there as a hook's",
    "engine/access.py token_of": "random characters",
    # the stores
    "store/vault.py Vault.initialise": "the sentinel: a fixed line and hex digits",
    "store/vault.py Vault.create": "a page: Clean",
    "store/vault.py Vault.move": "no bytes; a checked path",
    "store/vault.py Vault.keep_folder": "an empty file",
    "store/swap.py Batch.swap": "a page's bytes, from Vault alone (see below)",
    "store/swap.py Batch.keep": "a person's own text, under another name",
    "store/retired.py prepare": "a page's bytes, from Batch alone",
    "store/retired.py put_under": "no bytes",
    "store/gitindex.py IndexLock._make": "a lock with the boot's id",
    "store/gitindex.py IndexLock.put_in_place": "the index that git made",
    "store/inbox.py Inbox.file": "Observation",
    "store/inbox.py Inbox.pack": "observations that were read from done/",
    "store/inbox.py Inbox.reject": "Clean twice",
    "store/inbox.py Inbox.retry": "no bytes: what reject wrote goes back",
    "store/outbox.py Outbox.write_map": "a folder",
    "store/outbox.py Outbox._put": "the map, claims (paths, a Clean id, numbers) and Prepared texts",
    "store/gitsetup.py _add": "fixed lines for .gitignore and .gitattributes",
    "store/builds.py Builds.begin": "an empty folder",
    "store/builds.py Builds._write": "versions, the vault's path, numbers, what is wrong with an index",
    "store/vectors.py Vectors._begin": "vectors and paths of pages, outside the vault",
    "store/vectors.py Vectors.put": "vectors and paths of pages, outside the vault",
    "store/sums.py note_sums": "names and sums of index files",
    "store/lock.py Lock.acquire": "an empty file",
    "store/watch.py Watch.settle": "an empty file",
    # this machine's own files, none of them a store
    "engine/setup.py init": "an empty folder",
    "engine/setup.py remember": "the vault's path",
    "engine/setup.py set_paused": "an empty file",
    "engine/reconcile.py index_lock": "an empty folder",
    "engine/history.py History.accept_deletions": "a number",
    "engine/seen.py Seen._write": "agent ids, event names, times and counts, out of observations",
    "engine/passes.py Passes._flag": "an empty file",
    "engine/passes.py Passes._tell": "messages, each through the sanitiser",
    "engine/daemon.py Daemon._announce": "pid, start time, boot id, version, the vault's path",
    "engine/installed.py Installed._write": "paths, hashes and times of agents' configuration files",
    "engine/install.py refresh_hook": "the hook as shipped",
    "engine/foreign.py _replace": "an agent's configuration with our entries: the person's file, no store",
    "engine/foreign.py _copy": "an agent's configuration as it was, beside it",
    "cli/starting.py _start": "the daemon's log, each line through the sanitiser",
    "cli/reaching.py _unwritable": "a file without a name or a byte",
    "cli/demo.py Demo._open": "a scratch home with the hook as shipped",
    # raw events on their way in: what lies in inbox/new goes through the sanitiser when it is taken in
    "engine/lifecycle.py deliver_close": "an event of our own, raw like any other",
    "engine/passes.py Passes.take_spool": "an event as a hook wrote it",
    "cli/hook.py _claim": "a handoff's id, into inbox/tmp",
    "cli/hook.py _is_first": "an empty file named by a session's id",
    "cli/hook.py _deliver": "an event as the agent said it",
}
"""Every function that puts bytes or names on a disk, and what they are."""

_VERBS = {"publish", "write_private", "temp_beside", "replace", "move", "exchange"}
_WRITES = {
    "write_text",
    "write_bytes",
    "touch",
    "symlink_to",
    "hardlink_to",
    "mkdir",
    "makedirs",
    "copytree",
    "copyfile",
}
_FLAGS = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND"}


def writing(tree: ast.Module) -> Iterator[str]:
    """The functions with a call that writes."""
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "vaultd.store.fs"
        for alias in node.names
        if alias.name in _VERBS
    }

    def walk(node: ast.AST, where: tuple[str, ...]) -> Iterator[str]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            where = (*where, node.name)
        if isinstance(node, ast.Call) and _writes(node, imported):
            yield ".".join(where)
        for child in ast.iter_child_nodes(node):
            yield from walk(child, where)

    yield from walk(tree, ())


def _writes(call: ast.Call, imported: set[str]) -> bool:
    match call.func:
        case ast.Attribute(value=ast.Name(id="fs"), attr=name) if name in _VERBS:
            return True
        case ast.Attribute(attr=name) if name in _WRITES:
            return True
        case ast.Attribute(value=ast.Name(id="os"), attr="open"):
            words = {n.attr for n in ast.walk(call) if isinstance(n, ast.Attribute)}
            return bool(words & _FLAGS) and "devnull" not in words
        case ast.Name(id="open") | ast.Attribute(attr="open" | "fdopen" | "NamedTemporaryFile"):
            modes = [*call.args, *(k.value for k in call.keywords if k.arg == "mode")]
            texts = [m.value for m in modes if isinstance(m, ast.Constant) and isinstance(m.value, str)]
            return any(re.fullmatch(r"[rwaxbt+]{1,3}", text) and set(text) & set("wax+") for text in texts)
        case ast.Name(id=name):
            return name in imported
    return False


def test_every_function_that_writes_is_known() -> None:
    found = {
        f"{path.relative_to(PACKAGE).as_posix()} {where}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path != STORE / "fs.py"
        for where in writing(ast.parse(path.read_text("utf-8")))
    }
    assert found == WRITERS.keys()


@pytest.mark.parametrize(
    "code",
    [
        "def f(): fs.publish(p, d)",
        "from vaultd.store.fs import write_private\ndef f(): write_private(p, d)",
        "from vaultd.store.fs import publish as put\ndef f(): put(p, d)",
        "def f(): path.write_text('x')",
        "def f():\n    with open(path, 'ab') as file: file.write(d)",
        "def f(): path.open(mode='w')",
        "def f(): os.open(p, os.O_WRONLY | os.O_CREAT)",
        "def f(): os.fdopen(handle, 'w')",
    ],
)
def test_every_way_to_write_is_seen(code: str) -> None:
    assert list(writing(ast.parse(code))) == ["f"]
    assert (
        list(writing(ast.parse("def f(): open(p, 'rb'); os.open(p, os.O_RDONLY); fs.remove(p); dict.open('was')")))
        == []
    )


def test_the_log_holds_no_secret() -> None:
    secret = "ghp_" + "a1B2" * 9
    try:
        raise PermissionError(13, f"no: {secret} ACME-12")
    except PermissionError:
        record = logging.LogRecord("vaultd", logging.ERROR, __file__, 1, "a fault: %s", (secret,), sys.exc_info())
    text = CleanLines(Rules.compile(["ACME-\\d+"])).format(record)
    assert secret not in text and "ACME" not in text
    assert "ERROR a fault: [REDACTED]" in text and "PermissionError: [Errno 13] no: [REDACTED] [REDACTED]" in text


def test_the_log_holds_nothing_that_was_said() -> None:
    try:
        int("the words of a prompt")
    except ValueError:
        raised = sys.exc_info()
    lines = CleanLines(Rules())
    ours = lines.format(logging.LogRecord("vaultd", logging.ERROR, __file__, 7, "a fault in a step", None, raised))
    theirs = lines.format(
        logging.LogRecord("mcp.server", logging.WARNING, __file__, 7, "bad: %s", ("the words of a prompt",), raised)
    )
    assert "prompt" not in ours + theirs
    assert "a fault in a step" in ours and "ValueError" in ours and "test_writers.py" in ours
    assert "mcp.server (test_writers, line 7)" in theirs


ONLY_FROM = {
    "swap": {"store/vault.py", "store/rescue.py"},
    "retired": {"store/swap.py", "store/rescue.py"},
    "rescue": {"store/vault.py"},
    "builds": {"store/index.py"},
    "vectors": {"engine/embedding.py"},
    "sums": {"store/index.py"},
    "gitsetup": {"store/git.py"},
    "gitindex": {"store/gitcommit.py", "store/gitlocks.py", "store/gittree.py"},
}
"""Store modules that take bytes or plain text, and who may call them."""


@pytest.mark.parametrize("name", ONLY_FROM)
def test_what_takes_bare_bytes_is_called_by_its_store_alone(name: str) -> None:
    users = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            names = [a.name for a in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            if module == f"vaultd.store.{name}" or (module == "vaultd.store" and name in names):
                users.add(path.relative_to(PACKAGE).as_posix())
            assert f"vaultd.store.{name}" not in names
    assert users == ONLY_FROM[name]


# Net 2: every parameter that can carry plain text

PATH = "a path in the vault, made of slugs, sids and agent ids, and checked"
NAME = "the name of an event file, which has the form of core.ids.KEY"
AGENT = "an agent's id, out of the agents' tables"
PLACE = "a folder of the person's: the outbox mirrors it"
DERIVED = "what the page says: the index holds nothing that is not in the vault"

PLAIN: Mapping[str, Mapping[str, str]] = {
    "vault": {
        **dict.fromkeys(["rel", "rel_from", "rel_to", "page.path"], PATH),
        "Vault.scan(only)": "reads",
        "vault_id": "hex digits, checked",
        "page.data": "the page as it was read",
        "values{}": "frontmatter keys, which are ours",
    },
    "watch": {"path": "where something happened; kept in memory, looked at"},
    "inbox": {
        **dict.fromkeys(["key", "keys"], NAME),
        "name.agent": AGENT,
        "SessionName.parse(name)": "reads a name that is there",
    },
    "outbox": {
        **dict.fromkeys(["checkout", "subdir", "but", "keep"], PLACE),
        **dict.fromkeys(["offer.claim.open_path", "offer.claim.accepted_path"], "a handoff's path, for the hook"),
        "offer.claim.owner": "pid, start time and boot id of a client that lives",
        "offer.texts{}": "names of shapes, out of the agents' tables",
        "lines": "words out of the agents' tables",
        "lines{}": "agent ids and event names, out of the agents' tables",
        "command": "the path of our own program",
    },
    "index": {
        **dict.fromkeys(
            [
                f"{change}.{name}"
                for change in ("changes.doc", "puts.doc")
                for name in (
                    "path",
                    "title",
                    "body",
                    "kind",
                    "tier",
                    "project",
                    "tags",
                    "aliases",
                    "summary",
                    "updated",
                    "links",
                    "replaces",
                    "entities",
                )
            ],
            DERIVED,
        ),
        **dict.fromkeys(
            [f"Index.search(question.{name})" for name in ("text", "groups", "where", "where{}", "without")],
            "a query: reads",
        ),
        **dict.fromkeys(["Index.record(path)", "Index.linked(path)", "Index.search(near{})"], "a query: reads"),
        **dict.fromkeys(["changes.doc.meta", "puts.doc.meta", "changes.doc.meta{}", "puts.doc.meta{}"], DERIVED),
        "changes.path": PATH,
    },
    "gitcommit": {"paths": "paths of pages that are there"},
    "git": {
        **dict.fromkeys(["path", "paths"], "paths of pages that are there"),
        **dict.fromkeys(["args", "environ", "environ{}", "cwd", "stdin"], "what the modules of git say to git"),
    },
}
"""Parameters of the stores that take plain text all the same, by module, each with the reason why no harm is in it."""

DIGITS = {"Revision", "Key", "Sid"}
"""Texts of a fixed form: a hash, the name of an event file, ten hex digits."""

FIELDS_OF_FORM = {"changes.doc.revision", "puts.doc.revision"}


def plain(kind: object, seen: tuple[object, ...] = ()) -> Iterator[str]:
    """Where in a type plain text may be: "" for the type itself, `.name` for a field, `{}` for keys of a mapping."""
    if kind in (Clean, Observation, Prepared) or (isinstance(kind, type) and issubclass(kind, int | float | Path)):
        return
    if kind in (str, bytes, object, typing.Any):
        yield ""
    elif isinstance(kind, typing.NewType):
        if kind.__name__ not in DIGITS:
            yield ""
    elif isinstance(kind, type) and dataclasses.is_dataclass(kind):
        if kind not in seen:
            hints = typing.get_type_hints(kind)
            for field in dataclasses.fields(kind):
                yield from (f".{field.name}{rest}" for rest in plain(hints[field.name], (*seen, kind)))
    else:
        parts = typing.get_args(kind)
        origin = typing.get_origin(kind)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            yield from (f"{{}}{rest}" for rest in plain(parts[0], seen))
            parts = parts[1:]
        for part in parts:
            yield from plain(part, seen)


def public(module: types.ModuleType) -> Iterator[tuple[str, Callable[..., object]]]:
    """The public functions and methods that a module defines."""
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        members = vars(value).items() if inspect.isclass(value) else [("", value)]
        for member, raw in members:
            function = inspect.unwrap(raw.__func__ if isinstance(raw, staticmethod | classmethod) else raw)
            if inspect.isfunction(function) and not member.startswith("_"):
                yield f"{name}.{member}".rstrip("."), function


def carried(name: str) -> set[tuple[str, str]]:
    """The parameters of a store module that can carry plain text: the function's name, and where in the parameter."""
    module = importlib.import_module(f"vaultd.store.{name}")
    return {
        (function, f"{parameter}{rest}")
        for function, value in public(module)
        for parameter, kind in typing.get_type_hints(value, {**vars(module), "Clean": Clean}).items()
        if parameter != "return"
        for rest in plain(kind)
        if f"{parameter}{rest}" not in FIELDS_OF_FORM
    }


@pytest.mark.parametrize("name", PLAIN)
def test_every_parameter_that_takes_plain_text_is_known(name: str) -> None:
    found = {where if where in PLAIN[name] else f"{function}({where})" for function, where in carried(name)}
    assert found == PLAIN[name].keys()


def test_every_store_module_that_writes_is_looked_at() -> None:
    writers = {
        w.partition(" ")[0].removeprefix("store/").removesuffix(".py") for w in WRITERS if w.startswith("store/")
    }
    assert writers <= PLAIN.keys() | ONLY_FROM.keys() | {"lock", "watch"}


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (str, [""]),
        (bytes | None, [""]),
        (Clean, []),
        (list[Clean], []),
        (Mapping[str, Clean], ["{}"]),
        (Mapping[str, list[str]], ["{}", ""]),
        (Clean | int | None, []),
        (dict[str, object], ["{}", ""]),
        (Observation, []),
        (Path, []),
    ],
)
def test_plain_text_is_seen_wherever_it_hides(kind: object, found: list[str]) -> None:
    assert list(plain(kind)) == found


# Net 3: a type checker

SNIPPET = """
from vaultd.agents import Agent, render
from vaultd.core.event import Event
from vaultd.core.observation import Observation
from vaultd.core.sanitize import Clean
from vaultd.engine.seen import Seen
from vaultd.store.fs import Revision
from vaultd.store.git import Repo
from vaultd.store.inbox import Inbox, SessionName
from vaultd.store.outbox import Claim, Offer, Outbox
from vaultd.store.vault import PageFile, Vault


def fine(
    vault: Vault, inbox: Inbox, outbox: Outbox, repo: Repo, page: PageFile, revision: Revision, name: SessionName,
    agent: Agent, known: Clean, observation: Observation, words: list[Clean], seen: Seen,
) -> None:
    vault.create("a.md", known)
    vault.rewrite("a.md", known, revision)
    vault.append("a.md", known, revision)
    vault.splice("a.md", {"title": known, "tags": words, "pinned": True, "salience": 0.5, "review": None}, revision)
    vault.revise(page, {"title": known}, body=known, addition=known)
    inbox.file(name, observation)
    inbox.pack(name, [observation])
    inbox.reject("1-a", known, known)
    outbox.offer("/w", "", Offer(Claim("/a", "/b", known), {"shape": render(agent, "shape", known)}))
    repo.commit(["a.md"], known)
    seen.note([observation])


def wrong(
    vault: Vault, inbox: Inbox, outbox: Outbox, repo: Repo, page: PageFile, revision: Revision, name: SessionName,
    agent: Agent, text: str, event: Event, known: Clean, seen: Seen,
) -> None:
    vault.create("a.md", text)  # refused: Argument 2 to "create" of "Vault" has incompatible type "str"
    vault.create("a.md", f"{known}")  # refused: Argument 2 to "create" of "Vault" has incompatible type "str"
    vault.rewrite("a.md", text, revision)  # refused: Argument 2 to "rewrite" of "Vault" has incompatible type "str"
    vault.append("a.md", known + "x", revision)  # refused: Argument 2 to "append" of "Vault" has incompatible
    vault.splice("a.md", {"title": text}, revision)  # refused: Dict entry 0 has incompatible type "str": "str"
    vault.splice("a.md", {"tags": [text]}, revision)  # refused: List item 0 has incompatible type "str"
    vault.revise(page, {"title": text})  # refused: Dict entry 0 has incompatible type "str": "str"
    vault.revise(page, {}, body=text)  # refused: Argument "body" to "revise" of "Vault" has incompatible type "str"
    vault.revise(page, {}, addition=text)  # refused: Argument "addition" to "revise" of "Vault" has incompatible
    inbox.file(name, event)  # refused: Argument 2 to "file" of "Inbox" has incompatible type "Event"
    inbox.pack(name, [event])  # refused: List item 0 has incompatible type "Event"; expected "Observation"
    inbox.reject("1-a", text, known)  # refused: Argument 2 to "reject" of "Inbox" has incompatible type "str"
    inbox.reject("1-a", known, text)  # refused: Argument 3 to "reject" of "Inbox" has incompatible type "str"
    Claim("/a", "/b", text)  # refused: Argument 3 to "Claim" has incompatible type "str"
    render(agent, "shape", text)  # refused: Argument 3 to "render" has incompatible type "str"
    Offer(Claim("/a", "/b", known), {"shape": b"text"})  # refused: Dict entry 0 has incompatible type "str": "bytes"
    seen.note([event])  # refused: List item 0 has incompatible type "Event"; expected "Observation"
    repo.commit(["a.md"], text)  # refused: Argument 2 to "commit" of "Repo" has incompatible type "str"
"""


def test_a_type_checker_refuses_plain_text_in_every_store(tmp_path: Path) -> None:
    snippet = tmp_path / "snippet.py"
    snippet.write_text(SNIPPET, "utf-8")
    cache = ROOT / ".mypy_cache"  # the package is in it already when the types were checked before
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            f"--config-file={ROOT / 'pyproject.toml'}",
            f"--cache-dir={cache}",
            str(snippet),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    said = dict(re.findall(r"snippet\.py:(\d+): error: (.*)", run.stdout))
    expected = {
        str(number): text.partition("# refused: ")[2]
        for number, text in enumerate(SNIPPET.splitlines(), 1)
        if "# refused: " in text
    }
    assert run.returncode == 1 and said.keys() == expected.keys(), run.stdout + run.stderr
    for number, words in expected.items():
        assert words in said[number]


CLEAN = {
    "vault": {
        "create(text)",
        "rewrite(text)",
        "append(text)",
        "splice(values)",
        "revise(values)",
        "revise(body)",
        "revise(addition)",
    },
    "inbox": {"file(observation)", "pack(fresh)", "reject(data)", "reject(reason)"},
    "outbox": {"offer(offer)"},
    "git": {"commit(message)"},
    "gitcommit": {"commit(message)"},
}
"""Every parameter through which text enters a store; each is in the snippet."""


def sanitised(kind: object) -> bool:
    """Whether a type holds what the sanitiser made."""
    if kind in (Clean, Observation, Prepared):
        return True
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return any(sanitised(hint) for hint in typing.get_type_hints(kind).values())
    return any(sanitised(part) for part in typing.get_args(kind))


@pytest.mark.parametrize("name", PLAIN)
def test_every_parameter_for_clean_text_is_tried(name: str) -> None:
    module = importlib.import_module(f"vaultd.store.{name}")
    found = {
        f"{function.rpartition('.')[2]}({parameter})"
        for function, value in public(module)
        for parameter, kind in typing.get_type_hints(value, {**vars(module), "Clean": Clean}).items()
        if parameter != "return" and sanitised(kind)
    }
    assert found == CLEAN.get(name, set())
    for entry in found:
        assert f".{entry.partition('(')[0]}(" in SNIPPET
