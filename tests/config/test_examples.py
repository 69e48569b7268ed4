"""The files in configs/ are valid and show every key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from olr_pg.config.fields import Section
from olr_pg.config.model import Config
from olr_pg.config.reading import load_config
from olr_pg.errors import Code, OlrPgError
from tools.reference import OF_OLR

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
EXAMPLES = sorted(path for path in CONFIGS.iterdir() if path.is_file())
ENVIRON = {"ORACLE_PASSWORD": "o", "PG_PASSWORD": "p", "METRICS_PASSWORD": "m"}


SERVE_ONLY = ("Replicator.json", "serve-only.json5")


def load(path: Path, folder: Path) -> Config:
    """The example with its secret files in `folder`."""
    (folder / "oracle_password").write_text("o\n")
    copy = folder / path.name
    copy.write_text(path.read_text().replace("/run/secrets/", f"{folder}/"))
    return load_config(copy, ENVIRON)


def test_there_is_one_of_each_kind() -> None:
    assert [path.name for path in EXAMPLES] == [
        "Replicator.json",
        "embedded.json5",
        "offline-to-postgres.json5",
        "oracle-to-postgres.json5",
        "serve-only.json5",
        "several-targets.json5",
    ]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_loads(path: Path, tmp_path: Path) -> None:
    config = load(path, tmp_path)
    assert (
        "oracle" in path.name
        or path.name in (*SERVE_ONLY, "several-targets.json5")
        or config.source.kind == ("offline")
    )
    assert all(part.apply is None for part in config.targets) == (path.name in SERVE_ONLY)
    assert (len(config.targets) > 1) == (path.name == "several-targets.json5")
    assert (config.apply is not None and config.apply.embedded) == (path.name == "embedded.json5")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_needs_no_secret_for_a_command_that_uses_none(
    path: Path, tmp_path: Path
) -> None:
    """`olr-pg status` reads the directory and the certificate of the status page."""
    whole = load(path, tmp_path)
    copy = tmp_path / path.name
    for secret in tmp_path.glob("*password*"):
        secret.unlink()
    config = load_config(copy, {}, secrets=False)
    assert config.context == whole.context
    assert config.status == whole.status
    assert [part.name for part in config.targets] == [part.name for part in whole.targets]
    if "${" in path.read_text():
        with pytest.raises(OlrPgError) as caught:
            load_config(copy, {})
        assert caught.value.code == Code.SECRET_UNRESOLVED


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_commented(path: Path) -> None:
    if path.suffix == ".json":
        json.loads(path.read_text())  # as OLR reads it: JSON as it is
    else:
        assert path.read_text().startswith("// ")


def test_the_file_of_olr_has_olr_s_own_keys_only() -> None:
    document = json.loads((CONFIGS / "Replicator.json").read_text())
    assert {".".join(place) for place in _places(document)} <= OF_OLR


def _places(section: dict[str, Any], *place: str) -> Iterator[tuple[str, ...]]:
    for key, value in section.items():
        yield (*place, key)
        if isinstance(value, dict):
            yield from _places(value, *place, key)


def keys(section: Section) -> set[str]:
    """The fields that the file gave, with those of the sections in it."""
    found = {f"{type(section).__name__}.{name}" for name in section.model_fields_set}
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, Section):
            found |= keys(value)
    return found


def all_keys(section: Section) -> set[str]:
    found = {f"{type(section).__name__}.{name}" for name in type(section).model_fields}
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, Section):
            found |= all_keys(value)
    return found


def test_the_oracle_example_shows_every_key_with_its_default(tmp_path: Path) -> None:
    config = load(CONFIGS / "oracle-to-postgres.json5", tmp_path)
    assert keys(config) == all_keys(config)
