"""How columns of table data find those of the target."""

from __future__ import annotations

import psycopg
import pyarrow as pa
import pytest

from olr_pg.applier.connection import connect
from olr_pg.applier.plan import plan_table
from olr_pg.applier.settings import ApplierSettings
from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.model import Column, Table
from olr_pg.errors import OlrPgError
from olr_pg.load.columns import bind_columns


@pytest.mark.parametrize("kind", ["numeric(10,2)", "numeric(10,4)", "numeric"])
def test_a_type_that_would_round_is_refused(postgres_database: str, kind: str) -> None:
    table = Table("S", "R", 1, 1, (Column("X", 1, 1, 1, OracleType.NUMBER, 22, 12, 4),))
    settings = ApplierSettings(postgres_database, "", 0, "")
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA s; CREATE TABLE s.r (x {kind})".encode())
    with connect(postgres_database) as connection:
        plan = plan_table(connection, settings, table, table)
    schema = pa.schema([("X", pa.decimal128(12, 4))])
    if kind != "numeric(10,2)":
        assert [one.target.name for one in bind_columns(plan, table, schema, settings)] == ["x"]
        return
    with pytest.raises(OlrPgError) as caught:
        bind_columns(plan, table, schema, settings)
    assert caught.value.code == 5007
    assert "keeps 2 digits behind the point, of 4" in caught.value.detail
