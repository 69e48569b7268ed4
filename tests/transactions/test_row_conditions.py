"""Conditions on rows: what is delivered makes, by itself, the rows that fulfil them."""

from __future__ import annotations

import json
import random
import sqlite3
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pydantic import ValidationError

from olr_pg.capture.logs import discover_logs
from olr_pg.conditions.evaluate import ABSENT
from olr_pg.conditions.parse import parse_condition
from olr_pg.config.table_sections import Filter
from olr_pg.decoding.filters import NO_FILTERS, Filters, TargetView, filters_of
from olr_pg.decoding.spill import SpillFiles
from olr_pg.errors import OlrPgError
from olr_pg.kernels.compile import interpreted
from olr_pg.ordering.split_merging import thread_splits
from olr_pg.rendering.json_lines import JsonLines
from olr_pg.replicator.decode_once import DecodingOptions, decode_logs
from olr_pg.simulator.model.tables import Logging, Row
from olr_pg.simulator.sessions.sys_dictionary import sys_cell
from olr_pg.transactions import row_conditions
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.transactions.waiting_storage import IN_MEMORY, Storage
from tests.replicator.ddl_source import NUMBER, TEXT, DdlSource
from tests.replicator.recovery_runs import QUERY, Restarts
from tests.transactions.dml_model import Change, dml_of, shown

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot
    from olr_pg.ordering.accounting import Accounting

Line = dict[str, Any]
CONDITION = "(n BETWEEN 3 AND 6 OR t LIKE 'a%') AND NOT (t = 'ab' OR n IS NULL AND t IS NULL)"


def rows_filter(condition: str = CONDITION, table: str = "SHOP.A") -> Filters:
    return Filters(rows=((table, parse_condition(condition)),))


def decoded(
    snapshot: Snapshot, logs: str, filters: Filters = NO_FILTERS, storage: Storage = IN_MEMORY
) -> tuple[list[Line], Accounting]:
    """The row changes, and the account."""
    render, accounts = JsonLines(snapshot.database), list[Any]()
    blobs = decode_logs(
        snapshot,
        [logs],
        filters=filters,
        options=DecodingOptions(account=accounts.append, storage=storage),
    )
    lines = [json.loads(line) for blob in blobs
             for line in render.render(blob).splitlines()]  # fmt: skip
    return [line for line in lines if "table" in line], accounts[0]


def collect(found: list[Line], snapshot: Snapshot, logs: str, **options: Any) -> None:
    """As `decoded`, up to the error."""
    render = JsonLines(snapshot.database)
    for blob in decode_logs(snapshot, [logs], **options):
        lines = render.render(blob).splitlines()
        found += [line for line in map(json.loads, lines) if "table" in line]


def change_at_random(source: DdlSource, rng: random.Random, count: int) -> None:
    """Transactions of some changes of SHOP.A and SHOP.B, some of them rolled back."""
    session, rows = source.session, list[Row]()
    key = 0
    for _ in range(count):
        made, gone = list[Row](), list[Row]()
        for _ in range(rng.randrange(1, 6)):
            value = sys_cell(rng.choice([None, *range(1, 9)]))
            text = sys_cell(rng.choice([None, "a", "ab", "abc", "b", "x" * 90]))
            kind = rng.random()
            if kind < 0.35 or not rows:
                key += 1
                row = session.insert(source.tables["A"], [sys_cell(key), value, text, sys_cell(1)])
                assert row is not None
                made.append(row)
                rows.append(row)
                source_b = session.insert(source.tables["B"], [sys_cell(key)])
                assert source_b is not None
                continue
            row = rng.choice(rows)
            if kind < 0.5:
                if session.delete(row):
                    rows.remove(row)
                    gone.append(row)
                continue
            session.update(row, rng.choice([{1: value}, {2: text}, {1: value, 2: text},
                                            {3: sys_cell(rng.randrange(100))}]))  # fmt: skip
        session.commit()


def played(changes: list[Line]) -> dict[int, Line]:
    """The rows of SHOP.A that the changes make; each must fit what is there."""
    rows = dict[int, Line]()
    for change in changes:
        if change["table"] != "SHOP.A":
            continue
        before, after = change.get("before", {}), change.get("after", {})
        key = before.get("ID", after.get("ID"))
        if change["op"] == "insert":
            assert key not in rows
            assert set(after) == {"ID", "N", "T", "X"}
            rows[key] = after
        elif change["op"] == "delete":
            assert rows.pop(key).items() >= before.items()
            assert "after" not in change
        else:
            rows[key].update(after)
    return rows


def judged(source: DdlSource, condition: str) -> dict[int, Line]:
    """The rows of SHOP.A at the end that fulfil the condition, as SQLite evaluates it."""
    with sqlite3.connect(":memory:") as database:
        database.row_factory = sqlite3.Row
        database.execute("PRAGMA case_sensitive_like = ON")
        database.execute("CREATE TABLE a (ID, N, T, X)")
        rows = [tuple(row.values()) for row in source.rows("A")]
        database.executemany("INSERT INTO a VALUES (?, ?, ?, ?)", rows)
        found = database.execute(f"SELECT * FROM a WHERE {condition}").fetchall()
    return {row["ID"]: dict(row) for row in found}


def a_source(directory: Path, seed: int, count: int = 120) -> tuple[DdlSource, Snapshot]:
    source = DdlSource(directory)
    source.create("A", {"ID": NUMBER, "N": NUMBER, "T": TEXT, "X": NUMBER})
    source.create("B", {"ID": NUMBER})
    snapshot = source.take_snapshot()
    change_at_random(source, random.Random(seed), count)
    source.finish()
    return source, snapshot


@pytest.mark.parametrize("seed", range(4))
def test_the_rows_are_those_that_fulfil_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    source, snapshot = a_source(tmp_path / "s", seed)
    logs = str(tmp_path / "s" / "logs")
    whole, all_of_it = decoded(snapshot, logs)
    expected = judged(source, CONDITION)
    assert 0 < len(expected) < len(source.rows("A"))
    for split_bytes, storage in (
        (1 << 30, IN_MEMORY),
        (4096, IN_MEMORY),
        (4096, SpillFiles(tmp_path / "spill", 0, part_bytes=500)),
    ):
        monkeypatch.setattr(
            "olr_pg.replicator.decode_once.thread_splits",
            partial(thread_splits, split_bytes=split_bytes),
        )
        found, account = decoded(snapshot, logs, rows_filter(), storage)
        assert played(found) == expected
        others = [change for change in whole if change["table"] == "SHOP.B"]
        assert [change for change in found if change["table"] == "SHOP.B"] == others
        assert account.closes
        assert account.account.rows == len(found)
        assert account.account.rows + account.account.rows_filtered == all_of_it.account.rows
        assert sum(sum(kinds.values()) for kinds in account.tables.values()) == len(found)
        kinds = {change["op"] for change in found if change["table"] == "SHOP.A"}
        assert kinds == {"insert", "update", "delete"}


def test_a_move_is_an_insert_or_a_delete(tmp_path: Path) -> None:
    source = DdlSource(tmp_path / "s")
    source.create("A", {"ID": NUMBER, "N": NUMBER, "T": TEXT, "X": NUMBER})
    snapshot = source.take_snapshot()
    row = source.insert("A", 1, 1, "t", 7)
    for value in (5, 6, None):
        source.update(row, {1: value})
    source.finish()
    found, _ = decoded(snapshot, str(tmp_path / "s" / "logs"), rows_filter("n > 3"))
    whole = {"ID": 1, "T": "t", "X": 7}
    assert [(c["op"], c.get("before"), c.get("after")) for c in found] == [
        ("insert", None, {**whole, "N": 5}),
        ("update", {**whole, "N": 5}, {"N": 6}),
        ("delete", {**whole, "N": 6}, None),
    ]


@pytest.mark.parametrize("seed", [11, 12])
@pytest.mark.parametrize("memory", [1 << 30, 2000])
def test_each_of_several_targets_has_rows_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, memory: int
) -> None:
    source, snapshot = a_source(tmp_path / "s", seed)
    storage = SpillFiles(tmp_path / "spill", memory, 100, part_bytes=2000)
    restarts = Restarts(tmp_path, snapshot, monkeypatch, storage=storage)
    restarts.archive(discover_logs([str(tmp_path / "s" / "logs")]))
    wanted = {"all": "1 = 1", "some": CONDITION, "others": f"NOT ({CONDITION})"}
    filters = {name: NO_FILTERS if name == "all" else rows_filter(one)
               for name, one in wanted.items()}  # fmt: skip
    decoder = restarts.decoder(*wanted)
    clients = {
        name: restarts.client(decoder, name, view=TargetView(filters=own))
        for name, own in filters.items()
    }
    for client in clients.values():
        client.start(QUERY)
    render = JsonLines(snapshot.database)
    for name, client in clients.items():
        blobs = [memoryview(one.blob) for one in client.take_all()]
        lines = [json.loads(line) for blob in blobs
                 for line in render.render(blob).splitlines()]  # fmt: skip
        assert client.delivery.failure is None
        assert played([line for line in lines if "table" in line]) == judged(source, wanted[name])
    for client in clients.values():
        client.close()


@pytest.mark.parametrize("logging", [Logging.MINIMAL, Logging.PRIMARY_KEY])
@pytest.mark.parametrize("in_parts", [False, True])
def test_what_the_redo_does_not_tell_is_an_error_of_the_table(
    tmp_path: Path, logging: Logging, in_parts: bool
) -> None:
    """Never a guess: the table's part of that transaction is left out, all others go on."""
    for name, condition, change, code in (
        ("u", "n > 3", {2: "y"}, 2160),
        ("w", "n > 3", {1: 5}, 2161),
    ):
        directory = tmp_path / f"{name}"
        source = DdlSource(directory)
        source.create("A", {"ID": NUMBER, "N": NUMBER, "T": TEXT, "X": NUMBER}).logging = logging
        source.create("B", {"ID": NUMBER})
        snapshot = source.take_snapshot()
        row = source.insert("A", 1, 1, "t", 7)
        session = source.session
        session.insert(source.tables["B"], [sys_cell(1)])
        session.insert(source.tables["A"], [sys_cell(2), sys_cell(4), None, None])
        session.update(row, {at: sys_cell(value) for at, value in change.items()})
        session.commit()
        source.insert("B", 2)
        source.finish()
        storage = SpillFiles(directory / "spill", 0, part_bytes=100) if in_parts else IN_MEMORY
        found, filters, logs = list[Line](), rows_filter(condition), str(directory / "logs")
        options = DecodingOptions(incidents=tmp_path, storage=storage)
        with pytest.raises(OlrPgError) as caught:
            collect(found, snapshot, logs, filters=filters, options=options)
        assert (caught.value.code, caught.value.where["table"]) == (code, "SHOP.A")
        assert [line["table"] for line in found] == ["SHOP.B", "SHOP.B"]


def test_what_one_target_cannot_be_given_concerns_that_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = DdlSource(tmp_path / "s")
    source.create("A", {"ID": NUMBER, "N": NUMBER, "T": TEXT}).logging = Logging.PRIMARY_KEY
    snapshot = source.take_snapshot()
    row = source.insert("A", 1, 1, "t")
    source.update(row, {2: "u"})
    source.finish()
    restarts = Restarts(tmp_path, snapshot, monkeypatch)
    restarts.archive(discover_logs([str(tmp_path / "s" / "logs")]))
    decoder = restarts.decoder("all", "some")
    some = TargetView(filters=rows_filter("n > 3"))
    clients = [restarts.client(decoder, "all"), restarts.client(decoder, "some", view=some)]
    for client in clients:
        client.start(QUERY)
    delivered = [len(client.take_all()) for client in clients]
    faults = [[event for event in client.events if event.is_fault]
              for client in clients]  # fmt: skip
    for client in clients:
        client.close()
    assert delivered == [2, 0]
    assert [[e.evolution.error.code for e in one if e.evolution.error] for one in faults] == [
        [], [2160]
    ]  # fmt: skip


def test_a_table_that_loses_a_column_of_its_condition_stops(tmp_path: Path) -> None:
    source = DdlSource(tmp_path / "s")
    source.create("A", {"ID": NUMBER, "N": NUMBER})
    source.create("B", {"ID": NUMBER})
    snapshot = source.take_snapshot()
    source.insert("A", 1, 5)
    source.rename_column("A", 1, "M")
    source.insert("A", 2, 6)
    source.insert("B", 3)
    source.finish()
    found, filters, logs = list[Line](), rows_filter("n > 3"), str(tmp_path / "s" / "logs")
    options = DecodingOptions(incidents=tmp_path)
    with pytest.raises(OlrPgError) as caught:
        collect(found, snapshot, logs, filters=filters, options=options)
    assert caught.value.code == 2160
    assert "OLR-01132" in caught.value.detail
    assert [line["after"] for line in found] == [{"ID": 1, "N": 5}, {"ID": 3}]


def test_a_condition_that_is_none_is_found_by_config_check() -> None:
    for where, code in (("n >", "OLR-01130"), ("n = 1 OR EXISTS (SELECT 1 FROM d)", "OLR-01131")):
        with pytest.raises(ValidationError, match=code):
            Filter.model_validate({"rows": [{"table": "SHOP.A", "where": where}]})


def test_a_condition_that_does_not_fit_its_table_is_refused_at_the_start(tmp_path: Path) -> None:
    source = DdlSource(tmp_path / "s", followed=False)
    source.create("A", {"ID": NUMBER, "N": NUMBER})
    snapshot = source.take_snapshot()
    for filters, code in (
        (rows_filter("missing = 1"), 1132),
        (rows_filter("n = 'text'"), 1134),
        (Filters(columns={"*.A": ("N",)}, rows=rows_filter("n = 1").rows), 1132),
    ):
        with pytest.raises(OlrPgError) as caught:
            filters.chosen(snapshot.tables, snapshot.database)
        assert (caught.value.code, caught.value.exit_code) == (code, 2)
    assert rows_filter(table="SHOP.AA").idle(snapshot.tables) == [("filter.rows", "SHOP.AA")]
    section = {"rows": [{"table": "shop.*", "where": "n > 1"}, {"table": "*.A", "where": "n < 9"}]}
    condition = filters_of(Filter.model_validate(section)).row_condition(snapshot.tables[0])
    assert condition is not None
    assert condition.text == "(n > 1) AND (n < 9)"


# --- what a condition is asked of, and what becomes of the changes ---


def interpret(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Leave these kernels uncompiled."""
    for name in names:
        monkeypatch.setattr(row_conditions, name, interpreted(getattr(row_conditions, name)))


def test_the_value_of_a_column_before_and_after_each_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A row piece ends with its last value that is not NULL (redo-format §5.9)."""
    interpret(monkeypatch, "_find", "_add_parts", "_join_parts")
    dml = dml_of(
        [
            Change(DmlKind.INSERT, stored=(b"a", None)),
            Change(DmlKind.UPDATE, before={0: b"old", 1: None}, after={0: b"new"}),
            Change(DmlKind.DELETE, before={1: b"gone"}),
            Change(DmlKind.INSERT, after={0: None, 1: b"begin"}),
            Change(DmlKind.INSERT, stored=(b"x", b"yy", b"zzz")),
        ],
        parts={5: b"-middle", 6: b"-end"},
    )

    def told(ordinal: int, *, after: bool) -> list[bytes | int | None]:
        rows = np.array([0, 1, 3, 4] if after else [1, 2])
        column = row_conditions._column(dml, rows, ordinal, is_after=after)
        assert set(column.length[column.length < 0].tolist()) <= {-1, ABSENT}
        return [ABSENT if size == ABSENT else value
                for size, value in zip(column.length, column.values(), strict=True)]  # fmt: skip

    assert told(0, after=False) == [b"old", ABSENT]
    assert told(1, after=False) == [None, b"gone"]
    assert told(0, after=True) == [b"a", b"new", None, b"x"]
    assert told(1, after=True) == [None, None, b"begin-middle-end", b"yy"]
    assert told(2, after=True) == [None, ABSENT, ABSENT, b"zzz"]


def test_an_update_is_turned_with_all_that_is_told_of_its_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A row that comes to fulfil the condition is inserted whole; one that no longer does, goes."""
    interpret(monkeypatch, "_measure_moved", "_move_values", "_count_columns")
    update = DmlKind.UPDATE
    dml = dml_of(
        [
            Change(DmlKind.INSERT, after={0: b"kept"}),
            Change(
                update, before={0: b"k", 1: b"old", 3: None, 4: b"e"}, after={1: b"new", 2: b"c"}
            ),
            Change(update, before={0: b"k", 2: b"b"}, after={0: b"l", 1: b"c"}),
            Change(update, before={1: b"b", 2: b"p"}, after={0: b"a", 4: b"d"}),
            Change(update, before={0: b"k", 1: b"old"}, after={1: b"new"}),
        ],
        parts={2: b"-older", 5: b"-newer", 14: b"-most"},
    )
    keep, to_insert, to_delete = (
        row_conditions._KEEP, row_conditions._TO_INSERT, row_conditions._TO_DELETE,
    )  # fmt: skip
    actions = np.array([keep, to_insert, to_delete, to_insert, keep], np.uint8)
    turned = row_conditions._turned(dml, actions)
    insert, delete = DmlKind.INSERT, DmlKind.DELETE
    assert turned.kind.tolist() == [insert, insert, delete, insert, update]
    assert shown(turned) == [
        (0, {}, {0: b"kept"}),
        (1, {}, {0: b"k", 1: b"new-newer", 2: b"c", 3: None, 4: b"e"}),
        (2, {0: b"k", 2: b"b"}, {}),
        (3, {}, {0: b"a", 1: b"b", 2: b"p", 4: b"d-most"}),
        (4, {0: b"k", 1: b"old"}, {1: b"new"}),
    ]
    whole = [0, 0, 1, 2, 3, 4, 0, 2, 0, 1, 2, 4, 0, 1, 1]  # each column once, in order
    assert turned.entry_first.tolist() == [0, 1, 6, 8, 12, 15]
    assert turned.values.column[: len(whole)].tolist() == whole
    # An insert without some column is none: of the fourth change column 3 is not told.
    row_conditions._complete(dml, actions, np.array([5]))
    assert actions.tolist() == [keep, to_insert, to_delete, row_conditions._FAULT, keep]
