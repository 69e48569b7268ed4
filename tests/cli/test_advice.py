"""What an error advises can be copied: commands and options exist, the configuration is there."""

from __future__ import annotations

import ast
import re
import shlex
import sys
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from typer.main import get_command

import olr_pg
from olr_pg.cli.advice import config_named, target_named, with_config
from olr_pg.cli.main import app
from olr_pg.cli.migration.migrate import _cutover_command, _show
from olr_pg.config.model import Config
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.steps_done import DONE, StepState
from olr_pg.migration.migration_steps import STEPS
from olr_pg.observability.advised_commands import commands_of_error, complete_commands

if TYPE_CHECKING:
    from collections.abc import Iterator

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


@pytest.mark.parametrize(
    ("words", "target"),
    [
        (["errors", "list", "--config", "x"], None),
        (["errors", "list", "--target", "eu", "-c", "x"], "eu"),
        (["verify", "--target=eu"], "eu"),
    ],
)
def test_the_target_of_a_command_line(words: list[str], target: str | None) -> None:
    assert target_named(words) == target


def called(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["olr-pg", *words])


def test_commands_get_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    error = OlrPgError(Code.TABLES_STOPPED, "x", table="S.T")
    called(monkeypatch, "run")
    assert with_config(error) is error
    called(monkeypatch, "run", "--config", "my file.json")
    completed = with_config(error)
    assert (completed.code, completed.detail, completed.where) == (error.code, "x", error.where)
    assert "`olr-pg errors retry --config 'my file.json'`" in completed.action
    without = OlrPgError(Code.INTERNAL, "x", action="see `olr-pg dump` and `olr-pg bench`")
    assert with_config(without) is without
    called(monkeypatch, "errors", "retry", "-c", "f", "--target", "eu")
    assert "`olr-pg errors retry --config f --target eu`" in with_config(error).action
    called(monkeypatch, "init", "--target", "host=pg1")
    assert with_config(error) is error


LIVE = {"user": "u", "password": "p", "server": "h:1521/S"}
OFFLINE = {"kind": "offline", "dictionary": "d.json", "logs": "logs"}


@pytest.mark.parametrize(
    ("source", "cutover"),
    [
        (LIVE, "Run `olr-pg migrate --cutover --config /etc/x.json`."),
        (OFFLINE, "Run `olr-pg cutover --tables DIR --dictionary FILE --config /etc/x.json`, with"),
    ],
)
def test_what_migrate_says_can_be_copied(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    source: dict[str, str],
    cutover: str,
) -> None:
    called(monkeypatch, "migrate", "--config", "/etc/x.json")
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    warned = {"doctor": {"warnings": ["x"]}}
    done = [StepState(s.name, DONE, moment, moment, warned.get(s.name, {})) for s in STEPS]
    config = Config.model_validate({"source": source})
    _show(done, _cutover_command(config), as_json=False)
    text = capsys.readouterr().out
    assert f"Ready to cut over. {cutover}" in text
    assert "action required: 1 warning of `olr-pg doctor --load --config /etc/x.json`" in text


def advised_in(path: Path) -> Iterator[str]:
    """The commands in the texts of a module, its documentation apart."""
    source = path.read_text("utf-8")
    if "`olr-pg" not in source:
        return  # to parse all modules would be a third of what collecting all tests takes
    nodes = list(ast.walk(ast.parse(source)))
    documented = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    inner: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            inner |= {id(part) for part in node.values}
            parts = [str(p.value) if isinstance(p, ast.Constant) else "7" for p in node.values]
            yield from _COMMAND.findall("".join(parts))
        elif isinstance(node, ast.Constant) and id(node) not in documented | inner:
            yield from _COMMAND.findall(str(node.value))


ADVISED: Final = sorted(
    {text for path in Path(olr_pg.__file__).parent.rglob("*.py") for text in advised_in(path)}
)


tree = cache(get_command)  # to build it takes a sixteenth of a second


def parse(text: str) -> None:
    """Fail where a command is none."""
    _, *words = shlex.split(text)
    command: Any = tree(app)
    context = command.make_context("olr-pg", ["version"], resilient_parsing=True)
    while words and hasattr(command, "commands"):
        name = words.pop(0)
        assert name in command.commands, text
        command = command.commands[name]
    parser = command.make_parser(type(context)(command))
    options, rest, _ = parser.parse_args(args=[*words])
    assert not rest, text
    assert all(value is None or value for value in options.values()), text


def test_there_are_commands_in_texts() -> None:
    assert len(ADVISED) > 30
    assert {"olr-pg migrate --plan", "olr-pg errors list"} <= set(ADVISED)


@pytest.mark.parametrize("text", ADVISED)
def test_what_is_advised_is_a_command_and_stays_one_when_it_is_complete(text: str) -> None:
    parse(text)
    parse(complete_commands(f"`{text}`", "my file.json", "eu").strip("`"))
    of_error = commands_of_error(f"`{text}`", 'SHOP."Or ders"', 17)
    parse(complete_commands(of_error, "x.json", None).strip("`"))
