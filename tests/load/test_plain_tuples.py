"""Tuples of a binary COPY from record batches: those that encoders make, byte for byte."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.applier.target.catalogue import TargetColumn
from olr_pg.datatypes.convert import DEFAULT_FACTS, encoder_for
from olr_pg.datatypes.mapping import OracleType, PgKind
from olr_pg.datatypes.plain import PlainForm, plain_form
from olr_pg.dictionary.model import Column
from olr_pg.errors import OlrPgError
from olr_pg.load.arrow import arrow_column
from olr_pg.load.column_binding import LoadColumn, encode_batch
from olr_pg.load.plain_tuples import plain_tuples

if TYPE_CHECKING:
    from collections.abc import Sequence


def bound(place: int, code: OracleType, kind: PgKind, arrow: pa.DataType) -> LoadColumn:
    column = Column(f"C{place}", place + 1, place + 1, place + 1, code, 10, scale=6)
    taken = arrow_column(column, arrow)
    encoder = encoder_for(taken.described, kind)
    target = TargetColumn(column.name, int(kind), int(kind), kind.name.lower(), False, "")
    form = plain_form(taken.described, kind, DEFAULT_FACTS)
    return LoadColumn(place, place, target, taken, encoder, form)


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
TIMES = ("2026-01-01T00:00:00.123456", "-4712-01-01 00:00:00", "0001-02-03 04:05:06")
SECONDS = st.datetimes().map(lambda when: when.replace(microsecond=0))
NUMBERS = st.decimals(allow_nan=False, places=5, min_value=-(10**30), max_value=10**30)
COLUMNS: Sequence[tuple[OracleType, PgKind, pa.DataType, st.SearchStrategy[Any]]] = (
    (OracleType.NUMBER, PgKind.NUMERIC, pa.string(), NUMBERS.map(str) | st.just("-Infinity")),
    (OracleType.NUMBER, PgKind.INT8, pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (OracleType.NUMBER, PgKind.INT2, pa.int64(), st.integers(-(2**15), 2**15 - 1)),
    (OracleType.NUMBER, PgKind.TEXT, pa.decimal128(30, 5), NUMBERS.filter(lambda n: abs(n) < 1e24)),
    (OracleType.VARCHAR2, PgKind.VARCHAR, pa.string(), TEXTS),
    (OracleType.RAW, PgKind.BYTEA, pa.binary(), st.binary(max_size=80)),
    (OracleType.CHAR, PgKind.BPCHAR, pa.string(), st.sampled_from(["", "a   ", "ż", "x" * 70])),
    (
        *(OracleType.TIMESTAMP, PgKind.TIMESTAMP, pa.string()),
        st.sampled_from(TIMES),
    ),
    (OracleType.DATE, PgKind.TIMESTAMP, pa.timestamp("s"), SECONDS),
    (OracleType.BINARY_DOUBLE, PgKind.FLOAT8, pa.float64(), st.floats()),
)  # fmt: skip
ROWS = st.lists(st.tuples(*(st.none() | values for *_, values in COLUMNS)), max_size=20)


def tuple_of(values: Sequence[bytes | None]) -> bytes:
    """A tuple of a binary COPY, as PostgreSQL's documentation has it."""
    null = b"\xff\xff\xff\xff"
    fields = [null if one is None else len(one).to_bytes(4, "big") + one for one in values]
    return len(values).to_bytes(2, "big") + b"".join(fields)


@given(ROWS)
def test_the_tuples_are_those_of_the_encoders(rows: list[tuple[Any, ...]]) -> None:
    columns = [bound(place, *facts[:3]) for place, facts in enumerate(COLUMNS)]
    arrays = [pa.array([row[at] for row in rows], facts[2]) for at, facts in enumerate(COLUMNS)]
    batch = pa.record_batch(arrays, names=[column.target.name for column in columns])
    encoded = encode_batch(tuple(columns), batch)
    expected = b"".join(
        tuple_of([column.value(row) for column in encoded.columns]) for row in range(encoded.rows)
    )
    found = plain_tuples(columns, batch)
    assert found.data.tobytes() == expected
    assert found.losses == encoded.losses
    assert {column.form for column in columns} > {PlainForm.NONE, PlainForm.NUMERIC}


def test_a_value_that_does_not_fit_is_named() -> None:
    columns = [
        bound(0, OracleType.DATE, PgKind.TIMESTAMP, pa.timestamp("s")),
        bound(1, OracleType.NUMBER, PgKind.INT2, pa.int64()),
    ]
    when = datetime(2026, 1, 1)  # noqa: DTZ001 - a label
    batch = pa.record_batch([[when, when], [1, 40_000]], names=["C0", "C1"])
    batch = batch.cast(pa.schema([("C0", pa.timestamp("s")), ("C1", pa.int64())]))
    with pytest.raises(OlrPgError) as told:
        plain_tuples(columns, batch, 100)
    with pytest.raises(OlrPgError) as known:
        encode_batch(tuple(columns), batch, 100)
    assert (told.value.code, told.value.where) == (known.value.code, known.value.where)
    assert told.value.where["row"] == 101
