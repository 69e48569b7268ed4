"""Element plans: names that do not fit are refused with the table and column."""

from __future__ import annotations

import pickle

import pytest

from olr_pg.dictionary.model import Column, Table
from olr_pg.errors import OlrPgError
from olr_pg.wire.plan import build_element_plan


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
