"""A row change that cannot be put together stops its table, and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.capture.capture_state import CapturePhase
from olr_pg.capture.logs import discover_logs
from olr_pg.capture.source_database import OfflineDatabase
from olr_pg.decoding.dictionary_follower import DictionaryFollower
from olr_pg.decoding.spill import SpillFiles
from olr_pg.decoding.split import plan_splits
from olr_pg.errors import OlrPgError
from olr_pg.ordering.merger import Merger, ThreadSplit
from olr_pg.ordering.ready_transactions import transactions_of
from olr_pg.ordering.split_merging import merge_splits, thread_splits
from olr_pg.rendering.json_lines import JsonLines
from olr_pg.replicator.decode_once import DecodingOptions, decode_logs, decode_splits
from olr_pg.replicator.decoder import Decoder
from olr_pg.scalars import format_xid
from olr_pg.server.checkpoint import Checkpoint
from olr_pg.server.queue import QueueBounds
from olr_pg.spark.session import SparkSettings
from olr_pg.transactions.row_fault import RowFault
from tests.decoding.test_dictionary_follower import SPLITS
from tests.replicator.ddl_source import NUMBER
from tests.replicator.fault_source import LEFT, FaultSource
from tests.replicator.recovery_runs import Client
from tests.replicator.test_ddl_pipeline import errors_of, rows_of, run_once
from tests.split_results import through_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from olr_pg.ordering.accounting import Accounting

PAUSED = CapturePhase.PAUSED_FOR_FLOW_CONTROL


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> FaultSource:
    made = FaultSource(tmp_path_factory.mktemp("faulty") / "s")
    made.history()
    return made


def in_parts(made: FaultSource) -> SpillFiles:
    """A storage where a transaction over several splits is finished change by change."""
    return SpillFiles(made.source.directory.parent / "spill", 0, part_bytes=1)


def lines_of(made: FaultSource, blobs: Sequence[memoryview]) -> list[dict[str, Any]]:
    render = JsonLines(made.snapshot.database)
    texts = [render.render(blob) for blob in blobs]
    lines = [json.loads(line) for text in texts for line in text.splitlines()]
    return [line for line in lines if line["op"] not in ("begin", "commit")]


def rows_in(lines: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(line["table"].removeprefix("SHOP."), int(line["after"]["ID"])) for line in lines]


@pytest.mark.parametrize("split_bytes", SPLITS)
def test_decode_leaves_the_faulty_parts_out_and_says_so_at_the_end(
    faulty: FaultSource, monkeypatch: pytest.MonkeyPatch, split_bytes: int
) -> None:
    monkeypatch.setattr(
        "olr_pg.replicator.decode_once.thread_splits",
        partial(thread_splits, split_bytes=split_bytes),
    )
    blobs: list[memoryview] = []
    counts: list[Accounting] = []

    def decode() -> None:
        folder = str(faulty.source.directory / "logs")
        storage = in_parts(faulty)
        for blob in decode_logs(
            faulty.snapshot,
            [folder],
            options=DecodingOptions(account=counts.append, storage=storage),
        ):
            blobs.append(blob)  # noqa: PERF402 - what comes before the error counts

    with pytest.raises(OlrPgError) as caught:
        decode()
    assert rows_in(lines_of(faulty, blobs)) == LEFT
    assert caught.value.code == 2016
    assert caught.value.where["table"] == "SHOP.A"
    (account,) = counts
    assert account.closes
    assert account.account.undecoded == 3
    assert account.account.rows == len(LEFT)


def merged(
    made: FaultSource, split_bytes: int, *, ends_delivery: bool
) -> tuple[list[tuple[int, int]], list[RowFault], Merger]:
    """Transactions as (commit SCN, XID), what was left out, and the merger at the end."""
    follower = DictionaryFollower(made.snapshot, ends_delivery=ends_delivery)
    subscription = follower.subscribe([t for t in made.snapshot.tables if t.owner == "SHOP"])
    logs = sorted(
        discover_logs([str(made.source.directory / "logs")]), key=lambda log: log.header.first_scn
    )
    threads = {log.header.thread: 0 for log in logs}
    merger = Merger(subscription, 0, threads, follower, in_parts(made))
    splits = [
        ThreadSplit(log.header.thread, s) for log in logs for s in plan_splits(log, split_bytes)
    ]

    def decode(*arguments: Any) -> Any:
        for result in decode_splits(*arguments):
            yield through_bytes(result)

    found, faults = [], []
    for released, left_out, _ in merge_splits(merger, splits, decode):
        found += [(t.commit_scn, t.xid) for t in transactions_of(released)]
        faults += left_out
    return found, faults, merger


@pytest.mark.parametrize("split_bytes", SPLITS)
def test_a_fault_leaves_with_its_transaction(faulty: FaultSource, split_bytes: int) -> None:
    transactions, faults, merger = merged(faulty, split_bytes, ends_delivery=False)
    assert merger.failure is None
    assert len(faults) == 3
    assert [f.commit_scn for f in faults] == sorted(f.commit_scn for f in faults)
    # The first has rows of another table, the others have nothing that is delivered.
    assert [(f.commit_scn, f.xid) in transactions for f in faults] == [True, False, False]
    for fault in faults:
        assert fault.error.where["xid"] == format_xid(fault.xid)
        assert int(fault.error.where["scn"]) <= fault.commit_scn
        assert {"thread", "sequence", "block", "offset"} <= fault.error.where.keys()
    whole, expected, _ = merged(faulty, SPLITS[0], ends_delivery=False)
    assert transactions == whole
    assert [str(f.error) for f in faults] == [str(f.error) for f in expected]


@pytest.mark.parametrize("split_bytes", SPLITS)
def test_where_nobody_is_told_the_delivery_ends_before_the_transaction(
    faulty: FaultSource, split_bytes: int
) -> None:
    everything, faults, _ = merged(faulty, split_bytes, ends_delivery=False)
    transactions, told, merger = merged(faulty, split_bytes, ends_delivery=True)
    assert told == []
    assert merger.failure is not None
    assert str(merger.failure) == str(faults[0].error)
    before = [one for one in everything if one[0] < faults[0].commit_scn]
    assert transactions == before
    assert len(before) == 3


def stopped_at(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    return connection.execute(
        "SELECT l.source_table, array_agg(h.kind || ' ' || h.changes ORDER BY h.id)"
        " FROM olr_pg.ledger AS l JOIN olr_pg.held AS h USING (subscription, source_table)"
        " WHERE l.stopped GROUP BY 1"
    ).fetchall()


@pytest.mark.usefixtures("one_session")
def test_the_table_stops_and_the_others_go_on(tmp_path: Path, postgres_database: str) -> None:
    made = FaultSource(tmp_path / "s")
    made.history()
    held = ["ddl 0", "changes 1", "ddl 0", "changes 1", "ddl 0", "changes 1"]
    for attempt in (1, 2):
        with pytest.raises(OlrPgError) as caught:
            run_once(made.source, postgres_database, ["A", "B"])
        assert caught.value.code == 5010
        assert "OLR-02016" in caught.value.detail
        with psycopg.connect(postgres_database) as connection:
            assert [row["ID"] for row in rows_of(connection, "A")] == [1]
            assert [row["ID"] for row in rows_of(connection, "B")] == [1, 2, 3, 4]
            assert errors_of(connection) == [("SHOP.A", "undecoded", 2016, "stopped", attempt)]
            assert stopped_at(connection) == [("SHOP.A", held)]
            fault = connection.execute(
                "SELECT commit_scn, scn, message FROM olr_pg.error"
            ).fetchone()
            complete = connection.execute("SELECT olr_pg.consistent_scn()").fetchone()
        assert fault is not None
        assert complete is not None
        assert complete[0] == fault[0] - 1
        assert fault[1] <= fault[0]
        assert "thread 1, sequence " in fault[2]
        (incident,) = (made.source.directory / "data" / "incidents").iterdir()
        assert str(incident) in fault[2]
    # Left out one after the other: the next one stops the table again.
    for number, rows in enumerate(([1, 4], [1, 4, 6], [1, 4, 6, 8]), 1):
        with psycopg.connect(postgres_database) as connection:
            connection.execute(
                "UPDATE olr_pg.error SET resolution = 'skipped' WHERE resolution = 'stopped'"
            )
        if number < 3:
            with pytest.raises(OlrPgError) as caught:
                run_once(made.source, postgres_database, ["A", "B"])
            assert caught.value.code == 5010
        else:
            run_once(made.source, postgres_database, ["A", "B"])
        with psycopg.connect(postgres_database) as connection:
            assert [row["ID"] for row in rows_of(connection, "A")] == rows
            assert len(errors_of(connection)) == min(number + 1, 3)


@pytest.mark.usefixtures("one_session")
def test_whole_transactions_end_before_the_faulty_one(
    tmp_path: Path, postgres_database: str
) -> None:
    made = FaultSource(tmp_path / "s")
    made.history()
    with pytest.raises(OlrPgError) as caught:
        run_once(made.source, postgres_database, ["A", "B"], consistency="transaction")
    assert caught.value.code == 5145
    assert "OLR-02016" in caught.value.detail
    with psycopg.connect(postgres_database) as connection:
        assert [row["ID"] for row in rows_of(connection, "A")] == [1]
        assert [row["ID"] for row in rows_of(connection, "B")] == [1, 2]
        assert errors_of(connection) == [("SHOP.A", "undecoded", 2016, "stopped", 1)]


@pytest.mark.parametrize("split_bytes", SPLITS)
def test_the_dictionary_is_not_followed_past_its_own_rows_that_cannot_be_decoded(
    tmp_path: Path, split_bytes: int
) -> None:
    made = FaultSource(tmp_path / "s", followed=True)
    source = made.source
    source.insert("B", 1, "one")
    (columns,) = [t for t in made.snapshot.tables if t.name == "COL$"]
    narrow = replace(columns, columns=columns.columns[:2])
    tables = tuple(narrow if t is columns else t for t in made.snapshot.tables)
    made.snapshot = replace(made.snapshot, tables=tables)
    source.add_column("B", "EXTRA", NUMBER)
    source.insert("B", 2, "two", 2)
    source.finish()
    transactions, told, merger = merged(made, split_bytes, ends_delivery=False)
    assert len(transactions) == 1
    assert told == []
    assert merger.failure is not None
    assert merger.failure.where["table"] == "SYS.COL$"


def test_decoding_waits_while_too_many_faults_wait(
    faulty: FaultSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that finds the queue full need stand between them."""
    folder = str(faulty.source.directory / "logs")
    decoder = Decoder(
        OfflineDatabase(faulty.snapshot, [folder]),
        SparkSettings(),
        once=True,
        follow=partial(DictionaryFollower, ends_delivery=False),
    )
    monkeypatch.setattr(decoder, "decode", decode_splits)
    client = Client(
        decoder,
        "",
        Checkpoint(tmp_path / "checkpoint", "x"),
        {"bounds": QueueBounds(bytes_max=4096)},
    )
    client.start("SELECT owner, table_name FROM all_tables WHERE owner = 'SHOP'")
    try:
        taken = list[int]()
        for expected in (5, 6):
            while not (client.delivery.state.phase is PAUSED and len(taken) == expected):
                assert not client.delivery.drained.is_set()
                taken += [one.commit_scn for one in client.take()]
            fault = client.events[-1]
            assert fault.is_fault
            assert len(client.events) == expected - 4
            client.confirm_up_to(fault.commit_scn)
        taken += [one.commit_scn for one in client.take_all()]
        assert len(taken) == 7
    finally:
        client.close()


def test_what_a_new_incarnation_commits_has_not_left(faulty: FaultSource) -> None:
    """Transactions and faults behind a RESETLOGS may have SCNs that the old incarnation used."""
    transactions, faults, merger = merged(faulty, SPLITS[0], ends_delivery=False)
    *_, log = discover_logs([str(faulty.source.directory / "logs")])
    scn = log.header.first_scn
    merger.abandon(scn)
    found: list[tuple[int, int]] = []
    again: list[RowFault] = []
    for result in decode_splits(merger.subscription, plan_splits(log)):
        released = transactions_of(merger.feed(log.header.thread, result))
        found += [(t.commit_scn, t.xid) for t in released]
        again += merger.left_out
    assert found == [one for one in transactions if one[0] >= scn]
    assert found
    expected = [str(fault.error) for fault in faults if fault.commit_scn >= scn]
    assert [str(fault.error) for fault in again] == expected
    assert again
