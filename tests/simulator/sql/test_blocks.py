"""PL/SQL is read word by word; what is unknown in it is an error that names it."""

from __future__ import annotations

import pytest

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.sql.blocks import Assignment, Call, Choice, Loop, SqlStatement, read_block
from olr_pg.simulator.sql.create_table import Words


def test_a_block_of_every_kind_of_step() -> None:
    block = read_block(
        Words("""DECLARE
          PRAGMA AUTONOMOUS_TRANSACTION;
          n NUMBER(4) := 1 + 1;
          PROCEDURE p (k IN NUMBER, t VARCHAR2 DEFAULT 'x') IS BEGIN NULL; END p;
        BEGIN
          n := n * 2;
          SELECT MAX(id), (SELECT 1 FROM dual) INTO n, m FROM t WHERE id < n;
          p(n, 'a;b');
          FOR i IN 1..n LOOP DELETE FROM t WHERE id = i; END LOOP;
          IF n > 1 THEN NULL; ELSIF n = 0 THEN COMMIT; ELSE ROLLBACK TO here; END IF;
        EXCEPTION WHEN NO_DATA_FOUND OR DUP_VAL_ON_INDEX THEN NULL; WHEN OTHERS THEN NULL;
        END;""")
    )
    assert block.is_autonomous
    assert [one.name for one in block.variables] == ["N"]
    assert [one.name for one in block.procedures["P"].parameters] == ["K", "T"]
    assert [type(one) for one in block.steps] == [Assignment, SqlStatement, Call, Loop, Choice]
    query = block.steps[1]
    assert isinstance(query, SqlStatement)
    assert query.into == ("N", "M")
    assert query.rest[0].text == "FROM"
    loop = block.steps[3]
    assert isinstance(loop, Loop)
    assert [one.text for one in (*loop.first, *loop.last)] == ["1", "n"]
    assert [codes for codes, _ in block.handlers] == [(1403, 1), (None,)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("BEGIN EXECUTE IMMEDIATE 'x'; END;", "IMMEDIATE"),
        ("BEGIN WHILE a LOOP NULL; END LOOP; END;", "a"),
        ("BEGIN NULL;", "the end"),
        ("BEGIN SELECT 1 FROM dual; END;", "INTO"),
        ("BEGIN NULL; EXCEPTION WHEN my_error THEN NULL; END;", "THEN"),
    ],
)
def test_what_it_does_not_know(text: str, told: str) -> None:
    with pytest.raises(OraError, match=f"ORA-06550.*{told}"):
        read_block(Words(text))
