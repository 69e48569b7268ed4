"""Notices that a PDB was set back to an earlier SCN while the rest of its CDB was not, or replaced.

After FLASHBACK PLUGGABLE DATABASE, or after a point-in-time recovery of a PDB, the PDB is opened
with RESETLOGS. The CDB keeps its incarnation, and its redo continues. So the redo first contains
the changes that the PDB has lost, then the changes that follow, and nothing that undoes the lost
ones. Each change would be replicated, and the target would differ from the source without an error.
Only V$PDB_INCARNATION shows this: “Oracle creates a new PDB incarnation whenever a PDB is opened
with the RESETLOGS option” (Oracle Database Reference). How the redo shows it is not known, so an
offline source does not notice it.

A PDB that is unplugged and plugged in again can get another container number. Redo is selected by
the number, so all further changes would be missing without an error. A PDB that was dropped can
leave its number to another PDB, whose redo would be decoded with the wrong dictionary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import structlog
from sqlalchemy import select

from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.driver.driver_failures import PASSING, PRIVILEGE
from olr_pg.oracle.facts import read_container, read_container_dbid
from olr_pg.oracle.tables import INCARNATION, PDB_INCARNATION, bound

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from olr_pg.dictionary.model import Database
    from olr_pg.oracle.oracle_connection import OracleDatabase

_ORPHAN: Final = "ORPHAN"

_log = structlog.get_logger(__name__)


class SetBack(NamedTuple):
    """The change of a PDB's incarnation.

    Attributes:
        scn: the SCN to which the PDB was set back.
        begin_scn: the SCN at the beginning of its OPEN RESETLOGS: the PDB has lost all changes
            between `scn` and this SCN.
        end_scn: the SCN at the end of its OPEN RESETLOGS.
    """

    scn: int
    begin_scn: int
    end_scn: int


def read_set_backs(connection: Connection, con_id: int) -> list[SetBack]:
    """Return the RESETLOGS of the PDB that were no RESETLOGS of the whole CDB, the last one first.

    An orphaned incarnation does not count: the one that has replaced it was set back further.
    """
    whole = {int(scn) for (scn,) in connection.execute(select(INCARNATION.c["RESETLOGS_CHANGE#"]))}
    columns = PDB_INCARNATION.c
    query = select(
        columns.INCARNATION_SCN, columns.BEGIN_RESETLOGS_SCN, columns.END_RESETLOGS_SCN
    ).where(bound(con_id) == columns.CON_ID, bound(_ORPHAN) != columns.STATUS)
    found = (SetBack(*(int(scn or 0) for scn in row)) for row in connection.execute(query))
    kept = [one for one in found if one.scn < one.begin_scn and one.begin_scn not in whole]
    return sorted(kept, key=lambda one: one.begin_scn, reverse=True)


class PdbWatch:
    """Checks, while the redo of a PDB is read, that it was not set back within this redo, and that
    it is still the one whose dictionary is used.
    """

    def __init__(self, oracle: OracleDatabase) -> None:
        self._oracle = oracle
        self._since: int | None = None
        self._is_allowed = True

    def check(self, scn: int, known: Database | None) -> None:
        """Query the source.

        Args:
            scn: redo is read from this SCN on; 0 if there is no log yet. The check uses the lowest
                SCN of all calls, so that it also notices a change whose redo was already read.
            known: the container of the dictionary; None before the dictionary is known.

        Raises:
            OlrPgError: 7021, the PDB was set back; 7023, it is another container; 7001 to 7009,
                errors that waiting does not resolve.
        """
        if scn:
            self._since = scn if self._since is None else min(self._since, scn)
        try:
            self._oracle.read(
                "reading the incarnations of the PDB",
                lambda connection: self._ask(connection, known),
            )
        except OlrPgError as error:
            if error.code == PRIVILEGE:
                self._is_allowed = False
                unknown = OlrPgError(Code.PDB_INCARNATION_UNKNOWN, error.detail)
                _log.warning(
                    unknown.title, code=unknown.label, reason=unknown.detail, action=unknown.action
                )
            elif error.code not in PASSING:
                raise

    def _ask(self, connection: Connection, known: Database | None) -> None:
        con_id, name = read_container(connection)
        if known is not None:
            _check_same(known, con_id, name, read_container_dbid(connection))
        if not self._is_allowed:
            return
        found, since = read_set_backs(connection, con_id), self._since
        if found and since is not None and found[0].begin_scn > since:
            last = found[0]
            raise OlrPgError(
                Code.PDB_SET_BACK,
                f"{name} was set back to SCN {last.scn} and opened with RESETLOGS from SCN"
                f" {last.begin_scn} to {last.end_scn}, but its redo is read from SCN {since} on",
                scn=last.scn,
            )


def _check_same(known: Database, con_id: int, name: str, dbid: int) -> None:
    """Check that the container is that of the dictionary.

    Raises:
        OlrPgError: 7023.
    """
    if con_id == known.con_id and dbid == (known.dbid or dbid):
        return
    raise OlrPgError(
        Code.PDB_REPLACED,
        f"{name} is container {con_id} with DBID {dbid} now, but its dictionary is of container"
        f" {known.con_id} with DBID {known.dbid}",
    )
