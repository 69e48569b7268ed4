"""Compiles the kernels of a load in Spark's daemon, before it forks the workers."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from olr_pg.applier.target.catalogue import TargetColumn
from olr_pg.datatypes.convert import DEFAULT_FACTS, encoder_for
from olr_pg.datatypes.mapping import OracleType, pg_type
from olr_pg.datatypes.plain import plain_form
from olr_pg.dictionary.model import Column
from olr_pg.load.arrow import arrow_column
from olr_pg.load.column_binding import LoadColumn, encode_batch
from olr_pg.load.plain_tuples import plain_tuples
from olr_pg.load.row_images import composites, hashes

_WHEN: Final = datetime(2026, 1, 1)  # noqa: DTZ001 - a label
_SAMPLES: Final[tuple[tuple[OracleType, int | None, int | None, Any], ...]] = (
    (OracleType.NUMBER, 9, 0, pa.array([Decimal(1), None], pa.decimal128(9, 0))),
    (OracleType.NUMBER, None, None, pa.array(["1.5", None])),
    (OracleType.VARCHAR2, None, None, pa.array(["a", None])),
    (OracleType.RAW, None, None, pa.array([b"a", None])),
    (OracleType.DATE, None, None, pa.array([_WHEN, None], pa.timestamp("ms"))),
    (OracleType.TIMESTAMP, None, 6, pa.array([_WHEN, None], pa.timestamp("us"))),
    (OracleType.TIMESTAMP, None, 9, pa.array(["2026-01-01T00:00:00", None])),
    (OracleType.CHAR, None, None, pa.array(["a ", None])),
)


def warm_load() -> None:
    """Convert two rows of the common types, which compiles the kernels."""
    columns, arrays = list[LoadColumn](), list[Any]()
    for place, (code, precision, scale, array) in enumerate(_SAMPLES):
        column = Column(f"C{place}", place + 1, place + 1, place + 1, code, 10, precision, scale)
        kind = pg_type(column).kind
        arrow = arrow_column(column, array.type)
        target = TargetColumn(column.name, int(kind), int(kind), kind.name.lower(), False, "")
        encoder = encoder_for(arrow.described, kind)
        form = plain_form(arrow.described, encoder.kind, DEFAULT_FACTS)
        columns.append(LoadColumn(place, place, target, arrow, encoder, form))
        arrays.append(array)
    batch = pa.record_batch(arrays, names=[column.target.name for column in columns])
    encoded = encode_batch(tuple(columns), batch)
    plain_tuples(columns, batch)
    types = [column.target.base_oid for column in columns]
    hashes(composites(encoded.columns, encoded.rows, types))
