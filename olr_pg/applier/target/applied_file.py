"""Records which transactions the target is known to have on disk, to detect a target that was
restored from a backup.

A restored backup lacks transactions that were already confirmed to the server, and so does a
standby that was behind when it was promoted. The server does not deliver these transactions again.
The target alone cannot show this, because its ledger was restored together with its rows. So for
each table, the applier records the commit SCN up to which transactions were on the target's disk,
in memory and in a file beside the server's checkpoint. It writes the file before each confirmation.
On each new connection, it compares this record with the ledger. Transactions that were not on disk
yet are not recorded. So a killed applier or a crash of PostgreSQL does not look like a restore.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import psycopg
import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from olr_pg.applier.target.ledger import noted_start
from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.files.durable import check_version, damage, replace_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from psycopg import Connection

_log = structlog.get_logger(__name__)

FILE_NAME: Final = "applied.json"
"""The name of the file in the target's directory of `context.data`."""

VERSION: Final = 1

_UNREADABLE: Final = (
    "cannot read applied.json, so a target that was restored from a backup is not detected"
)
_LEDGER: Final = "SELECT source_table, commit_scn FROM olr_pg.ledger WHERE subscription = %s"

_Scn = Annotated[int, Field(ge=0, lt=1 << 64)]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    format: Literal["olr-pg applied"] = "olr-pg applied"
    version: Literal[1] = VERSION
    subscription: str
    tables: dict[str, _Scn]


class AppliedTables:
    """Records the commit SCN up to which each table of a subscription is known to be on disk;
    thread-safe.

    Args:
        file: the file that keeps the record across restarts; None to keep it only in memory.
    """

    def __init__(self, subscription: str, file: Path | None) -> None:
        self._subscription = subscription
        self._path = file
        self._lock = threading.Lock()
        self._tables: dict[str, int] = {}
        self._saved: dict[str, int] | None = None
        self._is_told = False

    def read_file(self, tables: Collection[str] = ()) -> None:
        """Read the file, once.

        Args:
            tables: the tables of the subscription, empty if unknown. Other tables in the file are
                ignored, because their changes are no longer delivered.

        Raises:
            OlrPgError: 4035, the file is of a newer version.
        """
        with self._lock:
            if self._saved is None:
                self._saved = self._read()
                known = {n: scn for n, scn in self._saved.items() if not tables or n in tables}
                self._tables = {**known, **self._tables}

    @property
    def is_known(self) -> bool:
        """Return whether any position is recorded. None is recorded before the first change, or if
        the file is missing.
        """
        with self._lock:
            return bool(self._tables)

    def scn_of(self, table: str) -> int:
        """Return the commit SCN up to which a table is on disk; 0 if unknown."""
        with self._lock:
            return self._tables.get(table, 0)

    def add(self, tables: Mapping[str, int]) -> None:
        """Record that these tables are on disk up to these commit SCNs."""
        with self._lock:
            for name, scn in tables.items():
                if scn > self._tables.get(name, 0):
                    self._tables[name] = scn

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
        lacking = [name for name, scn in known.items() if found.get(name, 0) < scn]
        if not lacking:
            return
        if connection.execute("SELECT pg_is_in_recovery()").fetchone() == (True,):
            raise psycopg.errors.ReadOnlySqlTransaction("the server is a standby")
        raise self._put_back(connection, lacking, known, found)

    def _put_back(
        self,
        connection: Connection[Any],
        lacking: list[str],
        known: Mapping[str, int],
        found: Mapping[str, int],
    ) -> OlrPgError:
        first = min(lacking)
        more = f" (and {len(lacking) - 1} more)" if len(lacking) > 1 else ""
        start = _noted_start(connection, self._subscription)
        words = "The SCN to start from is unknown" if start is None else f"Start at SCN {start}"
        return OlrPgError(
            Code.TARGET_PUT_BACK,
            f"the ledger in the target says SCN {found.get(first, 0)}, but changes up to"
            f" SCN {known[first]} were applied{more}. {words}",
            table=first,
            start_scn=start,
            file=None if self._path is None else str(self._path),
        )

    def save(self) -> None:
        """Write the file if the record has changed. If this fails, log a warning: a restart can
        still work, but detects less. Only the session's thread calls this.

        Call it before each confirmation: a restart trusts the server's saved SCN, so the file must
        not know less than the server. If it did, a failover to a standby that lacks the last
        transactions, together with the end of the applier, would lose them without a message.
        """
        with self._lock:
            if self._path is None or self._saved is None or self._saved == self._tables:
                return
            tables = self._tables.copy()
        # Write without the lock, because the workers add to the record meanwhile.
        file = _File(subscription=self._subscription, tables=tables)
        try:
            replace_file(self._path, file.model_dump_json(indent=2).encode() + b"\n")
        except OSError as error:
            if not self._is_told:
                _log.warning("could not save the applied positions", error=plain_reason(error))
            self._is_told = True
            return
        self._is_told = False
        with self._lock:
            self._saved = tables

    def _read(self) -> dict[str, int]:
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
            file = _File.model_validate_json(data)
        except ValidationError:
            _log.warning(_UNREADABLE, file=str(self._path), error=damage(data))
            return {}
        return dict(file.tables) if file.subscription == self._subscription else {}


def ledger_positions(connection: Connection[Any], subscription: str) -> dict[str, int]:
    """Return the last commit SCN of each table in the target's ledger."""
    try:
        return dict(connection.execute(_LEDGER, (subscription,)).fetchall())
    except psycopg.errors.UndefinedTable:
        return {}


def _noted_start(connection: Connection[Any], subscription: str) -> int | None:
    """Return the SCN from which the server delivers all changes that the target lacks; None if it
    was never recorded.
    """
    try:
        return noted_start(connection, subscription)
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn):
        return None
