"""What makes an agent use files of ours: an entry of our name in its settings. Pure, text to text."""

from __future__ import annotations

from typing import Any

from vaultd.agents import edits
from vaultd.agents.model import Setting

__all__ = ["has_setting", "with_setting", "without_setting"]


def has_setting(setting: Setting, text: str) -> bool:
    """Whether our name is there. EditError when the text cannot be read, as everywhere here."""
    return _entry(setting, text) is not None or setting.path[-1] in (_allowed(setting, text) or ())


def with_setting(setting: Setting, text: str) -> str:
    """The text with our entry, and our name in the list of what is allowed where there is one; as it was when it has
    both. An entry that is there stays as a person has it. "" stands for no file.
    """
    if _entry(setting, text) is None:
        text = edits.put(setting.format, text, setting.path, dict(setting.value))
    allowed = _allowed(setting, text)
    if allowed is not None and setting.path[-1] not in allowed:
        text = edits.append(setting.format, text, setting.allow, setting.path[-1])
    return text


def without_setting(setting: Setting, text: str, before: str = "") -> str | None:
    """The text without either, and without maps that are empty then, but for what was in `before`; None when nothing is
    left in it.
    """
    if not has_setting(setting, text):
        return text
    there = edits.read_or_none(setting.format, before)
    if _entry(setting, text) is not None:
        text = edits.drop(setting.format, text, setting.path, there)
    for place in reversed([i for i, name in enumerate(_allowed(setting, text) or ()) if name == setting.path[-1]]):
        text = edits.drop(setting.format, text, (*setting.allow, place), there)
    return None if there is None and edits.read(setting.format, text) == {} and text.strip("{} \t\r\n") == "" else text


def _entry(setting: Setting, text: str) -> Any:
    return edits.at(edits.read(setting.format, text), setting.path)


def _allowed(setting: Setting, text: str) -> list[Any] | None:
    """The list of what is allowed; None where there is none."""
    found = edits.at(edits.read(setting.format, text), setting.allow) if setting.allow else None
    return found if isinstance(found, list) else None
