"""The positions that a conversation leaves in the target, for readers and for the next start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from olr_pg.applier.session.handover import Handover, end_handover
from olr_pg.applier.target.ledger import note_complete, note_saved, note_start, noted_start
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from olr_pg.applier.target.connection import KeptConnection

_log = structlog.get_logger(__name__)


class NotedPositions:
    """The positions to be noted in the target, and those that are noted.

    Attributes:
        handover: the initial loads that are not left behind yet.
        confirmed_scn: the highest SCN that was confirmed to the server.
    """

    def __init__(self, subscription: str, target: KeptConnection, handover: Handover) -> None:
        self._subscription = subscription
        self._target = target
        self._noted_scn = 0
        self._noted_start: int | None = None
        self.handover = handover
        self.confirmed_scn = 0
        # From where a server would have to start for what the target lacks; None: not known.
        self._start_scn: int | None = None
        self._is_saved = False
        self._disbelieved: int | None = None

    def start(self, saved_scn: int | None, configured_scn: int, *, is_own: bool) -> int:
        """Return the SCN to start at, which passes over nothing that the target may lack.

        The server's saved SCN is believed where it tells of what this applier confirmed and the
        target is known to have that. Else the target says where to start, if that is further back;
        where it says nothing, everything from the configured SCN on is asked for again.

        Args:
            saved_scn: of the server, None where it has none.
            configured_scn: where to start without one.
            is_own: whether the saved one is believed.

        Raises:
            psycopg.Error: the target cannot be asked.
        """
        start = self.handover.start(saved_scn, configured_scn)
        self._disbelieved = None
        if saved_scn is None or is_own:
            return start
        noted = self._start_scn
        if noted is None:
            noted = self._target.use(lambda c: noted_start(c, self._subscription))
        own = self.handover.start(noted, configured_scn)
        if own >= start:
            return start
        error = OlrPgError(
            Code.SAVED_SCN_AHEAD,
            f"it has saved SCN {saved_scn}, the target needs all from SCN {own} on: started there",
            subscription=self._subscription,
        )
        _log.warning(
            "the applier starts at the SCN that the target has noted",
            reason=str(error),
            action=error.action,
        )
        self._disbelieved = saved_scn
        return own

    def started(self, scn: int) -> None:
        """Note that the server delivers everything that began at this SCN or later."""
        self._start_scn, self._is_saved = scn, False

    def saved(self, scn: int) -> None:
        """Note from where the server delivers what is not confirmed; the target has all the rest.

        Not where it is still the one that was passed by: this applier has confirmed nothing yet.
        """
        if scn == self._disbelieved:
            return
        self._disbelieved = None
        self._start_scn, self._is_saved = scn, True

    def note(self) -> None:
        """Store the positions that have moved in the target.

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
        start = self._start_scn
        if start is not None and start != self._noted_start:
            note = note_saved if self._is_saved else note_start
            self._target.use(lambda c: note(c, name, start))
            self._noted_start = start
