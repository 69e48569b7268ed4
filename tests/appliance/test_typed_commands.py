"""Commands that a DBA types between and during runs; a slice of `typed_commands`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import typer.main

from olr_pg.cli.main import app
from tests.appliance.command_forms import FORMS, LEFT_OUT
from tests.appliance.typed_commands import judge, operated
from tests.proving.served import served_source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CONFIG = "--config"


def _options(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, set[str]]]:
    """Each command with the long names of its options."""
    below = getattr(command, "commands", None)
    if below is not None:
        for name, one in below.items():
            yield from _options(one, (*path, name))
        return
    named = {
        max(names, key=len)
        for one in command.params
        for names in (one.opts, one.secondary_opts)
        if names and one.param_type_name == "option"
    }
    yield " ".join(path), named - {_CONFIG, "--file"}


def _typed(forms: tuple[str, ...]) -> set[str]:
    text = " ".join(forms).replace("{--tables}", "--table").replace("{--table}", "--table")
    return {word for word in text.split() if re.match(r"--\w", word)}


def test_each_command_and_option_is_typed_or_left_out_for_a_reason() -> None:
    known = dict(_options(typer.main.get_command(app)))
    assert set(FORMS) | {one for one in LEFT_OUT if not re.search("--", one)} == set(known)
    assert not set(FORMS) & set(LEFT_OUT)
    left_out = {name.rpartition(" ")[2] for name in LEFT_OUT}
    for name, forms in FORMS.items():
        typed = _typed(forms)
        assert typed <= known[name], name
        for option in known[name] - typed:
            assert option in LEFT_OUT or f"{name} {option}" in LEFT_OUT, (name, option)
    assert {one for one in left_out if "--" in one} <= set().union(*known.values())


def test_a_sequence_of_commands_leaves_the_target_equal(
    tmp_path: Path, postgres_database: str
) -> None:
    with served_source(tmp_path / "source") as served:
        one = operated(served, postgres_database, 1)
        assert judge(one, 5) == [], [*one.done]
