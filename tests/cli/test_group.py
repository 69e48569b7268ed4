"""What a command ends with, as an error of the catalogue.

Help as it is read: on a terminal of 80 and 120 columns, of every command.

What an error advises can be copied: commands and options exist, the configuration is there.

The first signal ends a command in order, the second at once; and some have to end in time.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import signal
import sys
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import olr_pg
from olr_pg.cli.group import coded, config_named, report, target_named, with_config
from olr_pg.cli.main import app
from olr_pg.cli.migration.migrate import _cutover_command, _show
from olr_pg.config.model import Config
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.cutover_steps import DONE, StepState
from olr_pg.migration.migration_progress import STEPS
from olr_pg.observability.advised_commands import commands_of_error, complete_commands
from tests.cli.conftest import ENTRY

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from tests.cli.conftest import Start


def test_errors_of_the_catalogue_stay_and_others_are_defects() -> None:
    known = OlrPgError(Code.TABLE_UNKNOWN, "x")
    assert coded(known) is known
    defect = coded(ZeroDivisionError("division by zero"))
    assert (defect.code, defect.detail) == (
        Code.INTERNAL,
        "ZeroDivisionError: division by zero",
    )


def test_a_target_that_is_not_there_is_no_defect() -> None:
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect("host=127.0.0.1 port=1 dbname=none connect_timeout=2")
    told = coded(caught.value)
    assert told.code == Code.POSTGRES_UNREACHABLE
    assert told.detail.startswith("connection to server at ")
    assert told.detail.endswith("failed: Connection refused")


def test_a_defect_is_told_with_where_it_came_from(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        int("x")
    except ValueError as error:
        report(coded(error), as_json=True, defect=error)
        report(coded(error), as_json=False)
    first, *rest = capsys.readouterr().err.splitlines()
    record = json.loads(first)
    assert "ValueError" in record["what"]
    assert 'int("x")' in record["traceback"]
    assert not any('int("x")' in line for line in rest)


PYTHON: Final = re.compile(
    r"<\w[\w .\[\]|]*>|\b(?:list|tuple|dict|Optional)\[|\bNone\b|\bTrue\b|\bFalse\b|Path\b(?=\])"
)
"""What only somebody who knows Python would write."""


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield words
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, (*words, name))


ALL: Final = list(commands(get_command(app)))


def help_of(words: tuple[str, ...], columns: int) -> str:
    result = CliRunner().invoke(
        app, [*words, "--help"], prog_name="olr-pg", env={"COLUMNS": str(columns)}
    )
    assert result.exit_code == 0
    return result.output


@pytest.mark.parametrize("words", ALL, ids=lambda words: " ".join(words) or "olr-pg")
def test_help_of_every_command_is_readable(words: tuple[str, ...]) -> None:
    for columns in (80, 120):
        lines = help_of(words, columns).splitlines()
        text = " ".join(" ".join(line.strip("│ ") for line in lines).split())
        assert PYTHON.findall(text) == []
        assert "…" not in re.sub(r"s3://…", "", text)  # no name is cut
        assert max(map(len, lines)) <= columns
        options = [line for line in lines if re.match(r"│ (\*| )? *--", line)]
        assert options
        # What an option does has room: more than a third of the line.
        rooms = [
            len(line) - line.rindex("  ", 0, line.rstrip("│ ").rindex(" ")) for line in options
        ]
        assert max(rooms) > columns / 3


def test_ranges_and_contraries_are_among_the_words() -> None:
    text = " ".join(help_of(("simulate",), 200).split())
    assert "Number of redo threads, as in RAC; default: 1 (1 to 8)." in text
    assert "seconds between two log switches (at least 0.1)." in text
    assert "Byte order of the logs. Default: chosen by the seed. Opposite: --little-endian." in text
    assert "lobs always write truth.jsonl. Disable with --no-truth." in text
    assert "Usage: olr-pg decode [OPTIONS] LOG..." in help_of(("decode",), 80)
    assert "Usage: olr-pg dump [OPTIONS] [LOG...]" in help_of(("dump",), 80)


def test_the_contrary_of_a_switch_is_still_taken() -> None:
    words = ["simulate", "--no-truth", "--little-endian", "--workload", "none", "--seed", "1"]
    result = CliRunner().invoke(app, [*words, "--out", "/dev/null/x"])
    assert "No such option" not in result.output


def test_a_wrong_call_names_arguments_as_the_help_does() -> None:
    result = CliRunner().invoke(app, ["decode"], prog_name="olr-pg", env={"COLUMNS": "80"})
    assert result.exit_code == 2
    assert "Usage: olr-pg decode [OPTIONS] LOG..." in result.output
    assert "{" not in result.output


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
        return
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


@pytest.fixture(scope="module")
def advised() -> list[str]:
    """All of them. No parameter of a test: each of the tests' processes would parse the modules."""
    modules = Path(olr_pg.__file__).parent.rglob("*.py")
    return sorted({text for path in modules for text in advised_in(path)})


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
    assert "" not in options.values(), text


def test_there_are_commands_in_texts(advised: list[str]) -> None:
    assert len(advised) > 30
    assert {"olr-pg migrate --plan", "olr-pg errors list"} <= set(advised)


def test_what_is_advised_is_a_command_and_stays_one_when_it_is_complete(
    advised: list[str],
) -> None:
    for text in advised:
        parse(text)
        parse(complete_commands(f"`{text}`", "my file.json", "eu").strip("`"))
        of_error = commands_of_error(f"`{text}`", 'SHOP."Or ders"', 17)
        parse(complete_commands(of_error, "x.json", None).strip("`"))


SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]

# A command whose end hangs, whatever it was told.
HANGING = """
import os, sys, threading
from olr_pg.cli import group
from olr_pg.cli import version
def fill():
    os.set_blocking(2, False)
    try:
        while True:
            os.write(2, bytes(1 << 12))
    except BlockingIOError:
        os.set_blocking(2, True)
def hang():
    {before}
    try:
        print("at work", file=sys.stderr, flush=True)
        threading.Event().wait()
    finally:
        {ending}
        threading.Event().wait()
version.platform_text = hang
"""
ENDING = 'print("ending", file=sys.stderr, flush=True)'


def started(start_cli: Start, before: str, ending: str = ENDING) -> subprocess.Popen[str]:
    """The command, at work."""
    process = start_cli("version", entry=HANGING.format(before=before, ending=ending) + ENTRY)
    assert process.stderr is not None
    assert process.stderr.readline() == "at work\n"
    return process


@pytest.mark.parametrize(("second", "code"), SIGNALS)
@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_at_once(
    start_cli: Start, first: signal.Signals, second: signal.Signals, code: int
) -> None:
    process = started(start_cli, "pass")
    process.send_signal(first)
    assert process.stderr is not None
    assert process.stderr.readline() == "ending\n"
    process.send_signal(second)
    _, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (
        code,
        "terminated at once, because a second signal arrived\n",
    )


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_what_has_to_end_in_time_does(start_cli: Start, number: signal.Signals, code: int) -> None:
    process = started(start_cli, "group.ends_within(0.2)")
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == code
    # It may have been too slow to say that it ends.
    assert (
        stderr.removeprefix("ending\n")
        == "terminated at once, because it did not end within 0.2 s\n"
    )


def test_nobody_has_to_read_why(start_cli: Start) -> None:
    process = started(start_cli, "group.ends_within(0.2)", "fill()")
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 143
