"""Blocks and triggers are carried out as Oracle does; what fails is undone as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.simulator.ora_error import OraError
from tests.simulator.sql.databases import Recorded

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def made(tmp_path: Path) -> Recorded:
    found = Recorded(tmp_path)
    found.run("CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v VARCHAR2(20))")
    return found


def test_variables_are_binds_and_see_those_around_them(made: Recorded) -> None:
    made.run("""DECLARE n NUMBER := 2; w VARCHAR2(9); BEGIN
      DECLARE m NUMBER := n + 1; BEGIN INSERT INTO t VALUES (m, 'x' || n) RETURNING v INTO w; END;
      FOR r IN (SELECT id + n AS up FROM t) LOOP INSERT INTO t VALUES (r.up, w || '!'); END LOOP;
    END;""")
    assert made.rows("SELECT * FROM t ORDER BY id") == [(3, "x2"), (5, "x2!")]


def test_a_block_that_fails_leaves_what_came_before_it(made: Recorded) -> None:
    made.run("INSERT INTO t VALUES (1, 'before')")
    with pytest.raises(OraError, match="ORA-00001"):
        made.run("BEGIN UPDATE t SET v = 'x'; INSERT INTO t VALUES (1, 'again'); END;")
    assert made.rows("SELECT v FROM t") == [("before",)]
    with pytest.raises(OraError, match="ORA-00001"):
        made.run("""BEGIN INSERT INTO t VALUES (2, 'kept'); COMMIT;
          INSERT INTO t VALUES (3, 'gone'); INSERT INTO t VALUES (1, 'again'); END;""")
    assert made.rows("SELECT id FROM t ORDER BY id") == [(1,), (2,)]


@pytest.mark.parametrize(
    ("block", "code"),
    [
        ("DECLARE n NUMBER; BEGIN SELECT id INTO n FROM t WHERE id = 9; END;", "01403"),
        ("DECLARE n NUMBER; BEGIN SELECT id INTO n FROM t; END;", "01422"),
        ("BEGIN n := 1; END;", "06550"),
        ("BEGIN DBMS_OUTPUT.PUT_LINE('x'); END;", "06550"),
        ("BEGIN RAISE_APPLICATION_ERROR(-20007, 'own'); END;", "20007"),
    ],
)
def test_errors(made: Recorded, block: str, code: str) -> None:
    made.run("INSERT INTO t SELECT LEVEL, 'v' FROM dual CONNECT BY LEVEL <= 2")
    with pytest.raises(OraError, match=f"ORA-{code}"):
        made.run(block)


def test_an_autonomous_transaction_sees_nothing_of_the_main_one(made: Recorded) -> None:
    made.run("INSERT INTO t VALUES (1, 'open')")
    made.run("""DECLARE PRAGMA AUTONOMOUS_TRANSACTION; n NUMBER; BEGIN
      SELECT COUNT(*) INTO n FROM t; INSERT INTO t VALUES (2, 'saw ' || n); COMMIT; END;""")
    made.run("ROLLBACK")
    assert made.rows("SELECT * FROM t") == [(2, "saw 0")]


def test_a_trigger_of_columns_is_carried_out_for_them_alone(made: Recorded) -> None:
    made.run(
        "INSERT INTO t VALUES (1, 'x')",
        "CREATE OR REPLACE TRIGGER up BEFORE UPDATE OF v ON t FOR EACH ROW"
        " BEGIN :NEW.v := :OLD.v || :NEW.v; END;",
        "UPDATE t SET id = 2",
        "UPDATE t SET v = 'y'",
    )
    assert made.rows("SELECT * FROM t") == [(2, "xy")]
    with pytest.raises(OraError, match="ORA-04081"):
        made.run("CREATE TRIGGER up BEFORE UPDATE ON t FOR EACH ROW BEGIN NULL; END;")
    with pytest.raises(OraError, match="ORA-04084"):
        made.run("CREATE TRIGGER d AFTER DELETE ON t FOR EACH ROW BEGIN :NEW.v := 'z'; END;",
                 "DELETE FROM t")  # fmt: skip
    assert made.rows("SELECT * FROM t") == [(2, "xy")]
