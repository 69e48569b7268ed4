"""Large transactions in parts: the same as whole, and memory does not grow with their rows."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import pytest

from olr_pg.capture.logs import discover_logs
from olr_pg.errors import OlrPgError
from olr_pg.replicator.decode import decode_logs
from olr_pg.replicator.merge import Merger
from olr_pg.replicator.spill import SpillFiles
from olr_pg.replicator.split import (
    decode_split,
    open_for_decoding,
    plan_splits,
    subscribe,
)
from olr_pg.server.queue import ReadyQueue
from olr_pg.simulator.workload import DdlUse
from olr_pg.transactions.storage import IN_MEMORY
from tests.large_transaction import RowForm, write_logs
from tests.replicator.test_decode_truth import make_source
from tests.split_results import through_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot
    from olr_pg.replicator.accounting import Accounting
    from olr_pg.transactions.storage import Storage

FORMS: Final = {
    "texts": (20_000, RowForm(20)),
    "LOBs": (8_000, RowForm(30, lob=True)),
    "BASICFILE LOBs": (8_000, RowForm(30, lob=True, basicfile=True)),
}
"""How many rows of which form: of the larger transaction three times as many."""

SPLIT_BYTES: Final = 1 << 20
WAITING_BYTES: Final = 1 << 20
PART_BYTES: Final = 1 << 18
BYTES_PER_ROW: Final = 50
"""The bound. Kept in memory, a row takes over 500, with a LOB 1,260."""


def peak_of(folder: Path, rows: int, form: RowForm) -> int:
    """The most bytes that Python and NumPy had at a time, from the redo to the messages."""
    folder.mkdir()
    write_logs(folder, rows, form)
    subscription = subscribe(form.snapshot().tables, 0)
    storage = SpillFiles(folder / "spill", WAITING_BYTES, part_bytes=PART_BYTES)
    merger = Merger(subscription, 0, {1: 0}, storage=storage)
    queue = ReadyQueue()
    (archived,) = discover_logs([str(folder)])
    log = open_for_decoding(archived.path)
    tracemalloc.start()
    try:
        for split in plan_splits(archived, SPLIT_BYTES):
            result = decode_split(subscription, log, split.first_block, split.end_block)
            assert queue.put_all(merger.feed(1, through_bytes(result)))
        messages = 0
        while taken := queue.take(1000, bytes_max=WAITING_BYTES).messages:
            messages += taken
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert messages == rows * (2 if form.lob else 1) + 2
    account = merger.accounting().account
    assert (account.rows, account.lob_values) == (rows, rows if form.lob else 0)
    assert not merger.open_state().unowned.batches
    return peak


@pytest.mark.parametrize("name", FORMS)
def test_memory_does_not_grow_with_the_rows(tmp_path: Path, name: str) -> None:
    rows, form = FORMS[name]
    peak_of(tmp_path / "warm", rows // 4, form)
    small, large = (peak_of(tmp_path / str(count), count, form) for count in (rows, 3 * rows))
    assert large - small < BYTES_PER_ROW * 2 * rows


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
        for blob in decode_logs(snapshot, [logs], storage=storage, account=accounts.append):
            blobs.append(bytes(blob))  # noqa: PERF401 - what comes before the error counts

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
        "olr_pg.replicator.decode.plan_splits", partial(plan_splits, split_bytes=8192)
    )
    for part_bytes in (1, 1000):
        storage = SpillFiles(tmp_path / "spill", 0, part_bytes=part_bytes)
        assert decoded(snapshot, logs, storage) == (blobs, error, account)
