"""What an error advises can be copied: commands and options exist, the configuration is there."""

from __future__ import annotations

import re
import shlex
from typing import Any, Final

import pytest
from typer.main import get_command

from olr_pg.cli.advice import config_named, with_config
from olr_pg.cli.main import app
from olr_pg.errors import CATALOGUE, Code, OlrPgError
from olr_pg.observability.advised_commands import complete_commands

_COMMAND: Final = re.compile(r"`(olr-pg [a-z][^`]*)`")


@pytest.mark.parametrize(
    ("words", "config"),
    [
        (["errors", "list"], None),
        (["errors", "list", "--config", "a b.json"], "a b.json"),
        (["run", "--file=x.json", "--once"], "x.json"),
        (["run", "-c", "x.json"], "x.json"),
        (["run", "-cx.json"], "x.json"),
        (["run", "--config"], None),
    ],
)
def test_the_configuration_of_a_command_line(words: list[str], config: str | None) -> None:
    assert config_named(words) == config


def test_commands_get_the_configuration() -> None:
    error = OlrPgError(Code.TABLES_STOPPED, "x", table="S.T")
    assert with_config(error, None) is error
    completed = with_config(error, "my file.json")
    assert (completed.code, completed.detail, completed.where) == (error.code, "x", error.where)
    assert "`olr-pg errors retry --config 'my file.json'`" in completed.action
    without = OlrPgError(Code.INTERNAL, "x", action="see `olr-pg dump` and `olr-pg bench`")
    assert with_config(without, "f") is without


def test_a_place_for_a_configuration_is_filled() -> None:
    error = OlrPgError(Code.INTERNAL, "x", action="start it with `olr-pg run --config FILE`; or")
    assert with_config(error, "f").action == "start it with `olr-pg run --config f`; or"


@pytest.mark.parametrize("code", CATALOGUE)
def test_commands_of_the_catalogue_are_commands(code: Code) -> None:
    for text in _COMMAND.findall(CATALOGUE[code].action):
        _, *words = shlex.split(text)
        command: Any = get_command(app)
        context = command.make_context("olr-pg", ["version"], resilient_parsing=True)
        while words and hasattr(command, "commands"):
            name = words.pop(0)
            assert name in command.commands, text
            command = command.commands[name]
        parser = command.make_parser(type(context)(command))
        options, rest, _ = parser.parse_args(args=[*words])
        assert not rest, text
        assert all(value is None or value for value in options.values()), text
        needed = [one.name for one in command.params if one.required]
        assert all(options.get(name) for name in needed), text


def test_the_configuration_is_added_where_a_command_takes_it() -> None:
    def below(command: Any, words: list[str]) -> None:
        for name, one in getattr(command, "commands", {}).items():
            below(one, [*words, name])
        if not hasattr(command, "commands"):
            takes = any("--config" in one.opts for one in command.params)
            text = f"`{' '.join(words)}`"
            assert ("--config x" in complete_commands(text, "x")) is takes, text

    below(get_command(app), ["olr-pg"])
