"""Checks that the source is not behind the target, and that it still has the redo that the target
lacks.

The source can be a clone, which keeps the DBID, or can be restored to an earlier point in time.
Then the target can contain commits with higher SCNs than the source has reached. New changes of the
source with lower SCNs would then be skipped as if they were already applied.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Collection

    from psycopg import Connection

PATIENCE_SECONDS: Final = 20.0
"""How many seconds to wait until the source reaches the SCN. In a cluster, the queried instance can
be slightly behind another one.
"""

_ASK_SECONDS: Final = 0.5
_FURTHEST: Final = """
SELECT source_table, commit_scn FROM olr_pg.ledger
WHERE subscription = %s AND source_table = ANY(%s)
ORDER BY commit_scn DESC, source_table LIMIT 1
"""


class SourceLogs(NamedTuple):
    """Answers the applier's questions about the redo of the source. By default, the SCN is unknown
    and no log is checked.

    Attributes:
        current_scn: returns an SCN that the source has reached; None if unknown.
        check_from: raises an error (2010) if the oldest available log begins after this SCN.
    """

    current_scn: Callable[[], int | None] = lambda: None
    check_from: Callable[[int], None] = lambda _: None


def check_not_ahead(
    connection: Connection[Any],
    subscription: str,
    source_scn: Callable[[], int | None],
    tables: Collection[str],
    stop: threading.Event,
    patience: float = PATIENCE_SECONDS,
) -> None:
    """Check that the source has reached the SCNs in the ledger's rows of these tables.

    Args:
        source_scn: returns an SCN that the source has reached; None if it is unknown, so that
            nothing is checked.
        tables: ``OWNER.NAME`` of each table.
        stop: when it is set, the wait ends.
        patience: maximum seconds to wait.

    Raises:
        OlrPgError: 7101, the source has not reached them; 70xx, the source cannot be queried.
    """
    found = connection.execute(_FURTHEST, (subscription, list(tables))).fetchone()
    if found is None or found[1] == 0:
        return
    deadline = time.monotonic() + patience
    while (now := source_scn()) is not None and now < found[1]:
        if time.monotonic() >= deadline:
            raise OlrPgError(
                Code.TARGET_AHEAD_OF_SOURCE,
                f"the target contains commit SCN {found[1]}, but the source has only"
                f" reached SCN {now}",
                table=found[0],
                subscription=subscription,
            )
        if stop.wait(_ASK_SECONDS):
            return
