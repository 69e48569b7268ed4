"""Transactions of the way back, which change its ledger, do not come round again."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

import pytest

from olr_pg.config.table_patterns import LEDGER
from olr_pg.decoding.dictionary_follower import DictionaryFollower
from olr_pg.decoding.filters import NO_FILTERS, Filters
from olr_pg.decoding.spill import SpillFiles
from olr_pg.decoding.split import SPLIT_BYTES
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.ordering.split_merging import thread_splits
from olr_pg.rendering.json_lines import PackedLines
from olr_pg.replicator.decode_once import DecodingOptions, LogDecoding
from olr_pg.replicator.process_decoding import ProcessDecoding
from olr_pg.transactions.waiting_storage import IN_MEMORY
from olr_pg.wire.encoder import Form
from tests.simulator.sql.databases import Recorded

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.decoding.new_tables import Begin, Take
    from olr_pg.dictionary.committed_changes import DictionaryTransaction
    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.ordering.accounting import Accounting
    from olr_pg.transactions.waiting_storage import Storage

pytestmark = pytest.mark.filterwarnings(
    # This process has threads of other tests, which hold no lock that a child needs.
    "ignore:This process.* is multi-threaded:DeprecationWarning"
)

ITEMS = "CREATE TABLE items (id NUMBER PRIMARY KEY, name VARCHAR2(200), notes CLOB)"
BOOK = f"CREATE TABLE {LEDGER} (subscription VARCHAR2(128) PRIMARY KEY, lsn NUMBER(20))"
MOVE = f"UPDATE {LEDGER} SET lsn = lsn + 1"
BEGIN = f"INSERT INTO {LEDGER} VALUES ('olr_pg', 0)"
LARGE = 300

END = f"DROP TABLE {LEDGER} PURGE"
LIVES = {
    "it ended and began again": [END, BOOK, BEGIN],
    "a third time": [END, BOOK, BEGIN],
    "by way of the recycle bin": [f"DROP TABLE {LEDGER}", BOOK, BEGIN],
    "it ended twice": [END, BOOK, END, BOOK, BEGIN],
    "it got a column": [f"ALTER TABLE {LEDGER} ADD (reason VARCHAR2(100))"],
    "that was emptied": [f"TRUNCATE TABLE {LEDGER}", f"INSERT INTO {LEDGER} VALUES ('x', 0, 'y')"],
    "one was set aside, another one made": [f"RENAME {LEDGER} TO aside", BOOK, BEGIN],
    "and the first one put back": [END, f"RENAME aside TO {LEDGER}"],
    "that ended, too": [END, BOOK, BEGIN],
}
"""What can become of the ledger of a way back between two positions of the forward way, one after
the other: `fallback end` and the next cut-over, a `begin` that made it again, DDL of a DBA."""


class Redo(NamedTuple):
    """What was recorded.

    Attributes:
        theirs: the rows by ID that applications changed, in order.
        ours: how many transactions are of the way back, and how many rows they changed.
    """

    snapshot: Snapshot
    logs: str
    ledger: str
    theirs: list[int]
    ours: tuple[int, int]


@pytest.fixture(scope="module", params=["before the dictionary", "later, by DDL"])
def redo(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Redo:
    made = Recorded(tmp_path_factory.mktemp("way-back"))
    is_known = request.param == "before the dictionary"
    insert = "INSERT INTO items (id, name, notes) VALUES ({0}, 'x{0}', 'n{0}')".format
    made.run(ITEMS, *([BOOK, BEGIN] if is_known else []), "COMMIT")
    made.start()
    theirs, ours = [1], [0, 0]
    made.run(insert(1), "COMMIT")
    if not is_known:
        made.run(BOOK, BEGIN, "COMMIT")
        ours = [1, 1]
    made.run(insert(2), MOVE, "COMMIT")  # the ledger last
    made.run(insert(3), "COMMIT")
    made.run(MOVE, insert(4), "UPDATE items SET name = 'y' WHERE id = 1", "COMMIT")  # first
    made.run(insert(5), MOVE, "ROLLBACK")
    made.run("SAVEPOINT a", MOVE, "ROLLBACK TO SAVEPOINT a", insert(6), "COMMIT")  # not of ours
    made.run(*map(insert, range(100, 100 + LARGE)), MOVE, "COMMIT")  # over many splits
    made.run(insert(7), "COMMIT")
    made.run("DELETE FROM items WHERE id = 2", MOVE, "COMMIT")
    made.run(insert(8), "COMMIT")
    theirs += [3, 6, 7, 8]
    transactions, rows = ours
    made.database.shut_down()
    snapshot = load_snapshot(str(made.folder / "dictionary.json"))
    return Redo(
        snapshot,
        str(made.folder / "logs"),
        f"{made.database.owner}.{LEDGER}",
        theirs,
        (transactions + 4, rows + 2 + 3 + LARGE + 1 + 2),
    )


def decoded(
    redo: Redo,
    filters: Filters,
    *,
    split_bytes: int = SPLIT_BYTES,
    storage: Storage = IN_MEMORY,
    threads: ProcessDecoding | None = None,
) -> tuple[list[dict[str, Any]], Accounting]:
    """The changes that are delivered, and the account."""
    accounts = list[Any]()
    lines = PackedLines(redo.snapshot.database)
    pieces = list[bytes]()
    split = partial(thread_splits, split_bytes=split_bytes)
    with patch("olr_pg.replicator.decode_once.thread_splits", split):
        decoding = LogDecoding(redo.snapshot, [redo.logs], filters=filters, packed=True)
        decode = None if threads is None else threads.decode
        for run in decoding.runs(
            DecodingOptions(account=accounts.append, storage=storage, decode=decode)
        ):
            is_text = run.batch.form is Form.LINES
            found = [run.blob] if is_text else lines.pieces(run.blob, decoding.tables)
            pieces += map(bytes, found)
    rows = [json.loads(line) for line in b"".join(pieces).splitlines()]
    return [row for row in rows if row["op"] in ("insert", "update", "delete")], accounts[0]


def check(redo: Redo, changes: list[dict[str, Any]], account: Accounting) -> None:
    assert [(one["op"], one["after"]["ID"]) for one in changes] == [
        ("insert", row) for row in redo.theirs
    ]
    transactions, rows = redo.ours
    assert account.account.transactions_filtered == transactions
    assert account.account.rows_filtered == rows
    assert account.account.rows == len(redo.theirs)
    assert account.closes
    assert {name.partition(".")[2] for name in account.tables} == {"ITEMS"}


@pytest.mark.parametrize("split_bytes", [SPLIT_BYTES, 20_000])
def test_transactions_of_ours_are_left_out(redo: Redo, split_bytes: int) -> None:
    filters = Filters(ledger=redo.ledger)
    check(redo, *decoded(redo, filters, split_bytes=split_bytes))


def test_large_ones_that_are_finished_in_parts_are_left_out(redo: Redo, tmp_path: Path) -> None:
    storage = SpillFiles(tmp_path, 0, part_bytes=10_000)
    check(redo, *decoded(redo, Filters(ledger=redo.ledger), split_bytes=20_000, storage=storage))


def test_processes_leave_them_out(redo: Redo) -> None:
    with ProcessDecoding(2, lines_of=redo.snapshot.database) as threads:
        filters = Filters(ledger=redo.ledger)
        check(redo, *decoded(redo, filters, split_bytes=20_000, threads=threads))


def test_its_tables_are_no_new_ones_to_replicate(redo: Redo) -> None:
    def made(filters: Filters) -> set[str]:
        taken = set[str]()

        def take(table: Table, _: Begin) -> bool:
            taken.add(table.name)
            return False

        follower = partial(DictionaryFollower, take=take)
        with patch("olr_pg.replicator.decode_once.DictionaryFollower", follower):
            decoded(redo, filters)
        return taken

    is_known = any(one.name == LEDGER for one in redo.snapshot.tables)
    assert made(NO_FILTERS) == (set() if is_known else {LEDGER})
    assert made(Filters(ledger=redo.ledger)) == set()


def test_without_a_way_back_all_are_delivered(redo: Redo) -> None:
    changes, account = decoded(redo, NO_FILTERS)
    transactions, rows = redo.ours  # each has one change of the ledger
    of_tables = Counter(one["table"].partition(".")[2] for one in changes)
    assert of_tables["ITEMS"] == len(redo.theirs) + rows - transactions
    is_known = any(one.name == LEDGER for one in redo.snapshot.tables)
    assert of_tables[LEDGER] == (transactions if is_known else 0)
    assert account.account.transactions_filtered == 0


@pytest.fixture(scope="module", params=["before the dictionary", "later, by DDL"])
def lives(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Redo:
    made = Recorded(tmp_path_factory.mktemp("lives"))
    first = [BOOK, BEGIN, "COMMIT"]
    is_known = request.param == "before the dictionary"
    made.run(ITEMS, *(first if is_known else ()), "COMMIT")
    made.start()
    made.run(*(() if is_known else first), "COMMIT")
    theirs, transactions, rows = list[int](), int(not is_known), int(not is_known)
    for number, life in enumerate(LIVES.values()):
        made.run(*life, "COMMIT")
        written = any(one.startswith("INSERT") for one in life)
        made.run(f"INSERT INTO items (id) VALUES ({number})", "COMMIT")
        made.run(f"INSERT INTO items (id) VALUES ({100 + number})", MOVE, "COMMIT")
        theirs.append(number)
        transactions, rows = transactions + 1 + written, rows + 2 + written
    made.database.shut_down()
    return Redo(
        load_snapshot(str(made.folder / "dictionary.json")),
        str(made.folder / "logs"),
        f"{made.database.owner}.{LEDGER}",
        theirs,
        (transactions, rows),
    )


@pytest.mark.parametrize("names", ["names are followed", "names are not followed"])
def test_each_life_of_the_ledger_is_known_also_after_a_restart(lives: Redo, names: str) -> None:
    recorded: list[DictionaryTransaction] = []
    before: list[DictionaryTransaction] = []

    def follower(snapshot: Snapshot, *, filters: Filters) -> DictionaryFollower:
        take: Take | None = (
            (lambda _table, _begin: False) if names == "names are followed" else None
        )
        made = DictionaryFollower(snapshot, filters=filters, record=recorded.append, take=take)
        made.apply(before)
        return made

    with patch("olr_pg.replicator.decode_once.DictionaryFollower", follower):
        check(lives, *decoded(lives, Filters(ledger=lives.ledger)))
        before = [*recorded]
        assert len(before) >= len(LIVES)
        check(lives, *decoded(lives, Filters(ledger=lives.ledger)))
