"""The kernel of whole rows gives what the columns' encoders give, or leaves a value to them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.applier.changes import ChangeError, Chunk, encode_changes, select
from olr_pg.applier.chunks import ChunkedRows
from olr_pg.applier.parse import LayoutReader
from olr_pg.applier.plan import TablePlan
from olr_pg.applier.settings import ApplierSettings
from olr_pg.applier.target import TargetColumn, TargetTable
from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.mapping import PgKind
from olr_pg.datatypes.number import encode_number
from olr_pg.datatypes.plain import PlainForm
from olr_pg.errors import OlrPgError
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


def _plan() -> TablePlan:
    columns = tuple(
        TargetColumn(name.lower(), int(kind), int(kind), kind.name.lower(), False, "")
        for name, (_, kind, _) in COLUMNS.items()
    )
    return TablePlan(
        "S.T", TargetTable("s", "t", 1, 2, columns, ("i8",)), None, ApplierSettings("", "", 0, "")
    )


def _value(name: str, raw: bytes | None) -> ColumnValue:
    type_code, _, facts = COLUMNS[name]
    return ColumnValue(name, type_code, value=raw or None, **facts)


def _encoded(changes: list[Insert | Update | Delete], plan: TablePlan) -> Any:
    blob = b"".join(encode_answer(Data(encode_element(one, ORDER)), ORDER) for one in changes)
    answers = ChunkedRows(ORDER).feed(np.frombuffer(blob, np.uint8))
    assert answers is not None
    chunk = Chunk(answers, LayoutReader(ORDER).read(answers))
    return encode_changes(plan, select(chunk, np.arange(len(changes)))), chunk.layouts


@pytest.mark.parametrize("name", COLUMNS)
@given(data=st.data())
def test_agrees_with_the_encoder(name: str, data: st.DataObject) -> None:
    raws = data.draw(st.lists(st.none() | VALUES[name], min_size=1, max_size=4))
    changes: list[Insert | Update | Delete] = [
        Insert(**HEAD, table="T", rowid="", after=(_value(name, raw),)) for raw in raws
    ]
    plan = _plan()
    place = list(COLUMNS).index(name)
    expected: list[bytes | None] = []
    failure = 0
    result = None
    try:
        result, layouts = _encoded(changes, plan)
    except ChangeError as error:
        failure = error.cause.code
    encoder = plan.bind(layouts[0]).all[0].encoder if result is not None else None
    if encoder is None:
        with pytest.raises(OlrPgError) as raised:
            _encoder(plan, name)(column_of([raw or None for raw in raws]))
        assert raised.value.code == failure
        return
    expected = encoder(column_of([raw or None for raw in raws]))[0].values()
    assert result is not None
    cells = result.after
    actual = [
        None if size < 0 else cells.data[start : start + size].tobytes()
        for start, size in zip(cells.offset[:, place], cells.length[:, place], strict=True)
    ]
    assert actual == expected
    assert (np.delete(cells.length, place, axis=1) == -2).all()


def _encoder(plan: TablePlan, name: str) -> Any:
    _, layouts = _encoded([Insert(**HEAD, table="T", rowid="", after=(_value(name, None),))], plan)
    return plan.bind(layouts[0]).all[0].encoder


def test_plain_values_are_converted_by_the_kernel() -> None:
    plan = _plan()
    _, layouts = _encoded(
        [Insert(**HEAD, table="T", rowid="", after=tuple(_value(name, None) for name in COLUMNS))],
        plan,
    )
    forms = {c.encoder.column_name: c.form for c in plan.bind(layouts[0]).all}
    assert [name for name, form in forms.items() if form is PlainForm.NONE] == ["CT"]


def test_images_of_every_kind() -> None:
    one, two = encode_number(1), encode_number(2)
    changes: list[Insert | Update | Delete] = [
        Update(**HEAD, table="T", rowid="A" * 18, before=(_value("I8", one), _value("TX", b"x")),
               after=(_value("TX", b"y"),)),
        Delete(**HEAD, table="T", rowid="A" * 18, before=(_value("I8", two), _value("TX", b"z"))),
        Insert(**HEAD, table="T", rowid="B" * 18, after=(_value("I8", two),)),
        Update(**HEAD, table="T", rowid="", before=(_value("I8", one),),
               after=(_value("TX", None),)),
    ]  # fmt: skip
    result, _ = _encoded(changes, _plan())
    key, text = list(COLUMNS).index("I8"), list(COLUMNS).index("TX")
    assert result.kind.tolist() == [6, 5, 4, 6]
    assert result.row[0] == result.row[1] != result.row[2]
    assert result.row[3] == 0
    assert result.before.length[[0, 1, 3], key].tolist() == [8, 8, 8]
    assert result.before.length[:2, text].tolist() == [-2, -2]  # not needed: the key is there
    assert result.after.length[[0, 2, 3], text].tolist() == [1, -2, -1]
    assert result.after.length[[0, 2, 3], key].tolist() == [-2, 8, -2]
