"""Continuous verification: every table in turn, again and again, beside a running replication.

The table that was compared longest ago is next. Between two tables there is a pause, so that
comparing takes no more than a share of the time; so what it reads of the source is bounded, too.

What differs is compared once more, as of a later SCN. Only what differs both times is told. LOB
values that the target is known to lack (``olr_pg.incomplete``) are counted by themselves:
`fetch-lobs` brings them. A table that is stopped or paused is told as not compared.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from olr_pg.applier.target.connection import connect_with
from olr_pg.errors import OlrPgError
from olr_pg.load.verification.differences import difference_lines
from olr_pg.load.verification.verification import verify
from olr_pg.monitor.proofs import Proof, read_proofs, write_proofs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from typing import Any

    from pyspark.sql import SparkSession

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.dictionary.model import Table
    from olr_pg.load.table_data import SourceTable, TableSource
    from olr_pg.load.verification.verification import RowDifference, VerifiedTable

PAUSE_SECONDS_MIN: Final = 1.0
"""Between two tables, however little time they take."""

_KNOWN: Final = """
SELECT key, target_column FROM olr_pg.incomplete
WHERE subscription = %s AND source_table = %s AND key IS NOT NULL
"""


class ContinuousVerification:
    """Compares one table after the other.

    Args:
        source: where the rows of the source are.
        path: of the file that keeps what was found.
        session: opens a Spark session where a table is too large for this process.
    """

    def __init__(
        self,
        settings: ApplierSettings,
        source: TableSource,
        path: Path,
        session: Callable[[], SparkSession],
    ) -> None:
        self._settings, self._source, self._path = settings, source, path
        self._session = session
        self.proofs = read_proofs(path)

    def walk(
        self, tables: Sequence[Table], share: float, pause: Callable[[float], None]
    ) -> Iterator[Proof]:
        """Yield what is found of each table, without end.

        Args:
            share: of the time that comparing may take, above 0 up to 1.
            pause: waits for so many seconds.

        Raises:
            OSError: what was found cannot be written.
        """
        while True:
            began = time.monotonic()
            proof = self.prove(min(tables, key=self._due))
            self.proofs[proof.table] = proof
            write_proofs(self._path, self.proofs.values())
            yield proof
            busy = time.monotonic() - began
            pause(max(busy * (1 / share - 1), PAUSE_SECONDS_MIN))

    def _due(self, table: Table) -> tuple[float, str]:
        return self._known(table).tried_at, table.full_name

    def _known(self, table: Table) -> Proof:
        return self.proofs.get(table.full_name, Proof(table.full_name))

    def prove(self, table: Table) -> Proof:
        """Compare one table; where rows differ, once more as of a later SCN."""
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
        lacking = self._lacking(again._replace(differences=rest))
        # In each chunk whose rows were too many to be fetched at least one differs.
        count = len(rest) - lacking + again.skipped
        return Proof(name, again.scn, now, again.source_rows, count, lacking, tried_at=now)

    def _compared(self, source: SourceTable) -> VerifiedTable:
        found = verify(self._settings, [source], self._session, at_position=True)
        for failure in found.failures:
            raise failure
        return found.tables[0]

    def _lacking(self, result: VerifiedTable) -> int:
        """Count the rows that differ by nothing but LOB values that the target is known to lack."""
        of = self._settings.subscription, result.table.source.full_name
        with connect_with(self._settings, replica=False) as connection:
            known = {(_texts(key), column) for key, column in connection.execute(_KNOWN, of)}
            lines = difference_lines(connection, self._settings.subscription, [result])
            return sum(
                all((_texts(line["key"]), column) in known for column in line["differing"])
                for line in lines
                if "key" in line and "differing" in line
            )


def confirmed(
    first: Sequence[RowDifference], again: Sequence[RowDifference]
) -> tuple[RowDifference, ...]:
    """Return what differs both times, by kind and key, as it was found the second time."""
    before = {(one.kind, one.key) for one in first}
    return tuple(one for one in again if (one.kind, one.key) in before)


def _texts(key: dict[str, Any]) -> frozenset[tuple[str, str]]:
    return frozenset((name, str(value)) for name, value in key.items())
