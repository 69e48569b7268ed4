"""Columns that cannot be replicated are left out, and named when a table is subscribed to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import psycopg
import pytest
from structlog.testing import capture_logs

from olr_pg.dictionary.snapshot_file import write_snapshot
from tests.replicator.ddl_source import NUMBER, TEXT, DdlSource
from tests.replicator.test_ddl_pipeline import run_once

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.usefixtures("one_session")
def test_an_encrypted_column_is_named_and_nothing_of_it_arrives(
    tmp_path: Path, postgres_database: str
) -> None:
    source = DdlSource(tmp_path / "s", followed=False)
    source.create("A", {"ID": NUMBER, "SECRET": TEXT, "NAME": TEXT})
    snapshot = source.take_snapshot()
    (table,) = snapshot.tables
    key, secret, name = table.columns
    encrypted = replace(table, columns=(key, replace(secret, encrypted=True), name))
    write_snapshot(
        replace(snapshot, tables=(encrypted,)), str(source.directory / "dictionary.json")
    )
    row = source.insert("A", 1, "cipher text", "one")
    source.update(row, {1: "other cipher text"})
    source.update(row, {1: "more", 2: "two"})
    source.finish()
    with capture_logs() as logs:
        run_once(source, postgres_database, ["A"])
    warnings = [log for log in logs if log.get("code") == "OLR-03081"]
    assert [(w["log_level"], w["table"], w["column"]) for w in warnings] == [
        ("warning", "SHOP.A", "SECRET")
    ]
    assert "TDE" in warnings[0]["reason"]
    with psycopg.connect(postgres_database) as connection:
        cursor = connection.execute("SELECT * FROM shop.a")
        assert cursor.description is not None
        assert [column.name for column in cursor.description] == ["id", "name"]
        assert cursor.fetchall() == [(1, "two")]
