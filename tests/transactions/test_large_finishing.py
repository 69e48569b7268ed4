"""Large transactions in parts: the same as whole, and memory does not grow with their rows."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Final

import pytest

from olr_pg.capture.logs import discover_logs
from olr_pg.decoding.spill import SpillFiles
from olr_pg.decoding.split import decode_split, open_for_decoding, plan_splits, subscribe
from olr_pg.errors import OlrPgError
from olr_pg.files.sealed import RowKey, sealing
from olr_pg.ordering.merger import Merger
from olr_pg.ordering.split_merging import thread_splits
from olr_pg.replicator.decode_once import DecodingOptions, decode_logs
from olr_pg.server.queue import ReadyQueue
from olr_pg.simulator.fields.cells import BLOB, PAGE, secure_header
from olr_pg.simulator.sessions.workload import DdlUse
from olr_pg.transactions.waiting_storage import IN_MEMORY
from tests.large_transaction import RowForm, write_logs
from tests.lobs.lob_redo import LobRedo, snapshot
from tests.replicator.recovery_runs import split_transactions
from tests.replicator.test_decode_truth import make_source
from tests.split_results import through_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot
    from olr_pg.ordering.accounting import Accounting
    from olr_pg.transactions.waiting_storage import Storage

FORMS: Final = {
    "texts": (20_000, RowForm(20)),
    "LOBs": (8_000, RowForm(30, lob=True)),
    "BASICFILE LOBs": (8_000, RowForm(30, lob=True, basicfile=True)),
}
"""How many rows of which form: of the larger transaction three times as many."""

SPLIT_BYTES: Final = 1 << 20
MIB: Final = 1 << 20
WAITING_BYTES: Final = MIB
PART_BYTES: Final = 1 << 18
BYTES_PER_ROW: Final = 50
"""The bound. Kept in memory, a row takes over 500, with a LOB 1,260."""


def decode(folder: Path, rows: int, form: RowForm, *, rollback: bool = False) -> int:
    """Decode a transaction of so many rows; the most bytes that were there at a time meanwhile."""
    folder.mkdir()
    write_logs(folder, rows, form, rollback=rollback)
    storage = SpillFiles(folder / "spill", WAITING_BYTES, part_bytes=PART_BYTES)
    decoding = Decoding(folder, form.snapshot(), storage)
    account = decoding.account
    if rollback:
        # The end of a rollback whose undo is missing: the changes may count, so they are told.
        assert (decoding.messages, account.rows, account.undecoded) == (0, 0, 1)
        return decoding.peak
    assert decoding.messages == rows * (2 if form.lob else 1) + 2
    assert (account.rows, account.lob_values) == (rows, rows if form.lob else 0)
    assert account.undone == (rows if form.savepoints else 0)
    assert account.unmatched == 0
    return decoding.peak


class Decoding:
    """A log, from the redo to the messages.

    Attributes:
        peak: the most bytes that Python and NumPy had at a time.
        messages: how many came out.
        account: of it all.
    """

    def __init__(self, folder: Path, snapshot: Snapshot, storage: SpillFiles) -> None:
        subscription = subscribe(snapshot.tables, 0)
        merger = Merger(subscription, 0, {1: 0}, storage=storage)
        queue = ReadyQueue()
        (archived,) = discover_logs([str(folder)])
        log = open_for_decoding(archived.path)
        self.messages = 0
        tracemalloc.start()
        try:
            for split in plan_splits(archived, SPLIT_BYTES):
                result = decode_split(subscription, log, split)
                assert all(map(queue.put, merger.feed(1, through_bytes(result))))
            while taken := queue.take(1000, bytes_max=WAITING_BYTES).messages:
                self.messages += taken
            _, self.peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        self.account = merger.accounting().account
        assert not merger.open_state().unowned.batches


@pytest.mark.parametrize("name", FORMS)
def test_memory_does_not_grow_with_the_rows(tmp_path: Path, name: str) -> None:
    rows, form = FORMS[name]
    decode(tmp_path / "warm", rows // 4, form)
    small, large = (decode(tmp_path / str(count), count, form) for count in (rows, 3 * rows))
    assert large - small < BYTES_PER_ROW * 2 * rows


@pytest.mark.parametrize("rollback", [False, True], ids=["to savepoints", "whole"])
def test_what_is_taken_back_may_wait_encrypted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rollback: bool
) -> None:
    monkeypatch.setattr(f"{__name__}.SPLIT_BYTES", SPLIT_BYTES // 8)
    monkeypatch.setattr(f"{__name__}.WAITING_BYTES", WAITING_BYTES // 64)
    monkeypatch.setattr("olr_pg.transactions.unseen_ends.STRETCH", 100)
    with sealing(RowKey(bytes(range(32)))):
        decode(tmp_path / "rows", 200, RowForm(20, savepoints=True), rollback=rollback)


def peak_of_lob(folder: Path, pages: int) -> int:
    """The same of one row with a LOB of so many pages."""
    folder.mkdir()
    redo = LobRedo()
    redo.begin()
    redo.direct_pages(3, 7, bytes(range(250)) * (pages * PAGE // 250), (0x1000, pages))
    redo.page_change(3, 0x50, redo.info(7), redo.lob_header(7, pages * PAGE // 250 * 250, [0x51]))
    redo.page_change(3, 0x51, redo.info(7), redo.block_list([(0x1000, pages)]))
    redo.insert(Decimal(1), None, secure_header(BLOB, 7, pages * PAGE // 250 * 250, 0x50))
    redo.end()
    redo.write(folder)
    storage = SpillFiles(folder / "spill", WAITING_BYTES, MIB, part_bytes=PART_BYTES)
    decoding = Decoding(folder, snapshot(), storage)
    assert decoding.account.lob_values == 1
    return decoding.peak


def test_memory_does_not_grow_with_a_lob(tmp_path: Path) -> None:
    peak_of_lob(tmp_path / "warm", 100)
    small, large = (peak_of_lob(tmp_path / str(pages), pages) for pages in (500, 2500))
    assert large - small < 2000 * PAGE // 10


def without_last_columns(snapshot: Snapshot) -> Snapshot:
    """A dictionary in which every other table lacks its last column: not all of its rows have one
    that is not NULL.
    """
    tables = [
        replace(table, columns=table.columns[: len(table.columns) - number % 2])
        for number, table in enumerate(snapshot.tables)
    ]
    return replace(snapshot, tables=tuple(tables))


def decoded(snapshot: Snapshot, logs: str, storage: Storage) -> tuple[list[bytes], str, Accounting]:
    """The messages of each transaction, the error at the end, the account."""
    blobs: list[bytes] = []
    accounts: list[Accounting] = []

    def decode() -> None:
        for blob in decode_logs(
            snapshot, [logs], options=DecodingOptions(storage=storage, account=accounts.append)
        ):
            blobs.extend(one.blob for one in split_transactions(bytes(blob)))

    with pytest.raises(OlrPgError) as caught:
        decode()
    (account,) = accounts
    return blobs, str(caught.value), account


@pytest.mark.parametrize("seed", [1, 5, 8])
def test_a_table_that_is_left_out_is_so_from_the_first_part_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    source = make_source(tmp_path, seed, ddl=DdlUse.NONE)
    logs = str(tmp_path / "logs")
    snapshot = without_last_columns(source.snapshot)
    blobs, error, account = decoded(snapshot, logs, IN_MEMORY)
    assert account.account.undecoded > 0
    monkeypatch.setattr(
        "olr_pg.replicator.decode_once.thread_splits", partial(thread_splits, split_bytes=8192)
    )
    for part_bytes in (1, 1000):
        storage = SpillFiles(tmp_path / "spill", 0, part_bytes=part_bytes)
        assert decoded(snapshot, logs, storage) == (blobs, error, account)
