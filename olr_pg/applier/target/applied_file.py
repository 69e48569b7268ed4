"""Records which transactions the target is known to have on disk, to detect a target that was
restored from a backup.

A restored backup lacks transactions that were already confirmed to the server. A standby that was
behind when it was promoted also lacks such transactions. The server does not deliver these
transactions again. The target alone cannot show this, because its ledger was restored together with
its rows. So for each table, the applier records the commit SCN up to which transactions were on the
target's disk, in memory and in a file beside the server's checkpoint. Several transactions of a
table can commit at the same SCN and be applied in different batches. So the record also contains
how many of them were on disk, because a standby may have received only some. The applier writes the
file before each confirmation. On each new connection, the applier compares this record with the
ledger. Transactions that were not on disk yet are not recorded. So a killed applier or a crash of
PostgreSQL does not look like a restore.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import orjson
import psycopg
import structlog
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from olr_pg.applier.target.ledger import ALL, Reach, TablePosition, noted_start
from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.files.durable import check_version, damage, replace_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from psycopg import Connection

_log = structlog.get_logger(__name__)

FILE_NAME: Final = "applied.json"
"""The name of the file in the target's directory of `context.data`."""

VERSION: Final = 2

_UNREADABLE: Final = (
    "cannot read applied.json, so a target that was restored from a backup is not detected"
)
_UNKNOWN_START: Final = (
    "olr_pg applies no changes to a target in this state. If this is the wrong server, for"
    " example an old primary, correct `apply.connect-string` and start the appliance again."
    " Otherwise load the tables again (`olr-pg initial-load --anew --table OWNER.NAME`), or choose"
    ' a start SCN as described in docs/operations.md, "The target was restored to an earlier state"'
)
_LEDGER: Final = "SELECT source_table, commit_scn, xids FROM olr_pg.ledger WHERE subscription = %s"

_Scn = Annotated[int, Field(ge=0, lt=1 << 64)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Position(_Model):
    """A table's position; `transactions` is None for all transactions at the SCN."""

    commit_scn: _Scn
    transactions: Annotated[int, Field(ge=0, lt=ALL)] | None

    def reach(self) -> Reach:
        return Reach(self.commit_scn, ALL if self.transactions is None else self.transactions)


class _File(_Model):
    format: Literal["olr-pg applied"] = "olr-pg applied"
    version: Literal[2] = VERSION
    subscription: str
    tables: dict[str, _Position]

    def reaches(self) -> dict[str, Reach]:
        return {name: position.reach() for name, position in self.tables.items()}


class _FileOfVersion1(_Model):
    """The file without the numbers of transactions. The missing numbers are read as unknown."""

    format: Literal["olr-pg applied"]
    version: Literal[1]
    subscription: str
    tables: dict[str, _Scn]

    def reaches(self) -> dict[str, Reach]:
        return {name: Reach(scn) for name, scn in self.tables.items()}


_FILES: Final = TypeAdapter[_File | _FileOfVersion1](
    Annotated[_File | _FileOfVersion1, Field(discriminator="version")]
)


class AppliedTables:
    """Records how far each table of a subscription is known to be on disk; thread-safe.

    Args:
        file: the file that keeps the record across restarts; None to keep it only in memory.
    """

    def __init__(self, subscription: str, file: Path | None) -> None:
        self._subscription = subscription
        self._path = file
        self._lock = threading.Lock()
        self._tables: dict[str, Reach] = {}
        self._saved: dict[str, Reach] | None = None
        self._is_told = False

    def read_file(self, tables: Collection[str] = ()) -> None:
        """Read the file; later calls do nothing.

        Args:
            tables: the tables of the subscription, empty if unknown. Other tables in the file are
                ignored, because their changes are no longer delivered.

        Raises:
            OlrPgError: 4035, the file is of a newer version.
        """
        with self._lock:
            if self._saved is None:
                self._saved = self._read()
                known = {n: reach for n, reach in self._saved.items() if not tables or n in tables}
                self._tables = {**known, **self._tables}

    @property
    def is_known(self) -> bool:
        """Return whether any position is recorded. No position is recorded before the first change,
        or if the file is missing.
        """
        with self._lock:
            return bool(self._tables)

    def scn_of(self, table: str) -> int:
        """Return the commit SCN up to which a table is on disk; 0 if unknown."""
        with self._lock:
            reach = self._tables.get(table)
            return 0 if reach is None else reach.commit_scn

    def add(self, tables: Mapping[str, Reach]) -> None:
        """Record that the given tables are on PostgreSQL's disk up to the given positions."""
        with self._lock:
            for name, reach in tables.items():
                if reach.commit_scn and reach > self._tables.get(name, Reach()):
                    self._tables[name] = reach

    def forget(self, tables: Iterable[str] | None = None) -> None:
        """Delete the records of tables whose changes are delivered again from the beginning; of all
        tables if `tables` is None.
        """
        with self._lock:
            for name in list(self._tables) if tables is None else tables:
                self._tables.pop(name, None)

    def check(self, connection: Connection[Any]) -> None:
        """Check that the target still contains all recorded transactions.

        Raises:
            OlrPgError: 5024, transactions are missing.
            psycopg.Error: the target cannot be queried, or transactions are missing but the target
                is a standby that may still receive them.
        """
        with self._lock:
            known = self._tables.copy()
        if not known:
            return
        found = ledger_positions(connection, self._subscription)
        lacking = [name for name, reach in known.items() if found.get(name, Reach()) < reach]
        if not lacking:
            return
        if connection.execute("SELECT pg_is_in_recovery()").fetchone() == (True,):
            raise psycopg.errors.ReadOnlySqlTransaction("the server is a standby")
        raise self._put_back(connection, lacking, known, found)

    def _put_back(
        self,
        connection: Connection[Any],
        lacking: list[str],
        known: Mapping[str, Reach],
        found: Mapping[str, Reach],
    ) -> OlrPgError:
        first = min(lacking)
        more = f" (and {len(lacking) - 1} more)" if len(lacking) > 1 else ""
        start = _noted_start(connection, self._subscription)
        if start is not None and any(known[name].commit_scn < start for name in lacking):
            # Only a part of the ledger was restored or deleted: a start at this SCN would omit
            # transactions that these tables lack.
            start = None
        words = "The SCN to start from is unknown" if start is None else f"Start at SCN {start}"
        return OlrPgError(
            Code.TARGET_PUT_BACK,
            f"{_difference(found.get(first, Reach()), known[first])}{more}. {words}",
            action=_UNKNOWN_START if start is None else None,
            table=first,
            start_scn=start,
            file=None if self._path is None else str(self._path),
        )

    def save(self) -> None:
        """Write the file if the record has changed. If the file cannot be written, log a warning: a
        restart can still work, but detects less. Only the session's thread calls this method. Call
        this method before each confirmation: a restart trusts the server's saved SCN, so the file
        must not know less than the server. Suppose that the file knew less, and that the target
        failed over to a standby without the last transactions while the applier ended. Then these
        transactions would be lost without a message.
        """
        with self._lock:
            if self._path is None or self._saved is None or self._saved == self._tables:
                return
            tables = self._tables.copy()
        # Write without the lock, because the workers add to the record meanwhile. The file is
        # written before each confirmation, so do not validate what is known here.
        file = {
            "format": "olr-pg applied",
            "version": VERSION,
            "subscription": self._subscription,
            "tables": {
                name: {"commit_scn": scn, "transactions": None if count == ALL else count}
                for name, (scn, count) in tables.items()
            },
        }
        try:
            replace_file(self._path, orjson.dumps(file) + b"\n")
        except OSError as error:
            if not self._is_told:
                _log.warning("could not save the applied positions", error=plain_reason(error))
            self._is_told = True
            return
        self._is_told = False
        with self._lock:
            self._saved = tables

    def _read(self) -> dict[str, Reach]:
        if self._path is None:
            return {}
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            _log.warning(_UNREADABLE, file=str(self._path), error=plain_reason(error))
            return {}
        check_version(data, VERSION, self._path)
        try:
            file = _FILES.validate_json(data)
        except ValidationError:
            _log.warning(_UNREADABLE, file=str(self._path), error=damage(data))
            return {}
        return file.reaches() if file.subscription == self._subscription else {}


def ledger_positions(connection: Connection[Any], subscription: str) -> dict[str, Reach]:
    """Return how far each table is according to the target's ledger."""
    try:
        rows = connection.execute(_LEDGER, (subscription,)).fetchall()
    except psycopg.errors.UndefinedTable:
        return {}
    return {name: TablePosition(scn, tuple(xids)).reach for name, scn, xids in rows}


def _difference(found: Reach, known: Reach) -> str:
    if found.commit_scn < known.commit_scn:
        return (
            f"the ledger in the target says SCN {found.commit_scn}, but changes up to"
            f" SCN {known.commit_scn} were applied"
        )
    applied = "all" if known.transactions == ALL else known.transactions
    return (
        f"the ledger in the target says SCN {found.commit_scn} with {found.transactions}"
        f" transaction(s) at this SCN, but {applied} were applied"
    )


def _noted_start(connection: Connection[Any], subscription: str) -> int | None:
    """Return the SCN from which the server delivers all changes that the target lacks; None if it
    was never recorded.
    """
    try:
        return noted_start(connection, subscription)
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn):
        return None
