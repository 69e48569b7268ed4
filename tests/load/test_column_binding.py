"""How columns of table data find those of the target."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import psycopg
import pyarrow as pa
import pytest

from olr_pg.applier.settings import ApplierSettings
from olr_pg.applier.statements.target_plan import plan_table
from olr_pg.applier.target.connection import connect
from olr_pg.datatypes.charsets import charset
from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.convert import DatabaseFacts, encoder_for
from olr_pg.datatypes.mapping import OracleType
from olr_pg.datatypes.text import encode_text
from olr_pg.dictionary.model import Column, Table
from olr_pg.errors import OlrPgError
from olr_pg.load.column_binding import bind_columns, encode_batch

if TYPE_CHECKING:
    from olr_pg.applier.statements.target_plan import TablePlan


def plan_of(database: str, table: Table, columns: str) -> tuple[TablePlan, ApplierSettings]:
    """The plan of a table ``s.r`` that is made for it."""
    settings = ApplierSettings(database, "", 0, "")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA s; CREATE TABLE s.r ({columns})".encode())
    with connect(database) as connection:
        return plan_table(connection, settings, table, table), settings


def test_text_in_bytea_is_what_replication_writes(postgres_database: str) -> None:
    """Both write UTF-8; what they cannot write alike is refused before anything is."""
    columns = (
        Column("V", 1, 1, 1, OracleType.VARCHAR2, 40, charset_id=0, charset_form=1),
        Column("N", 2, 2, 2, OracleType.VARCHAR2, 40, charset_id=2000, charset_form=2),
        Column("C", 3, 3, 3, OracleType.CHAR, 40, charset_id=0, charset_form=1),
    )
    json = Column("J", 4, 4, 4, OracleType.JSON, 0)
    table = Table("S", "R", 1, 1, (*columns, json))
    plan, settings = plan_of(postgres_database, table, "v bytea, n bytea, c bytea, j bytea")
    facts = DatabaseFacts("EE8MSWIN1250")
    schema = pa.schema([(name, pa.string()) for name in "VNCJ"])
    with pytest.raises(OlrPgError) as caught:
        bind_columns(plan, table, schema, settings)
    assert (caught.value.code, caught.value.where["column"]) == (5007, "J")
    bound = bind_columns(plan, replace(table, columns=columns), schema, settings)
    texts = ("żół\0", "😀\0", "ń   ")
    batch = pa.record_batch([pa.array([one, None]) for one in texts], names=list("VNC"))
    stored = [
        encode_text(one, charset(name))
        for one, name in zip(texts, ("EE8MSWIN1250", "AL16UTF16", "EE8MSWIN1250"), strict=True)
    ]
    for column, loaded, raw, one in zip(
        columns, encode_batch(bound, batch).columns, stored, texts, strict=True
    ):
        replicated, _ = encoder_for(column, "bytea", facts=facts)(column_of([raw, None]))
        assert loaded.values() == replicated.values() == [one.encode(), None]


@pytest.mark.parametrize("kind", ["numeric(10,2)", "numeric(10,4)", "numeric"])
def test_a_type_that_would_round_is_refused(postgres_database: str, kind: str) -> None:
    table = Table("S", "R", 1, 1, (Column("X", 1, 1, 1, OracleType.NUMBER, 22, 12, 4),))
    plan, settings = plan_of(postgres_database, table, f"x {kind}")
    schema = pa.schema([("X", pa.decimal128(12, 4))])
    if kind != "numeric(10,2)":
        assert [one.target.name for one in bind_columns(plan, table, schema, settings)] == ["x"]
        return
    with pytest.raises(OlrPgError) as caught:
        bind_columns(plan, table, schema, settings)
    assert caught.value.code == 5007
    assert "keeps only 2 digits after the decimal point of 4" in caught.value.detail
