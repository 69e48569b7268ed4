"""Keys, indexes and sequences as the rows that Oracle keeps of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from olr_pg.dictionary.structure import ForeignKey, Index, Sequence, Structure, UniqueKey
from olr_pg.simulator.oracle_net.catalogue import Catalogue
from olr_pg.simulator.oracle_net.dictionary_rows import insert_dictionary
from tests.oracle.conftest import ORDERS, make_snapshot

OF: dict[str, Any] = {"owner": "SHOP", "table": "ORDERS"}


def written(structure: Structure) -> Catalogue:
    catalogue = Catalogue(lambda: 1)
    insert_dictionary(catalogue, replace(make_snapshot(), structure=structure))
    return catalogue


def test_an_index_lists_its_columns_in_order() -> None:
    index = Index(**OF, name="IX", columns=("NAME", "ID"), unique=True)
    catalogue = written(Structure(indexes=(index,)))
    (obj,) = catalogue.rows('SELECT "OBJ#" FROM SYS."OBJ$" WHERE "NAME" = ?', "IX")[0]
    found = catalogue.rows('SELECT "BO#", "PROPERTY" FROM SYS."IND$" WHERE "OBJ#" = ?', obj)
    assert found == [(ORDERS.obj, 1)]
    columns = catalogue.rows(
        'SELECT "INTCOL#", "POS#" FROM SYS."ICOL$" WHERE "OBJ#" = ? ORDER BY "POS#"', obj
    )
    assert columns == [(3, 1), (1, 2)]


def test_a_foreign_key_refers_to_the_key_that_has_its_columns() -> None:
    structure = Structure(
        unique_keys=(UniqueKey(**OF, name="UK", columns=("NAME",)),),
        foreign_keys=(
            ForeignKey(
                **OF, name="TO_UK", columns=("NAME",), parent_owner="SHOP", parent="ORDERS",
                parent_columns=("NAME",), on_delete="cascade",
            ),
            ForeignKey(
                **OF, name="TO_PK", columns=("ID", "LINE"), parent_owner="SHOP", parent="ORDERS",
                parent_columns=("LINE", "ID"),
            ),
        ),
    )  # fmt: skip
    catalogue = written(structure)
    number: dict[object, object] = {}
    number.update(catalogue.rows('SELECT "NAME", "CON#" FROM SYS."CON$"'))  # type: ignore[arg-type]
    keys = {
        con: (kind, parent, action)
        for con, kind, parent, action in catalogue.rows(
            'SELECT "CON#", "TYPE#", "RCON#", "REFACT" FROM SYS."CDEF$"'
        )
    }
    assert keys[number["UK"]][0] == 3
    assert keys[number["TO_UK"]] == (4, number["UK"], 1)
    kind, parent, action = keys[number["TO_PK"]]
    assert (kind, keys[parent][0], action) == (4, 2, None)


def test_a_sequence_without_a_limit_has_oracle_s() -> None:
    sequence = Sequence(owner="SHOP", name="S", next=41, increment=-2, cache=0, cycle=True)
    found = written(Structure(sequences=(sequence,))).rows(
        'SELECT "HIGHWATER", "INCREMENT$", "CACHE", "CYCLE#", "MAXVALUE" FROM SYS."SEQ$"'
    )
    assert found[0][:4] == (41, -2, 0, 1)
    assert str(found[0][4]).endswith("9" * 28)
