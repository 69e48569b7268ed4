"""Environment variables in the place of keys: every key has one, and nothing else is taken."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.config.environment import Environment
from olr_pg.config.overrides import OverrideError, override, variable_of
from olr_pg.config.reading import ConfigError, json_schema, load_config

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SOURCE = {"kind": "offline", "dictionary": "d.json", "logs": "archive"}


def keys(schema: Any, whole: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every key below a schema that is of an object, and its schema; of lists the first place."""
    if "$ref" in schema:
        schema = whole["$defs"][schema["$ref"].rpartition("/")[2]]
    for word in ("anyOf", "oneOf", "allOf"):
        for one in schema.get(word, ()):
            yield from keys(one, whole, before)
    for name, below in schema.get("properties", {}).items():
        yield f"{before}{name}", below
        yield from keys(below, whole, f"{before}{name}.")
    if "items" in schema and isinstance(schema["items"], dict):
        yield from keys(schema["items"], whole, f"{before}0.")


SCHEMA = json_schema()
ALL_KEYS = sorted({key for key, _ in keys(SCHEMA, SCHEMA) if "." in key})
"""Those of a section."""


def test_every_key_has_a_variable_of_its_own() -> None:
    assert len(ALL_KEYS) > 150
    assert len({variable_of(key) for key in ALL_KEYS}) == len(ALL_KEYS)


@pytest.mark.parametrize("key", ALL_KEYS)
def test_the_variable_of_a_key_sets_it(key: str) -> None:
    parts = key.split(".")
    data: Any = {}
    place = data
    for part, following in itertools.pairwise(parts):  # the list that a place is in is there
        at = int(part) if part.isdigit() else part
        place[at] = [{}] if following.isdigit() else {}
        place = place[at]
    found = override(data, {variable_of(key): "[]"}, SCHEMA)
    for part in parts:
        found = found[int(part) if part.isdigit() else part]
    assert found in ([], "[]")


@pytest.mark.parametrize(
    ("variable", "text", "value"),
    [
        ("CONTEXT__MEMORY__MAX_MB", "1024", 1024),
        ("CONTEXT__MAX_SPILL_MB", "null", None),
        ("APPLY__CREATE_TABLES", "true", True),
        ("APPLY__CREATE_TABLES", "yes", "yes"),  # the model refuses it
        ("SOURCE__PASSWORD", "123", "123"),
        ("SOURCE__PASSWORD", "null", "null"),
        ("SOURCE__PASSWORD", '{"file": "p"}', {"file": "p"}),
        ("SOURCE__PASSWORD", "{not an object", "{not an object"),
        ("SOURCE__LOGS", "archive", "archive"),
        ("SOURCE__LOGS", '["a", "b"]', ["a", "b"]),
        ("SPARK__CONF", '{"spark.executor.memory": "2g"}', {"spark.executor.memory": "2g"}),
        ("TARGET__BYTE_ORDER", "big", "big"),
    ],
)
def test_texts_are_taken_as_they_are_and_all_else_as_json(
    variable: str, text: str, value: object
) -> None:
    found: Any = override({}, {f"OLR_PG_{variable}": text}, SCHEMA)
    for part in variable.lower().replace("_", "-").split("--"):
        found = found[part]
    assert found == value
    assert type(found) is type(value)


def test_the_environment_wins_over_the_file_which_stays_as_it_was() -> None:
    file = {"context": {"memory": {"max-mb": 16}, "data": "d"}, "target": [{"name": "a"}]}
    before = json.dumps(file)
    environ = {"OLR_PG_CONTEXT__MEMORY__MAX_MB": "32", "OLR_PG_TARGET__0__NAME": "b", "OTHER": "x"}
    changed = override(file, environ, SCHEMA)
    assert changed == {
        "context": {"memory": {"max-mb": 32}, "data": "d"},
        "target": [{"name": "b"}],
    }
    assert json.dumps(file) == before


def test_an_object_is_set_before_what_is_within_it() -> None:
    environ = {"OLR_PG_CONTEXT__MEMORY": '{"max-mb": 20}', "OLR_PG_CONTEXT__MEMORY__MIN_MB": "1"}
    changed = override({}, environ, SCHEMA)
    assert changed == {"context": {"memory": {"max-mb": 20, "min-mb": 1}}}


@pytest.mark.parametrize(
    "variable", ["OLR_PG_APPLY__TABLE_LIST", "OLR_PG___X", "OLR_PG_Context__Data"]
)
def test_a_variable_of_no_key_is_an_error(variable: str) -> None:
    with pytest.raises(
        OverrideError, match=f"{variable}: expected the name of a configuration key"
    ):
        override({}, {variable: "secret"}, SCHEMA)


@pytest.mark.parametrize("data", [[], "text", {"target": []}, {"target": "text"}])
def test_a_file_without_a_place_for_it_is_an_error(data: object) -> None:
    with pytest.raises(OverrideError, match="has no entry to which"):
        override(data, {"OLR_PG_TARGET__0__NAME": "secret"}, SCHEMA)


def test_variables_without_two_underscores_and_empty_ones_do_not_count() -> None:
    environ = {"OLR_PG_CONFIG": "f", "OLR_PG_CONTEXT__DATA": ""}
    assert override({}, environ, SCHEMA) == {}


def test_a_configuration_is_read_with_them(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"source": SOURCE}))
    environ = {"OLR_PG_TARGET__ADDRESS": "127.0.0.1:9799", "OLR_PG_SOURCE__LOGS": '["one","two"]'}
    config = load_config(path, environ)
    assert config.targets[0].port.address.port == 9799
    assert [one.name for one in map(type(tmp_path), config.source.logs)] == ["one", "two"]  # type: ignore[union-attr]


def test_a_wrong_value_is_told_with_its_key(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"source": SOURCE}))
    with pytest.raises(ConfigError, match=r"context\.memory\.max-mb"):
        load_config(path, {"OLR_PG_CONTEXT__MEMORY__MAX_MB": "many"})
    with pytest.raises(
        ConfigError, match="OLR_PG_NO__KEY: expected the name of a configuration key"
    ) as caught:
        load_config(path, {"OLR_PG_NO__KEY": "hunter2"})
    assert "hunter2" not in str(caught.value)


def test_children_do_not_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLR_PG_CONTEXT__DATA", "elsewhere")
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"source": SOURCE}))
    environment = Environment()
    load_config(path, environment)
    assert environment.withheld() == {"OLR_PG_CONTEXT__DATA": "elsewhere"}


def test_a_toml_file_has_the_same_keys(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(
        '[source]\nkind = "offline"\ndictionary = "d.json"\nlogs = ["archive"] # where\n'
        "[context.memory]\nmax-mb = 64\n"
    )
    as_json = tmp_path / "c.json"
    as_json.write_text(json.dumps({"source": SOURCE, "context": {"memory": {"max-mb": 64}}}))
    assert load_config(path, {}).context == load_config(as_json, {}).context
    assert load_config(path, {}).source == load_config(as_json, {}).source


def test_what_is_no_toml_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[source\n")
    with pytest.raises(ConfigError, match=r"expected TOML: .*line 1") as caught:
        load_config(path, {})
    assert caught.value.exit_code == 2
