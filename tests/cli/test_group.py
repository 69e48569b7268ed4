"""What a command ends with, as an error of the catalogue."""

from __future__ import annotations

import json

import psycopg
import pytest

from olr_pg.cli.group import coded, report
from olr_pg.errors import Code, OlrPgError


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
