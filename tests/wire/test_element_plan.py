"""Element plans: names that do not fit are refused with the table and column."""

from __future__ import annotations

import pickle
import struct

import pytest

from olr_pg.dictionary.model import Column, Database, Snapshot, Table
from olr_pg.dictionary.true_charsets import with_true_charsets
from olr_pg.errors import OlrPgError
from olr_pg.wire.element_plan import build_element_plan, extended_element_plan
from olr_pg.wire.elements import NULL_CHARSET_FORM, NULL_CHARSET_ID, NULL_NUMBER


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


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize("longest", [0, 2])
def test_an_extended_plan_is_that_of_all_its_tables(before: int, longest: int) -> None:
    tables = [table(name=f"T{n}", column="C" * (200 if n == longest else 5)) for n in range(4)]
    whole = build_element_plan(tables)
    found = extended_element_plan(build_element_plan(tables[:before]), tables[before:])
    for name, array in found._asdict().items():
        wanted = getattr(whole, name)
        assert (array.dtype, array.shape, array.tolist()) == (
            wanted.dtype,
            wanted.shape,
            wanted.tolist(),
        )
        assert array.flags.writeable
        assert array.flags.c_contiguous


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


def test_a_client_finds_the_set_of_a_text_by_its_number_and_form() -> None:
    columns = (
        Column("NAME", 1, 1, 1, 1, 40, charset_id=1, charset_form=1),
        Column("CODE", 2, 2, 2, 96, 4, charset_id=1, charset_form=1),
        Column("NOTE", 3, 3, 3, 112, 4000, charset_id=1, charset_form=1),
        Column("LOCAL", 4, 4, 4, 1, 40, charset_id=2000, charset_form=2),
        Column("ID", 5, 5, 5, 2, 22),
    )
    declared = Snapshot(
        5, Database("D", charset="US7ASCII"), (Table("S", "T", 1, 1, columns),)
    )  # fmt: skip
    (found,) = with_true_charsets(declared, [("*.CODE", "US7ASCII"), ("*", "ZHS16GBK")]).tables

    def told(of: Table) -> list[tuple[int, int]]:
        headers = build_element_plan([of]).column_little
        return [struct.unpack_from("<QB", header.tobytes(), 27) for header in headers]

    plain, none = [(1, 1), (1, 1), (1, 1), (2000, 2)], [(NULL_CHARSET_ID, NULL_CHARSET_FORM)]
    assert told(declared.tables[0]) == plain + none
    assert told(found) == [(852, 3), (1, 1), (852, 3), (2000, 2), *none]
