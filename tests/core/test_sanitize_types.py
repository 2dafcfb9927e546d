"""That untrusted text cannot reach a store is a matter of types: mypy refuses it, the sanitiser alone makes them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MODULES = sorted((ROOT / "vaultd").rglob("*.py"))

SNIPPET = """
from vaultd.core.event import Event
from vaultd.core.observation import Observation, observation_json
from vaultd.core.sanitize import Clean, clean, line, observe, redact


def store(text: Clean) -> None: ...
def keep(observation: Observation) -> bytes: return observation_json(observation)


def fine(text: str, event: Event, known: Clean) -> None:
    store(known)
    store(redact(text))
    store(clean(text, 100))
    store(line(text, 100))
    store(redact(known + text))
    keep(observe(event))


def wrong(text: str, event: Event, known: Clean) -> None:
    store(text)  # refused: "store" has incompatible type "str"; expected "Clean"
    store(f"{known}")  # refused: "store" has incompatible type "str"; expected "Clean"
    store(known + known)  # refused: "store" has incompatible type "str"; expected "Clean"
    store(known.upper())  # refused: "store" has incompatible type "str"; expected "Clean"
    store("".join([known]))  # refused: "store" has incompatible type "str"; expected "Clean"
    store(event.text)  # refused: "store" has incompatible type "str"; expected "Clean"
    keep(event)  # refused: "keep" has incompatible type "Event"; expected "Observation"
    observation_json(event)  # refused: "observation_json" has incompatible type "Event"; expected "Observation"
    keep(text)  # refused: "keep" has incompatible type "str"; expected "Observation"
"""


def test_a_type_checker_refuses_untrusted_text(tmp_path: Path) -> None:
    snippet = tmp_path / "snippet.py"
    snippet.write_text(SNIPPET, "utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path / 'cache'}", str(snippet)],
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
    assert len(expected) == 9
    assert run.returncode == 1 and said.keys() == expected.keys(), run.stdout + run.stderr
    for number, words in expected.items():
        assert words in said[number]


def makers(tree: ast.Module, wanted: str) -> Iterator[str]:
    """The functions in which a type is made, by a call, a cast, a subclass or a detour over `__new__` or `replace`."""

    def walk(node: ast.AST, inside: str) -> Iterator[str]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = node.name
        if isinstance(node, ast.ClassDef) and any(named(base) == wanted for base in node.bases):
            yield f"class {node.name}"
        if isinstance(node, ast.Call):
            called, given = named(node.func), [named(argument) for argument in node.args]
            detour = called in {"cast", "__new__", "partial", "map", "replace", "NewType"} and wanted in given
            changed = (
                wanted == "Observation" and any(word.arg == "event" for word in node.keywords) and called == "replace"
            )
            if called == wanted or detour or changed:
                yield inside
        for child in ast.iter_child_nodes(node):
            yield from walk(child, inside)

    yield from walk(tree, "module")


def named(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def made(wanted: str) -> set[tuple[str, str]]:
    found = set()
    for path in MODULES:
        tree = ast.parse(path.read_text("utf-8"))
        found |= {(path.relative_to(ROOT / "vaultd").as_posix(), where) for where in makers(tree, wanted)}
    return found


def test_only_the_sanitiser_makes_clean_text() -> None:
    assert made("Clean") == {("core/sanitize.py", "redact"), ("core/sanitize.py", "_settled")}


def test_only_two_functions_make_an_observation() -> None:
    assert made("Observation") == {("core/sanitize.py", "observe"), ("core/observation.py", "parse_observation")}


def test_neither_type_goes_by_another_name() -> None:
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                hidden = [
                    a for a in node.names if a.name in {"Clean", "Observation"} and a.asname not in {None, a.name}
                ]
                assert not hidden, path
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                assert named(node.value) not in {"Clean", "Observation"}, f"{path}:{node.lineno}"


@pytest.mark.parametrize(
    "code",
    [
        "def f(): return Clean('x')",
        "def f(): return sanitize.Clean('x')",
        "def f(): return cast(Clean, 'x')",
        "def f(): return typing.cast('Clean', 'x')",
        "def f(): return str.__new__(Clean, 'x')",
        "def f(): return map(Clean, x)",
        "class f(Clean): pass",
    ],
)
def test_every_way_round_is_seen(code: str) -> None:
    assert list(makers(ast.parse(code), "Clean")) in (["f"], ["class f"])
    assert list(makers(ast.parse("def f(a: Clean) -> Clean: return isinstance(a, Clean)"), "Clean")) == []
    assert list(makers(ast.parse("def f(o): return replace(o, event=e)"), "Observation")) == ["f"]
