"""Partitioned and index-organised tables of a live database: which ranges, and all of the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.config.source_section import OracleSource
from olr_pg.config.table_sections import Filter
from olr_pg.decoding.filters import filters_of
from olr_pg.dictionary.model import Column, Database, KeyKind, Snapshot, Table
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.live_rows import LivePartition, LiveTables
from olr_pg.load.table_data import LoadMoment
from olr_pg.oracle import table_query
from olr_pg.scalars import format_rowid, parse_rowid
from olr_pg.simulator.oracle_net.row_versions import RowVersions
from olr_pg.simulator.oracle_net.serve import StandIn
from olr_pg.simulator.oracle_net.state import OracleState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.load.table_data import SourceTable

SCN = 5_000
SEGMENTS = (81_001, 81_002, 81_003)
QUERY = "SELECT OWNER, TABLE_NAME FROM ALL_TABLES"
COLUMNS = (
    Column("ID", 1, 1, 1, 2, 22, precision=12, scale=0, nullable=False),
    Column("NAME", 2, 2, 2, 1, 40, charset_id=873, charset_form=1),
)
KEY: dict[str, Any] = {"key_kind": KeyKind.PRIMARY, "key": (1,)}
PARTED = Table(
    *("APP", "PARTED", 80_000, None, COLUMNS),
    partitions=(80_001, 80_002, 80_003),
    segments=SEGMENTS,
    **KEY,
)
ORGANISED = Table(
    *("APP", "ORGANISED", 80_100, None, COLUMNS),
    partitions=(80_101,),
    segments=(80_101,),
    index_organised=True,
    **KEY,
)
ROWS = 60


@pytest.fixture
def server() -> Iterator[StandIn]:
    database = Database("LIVE", activation=1, resetlogs=(1,))
    with StandIn(OracleState(Snapshot(SCN, database, (PARTED, ORGANISED)), dbid=1)) as server:
        rows = RowVersions(server.state.catalogue, (PARTED, ORGANISED))
        for number in range(ROWS):
            block = 4 << 22 | 128 + 8 * (number // 6)
            rowid = format_rowid(SEGMENTS[number % 3], block, number)
            rows.put(PARTED, SCN, rowid, (str(number), f"row {number}"))
            rows.put(ORGANISED, SCN, "", (str(number), f"row {number}"))
        yield server
        assert server.malformed == []


def source_of(server: StandIn) -> OracleSource:
    return OracleSource.model_validate(
        {"user": "olr", "password": "olr", "server": server.connect_string}
    )


def live_partitions(source: SourceTable) -> list[Any]:
    return list(source.data.partitions)


def rows_of(source: SourceTable) -> dict[int, str]:
    batches: list[Any] = [one for part in source.data.partitions for one in part.batches()]
    rows = [row for batch in batches for row in batch.to_pylist()]
    found = {int(row["ID"]): row["NAME"] for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize("extents", [True, False])
def test_every_partition_has_ranges_of_its_own_and_every_row_comes_once(
    server: StandIn, monkeypatch: pytest.MonkeyPatch, extents: bool
) -> None:
    monkeypatch.setattr(table_query, "BLOCKS_PER_RANGE", 32)
    monkeypatch.setattr(table_query, "ROWS_PER_RANGE", 10)
    monkeypatch.setattr(table_query, "SAMPLE_PERCENT", 60)
    if not extents:
        server.state.catalogue.denied.add("DBA_EXTENTS")
    live = LiveTables(source_of(server), QUERY, filters_of(Filter()))
    try:
        parted, organised = sorted(
            live.sources(live.choose(())), key=lambda one: one.table.index_organised
        )
    finally:
        live.close()
    assert organised.table.index_organised
    assert rows_of(parted) == rows_of(organised) == {n: f"row {n}" for n in range(ROWS)}
    assert len(organised.data.partitions) == 1
    ranges: list[table_query.RowidRange] = [part.part for part in live_partitions(parted)]
    segments = [parse_rowid(one.first)[0] for one in ranges]
    assert set(segments) == set(SEGMENTS)
    assert segments == [parse_rowid(one.last)[0] for one in ranges]
    assert len(ranges) > len(SEGMENTS)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ('SET "OBJ#" = 7 WHERE "OBJ#" = {obj}', "the name now belongs to another table"),
        ('SET "DATAOBJ#" = 7 WHERE "DATAOBJ#" = {segment}', "no longer has the segment"),
    ],
)
def test_rows_of_a_table_that_was_exchanged_meanwhile_are_refused(
    server: StandIn, change: str, reason: str
) -> None:
    """Oracle reads the table that has the name now; it has no rows in the former ROWIDs."""
    live = LiveTables(source_of(server), QUERY, filters_of(Filter()))
    try:
        (parted,) = (one for one in live.sources(live.choose(())) if not one.table.index_organised)
    finally:
        live.close()
    numbers = {"obj": parted.table.obj, "segment": SEGMENTS[0]}
    server.state.catalogue.update(f'UPDATE SYS."OBJ$" {change.format(**numbers)}')
    with pytest.raises(OlrPgError, match=reason) as caught:
        rows_of(parted)
    assert caught.value.code == Code.DEFINITION_CHANGED


def test_a_policy_is_told_with_the_name_that_tables_of_several_containers_have(
    server: StandIn,
) -> None:
    policy = {"OBJECT_OWNER": "APP", "OBJECT_NAME": "PARTED", "POLICY_NAME": "OWN_ROWS"}
    server.state.catalogue.insert("ALL_POLICIES", [{**policy, "SEL": "YES", "ENABLE": "YES"}])
    qualified = replace(PARTED, owner="PDB1.APP", container="PDB1", con_id=3)
    moment, part = LoadMoment(SCN, SCN), None
    with pytest.raises(OlrPgError, match="OWN_ROWS") as caught:
        list(LivePartition(source_of(server), qualified, part, moment, 10).batches())
    assert caught.value.code == Code.POLICY_HIDES_DATA
    assert caught.value.where["table"] == "PDB1.APP.PARTED"


def test_a_table_of_more_partitions_than_a_list_of_oracle_holds() -> None:
    segments = tuple(range(90_001, 91_002))
    parts = tuple(segment + 10_000 for segment in segments)
    many = Table("APP", "DAYS", 90_000, None, COLUMNS, partitions=parts, segments=segments, **KEY)
    database = Database("LIVE", activation=1, resetlogs=(1,))
    with StandIn(OracleState(Snapshot(SCN, database, (many,)), dbid=1)) as server:
        rows = RowVersions(server.state.catalogue, (many,))
        for number, segment in enumerate((segments[0], segments[-1])):
            rowid = format_rowid(segment, 4 << 22 | 128, number)
            rows.put(many, SCN, rowid, (str(number), f"row {number}"))
        live = LiveTables(source_of(server), QUERY, filters_of(Filter()))
        try:
            (source,) = live.sources(live.choose(()))
        finally:
            live.close()
        ranges = [part.part for part in live_partitions(source)]
        assert [parse_rowid(one.first)[0] for one in ranges] == list(segments)
        read = [part.batches() for part in (source.data.partitions[0], source.data.partitions[-1])]
        found: list[Any] = [batch for batches in read for batch in batches]
        assert [row["NAME"] for batch in found for row in batch.to_pylist()] == ["row 0", "row 1"]
