"""Filters: what is delivered is what would be without them, less what they leave out.

A view leaves out the tables of other targets, beside what filters leave out.
"""

from __future__ import annotations

import json
import random
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from olr_pg.capture.logs import discover_logs
from olr_pg.config.table_sections import Filter
from olr_pg.decoding.filters import (
    EVERYTHING,
    NO_FILTERS,
    Filters,
    TargetView,
    filters_of,
    report_idle,
)
from olr_pg.decoding.spill import SpillFiles
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.model import Column, Table
from olr_pg.errors import OlrPgError
from olr_pg.ordering.split_merging import thread_splits
from olr_pg.redo.sessions import SessionAttributes
from olr_pg.rendering.json_lines import JsonLines
from olr_pg.replicator.decode_once import DecodingOptions, decode_logs
from olr_pg.scalars import pack_xid, parse_xid
from olr_pg.simulator.simulation import simulate
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.transactions.waiting_storage import IN_MEMORY, Storage
from tests.replicator.ddl_source import NUMBER, DdlSource
from tests.replicator.recovery_runs import QUERY, Restarts, split_transactions

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot
    from olr_pg.ordering.accounting import Accounting
    from olr_pg.wire.frames import Buffer

Line = dict[str, Any]


def decoded(
    snapshot: Snapshot, logs: str, filters: Filters = NO_FILTERS, storage: Storage = IN_MEMORY
) -> tuple[list[list[Line]], Accounting]:
    """The lines of each transaction."""
    render, accounts = JsonLines(snapshot.database), list[Any]()
    blobs = decode_logs(
        snapshot,
        [logs],
        filters=filters,
        options=DecodingOptions(account=accounts.append, storage=storage),
    )
    transactions = [one for blob in blobs for one in split_transactions(bytes(blob))]
    return [lines_of(one.blob, render) for one in transactions], accounts[0]


def lines_of(blob: Buffer, render: JsonLines) -> list[Line]:
    return [json.loads(line) for line in render.render(blob).splitlines()]


def left_over(transactions: list[list[Line]], filters: Filters) -> list[list[Line]]:
    """What the filters leave of transactions, line by line."""
    found = []
    for lines in transactions:
        begin, *changes, commit = lines
        if parse_xid(begin["xid"]) in filters.xids:
            continue
        kept = []
        for change in changes:
            table = change["table"]
            if any(table == one for one in filters.exclude):
                continue
            if DmlKind[change["op"].upper()] in filters.operations.get(table, ()):
                continue
            for image in ("before", "after"):
                for column in filters.columns.get(table, ()):
                    change.get(image, {}).pop(column, None)
            if change["op"] != "update" or change["after"]:
                kept.append(change)
        if kept:
            found.append([begin, *kept, commit])
    return found


def filters_for(snapshot: Snapshot, whole: list[list[Line]], rng: random.Random) -> Filters:
    """Some of everything that can be left out."""
    tables = [t for t in snapshot.tables if any(c["table"] == t.full_name
              for lines in whole for c in lines[1:-1])]  # fmt: skip
    columns = {
        table.full_name: tuple(
            column.name
            for column in table.delivered
            if column.intcol not in table.key and rng.random() < 0.4
        )
        for table in tables
    }
    return Filters(
        exclude=(tables[0].full_name,) if len(tables) > 1 else (),
        columns={
            table.full_name: columns[table.full_name]
            for table in tables
            if 0 < len(columns[table.full_name]) < len(table.delivered)
        },
        operations={tables[-1].full_name: frozenset({rng.choice(list(DmlKind))})},
        xids=frozenset(parse_xid(lines[0]["xid"]) for lines in rng.sample(whole, 3)),
    )


@pytest.mark.parametrize("seed", [21, 22, 24])
def test_the_rest_of_a_random_database_is_delivered_as_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    snapshot = simulate(seed, tmp_path, size=60_000).snapshot
    logs = str(tmp_path / "logs")
    whole, _ = decoded(snapshot, logs)
    filters = filters_for(snapshot, whole, random.Random(seed))
    expected = left_over(whole, filters)
    in_parts = SpillFiles(tmp_path / "spill", 0, part_bytes=500)
    for split_bytes in (1 << 30, 4096):
        monkeypatch.setattr(
            "olr_pg.replicator.decode_once.thread_splits",
            partial(thread_splits, split_bytes=split_bytes),
        )
        found, account = decoded(snapshot, logs, filters, in_parts)
        assert found == expected
        assert account.closes
        assert account.account.rows == sum(len(lines) - 2 for lines in expected)
        assert account.account.committed == len(expected)
        assert account.account.rows_filtered > 0


@pytest.mark.parametrize(("seed", "memory"), [(21, 1 << 30), (24, 1 << 30), (24, 2000)])
def test_each_of_several_targets_has_filters_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, memory: int
) -> None:
    """What one does not get, the others do, over one decode; also of what waits on disk."""
    snapshot = simulate(seed, tmp_path, size=60_000).snapshot
    whole, _ = decoded(snapshot, str(tmp_path / "logs"))
    wanted = {name: filters_for(snapshot, whole, random.Random(name)) for name in ("b", "c")}
    wanted["a"] = NO_FILTERS
    storage = SpillFiles(tmp_path / "spill", memory, 100, part_bytes=2000)
    restarts = Restarts(tmp_path, snapshot, monkeypatch, storage=storage)
    restarts.archive(discover_logs([str(tmp_path / "logs")]))
    decoder = restarts.decoder(*wanted)
    clients = {
        name: restarts.client(decoder, name, view=TargetView(filters=own))
        for name, own in wanted.items()
    }
    for client in clients.values():
        client.start("SELECT owner, table_name FROM all_tables WHERE owner = 'SIM'")
    render = JsonLines(snapshot.database)
    for name, client in clients.items():
        found = [lines_of(one.blob, render) for one in client.take_all()]
        assert client.delivery.failure is None
        assert found == left_over(deepcopy(whole), wanted[name])
    for client in clients.values():
        client.close()
    assert wanted["b"] != wanted["c"]


def test_a_run_counts_what_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ``olr-pg status`` and the metrics show of it."""
    snapshot = simulate(21, tmp_path, size=60_000).snapshot
    whole, _ = decoded(snapshot, str(tmp_path / "logs"))
    dropped = whole[::7]
    restarts = Restarts(tmp_path, snapshot, monkeypatch)
    restarts.archive(discover_logs([str(tmp_path / "logs")]))
    decoder = restarts.decoder()
    decoder.filters = Filters(xids=frozenset(parse_xid(lines[0]["xid"]) for lines in dropped))
    client = restarts.client(decoder)
    client.start("SELECT owner, table_name FROM all_tables WHERE owner = 'SIM'")
    assert len(client.take_all()) == len(whole) - len(dropped)
    source = client.delivery.progress.source
    client.close()
    assert source.transactions_filtered == len(dropped)
    assert source.rows_filtered == sum(len(lines) - 2 for lines in dropped)
    assert source.transactions == len(whole) - len(dropped)


def test_a_column_that_is_added_later_is_left_out_for_one_target_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = DdlSource(tmp_path / "s")
    source.create("A", {"ID": NUMBER})
    snapshot = source.take_snapshot()
    source.insert("A", 1)
    source.add_column("A", "EXTRA", NUMBER)
    source.insert("A", 2, 22)
    source.finish()
    restarts = Restarts(tmp_path, snapshot, monkeypatch)
    restarts.archive(discover_logs([str(source.directory / "logs")]))
    decoder = restarts.decoder("all", "less")
    less = restarts.client(
        decoder, "less", view=TargetView(filters=Filters(columns={"*.A": ("EXTRA",)}))
    )
    clients = (restarts.client(decoder, "all"), less)
    for client in clients:
        client.start(QUERY)
    for client, columns in zip(clients, (["ID", "EXTRA"], ["ID"]), strict=True):
        assert (b"EXTRA" in client.take_all()[-1].blob) == ("EXTRA" in columns)
        (event,) = client.events
        assert event.definition is not None
        # The applier, which is told of the new definition, adds what the target wants.
        assert [column.name for column in event.definition.delivered] == columns
        assert [step.after.name for step in event.evolution.steps if step.after] == columns[1:]
        client.close()


def test_a_column_that_is_added_later_is_left_out_too(tmp_path: Path) -> None:
    source = DdlSource(tmp_path / "s")
    source.create("A", {"ID": NUMBER})
    snapshot = source.take_snapshot()
    source.insert("A", 1)
    source.add_column("A", "EXTRA", NUMBER)
    source.add_column("A", "MORE", NUMBER)
    source.insert("A", 2, 22, 222)
    source.finish()
    filters = Filters(columns={"shop.*": ("EX*",)})
    found, _ = decoded(snapshot, str(source.directory / "logs"), filters)
    assert [lines[1]["after"] for lines in found] == [{"ID": 1}, {"ID": 2, "MORE": 222}]


def test_the_transactions_of_a_user_are_left_out(real_log_dir: Path) -> None:
    snapshot = load_snapshot(str(real_log_dir / "TEST-chkpt-2266634.json"))
    logs = str(real_log_dir / "*.dbf")
    whole, account = decoded(snapshot, logs)
    assert len(whole) == 1
    for user, program, left in (("olr_*", "x", 0), ("SYS", "sqlplus*", 0), ("SYS", "x", 1)):
        filters = Filters(sessions={"login_user": (user,), "program": (program,)})
        found, filtered = decoded(snapshot, logs, filters)
        assert len(found) == left
        assert filtered.account.transactions_filtered == 1 - left
        assert filtered.account.rows + filtered.account.rows_filtered == account.account.rows


def test_what_a_table_cannot_do_without_is_refused(tmp_path: Path) -> None:
    source = DdlSource(tmp_path / "s", followed=False)
    source.create("A", {"ID": NUMBER})
    source.create("B", {"ID": NUMBER, "N": NUMBER})
    snapshot = source.take_snapshot()
    tables = tuple(table for table in snapshot.tables if table.owner == "SHOP")
    for filters, code in (
        (Filters(include=("HR.*",)), 1095),
        (Filters(exclude=("SHOP.?",)), 1095),
        (Filters(columns={"*.A": ("*",)}), 1096),
    ):
        with pytest.raises(OlrPgError) as caught:
            filters.chosen(tables)
        assert (caught.value.code, caught.value.exit_code) == (code, 2)
    keyed = [table for table in tables if table.key]
    for table in keyed:
        with pytest.raises(OlrPgError):
            Filters(columns={table.full_name: ("ID",)}).shape(table)
    assert [t.name for t in Filters(include=("shop.*",), exclude=("*.A",)).chosen(tables)] == ["B"]
    columns = {"SHOP.?": ("n", "SSN"), "SHOP.CC": ("N",)}
    filters = Filters(
        exclude=("shop.a", "HR.*"), columns=columns, operations={"B": frozenset({DmlKind.DELETE})}
    )
    assert filters.idle(tables) == [
        ("filter.tables.exclude", "HR.*"),
        ("filter.operations", "B"),
        ("filter.columns", "SHOP.?: SSN"),
        ("filter.columns", "SHOP.CC"),
    ]
    with capture_logs() as said:
        report_idle(filters, tables)
    assert [(line["log_level"], line["code"]) for line in said] == [("warning", "OLR-01098")] * 4


def named(name: str, container: str = "") -> Table:
    owner = f"{container}.SHOP" if container else "SHOP"
    return Table(owner, name, 1, 1, (), container=container)


def test_a_pattern_fits_with_the_container_and_without_it() -> None:
    one, other = named("ORDERS", "PDB1"), named("ORDERS", "PDB2")
    everywhere = Filters(exclude=("SHOP.ORDERS",))
    assert not everywhere.wants(one)
    assert not everywhere.wants(other)
    there = Filters(exclude=("PDB2.*",), operations={"PDB1.SHOP.*": frozenset({DmlKind.DELETE})})
    assert there.wants(one)
    assert not there.wants(other)
    dropped = there.dropped((one, other))
    assert dropped is not None
    assert dropped.any(axis=1).tolist() == [True, False]


def test_the_configuration_says_it() -> None:
    filters = filters_of(
        Filter.model_validate(
            {
                "tables": {"include": ["SHOP.*"], "exclude": ["SHOP.TMP*"]},
                "columns": {"SHOP.ORDERS": ["NOTE"]},
                "operations": {"SHOP.LOG": ["insert", "delete"]},
                "transactions": {"login-users": ["BATCH"], "xids": ["10.5.123"]},
            }
        )
    )
    assert filters.wants(named("ORDERS"))
    assert not filters.wants(named("TMP1"))
    assert filters.operations == {"SHOP.LOG": {DmlKind.INSERT, DmlKind.DELETE}}
    assert filters.drops(pack_xid(10, 5, 123), None)
    assert filters.drops(1, SessionAttributes(login_user="BATCH"))
    assert not filters.drops(1, SessionAttributes(login_user="SHOP"))
    assert not filters.drops(1, None)
    assert filters_of(Filter()) == NO_FILTERS


TABLES = tuple(
    Table("SHOP", name, obj, obj, (Column("N", 1, 1, 1, 2, 22),))
    for name, obj in (("A", 10), ("B", 20))
)


def test_nothing_is_left_out_of_everything() -> None:
    assert EVERYTHING.of(TABLES).dropped is None


def test_tables_of_others_are_dropped_in_every_version() -> None:
    view = TargetView(big_endian=True, objects=frozenset({20})).of((*TABLES, *TABLES))
    assert view.big_endian
    assert view.dropped is not None
    assert view.dropped.tolist() == [[True] * 3, [False] * 3] * 2
