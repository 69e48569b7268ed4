"""Whether the source has come as far as the target.

What another copy of the database has written (a clone keeps the DBID), or this one before it was
put back, says nothing of what it writes now: that would be passed over, up to where the ledger is.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Collection

    from psycopg import Connection

PATIENCE_SECONDS: Final = 20.0
"""How long the source is waited for: another instance of a cluster may be a moment behind."""

_ASK_SECONDS: Final = 0.5
_FURTHEST: Final = """
SELECT source_table, commit_scn FROM olr_pg.ledger
WHERE subscription = %s AND source_table = ANY(%s)
ORDER BY commit_scn DESC, source_table LIMIT 1
"""


def check_not_ahead(
    connection: Connection[Any],
    subscription: str,
    source_scn: Callable[[], int | None],
    tables: Collection[str],
    stop: threading.Event,
    patience: float = PATIENCE_SECONDS,
) -> None:
    """See whether the source has come as far as the ledger's lines of these tables say.

    Args:
        source_scn: asks for an SCN that it has come to; None where nobody knows: nothing is said.
        tables: ``OWNER.NAME`` of each.
        stop: ends the waiting.
        patience: seconds.

    Raises:
        OlrPgError: 7101, it has not; 70xx, it cannot be asked.
    """
    found = connection.execute(_FURTHEST, (subscription, list(tables))).fetchone()
    if found is None or found[1] == 0:
        return
    deadline = time.monotonic() + patience
    while (now := source_scn()) is not None and now < found[1]:
        if time.monotonic() >= deadline:
            raise OlrPgError(
                Code.TARGET_AHEAD_OF_SOURCE,
                f"the target has commit {found[1]}, the source is at SCN {now}",
                table=found[0],
                subscription=subscription,
            )
        if stop.wait(_ASK_SECONDS):
            return
