"""The driver's side of decoding: remainders to transactions, transactions to commit order.

Splits are merged in redo order, thread by thread. A transaction leaves when every open redo thread
has been read past its commit SCN (the watermark); ties leave in the order of their commit records.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

import structlog

from olr_pg.redo.changes import Tally
from olr_pg.replicator.losses import LossReporter
from olr_pg.replicator.split import encode
from olr_pg.server.queue import ReadyTransaction, ready_transactions
from olr_pg.transactions.assembler import Account, Assembler
from olr_pg.transactions.lobs import no_losses
from olr_pg.wire.frames import ByteOrder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from olr_pg.errors import OlrPgError
    from olr_pg.replicator.split import Encoded, SplitResult, Subscription

_log = structlog.get_logger(__name__)

_commit_position = attrgetter("commit_scn", "position")


class Merger:
    """Puts the results of splits together.

    Args:
        subscription: what the splits were decoded with.
        start_scn: transactions that began before it are not delivered.
        threads: the open redo threads, with the SCN from which each will be read.

    Attributes:
        tally, account: what was seen so far.
        failure: what ended the decoding; to be raised once what left before it was delivered.
    """

    def __init__(self, subscription: Subscription, start_scn: int, threads: dict[int, int]) -> None:
        self._subscription = subscription
        self._order = ByteOrder.BIG if subscription.big_endian else ByteOrder.LITTLE
        self._start_scn = start_scn
        self._watermarks = dict(threads)
        self._assembler = Assembler(
            subscription.row_plan,
            subscription.tables,
            is_split=False,
            dictionary_scn=subscription.dictionary_scn,
        )
        self._waiting: list[ReadyTransaction] = []
        self.tally = Tally()
        self.account = Account()
        self._losses = LossReporter(subscription.tables)
        self.failure: OlrPgError | None = None

    @property
    def watermark(self) -> int:
        """Every transaction that commits below it has been decoded."""
        return min(self._watermarks.values(), default=0)

    @property
    def waiting(self) -> int:
        """How many finished transactions wait for the other redo threads."""
        return len(self._waiting)

    def report_waiting(self) -> None:
        """Warn of transactions that nothing more was read for."""
        if self._waiting:
            _log.warning(
                "transactions wait for the logs of other redo threads",
                transactions=len(self._waiting),
                read_up_to_scn=self.watermark,
            )

    def open_scn(self) -> int:
        """The lowest begin SCN of what has not left yet: decoded or not."""
        opened = [t.begin_scn for t in self._assembler.open_transactions]
        wanted = [scn for scn in opened if scn is not None and scn >= self._start_scn]
        return min([self.watermark, *wanted, *(t.begin_scn for t in self._waiting)])

    def add_thread(self, thread: int, scn: int) -> None:
        """Another redo thread is open, read from `scn` on."""
        self._watermarks.setdefault(thread, scn)

    def feed(self, thread: int, result: SplitResult) -> list[ReadyTransaction]:
        """Take the next split of a thread; the transactions that may leave now, in order.

        Where `failure` is set then, these are the last ones.

        Raises:
            OlrPgError: 2011, a change that cannot be put together.
        """
        self.tally = self.tally.plus(result.tally)
        self.account.add(result.account)
        self._keep(result.encoded)
        finished = self._assembler.feed(result.remainder)
        if finished is not None:
            self._keep([encode(self._subscription, finished)])
        self.account.add(self._assembler.account)
        self._assembler.account = Account()
        self._losses.report(result.losses.plus(self._assembler.losses))
        self._assembler.losses = no_losses(self._subscription.row_plan)
        self.failure = result.failure or self._assembler.failure
        # A split that begins no LWN group does not know how far the thread has come. Of a failed
        # one, nothing may leave that commits behind the point up to which it was decoded.
        self._watermarks[thread] = max(self._watermarks.get(thread, 0), result.watermark)
        return self._release()

    def _keep(self, parts: Iterable[Encoded]) -> None:
        for part in parts:
            self._waiting.extend(
                transaction
                for transaction in ready_transactions(*part, self._order)
                if transaction.begin_scn >= self._start_scn
            )

    def _release(self) -> list[ReadyTransaction]:
        self._waiting.sort(key=_commit_position)
        limit = self.watermark
        count = len(self._waiting)
        while count and self._waiting[count - 1].commit_scn >= limit:
            count -= 1
        released, self._waiting = self._waiting[:count], self._waiting[count:]
        return released
