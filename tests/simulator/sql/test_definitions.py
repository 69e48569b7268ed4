"""DDL is carried out, or refused with Oracle's errors."""

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
    found.run(
        "CREATE TABLE t (id NUMBER(4) PRIMARY KEY, a VARCHAR2(10), b NUMBER(4))",
        "INSERT INTO t VALUES (1, 'x', NULL)",
        "CREATE TABLE p (id NUMBER(4)) PARTITION BY RANGE (id)"
        " (PARTITION a VALUES LESS THAN (5), PARTITION b VALUES LESS THAN (10))",
        "CREATE TABLE h (id NUMBER(4)) PARTITION BY HASH (id) PARTITIONS 2",
    )
    return found


def test_columns_are_renamed_hidden_and_modified(made: Recorded) -> None:
    made.run("ALTER TABLE t RENAME COLUMN a TO label", "ALTER TABLE t SET UNUSED (b)")
    assert made.rows("SELECT * FROM t") == [(1, "x")]
    made.run("ALTER TABLE t ADD (b NUMBER(2))", "INSERT INTO t VALUES (2, 'y', 3)")
    assert made.rows("SELECT b, label FROM t WHERE id = 2") == [(3, "y")]
    made.run("ALTER TABLE t MODIFY (label VARCHAR2(20) NOT NULL)")
    with pytest.raises(OraError, match="ORA-01400"):
        made.run("UPDATE t SET label = NULL")
    made.run("ALTER TABLE t RENAME TO u", "UPDATE u SET label = RPAD('x', 20, 'y')")
    with pytest.raises(OraError, match="ORA-00942"):
        made.run("SELECT * FROM t")


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("ALTER TABLE t RENAME COLUMN a TO b", "00957"),
        ("ALTER TABLE t RENAME COLUMN z TO y", "00904"),
        ("ALTER TABLE t RENAME TO p", "00955"),
        ("ALTER TABLE t SET UNUSED (id)", "12991"),
        ("ALTER TABLE t MODIFY (b NOT NULL)", "02296"),
        ("ALTER TABLE t MODIFY (a NUMBER(4))", "01439"),
        ("ALTER TABLE t DROP COLUMN a", "03001"),
        ("ALTER TABLE t SHRINK SPACE", "00922"),
        ("ALTER TABLE t DROP SUPPLEMENTAL LOG DATA (PRIMARY KEY) COLUMNS", "32588"),
        ("ALTER TABLE p TRUNCATE PARTITION z", "02149"),
        ("ALTER TABLE t TRUNCATE PARTITION a", "02149"),
        ("ALTER TABLE p ADD PARTITION c VALUES LESS THAN (5)", "14074"),
        ("ALTER TABLE p MOVE", "14511"),
        ("ALTER TABLE p EXCHANGE PARTITION a WITH TABLE h", "14095"),
        ("ALTER TABLE p EXCHANGE PARTITION a WITH TABLE t", "14097"),
        ("ALTER TABLE p EXCHANGE PARTITION z WITH TABLE t", "02149"),
        ("RENAME t TO p", "00955"),
        ("ALTER TABLE h DROP PARTITION sys_p0", "14255"),
        ("INSERT INTO p VALUES (10)", "14400"),
    ],
)
def test_what_is_refused(made: Recorded, statement: str, code: str) -> None:
    with pytest.raises(OraError, match=f"ORA-{code}"):
        made.run(statement)


def test_a_partition_and_a_table_exchange_their_rows(made: Recorded) -> None:
    made.run(
        "CREATE TABLE x (id NUMBER(4))",
        "INSERT INTO x SELECT LEVEL FROM dual CONNECT BY LEVEL <= 2",
        "INSERT INTO p VALUES (4)",
        "INSERT INTO p VALUES (9)",
        "COMMIT",
    )
    scn = made.database.instance.scn
    made.run("ALTER TABLE p EXCHANGE PARTITION a WITH TABLE x INCLUDING INDEXES")
    assert sorted(made.rows("SELECT id FROM p")) == [(1,), (2,), (9,)]
    assert made.rows("SELECT id FROM x") == [(4,)]
    assert sorted(made.rows(f"SELECT id FROM p AS OF SCN {scn}")) == [(4,), (9,)]
    made.run("UPDATE x SET id = 7", "RENAME x TO y", "COMMIT")
    with pytest.raises(OraError, match="ORA-14099"):
        made.run("ALTER TABLE p EXCHANGE PARTITION a WITH TABLE y")
    made.run("ALTER TABLE p EXCHANGE PARTITION a WITH TABLE y WITHOUT VALIDATION")
    assert sorted(made.rows("SELECT id FROM p")) == [(7,), (9,)]
    assert sorted(made.rows("SELECT id FROM y")) == [(1,), (2,)]


def test_a_load_by_direct_path_closes_its_table(made: Recorded) -> None:
    made.run("COMMIT", "INSERT /*+ APPEND */ INTO t SELECT LEVEL + 5, 'l', 1 FROM dual CONNECT BY"
             " LEVEL <= 3")  # fmt: skip
    with pytest.raises(OraError, match="ORA-12838"):
        made.run("UPDATE t SET b = 2")
    made.run("ROLLBACK")
    assert made.rows("SELECT id FROM t") == [(1,)]


def test_keys_are_in_the_dictionary_as_long_as_they_are_enabled(made: Recorded) -> None:
    def keys() -> tuple[list[str], dict[str, tuple[str, ...]], list[str]]:
        structure = made.database.snapshot(made.database.current_scn()).structure
        for one in structure.foreign_keys:
            assert (one.table, one.parent_columns) == (
                "C",
                ("A",) if one.name == "C_A" else ("ID",),
            )
        return (
            [f"{one.name} {one.columns}" for one in structure.unique_keys],
            {f"{one.name} {one.on_delete}": one.columns for one in structure.foreign_keys},
            [f"{one.table} {one.columns}" for one in structure.indexes],
        )

    made.run(
        "ALTER TABLE t ADD CONSTRAINT t_a UNIQUE (a)",
        "CREATE TABLE c (id NUMBER(4) PRIMARY KEY, t_id NUMBER(4), a VARCHAR2(10), n NUMBER(4),"
        " CONSTRAINT c_n UNIQUE (n), CONSTRAINT c_t FOREIGN KEY (t_id) REFERENCES t ON DELETE"
        " CASCADE)",
        "ALTER TABLE c ADD CONSTRAINT c_a FOREIGN KEY (a) REFERENCES t (a)",
        "CREATE INDEX c_t_id ON c (t_id)",
    )
    unique, foreign = (
        ["T_A ('A',)", "C_N ('N',)"],
        {"C_T cascade": ("T_ID",), "C_A no action": ("A",)},
    )
    assert keys() == (unique, foreign, ["C ('T_ID',)"])
    made.run("ALTER TABLE c DISABLE CONSTRAINT c_a", "ALTER TABLE c DROP CONSTRAINT c_n")
    assert keys()[:2] == (unique[:1], {"C_T cascade": ("T_ID",)})
    made.run("ALTER TABLE c ENABLE CONSTRAINT c_a", "ALTER TABLE c DROP CONSTRAINT c_t")
    assert keys()[:2] == (unique[:1], {"C_A no action": ("A",)})
