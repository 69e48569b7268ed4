"""Continuous verification: compares every table in turn, repeatedly, while replication runs.

The table with the oldest comparison is next. A pause between two tables limits the comparisons to a
share of the time, and so also the load on the source.

Rows that differ are compared once more, as of a later SCN. Only rows that differ both times are
reported. LOB values that the target is known to lack (``olr_pg.incomplete``) are counted
separately: `fetch-lobs` fetches them. A stopped or paused table is reported as not compared.

If configured, rows that differ both times are repaired, as by `repair`: a target row that has
changed since is not touched. Repairing does not remove the cause of differences. So the number of
rows repaired per hour is limited; when it is exceeded, repairs stop, and an operator must
investigate.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Final

import structlog

from olr_pg.applier.target.connection import connect_with
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.verification.differences import TableDifferences, difference_lines
from olr_pg.load.verification.repair import repair
from olr_pg.load.verification.verification import verify
from olr_pg.monitor.proofs import Proof, read_proofs, write_proofs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import Any

    from pyspark.sql import SparkSession

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.dictionary.model import Table
    from olr_pg.load.table_data import SourceTable, TableSource
    from olr_pg.load.verification.verification import RowDifference, VerifiedTable

PAUSE_SECONDS_MIN: Final = 1.0
"""Minimum pause between two tables."""

LAG_SECONDS: Final = 5.0
"""Interval at which the lag is checked while it is too high for comparisons."""

_HOUR: Final = 3600.0

_log = structlog.get_logger(__name__)

_KNOWN: Final = """
SELECT key, target_column FROM olr_pg.incomplete
WHERE subscription = %s AND source_table = %s AND key IS NOT NULL
"""


class Mending:
    """Limits the number of repaired rows.

    Args:
        rows_max: maximum rows in any hour.

    Attributes:
        is_over: the limit was exceeded; nothing more is repaired.
    """

    def __init__(self, rows_max: int) -> None:
        self._rows_max = rows_max
        self._mended = deque[tuple[float, int]]()
        self.is_over = False

    def may_mend(self, rows: int, now: float) -> bool:
        """Tell whether this many more rows can be repaired; if not, no rows are repaired from now
        on.

        Args:
            now: monotonic, in seconds.
        """
        while self._mended and self._mended[0][0] <= now - _HOUR:
            self._mended.popleft()
        done = sum(count for _, count in self._mended)
        self.is_over = self.is_over or done + rows > self._rows_max
        return not self.is_over

    def note(self, rows: int, now: float) -> None:
        """Count repaired rows."""
        self._mended.append((now, rows))


class ContinuousVerification:
    """Compares one table after the other.

    Args:
        source: the rows of the source.
        path: of the file with the results.
        session: opens a Spark session, if a table is too large for this process.
        mending: limits repairs; None to only report differences.
    """

    def __init__(
        self,
        settings: ApplierSettings,
        source: TableSource,
        path: Path,
        session: Callable[[], SparkSession],
        mending: Mending | None = None,
    ) -> None:
        self._mending = mending
        self._settings, self._source, self._path = settings, source, path
        self._session = session
        self.proofs = read_proofs(path)

    def walk(
        self,
        tables: Sequence[Table],
        share: float,
        pause: Callable[[float], None],
        *,
        is_behind: Callable[[], bool] = lambda: False,
    ) -> Iterator[Proof]:
        """Compare the tables endlessly; yield the result of each.

        Args:
            share: maximum share of the time for comparing, above 0 up to 1.
            pause: waits for a number of seconds.
            is_behind: tells whether replication is behind; nothing is compared meanwhile.

        Raises:
            OSError: the result cannot be written.
        """
        while True:
            began = time.monotonic()
            proof = self.prove(min(tables, key=self._due))
            self.proofs[proof.table] = proof
            write_proofs(self._path, self.proofs.values())
            yield proof
            busy = time.monotonic() - began
            pause(max(busy * (1 / share - 1), PAUSE_SECONDS_MIN))
            while is_behind():
                pause(LAG_SECONDS)

    def _due(self, table: Table) -> tuple[float, str]:
        return self._known(table).tried_at, table.full_name

    def _known(self, table: Table) -> Proof:
        return self.proofs.get(table.full_name, Proof(table.full_name))

    def prove(self, table: Table) -> Proof:
        """Compare one table; if rows differ, compare them once more as of a later SCN."""
        now = time.time()
        try:
            (source,) = self._source.sources([table])
            found = self._compared(self._source.later(source) or source)
            if found.identical:
                return Proof(table.full_name, found.scn, now, found.source_rows, tried_at=now)
            again = self._compared(self._source.later(source) or source)
            return self._differing(found, again)
        except OlrPgError as error:
            return self._known(table)._replace(tried_at=now, failure=str(error))

    def _differing(self, found: VerifiedTable, again: VerifiedTable) -> Proof:
        now, name = time.time(), again.table.source.full_name
        rest = confirmed(found.differences, again.differences)
        told = self._told(again._replace(differences=rest))
        lacking = len(rest) - len(told)
        mended = self._mend(again, told) if told and self._mending else 0
        # In each chunk whose rows were too many to be fetched at least one differs.
        count = len(told) - mended + again.skipped
        return Proof(
            *(name, again.scn, now, again.source_rows, count, lacking), tried_at=now, mended=mended
        )

    def _mend(self, found: VerifiedTable, rows: Sequence[RowDifference]) -> int:
        """Repair the rows of a table, all or none; return the number of repaired rows."""
        assert self._mending is not None
        name, now = found.table.source.full_name, time.monotonic()
        was_over = self._mending.is_over
        try:
            if not self._mending.may_mend(len(rows) + found.skipped, now):
                if not was_over:
                    raise OlrPgError(Code.MENDING_ENDED, f"{len(rows)} rows differ", table=name)
                return 0
            (done,) = repair(self._settings, [_differences(found, rows)])
        except OlrPgError as error:
            _log.error("rows are not mended", table=name, code=error.label, reason=str(error))
            return 0
        self._mending.note(len(rows), now)
        _log.warning("rows are mended", **done._asdict())
        return len(rows) - done.left

    def _compared(self, source: SourceTable) -> VerifiedTable:
        found = verify(self._settings, [source], self._session, at_position=True)
        for failure in found.failures:
            raise failure
        return found.tables[0]

    def _told(self, result: VerifiedTable) -> list[RowDifference]:
        """Return the differences without rows that lack only LOB values that the target knows to be
        missing.
        """
        of = self._settings.subscription, result.table.source.full_name
        with connect_with(self._settings, replica=False) as connection:
            known = {(_texts(key), column) for key, column in connection.execute(_KNOWN, of)}
            # Before the rows: the line of the format, and that of the table.
            lines = list(difference_lines(connection, self._settings.subscription, [result]))[2:]
        return [
            difference
            for difference, line in zip(result.differences, lines, strict=True)
            if "key" not in line
            or "differing" not in line
            or any((_texts(line["key"]), column) not in known for column in line["differing"])
        ]


def _differences(found: VerifiedTable, rows: Iterable[RowDifference]) -> TableDifferences:
    compared, target = found.compared, found.table.target
    return TableDifferences(
        found.table.source.full_name,
        *(target.schema, target.name),
        tuple(column.name for column in compared.columns),
        tuple(column.base_oid for column in compared.columns),
        tuple(column.name for column in compared.key_columns) if compared.keyed else (),
        list(rows),
    )


def confirmed(
    first: Sequence[RowDifference], again: Sequence[RowDifference]
) -> tuple[RowDifference, ...]:
    """Return the differences that were found both times (by kind and key), as found the second
    time.
    """
    before = {(one.kind, one.key) for one in first}
    return tuple(one for one in again if (one.kind, one.key) in before)


def _texts(key: dict[str, Any]) -> frozenset[tuple[str, str]]:
    return frozenset((name, str(value)) for name, value in key.items())
