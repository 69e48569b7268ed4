"""The dictionary, read over the wire from SYS tables, is the one that was put there.

Tables with compressed segments are found by the bits of SEG$.SPARE1.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import pytest

from olr_pg.config.source_section import OracleSource
from olr_pg.datatypes.binary_xml import NO_TOKENS, QualifiedName, XmlTokens
from olr_pg.dictionary.model import KeyKind, Table
from olr_pg.dictionary.stored_segments import Compression
from olr_pg.dictionary.sys_rows import SYS_COLUMNS
from olr_pg.dictionary.sys_tables import join_tables
from olr_pg.errors import OlrPgError
from olr_pg.oracle.dictionary_queries import (
    KINDS,
    read_compression,
    read_dictionary,
    read_unchanged,
    read_xml_tokens,
)
from olr_pg.oracle.oracle_connection import OracleDatabase
from olr_pg.oracle.tables import BATCH
from olr_pg.simulator.oracle_net.dictionary_rows import insert_table
from olr_pg.simulator.oracle_net.serve import StandIn
from olr_pg.simulator.oracle_net.session import Fault
from olr_pg.simulator.oracle_net.state import OracleState
from tests.oracle.conftest import DBID, LOOSE, NOTES, ORDERS, SCN, TABLES, make_snapshot, number

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.dictionary.sys_rows import SysRow

NAMES = [(table.owner, table.name) for table in TABLES]


def test_every_table_comes_back_as_it_was(oracle: OracleDatabase) -> None:
    snapshot = read_dictionary(oracle, NAMES)
    assert snapshot.scn == SCN
    assert set(snapshot.tables) == set(TABLES)


def test_a_partitioned_index_organised_table_comes_back_as_it_was() -> None:
    lines = replace(
        ORDERS,
        name="LINES",
        obj=72_400,
        dataobj=None,
        key=(1, 2),
        partitions=(72_410, 72_411, 72_414, 72_415),
        segments=(72_510, 72_411, 0, 0),
        index_organised=True,
    )
    state = OracleState(replace(make_snapshot(), tables=(*TABLES, lines)), dbid=DBID)
    with StandIn(state) as server:
        oracle = OracleDatabase(
            OracleSource.model_validate(
                {"user": "olr", "password": "olr", "server": server.connect_string}
            )
        )
        found = read_dictionary(oracle, [*NAMES, ("SHOP", "LINES")])
        oracle.close()
    assert found.find("SHOP", "LINES") == lines
    assert found.sys_rows is not None
    assert [row.obj for row in found.sys_rows.sys_indpart] == [72_410, 72_411]


def test_the_real_dictionary_comes_back_as_it_was(real_log_dir: Path) -> None:
    """The rows of the real SYS tables, by their real ROWIDs, through the server and back."""
    from olr_pg.dictionary.loader import load_snapshot

    real = load_snapshot(str(real_log_dir / "TEST-chkpt-2266634.json"))
    assert real.sys_rows is not None
    # What a checkpoint does not tell of a LOB, a database always does.
    lobs = [replace(row, flags=0, property=0) for row in real.sys_rows.sys_lob]
    rows = real.sys_rows.model_copy(update={"sys_lob": lobs})
    state = OracleState(replace(real, tables=()), dbid=DBID)
    fields = {name for name in KINDS if name not in ("sys_ind", "sys_icol", "sys_user", "sys_ts")}
    state.catalogue.update('DELETE FROM SYS."TS$"')
    for name in (*fields, "sys_user", "sys_ts"):
        state.catalogue.insert(
            KINDS[name].name,
            [
                {
                    "ROWID": row.row_id,
                    **{column: stored(row, field) for field, column in SYS_COLUMNS[name].items()},
                }
                for row in getattr(rows, name)
            ],
        )
    with StandIn(state) as server:
        source = OracleSource.model_validate(
            {"user": "olr", "password": "olr", "server": server.connect_string}
        )
        oracle = OracleDatabase(source)
        found = read_dictionary(oracle, [(table.owner, table.name) for table in real.tables])
        with_tokens = oracle.read("testing", lambda c: read_xml_tokens(c, real.scn))
        oracle.close()
    assert found.database.name == real.database.name
    assert set(found.tables) == set(join_tables(rows, "", all_columns_logged=True))
    assert found.sys_rows is not None
    for name in fields:
        read = set(map(repr, getattr(found.sys_rows, name)))
        there = set(map(repr, getattr(rows, name)))
        # The rows of indexes, but those of LOBs, are not needed.
        left = set() if name in ("sys_obj", "sys_deferredstg") else there - read
        assert (name, read - there, left) == (name, set(), set())
    assert with_tokens == real.xml_tokens


def stored(row: SysRow, field: str) -> object:
    """A field as its column has it."""
    value = getattr(row, field)
    if field == "default" and value is not None:
        return bytes.fromhex(value)
    return None if value == -1 else value


def test_only_the_named_tables_are_read(oracle: OracleDatabase) -> None:
    snapshot = read_dictionary(oracle, [("SHOP", "Notes"), ("SHOP", "NOTES"), ("NOBODY", "X")])
    assert snapshot.tables == (NOTES,)


def test_rows_have_rowids_so_that_ddl_can_be_followed(oracle: OracleDatabase) -> None:
    rows = read_dictionary(oracle, NAMES).sys_rows
    assert rows is not None
    found = [row.row_id for row in (*rows.sys_obj, *rows.sys_col, *rows.sys_tab)]
    assert all(len(rowid) == 18 for rowid in found)
    assert len(set(found)) == len(found)


def test_an_index_organised_table_is_known_by_its_index(
    stand_in: StandIn, oracle: OracleDatabase
) -> None:
    columns = (number("ID", 1, nullable=False), number("QUANTITY", 2))
    table = Table(
        "SHOP", "STOCK", 81_000, None, columns, (81_001,), key_kind=KeyKind.PRIMARY, key=(1,),
        segments=(81_002,), index_organised=True, row_dependencies=False,
    )  # fmt: skip
    insert_table(stand_in.state.catalogue, table, 136, count(9_000))
    assert read_dictionary(oracle, [("SHOP", "STOCK")]).tables == (table,)
    stand_in.state.catalogue.update('UPDATE SYS."IND$" SET FLAGS = 32 WHERE "OBJ#" = 81001')
    (refused,) = read_dictionary(oracle, [("SHOP", "STOCK")]).tables
    assert refused.refusal == "the table is index-organised with a compressed key"


def test_more_tables_than_fit_into_one_list(stand_in: StandIn, oracle: OracleDatabase) -> None:
    tables = [
        Table("SHOP", f"T{n}", 80_000 + n, 80_000 + n, (number("ID", 1),), row_dependencies=False)
        for n in range(BATCH + 3)
    ]
    for table in tables:
        insert_table(stand_in.state.catalogue, table, 136, iter(()))
    snapshot = read_dictionary(oracle, [(table.owner, table.name) for table in tables])
    assert sorted(snapshot.tables, key=lambda table: table.obj) == tables


def test_a_disabled_primary_key_is_none(state: OracleState, oracle: OracleDatabase) -> None:
    state.catalogue.update('UPDATE SYS."CDEF$" SET "ENABLED" = NULL')
    table = read_dictionary(oracle, NAMES).find("SHOP", "ORDERS")
    assert table is not None
    assert table.key_kind is KeyKind.NONE


@pytest.mark.parametrize(
    "change",
    [
        '"IND$" SET "PROPERTY" = 0',
        '"IND$" SET "FLAGS" = 1',
        '"IND$" SET "PROPERTY" = 17',
        '"COL$" SET "NULL$" = 0',
    ],
    ids=["not unique", "unusable", "functional", "nullable"],
)
def test_an_index_that_finds_no_row_is_no_key(
    state: OracleState, oracle: OracleDatabase, change: str
) -> None:
    state.catalogue.update(f"UPDATE SYS.{change}")
    table = read_dictionary(oracle, NAMES).find("SHOP", "Notes")
    assert table is not None
    assert table.key_kind is KeyKind.NONE


def test_every_table_is_read_as_of_the_same_scn(state: OracleState, oracle: OracleDatabase) -> None:
    state.scn = 9_000
    assert read_dictionary(oracle, NAMES).scn == 9_000
    assert read_dictionary(oracle, NAMES, 6_000).scn == 6_000
    state.catalogue.undo_scn = 7_000
    with pytest.raises(OlrPgError) as caught:
        read_dictionary(oracle, NAMES, 6_000)
    assert caught.value.code == 7005
    assert "ORA-01555" in caught.value.detail


def _numbers(state: OracleState) -> list[tuple[int, str]]:
    """The objects of the tables: the tables, their partitions, indexes and LOB segments."""
    found = state.catalogue.rows('SELECT "OBJ#", "NAME" FROM SYS."OBJ$"')
    return [(int(str(number)), str(name)) for number, name in found]


def test_ddl_of_each_object_of_a_table_is_noticed_without_undo(
    state: OracleState, oracle: OracleDatabase
) -> None:
    update = 'UPDATE SYS."OBJ$" SET "ORA_ROWSCN" = ?'
    state.scn = 9_000
    state.catalogue.undo_scn = state.scn
    state.catalogue.update(update, 6_000)
    snapshot, changed = read_unchanged(oracle, NAMES, 6_000)
    assert (snapshot.scn, changed) == (6_000, [])
    assert set(snapshot.tables) == set(TABLES)
    numbers = _numbers(state)
    assert len(numbers) > len(TABLES)
    for obj, name in numbers:
        state.catalogue.update(f'{update} WHERE "OBJ#" = ?', 6_001, obj)
        assert f"SHOP.{name}" in read_unchanged(oracle, NAMES, 6_000)[1]
        assert read_unchanged(oracle, NAMES, 6_001)[1] == []
        state.catalogue.update(update, 6_000)
    assert read_unchanged(oracle, [*NAMES, ("SHOP", "GONE")], 6_000)[1] == ["SHOP.GONE"]


def test_ddl_of_other_tables_does_not_matter(state: OracleState, oracle: OracleDatabase) -> None:
    listed = [pair for pair in NAMES if pair[1] != NOTES.name]
    state.catalogue.update('UPDATE SYS."OBJ$" SET "ORA_ROWSCN" = 1')
    change = 'UPDATE SYS."OBJ$" SET "ORA_ROWSCN" = ? WHERE "OBJ#" = ?'
    state.catalogue.update(change, SCN, NOTES.obj)
    assert read_unchanged(oracle, listed, 6)[1] == []


def test_a_snapshot_too_old_is_read_again_as_of_now(
    stand_in: StandIn, oracle: OracleDatabase
) -> None:
    fault = stand_in.faults.add(Fault("execute", '"COL$"', error=(1555, "too old"), times=2))
    assert read_dictionary(oracle, NAMES).find("SHOP", "ORDERS") == ORDERS
    assert fault.hits == 2


def test_a_privilege_that_is_missing_is_named(state: OracleState, oracle: OracleDatabase) -> None:
    state.catalogue.denied.add("LOB$")
    with pytest.raises(OlrPgError) as caught:
        read_dictionary(oracle, NAMES)
    assert caught.value.code == 7004
    assert "LOB$" in caught.value.detail
    assert "grants.sql" in caught.value.action


@pytest.mark.parametrize("parts", [(), (82_001, 82_002)], ids=["heap", "partitions"])
def test_a_compressed_segment_refuses_its_table_unless_all_columns_are_logged(
    stand_in: StandIn, oracle: OracleDatabase, parts: tuple[int, ...]
) -> None:
    table = Table(
        "SHOP", "PACKED", 82_000, None if parts else 82_000, (number("ID", 1),), parts,
        segments=parts, row_dependencies=False,
    )  # fmt: skip
    catalogue = stand_in.state.catalogue
    insert_table(catalogue, table, 136, iter(()))
    catalogue.update('UPDATE "V$DATABASE" SET "SUPPLEMENTAL_LOG_DATA_ALL" = ?', "NO")
    name = [("SHOP", "PACKED")]
    assert read_dictionary(oracle, name).tables == (table,)
    segment = parts[-1] if parts else 82_000
    change = 'UPDATE SYS."SEG$" SET "SPARE1" = "SPARE1" + ? WHERE "BLOCK#" = ?'
    catalogue.update(change, 0x800, segment)
    (refused,) = read_dictionary(oracle, name).tables
    assert refused.refusal is not None
    assert "compressed" in refused.refusal
    catalogue.insert("CDEF$", [{"CON#": 9_900, "OBJ#": 82_000, "TYPE#": 17, "ENABLED": 1}])
    assert read_dictionary(oracle, name).tables == (table,)
    catalogue.update(change, 0x4000000, segment)
    (refused,) = read_dictionary(oracle, name).tables
    assert refused.refusal is not None
    assert "hybrid columnar" in refused.refusal
    assert ('partition "P2" has' if parts else "it has") in refused.refusal


TOKENS = XmlTokens(
    {"07": "http://www.w3.org/XML/1998/namespace", "1A2B": "urn:shop"},
    {"2C0D": QualifiedName("1A2B", "order", False), "3E": QualifiedName("07", "lang", True)},
)


@pytest.fixture
def state() -> OracleState:
    return OracleState(replace(make_snapshot(), xml_tokens=TOKENS), dbid=DBID)


def test_names_and_spaces_are_read(oracle: OracleDatabase) -> None:
    assert oracle.read("testing", lambda one: read_xml_tokens(one, SCN)) == TOKENS


def test_only_the_default_set_counts(oracle: OracleDatabase, state: OracleState) -> None:
    state.catalogue.update('UPDATE XDB."XDB$TTSET" SET "FLAGS" = 1')
    assert oracle.read("testing", lambda one: read_xml_tokens(one, SCN)) == NO_TOKENS


COMPRESSED = 0x800
COLUMNAR = 0x2000000


@pytest.mark.parametrize(
    ("bits", "of", "expected"),
    [
        (
            COMPRESSED,
            ("TAB$", "OBJ#", ORDERS.obj),
            Compression(frozenset({ORDERS.obj}), frozenset()),
        ),
        (
            COMPRESSED | COLUMNAR,
            ("TABPART$", "BO#", NOTES.obj),
            Compression(frozenset(NOTES.partitions), frozenset(NOTES.partitions)),
        ),
        (COLUMNAR, ("TAB$", "OBJ#", ORDERS.obj), Compression(frozenset(), frozenset())),
    ],
    ids=["table", "partition, columnar", "not marked as compressed"],
)
def test_the_segment_of_a_table_or_partition_tells(
    oracle: OracleDatabase,
    state: OracleState,
    bits: int,
    of: tuple[str, str, int],
    expected: Compression,
) -> None:
    names = [(table.owner, table.name) for table in (ORDERS, NOTES, LOOSE)]
    rows = read_dictionary(oracle, names).sys_rows
    assert rows is not None
    part, column, number = of
    changed = state.catalogue.update(
        f'UPDATE SYS."SEG$" SET "SPARE1" = "SPARE1" + ? WHERE "BLOCK#" IN'
        f' (SELECT "BLOCK#" FROM SYS."{part}" WHERE "{column}" = ?)',
        bits,
        number,
    )
    assert changed
    assert oracle.read("testing", lambda one: read_compression(one, rows, SCN)) == expected
