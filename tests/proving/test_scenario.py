"""Scenarios are read with their directives, or refused with the place of what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.errors import Code, OlrPgError
from olr_pg.proving.scenario import parse_scenario, read_scenario

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """-- purpose: to see
-- purpose: what is read
-- needs: compression, xa
-- covers: locks
-- large
-- stops: T OLR-03072
-- same: no, it has ROWIDs
CREATE TABLE t (
  id NUMBER -- a remark
);
CREATE INDEX i ON t (id);
INSERT INTO t VALUES (1);
-- session: B
-- error: ORA-00054 or ORA-30006
SELECT * FROM t
  FOR UPDATE NOWAIT;
COMMIT;
"""


def test_directives_and_statements() -> None:
    found = parse_scenario(TEXT, "group/name")
    assert (found.purpose, found.needs) == ("to see what is read", ("compression", "xa"))
    assert found.different == "it has ROWIDs"
    assert [one.session for one in found.steps] == ["A", "A", "A", "B", "B"]
    assert [one.errors for one in found.steps] == [(), (), (), (54, 30006), ()]
    assert [one.line for one in found.steps] == [8, 11, 12, 15, 17]
    assert found.steps[0].text.endswith("-- a remark\n)")
    assert found.start == 2
    assert (found.covers, found.is_large) == (("locks",), True)
    assert found.stops == (("T", "OLR-03072"),)


def test_plsql_ends_with_a_slash_and_binds_are_of_the_next_statement() -> None:
    text = """CREATE TABLE t (id NUMBER, v VARCHAR2(9));
-- binds: [1, "x"]
-- binds: [2.5, null]
INSERT INTO t VALUES (:1, :2);
-- restart
DECLARE
  n NUMBER;
BEGIN
  n := 1;
END;
/
COMMIT;
"""
    found = parse_scenario(text, "group/name")
    assert [one.binds for one in found.steps] == [(), ((1, "x"), (2.5, None)), (), ()]
    assert found.steps[2].text == "DECLARE\n  n NUMBER;\nBEGIN\n  n := 1;\nEND;"
    assert [one.text for one in found.steps[3:]] == ["COMMIT"]
    assert found.restarts == (2,)


def test_the_start_may_be_said() -> None:
    text = "CREATE TABLE t (id NUMBER);\nINSERT INTO t VALUES (1);\n-- start\nDELETE FROM t;\n"
    assert parse_scenario(text, "group/name").start == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("-- purpose: nothing\n", "no statement"),
        ("SELECT 1\nFROM dual\n", "of line 1 does not end"),
        ("-- error: something\nCOMMIT;\n", "line 1 contains no error code"),
        ("-- binds: 1\nCOMMIT;\n", "line 1 is not a list of bind values"),
        ("-- needs: luck\nCOMMIT;\n", "unknown words in `needs`: luck"),
        ("-- stops: T\nCOMMIT;\n", "without an error code"),
        ("BEGIN\n  NULL;\nEND;\n", "of line 1 does not end"),
    ],
)
def test_what_is_no_scenario(text: str, told: str) -> None:
    with pytest.raises(OlrPgError, match=told) as caught:
        parse_scenario(text, "group/name")
    assert caught.value.code is Code.SCENARIO_INVALID


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OlrPgError) as caught:
        read_scenario(tmp_path / "none.sql")
    assert caught.value.code is Code.SCENARIO_INVALID
