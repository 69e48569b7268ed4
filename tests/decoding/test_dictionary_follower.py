"""DDL in the redo: row changes are decoded with the definition of their own SCN, however split."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
from structlog.testing import capture_logs

from olr_pg.capture.logs import discover_logs
from olr_pg.decoding.dictionary_follower import DictionaryFollower
from olr_pg.decoding.new_tables import CREATE_TABLE, Begin
from olr_pg.decoding.split import Split, plan_splits
from olr_pg.dictionary.change_history import DictionaryHistory
from olr_pg.dictionary.committed_changes import DictionaryTransaction, Statement
from olr_pg.errors import Code, OlrPgError
from olr_pg.ordering.merger import Merger, ThreadSplit
from olr_pg.ordering.split_merging import merge_splits, thread_splits
from olr_pg.rendering.json_lines import JsonLines
from olr_pg.replicator.decode_once import DecodingOptions, LogDecoding, decode_logs, decode_splits
from olr_pg.simulator.fields.cells import BLOB, basic_in_row
from olr_pg.simulator.model.column_types import varchar
from olr_pg.simulator.sessions.ddl_statements import ALTER_TABLE, DdlStatements
from olr_pg.wire.element_plan import build_element_plan
from tests.advice import followed
from tests.replicator.ddl_source import NUMBER, TEXT, DdlSource, source_without_sys_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.simulator.model.tables import SimTable

BLOCK: Final = 512
WHOLE: Final = 1 << 30
SPLITS: Final = (WHOLE, 8 * BLOCK, BLOCK)


def decoded(
    source: DdlSource, monkeypatch: pytest.MonkeyPatch, split_bytes: int
) -> tuple[list[dict[str, Any]], OlrPgError | None]:
    """The row changes, and the error at the end if there is one."""
    assert source.snapshot is not None
    monkeypatch.setattr(
        "olr_pg.replicator.decode_once.thread_splits",
        partial(thread_splits, split_bytes=split_bytes),
    )
    render = JsonLines(source.snapshot.database)
    lines: list[dict[str, Any]] = []
    error = None
    try:
        for blob in decode_logs(source.snapshot, [str(source.directory / "logs")]):
            text = render.render(blob)
            lines += [json.loads(line) for line in text.splitlines()]
    except OlrPgError as caught:
        error = caught
    return [line for line in lines if line["op"] not in ("begin", "commit")], error


def summary(lines: list[dict[str, Any]]) -> list[tuple[str, str, Any]]:
    return [(line["op"], line["table"], line.get("after", line.get("before"))) for line in lines]


@pytest.fixture(scope="module")
def altered(tmp_path_factory: pytest.TempPathFactory) -> DdlSource:
    """Two tables; one gets columns, its columns are renamed, it is truncated."""
    source = DdlSource(tmp_path_factory.mktemp("altered") / "s")
    source.create("A", {"ID": NUMBER, "NAME": TEXT})
    source.create("B", {"ID": NUMBER, "V": NUMBER})
    source.take_snapshot()
    row = source.insert("A", 1, "one")
    source.insert("B", 1, 10)
    source.add_column("A", "EXTRA", NUMBER)
    source.insert("A", 2, "two", 22)
    source.update(row, {2: 11})
    source.comment("A")
    source.insert("B", 2, 20)
    source.rename_column("A", 1, "TITLE")
    source.insert("A", 3, "three", None)
    source.truncate("A")
    source.insert("A", 4, "four", 44)
    source.finish()
    return source


@pytest.mark.parametrize("split_bytes", SPLITS)
def test_rows_before_and_behind_ddl(
    altered: DdlSource, monkeypatch: pytest.MonkeyPatch, split_bytes: int
) -> None:
    lines, error = decoded(altered, monkeypatch, split_bytes)
    assert error is None
    assert summary(lines) == [
        ("insert", "SHOP.A", {"ID": 1, "NAME": "one"}),
        ("insert", "SHOP.B", {"ID": 1, "V": 10}),
        ("insert", "SHOP.A", {"ID": 2, "NAME": "two", "EXTRA": 22}),
        ("update", "SHOP.A", {"EXTRA": 11}),
        ("insert", "SHOP.B", {"ID": 2, "V": 20}),
        ("insert", "SHOP.A", {"ID": 3, "TITLE": "three", "EXTRA": None}),
        ("insert", "SHOP.A", {"ID": 4, "TITLE": "four", "EXTRA": 44}),
    ]


def test_partitions_that_appear_are_followed_and_their_rows_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = DdlSource(tmp_path / "s")
    table = source.create("P", {"ID": NUMBER}, partitions=2)
    source.take_snapshot()
    session, ids = source.session, range(1, 13)
    first = [source.insert("P", number).block.obj for number in ids]
    assert session.ddl.add_partition(table)
    assert session.ddl.split_partition(table, 0)
    then = [source.insert("P", 100 + number).block.obj for number in ids]
    assert set(first).isdisjoint(then)
    assert session.ddl.drop_partition(table, 2)
    for number in ids:
        source.insert("P", 200 + number)
    source.finish()
    wanted = [{"ID": base + number} for base in (0, 100, 200) for number in ids]
    for split_bytes in SPLITS:
        lines, error = decoded(source, monkeypatch, split_bytes)
        assert error is None
        assert [line["after"] for line in lines] == wanted


def test_partitions_of_index_organised_tables_are_followed_by_those_of_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = DdlSource(tmp_path / "s")
    table = source.create("P", {"ID": NUMBER, "V": NUMBER}, partitions=2, organised=True)
    source.take_snapshot()
    session, ids, later = source.session, range(1, 50), range(100, 200)
    first = {source.insert("P", number, 1).block.obj for number in ids}
    old = set(table.objects)
    assert session.ddl.add_partition(table)
    assert session.ddl.truncate_partition(table, 0)
    then = {source.insert("P", number, 2).block.obj for number in later}
    added = table.segments[2]
    assert (len(first), then) == (2, first | {added.obj})
    assert added.table_part not in old
    assert not session.ddl.split_partition(table, 0)
    assert session.ddl.drop_partition(table, 0)
    kept = [row for row in table.live if row.block.obj == added.obj]
    source.update(kept[0], {1: 3})
    # Under a key of another partition it is deleted and inserted.
    old_key = kept[0].cells[0]
    assert old_key is not None
    source.update(kept[0], {0: 1000})
    source.finish()
    wanted = [("insert", number, 1) for number in ids] + [("insert", number, 2) for number in later]
    moved = int(old_key.json)
    for split_bytes in SPLITS:
        lines, error = decoded(source, monkeypatch, split_bytes)
        assert error is None
        found = [(line["op"], *(line.get("after") or line["before"]).values()) for line in lines]
        assert found[:-3] == wanted
        assert found[-3:] == [("update", 3), ("delete", moved, 3), ("insert", 1000, 3)]
        assert {line["rowid"] for line in lines} == {""}


@pytest.mark.parametrize("split_bytes", SPLITS)
def test_without_the_rows_of_sys_tables_only_the_table_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, split_bytes: int
) -> None:
    source = source_without_sys_rows(tmp_path / "s")
    lines, error = decoded(source, monkeypatch, split_bytes)
    assert summary(lines) == [("insert", "SHOP.A", {"ID": 1}), ("insert", "SHOP.B", {"ID": 1})]
    assert error is not None
    assert error.code == 2013
    assert error.where["table"] == "SHOP.A"
    assert "ALTER TABLE A ADD (EXTRA" in error.detail


def test_ddl_of_one_redo_thread_reaches_the_rows_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = DdlSource(tmp_path / "s", threads=2, log_blocks=12)
    source.create("A", {"ID": NUMBER})
    source.take_snapshot()
    # The log of thread 2 begins first and is read first, past the DDL of thread 1.
    source.insert("A", 1, thread=2)
    for number in range(2, 22):  # several logs
        source.insert("A", number, thread=1)
    source.add_column("A", "EXTRA", NUMBER)
    source.insert("A", 22, 33, thread=2)
    source.insert("A", 23, 44, thread=1)
    source.finish()
    begins, original = dict[Split, int](), Merger.feed
    needed, read_again = 0, 0

    def feed(self: Merger, thread: int, result: Any, split: ThreadSplit) -> Any:
        nonlocal needed, read_again
        begin = begins.setdefault(split.split, self.watermark_of(thread))
        assert not split.again or begin >= needed, "its redo may have been deleted"
        read_again += split.again
        released = original(self, thread, result, split)
        needed = max(needed, self.needed_scn)
        return released

    monkeypatch.setattr(Merger, "feed", feed)
    for split_bytes in SPLITS:
        needed = 0
        begins.clear()
        lines, error = decoded(source, monkeypatch, split_bytes)
        assert error is None
        assert [line["after"] for line in lines] == [
            *({"ID": number} for number in range(1, 22)),
            {"ID": 22, "EXTRA": 33},
            {"ID": 23, "EXTRA": 44},
        ]
    assert read_again


def test_ddl_that_is_read_later_than_what_committed_after_it_is_followed_in_its_place(
    altered: DdlSource, tmp_path: Path
) -> None:
    """As where the logs of a redo thread were missing when an earlier run recorded DDL of another
    one.
    """
    snapshot = altered.snapshot
    assert snapshot is not None
    ddl: list[DictionaryTransaction] = []
    decoding = LogDecoding(snapshot, [str(altered.directory / "logs")])
    for _ in decoding.runs(DecodingOptions(ddl=ddl.append)):
        pass

    def follower(history: DictionaryHistory) -> DictionaryFollower:
        found = DictionaryFollower(snapshot, record=history.add)
        found.subscribe(snapshot.tables)
        found.apply(history.transactions)
        return found

    def evolved(found: DictionaryFollower) -> list[str]:
        return [f"{event.commit_scn} {event.evolution}" for event in found.events]

    right = follower(DictionaryHistory(tmp_path / "whole", "DB", snapshot.scn))
    right.apply(ddl)
    assert len(evolved(right)) > 2
    for missing in range(len(ddl) - 1):
        path = tmp_path / f"without-{missing}"
        history = DictionaryHistory(path, "DB", snapshot.scn)
        follower(history).apply(ddl[:missing] + ddl[missing + 1 :])
        recorded = len(history.transactions)
        later = follower(DictionaryHistory(path, "DB", snapshot.scn))
        with pytest.raises(OlrPgError, match="1 transaction with DDL") as late:
            later.apply(ddl)
        followed(late.value, Code.DDL_READ_LATE, "start the appliance again")
        again = DictionaryHistory(path, "DB", snapshot.scn)
        assert len(again.transactions) == recorded + 1
        healed = follower(again)
        healed.apply(ddl)
        assert evolved(healed) == evolved(right)


def test_an_interval_partition_that_is_read_later_is_followed_in_its_place(tmp_path: Path) -> None:
    """An insert creates it, without a statement. An earlier run has not recorded it if the table
    was added to the list later.
    """
    source = DdlSource(tmp_path / "s")
    source.create("A", {"ID": NUMBER})
    table = source.create("P", {"ID": NUMBER}, partitions=2)
    snapshot = source.take_snapshot()
    assert source.session.ddl.add_partition(table)
    source.session.commit()
    source.add_column("A", "EXTRA", NUMBER)
    source.finish()
    interval, column = ddl_of(source, snapshot)
    interval = interval._replace(statements=())
    recorded: list[DictionaryTransaction] = []

    def follower(*earlier: DictionaryTransaction) -> DictionaryFollower:
        found = DictionaryFollower(snapshot, record=recorded.append)
        found.subscribe(snapshot.tables)
        found.apply(earlier)
        return found

    with pytest.raises(OlrPgError, match=r"1 transaction with DDL \[scn") as late:
        follower(column).apply([interval, column])
    assert late.value.code == 3076
    assert recorded == [column, interval]
    again = follower(interval, column)
    again.apply([interval, column])
    found = again.as_of(table.obj, column.commit_scn)
    assert found is not None
    assert len(found.partitions) == 3


@pytest.mark.parametrize("missing", ["CREATE USER", "CREATE TABLE", "ALTER TABLE", ""])
def test_new_users_and_tables_that_are_read_later_are_followed_in_their_place(
    tmp_path: Path, missing: str
) -> None:
    """As where the logs of another redo thread were missing. DDL of earlier tables with the same
    name, which nobody follows, is not late.
    """
    source = DdlSource(tmp_path / "s")
    first = source.create("A", {"ID": NUMBER})
    snapshot = source.take_snapshot()
    source.dictionary.create_owner_again(source.session.rows, 140)
    source.session.ddl.log_statement(first, 51, "CREATE USER SHOP …")
    source.session.commit()
    source.make("LATER", {"ID": NUMBER})
    source.add_column("LATER", "EXTRA", NUMBER)
    source.make("LAST", {"ID": NUMBER})
    source.add_column("A", "EXTRA", NUMBER)
    source.finish()
    ddl = ddl_of(source, snapshot)
    texts = [" ".join(statement.text for statement in one.statements) for one in ddl]
    number = next((n for n, text in enumerate(texts) if text.startswith(missing)), None)
    assert number is not None
    statement = ddl[-2].statements[0]._replace(command=15, obj=0, text="ALTER TABLE LAST …")
    stranger = ddl[0]._replace(
        changes=(), statements=(statement,), commit_scn=ddl[0].commit_scn - 1
    )
    recorded: list[DictionaryTransaction] = []
    taken: list[str] = []

    def take(table: Table, _begin: Begin) -> bool:
        taken.append(table.full_name)
        return True

    def follower(earlier: Sequence[DictionaryTransaction]) -> DictionaryFollower:
        taken.clear()
        found = DictionaryFollower(snapshot, record=recorded.append, take=take)
        found.subscribe(snapshot.tables, wanted=lambda owner, _name: owner == "SHOP")
        found.apply(sorted(earlier, key=lambda one: one.order))
        return found

    read = ddl if not missing else [*ddl[:number], *ddl[number + 1 :]]
    follower(read)
    known, recorded[:] = [one for one in read if one in recorded], []
    later = follower(known)
    recorded.clear()
    if not missing:
        later.apply([stranger, *ddl])
        assert recorded == []
        return
    # A user that is missing hides its tables, and a table that is missing hides its DDL.
    for _ in range({"CREATE USER": 3, "CREATE TABLE": 2, "ALTER TABLE": 1}[missing]):
        with pytest.raises(OlrPgError, match="OLR-03076") as late:
            later.apply([stranger, *ddl])
        followed(late.value, Code.DDL_READ_LATE, "at most twice", "Start again each time")
        known += [one for one in recorded if one not in known]
        later = follower(known)
    later.apply([stranger, *ddl])
    assert all(one in ddl for one in known)
    assert taken == ["SHOP.LATER", "SHOP.LAST"]


@pytest.mark.parametrize("split_bytes", SPLITS)
def test_where_nobody_is_told_the_delivery_ends_before_the_ddl(
    tmp_path: Path, split_bytes: int
) -> None:
    source = DdlSource(tmp_path / "s", followed=False)
    source.create("A", {"ID": NUMBER})
    source.create("B", {"ID": NUMBER})
    snapshot = source.take_snapshot()
    source.insert("A", 1)
    source.insert("B", 1)
    source.add_column("A", "EXTRA", NUMBER)
    source.insert("B", 2)
    source.insert("A", 2, 22)
    source.finish()
    follower = DictionaryFollower(snapshot, ends_delivery=True)
    merger = Merger(
        follower.subscribe(snapshot.tables),
        0,
        {1: 0},
        follower,
    )
    (log,) = discover_logs([str(source.directory / "logs")])
    splits = [ThreadSplit(1, split) for split in plan_splits(log, split_bytes)]
    merged = merge_splits(merger, splits, decode_splits)
    assert sum(len(run) for step in merged for run in step.released) == 2
    assert merger.failure is not None
    assert merger.failure.code == 2013


def ddl_of(source: DdlSource, snapshot: Snapshot) -> list[DictionaryTransaction]:
    """The transactions that changed the dictionary."""
    ddl: list[DictionaryTransaction] = []
    for _ in LogDecoding(snapshot, [str(source.directory / "logs")]).runs(
        DecodingOptions(ddl=ddl.append)
    ):
        pass
    return ddl


def arrays(plan: Any) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """The arrays of a plan, and of the plans in it."""
    for name, part in plan._asdict().items():
        if isinstance(part, np.ndarray):
            yield name, part
        elif hasattr(part, "_asdict"):
            yield from ((f"{name}.{own}", array) for own, array in arrays(part))


def test_a_plan_that_is_extended_by_ddl_equals_one_that_is_made_at_once(
    altered: DdlSource,
) -> None:
    snapshot = altered.snapshot
    assert snapshot is not None
    tables = [table for table in snapshot.tables if table.owner == "SHOP"]
    follower = DictionaryFollower(snapshot)
    first = follower.subscribe(tables)
    versions = len(first.tables)
    for transaction in ddl_of(altered, snapshot):
        if follower.apply([transaction]) is None:
            continue
        extended = follower.subscription()
        assert len(extended.tables) > versions
        versions = len(extended.tables)
        whole = DictionaryFollower(snapshot)
        for one in ddl_of(altered, snapshot):
            if one.commit_scn <= transaction.commit_scn:
                whole.apply([one])
        at_once = whole.subscribe(tables)
        assert at_once.tables == extended.tables
        for of in ("row_plan", "element_plan"):
            wanted = dict(arrays(getattr(at_once, of)))
            found = dict(arrays(getattr(extended, of)))
            assert found.keys() == wanted.keys()
            for name, array in found.items():
                assert array.dtype == wanted[name].dtype
                assert array.flags.writeable == wanted[name].flags.writeable
                np.testing.assert_array_equal(array, wanted[name], err_msg=name)
        elements = dict(arrays(build_element_plan(extended.tables)))
        for name, array in arrays(extended.element_plan):
            assert array.flags.writeable == elements[name].flags.writeable
            np.testing.assert_array_equal(array, elements[name], err_msg=name)
    assert versions > len(first.tables)


def consequences(source: DdlSource) -> list[str | int]:
    """What a follower makes of all DDL of a source: steps, or why the table stops."""
    found: list[str | int] = []
    assert source.snapshot is not None
    original = DictionaryFollower._told

    def told(self: DictionaryFollower, *args: Any) -> None:
        original(self, *args)
        evolution = self.events[-1].evolution
        kinds = [step.kind.value for step in evolution.steps]
        found.append(evolution.error.code if evolution.error else ", ".join(kinds))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DictionaryFollower, "_told", told)
        list(decode_logs(source.snapshot, [str(source.directory / "logs")]))
    return found


def test_the_consequence_of_each_kind_of_ddl(tmp_path: Path) -> None:
    source = DdlSource(tmp_path / "s")
    source.create("A", {"ID": NUMBER, "NAME": TEXT})
    parts = source.create("P", {"ID": NUMBER}, partitions=4)
    source.take_snapshot()
    source.add_column("A", "NULLABLE", NUMBER)
    source.add_odd_column("A", "FILLED", bits=1 << 30)
    source.add_odd_column("A", "NEEDED", nullable=False)
    source.add_column("A", "DEFAULTED", NUMBER, 7)
    source.rename_column("A", 1, "TITLE")
    source.modify_column("A", 1, varchar(200))
    source.set_nullable("A", 1, nullable=False)
    source.set_nullable("A", 1, nullable=True)
    source.set_unused("A", 1)
    source.truncate("A")
    source.truncate("A", logged=False)
    source.comment("A")
    session = source.session
    assert session.ddl.add_partition(parts)
    assert session.ddl.drop_partition(parts, 0)
    assert session.ddl.split_partition(parts, 0)
    assert session.ddl.merge_partitions(parts, 0)
    assert session.ddl.truncate_partition(parts, 0)
    assert session.ddl.exchange_partition(parts, 0)
    source.drop("A")
    source.finish()
    assert consequences(source) == [
        *("add-column", 3072, "add-column", "add-column", "rename-column", "modify-column"),
        *("not-null", "not-null", "drop-column", "truncate", 3073),
        # ADD PARTITION, DROP, SPLIT, MERGE, TRUNCATE, EXCHANGE; DROP TABLE
        *("add-partition", "drop-partition, regroup", "regroup, regroup, regroup"),
        *("regroup, regroup, regroup", "truncate-partition", 3073, "drop-table"),
    ]


def test_other_files_of_an_external_partition_stop_the_table(tmp_path: Path) -> None:
    """They are in no SYS table that is followed."""
    source = DdlSource(tmp_path / "s")
    table = source.create("P", {"ID": NUMBER}, partitions=2)
    snapshot = source.take_snapshot()
    text = "ALTER TABLE P MODIFY PARTITION P2 LOCATION ('p2.csv')"
    said = Statement(ALTER_TABLE, table.obj, "SHOP", "P", text, snapshot.scn + 1)
    ddl = DictionaryTransaction(
        0, 1, snapshot.scn + 1, snapshot.scn + 2, (1, 1, 1, 1), statements=(said,)
    )
    follower = DictionaryFollower(snapshot)
    follower.subscribe(snapshot.tables)
    follower.apply([ddl])
    (event,) = follower.events
    assert event.evolution.error is not None
    assert event.evolution.error.code == 3073
    assert "whose rows are in files" in event.evolution.error.detail


OF_PARTITIONS: Final = {
    "split_partition": "regroup, regroup, regroup",
    "merge_partitions": "regroup, regroup, regroup",
    "drop_partition": "drop-partition, regroup",
    "truncate_partition": "truncate-partition",
}


@pytest.mark.parametrize("told", ["of its parent", "not logged"])
@pytest.mark.parametrize("kind", OF_PARTITIONS)
def test_a_table_that_is_partitioned_by_reference_follows_the_statement_of_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, told: str
) -> None:
    """Oracle changes the partitions of such a table with those of the table that the statement
    names. Without the statement, nobody knows which rows are left.
    """
    source = DdlSource(tmp_path / "s")
    parent = source.create("A", {"ID": NUMBER})
    table = source.create("P", {"ID": NUMBER}, partitions=4)
    source.take_snapshot()
    log = DdlStatements.log_statement

    def log_of_parent(self: DdlStatements, _: SimTable, command: int, words: str, n: int) -> None:
        if told == "of its parent":
            log(self, parent, command, words.replace(" P ", " A "), n)

    with monkeypatch.context() as patch:
        patch.setattr(DdlStatements, "log_statement", log_of_parent)
        assert getattr(source.session.ddl, kind)(table, 0)
    source.finish()
    assert consequences(source) == [OF_PARTITIONS[kind] if told == "of its parent" else 3073]


@pytest.mark.parametrize("then", ["created again", "purged", "flashed back", "both"])
def test_a_table_in_the_recycle_bin_is_dropped_until_it_comes_back(
    tmp_path: Path, then: str
) -> None:
    """A plain DROP TABLE renames the table, its indexes and its constraints."""
    source = DdlSource(tmp_path / "s")
    first = source.create("A", {"ID": NUMBER, "NAME": TEXT})
    snapshot = source.take_snapshot()
    source.purges = False
    source.drop("A")
    due: list[str | int] = ["drop-table"]
    if then in ("created again", "both"):
        source.make("A", {"ID": NUMBER})
        due.append("create-again")
    if then == "both":
        source.drop("A")
        due.append("drop-table")
    if then in ("flashed back", "both"):
        source.flash_back(first)
        due.append(3071)
    else:
        assert source.session.ddl.purge_table(first)
    source.finish()
    follower = DictionaryFollower(snapshot, take=lambda *_: True)
    follower.subscribe(snapshot.tables, wanted=lambda owner, _name: owner == "SHOP")
    ddl = ddl_of(source, snapshot)
    with capture_logs() as logs:
        follower.apply(ddl)
    found = [
        one.evolution.error.code if one.evolution.error else one.evolution.steps[-1].kind.value
        for one in follower.events
    ]
    assert found == due
    assert [one for one in logs if one.get("code") == "OLR-03080"] == []


@pytest.mark.parametrize("restarted", [False, True])
def test_tables_of_a_user_that_was_dropped_and_created_again_are_followed(
    tmp_path: Path, *, restarted: bool
) -> None:
    """DROP USER … CASCADE and CREATE USER: the new user has another number. With `restarted`, a
    later run has only the recorded transactions.
    """
    source = DdlSource(tmp_path / "s")
    first = source.create("A", {"ID": NUMBER})
    snapshot = source.take_snapshot()
    source.drop("A")
    source.dictionary.create_owner_again(source.session.rows, 140)
    source.session.ddl.log_statement(first, 51, "CREATE USER SHOP …")
    source.session.commit()
    source.make("A", {"ID": NUMBER})
    source.make("LATER", {"ID": NUMBER})
    source.finish()
    recorded: list[DictionaryTransaction] = []
    taken: list[str] = []

    def take(table: Table, _begin: Begin) -> bool:
        taken.append(table.full_name)
        return True

    follower = DictionaryFollower(snapshot, record=recorded.append, take=take)
    follower.subscribe(snapshot.tables, wanted=lambda owner, _name: owner == "SHOP")
    follower.apply(ddl_of(source, snapshot))
    if restarted:
        taken.clear()
        follower = DictionaryFollower(snapshot, take=take)
        follower.subscribe(snapshot.tables, wanted=lambda owner, _name: owner == "SHOP")
        follower.apply(recorded)
    steps = [step.kind.value for one in follower.events for step in one.evolution.steps]
    assert (steps, taken) == (["drop-table", "constraint", "create-again"], ["SHOP.LATER"])


@pytest.mark.parametrize("followed", [True, False])
def test_a_table_that_is_created_later_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, followed: bool
) -> None:
    source = DdlSource(tmp_path / "s", followed=followed)
    source.create("A", {"ID": NUMBER})
    source.take_snapshot()
    source.insert("A", 1)
    source.create("LATER", {"ID": NUMBER})
    source.statement("LATER", CREATE_TABLE, "CREATE TABLE LATER (ID NUMBER PRIMARY KEY)")
    source.session.commit()
    created = source.instance.scn
    source.insert("LATER", 1)
    source.insert("A", 2)
    source.finish()
    for split_bytes in SPLITS:
        with capture_logs() as logs:
            lines, error = decoded(source, monkeypatch, split_bytes)
        assert error is None
        assert [line["after"] for line in lines] == [{"ID": 1}, {"ID": 2}]
        (warning,) = [log for log in logs if log.get("code") == "OLR-03080"]
        assert (warning["table"], warning["log_level"]) == ("SHOP.LATER", "warning")
        assert warning["scn"] <= created


def test_a_new_name_is_reported_where_the_subscription_has_it(tmp_path: Path) -> None:
    source = DdlSource(tmp_path / "s")
    source.create("A", {"ID": NUMBER})
    source.create("B", {"ID": NUMBER})
    snapshot = source.take_snapshot()
    source.create("OTHER", {"ID": NUMBER})
    source.statement("OTHER", CREATE_TABLE, "CREATE TABLE OTHER (ID NUMBER PRIMARY KEY)")
    source.session.commit()
    source.drop("A")
    source.create("A", {"ID": NUMBER})
    source.statement("A", CREATE_TABLE, "CREATE TABLE A (ID NUMBER PRIMARY KEY)")
    source.session.commit()
    source.finish()
    with capture_logs() as logs:
        list(decode_logs(snapshot, [str(source.directory / "logs")], tables=["SHOP.A", "SHOP.B"]))
    assert [log["table"] for log in logs if log.get("code") == "OLR-03080"] == ["SHOP.A"]


@pytest.mark.parametrize("then", ["created again", "renamed to it"])
def test_a_name_whose_first_table_was_dropped_before_anybody_could_take_it_is_taken_later(
    tmp_path: Path, then: str
) -> None:
    """As where another client has used the port, and the bundled applier comes back."""
    source = DdlSource(tmp_path / "s")
    source.create("A", {"ID": NUMBER})
    snapshot = source.take_snapshot()
    for made in range(2):
        if made and then == "renamed to it":
            source.rename("A", "LATER")
            break
        source.create("LATER", {"ID": NUMBER})
        source.statement("LATER", CREATE_TABLE, "CREATE TABLE LATER (ID NUMBER PRIMARY KEY)")
        source.session.commit()
        if not made:
            source.drop("LATER")
    source.finish()
    ddl = ddl_of(source, snapshot)
    taken: dict[int, Begin] = {}

    def take(table: Table, begin: Begin) -> bool:
        taken[table.object_key] = begin
        return True

    follower = DictionaryFollower(snapshot, take=take)
    follower.apply(ddl)
    follower.subscribe(snapshot.tables, wanted=lambda owner, _name: owner == "SHOP")
    ((key, begin),) = taken.items()
    assert begin.is_renamed is (then == "renamed to it")
    # A created table changes what the dropped one left behind, a renamed one brings its own rows.
    assert begin.scn == ddl[0 if then == "created again" else -1].commit_scn
    assert [one.full_name for one in follower.created() if one.object_key == key] == ["SHOP.LATER"]


@pytest.mark.parametrize(
    ("default", "known"),
    [
        (basic_in_row(BLOB, 1, b"\xc1\x08"), True),
        (basic_in_row(BLOB, 1, b"")[:20], False),
        (b"no locator", False),
    ],
    ids=["in the row", "elsewhere", "not understood"],
)
def test_the_default_of_an_added_column_is_read_from_redo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, default: bytes, known: bool
) -> None:
    source = DdlSource(tmp_path / "s")
    source.create("A", {"ID": NUMBER, "NAME": TEXT})
    source.take_snapshot()
    old = source.insert("A", 1, "one")
    source.add_odd_column("A", "SEVEN", nullable=False, bits=1 << 30, default=default)
    new = source.insert("A", 2, "two", 22)
    for row in (old, new):
        assert source.session.delete(row)
    source.session.commit()
    source.finish()
    for split_bytes in SPLITS:
        lines, error = decoded(source, monkeypatch, split_bytes)
        assert error is None
        assert summary(lines) == [
            ("insert", "SHOP.A", {"ID": 1, "NAME": "one"}),
            ("insert", "SHOP.A", {"ID": 2, "NAME": "two", "SEVEN": 22}),
            ("delete", "SHOP.A", {"ID": 1, "NAME": "one"} | ({"SEVEN": 7} if known else {})),
            ("delete", "SHOP.A", {"ID": 2, "NAME": "two", "SEVEN": 22}),
        ]
