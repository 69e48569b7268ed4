"""The files of a schema: what runs, and what is a comment with its reason."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import psycopg
import pytest

from olr_pg.postgres.embedded import packaged_installation
from olr_pg.schema.presence import literal
from olr_pg.schema.statement import Statement, statement_text, write_files

if TYPE_CHECKING:
    from pathlib import Path


def test_every_line_of_what_does_not_run_is_a_comment() -> None:
    one = Statement("view", "S.V", "CREATE VIEW v AS\nSELECT 1", "no way", "SELECT 1\nFROM dual")
    lines = statement_text(one).splitlines()
    assert all(line.startswith("--") for line in lines)
    assert "-- Reason: no way" in lines
    assert "-- FROM dual" in lines


ESCAPING = "-c standard_conforming_strings=off"
REMARK = "C:\\new\\'; DROP TABLE victim; --"


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\u2028"])
@pytest.mark.parametrize("reason", ["", "S.T{end}DROP TABLE victim;"])
def test_a_name_does_not_end_a_comment(
    end: str, reason: str, tmp_path: Path, postgres_database: str
) -> None:
    name = f"S.T{end}\\! touch {tmp_path}/executed{end}DROP TABLE victim; --"
    sql = "CREATE TABLE made ()"
    one = Statement("table", name, sql, reason.format(end=end), name, what=name, remark=name)
    files = tmp_path / "files"
    write_files([one], files)
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("CREATE TABLE victim ()")
        psql = str(packaged_installation() / "bin" / "psql")
        subprocess.run([psql, postgres_database, "-qXf", str(files / "all.sql")], check=True)
        tables = connection.execute("SELECT relname FROM pg_class WHERE relkind = 'r'").fetchall()
    assert ("victim",) in tables
    assert (("made",) in tables) is not bool(reason)
    assert not (tmp_path / "executed").exists()


def test_a_backslash_in_a_literal_is_an_ordinary_character(
    tmp_path: Path, postgres_database: str
) -> None:
    sql = f"COMMENT ON TABLE remarked IS {literal(REMARK)}"
    write_files([Statement("comment", "S.T", sql)], tmp_path)
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("CREATE TABLE victim (); CREATE TABLE remarked ()")
        psql = str(packaged_installation() / "bin" / "psql")
        command = [psql, postgres_database, "-qXf", str(tmp_path / "all.sql")]
        subprocess.run(command, check=True, env={**os.environ, "PGOPTIONS": ESCAPING})
        found = connection.execute(
            "SELECT obj_description('remarked'::regclass), to_regclass('victim')"
        ).fetchone()
    assert found == (REMARK, "victim")


def test_files_are_numbered_in_the_order_in_which_they_run(tmp_path: Path) -> None:
    (tmp_path / "99-foreign-key.sql").write_text("of an earlier run")
    (tmp_path / "99-mine.sql").write_text("of somebody")
    kinds = ("grant", "table", "schema")
    paths = write_files([Statement(kind, "S.X", "SELECT 1") for kind in kinds], tmp_path)
    names = [path.name for path in paths]
    assert names == ["01-schema.sql", "03-table.sql", "19-grant.sql", "all.sql"]
    assert (tmp_path / "all.sql").read_text().splitlines()[1:] == [f"\\ir {n}" for n in names[:-1]]
    assert not (tmp_path / "99-foreign-key.sql").exists()
    assert (tmp_path / "99-mine.sql").exists()
