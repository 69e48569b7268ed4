"""The query that reads the rows of a table."""

from __future__ import annotations

import pyarrow as pa

from olr_pg.dictionary.model import Column, Table
from olr_pg.oracle.rowids import RowidRange
from olr_pg.oracle.table_query import query_fields, query_schema, quoted, rows_statement

ID = Column("ID", 1, 1, 1, 2, 22, precision=9, scale=0)
FREE = Column("FREE", 2, 2, 2, 2, 22)
WHEN = Column("WHEN", 3, 3, 3, 12, 7)
BODY = Column("BODY", 4, 4, 4, 112, 4000, charset_id=873, charset_form=1)
GONE = Column("GONE", 5, 5, 5, 2, 22, hidden=True)
PLAIN = Table("S", "T", 1, 1, (ID, FREE, WHEN, GONE))


def test_a_type_without_an_exact_form_comes_as_text() -> None:
    kinds = {field.name: field.kind for field in query_fields(PLAIN)}
    assert kinds == {"ID": pa.decimal128(9, 0), "FREE": pa.string(), "WHEN": pa.string()}


def test_rows_that_are_read_one_by_one_have_their_numbers_as_text() -> None:
    fields = query_fields(Table("S", "T", 1, 1, (ID, BODY)))
    assert [(field.kind, field.is_lob) for field in fields] == [
        (pa.string(), False),
        (pa.large_string(), True),
    ]


def test_rowids_come_first_unless_there_are_none() -> None:
    assert query_schema(PLAIN).names == ["ROWID", "ID", "FREE", "WHEN"]
    by_index = Table("S", "T", 1, 1, (ID,), index_organised=True)
    assert query_schema(by_index).names == ["ID"]


def test_the_statement_reads_one_part_as_of_the_scn() -> None:
    part = RowidRange("AAA", "BBB")
    statement, binds = rows_statement(PLAIN, 55, part, "19.0.0")
    assert 'FROM "S"."T" AS OF SCN :scn WHERE ROWID BETWEEN' in statement
    assert statement.count(" AS C") == 4
    assert binds == {"scn": 55, "first": "AAA", "last": "BBB"}
    whole, binds = rows_statement(PLAIN, 55, None, "19.0.0")
    assert "WHERE" not in whole
    assert binds == {"scn": 55}


def test_names_keep_their_case() -> None:
    assert quoted("Mixed $") == '"Mixed $"'
