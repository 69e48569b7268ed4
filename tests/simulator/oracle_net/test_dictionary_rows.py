"""A snapshot as the rows that it could have been read from: joined again, they are its tables.

The stand-in answers each level of supplemental logging, and changes it as Oracle does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.dictionary.structure import ForeignKey, Index, Sequence, Structure, UniqueKey
from olr_pg.oracle.supplemental import ALL, PRIMARY_KEY
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.model.tables import Logging
from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.oracle_net.catalogue import Catalogue
from olr_pg.simulator.oracle_net.dictionary_rows import insert_dictionary, partition_name
from olr_pg.simulator.oracle_net.state import OracleState
from olr_pg.simulator.simulation import simulate
from tests.oracle.conftest import NOTES, ORDERS, make_snapshot

if TYPE_CHECKING:
    from olr_pg.dictionary.model import Snapshot


def catalogue() -> Catalogue:
    made = Catalogue(lambda: 1)
    insert_dictionary(made, make_snapshot())
    return made


def test_columns_have_the_numbers_of_col() -> None:
    rows = catalogue().rows(
        'SELECT "NAME", "COL#", "SEGCOL#", "INTCOL#", "NULL$" FROM SYS."COL$" WHERE "OBJ#" = ?'
        ' ORDER BY "INTCOL#"',
        ORDERS.obj,
    )
    assert [row[:4] for row in rows] == [
        (column.name, column.col, column.segcol, column.intcol) for column in ORDERS.columns
    ]
    assert [bool(row[4]) for row in rows] == [not column.nullable for column in ORDERS.columns]


def test_the_key_s_columns_stand_in_its_order() -> None:
    rows = catalogue().rows(
        'SELECT c."INTCOL#" FROM SYS."CCOL$" c JOIN SYS."CDEF$" d ON d."CON#" = c."CON#"'
        ' WHERE d."OBJ#" = ? AND d."TYPE#" = 2 ORDER BY c."POS#"',
        ORDERS.obj,
    )
    assert tuple(number for (number,) in rows) == ORDERS.key


def test_partitions_are_objects_with_names_and_segments() -> None:
    found = catalogue().rows(
        'SELECT p."OBJ#", p."DATAOBJ#", o."SUBNAME" FROM SYS."TABPART$" p'
        ' JOIN SYS."OBJ$" o ON o."OBJ#" = p."OBJ#" WHERE p."BO#" = ? ORDER BY 1',
        NOTES.obj,
    )
    assert [row[:2] for row in found] == list(zip(NOTES.partitions, NOTES.segments, strict=True))
    assert [row[2] for row in found] == [partition_name(1), partition_name(2)]
    assert partition_name(1) != partition_name(2)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    folder = tmp_path_factory.mktemp("shop")
    return simulate(3, folder, workload="orders", size=20_000, shape=demo_shape()).snapshot


class Source:
    """The stand-in's views."""

    def __init__(self, snapshot: Snapshot, level: Logging) -> None:
        levels = {table.full_name: level for table in snapshot.tables}
        self.state = OracleState(snapshot, dbid=7, logging=levels)

    def database(self) -> dict[str, object]:
        names = ("MIN", "PK", "UI", "FK", "ALL")
        columns = ", ".join(f'"SUPPLEMENTAL_LOG_DATA_{name}"' for name in names)
        (row,) = self.state.catalogue.rows(f'SELECT {columns} FROM SYS."V$DATABASE"')
        return dict(zip(names, row, strict=True))

    def groups(self) -> list[tuple[object, ...]]:
        sql = 'SELECT "OBJ#", "TYPE#" FROM SYS."CDEF$" WHERE "TYPE#" >= 12 ORDER BY 1, 2'
        return [tuple(row) for row in self.state.catalogue.rows(sql)]


@pytest.mark.parametrize(
    ("level", "minimal", "everything", "kind"),
    [
        (Logging.NONE, "NO", "NO", None),
        (Logging.MINIMAL, "YES", "NO", None),
        (Logging.PRIMARY_KEY, "YES", "NO", 14),
        (Logging.ALL, "YES", "YES", None),
    ],
)
def test_it_tells_what_the_tables_log(
    shop: Snapshot, level: Logging, minimal: str, everything: str, kind: int | None
) -> None:
    source = Source(shop, level)
    assert (source.database()["MIN"], source.database()["ALL"]) == (minimal, everything)
    wanted = [] if kind is None else sorted((table.obj, kind) for table in shop.tables)
    assert source.groups() == wanted


@pytest.mark.parametrize(
    ("words", "column"),
    [("(PRIMARY KEY)", "PK"), ("(UNIQUE)", "UI"), ("(FOREIGN KEY)", "FK"), ("(ALL)", "ALL")],
)
def test_the_databases_level_is_added_and_dropped(shop: Snapshot, words: str, column: str) -> None:
    source = Source(shop, Logging.MINIMAL)
    for verb, value in (("ADD", "YES"), ("DROP", "NO")):
        source.state.command(f"ALTER DATABASE {verb} SUPPLEMENTAL LOG DATA {words} COLUMNS")
        assert source.database()[column] == value
    source.state.command("ALTER DATABASE DROP SUPPLEMENTAL LOG DATA")
    assert source.database()["MIN"] == "NO"


@pytest.mark.parametrize(
    ("level", "kind"), [(PRIMARY_KEY, 14), ("UNIQUE", 15), ("FOREIGN KEY", 16), (ALL, 17)]
)
def test_a_tables_level_is_added_and_dropped(shop: Snapshot, level: str, kind: int) -> None:
    source, table = Source(shop, Logging.MINIMAL), shop.tables[0]
    place = f'ALTER TABLE "{table.owner}"."{table.name}"'
    source.state.command(f"{place} ADD SUPPLEMENTAL LOG DATA ({level}) COLUMNS")
    assert source.groups() == [(table.obj, kind)]
    source.state.command(f"{place} DROP SUPPLEMENTAL LOG DATA ({level}) COLUMNS")
    assert source.groups() == []


def test_named_groups_and_schemas(shop: Snapshot) -> None:
    source, table = Source(shop, Logging.MINIMAL), shop.tables[0]
    one, two = (column.name for column in table.columns[:2])
    source.state.command(
        f"ALTER TABLE {table.owner}.{table.name} ADD SUPPLEMENTAL LOG GROUP G1"
        f" ({one}, {two} NO LOG) ALWAYS"
    )
    assert source.groups() == [(table.obj, 12)]
    sql = (
        'SELECT "INTCOL#", "SPARE1" FROM SYS."CCOL$" WHERE "CON#" ='
        ' (SELECT "CON#" FROM SYS."CDEF$" WHERE "TYPE#" = 12) ORDER BY 1'
    )
    rows = [tuple(row) for row in source.state.catalogue.rows(sql)]
    assert rows == [(table.columns[0].intcol, 0), (table.columns[1].intcol, 1)]
    for level, bits in (("all", 8), ("keys", 7), ("none", 0)):
        source.state.command(
            f"BEGIN DBMS_CAPTURE_ADM.PREPARE_SCHEMA_INSTANTIATION('{table.owner}', '{level}'); END;"
        )
        found = source.state.catalogue.rows(
            f'SELECT "SPARE1" FROM SYS."USER$" WHERE "NAME" = \'{table.owner}\''
        )
        assert [row[0] for row in found] == [bits]


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE SHOP.NOTHING ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS",
        "ALTER TABLE SHOP.ORDERS ADD SUPPLEMENTAL LOG GROUP G (NOTHING)",
        "BEGIN DBMS_CAPTURE_ADM.PREPARE_SCHEMA_INSTANTIATION('NOBODY', 'all'); END;",
    ],
)
def test_what_is_not_there_is_refused(shop: Snapshot, sql: str) -> None:
    with pytest.raises(OraError):
        Source(shop, Logging.ALL).state.command(sql)


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
