"""Keys, indexes and sequences through the stand-in, into a file and back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.dictionary.structure import ForeignKey, Index, Sequence, Structure, UniqueKey
from olr_pg.errors import OlrPgError
from olr_pg.oracle.dictionary_queries import read_dictionary, read_structure
from olr_pg.simulator.oracle_net.state import OracleState
from tests.oracle.conftest import DBID, make_snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.oracle.oracle_connection import OracleDatabase

ORDERS: dict[str, Any] = {"owner": "SHOP", "table": "ORDERS"}
STRUCTURE = Structure(
    unique_keys=(UniqueKey(**ORDERS, name="ORDERS_UK", columns=("NAME", "ID")),),
    indexes=(
        Index(**ORDERS, name="ORDERS_NAME", columns=("NAME",)),
        Index(**ORDERS, name="Odd name", columns=("NAME", "LINE"), unique=True),
    ),
    foreign_keys=(
        ForeignKey(
            owner="SHOP",
            table="Notes",
            name="NOTES_FK",
            columns=("SIZE", "ID"),
            parent_owner="SHOP",
            parent="ORDERS",
            parent_columns=("NAME", "ID"),
            on_delete="set null",
        ),
        ForeignKey(
            **ORDERS,
            name="SELF_FK",
            columns=("ID", "LINE"),
            parent_owner="SHOP",
            parent="ORDERS",
            # The order of the primary key.
            parent_columns=("LINE", "ID"),
        ),
    ),
    sequences=(
        Sequence(owner="SHOP", name="DOWN", next=-7, increment=-1, minimum=-100, cycle=True),
        Sequence(owner="SHOP", name="ORDERS_SEQ", next=41, cache=0),
    ),
)
NAMES = (("SHOP", "ORDERS"), ("SHOP", "Notes"))


@pytest.fixture
def state() -> OracleState:
    return OracleState(replace(make_snapshot(), structure=STRUCTURE), dbid=DBID)


def test_what_is_read_is_what_is_there(oracle: OracleDatabase, tmp_path: Path) -> None:
    snapshot = read_dictionary(oracle, NAMES)
    found = read_structure(oracle, snapshot)
    assert found == STRUCTURE
    path = str(tmp_path / "dictionary.json")
    write_snapshot(replace(snapshot, structure=found), path)
    assert load_snapshot(path).structure == STRUCTURE


def test_what_has_no_equal_is_named(oracle: OracleDatabase, state: OracleState) -> None:
    update = state.catalogue.update
    number = '(SELECT "OBJ#" FROM SYS."OBJ$" WHERE "NAME" = \'{}\')'
    functional = f'UPDATE SYS."IND$" SET "PROPERTY" = 16 WHERE "OBJ#" = {number}'
    assert update(functional.format("ORDERS_NAME")) == 1
    unusable = f'UPDATE SYS."IND$" SET "FLAGS" = 1 WHERE "OBJ#" = {number}'
    assert update(unusable.format("Odd name")) == 1
    assert update('UPDATE SYS."CDEF$" SET "ENABLED" = NULL WHERE "TYPE#" = 4') == 2
    found = read_structure(oracle, read_dictionary(oracle, NAMES))
    assert not found.indexes
    assert not found.foreign_keys
    assert {one.name: (one.reason, one.definition) for one in found.left_out} == {
        "ORDERS_NAME": (
            "the index uses an expression",
            'CREATE INDEX "ORDERS_NAME" ON "SHOP"."ORDERS" ("NAME")',
        ),
        "Odd name": (
            "the index is unusable in the source",
            'CREATE UNIQUE INDEX "Odd name" ON "SHOP"."ORDERS" ("NAME", "LINE")',
        ),
    }


def test_texts_are_listed_with_what_they_define(oracle: OracleDatabase, state: OracleState) -> None:
    orders, notes = 72_000, 72_100
    update = state.catalogue.update
    texts = [
        (orders, "LINE", "1 \n"),
        (orders, "NAME", "NULL"),
        (orders, "ID", '"SHOP"."ISEQ$$_72000".nextval'),
        (notes, "TWICE", '"ID"*2'),
        (notes, "GUARD", 'UPPER("SIZE")'),
    ]
    for obj, name, text in texts:
        change = 'UPDATE SYS."COL$" SET "DEFAULT$" = ? WHERE "OBJ#" = ? AND "NAME" = ?'
        assert update(change, text, obj, name) == 1
    # An index on the hidden column, whose text is the expression.
    index = {"OBJ#": 96_000, "DATAOBJ#": 96_000, "TYPE#": 1, "FLAGS": 0}
    state.catalogue.insert("OBJ$", [{**index, "NAME": "NOTES_UPPER", "OWNER#": 136}])
    state.catalogue.insert("IND$", [{**index, "BO#": notes, "PROPERTY": 16}])
    places = [{"OBJ#": 96_000, "BO#": notes, "INTCOL#": i, "POS#": p} for p, i in ((1, 3), (2, 1))]
    state.catalogue.insert("ICOL$", places)
    for con, enabled in ((9_900, 1), (9_901, None)):
        state.catalogue.insert("CON$", [{"CON#": con, "OWNER#": 136, "NAME": f"CHECK_{con}"}])
        check = {"CON#": con, "OBJ#": orders, "TYPE#": 1, "CONDITION": "LINE > 0"}
        state.catalogue.insert("CDEF$", [{**check, "ENABLED": enabled}])
    found = read_structure(oracle, read_dictionary(oracle, NAMES))
    assert {(one.kind, one.full_name, one.name, one.definition) for one in found.left_out} == {
        (
            "check constraint", "SHOP.ORDERS", "CHECK_9900",
            'ALTER TABLE "SHOP"."ORDERS" ADD CONSTRAINT "CHECK_9900" CHECK (LINE > 0)',
        ),
        ("default", "SHOP.ORDERS", "LINE", 'ALTER TABLE "SHOP"."ORDERS" MODIFY "LINE" DEFAULT 1'),
        (
            "identity column", "SHOP.ORDERS", "ID",
            'ALTER TABLE "SHOP"."ORDERS" MODIFY "ID" DEFAULT "SHOP"."ISEQ$$_72000".nextval',
        ),
        (
            "virtual column", "SHOP.Notes", "TWICE",
            'ALTER TABLE "SHOP"."Notes" ADD "TWICE" GENERATED ALWAYS AS ("ID"*2)',
        ),
        (
            "index", "SHOP.Notes", "NOTES_UPPER",
            'CREATE INDEX "NOTES_UPPER" ON "SHOP"."Notes" (UPPER("SIZE"), "ID")',
        ),
    }  # fmt: skip


def test_without_the_privilege_it_is_said_which(oracle: OracleDatabase, state: OracleState) -> None:
    snapshot = read_dictionary(oracle, NAMES)
    state.catalogue.denied.add("SEQ$")
    with pytest.raises(OlrPgError) as caught:
        read_structure(oracle, snapshot)
    assert "SEQ$" in caught.value.detail
