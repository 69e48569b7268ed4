"""The effort of code grows with its lines and with what PostgreSQL lacks."""

from __future__ import annotations

from olr_pg.assessment.code import code_item
from olr_pg.assessment.report import Effort


def test_effort() -> None:
    short = code_item("FUNCTION", "S.F", "FUNCTION f RETURN NUMBER IS\nBEGIN\nRETURN 1;\nEND;")
    assert (short.effort, short.lines, short.minutes) == (Effort.LOW, 4, 5)
    hard = code_item("PROCEDURE", "S.P", "PROCEDURE p IS\nBEGIN\nUTL_HTTP.x; DBMS_AQ.y;\nEND;")
    assert hard.effort is Effort.HIGH
    assert any("UTL_HTTP" in reason for reason in hard.reasons)
    long = code_item("PROCEDURE", "S.L", "PROCEDURE l IS\n" + "x := 1;\n" * 60)
    assert (long.effort, long.minutes) == (Effort.MEDIUM, 61)
