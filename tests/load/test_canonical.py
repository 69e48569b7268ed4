"""The form in which values are compared, judged by PostgreSQL.

Composite images in parts.

Documents as PostgreSQL prints them.
"""

from __future__ import annotations

from decimal import Decimal

import orjson
import psycopg
import pytest
from psycopg import sql

from olr_pg.applier.target.catalogue import TargetColumn, read_table
from olr_pg.applier.target.connection import connect
from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.convert import encoder_for
from olr_pg.datatypes.mapping import OracleType, PgKind
from olr_pg.datatypes.number import encode_number
from olr_pg.dictionary.model import Column
from olr_pg.errors import OlrPgError
from olr_pg.load.canonical import (
    ImageField,
    _read,
    canonical_expression,
    canonical_json,
    canonical_values,
    fields_of,
    placeholder,
    shown,
)
from olr_pg.load.row_images import composites
from tests.applier.target.test_database_kind import encoded


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


def column(kind: PgKind, name: str) -> TargetColumn:
    return TargetColumn("c", int(kind), int(kind), name, False, "")


def test_an_image_is_its_fields() -> None:
    columns = (column(PgKind.TEXT, "text"), column(PgKind.BYTEA, "bytea"))
    image = composites([column_of([b""]), column_of([None])], 1, (25, 17)).image(0)
    assert [field.value for field in fields_of(image, columns)] == [b"", None]


def test_what_is_compared_as_text_is_made_its_own_type_again() -> None:
    assert placeholder(column(PgKind.TEXT, "text")).as_string(None) == "%b::text"
    assert placeholder(column(PgKind.XML, "xml")).as_string(None) == "%b::text::xml"


def test_a_document_that_readers_may_not_take_is_a_string() -> None:
    assert _read('{"a": [1, "x"]}') == {"a": [1, "x"]}
    assert _read(None) is None
    for text in ("[" * 3_000 + "]" * 3_000, "123456789012345678901234567890"):
        assert _read(text) == text


def test_a_text_that_the_target_cannot_have_is_shown_all_the_same(postgres: str) -> None:
    """Its encoding lacks a character: the row of the source is missing for that reason."""
    text = column(PgKind.TEXT, "text")
    fields = [
        ImageField(text._replace(name=name), value.encode())
        for name, value in (("known", "\u00fc"), ("unknown", "\u0436"))
    ]
    fields.append(ImageField(text._replace(name="none"), None))
    with (
        encoded(postgres, "LATIN1") as database,
        connect(database) as connection,
    ):
        found = shown(connection, fields)
    assert found == {"known": "\u00fc", "unknown": "\u0436", "none": None}


@pytest.mark.parametrize(
    "text",
    [
        '{"b": 1, "a": [1.50, -0, -0.0, 1e2, 1E-2, 12345678901234567890.10]}',
        '{"aa": null, "b": true, "": false, "b": "\\u00e9\\n\\"\\u0001\\u007f\\\\"}',
        '"x"',
        "[]",
        '{"ż": {}, "z": {"k": [[]]}}',
        "1e300",
        r'"\ud83d\ude00"',
        "[1e131071, 1e-16383, 0e200000]",
    ],
)
def test_canonical_json_is_what_postgres_sends(postgres: str, text: str) -> None:
    with psycopg.connect(postgres) as connection:
        row = connection.execute("SELECT jsonb_send(%s::jsonb)", (text,)).fetchone()
    assert row is not None
    assert canonical_json(b"\1" + text.encode()) == bytes(row[0])


@pytest.mark.parametrize(
    "text",
    ["", "[1,]", '{"a":1,}', "[", "{}x", "01", "1 2", '{"a" 1}', '{"a"}', '{"a":"b":1}', "{1:2}",
     '{"a":1 "b":2}', "nul", "t", '"\t"', r'"\x"', "]", "[}", "{,}", "-", "1.", "\u0663", '"a":'],
)  # fmt: skip
def test_what_is_no_json_is_told(text: str) -> None:
    with pytest.raises(OlrPgError) as caught:
        canonical_json(b"\1" + text.encode())
    assert caught.value.code == 5017


@pytest.mark.parametrize(
    "text",
    [r'"\ud800"', r'{"a":["\uDC00x"]}', r'{"\ud83d":1}', r'"\ud83d\ud83d\ude00"',
     r'{"a":"\ud800","a":1}', "1e131072", "[-1.5e-16383]", "0e-16384", "1" * 131073,
     "1e2147483648", "1e99999999999999999999"],
)  # fmt: skip
def test_what_jsonb_refuses_is_told(postgres: str, text: str) -> None:
    with psycopg.connect(postgres) as connection, pytest.raises(psycopg.DataError):
        connection.execute("SELECT %s::jsonb", (text,))
    with pytest.raises(OlrPgError) as caught:
        canonical_json(b"\1" + text.encode())
    assert caught.value.code == 5017


def test_a_document_of_any_depth(postgres: str) -> None:
    text = '[{"b": 1, "a":' * 1500 + "1" + "}]" * 1500
    with connect(postgres) as connection, connection.transaction(force_rollback=True):
        row = connection.execute("SELECT jsonb_send(%s::jsonb)", (text,)).fetchone()
        assert row is not None
        assert canonical_json(b"\1" + text.encode()) == bytes(row[0])
        connection.execute("CREATE SCHEMA s CREATE TABLE t (deep jsonb, flat jsonb, big jsonb)")
        table = read_table(connection, "s", "t")
        assert table is not None
        values = [b"\1" + one.encode() for one in (text, '[1, {"a": null}]', f"[{10**30}]")]
        seen = shown(
            connection, [ImageField(*one) for one in zip(table.columns, values, strict=True)]
        )
    assert seen == {
        "deep": bytes(row[0])[1:].decode(),
        "flat": [1, {"a": None}],
        "big": f"[{10**30}]",
    }
    assert orjson.loads(orjson.dumps({"source": seen})) == {"source": seen}
