"""Decodes one split of a log. Spark tasks call this module.

A split is a range of blocks. A split owns the LWN groups that begin in its blocks. Transactions
that begin and end in the split are returned as finished transactions in output format. All other
events are returned as the remainder, for the assembler of the driver.

`encode_large` encodes transactions that do not fit in memory, part by part, to one sequence of
messages.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import structlog

from olr_pg.capture.logs import open_log
from olr_pg.capture.readers import HEADER_BYTES, is_by_ranges, map_log, parse_start, read_header
from olr_pg.datatypes.binary_xml import NO_TOKENS, XmlTokens
from olr_pg.decoding.joined_logs import JoinedLog, Places, open_joined, open_stored
from olr_pg.dictionary.decoding_plan import RowPlan, Span, build_row_plan
from olr_pg.errors import OlrPgError, plain_reason
from olr_pg.redo.batch import ChangeBatch
from olr_pg.redo.format.file_fields import BLOCK_HEADER, FIRST_DATA_BLOCK
from olr_pg.redo.header import LogHeader, read_scn
from olr_pg.redo.log_extraction import read_changes
from olr_pg.redo.sessions import SessionAttributes, SessionKey, names_of, sessions_of
from olr_pg.redo.uninterpreted import Passed
from olr_pg.redo.walk import Objects, Tally
from olr_pg.redo.window import WINDOW_BYTES, Log, blocks_in_use, is_sound
from olr_pg.transactions.assembler import Assembler
from olr_pg.transactions.finished import Account, Finished
from olr_pg.transactions.finished_columns import DmlKind, TransactionColumns
from olr_pg.transactions.left_out import kept_changes, leave_columns_out, leave_out
from olr_pg.transactions.lobs.assembly import LobLosses
from olr_pg.transactions.row_conditions import Conditions, fulfil
from olr_pg.wire.element_plan import ElementPlan, build_element_plan
from olr_pg.wire.encoder import (
    BEGIN_FRAME,
    CHUNK_BYTES,
    COMMIT_FRAME,
    EncodedTransactions,
    Form,
    write_messages,
)
from olr_pg.wire.output import Collected, InParts, MessageOutput
from olr_pg.wire.packed_changes import PACKED_BEGIN, PACKED_COMMIT, write_packed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from olr_pg.capture.archived_log import ArchivedLog, FoundLog
    from olr_pg.dictionary.committed_changes import DictionaryTransaction
    from olr_pg.dictionary.decoding_plan import TablePart
    from olr_pg.dictionary.model import Table
    from olr_pg.redo.commit_position import ParallelCommit
    from olr_pg.transactions.finished_columns import DmlColumns
    from olr_pg.transactions.large_finishing import LargeTransaction
    from olr_pg.transactions.row_fault import RowFault
    from olr_pg.transactions.waiting_storage import Storage, StoredBytes


SPLIT_BYTES: Final = 16 << 20
"""Bytes of a log that one task decodes. The size is large compared with the overhead of a task, and
small compared with the memory.
"""

_LWN_SCN: Final = 40

_log = structlog.get_logger(__name__)


class View(NamedTuple):
    """The form and the selection of row changes for a target, or for several targets with the same
    settings.

    Attributes:
        big_endian: byte order of the messages.
        chunk_bytes: maximum bytes of a LOB value in one Chunk element.
        packed: whether the target receives packed transactions instead of messages.
        dropped: shape (tables, 3); True if inserts, deletes or updates of the table are left out,
            because the target does not receive the table or a filter excludes them. None if the
            target receives all changes.
        left_columns: shape (columns), for the delivered columns of all tables, one after the other;
            True if the column is left out. None if no column is.
        conditions: the row conditions; None for all rows.
    """

    big_endian: bool = False
    chunk_bytes: int = CHUNK_BYTES
    dropped: npt.NDArray[np.bool_] | None = None
    left_columns: npt.NDArray[np.bool_] | None = None
    conditions: Conditions | None = None
    packed: bool = False

    def write(
        self, finished: Finished, plan: ElementPlan, output: MessageOutput
    ) -> EncodedTransactions:
        """Write finished transactions to an output in the form of the view, as `write_messages`
        does.
        """
        transactions, dml = finished.transactions, finished.dml
        if self.packed:
            return write_packed(transactions, dml, plan, output)
        return write_messages(transactions, dml, plan, self.big_endian, output, self.chunk_bytes)


class Subscription(NamedTuple):
    """The tables to decode, prepared for the kernels.

    Attributes:
        tables: the tables, each with its container. There can be several versions of the same
            table. The SYS tables that the dictionary follower needs are among them
            (`dictionary.decoding_plan.Span`).
        views: the views to encode; at least one.
        dropped: shape (tables, 3); True if inserts, deletes or updates of the table are left out
            for all targets. None if all are delivered.
        conditions: the row conditions that apply to all targets; None if there are none.
        ledgers: shape (tables); True if the table is a ledger of the fallback (`Filters.ledger`).
            Transactions that change a ledger are not delivered. None if there are no ledgers.
    """

    tables: tuple[Table, ...]
    row_plan: RowPlan
    element_plan: ElementPlan
    views: tuple[View, ...]
    dropped: npt.NDArray[np.bool_] | None = None
    conditions: Conditions | None = None
    ledgers: npt.NDArray[np.bool_] | None = None

    @property
    def widths(self) -> npt.NDArray[np.int64]:
        """The number of delivered columns of each table; shape (tables)."""
        return np.diff(self.element_plan.table_column)

    @property
    def objects(self) -> Objects:
        """The part of the subscription that the kernels of `redo` need."""
        plan = self.row_plan
        return Objects(
            plan.object_key,
            plan.object_table,
            plan.cluster_columns,
            plan.lob_tables,
            plan.lob_objects,
            plan.lob_data,
            plan.data_key,
            plan.data_table,
            plan.object_since,
            plan.data_since,
            plan.row_scns,
        )


def subscribe(
    tables: Sequence[Table],
    con_id: int,
    *,
    views: Sequence[View] = (View(),),
    xml_tokens: XmlTokens = NO_TOKENS,
    spans: Sequence[Span] | None = None,
    parts: Sequence[TablePart] | None = None,
    elements: ElementPlan | None = None,
) -> Subscription:
    """Prepare the subscription to `tables`, without filters for all targets.

    Args:
        con_id: the container of tables without one (`Table.con_id`).
        spans: the SCNs at which each table is valid; None if all are always valid.
        parts: the parts of the tables in the row plan, if they are known.
        elements: the element plan, if it is known.

    Raises:
        OlrPgError: 4006 if a name is too long for the protocol.
    """
    return Subscription(
        tuple(tables),
        build_row_plan(tables, con_id, xml_tokens, spans, parts),
        build_element_plan(tables) if elements is None else elements,
        tuple(views),
    )


class Split(NamedTuple):
    """The blocks [first_block, end_block) of the log at `path`; they have `size` bytes.

    Attributes:
        first_group: the block at which the first LWN group of the split begins; 0 if unknown.
        log: the log that was found at `path`; None to accept any log. The file is opened again when
            the split is decoded, perhaps on another machine or hours later, so it can be another.
        known_end: for a log that is still being written: (the block after the complete LWN groups,
            the lowest SCN of later redo). None if the header of the log contains its end.
        joined: small logs that are decoded as one log (`joined_logs`), empty for a single log. The
            blocks of all logs are numbered one after the other; `path` and `log` belong to the
            first log.
    """

    path: str
    first_block: int
    end_block: int
    size: int
    first_group: int = 0
    log: FoundLog | None = None
    known_end: tuple[int, int] | None = None
    joined: tuple[JoinedLog, ...] = ()

    def apart(self) -> list[Split]:
        """Return one split for each of the joined logs."""
        block_size = self.size // (self.end_block - self.first_block)
        return [
            Split(one.path, FIRST_DATA_BLOCK, one.blocks, one.data_blocks * block_size, 0, one.log)
            for one in self.joined
        ]


class Encoded(NamedTuple):
    """Finished transactions with their encoded bytes.

    Attributes:
        view: index of the view in the subscription.
        stored: the bytes if they are on disk; then `messages` contains no bytes.
    """

    transactions: TransactionColumns
    messages: EncodedTransactions
    view: int = 0
    stored: StoredBytes | None = None


class SplitResult(NamedTuple):
    """The result of decoding a split for a subscription.

    Attributes:
        encoded: finished transactions, in parts: for each view, one or more per window.
        remainder: events of the transactions that do not begin and end in the split.
        watermark: every record after the split has this SCN or a higher one. 0 if unknown, because
            no LWN group begins in the split.
        tally, account: counts of vectors and of transactions.
        losses: LOB values that could not be delivered.
        table_rows: see `Assembler.table_rows`, flattened.
        failure: the error that ended decoding before the end of the split, or None.
        dictionary: dictionary changes of finished transactions.
        faults: changes of finished transactions that could not be decoded.
        sessions: the sessions found in the redo.
        blocks: the blocks [first, end) of the decoded LWN groups; None if there were none.
        passed: the uninterpreted vectors.
        names: names of transactions, by packed XID; empty if they were not requested.
        parallel: the commits of parallel DML that begin in the split or may have ended in it, in
            order.
    """

    encoded: tuple[Encoded, ...]
    remainder: ChangeBatch
    watermark: int
    tally: Tally
    account: Account
    losses: LobLosses
    table_rows: npt.NDArray[np.int64]
    failure: OlrPgError | None = None
    dictionary: tuple[DictionaryTransaction, ...] = ()
    faults: tuple[RowFault, ...] = ()
    sessions: dict[SessionKey, SessionAttributes] = {}  # noqa: RUF012 - never changed
    blocks: tuple[int, int] | None = None
    passed: Passed = Passed()
    names: dict[int, str] = {}  # noqa: RUF012 - never changed
    parallel: tuple[ParallelCommit, ...] = ()


Decode: TypeAlias = "Callable[[Subscription, Sequence[Split]], Generator[SplitResult, None, None]]"
"""A function that decodes splits and yields their results in the order of the splits."""


def plan_splits(
    log: ArchivedLog, split_bytes: int = SPLIT_BYTES, first_block: int = FIRST_DATA_BLOCK
) -> list[Split]:
    """Divide a log into splits of about `split_bytes` bytes, and return them in order. An empty log
    gives one split.

    Args:
        first_block: the first block to decode. An LWN group must begin at this block, or the log
            must end there.
    """
    step = max(1, split_bytes // log.header.block_size)
    starts = range(first_block, max(log.blocks, first_block + 1), step)
    ends = [min(start + step, log.blocks) for start in starts]
    size = log.header.block_size
    known_end = (log.blocks, log.next_scn) if log.grows else None
    return [
        Split(
            log.path, start, end, (end - start) * size,
            first_block if FIRST_DATA_BLOCK < start == first_block else 0,
            log.identity, known_end,
        )
        for start, end in zip(starts, ends, strict=True)
    ]  # fmt: skip


def plan_joined(logs: Sequence[ArchivedLog]) -> Split:
    """Return one split for small logs that are decoded as one log (`joined_logs.joined_runs`)."""
    joined = tuple(JoinedLog(log.path, log.identity, log.blocks, log.next_scn) for log in logs)
    blocks, first = sum(log.data_blocks for log in joined), logs[0]
    return Split(
        first.path, FIRST_DATA_BLOCK, FIRST_DATA_BLOCK + blocks,
        blocks * first.header.block_size, log=first.identity, joined=joined,
    )  # fmt: skip


def decode_whole(
    subscription: Subscription,
    split: Split,
    output: MessageOutput | None = None,
    *,
    with_names: bool = False,
    mapped: bool = True,
    window_bytes: int = WINDOW_BYTES,
) -> SplitResult:
    """Open the log of a split, and decode the split (`decode_split`).

    If joined logs cannot be opened, the error is the `failure` of the result. After this failure,
    the caller decodes the logs separately.

    Args:
        output, with_names, window_bytes: as for `decode_split`.
        mapped: as for `open_split`.

    Raises:
        OlrPgError: 2002 to 2008, 2210 to 2213 if a single log cannot be opened.
    """
    try:
        log = open_split(split, mapped=mapped)
    except OlrPgError as error:
        if not split.joined:
            raise
        return _failed(subscription, error)
    return decode_split(
        subscription, log, split, output, with_names=with_names, window_bytes=window_bytes
    )


def _failed(subscription: Subscription, error: OlrPgError) -> SplitResult:
    nothing = Assembler(subscription.row_plan, subscription.tables, is_split=True)
    return SplitResult(
        (), nothing.remainder(), 0, Tally(), nothing.account, nothing.losses,
        nothing.table_rows.reshape(-1), error,
    )  # fmt: skip


def decode_split(
    subscription: Subscription,
    log: Log,
    split: Split,
    output: MessageOutput | None = None,
    *,
    with_names: bool = False,
    window_bytes: int = WINDOW_BYTES,
) -> SplitResult:
    """Decode the LWN groups that begin in the blocks of a split.

    If an error occurs, it becomes the `failure` of the result, which also contains everything that
    was decoded before the error.

    Args:
        log: the log with these blocks.
        output: the output to which messages are written; None to keep them in memory.
        with_names: whether to collect the names of transactions.
        window_bytes: as for `read_changes`.
    """
    output = output or Collected()
    first, end = split.first_block, split.end_block
    places = Places.of(split.joined) if split.joined else None
    assembler = Assembler(subscription.row_plan, subscription.tables, is_split=True)
    encoded = []
    dictionary: list[DictionaryTransaction] = []
    faults: list[RowFault] = []
    tally, passed = Tally(), Passed()
    watermark = 0
    blocks: tuple[int, int] | None = None
    failure = None
    sessions: dict[SessionKey, SessionAttributes] = {}
    names: dict[int, str] = {}
    parallel: list[ParallelCommit] = []
    try:
        for extract in read_changes(
            log, subscription.objects, first, end, first_group=split.first_group,
            window_bytes=window_bytes,
        ):  # fmt: skip
            blocks = blocks[0] if blocks else extract.first, extract.end
            watermark = watermark_at(log, extract.first)
            tally = tally.plus(extract.tally)
            passed = passed.plus(places.given_back(extract.passed) if places else extract.passed)
            parallel.extend(extract.parallel)
            sessions.update(sessions_of(log.header, extract.first, extract.batch))
            if with_names:
                names.update(names_of(log.header, extract.first, extract.batch))
            if places is not None:
                places.give_back(extract.batch)
            for finished in assembler.feed_window(extract.batch):
                dictionary.extend(finished.dictionary)
                left = remaining(subscription, finished, assembler)
                faults.extend(left.faults)
                encoded.extend(encode(subscription, left, lambda write: write(output), faults))
            watermark = watermark_at(log, extract.end) or watermark
        else:
            if not watermark and end >= blocks_in_use(log):
                watermark = watermark_at(log, end)
    except OlrPgError as error:
        failure = error
    return SplitResult(
        tuple(encoded),
        assembler.remainder(),
        watermark,
        tally,
        assembler.account,
        assembler.losses,
        assembler.table_rows.reshape(-1),
        failure,
        tuple(dictionary),
        tuple(faults),
        sessions,
        blocks,
        passed,
        names,
        tuple(parallel),
    )


def remaining(subscription: Subscription, finished: Finished, assembler: Assembler) -> Finished:
    """Remove transactions of the fallback, rows that do not meet their condition, and left-out
    operations from finished transactions; count them as filtered.

    Operations are checked after row conditions. So if a condition turns an update into an insert or
    a delete, the filters for inserts or deletes apply.
    """
    finished = _without_way_back(subscription, finished, assembler)
    finished = _fulfilling(subscription, finished, assembler)
    if subscription.dropped is None or finished.transactions.xid.size == 0:
        return finished
    left = leave_out(finished.transactions, finished.dml, subscription.dropped)
    account, rows = assembler.account, int(left.rows.sum())
    emptied = finished.transactions.xid.size - left.transactions.xid.size
    account.rows -= rows
    account.rows_filtered += rows
    account.committed -= emptied
    account.transactions_filtered += emptied
    assembler.table_rows -= left.rows
    return finished._replace(transactions=left.transactions, dml=left.dml)


def _without_way_back(
    subscription: Subscription, finished: Finished, assembler: Assembler
) -> Finished:
    """Remove transactions of the fallback, with their faults, from finished transactions; count
    them as filtered.

    Their changes come from the target, so the target must not receive them again.
    """
    transactions, dml = finished.transactions, finished.dml
    if subscription.ledgers is None or transactions.xid.size == 0:
        return finished
    owner = np.repeat(np.arange(transactions.xid.size), np.diff(transactions.dml_first))
    ours = np.zeros(transactions.xid.size, np.bool_)
    ours[owner[subscription.ledgers[dml.table]]] = True
    if not ours.any():
        return finished
    gone = ours[owner]
    kind = dml.kind.astype(np.int64) - DmlKind.INSERT
    np.subtract.at(assembler.table_rows, (dml.table[gone], kind[gone]), 1)
    account, rows = assembler.account, int(gone.sum())
    account.rows -= rows
    account.rows_filtered += rows
    account.committed -= int(ours.sum())
    account.transactions_filtered += int(ours.sum())
    theirs = set(transactions.xid[ours].tolist())
    transactions, dml = kept_changes(transactions, dml, ~gone)
    faults = tuple(fault for fault in finished.faults if fault.xid not in theirs)
    return finished._replace(transactions=transactions, dml=dml, faults=faults)


def _fulfilling(subscription: Subscription, finished: Finished, assembler: Assembler) -> Finished:
    """Apply the row conditions for all targets to finished transactions; count the removed row
    changes as filtered.
    """
    if subscription.conditions is None or finished.transactions.xid.size == 0:
        return finished
    left = fulfil(
        finished.transactions, finished.dml, subscription.conditions, subscription.tables,
        subscription.widths,
    )  # fmt: skip
    account = assembler.account
    emptied = finished.transactions.xid.size - left.transactions.xid.size
    account.rows -= int(left.rows.sum())
    account.rows_filtered += left.left_out
    account.committed -= emptied
    account.transactions_filtered += emptied
    account.undecoded += len(left.faults)
    assembler.table_rows -= left.rows
    return finished._replace(
        transactions=left.transactions, dml=left.dml, faults=finished.faults + left.faults
    )


def encode(
    subscription: Subscription,
    finished: Finished,
    write: Callable[[Callable[[MessageOutput], EncodedTransactions]], EncodedTransactions],
    faults: list[RowFault],
) -> list[Encoded]:
    """Encode finished transactions, once for each view. Views without row changes are not in the
    result.

    Args:
        write: a function that calls its argument with the output to which messages are written.
        faults: list to which changes are added that cannot be encoded for a single view.
    """
    if finished.transactions.xid.size == 0:
        return []
    encoded = []
    for number, view in enumerate(subscription.views):
        seen = of_view(subscription, number, finished)
        faults += seen.faults
        if seen.transactions.xid.size == 0:
            continue
        messages = write(partial(view.write, seen, subscription.element_plan))
        encoded.append(Encoded(seen.transactions, messages, number))
    return encoded


def of_view(subscription: Subscription, number: int, finished: Finished) -> Finished:
    """Return the part of finished transactions for one view, with only the faults of this view."""
    view = subscription.views[number]
    transactions, dml = finished.transactions, finished.dml
    faults: tuple[RowFault, ...] = ()
    if view.conditions is not None:
        left = fulfil(transactions, dml, view.conditions, subscription.tables, subscription.widths)
        transactions, dml = left.transactions, left.dml
        faults = tuple(fault._replace(view=number) for fault in left.faults)
    if view.dropped is not None:
        transactions, dml, _ = leave_out(transactions, dml, view.dropped)
    if view.left_columns is not None:
        numbers = subscription.element_plan.table_column
        transactions, dml = leave_columns_out(transactions, dml, numbers, view.left_columns)
    return Finished(transactions, dml, faults=faults)


def open_split(split: Split, *, mapped: bool = True) -> Log:
    """Map the log of a split. If logs are read in ranges, read the blocks that are needed to decode
    the split.

    Args:
        mapped: False to read the blocks even if the log can be mapped. Without mapping, decoding
            takes a sixth more processor time, but a file that is truncated or deleted during the
            decoding gives an error, and does not end the process (`capture.readers`). The copy of a
            log that is still being written is mapped nevertheless, because it is our own.

    Raises:
        OlrPgError: 2002 to 2008 or 2210 to 2213 if the log cannot be read; 2022, the file contains
            another log now.
    """
    if split.joined:
        return open_joined(split.joined)
    place = split.path, split.first_block, split.end_block, split.first_group
    if is_by_ranges(split.path):
        return _checked(open_stored(*place, split.known_end), split.log)
    if split.known_end is not None:
        header, _ = read_header(split.path)
        nab, next_scn = split.known_end
        data = map_log(split.path, _bytes_of(header, split.first_block, split.end_block))
        log = Log(split.path, replace(header, nab=nab, next_scn=next_scn), data)
        return _checked(log, split.log)
    return open_for_decoding(*place, split.log, mapped=mapped)


def _bytes_of(header: LogHeader, first: int, end: int | None) -> slice:
    """Return the place of the blocks [first, end) in the log."""
    size = header.block_size
    return slice(first * size, None if end is None else end * size)


def open_for_decoding(
    path: str,
    first: int = 0,
    end: int | None = None,
    first_group: int = 0,
    wanted: FoundLog | None = None,
    *,
    mapped: bool = False,
) -> Log:
    """Read the bytes of a log that are needed to decode the blocks [first, end).

    Args:
        wanted: the log that was found at `path`; None to accept any log.
        mapped: whether to map the log instead, unless logs are read in ranges.

    Raises:
        OlrPgError: 2002 to 2008 or 2210 to 2213 if the log cannot be read; 2022, the file contains
            another log now.
    """
    if is_by_ranges(path):
        return _checked(open_stored(path, first, end, first_group), wanted)
    header = open_log(path).header
    if not mapped:
        try:
            return _checked(open_stored(path, first, end, first_group), wanted)
        except OSError as error:
            # With vm.overcommit_memory=2, the system reserves memory for all of the log's blocks.
            _log.debug(
                "mapping a log, because there is no memory to read it", reason=plain_reason(error)
            )
    data = map_log(path, _bytes_of(header, first, end))
    # Take the header from the mapped file: the file can have been replaced since it was checked.
    return _checked(Log(path, parse_start(data[:HEADER_BYTES].tobytes(), path), data), wanted)


def _checked(log: Log, wanted: FoundLog | None) -> Log:
    if wanted is not None:
        wanted.check(log.header, log.path)
    return log


def watermark_at(log: Log, block: int) -> int:
    """Return the lowest SCN of all records that begin at `block` or later. An LWN group must begin
    at this block. Return 0 if the block is damaged.

    No other function checks the block after a window or a split before the SCN of this block is
    used. With a wrong SCN, a restart would begin to read too late and lose the redo before it.
    """
    if block < blocks_in_use(log):
        if not is_sound(log, block):
            return 0
        at = block * log.header.block_size + BLOCK_HEADER + _LWN_SCN
        head = log.raw[at : at + 8].tobytes()
        return read_scn(head, 0, big_endian=log.header.big_endian)
    next_scn = log.header.next_scn
    assert next_scn is not None  # otherwise `blocks_in_use` raises an error
    return next_scn


def encode_large(
    subscription: Subscription, large: LargeTransaction, storage: Storage
) -> tuple[list[Encoded], list[RowFault]]:
    """Encode a large transaction once for each view. Return (encoded transactions, errors that each
    affect only one view).

    Views without row changes are not in the result. Afterwards, the account of the transaction
    contains the counts of the encoded changes.
    """
    faults: list[RowFault] = []
    while True:
        views = range(len(subscription.views))
        encoders = [_ViewEncoder(subscription, number, storage, faults) for number in views]
        known = len(large.faults), len(faults)
        is_way_back = False
        for part in large.parts():
            if subscription.ledgers is not None:
                is_way_back |= bool(subscription.ledgers[part.table].any())
            dml = _without_rows(subscription, large, part)
            dml = _without_dropped(subscription, large, dml)
            for encoder in encoders:
                encoder.add(large.columns, dml)
            if (len(large.faults), len(faults)) != known:
                break  # more tables have faults now, so what was encoded is invalid
        if large.is_whole and (len(large.faults), len(faults)) == known:
            break
    if is_way_back:
        return _left_out(large), []
    if large.account.committed and not large.account.rows:
        large.account.committed = 0
        large.account.transactions_filtered = 1
    return [encoder.finish(large.columns) for encoder in encoders if encoder.rows], faults


def _left_out(large: LargeTransaction) -> list[Encoded]:
    """Leave out the whole transaction with its faults, and count its changes as filtered."""
    account = large.account
    account.rows, account.rows_filtered = 0, account.rows_filtered + account.rows
    account.committed, account.transactions_filtered = 0, 1
    large.table_rows[:] = 0
    large.faults, large.lob_faults = (), ()
    return []


def _without_rows(
    subscription: Subscription, large: LargeTransaction, dml: DmlColumns
) -> DmlColumns:
    """Return the row changes that meet the row conditions for all targets; count the others as
    filtered.
    """
    if subscription.conditions is None:
        return dml
    left = fulfil(
        _columns(large.columns, dml), dml, subscription.conditions, subscription.tables,
        subscription.widths,
    )  # fmt: skip
    large.leave_out(left.faults)
    large.account.rows -= int(left.rows.sum())
    large.account.rows_filtered += left.left_out
    large.table_rows -= left.rows
    return left.dml


def _without_dropped(
    subscription: Subscription, large: LargeTransaction, dml: DmlColumns
) -> DmlColumns:
    """Remove the row changes whose operation is left out for all targets, and count them as
    filtered; return the others.
    """
    if subscription.dropped is None:
        return dml
    left = leave_out(_columns(large.columns, dml), dml, subscription.dropped)
    rows = int(left.rows.sum())
    large.account.rows -= rows
    large.account.rows_filtered += rows
    large.table_rows -= left.rows
    return left.dml


def _columns(transaction: TransactionColumns, dml: DmlColumns) -> TransactionColumns:
    """Return the columns of the transaction for these row changes only."""
    return transaction._replace(dml_first=np.array([0, dml.kind.size]))


class _ViewEncoder:
    """Encodes one transaction for one view.

    Args:
        faults: list of changes that cannot be encoded for a view; new faults are added to it.

    Attributes:
        rows: number of row changes that were encoded so far.
    """

    def __init__(
        self, subscription: Subscription, number: int, storage: Storage, faults: list[RowFault]
    ) -> None:
        self._faults = faults
        self._subscription = subscription
        self._number = number
        self._messages = 2
        self._form = Form.PACKED if subscription.views[number].packed else Form.MESSAGES
        is_packed = self._form is Form.PACKED
        edges = (PACKED_BEGIN, PACKED_COMMIT) if is_packed else (BEGIN_FRAME, COMMIT_FRAME)
        self._output = InParts(*edges, storage)
        self.rows = 0

    def add(self, transaction: TransactionColumns, dml: DmlColumns) -> None:
        """Encode the next row changes."""
        view = self._subscription.views[self._number]
        lost = [fault.table for fault in self._faults if fault.view == self._number]
        columns = _columns(transaction, dml)
        if lost:
            columns, dml = kept_changes(columns, dml, ~np.isin(dml.table, lost))
        seen = of_view(self._subscription, self._number, Finished(columns, dml))
        self._faults += seen.faults
        if seen.dml.kind.size == 0:
            return
        plan = self._subscription.element_plan
        self._output.next_part()
        encoded = view.write(seen, plan, self._output)
        self._messages += int(encoded.messages[0]) - 2
        self.rows += seen.dml.kind.size

    def finish(self, transaction: TransactionColumns) -> Encoded:
        """Return all messages. At least one row change must have been added."""
        found = self._output.finish()
        blob, stored = (
            (found, None) if isinstance(found, np.ndarray) else (np.empty(0, np.uint8), found)
        )
        messages = EncodedTransactions(
            blob, np.array([0, found.size]), np.array([self._messages]), self._form
        )
        columns = transaction._replace(dml_first=np.array([0, self.rows]))
        return Encoded(columns, messages, self._number, stored)
