"""The form in which values are compared, judged by PostgreSQL."""

from __future__ import annotations

from decimal import Decimal

import pytest
from psycopg import sql

from olr_pg.applier.target.catalogue import read_table
from olr_pg.applier.target.connection import connect
from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.convert import encoder_for
from olr_pg.datatypes.mapping import OracleType
from olr_pg.datatypes.number import encode_number
from olr_pg.dictionary.model import Column
from olr_pg.load.canonical import canonical_expression, canonical_values


@pytest.mark.parametrize("kind", ["numeric", "numeric(20,3)"])
def test_canonical_numbers_are_what_postgres_sends(postgres: str, kind: str) -> None:
    texts = ["0", "1.5", "-1.5", "100000", "1E-3"]
    texts += ["Infinity", "-Infinity"] if kind == "numeric" else []
    raw = [b"\xff\x65" if "I" in one else encode_number(Decimal(one)) for one in texts]
    raw = [b"\0" if one == "-Infinity" else value for one, value in zip(texts, raw, strict=True)]
    values, _ = encoder_for(Column("N", 1, 1, 1, OracleType.NUMBER, 22), "numeric")(
        column_of([*raw, None])
    )
    before = values.values()
    with connect(postgres) as connection, connection.transaction(force_rollback=True):
        connection.execute(f"CREATE SCHEMA s CREATE TABLE t (n {kind})".encode())
        table = read_table(connection, "s", "t")
        assert table is not None
        query = sql.SQL("SELECT numeric_send({}) FROM s.t").format(
            canonical_expression(table.columns[0])
        )
        found = []
        for text in [*texts, None]:
            connection.execute("TRUNCATE s.t")
            connection.execute("INSERT INTO s.t VALUES (%s::numeric)", (text,))
            row = connection.execute(query).fetchone()
            assert row is not None
            found.append(row[0])
    assert canonical_values(values, table.columns[0]).values() == found
    assert values.values() == before
