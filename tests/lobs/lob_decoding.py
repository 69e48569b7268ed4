"""Logs of LOB redo to rows, through the splits, the merger and the protocol's elements."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from olr_pg.decoding.spill import SpillFiles
from olr_pg.decoding.split import View, open_for_decoding, subscribe
from olr_pg.decoding.split_results import read_result
from olr_pg.ordering.merger import Merger
from olr_pg.ordering.ready_transactions import transactions_of
from olr_pg.rendering.json_lines import JsonLines
from tests.lobs.lob_redo import LobRedo, snapshot
from tests.split_results import packed_split

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot
    from olr_pg.ordering.ready_transactions import ReadyRun
    from olr_pg.transactions.finished import Account
    from olr_pg.transactions.lobs.lost_values import LostLob
    from olr_pg.transactions.lobs.source_reads import LobSource

Row = dict[str, Any]


class Decoded:
    """What came out of a log.

    Attributes:
        runs: the transactions.
        blobs: framed messages, one per transaction.
        account: of the assemblers.
        lost: XID and values that were left out, of each transaction and table.
    """

    def __init__(self, runs: list[ReadyRun], account: Account, dictionary: Snapshot) -> None:
        self.runs = runs
        self.blobs = [bytes(one.blob) for one in transactions_of(runs)]
        self.account = account
        self.lost: list[tuple[int, tuple[LostLob, ...]]] = []
        self._render = JsonLines(dictionary.database)

    @property
    def changes(self) -> list[Row]:
        """The row changes as JSON."""
        lines = b"".join(self._render.render(b) for b in self.blobs)
        rows = [json.loads(line) for line in lines.splitlines()]
        return [row for row in rows if row["op"] not in ("begin", "commit")]

    @property
    def after(self) -> list[Row]:
        """The new values of each change."""
        return [change["after"] for change in self.changes]


def decode(
    redo: LobRedo,
    folder: Path,
    dictionary: Snapshot | None = None,
    *,
    split_blocks: int = 1 << 20,
    chunk_bytes: int = 1000,
    lob_source: LobSource | None = None,
    in_parts: bool = True,
    part_bytes: int = 1,
    part_blocks: int = 1,
) -> Decoded:
    """Decode a log in splits of so many blocks.

    Args:
        in_parts: decode it once more with every transaction outside of memory, finished in parts,
            and compare.
        part_bytes, part_blocks: how large they are, and the splits: both as small as can be.
    """
    dictionary = dictionary or snapshot()
    path = redo.write(folder)
    log = open_for_decoding(str(path))
    subscription = subscribe(
        dictionary.tables,
        0,
        views=[View(chunk_bytes=chunk_bytes)],
        xml_tokens=dictionary.xml_tokens,
    )

    def decoded(merger: Merger, split_blocks: int) -> Decoded:
        blocks = log.header.nab or 0
        runs: list[ReadyRun] = []
        lost: list[tuple[int, tuple[LostLob, ...]]] = []
        for start in range(2, max(blocks, 3), split_blocks):
            packed = packed_split(subscription, log, start, min(start + split_blocks, blocks))
            runs += merger.feed(1, read_result(packed))
            assert merger.failure is None
            lost.extend((fault.xid, fault.lobs) for fault in merger.left_out)
        found = Decoded(runs, merger.account, dictionary)
        found.lost = lost
        return found

    whole = decoded(Merger(subscription, 0, {1: 0}, lob_source=lob_source), split_blocks)
    if in_parts:
        storage = SpillFiles(folder / "spill", 0, part_bytes=part_bytes)
        merger = Merger(subscription, 0, {1: 0}, storage=storage, lob_source=lob_source)
        parts = decoded(merger, part_blocks)
        assert (parts.changes, parts.blobs) == (whole.changes, whole.blobs)
        assert parts.account == whole.account
        assert parts.lost == whole.lost
    return whole


def outcome(
    redo: LobRedo, folder: Path, dictionary: Snapshot | None = None
) -> tuple[int | None, int]:
    """(the code of what could not be decoded, the rows that were) of a log."""
    log = open_for_decoding(str(redo.write(folder)))
    subscription = subscribe((dictionary or snapshot()).tables, 0)
    merger = Merger(subscription, 0, {1: 0})
    merger.feed(1, read_result(packed_split(subscription, log, 2, log.header.nab or 0)))
    code = None if merger.failure is None else merger.failure.code
    return code, merger.account.rows
