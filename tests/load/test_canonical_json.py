"""Documents as PostgreSQL prints them."""

from __future__ import annotations

import orjson
import psycopg
import pytest

from olr_pg.applier.target.catalogue import read_table
from olr_pg.applier.target.connection import connect
from olr_pg.errors import OlrPgError
from olr_pg.load.canonical_json import canonical_json
from olr_pg.load.composite import ImageField, shown


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
