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
-- needs: partitioning, xa
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
    assert (found.purpose, found.needs) == ("to see what is read", ("partitioning", "xa"))
    assert found.different == "it has ROWIDs"
    assert [one.session for one in found.steps] == ["A", "A", "A", "B", "B"]
    assert [one.errors for one in found.steps] == [(), (), (), (54, 30006), ()]
    assert [one.line for one in found.steps] == [5, 8, 9, 12, 14]
    assert found.steps[0].text.endswith("-- a remark\n)")
    assert found.start == 2


def test_the_start_may_be_said() -> None:
    text = "CREATE TABLE t (id NUMBER);\nINSERT INTO t VALUES (1);\n-- start\nDELETE FROM t;\n"
    assert parse_scenario(text, "group/name").start == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("-- purpose: nothing\n", "no statement"),
        ("SELECT 1\nFROM dual\n", "of line 1 does not end"),
        ("-- error: something\nCOMMIT;\n", "line 1 names no error"),
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
