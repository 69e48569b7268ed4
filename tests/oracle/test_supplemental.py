"""What of a changed row is in redo, by every level at which supplemental logging is asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from olr_pg.dictionary.model import KeyKind
from olr_pg.oracle.dictionary_queries import read_dictionary
from olr_pg.oracle.supplemental import ALL, PRIMARY_KEY, unlogged_tables
from tests.oracle.conftest import LOOSE, NOTES, ORDERS

if TYPE_CHECKING:
    from olr_pg.dictionary.model import Snapshot
    from olr_pg.oracle.oracle_connection import OracleDatabase
    from olr_pg.simulator.oracle_net.state import OracleState

NAMES = tuple((table.owner, table.name) for table in (ORDERS, NOTES, LOOSE))


@pytest.fixture
def state(state: OracleState) -> OracleState:
    state.catalogue.update('UPDATE SYS."V$DATABASE" SET "SUPPLEMENTAL_LOG_DATA_ALL" = \'NO\'')
    return state


def missing(oracle: OracleDatabase, snapshot: Snapshot | None = None) -> dict[str, str]:
    """The level that each table lacks."""
    known = snapshot or read_dictionary(oracle, NAMES)
    return oracle.read(
        "testing",
        lambda one: {
            table.name: level for table, level in unlogged_tables(one, known, known.tables)
        },
    )


def test_the_level_that_would_do_is_named(oracle: OracleDatabase) -> None:
    assert missing(oracle) == {"ORDERS": PRIMARY_KEY, "Notes": ALL, "LOOSE": ALL}


@pytest.mark.parametrize(
    ("column", "rest"),
    [
        ("SUPPLEMENTAL_LOG_DATA_PK", {"Notes": ALL, "LOOSE": ALL}),
        ("SUPPLEMENTAL_LOG_DATA_ALL", {}),
    ],
)
def test_the_database_may_log_it(
    oracle: OracleDatabase, state: OracleState, column: str, rest: dict[str, str]
) -> None:
    state.catalogue.update(f'UPDATE SYS."V$DATABASE" SET "{column}" = \'YES\'')
    assert missing(oracle) == rest


@pytest.mark.parametrize(
    ("level", "rest"),
    [("(PRIMARY KEY) COLUMNS", {"Notes": ALL, "LOOSE": ALL}), ("(ALL) COLUMNS", {})],
)
def test_the_pdb_may_log_it(
    oracle: OracleDatabase, state: OracleState, level: str, rest: dict[str, str]
) -> None:
    """V$DATABASE tells of the whole database alone."""
    state.command(f"ALTER PLUGGABLE DATABASE ADD SUPPLEMENTAL LOG DATA {level}")
    assert missing(oracle) == rest
    rows = read_dictionary(oracle, NAMES).sys_rows
    assert rows is not None
    assert (rows.supp_log_db_primary, rows.supp_log_db_all) == ((1, 0) if rest else (0, 1))
    state.catalogue.denied.add("DBA_SUPPLEMENTAL_LOGGING")
    assert missing(oracle) == {"ORDERS": PRIMARY_KEY, "Notes": ALL, "LOOSE": ALL}


@pytest.mark.parametrize(("bits", "rest"), [(1, {"Notes": ALL, "LOOSE": ALL}), (8, {})])
def test_the_schema_may_log_it(
    oracle: OracleDatabase, state: OracleState, bits: int, rest: dict[str, str]
) -> None:
    state.catalogue.update('UPDATE SYS."USER$" SET "SPARE1" = ?', bits)
    assert missing(oracle) == rest


@pytest.mark.parametrize(("kind", "logged"), [(14, {"ORDERS"}), (17, {"ORDERS", "Notes", "LOOSE"})])
def test_the_table_may_log_it(
    oracle: OracleDatabase, state: OracleState, kind: int, logged: set[str]
) -> None:
    for number, table in enumerate((ORDERS, NOTES, LOOSE), 9_000):
        row = {"CON#": number, "OBJ#": table.obj, "TYPE#": kind, "ENABLED": 1}
        state.catalogue.insert("CDEF$", [row])
    found = missing(oracle)
    # A log group of the primary key is none where there is no primary key.
    assert {name for _, name in NAMES} - found.keys() == logged


def test_a_named_group_must_have_the_whole_key(oracle: OracleDatabase, state: OracleState) -> None:
    state.catalogue.insert(
        "CDEF$", [{"CON#": 9_000, "OBJ#": ORDERS.obj, "TYPE#": 12, "ENABLED": 1}]
    )
    column = {"CON#": 9_000, "OBJ#": ORDERS.obj}
    state.catalogue.insert("CCOL$", [column | {"INTCOL#": 1, "POS#": 1, "SPARE1": 0}])
    assert "ORDERS" in missing(oracle)
    state.catalogue.insert("CCOL$", [column | {"INTCOL#": 2, "POS#": 2, "SPARE1": 1}])
    assert "ORDERS" in missing(oracle), "a column marked NO LOG counts for nothing"
    state.catalogue.update('UPDATE SYS."CCOL$" SET "SPARE1" = 0 WHERE "CON#" = 9000')
    assert "ORDERS" not in missing(oracle)


def test_without_a_key_all_columns_are_wanted(oracle: OracleDatabase) -> None:
    snapshot = read_dictionary(oracle, NAMES)
    keyless = [replace(table, key_kind=KeyKind.NONE, key=()) for table in snapshot.tables]
    found = missing(oracle, replace(snapshot, tables=tuple(keyless)))
    assert found == dict.fromkeys(("ORDERS", "Notes", "LOOSE"), ALL)
