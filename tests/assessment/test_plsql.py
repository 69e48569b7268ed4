"""Constructs that PostgreSQL lacks are found in code, and only there."""

from __future__ import annotations

from olr_pg.assessment.plsql import code_item, code_lines, find_constructs, package_state
from olr_pg.assessment.report import Effort


def _found(text: str) -> dict[str, int]:
    return {one.word: one.places for one in find_constructs(text)}


def test_comments_and_literals_are_no_code() -> None:
    text = """-- BULK COLLECT
    /* FORALL */ x := 'EXECUTE IMMEDIATE'; y := q'[GOTO]';
    SELECT a BULK COLLECT INTO b FROM t@far WHERE ROWNUM < 5;"""
    assert _found(text) == {"BULK COLLECT": 1, "@": 1, "ROWNUM": 1}


def test_attributes_and_pairs() -> None:
    found = _found(
        "n t.c%TYPE; IF SQL%ROWCOUNT > 0 OR c%NOTFOUND THEN EXECUTE IMMEDIATE s; END IF;"
    )
    assert found == {"%TYPE": 1, "%ROWCOUNT": 1, "%NOTFOUND": 1, "EXECUTE IMMEDIATE": 1}


def test_variables_of_a_package() -> None:
    with_state = "PACKAGE BODY p AS g NUMBER; PROCEDURE x IS BEGIN NULL; END; END;"
    without = "PACKAGE BODY p AS PROCEDURE x IS y NUMBER; BEGIN NULL; END; END;"
    found = package_state(with_state)
    assert found is not None
    assert found.places == 1
    assert package_state(without) is None
    assert package_state("PROCEDURE x IS BEGIN NULL; END;") is None


def test_text_that_cannot_be_read_is_looked_through_all_the_same() -> None:
    assert _found("x := 'open; GOTO there; MERGE INTO t") in ({"GOTO": 1, "MERGE": 1}, {})


def test_lines_of_code() -> None:
    assert code_lines("a;\n\n-- no\n/* no\nno */\nb;\n") == 2


def test_effort() -> None:
    short = code_item("FUNCTION", "S.F", "FUNCTION f RETURN NUMBER IS\nBEGIN\nRETURN 1;\nEND;")
    assert (short.effort, short.lines, short.minutes) == (Effort.LOW, 4, 5)
    hard = code_item("PROCEDURE", "S.P", "PROCEDURE p IS\nBEGIN\nUTL_HTTP.x; DBMS_AQ.y;\nEND;")
    assert hard.effort is Effort.HIGH
    assert any("UTL_HTTP" in reason for reason in hard.reasons)
    long = code_item("PROCEDURE", "S.L", "PROCEDURE l IS\n" + "x := 1;\n" * 60)
    assert (long.effort, long.minutes) == (Effort.MEDIUM, 61)
