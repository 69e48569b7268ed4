"""A partition in the target: every row that was sent, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from olr_pg.applier.statements.target_plan import plan_table
from olr_pg.errors import OlrPgError
from olr_pg.load import sources
from tests.load.conftest import Project
from tests.load.test_initial import target_rows

if TYPE_CHECKING:
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
