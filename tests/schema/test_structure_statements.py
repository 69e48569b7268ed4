"""A new sequence in the target returns the value that the one of the source returns next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import sql

from olr_pg.dictionary.inventory import Inventory, InventoryTable
from olr_pg.dictionary.structure import INT64_MAX, INT64_MIN, Sequence
from olr_pg.load.target_structure import advance_sequence
from olr_pg.schema.conversion import convert
from olr_pg.schema.structure_statements import sequence_statement
from olr_pg.schema.trial import CREATED, run_statements, tried
from tests.schema.shop_relations import SETTINGS, column

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = sql.Identifier('it\'s "S"')
UP: dict[str, Any] = {"minimum": -3, "maximum": 99}
DOWN: dict[str, Any] = {"increment": -5, "minimum": -100, "maximum": 7}

POSITIONS = {
    "new": ({"next": 1}, 1),
    "begins at 0": ({"next": 0, "minimum": 0}, 0),
    "begins below 0": ({"next": -3, **UP}, -3),
    "at its limit": ({"next": 99, **UP}, 99),
    "exhausted": ({"next": 100, **UP}, None),
    "cycles next": ({"next": 100, **UP, "cycle": True}, -3),
    "in a cycle": ({"next": 42, **UP, "cycle": True}, 42),
    "downwards": ({"next": 7, **DOWN}, 7),
    "downwards at its limit": ({"next": -98, **DOWN}, -98),
    "downwards and exhausted": ({"next": -103, **DOWN}, None),
    "downwards and cycles next": ({"next": -103, **DOWN, "cycle": True}, 7),
    "steps beyond its limit": ({"next": 105, "increment": 10, **UP}, None),
    "of 64 bits": ({"next": INT64_MIN, "minimum": INT64_MIN}, INT64_MIN),
    "at the end of 64 bits": ({"next": INT64_MAX}, INT64_MAX),
}


@pytest.fixture
def target(postgres_database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        yield connection


def _next(target: psycopg.Connection[Any], name: str) -> int | None:
    """Return the next value; None if the sequence is exhausted."""
    try:
        row = target.execute("SELECT nextval(%s)", [name]).fetchone()
    except psycopg.errors.SequenceGeneratorLimitExceeded:
        return None
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("advanced", [0, 1, 2])
def test_a_new_sequence_goes_on_where_the_source_s_is(
    target: psycopg.Connection[Any], position: str, advanced: int
) -> None:
    properties, expected = POSITIONS[position]
    one = Sequence(owner="K", name="S", **properties)
    target.execute(sequence_statement(NAME, one))
    for _ in range(advanced):
        advance_sequence(target, NAME, one)
    assert _next(target, NAME.as_string()) == expected


@pytest.mark.parametrize("digits", [4, 9, 18])
@pytest.mark.parametrize("position", POSITIONS)
def test_an_identity_column_goes_on_where_the_source_s_is(
    target: psycopg.Connection[Any], position: str, digits: int
) -> None:
    """The table is created whatever the limits of the sequence are. PostgreSQL cannot create an
    identity column whose sequence is exhausted: this one returns its limit once more.
    """
    properties, expected = POSITIONS[position]
    if "64 bits" in position and digits < 18:
        pytest.skip("the column cannot have this value")
    one = Sequence(owner="K", name="ISEQ$$_1", **properties)
    key = column(
        "ID", "NUMBER", precision=digits, scale=0, identity="BY DEFAULT",
        identity_sequence="ISEQ$$_1",
    )  # fmt: skip
    found = Inventory(
        owners=("K",),
        tables=(InventoryTable(owner="K", name="T", columns=(key,)),),
        sequences=(one,),
    )
    outcomes = run_statements(target, tried(target, convert(found, SETTINGS)))
    assert {(one.state, one.reason) for one in outcomes} == {(CREATED, "")}
    if expected is None:
        expected = min(max(one.next, one.minimum), one.maximum)
    row = target.execute("INSERT INTO k.t DEFAULT VALUES RETURNING id").fetchone()
    assert row == (expected,)


def test_the_schema_has_an_exhausted_sequence_as_one(target: psycopg.Connection[Any]) -> None:
    one = Sequence(owner="K", name="S", next=100, minimum=1, maximum=99)
    found = Inventory(owners=("K",), sequences=(one,))
    outcomes = run_statements(target, tried(target, convert(found, SETTINGS)))
    assert {one.state for one in outcomes} == {CREATED}
    assert _next(target, "k.s") is None
