"""The report of a client that does not confirm, and so holds back more than the queue may have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Collection

    from olr_pg.ordering.ready_transactions import ReadyRun

_log = structlog.get_logger(__name__)


class HeldBack:
    """Tells whether the bound is passed for the sake of a client, and logs when that changes.

    Args:
        bytes_max: the bound of the queue.

    Attributes:
        now: whether it was so at the last look.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.now = False

    def look(
        self, sent: Collection[ReadyRun], ready: Collection[ReadyRun], count: int, held_bytes: int
    ) -> None:
        """Log once when what a client does not confirm passes the bound, and once it is half.

        Args:
            sent, ready: the lists of the queue.
            count: transactions of `sent`.
            held_bytes: of both.
        """
        if self.now:
            over = bool(sent) and held_bytes > self._bytes_max // 2
        else:
            over = held_bytes > self._bytes_max and self._is_over(sent, ready, held_bytes)
        if over == self.now:
            return
        self.now = over
        reason = OlrPgError(
            Code.CONFIRMATIONS_HELD_BACK,
            f"{count} transmitted transactions, {held_bytes} bytes in all",
            bytes_max=self._bytes_max,
        )
        if over:
            _log.warning(
                "the client does not confirm what it has taken",
                code=reason.label,
                reason=str(reason),
                action=reason.action,
            )
        else:
            _log.info("the client confirms again", code=reason.label)

    def _is_over(
        self, sent: Collection[ReadyRun], ready: Collection[ReadyRun], held_bytes: int
    ) -> bool:
        """Tell whether a client has more than the bound, its largest transaction aside.

        That may be of any size, and is not confirmed before it is applied.
        """
        size = held_bytes - sum(run.cost for run in ready)
        return size > self._bytes_max and (
            size - max((run.largest_cost for run in sent), default=0) > self._bytes_max
        )
