"""Statements do what Oracle's SQL Language Reference says, or fail with Oracle's numbers."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.simulator.ora_error import OraError
from tests.simulator.sql.databases import Recorded

if TYPE_CHECKING:
    from pathlib import Path

TABLES = (
    (
        "CREATE TABLE dept (id NUMBER(4) CONSTRAINT dept_pk PRIMARY KEY,"
        " name VARCHAR2(14 CHAR) NOT NULL, city VARCHAR2(13) DEFAULT 'Paris',"
        " CONSTRAINT dept_name_uk UNIQUE (name))"
    ),
    (
        "CREATE TABLE emp (id NUMBER(6) PRIMARY KEY, name VARCHAR2(10), salary NUMBER(7,2)"
        " CONSTRAINT paid CHECK (salary > 0), dept NUMBER(4)"
        " CONSTRAINT emp_dept_fk REFERENCES dept, hired DATE, notes CLOB)"
    ),
    "CREATE SEQUENCE ids START WITH 100 INCREMENT BY 10",
    "INSERT INTO dept (id, name) VALUES (10, 'Accounts')",
    "INSERT INTO dept VALUES (20, 'Research', NULL)",
    "INSERT INTO emp VALUES (1, 'Ada', 1000, 10, DATE '2020-02-29', 'first')",
    "INSERT INTO emp VALUES (2, 'Bob', 500.505, 20, NULL, NULL)",
    "INSERT INTO emp (id, name) VALUES (3, 'Cem')",
    "COMMIT",
)


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    made = Recorded(tmp_path)
    made.run(*TABLES)
    made.start()
    return made


QUERIES: tuple[tuple[str, list[tuple[Any, ...]]], ...] = (
    ("SELECT name, salary FROM emp ORDER BY id", [("Ada", 1000), ("Bob", 500.51), ("Cem", None)]),
    ("SELECT city FROM dept ORDER BY 1", [("Paris",), (None,)]),
    ("SELECT city FROM dept ORDER BY 1 DESC", [(None,), ("Paris",)]),
    ("SELECT e.name, d.name FROM emp e LEFT JOIN dept d ON d.id = e.dept ORDER BY e.id",
     [("Ada", "Accounts"), ("Bob", "Research"), ("Cem", None)]),
    (("SELECT e.name, d.name FROM emp e RIGHT JOIN dept d ON d.id = e.dept AND e.id = 1"
     " ORDER BY d.id"), [("Ada", "Accounts"), (None, "Research")]),
    ("SELECT COUNT(*), COUNT(salary), SUM(dept), MIN(name), AVG(id) FROM emp",
     [(3, 2, 30, "Ada", 2)]),
    ("SELECT dept, COUNT(*) FROM emp GROUP BY dept HAVING COUNT(*) > 0 ORDER BY dept",
     [(10, 1), (20, 1), (None, 1)]),
    ("SELECT name FROM emp WHERE dept IN (SELECT id FROM dept WHERE city IS NULL)", [("Bob",)]),
    (("SELECT name FROM emp e WHERE EXISTS (SELECT 1 FROM dept d WHERE d.id = e.dept AND"
     " d.name LIKE 'A%')"), [("Ada",)]),
    ("SELECT name FROM emp WHERE NOT (salary > 600)", [("Bob",)]),
    ("SELECT name FROM emp WHERE salary > 600 OR salary IS NULL ORDER BY 1", [("Ada",), ("Cem",)]),
    ("SELECT name FROM emp WHERE id BETWEEN 2 AND 3 AND ROWNUM < 2", [("Bob",)]),
    ("SELECT LEVEL FROM dual CONNECT BY LEVEL <= 3", [(1,), (2,), (3,)]),
    ("SELECT id FROM emp UNION SELECT id FROM dept MINUS SELECT 20 FROM dual ORDER BY 1 DESC",
     [(10,), (3,), (2,), (1,)]),
    ("SELECT id FROM emp ORDER BY id OFFSET 1 ROWS FETCH NEXT 1 ROWS ONLY", [(2,)]),
    ("WITH two AS (SELECT 2 AS n FROM dual) SELECT e.name FROM emp e, two WHERE e.id = two.n",
     [("Bob",)]),
    ("SELECT NVL(NULL, 'x'), 'a' || NULL, DECODE(NULL, NULL, 1, 2), NVL2('', 1, 2) FROM dual",
     [("x", "a", 1, 2)]),
    ("SELECT 1 FROM dual WHERE '' = '' OR '' IS NULL", [(1,)]),
    ("SELECT 0.5, TO_CHAR(0.5), 1/4, MOD(-7, 3), ROUND(2.5), TRUNC(-2.7) FROM dual",
     [(0.5, ".5", 0.25, -1, 3, -2)]),
    ("SELECT SUBSTR('abcdef', -3, 2), INSTR('banana', 'an', -1), LPAD('7', 3, '0') FROM dual",
     [("de", 4, "007")]),
    (("SELECT TO_CHAR(hired, 'YYYY-MM-DD'), TO_CHAR(ADD_MONTHS(hired, 12), 'DD.MM.YYYY') FROM emp"
     " WHERE id = 1"), [("2020-02-29", "28.02.2021")]),
    ("SELECT TO_DATE('01-JAN-99') - TO_DATE('31-DEC-1998', 'DD-MON-YYYY') FROM dual", [(1,)]),
    ("SELECT LISTAGG(name, ',') WITHIN GROUP (ORDER BY name) FROM emp", [("Ada,Bob,Cem",)]),
    ("SELECT CASE dept WHEN 10 THEN 'ten' ELSE 'other' END FROM emp WHERE id < 3 ORDER BY id",
     [("ten",), ("other",)]),
    ("SELECT CAST('12' AS NUMBER(4)) + '1' FROM dual", [(13,)]),
    ("SELECT EXTRACT(YEAR FROM hired), TRIM(' x '), LENGTH('żó') FROM emp WHERE id = 1",
     [(2020, "x", 2)]),
    ("SELECT DBMS_LOB.GETLENGTH(notes), notes FROM emp WHERE id = 1", [(5, "first")]),
)  # fmt: skip


@pytest.mark.parametrize(("query", "expected"), QUERIES)
def test_queries(recorded: Recorded, query: str, expected: list[tuple[Any, ...]]) -> None:
    assert recorded.rows(query) == [
        tuple(Decimal(str(one)) if isinstance(one, float) else one for one in row)
        for row in expected
    ]


ERRORS: tuple[tuple[str, int], ...] = (
    ("INSERT INTO dept VALUES (10, 'again', NULL)", 1),
    ("INSERT INTO dept VALUES (30, 'Accounts', NULL)", 1),
    ("UPDATE dept SET name = 'same'", 1),
    ("INSERT INTO dept VALUES (30, NULL, NULL)", 1400),
    ("INSERT INTO dept VALUES (NULL, 'x', NULL)", 1400),
    ("INSERT INTO emp (id, salary) VALUES (4, 0)", 2290),
    ("INSERT INTO emp (id, dept) VALUES (4, 99)", 2291),
    ("UPDATE emp SET dept = 99", 2291),
    ("DELETE FROM dept WHERE id = 10", 2292),
    ("UPDATE dept SET id = 11 WHERE id = 10", 2292),
    ("INSERT INTO emp (id, name) VALUES (4, 'longer than ten')", 12899),
    ("INSERT INTO emp (id, salary) VALUES (4, 123456.789)", 1438),
    ("INSERT INTO emp (id) VALUES ('four')", 1722),
    ("SELECT 1/0 FROM dual", 1476),
    ("SELECT * FROM nothing", 942),
    ("SELECT nothing FROM emp", 904),
    ("SELECT name FROM emp, dept", 918),
    ("SELECT nothing(1) FROM dual", 904),
    ("INSERT INTO dept (id) VALUES (1, 2)", 913),
    ("INSERT INTO dept (id, name) VALUES (1)", 947),
    ("SELECT (SELECT id FROM emp) FROM dual", 1427),
    ("SELECT name, COUNT(*) FROM emp", 937),
    ("SELECT name, COUNT(*) FROM emp GROUP BY dept", 979),
    ("SELECT TO_DATE('2020-13-01', 'YYYY-MM-DD') FROM dual", 1843),
    ("SELECT DATE '2019-02-29' FROM dual", 1839),
    ("SELECT * FROM emp AS OF SCN 999999999999", 8181),
    ("SELECT nothing.NEXTVAL FROM dual", 2289),
    ("SELECT ids.CURRVAL FROM dual", 8002),
    ("ROLLBACK TO nowhere", 1086),
    ("CREATE TABLE emp (id NUMBER)", 955),
    ("CREATE TABLE odd (id POINT)", 902),
    ("DROP TABLE dept", 2449),
    ("TRUNCATE TABLE dept", 2266),
    ("ALTER TABLE emp SHRINK SPACE", 922),
    ("FROBNICATE emp", 900),
    (("MERGE INTO dept d USING (SELECT LEVEL n FROM dual CONNECT BY LEVEL < 3) s ON (d.id = 10)"
     " WHEN MATCHED THEN UPDATE SET city = 'x'"), 30926),
)  # fmt: skip


@pytest.mark.parametrize(("statement", "code"), ERRORS)
def test_errors_leave_nothing_of_the_statement(
    recorded: Recorded, statement: str, code: int
) -> None:
    recorded.run("INSERT INTO emp (id, name) VALUES (77, 'kept')")
    before = recorded.rows("SELECT * FROM emp"), recorded.rows("SELECT * FROM dept")
    with pytest.raises(OraError) as caught:
        recorded.run(statement)
    assert caught.value.code == code
    assert (recorded.rows("SELECT * FROM emp"), recorded.rows("SELECT * FROM dept")) == before


def test_a_statement_that_fails_halfway_is_taken_back_in_redo_too(recorded: Recorded) -> None:
    with pytest.raises(OraError):
        recorded.run("INSERT INTO emp (id, dept) SELECT 7 + LEVEL, DECODE(LEVEL, 5, 99) FROM dual"
                     " CONNECT BY LEVEL <= 5")  # fmt: skip
    recorded.run("UPDATE emp SET name = 'after' WHERE id = 1", "COMMIT")
    assert recorded.rows("SELECT COUNT(*) FROM emp") == [(3,)]
    assert recorded.check_replay() == 1


def test_dml_in_all_its_forms_is_read_from_its_redo(recorded: Recorded) -> None:
    recorded.run(
        "INSERT ALL WHEN n > 0 THEN INTO dept VALUES (n, 'D' || n, 'here') WHEN n > 41 THEN"
        " INTO emp (id, dept) VALUES (n, 10) SELECT 40 + LEVEL AS n FROM dual"
        " CONNECT BY LEVEL <= 2",
        "COMMIT",
        "MERGE INTO dept d USING (SELECT 41 n FROM dual UNION ALL SELECT 50 FROM dual) s"
        " ON (d.id = s.n) WHEN MATCHED THEN UPDATE SET city = 'merged' WHEN NOT MATCHED THEN"
        " INSERT (id, name) VALUES (s.n, 'new')",
        "COMMIT",
        "UPDATE emp SET (name, salary) = (SELECT SUBSTR(d.name, 1, 10), 5 FROM dept d WHERE d.id ="
        " emp.dept) WHERE dept IS NOT NULL",
        "SAVEPOINT one",
        "DELETE FROM emp",
        "ROLLBACK TO one",
        "UPDATE emp SET notes = RPAD('long', 4000, 'x')",
        "COMMIT",
        "UPDATE dept SET id = 91 - id WHERE id IN (41, 50)",
        "COMMIT",
    )
    assert recorded.rows("SELECT id, name, city FROM dept WHERE id > 20 ORDER BY id") == [
        (41, "new", "Paris"), (42, "D42", "here"), (50, "D41", "merged"),
    ]  # fmt: skip
    assert recorded.check_replay() == 4


def test_arrays_of_binds_keep_what_comes_before_the_row_that_fails(recorded: Recorded) -> None:
    rows = [(Decimal(number), f"name{number}") for number in (30, 31, 10, 32)]
    with pytest.raises(OraError) as caught:
        recorded.session.execute_many("INSERT INTO dept (id, name) VALUES (:1, :2)", rows)
    assert caught.value.code == 1
    recorded.run("COMMIT")
    assert recorded.rows("SELECT id FROM dept ORDER BY 1") == [(10,), (20,), (30,), (31,)]
    assert recorded.check_replay() == 1


def test_what_a_session_has_not_committed_no_other_sees(recorded: Recorded) -> None:
    other = Recorded.__new__(Recorded)
    other.database, other.session = recorded.database, type(recorded.session)(recorded.database)
    recorded.run("UPDATE emp SET name = 'mine' WHERE id = 1", "DELETE FROM emp WHERE id = 2")
    assert other.rows("SELECT name FROM emp ORDER BY id") == [("Ada",), ("Bob",), ("Cem",)]
    scn = recorded.database.current_scn()
    recorded.run("COMMIT")
    assert other.rows("SELECT name FROM emp ORDER BY id") == [("mine",), ("Cem",)]
    assert len(other.rows("SELECT name FROM emp AS OF SCN :1", Decimal(scn))) == 3


def test_returning_gives_new_values_and_of_a_delete_the_old_ones(recorded: Recorded) -> None:
    returned = recorded.session.execute(
        "UPDATE emp SET salary = 7 WHERE id < 3 RETURNING id, salary INTO :1, :2", [None, None]
    ).returned
    assert sorted(returned) == [(1, 7), (2, 7)]
    returned = recorded.session.execute("DELETE FROM emp WHERE id = 3 RETURNING name INTO :1",
                                        [None]).returned  # fmt: skip
    assert returned == [("Cem",)]


def test_children_go_with_their_parents_where_it_is_said(recorded: Recorded) -> None:
    recorded.run("CREATE TABLE a (id NUMBER(4) PRIMARY KEY)",
                 "CREATE TABLE b (id NUMBER(4) PRIMARY KEY, a NUMBER(4) REFERENCES a ON DELETE"
                 " CASCADE)",
                 "CREATE TABLE c (b NUMBER(4) REFERENCES b ON DELETE SET NULL)",
                 "INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (2, 1)",
                 "INSERT INTO c VALUES (2)", "COMMIT")  # fmt: skip
    recorded.start()
    recorded.run("DELETE FROM a", "COMMIT")
    assert recorded.rows("SELECT * FROM b") == []
    assert recorded.rows("SELECT * FROM c") == [(None,)]
    assert recorded.check_replay() == 1


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
