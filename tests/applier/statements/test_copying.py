"""COPY straight from the received bytes: what the way of all changes gives."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.applier.statements import copying
from olr_pg.applier.statements.copying import copy_stream
from olr_pg.applier.statements.table_changes import (
    ChangeError,
    Selection,
    by_name,
    encode_changes,
    join,
    row_changes,
    select,
)
from olr_pg.applier.statements.table_statements import steps
from olr_pg.applier.statements.target_plan import TablePlan
from olr_pg.datatypes.number import encode_number
from olr_pg.kernels.compile import interpreted
from olr_pg.wire.elements import Delete, Insert, Update
from tests.applier.every_value import COLUMNS, HEAD, VALUES, cell, chunk_of, plan_of

if TYPE_CHECKING:
    from collections.abc import Mapping


def _inserts(*rows: Mapping[str, bytes | None], table: str = "T") -> list[Insert | Update | Delete]:
    return [
        Insert(**HEAD, table=table, rowid="",
               after=tuple(cell(name, raw) for name, raw in row.items()))
        for row in rows
    ]  # fmt: skip


def _selected(*chunks: list[Insert | Update | Delete]) -> Selection:
    """The changes of table T, received in these chunks."""
    parts = []
    for changes in chunks:
        chunk = chunk_of(changes)
        parts += [select(chunk, rows) for name, rows in by_name(chunk, row_changes(chunk))
                  if name == "S.T"]  # fmt: skip
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
    plan = plan_of()
    stream = copy_stream(plan, _selected(*chunks))
    try:
        expected = _way_of_all_changes(plan_of(), _selected(*chunks))
    except ChangeError:
        assert stream is None  # it is for the other way to say what is wrong
        return
    assert stream is None or [bytes(stream)] == expected


def test_a_stream_is_sorted_by_the_key_and_has_null_for_what_a_row_leaves_out() -> None:
    rows = [
        {"I8": encode_number(key), "NU": encode_number(Decimal(key) / 7), "TX": b"x" * (key % 5)}
        for key in (5, -3, 900, 0, 7)
    ]
    plan = plan_of()
    first = [*_inserts(*rows[:2]), *_inserts({"I8": encode_number(1)}, table="U")]
    selection = _selected(first, _inserts({"I8": encode_number(2)}, *rows[2:]))
    stream = copy_stream(plan, selection)
    assert stream is not None
    assert [bytes(stream)] == _way_of_all_changes(plan, selection)
    starts = [bytes(stream).index(b"\0\3\0\0\0\x08" + key.to_bytes(8, "big", signed=True))
              for key in (-3, 0, 2, 5, 7, 900)]  # fmt: skip
    assert starts == sorted(starts)


def test_a_stream_of_a_table_without_a_key_keeps_the_order() -> None:
    plan = plan_of(())
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
        [Delete(**HEAD, table="T", rowid="", before=(cell("I8", encode_number(2)),))],
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
    assert copy_stream(plan_of(), _selected(good)) is not None
    assert copy_stream(plan_of(), _selected(good, changes)) is None
    assert copy_stream(plan_of(), _selected([*changes, *good])) is None


def test_a_stream_as_the_compiler_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ({"I8": encode_number(key), "TX": b"y" * key, "NU": KEY["I8"]} for key in (9, 2, 40))
    selection = _selected(_inserts(*rows))
    compiled = copy_stream(plan_of(), selection)
    assert compiled is not None
    for name in ("copy_rows_kernel", "reorder_kernel"):
        monkeypatch.setattr(copying, name, interpreted(getattr(copying, name)))
    found = copy_stream(plan_of(), selection)
    assert found is not None
    assert bytes(found) == bytes(compiled)
