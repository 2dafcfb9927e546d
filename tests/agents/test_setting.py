"""The entry that makes an agent use files of ours: in and out again, and what a person wrote stays."""

from __future__ import annotations

import json

import pytest

from tests.agents.recorded import an
from vaultd.agents.edits import EditError, read
from vaultd.agents.model import Setting
from vaultd.agents.setting import has_setting, with_setting, without_setting

VALUE = {"enabled": True, "hooks": {"allowConversationAccess": True}}
TEXTS = [
    '{"gateway":{"port":1}}',
    '{\n  // mine\n  "gateway": { "port": 1, },\n}\n',
    '{\n\t"plugins": {\n\t\t"entries": {\n\t\t\t"other": { "enabled": false } // not now\n\t\t}\n\t}\n}\n',
    '{"plugins":{}}',
    '{"plugins":{"entries":{},"allow":["other"]}}\n',
    '{\r\n  "plugins": {\r\n    "allow": [\r\n      "other",\r\n    ],\r\n  },\r\n}\r\n',
    '{"plugins":{"allow":[]}}',
    '\ufeff{"a":1}\n',
]


def setting() -> Setting:
    """The one that there is."""
    hooks = an("openclaw").hooks
    assert hooks is not None and hooks.setting is not None
    return hooks.setting


@pytest.mark.parametrize("text", TEXTS)
def test_it_goes_in_and_out_again_byte_for_byte(text: str) -> None:
    assert not has_setting(setting(), text)
    wired = with_setting(setting(), text)
    assert has_setting(setting(), wired)
    assert with_setting(setting(), wired) == wired
    plugins = read("jsonc", wired)["plugins"]
    assert plugins["entries"]["vaultd"] == VALUE
    assert ("vaultd" in plugins["allow"]) if '"allow"' in text else ("allow" not in plugins)
    rest = iter(wired)
    assert all(char in rest for char in text), "the text is still there, in order"
    left = without_setting(setting(), wired, text)
    assert left == text or (left is None and not text.strip("{} \r\n\ufeff"))


def test_of_no_file_nothing_is_left() -> None:
    wired = with_setting(setting(), "")
    assert json.loads(wired) == {"plugins": {"entries": {"vaultd": VALUE}}}
    assert without_setting(setting(), wired) is None


def test_what_a_person_says_of_us_stays_and_goes_with_us() -> None:
    text = '{"plugins": {"entries": {"vaultd": {"enabled": false}}, "allow": ["vaultd", "other"]}}'
    assert with_setting(setting(), text) == text
    left = without_setting(setting(), text, text.replace('"vaultd", ', ""))
    assert left is not None and json.loads(left) == {"plugins": {"entries": {}, "allow": ["other"]}}


def test_a_list_that_allows_another_kind_of_thing_is_left() -> None:
    text = '{"plugins": {"allow": "all"}}'
    assert read("jsonc", with_setting(setting(), text))["plugins"]["allow"] == "all"


@pytest.mark.parametrize("text", ["{unquoted: 1}", "[]", '{"plugins": 3}', '{"plugins": {"entries": []}}'])
def test_what_cannot_be_edited_safely_is_refused(text: str) -> None:
    with pytest.raises(EditError):
        with_setting(setting(), text)
