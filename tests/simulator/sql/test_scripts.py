"""Files of SQL become logs, a dictionary and a truth, which decoding finds again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.dictionary.loader import load_snapshot
from olr_pg.errors import Code, OlrPgError
from olr_pg.proving.scenario import parse_scenario
from olr_pg.replicator.decode_once import decode_logs
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.sql.scripts import simulate_script
from olr_pg.simulator.truth import read_table
from tests.replicator.decoded_seeds import Source

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """
-- purpose: two sessions, one of which waits
CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v VARCHAR2(20), c CLOB);
INSERT INTO t VALUES (1, 'before', NULL);
COMMIT;
-- start
UPDATE t SET v = 'A' WHERE id = 1;
-- session: B
UPDATE t SET v = v || 'B' WHERE id = 1;
-- session: A
COMMIT;
-- session: B
COMMIT;
-- error: ORA-00001
INSERT INTO t VALUES (1, 'again', NULL);
INSERT INTO t VALUES (2, 'kept', RPAD('x', 4000, 'y'));
COMMIT;
INSERT INTO t VALUES (3, 'open', NULL);
"""


def test_a_script_is_decoded_as_it_says(tmp_path: Path) -> None:
    scenario = parse_scenario(SCRIPT, "script")
    summary = simulate_script(7, tmp_path, demo_shape(), scenario.steps, scenario.start)
    assert summary.rows == {"APP.T": 2}
    source = Source(tmp_path, load_snapshot(str(tmp_path / "dictionary.json")))
    decoded = source.lines(decode_logs(source.snapshot, [log.path for log in source.logs]))
    assert decoded == source.truth
    assert read_table(tmp_path / "tables", "APP.T").to_pydict()["V"] == ["before"]
    final = read_table(tmp_path / "final", "APP.T").to_pydict()
    assert final["V"] == ["AB", "kept"]
    assert len(final["C"][1]) == 4000


def test_a_dropped_table_does_not_get_the_rows_of_one_with_its_name(tmp_path: Path) -> None:
    script = """
CREATE TABLE a (id NUMBER PRIMARY KEY, v VARCHAR2(20));
CREATE TABLE b (id NUMBER PRIMARY KEY, d DATE);
-- start
INSERT INTO a VALUES (1, 'x');
COMMIT;
ALTER TABLE a RENAME TO c;
ALTER TABLE b RENAME TO a;
INSERT INTO a VALUES (2, DATE '2021-01-01');
COMMIT;
DROP TABLE a PURGE;
CREATE TABLE a (id NUMBER PRIMARY KEY, n NUMBER(5));
INSERT INTO a VALUES (7, 3);
INSERT INTO c VALUES (9, 'y');
COMMIT;
"""
    scenario = parse_scenario(script, "script")
    simulate_script(7, tmp_path, demo_shape(), scenario.steps, scenario.start)
    assert [one.name for one in (tmp_path / "final").iterdir()] == ["APP.C.parquet"]
    assert read_table(tmp_path / "final", "APP.C").to_pydict()["V"] == ["x", "y"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("INSERT INTO t VALUES (1, NULL);", "line 4: ORA-00001"),
        (
            "-- error: ORA-00001\nINSERT INTO t VALUES (2, NULL);",
            "line 5: the statement did not fail",
        ),
    ],
)
def test_a_statement_that_does_otherwise_is_named(tmp_path: Path, line: str, told: str) -> None:
    text = (
        "CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v CLOB);\n-- start\n"
        f"INSERT INTO t VALUES (1, NULL);\n{line}\n"
    )
    scenario = parse_scenario(text, "script")
    with pytest.raises(OlrPgError, match=told) as caught:
        simulate_script(7, tmp_path, demo_shape(), scenario.steps, scenario.start)
    assert caught.value.code is Code.SQL_SCRIPT_FAILED
