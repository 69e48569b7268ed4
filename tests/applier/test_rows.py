"""The kernel of whole rows gives what the columns' encoders give, or leaves a value to them."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.applier import copying
from olr_pg.applier.changes import ChangeError, Chunk, Selection, encode_changes, join, select
from olr_pg.applier.chunks import ChunkedRows
from olr_pg.applier.copying import copy_stream
from olr_pg.applier.layouts import LayoutReader
from olr_pg.applier.plan import TablePlan
from olr_pg.applier.settings import ApplierSettings
from olr_pg.applier.statements import steps
from olr_pg.applier.target import TargetColumn, TargetTable
from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.mapping import PgKind
from olr_pg.datatypes.number import encode_number
from olr_pg.datatypes.plain import PlainForm
from olr_pg.errors import OlrPgError
from olr_pg.kernels import interpreted
from olr_pg.wire.elements import ColumnValue, Delete, Insert, Update, encode_element
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.messages import Data, encode_answer

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def _plan(key: tuple[str, ...] = ("i8",)) -> TablePlan:
    columns = tuple(
        TargetColumn(name.lower(), int(kind), int(kind), kind.name.lower(), False, "")
        for name, (_, kind, _) in COLUMNS.items()
    )
    return TablePlan(
        "S.T", TargetTable("s", "t", 1, 2, columns, key), None, ApplierSettings("", "", 0, "")
    )


def _value(name: str, raw: bytes | None) -> ColumnValue:
    type_code, _, facts = COLUMNS[name]
    return ColumnValue(name, type_code, value=raw or None, **facts)


def _chunk(changes: list[Insert | Update | Delete]) -> Chunk:
    blob = b"".join(encode_answer(Data(encode_element(one, ORDER)), ORDER) for one in changes)
    (answers,) = ChunkedRows(ORDER).feed(np.frombuffer(blob, np.uint8))
    return Chunk(answers, LayoutReader(ORDER).read(answers))


def _encoded(changes: list[Insert | Update | Delete], plan: TablePlan) -> Any:
    chunk = _chunk(changes)
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


def _inserts(*rows: Mapping[str, bytes | None], table: str = "T") -> list[Insert | Update | Delete]:
    return [
        Insert(**HEAD, table=table, rowid="",
               after=tuple(_value(name, raw) for name, raw in row.items()))
        for row in rows
    ]  # fmt: skip


def _selected(*chunks: list[Insert | Update | Delete]) -> Selection:
    """The changes of table T, received in these chunks."""
    parts = []
    for changes in chunks:
        chunk = _chunk(changes)
        names = np.array([layout.table for layout in chunk.layouts])
        parts.append(select(chunk, np.flatnonzero(names[chunk.answers.layout] == "T")))
    return join(parts)


def _way_of_all_changes(plan: TablePlan, selection: Selection) -> list[bytes]:
    return [bytes(one.copy or b"") for one in steps(plan, encode_changes(plan, selection), 1)]


@given(data=st.data())
def test_a_stream_is_what_the_way_of_all_changes_gives(
    data: st.DataObject,
) -> None:
    names = data.draw(st.permutations([name for name in COLUMNS if name != "CT"]))
    keys = data.draw(st.lists(st.integers(-300, 300), min_size=1, max_size=6, unique=True))
    rows = [
        {
            name: encode_number(key) if name == "I8" else data.draw(st.none() | VALUES[name])
            for name in names
            if name == "I8" or data.draw(st.booleans())
        }
        for key in keys
    ]
    cut = data.draw(st.integers(0, len(rows)))
    chunks = [_inserts(*part) for part in (rows[:cut], rows[cut:]) if part]
    plan = _plan()
    stream = copy_stream(plan, _selected(*chunks))
    try:
        expected = _way_of_all_changes(_plan(), _selected(*chunks))
    except ChangeError:
        assert stream is None  # it is for the other way to say what is wrong
        return
    assert stream is None or [bytes(stream)] == expected


def test_a_stream_is_sorted_by_the_key_and_has_null_for_what_a_row_leaves_out() -> None:
    rows = [
        {"I8": encode_number(key), "NU": encode_number(Decimal(key) / 7), "TX": b"x" * (key % 5)}
        for key in (5, -3, 900, 0, 7)
    ]
    plan = _plan()
    first = [*_inserts(*rows[:2]), *_inserts({"I8": encode_number(1)}, table="U")]
    selection = _selected(first, _inserts({"I8": encode_number(2)}, *rows[2:]))
    stream = copy_stream(plan, selection)
    assert stream is not None
    assert [bytes(stream)] == _way_of_all_changes(plan, selection)
    starts = [bytes(stream).index(b"\0\3\0\0\0\x08" + key.to_bytes(8, "big", signed=True))
              for key in (-3, 0, 2, 5, 7, 900)]  # fmt: skip
    assert starts == sorted(starts)


def test_a_stream_of_a_table_without_a_key_keeps_the_order() -> None:
    plan = _plan(())
    selection = _selected(_inserts(*({"TX": text} for text in (b"b", b"a", b"c"))))
    stream = copy_stream(plan, selection)
    assert stream is not None
    assert bytes(stream)[19:] == b"".join(
        b"\0\1\0\0\0\1" + text for text in (b"b", b"a", b"c")
    ) + b"\xff\xff"  # fmt: skip


KEY: Any = {"I8": encode_number(1)}


@pytest.mark.parametrize(
    "changes",
    [
        [Delete(**HEAD, table="T", rowid="", before=(_value("I8", encode_number(2)),))],
        _inserts({"I8": None}),
        _inserts({"TX": b"no key"}),
        _inserts(KEY | {"CT": b"its encoder"}),
        _inserts(KEY | {"TX": b"\xff"}),
        _inserts(KEY | {"I2": encode_number(70_000)}),
    ],
    ids=["delete", "null key", "no key", "no plain form", "not UTF-8", "too large"],
)
def test_what_is_no_plain_insert_is_left(changes: list[Insert | Update | Delete]) -> None:
    good = _inserts({"I8": encode_number(7)})
    assert copy_stream(_plan(), _selected(good)) is not None
    assert copy_stream(_plan(), _selected(good, changes)) is None
    assert copy_stream(_plan(), _selected([*changes, *good])) is None


def test_a_stream_as_the_compiler_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ({"I8": encode_number(key), "TX": b"y" * key, "NU": KEY["I8"]} for key in (9, 2, 40))
    selection = _selected(_inserts(*rows))
    compiled = copy_stream(_plan(), selection)
    assert compiled is not None
    for name in ("copy_rows_kernel", "reorder_kernel"):
        monkeypatch.setattr(copying, name, interpreted(getattr(copying, name)))
    found = copy_stream(_plan(), selection)
    assert found is not None
    assert bytes(found) == bytes(compiled)
