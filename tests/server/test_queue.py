"""The ready queue against a slow model, and its bound between real threads."""

from __future__ import annotations

import gc
import pickle
import random
import threading
import tracemalloc
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from structlog.testing import capture_logs

from olr_pg.errors import OlrPgError
from olr_pg.ordering.ready_transactions import (
    SMALL_BYTES,
    ReadyRun,
    ReadyTransaction,
    in_commit_order,
    joined,
    ready_run,
    split_runs,
    transactions_of,
)
from olr_pg.redo.column_tables import take
from olr_pg.redo.commit_position import CommitPosition
from olr_pg.server.queue import ReadyQueue
from olr_pg.transactions.finished_columns import TransactionColumns
from olr_pg.transactions.schema_event import Ancestry, Incarnation
from olr_pg.wire.elements import Begin, Commit, Element, decode_element, encode_element
from olr_pg.wire.encoder import EncodedTransactions
from olr_pg.wire.frames import ByteOrder
from olr_pg.wire.messages import Data, encode_answer, message_offsets
from olr_pg.wire.protocol import TRANSACTION_BYTES
from tests.server.ready_one import ready_one

if TYPE_CHECKING:
    from collections.abc import Callable

LITTLE = ByteOrder.LITTLE


def messages_of(xid: int, begin_scn: int, commit_scn: int, count: int = 2) -> list[bytes]:
    elements: list[Element] = [Begin(begin_scn, commit_scn, xid, 0)]
    # any element will do in the middle: the queue does not look inside
    elements += [Commit(n, commit_scn, xid, 0) for n in range(count - 2)]
    elements.append(Commit(commit_scn, commit_scn, xid, 0))
    return [encode_answer(Data(encode_element(element, LITTLE)), LITTLE) for element in elements]


def transaction(xid: int, begin_scn: int, commit_scn: int, count: int = 2) -> ReadyRun:
    blob = b"".join(messages_of(xid, begin_scn, commit_scn, count))
    return ready_one(xid, begin_scn, commit_scn, CommitPosition(0, 1, 1, xid, 16), blob, count)


def xids_of(framed: bytes | bytearray | memoryview) -> list[int]:
    offsets = message_offsets(np.frombuffer(framed, np.uint8), False).tolist()
    edges = pairwise(offsets)
    return [decode_element(bytes(framed[start + 6 : end]), LITTLE).xid for start, end in edges]


class QueueModel(RuleBasedStateMachine):
    """Lists of messages, searched and sorted on every step."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = ReadyQueue(transactions_max=10**6, bytes_max=10**12)
        self.all: list[tuple[int, int, list[bytes]]] = []  # begin SCN, commit SCN, messages
        self.sent: list[int] = []
        self.ready: list[int] = []
        self.taken = 0
        self.commit_scn = 10

    @rule(
        ones=st.lists(
            st.tuples(st.integers(0, 2), st.integers(1, 9), st.integers(2, 5)),
            min_size=1, max_size=6,
        )
    )  # fmt: skip
    def put(self, ones: list[tuple[int, int, int]]) -> None:
        runs = []
        for step, age, count in ones:
            self.commit_scn += step
            xid, begin_scn = len(self.all), self.commit_scn - age
            self.all.append(
                (begin_scn, self.commit_scn, messages_of(xid, begin_scn, self.commit_scn, count))
            )
            self.ready.append(xid)
            runs.append(transaction(xid, begin_scn, self.commit_scn, count))
        assert self.queue.put(joined(runs))

    @rule(messages=st.integers(1, 12), stop=st.integers(-1, 40), bytes_max=st.integers(1, 400))
    def take(self, messages: int, stop: int, bytes_max: int) -> None:
        expected: list[bytes] = []
        while self.ready and len(expected) < messages:
            xid = self.ready[0]
            _, commit_scn, all_messages = self.all[xid]
            message = all_messages[self.taken]
            if expected and sum(map(len, [*expected, message])) > bytes_max:
                break
            expected.append(message)
            self.taken += 1
            if self.taken == len(all_messages):
                self.taken = 0
                self.sent.append(self.ready.pop(0))
                if commit_scn <= stop:
                    break
        batch = self.queue.take(messages, stop_scn=stop, bytes_max=bytes_max)
        assert bytes(batch.framed) == b"".join(expected)
        assert batch.messages == len(expected)

    @rule(back=st.integers(-3, 12))
    def confirm(self, back: int) -> None:
        scn = self.commit_scn - back
        dropped = [xid for xid in self.sent if self.all[xid][1] <= scn]
        self.sent = [xid for xid in self.sent if xid not in dropped]
        assert self.queue.confirms(scn) == bool(dropped)
        left = [self.all[xid][0] for xid in self.sent + self.ready]
        assert self.queue.lowest_begin_scn(confirming=scn) == min(left, default=None)
        assert self.queue.confirm(scn) == len(dropped)

    @rule(back=st.integers(-3, 12))
    def rewind(self, back: int) -> None:
        scn = self.commit_scn - back
        again = [xid for xid in self.sent if self.all[xid][1] > scn]
        self.sent = [xid for xid in self.sent if xid not in again]
        self.ready = again + self.ready
        self.taken = 0
        self.queue.rewind(scn)

    @precondition(lambda self: self.commit_scn > 10)
    @rule()
    def put_out_of_order(self) -> None:
        if self.all:
            with pytest.raises(OlrPgError, match="OLR-04015"):
                self.queue.put(transaction(0, 1, self.all[-1][1] - 1))

    @invariant()
    def same(self) -> None:
        held = self.sent + self.ready
        status = self.queue.status()
        assert status.transmitting == (1 if self.taken else 0)
        assert status.ready + status.transmitting == len(self.ready)
        assert status.transmitted == len(self.sent)
        sizes = [TRANSACTION_BYTES + sum(map(len, self.all[xid][2])) for xid in held]
        assert status.held_bytes == sum(sizes)
        assert not status.full
        assert self.queue.is_empty() == (not held)
        lowest = min((self.all[xid][0] for xid in held), default=None)
        assert self.queue.lowest_begin_scn() == lowest


QueueModel.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestQueueModel = QueueModel.TestCase


class Putter:
    """A decoder's thread that puts what it is given."""

    def __init__(self, queue: ReadyQueue, transactions: list[ReadyRun]) -> None:
        self.queue = queue
        self.results: list[bool] = []
        self.thread = threading.Thread(target=self._run, args=(transactions,))
        self.thread.start()

    def _run(self, transactions: list[ReadyRun]) -> None:
        for one in transactions:
            self.results.append(self.queue.put(one))

    def wait(self, condition: Callable[[], bool]) -> None:
        pause = threading.Event()
        for _ in range(100_000):
            if condition():
                return
            pause.wait(0.0005)
        raise AssertionError("it did not come to pass")

    def wait_until_blocked(self) -> None:
        self.wait(lambda: bool(self.queue._changed._waiters))  # type: ignore[attr-defined]

    def join(self) -> None:
        self.thread.join(60)
        assert not self.thread.is_alive()


def series(count: int) -> list[ReadyRun]:
    return [transaction(n, n, 100 + n) for n in range(count)]


def test_put_waits_while_too_many_bytes_are_not_confirmed() -> None:
    queue = ReadyQueue(10**9, 3 * series(1)[0].cost)
    putter = Putter(queue, series(5))
    putter.wait_until_blocked()
    assert putter.results == [True] * 3
    assert queue.status().ready == 3
    assert queue.take(2).messages == 2
    assert putter.results == [True] * 3  # transmitted, not confirmed: it still counts
    putter.wait_until_blocked()
    assert queue.confirm(100) == 1
    putter.wait(lambda: len(putter.results) == 4)
    putter.wait_until_blocked()
    queue.take(2)
    queue.confirm(101)
    putter.join()
    assert putter.results == [True] * 5


def test_put_waits_while_too_many_transactions_are_not_transmitted() -> None:
    queue = ReadyQueue(3, 10**9)
    putter = Putter(queue, series(5))
    putter.wait_until_blocked()
    assert putter.results == [True] * 3
    queue.rewind(0)  # wakes nobody
    putter.wait_until_blocked()
    assert queue.take(2).messages == 2
    putter.wait(lambda: len(putter.results) == 4)
    putter.wait_until_blocked()
    assert queue.take(2).messages == 2
    putter.join()
    status = queue.status()
    assert (status.ready, status.transmitted, status.full, status.held_back) == (3, 2, True, False)


def test_a_client_that_confirms_only_at_the_end_is_never_stuck() -> None:
    bound = 2 * series(1)[0].cost
    queue = ReadyQueue(10**9, bound)
    putter = Putter(queue, series(50))
    seen = 0
    with capture_logs() as entries:
        while seen < 100:
            putter.wait(lambda: queue.status().ready + queue.status().transmitting > 0)
            seen += queue.take(10).messages
        putter.join()
        status = queue.status()
        assert status.transmitted == 50
        assert status.held_back
        assert not status.full
        assert queue.confirm(147) == 48
        assert queue.status().held_back  # still at the bound
        assert queue.confirm(148) == 1
        assert not queue.status().held_back
    assert [entry["event"] for entry in entries] == [
        "the client does not confirm the transactions it received",
        "the client confirms transactions again",
    ]


def test_a_large_transaction_that_is_being_applied_is_not_held_back() -> None:
    small = series(4)
    size = small[0].cost
    large = ready_one(1, 1, 101, CommitPosition(0, 1, 1, 1, 16), bytes(100 * size), 1)
    queue = ReadyQueue(10**9, 3 * size)
    with capture_logs() as entries:
        for one in (small[0], large, small[2], small[3]):
            assert queue.put(one)
            while queue.take(10).messages:
                pass
        assert queue.status().held_bytes > 100 * size
    assert entries == []


def test_a_transaction_larger_than_the_bound_goes_through() -> None:
    queue = ReadyQueue(10, bytes_max=10)
    putter = Putter(queue, series(2))
    putter.wait_until_blocked()
    queue.take(2)
    putter.join()
    assert queue.status().ready == 1


def test_close_wakes_the_decoder_and_refuses_more() -> None:
    queue = ReadyQueue(1, 10**9)
    putter = Putter(queue, series(3))
    putter.wait_until_blocked()
    queue.close()
    putter.join()
    assert putter.results == [True, False, False]
    assert queue.closed
    assert queue.take(9).messages == 2


def test_a_failure_comes_after_what_is_ready() -> None:
    queue = ReadyQueue()
    queue.put(transaction(1, 1, 10))
    queue.fail(OlrPgError(4019, "the decoder stopped"))
    assert queue.take(9).messages == 2
    for _ in range(2):
        with pytest.raises(OlrPgError, match="the decoder stopped"):
            queue.take(9)
    queue.rewind(0)
    assert queue.take(9).messages == 2


def test_wait_until_confirmed() -> None:
    queue = ReadyQueue()
    assert queue.wait_until_confirmed(0)
    queue.put(transaction(1, 1, 10))
    assert not queue.wait_until_confirmed(0)
    client = threading.Thread(target=lambda: (queue.take(2), queue.confirm(10)))
    client.start()
    assert queue.wait_until_confirmed()
    client.join()


def encoders_output(count: int) -> tuple[TransactionColumns, EncodedTransactions]:
    """Transactions of three messages each; number n commits at SCN 100 + n."""
    blobs = [b"".join(messages_of(n, n, 100 + n, 3)) for n in range(count)]
    first = np.cumsum([0, *map(len, blobs)]).astype(np.int64)
    encoded = EncodedTransactions(
        np.frombuffer(b"".join(blobs), np.uint8), first, np.full(count, 3, np.int64)
    )
    numbers = np.arange(count)
    columns = TransactionColumns(
        numbers.astype(np.uint32), numbers.astype(np.uint64), numbers.astype(np.uint64),
        numbers.astype(np.uint32), (numbers + 100).astype(np.uint64), numbers.astype(np.uint32),
        numbers.astype(np.uint16), numbers.astype(np.uint32),
        np.zeros(count, np.uint32), np.full(count, 2, np.uint16),
        numbers.astype(np.uint32), numbers.astype(np.uint32), numbers.astype(np.uint16),
        np.arange(count + 1).astype(np.int64),
    )  # fmt: skip
    return columns, encoded


def test_the_encoders_output_becomes_transactions() -> None:
    columns, encoded = encoders_output(3)
    run = ready_run(columns, encoded, LITTLE)
    found = list(run.transactions())
    blobs = [b"".join(messages_of(n, n, 100 + n, 3)) for n in range(3)]
    assert [bytes(one.blob) for one in found] == blobs
    assert [one.commit_scn for one in found] == [100, 101, 102]
    assert found[1].position == CommitPosition(0, 2, 1, 1, 1)
    assert xids_of(found[2].blob) == [2, 2, 2]
    queue = ReadyQueue()
    assert queue.put(run)
    messages = [one for n in range(3) for one in messages_of(n, n, 100 + n, 3)]
    for first, end in ((0, 4), (4, 5), (5, 9)):
        taken = queue.take(end - first).framed
        assert bytes(taken) == b"".join(messages[first:end])
        assert np.shares_memory(np.frombuffer(taken, np.uint8), encoded.blob), "put together"


@pytest.mark.usefixtures("left_by_others")
@pytest.mark.parametrize("together", [1, 400])
def test_keeping_a_transaction_counts_about_what_it_costs(together: int) -> None:
    """Many small transactions must not take a multiple of what the queue says it holds."""
    count = 400
    columns, encoded = encoders_output(count)
    queue = ReadyQueue(10**9, 10**9)
    tracemalloc.start()
    try:
        for at in range(0, count, together):
            first = encoded.first[at : at + together + 1]
            blob, messages = encoded.blob[first[0] : first[-1]], encoded.messages[:together]
            own = EncodedTransactions(blob, first - first[0], messages)
            # All of it is new: the columns and the messages.
            rows, own = pickle.loads(pickle.dumps((take(columns, slice(at, at + together)), own)))
            assert queue.put(ready_run(rows, own, LITTLE))
            del rows, own
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
        held = queue.status().held_bytes
        # What stays without the queue is CPython's own: tuples that it keeps to use them again.
        del queue
        gc.collect()
        taken -= tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held == len(encoded.blob) + count * TRANSACTION_BYTES
    assert 0.7 * held < taken < 1.2 * held


@pytest.mark.parametrize("seed", range(20))
def test_runs_of_several_threads_come_in_commit_order(seed: int) -> None:
    """As sorting their transactions one by one; what leaves before an SCN is cut off first."""
    rng = random.Random(seed)
    runs, scn = [], 100
    for thread in range(1, rng.randint(2, 4)):
        scn, xid = rng.randint(90, 110), 0
        for _ in range(rng.randint(1, 4)):
            ones = []
            for _ in range(rng.randint(1, 8)):
                scn, xid = scn + rng.randint(0, 3), xid + 1
                blob = rng.randbytes(rng.choice((5, 50, 40_000)))
                place = CommitPosition(0, thread, 7, xid, 16)
                ones.append(ready_one(xid, scn - 3, scn, place, blob, 1))
            runs.append(joined(ones))
    rng.shuffle(runs)
    limit = rng.randint(95, 130)
    model = sorted(transactions_of(runs), key=lambda one: (one.commit_scn, one.position))
    before, rest = split_runs(runs, limit)
    found = in_commit_order(before)
    assert [plain(one) for one in transactions_of(found)] == [
        plain(one) for one in model if one.commit_scn < limit
    ]
    behind = in_commit_order(rest)
    assert [plain(one) for one in transactions_of(behind)] == [
        plain(one) for one in model if one.commit_scn >= limit
    ]
    small = [one.size + other.size <= SMALL_BYTES for one, other in pairwise(found)]
    assert not any(small), "neighbours that are small were not put together"
    if model:
        key = rng.choice(model)[2:4]
        for run in found:
            count = run.count_up_to_key(key)
            keys = [(one.commit_scn, one.position) for one in run.transactions()]
            assert keys == sorted(keys)
            assert count == sum(one <= key for one in keys)


def plain(one: ReadyTransaction) -> tuple[object, ...]:
    return (*one[:4], bytes(one.blob), one.messages)


def test_of_a_run_those_that_are_wanted() -> None:
    columns, encoded = encoders_output(6)
    run, _ = ready_run(columns, encoded, LITTLE).cut(5)
    _, run = run.cut(1)
    assert run.where(np.ones(4, np.bool_)) is run
    wanted = np.array([True, False, True, True])
    found = run.where(wanted)
    model = [one for one, is_wanted in zip(run.transactions(), wanted, strict=True) if is_wanted]
    assert list(map(plain, found.transactions())) == list(map(plain, model))
    assert xids_of(found.blob) == [1, 1, 1, 3, 3, 3, 4, 4, 4]
    assert not run.where(np.zeros(4, np.bool_))


def test_incarnations_are_taken_before_what_is_put_after_them() -> None:
    queue = ReadyQueue()
    first, second = (Ancestry((Incarnation(n, 1),), is_whole=True) for n in (1, 2))
    queue.announce(first)
    assert queue.take(9).event == first
    queue.put(transaction(1, 5, 10, 3))
    assert xids_of(queue.take(1).framed) == [1]
    queue.announce(second)
    queue.put(transaction(2, 15, 20))
    # A transaction that was begun is not interrupted, and nothing of the next one comes with it.
    assert xids_of(queue.take(9).framed) == [1, 1]
    assert queue.take(9).event == second
    assert xids_of(queue.take(9).framed) == [2, 2]
    # The client has discarded what it had received.
    queue.rewind(15)
    assert queue.take(9).event == second
    assert xids_of(queue.take(9).framed) == [2, 2]
    assert queue.take(9).event is None
