"""Element plans: names that do not fit are refused with the table and column."""

from __future__ import annotations

import pickle
import struct

import pytest

from olr_pg.dictionary.model import Column, Table
from olr_pg.errors import OlrPgError
from olr_pg.wire.element_plan import build_element_plan
from olr_pg.wire.elements import NULL_NUMBER


def table(owner: str = "S", name: str = "T", column: str = "C") -> Table:
    return Table(owner, name, 1, 1, (Column(column, 1, 1, 1, 2, 22),))


def test_names_of_255_bytes_fit() -> None:
    plan = build_element_plan([table("é" * 127 + "x", "T" * 255, "C" * 255)])
    assert plan.table_first.tolist() == [0, 7 + 255 + 255]
    assert plan.column_size.tolist() == [37 + 255]


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        (table(owner="é" * 128), {"table": "é" * 128 + ".T"}),
        (table(name="T" * 256), {"table": "S." + "T" * 256}),
        (table(column="C" * 256), {"table": "S.T", "column": "C" * 256}),
    ],
)
def test_a_longer_name_is_refused(wrong: Table, where: dict[str, str]) -> None:
    with pytest.raises(OlrPgError) as caught:
        build_element_plan([table(), wrong])
    assert caught.value.code == 4006
    assert caught.value.where == where


def test_no_tables_give_an_empty_plan() -> None:
    plan = build_element_plan([])
    assert plan.table_first.tolist() == plan.table_column.tolist() == [0]


def test_a_plan_that_travelled_has_the_types_that_kernels_are_compiled_for() -> None:
    plan = build_element_plan([table()])
    travelled = pickle.loads(pickle.dumps(plan))
    for name in plan._fields:
        assert getattr(plan, name).flags.writeable == getattr(travelled, name).flags.writeable


@pytest.mark.parametrize(
    ("type_code", "precision", "scale", "told"),
    [
        (2, 10, 2, (10, 2)),
        (2, 126, None, (126, NULL_NUMBER)),
        (2, None, None, (NULL_NUMBER, NULL_NUMBER)),
        (100, None, None, (NULL_NUMBER, NULL_NUMBER)),
        (1, 5, 0, (NULL_NUMBER, NULL_NUMBER)),
        (12, 0, 0, (NULL_NUMBER, NULL_NUMBER)),
        (180, None, 6, (NULL_NUMBER, NULL_NUMBER)),
        (181, 0, 9, (NULL_NUMBER, NULL_NUMBER)),
        (182, 2, 0, (NULL_NUMBER, NULL_NUMBER)),
        (183, 2, 6, (NULL_NUMBER, NULL_NUMBER)),
        (231, 0, 3, (NULL_NUMBER, NULL_NUMBER)),
    ],
)
def test_precision_and_scale_are_those_of_numeric_types(
    type_code: int, precision: int | None, scale: int | None, told: tuple[int, int]
) -> None:
    column = Column("C", 1, 1, 1, type_code, 22, precision, scale)
    plan = build_element_plan([Table("S", "T", 1, 1, (column,))])
    for header, order in ((plan.column_little[0], "<"), (plan.column_big[0], ">")):
        name_size, _, code, *numbers = struct.unpack_from(order + "BQHqq", header.tobytes())
        assert (name_size, code) == (1, type_code)
        assert tuple(numbers) == told
