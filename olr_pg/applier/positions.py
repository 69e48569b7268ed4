"""The positions that a conversation leaves in the target, for readers and for the next start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.applier.handover import Handover, end_handover
from olr_pg.applier.ledger import note_complete, note_start

if TYPE_CHECKING:
    from olr_pg.applier.connection import KeptConnection


class NotedPositions:
    """What is to be noted, and what is.

    Attributes:
        handover: the initial loads that are not left behind yet.
        confirmed_scn: the highest SCN that was confirmed to the server.
        start_scn: from where a server would have to start for what the target lacks then; None
            where that is not known.
    """

    def __init__(self, subscription: str, target: KeptConnection, handover: Handover) -> None:
        self._subscription = subscription
        self._target = target
        self._noted_scn = 0
        self._noted_start: int | None = None
        self.handover = handover
        self.confirmed_scn = 0
        self.start_scn: int | None = None

    def note(self) -> None:
        """Write down what has moved.

        Up to `confirmed_scn` all tables are complete (`ledger.sql`); an initial load is left behind
        once everything up to its SCN is confirmed.

        Raises:
            psycopg.Error: it could not be; again does no harm.
        """
        name, confirmed = self._subscription, self.confirmed_scn
        if 0 < self.handover.scn <= confirmed:
            self._target.use(lambda c: end_handover(c, name, confirmed))
            self.handover = Handover()
        if confirmed > self._noted_scn:
            self._target.use(lambda c: note_complete(c, name, confirmed))
            if self._noted_scn == 0:
                self._noted_start = None  # its line may be new
            self._noted_scn = confirmed
        start = self.start_scn
        if start is not None and start != self._noted_start:
            self._target.use(lambda c: note_start(c, name, start))
            self._noted_start = start
