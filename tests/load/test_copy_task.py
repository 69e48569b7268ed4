"""A partition in the target: every row that was sent, or none."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import psycopg
import pytest

from olr_pg.applier.statements.target_plan import plan_table
from olr_pg.errors import OlrPgError
from olr_pg.load import sources
from olr_pg.load.copy_task import prefetched
from tests.load.conftest import Project
from tests.load.test_initial import target_rows

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from tests.load.table_data import Source


DISCARDS = """
CREATE FUNCTION discarded() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER discards BEFORE INSERT ON {0} FOR EACH ROW EXECUTE FUNCTION discarded();
ALTER TABLE {0} ENABLE ALWAYS TRIGGER discards
"""


def test_rows_that_a_trigger_discards_are_missed(
    tmp_path: Path, source: Source, postgres_database: str
) -> None:
    project = Project(tmp_path, source, postgres_database)
    scn = source.scn(0.4)
    project.tables = source.write_tables(tmp_path / "tables", scn)
    wanted = {name: len(rows) for name, rows in source.rows(scn).items()}
    name = max(wanted, key=lambda one: wanted[one])
    config = project.config()
    snapshot = sources.read_dictionary(config)
    (table,) = (t for t in sources.choose_tables(config, snapshot, ()) if t.full_name == name)
    settings = sources.target_settings(config, snapshot, postgres_database)
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        plan_table(connection, settings, table, table)
        connection.execute(DISCARDS.format(name).encode())
        with pytest.raises(OlrPgError) as caught:
            project.load()
        assert (caught.value.code, caught.value.where["table"]) == (5109, name)
        assert "but 0 were inserted" in caught.value.detail
        assert target_rows(project) == {**wanted, name: 0}  # the others are loaded

        connection.execute(f"DROP TRIGGER discards ON {name}".encode())
        project.load(resume=True)
    assert target_rows(project) == wanted


PATIENCE_SECONDS = 60


def test_the_next_one_is_made_meanwhile() -> None:
    second = threading.Event()

    def items() -> Generator[int, None, None]:
        yield 1
        second.set()
        yield 2

    made = prefetched(items())
    assert next(made) == 1
    assert second.wait(PATIENCE_SECONDS)
    assert list(made) == [2]


def test_what_fails_fails_in_its_place() -> None:
    def items() -> Generator[int, None, None]:
        yield 1
        raise ValueError("the second")

    made = prefetched(items())
    assert next(made) == 1
    with pytest.raises(ValueError, match="the second"):
        next(made)


def test_it_ends_where_no_more_is_wanted() -> None:
    ended = list[str]()

    def items() -> Generator[int, None, None]:
        try:
            while True:
                yield 1
        finally:
            ended.append("closed")

    made = prefetched(items())
    next(made)
    made.close()
    assert ended == ["closed"]
    assert not [one for one in threading.enumerate() if one.name.startswith("load-ahead")]
