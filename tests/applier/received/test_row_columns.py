"""The kernel of whole rows gives what the columns' encoders give, or leaves a value to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.applier.received import row_columns
from olr_pg.applier.statements.table_changes import ChangeError, encode_changes, select
from olr_pg.applier.statements.target_plan import TablePlan
from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.number import encode_number
from olr_pg.datatypes.plain import PlainForm
from olr_pg.errors import OlrPgError
from olr_pg.kernels.compile import interpreted
from olr_pg.wire.elements import Delete, Insert, Update
from tests.applier.every_value import COLUMNS, HEAD, VALUES, cell, chunk_of, plan_of


def _encoded(changes: list[Insert | Update | Delete], plan: TablePlan) -> Any:
    chunk = chunk_of(changes)
    return encode_changes(plan, select(chunk, np.arange(len(changes)))), chunk.directory


@pytest.mark.parametrize("name", COLUMNS)
@given(data=st.data())
def test_agrees_with_the_encoder(name: str, data: st.DataObject) -> None:
    raws = data.draw(st.lists(st.none() | VALUES[name], min_size=1, max_size=4))
    changes: list[Insert | Update | Delete] = [
        Insert(**HEAD, table="T", rowid="", after=(cell(name, raw),)) for raw in raws
    ]
    plan = plan_of()
    place = list(COLUMNS).index(name)
    expected: list[bytes | None] = []
    failure = 0
    result = None
    try:
        result, directory = _encoded(changes, plan)
    except ChangeError as error:
        failure = error.cause.code
    encoder = plan.column(directory, 0).encoder if result is not None else None
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
    _, directory = _encoded([Insert(**HEAD, table="T", rowid="", after=(cell(name, None),))], plan)
    return plan.column(directory, 0).encoder


def test_plain_values_are_converted_by_the_kernel() -> None:
    plan = plan_of()
    _, directory = _encoded(
        [Insert(**HEAD, table="T", rowid="", after=tuple(cell(name, None) for name in COLUMNS))],
        plan,
    )
    bound = (plan.column(directory, number) for number in range(len(COLUMNS)))
    forms = {c.encoder.column_name: c.form for c in bound}
    assert [name for name, form in forms.items() if form is PlainForm.NONE] == ["CT"]


def test_images_of_every_kind() -> None:
    one, two = encode_number(1), encode_number(2)
    changes: list[Insert | Update | Delete] = [
        Update(**HEAD, table="T", rowid="A" * 18, before=(cell("I8", one), cell("TX", b"x")),
               after=(cell("TX", b"y"),)),
        Delete(**HEAD, table="T", rowid="A" * 18, before=(cell("I8", two), cell("TX", b"z"))),
        Insert(**HEAD, table="T", rowid="B" * 18, after=(cell("I8", two),)),
        Update(**HEAD, table="T", rowid="", before=(cell("I8", one),),
               after=(cell("TX", None),)),
    ]  # fmt: skip
    result, _ = _encoded(changes, plan_of())
    key, text = list(COLUMNS).index("I8"), list(COLUMNS).index("TX")
    assert result.kind.tolist() == [6, 5, 4, 6]
    assert result.row[0] == result.row[1] != result.row[2]
    assert result.row[3] == 0
    assert result.before.length[[0, 1, 3], key].tolist() == [8, 8, 8]
    assert result.before.length[:2, text].tolist() == [-2, -2]  # not needed: the key is there
    assert result.after.length[[0, 2, 3], text].tolist() == [1, -2, -1]
    assert result.after.length[[0, 2, 3], key].tolist() == [-2, 8, -2]


def test_the_hash_of_a_row_id_is_of_its_bytes_alone() -> None:
    """RowId stands behind the names, and its size is byte 35 (protocol, “Elements”)."""
    # What is hashed is only compared: the machine's integers wrap.
    kernel = interpreted(row_columns._row_id_hash)

    def of(row_id: bytes, schema: bytes = b"S", table: bytes = b"T") -> int:
        sizes = bytes([len(schema), len(table), len(row_id)])
        element = b"\xee" * 33 + sizes + schema + table + row_id
        data = np.frombuffer(b"\xdd" * 3 + element + bytes(16), np.uint8)
        with np.errstate(over="ignore"):
            return int(kernel(data, 3 + 36 + len(schema) + len(table), len(row_id)))

    row_id = b"AAARwWAAYAAAAAOAAA"
    assert of(b"") == of(b"", b"SCHEMA") == 0
    seen = {0}
    for size in range(1, len(row_id) + 1):
        one = row_id[:size]
        hashes = {of(one), of(one, b"SCHEMA", b"TABLES"), of(one, b"", b"TT")}
        assert len(hashes) == 1
        changed = [one[:at] + b"z" + one[at + 1 :] for at in range(size)]
        hashes |= {of(other) for other in changed}
        assert len(hashes) == 1 + size
        assert not hashes & seen
        seen |= hashes
