"""A stream whose table gets other columns: it ends before a value would be missing."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from olr_pg.datasource.source import RedoSource
from olr_pg.errors import Code, OlrPgError
from olr_pg.proving.scenario import parse_scenario
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.sql.scripts import simulate_script
from tests.advice import followed
from tests.replicator.ddl_source import write_invalid_date

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql.types import StructType

    from olr_pg.datasource.source import RedoStreamReader

SCRIPT = """
-- purpose: a table whose columns change
CREATE TABLE t (id NUMBER(5) PRIMARY KEY, a VARCHAR2(20));
INSERT INTO t VALUES (1, 'a1');
COMMIT;
ALTER SYSTEM SWITCH LOGFILE;
{ddl};
INSERT INTO t (id) VALUES (2);
UPDATE t SET {set} WHERE id = 2;
COMMIT;
"""


def archived(folder: Path, ddl: str, change: str) -> Callable[[], object]:
    """Simulate the logs; a function that archives the next one."""
    scenario = parse_scenario(SCRIPT.format(ddl=ddl, set=change), "script")
    simulate_script(7, folder, demo_shape(), scenario.steps, scenario.start)
    logs = iter(sorted((folder / "logs").iterdir()))
    (folder / "archive").mkdir()
    return lambda: shutil.copy(next(logs), folder / "archive")


def stream_of(folder: Path, schema: StructType | None = None) -> RedoStreamReader:
    """A reader as Spark makes it, which asks for the columns if the query does not name them."""
    options = {"dictionary": str(folder / "dictionary.json"), "table": "APP.T"}
    source = RedoSource({**options, "path": str(folder / "archive")})
    return source.streamReader(schema or source.schema())


def batch(reader: RedoStreamReader, start: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The rows after each change of the next batch, and the offset at its end."""
    end = reader.latestOffset(start, ReadAllAvailable())
    parts = reader.partitions(start, end)
    rows = [row for part in parts for one in reader.read(part) for row in one.to_pylist()]
    return [row["after"] for row in rows], end


CHANGES = [
    ("ALTER TABLE t ADD (c VARCHAR2(9))", "c = 'c2'", {"C": "c2"}),
    ("ALTER TABLE t RENAME COLUMN a TO c", "c = 'c2'", {"C": "c2"}),
    ("ALTER TABLE t MODIFY (id NUMBER(7))", "a = 'a2'", {"A": "a2"}),
]


@pytest.mark.parametrize(("ddl", "change", "after"), CHANGES)
def test_other_columns_end_a_stream_and_a_restart_has_them(
    tmp_path: Path, ddl: str, change: str, after: dict[str, str]
) -> None:
    archive = archived(tmp_path, ddl, change)
    archive()
    reader = stream_of(tmp_path)
    rows, end = batch(reader, reader.initialOffset())
    assert [row["A"] for row in rows] == ["a1"]
    archive()
    with pytest.raises(OlrPgError) as caught:
        batch(reader, end)
    followed(caught.value, Code.STREAM_COLUMNS_CHANGED, "the same checkpointLocation")
    rows, _ = batch(stream_of(tmp_path), end)
    assert after.items() <= rows[-1].items()


def test_a_stream_that_names_its_columns_goes_on(tmp_path: Path) -> None:
    archive = archived(tmp_path, *CHANGES[0][:2])
    archive()
    reader = stream_of(tmp_path, RedoSource({
        "dictionary": str(tmp_path / "dictionary.json"),
        "table": "APP.T", "path": str(tmp_path / "archive"),
    }).schema())  # fmt: skip
    with pytest.raises(OlrPgError) as caught:
        batch(reader, {"index": 3})  # of another query
    words = "start it again with another checkpointLocation: it then reads all logs again"
    followed(caught.value, Code.STREAM_OFFSET, words)
    rows, end = batch(reader, reader.initialOffset())
    assert [row["A"] for row in rows] == ["a1"]
    archive()
    rows, _ = batch(reader, end)
    assert len(rows) == 2
    assert all("C" not in row for row in rows)


def test_a_stream_makes_invalid_dates_null_if_it_is_asked_to(tmp_path: Path) -> None:
    write_invalid_date(tmp_path)
    options = {
        "dictionary": str(tmp_path / "dictionary.json"), "table": "SHOP.DATES",
        "path": str(tmp_path / "logs"),
    }  # fmt: skip
    strict = RedoSource(options)
    with pytest.raises(OlrPgError) as caught:
        batch(reader := strict.streamReader(strict.schema()), reader.initialOffset())
    assert caught.value.code == Code.VALUE_MALFORMED
    lenient = RedoSource({**options, "invalidDate": "null"})
    rows, _ = batch(reader := lenient.streamReader(lenient.schema()), reader.initialOffset())
    assert rows == [{"ID": "1", "DAY": None}]
