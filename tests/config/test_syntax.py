"""A configuration file that cannot be parsed: the error says which file, where, and what to do."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from olr_pg.config.reading import ConfigError, load_config
from olr_pg.config.syntax import BYTES_MAX, SyntaxProblem, parse
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from pathlib import Path

GOOD = b'{\n\t"source": {\n\t\t"kind": "offline",\n\t\t"dictionary": "d", "logs": "l" } }\n'

BROKEN: dict[str, tuple[str, bytes, str]] = {
    "a comma is missing": ("c.json", GOOD.replace(b'line",', b'line"'), "line 4, column 3"),
    "a brace is missing": ("c.json", GOOD.replace(b"}", b""), "line 5"),
    "a quote is missing": ("c.json", GOOD.replace(b'"d"', b'"d'), "line 4"),
    "a colon is missing": ("c.json", GOOD.replace(b":", b"", 1), "line 2, column 11"),
    "a word without quotes": ("c.json5", GOOD.replace(b'"d"', b"d.json"), "line 4"),
    "text behind the end": ("c.json", GOOD + b"x", "line 5"),
    "duplicate key": ("c.json", GOOD.replace(b'"logs"', b'"kind"'), "already in line 3"),
    "duplicate keys of JSON5": ("c.json5", b"{a: 1,\n'a': 2}", 'line 2, column 1: the key "a"'),
    "a comment without an end": ("c.json", GOOD + b"/* x", "line 5"),
    "a backslash": ("c.json", GOOD.replace(b'"d"', b'"C:\\d"'), "line 4, column 20"),
    "two commas": ("c.json", GOOD.replace(b",", b",,", 1), "line 3"),
    "YAML": ("c.yaml", b"source:\n  kind: offline\n", "YAML is not supported"),
    "YAML under another name": ("olr-pg.conf", b"source:\n  kind: offline\n", "line 1"),
    "INI": ("c.ini", b"[source]\nkind = offline\n", "line 1"),
    "XML": ("c.xml", b"<source/>", "line 1"),
    "TOML under another name": ("c.json", b'[source]\nkind = "offline"\n', "line 1"),
    "JSON named TOML": ("c.toml", GOOD, "line 1"),
    "TOML: no value": ("c.toml", b"[source]\nkind =\nlogs = 1\n", "line 2"),
    "TOML: an open text": ("c.toml", b'[source]\nkind = "offline\n', "line 2"),
    "TOML: an open table": ("c.toml", b"a = 1\n[source", "line 2"),
    "TOML: an open list": ("c.toml", b"a = 1\nlogs = [", "line 2, the end of the file"),
    "TOML: duplicate key": ("c.toml", b"[source]\nkind = 1\nkind = 2\nx = 3\n", "line 3"),
    "TOML: duplicate table": ("c.toml", b"[source]\n[target]\n[source]\n", "line 3"),
    "TOML: tabs and a bare word": ("c.toml", b"[source]\n\tkind = offline\n", "line 2"),
    "empty": ("c.json", b"", "the file is empty"),
    "only blanks": ("c.json", b" \n\t\n", "the file is empty"),
    "only a byte order mark": ("c.json", b"\xef\xbb\xbf", "the file is empty"),
    "only a comment": ("c.json", b"// later\n", "line"),
    "a list": ("c.json", b"[]", "found a list, expected an object"),
    "a text": ("c.json", b'"source"', "found a string, expected an object"),
    "null": ("c.json", b"null", "expected an object"),
    "nested too deeply": ("c.json", b'{"a":' * 50_000, "nested too deeply"),
    "zero bytes": ("c.json", bytes(512), "line 1"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_configuration_says_where_and_what_to_do(name: str, tmp_path: Path) -> None:
    file, content, place = BROKEN[name]
    path = tmp_path / file
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_config(path, {})
    error = caught.value
    assert error.code == Code.CONFIG_INVALID
    assert place in error.detail
    assert error.where == {"file": str(path)}
    assert "above" not in error.action  # no key is named
    assert f"olr-pg config check --config {path}`" in error.action


UNREADABLE: dict[str, tuple[bytes, str]] = {
    "UTF-16": (b"\xff\xfe" + GOOD.decode().encode("utf-16-le"), "it is UTF-16 text"),
    "UTF-16, big endian": (b"\xfe\xff" + GOOD.decode().encode("utf-16-be"), "it is UTF-16 text"),
    "Latin-1": (GOOD.replace(b'"d"', b'"d\xe9"'), "it is not UTF-8 text"),
    "a program": (b"\x7fELF\x02\x01\x01" + bytes(range(256)), "it is not UTF-8 text"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_bytes_that_are_no_utf_8_say_how_to_save_them(name: str, tmp_path: Path) -> None:
    content, reason = UNREADABLE[name]
    path = tmp_path / "c.json"
    path.write_bytes(content)
    with pytest.raises(OlrPgError, match=reason) as caught:
        load_config(path, {})
    assert caught.value.code == Code.CONFIG_UNREADABLE
    assert caught.value.where["line"] == (4 if name == "Latin-1" else 1 + (name == "a program"))
    assert caught.value.action == "save the file as UTF-8"


def test_places_that_are_no_file_of_this_size_say_so(tmp_path: Path) -> None:
    huge = tmp_path / "huge.json"
    huge.touch()
    os.truncate(huge, BYTES_MAX + 1)
    places: dict[Path | str, str] = {
        tmp_path: "Is a directory",
        tmp_path / "missing": "No such file",
        huge: "larger than 16 MiB",
        "/dev/zero": "larger than 16 MiB",
    }
    for path, reason in places.items():
        with pytest.raises(OlrPgError, match=reason) as caught:
            load_config(path, {})
        assert caught.value.code == Code.CONFIG_UNREADABLE
        assert caught.value.where == {"file": str(path)}
        assert caught.value.action.startswith("check the path given with --config or --file")


@pytest.mark.parametrize("content", [GOOD, b"\xef\xbb\xbf" + GOOD, GOOD.replace(b"\n", b"\r\n")])
def test_tabs_a_byte_order_mark_and_line_ends_of_windows_are_accepted(
    content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(content)
    assert load_config(path, {}).source.kind == "offline"


def test_equal_keys_of_different_objects_are_accepted() -> None:
    text = '{a: {x: "a", y: ["b", {x: 1}, "x"]}, b: {x: "x: 1, x: 2"}, /* a: */ c: {"a": 1}}'
    assert parse(text, "c.json5")["b"] == {"x": "x: 1, x: 2"}
    with pytest.raises(SyntaxProblem, match=re.escape('line 1, column 9: the key "x"')):
        parse("{'x': 1,\"x\":2, ", "c.json5")
