"""Checks that the source still has the properties with which its dictionary was read.

A run keeps the dictionary with which the first run began, for months. Meanwhile a DBA can change
what the dictionary does not follow:

- the character sets (Database Migration Assistant for Unicode);
- DBTIMEZONE (ALTER DATABASE SET TIME_ZONE). Oracle changes DBTIMEZONE only while no column has the
  type TIMESTAMP WITH LOCAL TIME ZONE (ORA-30079). So each value of this type that is still to be
  decoded is newer than the change, or belongs to a column or table that was dropped before it. The
  stored dictionary can continue with the new DBTIMEZONE;
- the SYS tables. Redo of a SYS table that was built anew names the new table, and its rows have
  other ROWIDs. So all later changes of the dictionary would be missed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.dictionary_queries import SYS, read_sys_objects
from olr_pg.oracle.driver.driver_failures import PASSING
from olr_pg.oracle.facts import ValueSettings, read_value_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.dictionary.model import Snapshot
    from olr_pg.oracle.oracle_connection import OracleDatabase

_log = structlog.get_logger(__name__)


def check_settings(databases: Sequence[OracleDatabase], snapshots: Sequence[Snapshot]) -> None:
    """Check that each container still has the properties of its dictionary.

    Raises:
        OlrPgError: 7024 a container has other character sets, 7025 it has another DBTIMEZONE, 7026
            it has other SYS tables.
    """
    for now, snapshot in zip(_settings(databases), snapshots, strict=True):
        known = snapshot.database
        container = known.con_name or known.name
        if now is None:
            continue
        if now[:2] != ValueSettings.of(known)[:2]:
            raise OlrPgError(
                Code.CHARACTER_SET_CHANGED,
                f"the character sets of the source are {now.charset} and {now.ncharset}, but the"
                f" dictionary as of SCN {snapshot.scn} has {known.charset} and {known.ncharset}",
                container=container,
            )
        if now.timezone != known.timezone:
            raise OlrPgError(
                Code.DBTIMEZONE_CHANGED,
                f"it is {now.timezone}, and the dictionary has {known.timezone}",
                container=container,
            )
    for oracle, snapshot in zip(databases, snapshots, strict=True):
        _check_sys_tables(oracle, snapshot)


def with_timezones(
    databases: Sequence[OracleDatabase], snapshots: Sequence[Snapshot]
) -> list[Snapshot]:
    """Return stored dictionaries with the present DBTIMEZONE of their containers."""
    found: list[Snapshot] = []
    for now, snapshot in zip(_settings(databases), snapshots, strict=True):
        known = snapshot.database
        if now is None or now.timezone == known.timezone:
            found.append(snapshot)
            continue
        _log.warning("the source has another DBTIMEZONE", was=known.timezone, now=now.timezone)
        found.append(replace(snapshot, database=replace(known, timezone=now.timezone)))
    return found


def _settings(databases: Sequence[OracleDatabase]) -> Iterator[ValueSettings | None]:
    """Yield the present settings of each container; None for a container that does not answer: a
    closed PDB does not stop the others.
    """
    for oracle in databases:
        try:
            yield oracle.read("reading the settings of the database", read_value_settings)
        except OlrPgError as error:
            if error.code not in PASSING:
                raise
            yield None


def _check_sys_tables(oracle: OracleDatabase, snapshot: Snapshot) -> None:
    rows = snapshot.sys_rows
    owner = None if rows is None else next((u.user for u in rows.sys_user if u.name == SYS), None)
    if rows is None or owner is None:
        return
    known = {one.name: (one.obj, one.data_obj) for one in rows.sys_obj if one.owner == owner}
    try:
        now = oracle.read(
            "reading the numbers of the SYS tables",
            lambda connection: read_sys_objects(connection, owner),
        )
    except OlrPgError as error:
        if error.code not in PASSING:
            raise
        return
    other = sorted(name for name in known.keys() & now.keys() if known[name] != now[name])
    if other:
        raise OlrPgError(
            Code.SYS_TABLES_REBUILT,
            f"{', '.join(other)}; the dictionary is of SCN {snapshot.scn}",
            container=snapshot.database.con_name or snapshot.database.name,
        )
