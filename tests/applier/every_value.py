"""Columns of many types with their values, as received and as a plan converts them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
from hypothesis import strategies as st

from olr_pg.applier.received.change_reading import MessageReader, ReceivedChanges
from olr_pg.applier.settings import ApplierSettings
from olr_pg.applier.statements.target_plan import TablePlan
from olr_pg.applier.target.catalogue import TargetColumn, TargetTable
from olr_pg.datatypes.mapping import PgKind
from olr_pg.datatypes.number import encode_number
from olr_pg.wire.elements import ColumnValue, Delete, Insert, Update, encode_element
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.messages import Data, encode_answer

ORDER = ByteOrder.LITTLE
HEAD: Any = {"scn": 1, "commit_scn": 2, "xid": 3, "timestamp": 4, "object_id": 5, "schema": "S"}
UTF8: Any = {"charset_id": 873, "charset_form": 1}
LATIN: Any = {"charset_id": 31, "charset_form": 1}

COLUMNS: dict[str, tuple[int, PgKind, dict[str, Any]]] = {
    "I2": (2, PgKind.INT2, {"precision": 4, "scale": 0}),
    "I4": (2, PgKind.INT4, {"precision": 9, "scale": 0}),
    "I8": (2, PgKind.INT8, {"precision": 18, "scale": 0}),
    "NU": (2, PgKind.NUMERIC, {}),
    "TX": (1, PgKind.TEXT, UTF8),
    "LA": (1, PgKind.VARCHAR, LATIN),
    "CH": (96, PgKind.BPCHAR, UTF8),
    "CT": (96, PgKind.TEXT, UTF8),
    "RA": (23, PgKind.BYTEA, {}),
    "DA": (12, PgKind.TIMESTAMP, {}),
    "TS": (180, PgKind.TIMESTAMP, {"scale": 9}),
    "TZ": (181, PgKind.TIMESTAMPTZ, {"scale": 6}),
}
numbers = st.one_of(
    st.integers(-(10**20), 10**20).map(encode_number),
    st.integers(-300, 300).map(encode_number),
    st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**9),
                max_value=10**9).map(lambda value: encode_number(Decimal(value))),
    st.sampled_from([b"\xff\x65", b"\x00", b"\x80", b"\xc1\x01\x02", b"\xc1"]),
    st.binary(min_size=1, max_size=6),
)  # fmt: skip
texts = st.one_of(st.text(max_size=20).map(lambda text: text.encode("utf-8", "replace")),
                  st.binary(max_size=12))  # fmt: skip
dates = st.one_of(
    st.builds(
        lambda year, month, day: bytes((100 + year // 100, 100 + year % 100, month, day, 1, 60, 7)),
        st.integers(1, 9999), st.integers(1, 12), st.integers(1, 31),
    ),
    st.binary(min_size=7, max_size=7),
)  # fmt: skip
fractions = st.integers(0, 10**9).map(lambda nanos: nanos.to_bytes(4, "big"))
zoned = st.builds(lambda label, nanos: label + nanos + b"\x14\x3c", dates, fractions)
VALUES: dict[str, st.SearchStrategy[bytes]] = {
    "I2": numbers, "I4": numbers, "I8": numbers, "NU": numbers, "TX": texts, "LA": texts,
    "CH": texts, "CT": texts, "RA": st.binary(max_size=9), "DA": dates,
    "TS": dates | st.builds(lambda label, nanos: label + nanos, dates, fractions), "TZ": zoned,
}  # fmt: skip


def plan_of(key: tuple[str, ...] = ("i8",)) -> TablePlan:
    columns = tuple(
        TargetColumn(name.lower(), int(kind), int(kind), kind.name.lower(), False, "")
        for name, (_, kind, _) in COLUMNS.items()
    )
    return TablePlan(
        "S.T", TargetTable("s", "t", 1, 2, columns, key), None, ApplierSettings("", "", 0, "")
    )


def cell(name: str, raw: bytes | None) -> ColumnValue:
    type_code, _, facts = COLUMNS[name]
    return ColumnValue(name, type_code, value=raw or None, **facts)


def chunk_of(changes: list[Insert | Update | Delete]) -> ReceivedChanges:
    blob = b"".join(encode_answer(Data(encode_element(one, ORDER)), ORDER) for one in changes)
    (chunk,) = MessageReader(ORDER).feed(np.frombuffer(blob, np.uint8))
    return chunk
