"""Tables with compressed segments are found by the bits of SEG$.SPARE1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.dictionary.stored_segments import Compression
from olr_pg.oracle.dictionary_queries import read_dictionary
from olr_pg.oracle.segment_storage import read_compression
from tests.oracle.conftest import LOOSE, NOTES, ORDERS, SCN

if TYPE_CHECKING:
    from olr_pg.oracle.oracle_connection import OracleDatabase
    from olr_pg.simulator.oracle_net.state import OracleState

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
