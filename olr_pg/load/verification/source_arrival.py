"""Waits until a live source can be read as of the target's SCN.

Another instance of a cluster, or a standby, can reach an SCN slightly later than the appliance
reads the redo of that SCN. If a primary never reaches the SCN, it is not the database that the
target was filled from, or it was restored to an earlier point in time. A standby can be behind its
primary for any length of time, so no such conclusion is possible.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from olr_pg.load.table_data import SourceTable

PATIENCE_SECONDS: Final = 20.0
_ASK_SECONDS: Final = 0.5


class SourceArrival:
    """The SCN that a source has reached. The source is queried again only if a higher SCN is
    needed.

    Args:
        patience: maximum seconds to wait, for all tables together.
        refusal: the error to raise if a source that is not a standby does not reach the SCN.
    """

    def __init__(
        self, patience: float = PATIENCE_SECONDS, refusal: Code = Code.SCN_NOT_REACHED
    ) -> None:
        self._patience = patience
        self._refusal = refusal
        self._deadline: float | None = None
        self._reached = 0

    def wait_for(self, source: SourceTable, scn: int) -> None:
        """Wait until a table can be read as of `scn`.

        Raises:
            OlrPgError: 7100 or `refusal`, the source does not reach the SCN; 7110, the source is a
                standby that has not applied the redo of this SCN; 7001 to 7009 errors of the
                database.
        """
        ask = source.data.reached
        if scn <= max(source.scn, self._reached) or ask is None:
            return
        while (now := ask()).scn < scn:
            if self._deadline is None:
                self._deadline = time.monotonic() + self._patience
            if time.monotonic() >= self._deadline:
                raise OlrPgError(
                    Code.STANDBY_LAGS if now.is_standby else self._refusal,
                    f"the target contains commit SCN {scn}, but the source has only"
                    f" reached SCN {now.scn}",
                    table=source.table.full_name,
                )
            time.sleep(_ASK_SECONDS)
        self._reached = now.scn
