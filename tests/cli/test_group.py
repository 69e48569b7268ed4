"""What a command ends with, as an error of the catalogue."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from olr_pg.cli.group import coded, report
from olr_pg.cli.main import app
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterator


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


def every_command() -> Iterator[list[str]]:
    def below(command: Any, words: list[str]) -> Iterator[list[str]]:
        yield words
        for name, one in sorted(getattr(command, "commands", {}).items()):
            yield from below(one, [*words, name])

    return below(get_command(app), [])


@pytest.mark.parametrize("words", list(every_command()), ids=" ".join)
def test_help_names_values_as_manuals_do_and_cuts_nothing(words: list[str]) -> None:
    for columns in ("80", "120"):
        text = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": columns}).output
        assert "--help" in text
        assert re.findall(r"<[a-z]+[^>]*> |[a-z]…", text) == []


def test_an_option_and_its_opposite_leave_room_for_the_text() -> None:
    text = CliRunner().invoke(app, ["simulate", "--help"], env={"COLUMNS": "80"}).output
    assert re.search(r"│ +--big-endian .*\n│ +--little-endian ", text)
    # Nothing of it changes what is read.
    assert CliRunner().invoke(app, ["simulate", "--little-endian", "--seed"]).exit_code == 2
