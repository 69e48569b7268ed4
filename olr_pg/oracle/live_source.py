"""A live Oracle database as the source of decoding: provides its dictionary and its logs.

`PdbWatch` notices that a PDB was replaced, or was set back to an earlier SCN while the rest of its
CDB was not.

After FLASHBACK PLUGGABLE DATABASE, or after a point-in-time recovery of a PDB, the PDB is opened
with RESETLOGS. The CDB keeps its incarnation, and its redo continues. So the redo first contains
the changes that the PDB has lost, then the changes that follow, and nothing that undoes the lost
ones. Each change would be replicated, and the target would differ from the source without an error.
Only V$PDB_INCARNATION shows such a RESETLOGS: “Oracle creates a new PDB incarnation whenever a PDB
is opened with the RESETLOGS option” (Oracle Database Reference). It is not known how the redo shows
such a RESETLOGS, so an offline source does not notice a RESETLOGS of a PDB.

A PDB that is unplugged and plugged in again can get another container number. Redo is selected by
the number, so all further changes would be missing without an error. A PDB that was dropped can
leave its number to another PDB, whose redo would be decoded with the wrong dictionary.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog
from sqlalchemy import Connection, select

from olr_pg.capture.archived_log import AbsentLog, ArchivedLog, LogPosition
from olr_pg.capture.logs import FileStamp, LogScan
from olr_pg.capture.source_database import LoadsBehind, idle_factor
from olr_pg.dictionary.containers import join_containers, unqualified
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.selection import find_tables, has_tables
from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.archive import (
    ListedLog,
    list_ends,
    list_logs,
    open_listed,
    open_threads,
)
from olr_pg.oracle.dictionary_queries import read_users
from olr_pg.oracle.driver.driver_failures import NOT_REACHED, PASSING, PRIVILEGE, SNAPSHOT_AGE
from olr_pg.oracle.facts import (
    CurrentDatabase,
    read_charsets,
    read_container,
    read_container_dbid,
    read_facts,
    read_incarnations,
    read_written_scn,
)
from olr_pg.oracle.lob_fetch import LobFetcher
from olr_pg.oracle.nologging_checks import UnloggedWatch
from olr_pg.oracle.redo_source import RedoSource, expected_logs, online_groups
from olr_pg.oracle.source_containers import ContainerDatabases, begun_file, begun_scns
from olr_pg.oracle.tables import INCARNATION, PDB_INCARNATION, bound

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from olr_pg.capture.lineage import Lineage
    from olr_pg.capture.online_logs import OnlineLogs
    from olr_pg.config.source_section import OracleSource
    from olr_pg.dictionary.model import Database, Snapshot, Table
    from olr_pg.dictionary.sys_rows import UserRow
    from olr_pg.oracle.oracle_connection import OracleDatabase
    from olr_pg.oracle.vault import LogVault
    from olr_pg.transactions.ancestry import Ancestry

_ORPHAN: Final = "ORPHAN"


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
    """While the redo of a PDB is read, checks that the PDB was not set back to an SCN within this
    redo, and that the container is still the PDB of the dictionary.
    """

    def __init__(self, oracle: OracleDatabase) -> None:
        self._oracle = oracle
        self._since: int | None = None
        self._is_allowed = True

    def check(self, scn: int, known: Database | None) -> None:
        """Query the source whether the PDB is still the same, and was not set back.

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
    """Check that the container is the one that the dictionary describes.

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


_CLEAN_SECONDS: Final = 3600.0
"""The pause between two searches for stored dictionaries that are not needed any more."""


def _no_loads(_: Collection[str], start_scn: int, __: Mapping[str, Collection[str]]) -> LoadsBehind:
    return LoadsBehind(start_scn)


CATALOGUE: Final = "FROM DBA_TABLES"
"""A query that contains this text was made from patterns (`config.table_patterns`), so the tables
that it lists exist.
"""

_PDB_SECONDS: Final = 10.0
"""Seconds between two checks whether a PDB was set back, if the source's list of logs has not
changed.
"""

_log = structlog.get_logger(__name__)


class _Listing(NamedTuple):
    """Oracle's list of its logs, by (incarnation, thread, sequence).

    Attributes:
        opened: redo threads that will produce more logs.
        archived: first and next SCN of every archived log, including logs whose copies are deleted.
        copies: the copies that can be read.
        ends: the ends of the last logs that are not needed any more, by the position of the
            following log (`archive.list_ends`).
    """

    opened: frozenset[int]
    archived: dict[tuple[int, int, int], tuple[int, int]]
    copies: dict[tuple[int, int, int], list[ListedLog]]
    ends: dict[tuple[int, int, int], int]


class LiveDatabase:
    """The source database of a run; implements `capture.source_database.SourceDatabase`.

    Args:
        lineage: the persistent record of the incarnation from which redo was delivered, and of the
            earlier ones.
        start_scn: the SCN from which redo is needed; 0 for the oldest log. The dictionary is read
            as of this SCN if Oracle still has the undo.
        loaded_scn: called with the tables (``OWNER.NAME``), `start_scn`, and the tables of each
            TableList query; returns the SCN from which redo is needed, also for loads that
            replication has not reached yet. If their SCNs are unknown, it returns `start_scn`.
        dictionary: the file with the dictionary that the first run began with. Later DDL is applied
            to it while redo is read, so a restart needs the same dictionary.
        vault: the vault with copies of the logs; None if no vault is configured.
        online: reads the online logs; None to read only archived logs.
        join: joins the dictionaries of several containers.
        ledger: owner and name of the table with the fallback's ledger, which may not exist yet;
            None without a fallback.
        needed: called with an SCN; returns the SCN below which no target needs redo, if everything
            below the given SCN is confirmed; None if it is unknown.
        queries: the TableList queries of several targets, which share one dictionary.

    Raises:
        OlrPgError: 7001 to 7009, the database cannot be queried.
    """

    def __init__(
        self,
        source: OracleSource,
        lineage: Lineage,
        *,
        start_scn: Callable[[], int] = lambda: 0,
        loaded_scn: Callable[
            [Collection[str], int, Mapping[str, Collection[str]]], LoadsBehind
        ] = _no_loads,
        dictionary: Path | None = None,
        vault: LogVault | None = None,
        online: OnlineLogs | None = None,
        join: Callable[[Sequence[Snapshot]], Snapshot] = join_containers,
        ledger: tuple[str, str] | None = None,
        needed: Callable[[int], int | None] = lambda scn: scn,
        queries: Sequence[str] = (),
    ) -> None:
        self._needed = needed
        self._queries = queries
        self._lists = dict[str, frozenset[str]]()
        self._clean_again = 0.0
        self._online = online
        self._join = join
        self._scanned: LogScan | None = None
        self._asked_for: set[LogPosition] = set()
        self._scanned_scn = 0
        self._list_again = 0.0
        self._source = source
        self._containers = ContainerDatabases(source)
        self._oracle = self._containers.first
        self._redo = RedoSource(source, self._oracle)
        fetches = source.fetch_lobs == "unavailable"
        self._lob_fetcher = LobFetcher(self._database_of) if fetches else None
        self._lineage = lineage
        self._start_scn = start_scn
        self._loaded_scn = loaded_scn
        self._dictionary = dictionary
        self._vault = vault
        self._logs: dict[tuple[int, int, int], ArchivedLog] = {}
        self._stamps: dict[str, FileStamp | None] = {}
        self._blocked: dict[int, tuple[int, int, int]] = {}
        self._snapshot: Snapshot | None = None
        self._names: tuple[tuple[str, str], ...] = ()
        self._by_pattern = False
        self._ledgers: tuple[tuple[str, str], ...] = ()
        if ledger is not None:
            owner, name = ledger
            pdbs = self._containers.names
            self._ledgers = tuple((f"{one}.{owner}", name) for one in pdbs) or (ledger,)
        self._answered = set[str]()
        self._vault_scn: int | None = None
        databases = self._containers.databases.values()
        self._unlogged = [UnloggedWatch(one, start_scn) for one in databases]
        self._pdbs = [PdbWatch(one) for one in databases]
        self._pdbs_known, self._ask_pdbs = False, 0.0
        self._newest: frozenset[tuple[int, int, int]] | None = None
        self._listing: _Listing | None = None
        try:
            self._facts = self._oracle.read("reading the properties of the database", read_facts)
        except OlrPgError:
            self._close_connections()
            raise

    def close(self) -> None:
        """Close the connections and the online logs."""
        if self._online is not None:
            self._online.close()
        if self._vault is not None:
            self._vault.close()
        self._close_connections()

    def _close_connections(self) -> None:
        self._redo.close()
        self._containers.close()

    @property
    def facts(self) -> CurrentDatabase:
        """The properties of the database at the start."""
        return self._facts

    @property
    def database(self) -> Database:
        """See `SourceDatabase.database`."""
        names = self._containers.names
        if not names:
            return self._facts.database
        return replace(self._facts.database, con_name=", ".join(names), containers=names)

    @property
    def ancestry(self) -> Ancestry | None:
        """See `SourceDatabase.ancestry`."""
        return self._lineage.ancestry

    @property
    def lob_source(self) -> LobFetcher | None:
        """See `SourceDatabase.lob_source`."""
        return self._lob_fetcher

    def _database_of(self, table: Table) -> OracleDatabase:
        """Return the database of a table's container."""
        assert self._snapshot is not None  # the snapshot exists, because `table` comes from it
        return self._containers.databases[self._containers.container_of(table, self._snapshot)]

    def resolve(
        self, sql: str, is_abandoned: Callable[[], bool] | None = None
    ) -> tuple[Snapshot, tuple[Table, ...]]:
        """See `SourceDatabase.resolve`.

        Raises:
            OlrPgError: 3010 to 3017 errors of the query or its tables, 7001 to 7009 errors of the
                database.
        """
        names = self._containers.run_table_list(sql, is_abandoned)
        if self._snapshot is not None and sql in self._answered:
            names = _known(self._snapshot, names, sql)
        # All targets share one dictionary, which contains the tables of all targets.
        before = [*self._names, *self._names_of_others(sql)]
        self._names = tuple(dict.fromkeys((*before, *names)))
        self._lists[sql] = frozenset(map(".".join, names))
        self._by_pattern |= CATALOGUE in sql
        snapshot = self._kept_dictionary(names)
        if snapshot is None:
            snapshot = self._join(self._read_dictionaries())
            names = _known(snapshot, names, sql)
            self._names = tuple(dict.fromkeys((*before, *names)))
        self._snapshot = snapshot
        self._answered.add(sql)
        return snapshot, find_tables(snapshot, names)

    def _names_of_others(self, sql: str) -> list[tuple[str, str]]:
        """Return the tables of the other targets, before the first dictionary is read. With a
        dictionary that lacks them, or as of a later load, their changes would be lost.

        Args:
            sql: the query of this target.
        """
        if self._snapshot is not None:
            return []
        found = self._containers.run_other_lists(one for one in self._queries if one != sql)
        for query, names in found.items():
            self._lists[query] = frozenset(map(".".join, names))
            self._by_pattern |= CATALOGUE in query
        return [name for names in found.values() for name in names]

    def _files(self) -> list[Path]:
        """Return the dictionary file of each container; empty if the dictionaries need not be
        stored.
        """
        return [] if self._dictionary is None else self._containers.files(self._dictionary)

    def _kept_dictionary(self, names: Sequence[tuple[str, str]]) -> Snapshot | None:
        """Return this run's dictionary, or the stored one of an earlier run if it contains all
        tables.
        """
        snapshot = self._snapshot
        if snapshot is None:
            files = self._files()
            if not files or not all(file.exists() for file in files):
                return None
            stored = self._load_dictionaries(files)
            snapshot = self._join(stored)
            # The dictionary can be too old: an earlier run may have stored it, and then failed,
            # before the initial load or before old logs were deleted.
            start, loads = self._start_scn(), self._loads()
            behind = loads.start_scn
            if not start and snapshot.scn < (behind or self._oldest_scn()):
                return None
            # It can be too new: a table is added whose load, or copy by another tool, began before
            # the first run. The DDL between that begin and the dictionary would be lost.
            is_before = behind < snapshot.scn and _is_of_load(loads, start)
            if is_before or (not start and not loads.permit(stored, 0)):
                return None
            if snapshot.database.dbid == self.database.dbid:
                self._check_charsets(stored)
        same = snapshot.database.dbid == self.database.dbid
        return snapshot if same and has_tables(snapshot, names) else None

    def _check_charsets(self, snapshots: Sequence[Snapshot]) -> None:
        """Check that each container still has the character sets of its dictionary. The check runs
        at the start, because an earlier run may have stored the dictionary, and before the first
        redo of a new list is read.

        Otherwise text would be decoded with the old character sets.

        Raises:
            OlrPgError: 7024, a container has others.
        """
        for oracle, snapshot in zip(self._containers.databases.values(), snapshots, strict=True):
            known = snapshot.database
            try:
                now = oracle.read("reading the character sets of the database", read_charsets)
            except OlrPgError as error:
                if error.code not in PASSING:
                    raise
                continue  # a closed PDB does not stop the others
            if now != (known.charset, known.ncharset):
                raise OlrPgError(
                    Code.CHARACTER_SET_CHANGED,
                    f"the character sets of the source are {' and '.join(now)}, but the"
                    f" dictionary as of SCN {snapshot.scn} has {known.charset} and"
                    f" {known.ncharset}",
                    container=known.con_name or known.name,
                )

    def _load_dictionaries(self, files: Sequence[Path]) -> list[Snapshot]:
        """Load the stored dictionary of each container, add the fallback's account, and store a
        dictionary that has changed.
        """
        kept = [load_snapshot(str(file)) for file in files]
        found = self._with_ledger_owners(kept)
        for file, before, after in zip(files, kept, found, strict=True):
            if after is not before:
                write_snapshot(after, str(file), 0o600)
        return found

    def _with_ledger_owners(
        self, snapshots: Sequence[Snapshot], earlier: Mapping[str, Snapshot] | None = None
    ) -> list[Snapshot]:
        """Add the fallback's account to dictionaries that were read before the account existed, or
        before it was configured.

        A table that is created later, like the fallback's ledger, is followed only if the
        dictionary contains its owner. An account that was dropped and created again has a new
        number, so both numbers are added. These numbers stay in the stored dictionary, even after
        the fallback has ended and the account was dropped.

        Args:
            earlier: the stored dictionaries that `snapshots` replace, by container. Only the
                earlier dictionaries can still contain an account that was dropped.
        """
        found: list[Snapshot] = []
        databases = self._containers.databases.items()
        for (name, oracle), snapshot in zip(databases, snapshots, strict=True):
            rows = snapshot.sys_rows
            if rows is None:
                found.append(snapshot)
                continue
            owners = {owner for owner, _ in self._containers.own(self._ledgers, name)}
            before = (earlier or {}).get(name)
            kept = () if before is None or before.sys_rows is None else before.sys_rows.sys_user
            users = {one.user: one for one in kept if one.name in owners}
            users |= {one.user: one for one in _read_users(oracle, owners)}
            for one in rows.sys_user:
                users.pop(one.user, None)
            if users:
                # Oracle may have reused the ROWID of a dropped account for another account.
                more = (replace(one, row_id="") for one in users.values())
                rows = rows.model_copy(update={"sys_user": [*rows.sys_user, *more]})
                snapshot = replace(snapshot, sys_rows=rows)
            found.append(snapshot)
        return found

    def _read_dictionaries(self) -> list[Snapshot]:
        """Read the dictionary of each container, all as of one SCN, and store them."""
        read = self._dictionaries_at_start()
        pairs = zip(self._containers.databases, self._files(), strict=False)
        files = {name: file for name, file in pairs if self._ledgers and file.exists()}
        earlier = {name: load_snapshot(str(file)) for name, file in files.items()}
        same = {
            name: one for name, one in earlier.items() if one.database.dbid == read[0].database.dbid
        }
        found = self._with_ledger_owners(read, same)
        for file, snapshot in zip(self._files(), found, strict=False):
            # 0600 is the mode of all files in the data directory.
            write_snapshot(snapshot, str(file), 0o600)
        return found

    def _dictionaries_at_start(self) -> Sequence[Snapshot]:
        """Return the dictionaries of all containers as of the SCN from which redo is needed: from
        Oracle, or, if it no longer has the undo, as a load or the begin of a copy has stored them.
        If neither has them and no load needs them, return the dictionaries as of the current SCN.

        Each container has its own undo, so one container may be readable as of that SCN and another
        one not.

        Raises:
            OlrPgError: 3082, a load needs the dictionary as of that SCN, or the dictionary of the
                earlier runs lacks a table.
        """
        names = (*self._names, *self._ledgers)
        start, loads = self._start_scn(), self._loads()
        wanted = loads.start_scn or self._oldest_scn()
        try:
            # Without any log, 0 stands for the current SCN.
            return self._containers.read_dictionaries(names, wanted or None, structure=False)
        except OlrPgError as error:
            if not wanted or error.code not in (SNAPSHOT_AGE, NOT_REACHED):
                raise
            if error.code == NOT_REACHED:
                # A checkpoint can be after the last SCN of an idle source.
                return self._containers.read_dictionaries(names, structure=False)
            reason = error.detail
        lacking = set[str]()
        for scn in begun_scns(self._files()):
            if scn == wanted or (scn > wanted and not loads.start_scn):
                stored = self._stored([begun_file(file, scn) for file in self._files()])
                lacking |= self._lacking(stored)
                if stored and not self._lacking(stored) and loads.permit(stored, start):
                    return stored
        kept, bound = self._stored(self._files()), start
        if _is_of_load(loads, start):
            bound = min(wanted, start)
        if kept and max(one.scn for one in kept) <= bound:
            if not self._lacking(kept):
                return kept
            raise _dictionary_lost(wanted, lacking or self._lacking(kept), reason)
        if _is_of_load(loads, start) or loads.rows_scn:
            raise _dictionary_lost(wanted, lacking, reason)
        _log.warning(
            "using a later dictionary: changes before a table's last DDL cannot be decoded",
            start_scn=wanted,
            reason=reason,
        )
        return self._containers.read_dictionaries(names, structure=False)

    def _stored(self, files: Sequence[Path]) -> list[Snapshot]:
        """Return the dictionary of each container from files that a run, a load or the begin of a
        copy has stored; empty if they are missing, or of another database.
        """
        if not files or not all(file.exists() for file in files):
            return []
        stored = [load_snapshot(str(file)) for file in files]
        return stored if self._join(stored).database.dbid == self.database.dbid else []

    def _lacking(self, stored: Sequence[Snapshot]) -> set[str]:
        """Return the listed tables that stored dictionaries lack, except those that are newer, so
        that the decoder reads them from redo (`_known`).
        """
        if not stored or self._by_pattern:
            return set()
        joined = self._join(stored)
        return {".".join(pair) for pair in self._names if not has_tables(joined, [pair])}

    def _remove_unneeded(self) -> None:
        """Remove the dictionaries that loads have stored, if no run can begin at their SCN: every
        target has confirmed the redo from there on, and the first logs of this redo are deleted.

        As long as the logs exist, a target that is restored from a backup may need the dictionary.
        """
        if time.monotonic() < self._clean_again:
            return
        self._clean_again = time.monotonic() + _CLEAN_SECONDS
        scns, confirmed = begun_scns(self._files()), self._start_scn()
        needed = self._needed(confirmed) if scns and confirmed else None
        if needed is None or scns[0] >= needed:
            return
        oldest = self._oldest_scn()
        if self._vault is not None:
            kept = [log.header.first_scn for log in self._vault.logs()[0]]
            oldest = min([oldest, *kept])
        for scn in scns:
            if scn < min(needed, oldest):
                for file in self._files():
                    with suppress(OSError):  # try again later
                        begun_file(file, scn).unlink(missing_ok=True)
                _log.info("a stored dictionary is not needed any more", scn=scn)

    def _loads(self) -> LoadsBehind:
        """Return the SCNs of the loaded tables that replication has not reached yet."""
        names = {f"{owner}.{name}" for owner, name in self._names}
        return self._loaded_scn(names, self._start_scn(), self._lists)

    def _oldest_scn(self) -> int:
        """Return the SCN from which on there are archived logs of all redo threads; 0 if there are
        none.

        A thread that was enabled after its incarnation began does not count if its first log
        exists: no redo of it is missing.
        """
        listed = self._redo.read(
            "listing the archived logs",
            lambda _, redo: list_logs(redo, self._source, self.database.resetlogs, 0).copies,
        )
        oldest: dict[int, ListedLog] = {}
        for (_, thread, _), copies in sorted(listed.items()):
            oldest.setdefault(thread, copies[0])
        begins = {one.resetlogs_id: one.resetlogs_scn for one in self._facts.incarnations}
        return max(
            (
                log.first_scn
                for log in oldest.values()
                if log.sequence > 1 or log.first_scn == begins.get(log.resetlogs_id, log.first_scn)
            ),
            default=min((log.first_scn for log in oldest.values()), default=0),
        )

    def scan(self, scn: int, delivered_scn: int) -> LogScan:
        """See `SourceDatabase.scan`. `LogScan.unusable` lists the logs that cannot be read yet.

        Raises:
            OlrPgError: 7001 to 7009 errors of the database, 7020 a RESETLOGS to an SCN before the
                last delivered one.
        """
        self._lineage.delivered(delivered_scn)
        if self._online is None:
            return self._with_ends(self._scan_archived(scn), scn)
        # A reader that began later may need older logs than the last scan listed.
        is_older = scn < self._scanned_scn
        if self._scanned is None or is_older or time.monotonic() >= self._list_again:
            self._scanned, self._scanned_scn = self._scan_archived(scn), scn
            self._list_again = time.monotonic() + self._source.poll_ms / 1000
        found = self._online.add_to(self._scanned, scn)
        found = self._with_opened_threads(found, scn)
        return self._with_ends(self._without_orphans(found), scn)

    def _with_ends(self, found: LogScan, scn: int) -> LogScan:
        """Return the scan with the known ends of the logs before its logs.

        While the source does not answer, the listing is older than the scan, and can be from a scan
        with a higher SCN. So an end after `scn` is left out: the logs before it are needed.
        """
        ends = {} if self._listing is None else self._listing.ends
        logs = (
            replace(log, previous_end=end)
            if (end := ends.get(log.position[:3])) is not None and end <= scn
            else log
            for log in found.logs
        )
        return replace(found, logs=tuple(logs))

    def _with_opened_threads(self, found: LogScan, scn: int) -> LogScan:
        """Return the scan with the threads that were opened since the archived logs were listed.

        An instance that has just started writes online redo. If olr_pg treated the thread of such
        an instance as closed, it could deliver later transactions of other threads before those of
        this thread. So if an online log of such a thread is found, Oracle is queried again, once
        for each log.
        """
        opened = found.open_threads
        if opened is None:
            return found
        growing = [log.position for log in found.logs if log.grows]
        writing = {position for position in growing if position.thread not in opened}
        if writing <= self._asked_for:
            return found
        self._asked_for = writing
        self._scanned, self._scanned_scn = self._scan_archived(scn), scn
        now = self._scanned.open_threads
        return replace(found, open_threads=None if now is None else opened | now)

    def _without_orphans(self, scan: LogScan) -> LogScan:
        """Return the scan without the online logs whose redo a RESETLOGS has orphaned."""
        known = self._facts.database.resetlogs
        if scan.source_answers and any(log.position.resetlogs_id not in known for log in scan.logs):
            self._list_again, self._listing = 0.0, None
        kept = []
        for log in scan.logs:
            end = self._lineage.end_of(log.position.resetlogs_id)
            if end is not None and log.next_scn > end:
                if log.header.first_scn < end:
                    kept.append(replace(log, end_scn=end))
            elif log.position.resetlogs_id in known:
                kept.append(log)
        return replace(scan, logs=tuple(kept))

    def _scan_archived(self, scn: int) -> LogScan:
        self._forget_below(scn)
        try:
            listing = self._listing
            if self._redo.has_news(self.database.resetlogs, scn) or listing is None:
                listing = self._listing = self._redo.read(
                    "listing the archived logs",
                    lambda connection, redo: self._list(connection, redo, scn),
                )
                self._remove_unneeded()
        except OlrPgError as error:
            if error.code not in PASSING:
                raise
            return LogScan(self._found(), (), (error,), source_answers=False)
        is_new = self._newest != listing.archived.keys()
        self._check_pdbs(scn, listing, is_new=is_new)
        if is_new:
            if self._snapshot is not None:
                self._check_charsets(self._snapshot.containers)
            self._newest = frozenset(listing.archived)
            for watch, chosen in zip(self._unlogged, self._chosen(), strict=True):
                watch.look(chosen)
        self._take_from_vault(scn)
        problems = self._open(listing.copies)
        if self._vault is not None:
            self._vault.remove_confirmed(scn)
        # On a standby, all threads can be closed: then it is unknown which threads are open.
        return LogScan(
            self._found(),
            (),
            tuple(problems.values()),
            listing.opened or None,
            absent=self._absent(listing, problems),
        )

    def _check_pdbs(self, scn: int, listing: _Listing, *, is_new: bool) -> None:
        """Check that none of the PDBs was replaced, or was set back to an earlier SCN within the
        redo that is read.

        The source is asked before the first redo of a new list is read, after the dictionary was
        read, and otherwise every `_PDB_SECONDS`: online logs grow without a new list.

        Raises:
            OlrPgError: 7021, 7023; 7001 to 7009.
        """
        is_known = self._snapshot is not None
        if not self._facts.database.con_id or not (
            is_new or is_known != self._pdbs_known or time.monotonic() >= self._ask_pdbs
        ):
            return
        oldest = min((first for first, _ in listing.archived.values()), default=0)
        known = [None] * len(self._pdbs) if self._snapshot is None else self._snapshot.containers
        for watch, one in zip(self._pdbs, known, strict=True):
            watch.check(max(scn, oldest), None if one is None else one.database)
        self._pdbs_known, self._ask_pdbs = is_known, time.monotonic() + _PDB_SECONDS

    def _chosen(self) -> list[tuple[Table, ...]]:
        """Return the tables that all targets have selected, for each container, with the names that
        they have in that container.
        """
        if self._snapshot is None:
            return [()] * len(self._containers.databases)
        tables = find_tables(self._snapshot, self._names)
        if not self._snapshot.members:
            return [tables]
        return [
            tuple(unqualified(one) for one in tables if one.con_id == member.database.con_id)
            for member in self._snapshot.members
        ]

    def confirmed_scn(self) -> int:
        """See `SourceDatabase.confirmed_scn`; without a checkpoint, the result is
        `apply.start-scn`.
        """
        return self._start_scn()

    def current_scn(self) -> int | None:
        """See `SourceDatabase.current_scn`. Also return None if the database does not answer.

        On a standby the current SCN is unknown (`read_written_scn`).

        Raises:
            OlrPgError: 7020 a RESETLOGS has set the database back to an SCN before the last
                delivered one; 7001 to 7009, errors that waiting does not resolve.
        """
        try:
            incarnations, scn = self._redo.read(
                "reading the current SCN",
                lambda connection, _: (read_incarnations(connection), read_written_scn(connection)),
            )
        except OlrPgError as error:
            if error.code not in PASSING:
                raise
            return None
        self._lineage.follow(incarnations)
        return scn

    def delivering(self, scn: int) -> None:
        """See `SourceDatabase.delivering`.

        Raises:
            OlrPgError: 1092, the SCN cannot be stored.
        """
        self._lineage.delivered(scn)

    def end_of(self, resetlogs_id: int) -> int | None:
        """See `SourceDatabase.end_of`."""
        return self._lineage.end_of(resetlogs_id)

    def pause(self, idle: int) -> float:
        """See `SourceDatabase.pause`. While no new logs appear, the pause grows up to ten times
        `poll-ms`.
        """
        if self._online is not None:
            return self._source.poll_ms / 1000
        return idle_factor(idle) * self._source.poll_ms / 1000

    @property
    def is_online(self) -> bool:
        """See `SourceDatabase.is_online`."""
        return self._online is not None

    @property
    def is_copying(self) -> bool:
        """See `SourceDatabase.is_copying`."""
        return self._vault is not None and self._vault.is_copying

    def has_news(self) -> bool:
        """See `SourceDatabase.has_news`.

        Raises:
            OlrPgError: 1092, the redo that was read cannot be stored.
        """
        if self._vault is not None and self._vault.take_arrival():
            self._list_again = 0.0
            return True
        return self._online is not None and self._online.poll()

    def _list(self, connection: Connection, redo: Connection, scn: int) -> _Listing:
        """List the threads, the incarnations and the logs; repeat if a RESETLOGS happened while
        they were listed.

        Without the repetition, orphaned redo would be read as valid, or a log that RESETLOGS
        archived would be missing from the list.
        """
        listing = self._list_once(connection, redo, scn)
        while read_incarnations(connection) != self._facts.incarnations:
            listing = self._list_once(connection, redo, scn)
        return listing

    def _list_once(self, connection: Connection, redo: Connection, scn: int) -> _Listing:
        # The order of the queries matters. The threads are read first, so that the list contains
        # all logs of a thread that is closed by then. The threads are read again at the end,
        # because a thread that was opened meanwhile may have commits below the end of the list.
        opened = open_threads(connection, scn)
        incarnations = read_incarnations(connection)
        if incarnations != self._facts.incarnations:
            self._facts = read_facts(connection)
        self._lineage.follow(self._facts.incarnations)
        self._cut_known()
        if self._online is not None:
            self._online.use(online_groups(redo, self._source))
        resetlogs = self._facts.database.resetlogs
        archived, copies = list_logs(redo, self._source, resetlogs, scn)
        ends = self._known_ends(archived, scn)
        if ends is None:
            ends = list_ends(redo, resetlogs, scn)
        opened |= open_threads(connection, scn)
        if redo is not connection:
            archived |= expected_logs(connection, resetlogs, scn, opened)
        return _Listing(opened, archived, copies, ends)

    def _known_ends(
        self, archived: Mapping[tuple[int, int, int], tuple[int, int]], scn: int
    ) -> dict[tuple[int, int, int], int] | None:
        """Return the ends of the last logs that are not needed any more, as the last listing shows
        them. None if the listing does not show the end before the first log of each thread, or if
        online logs are read: a log that was read online can be archived and confirmed between two
        listings, so that neither of them shows its end.

        Args:
            archived: the logs that are needed.
        """
        if self._listing is None or self._online is not None:
            return None
        ends = self._listing.ends | {
            (resetlogs, thread, sequence + 1): end
            for (resetlogs, thread, sequence), (_, end) in self._listing.archived.items()
        }
        last = {one[:2]: one for one in sorted(ends) if ends[one] <= scn}
        firsts = {one[:2]: one for one in sorted(archived, reverse=True)}
        if not set(firsts.values()) <= set(last.values()):
            return None
        return {one: ends[one] for one in last.values()}

    def _take_from_vault(self, scn: int) -> None:
        """Add the logs in the vault, because Oracle may have deleted its own copies.

        The vault is read at the first call. Later calls read it only if an older log is needed, or
        if an earlier call could not read a copy.
        """
        if self._vault is None or (self._vault_scn is not None and scn >= self._vault_scn):
            return
        logs, are_all = self._vault.logs()
        self._vault_scn = scn if are_all else None
        for log in logs:
            header = log.header
            position = header.resetlogs_id, header.thread, header.sequence
            ours = header.resetlogs_id in self.database.resetlogs and (
                header.dbid == self._facts.dbid
            )
            if ours and log.next_scn > scn:
                self._keep(position, log)

    def _keep(self, position: tuple[int, int, int], log: ArchivedLog) -> None:
        """Add a log to the known logs, without redo that a RESETLOGS has orphaned."""
        self._stamps[log.path] = FileStamp.of(Path(log.path))
        end = self._lineage.end_of(position[0])
        if end is None or log.next_scn <= end:
            self._logs[position] = log
        elif log.header.first_scn < end:
            self._logs[position] = replace(log, end_scn=end)

    def _is_unchanged(self, log: ArchivedLog) -> bool:
        """Return whether the file of a known log is the file that was opened."""
        stamp = FileStamp.of(Path(log.path))
        return stamp is not None and stamp == self._stamps.get(log.path)

    def _cut_known(self) -> None:
        """Cut the known logs at the SCN of a RESETLOGS, and remove logs whose whole redo it has
        orphaned.
        """
        for position, log in list(self._logs.items()):
            end = self._lineage.end_of(position[0])
            if end is not None and log.end_scn != end < log.next_scn:
                del self._logs[position]
                self._keep(position, log)

    def _open(
        self, listed: dict[tuple[int, int, int], list[ListedLog]]
    ) -> dict[tuple[int, int, int], OlrPgError]:
        """Open the listed logs that are not known, or whose file has changed or disappeared. Return
        the errors of the logs that cannot be opened.

        If a log cannot be opened, later logs of the same thread are not opened either.
        """
        problems: dict[tuple[int, int, int], OlrPgError] = {}
        self._blocked = {}
        asked = set[tuple[int, int, int]]()
        for position, copies in listed.items():
            known = self._logs.get(position)
            if known is not None and self._is_unchanged(known):
                continue
            end = self._lineage.end_of(position[0])
            if end is not None and copies[0].first_scn >= end:
                continue
            asked.add(position)
            try:
                log = open_listed(copies) if self._vault is None else self._vault.keep(copies)
            except OlrPgError as error:
                if known is not None:
                    # The file of a known log was deleted or replaced. If its redo is still needed,
                    # the error is reported when the file is read.
                    continue
                problems[position] = error
                self._blocked.setdefault(position[1], position)
                continue
            self._keep(position, log)
        if self._vault is not None:
            self._vault.drop_unwanted(asked)
        return problems

    def _absent(
        self, listing: _Listing, problems: Mapping[tuple[int, int, int], OlrPgError]
    ) -> tuple[AbsentLog, ...]:
        """Return the archived logs for which neither Oracle nor the vault has a usable copy.

        Args:
            problems: the errors of listed copies that cannot be used.
        """
        dbid = self._facts.dbid
        absent = []
        for position, (first_scn, next_scn) in sorted(listing.archived.items()):
            end = self._lineage.end_of(position[0])
            problem = problems.get(position)
            is_here = problem is None and (position in listing.copies or position in self._logs)
            if not is_here and (end is None or first_scn < end):
                place = LogPosition(*position, dbid)
                absent.append(AbsentLog(place, first_scn, next_scn, problem))
        return tuple(absent)

    def _forget_below(self, scn: int) -> None:
        """Forget logs that are no longer needed, except the last log of each thread."""
        last: dict[int, tuple[int, int, int]] = {}
        for position, log in self._logs.items():
            if log.next_scn <= scn:
                thread = position[1]
                last[thread] = max(last.get(thread, position), position)
        for position in [p for p, log in self._logs.items() if log.next_scn <= scn]:
            if last[position[1]] != position:
                self._stamps.pop(self._logs.pop(position).path, None)

    def _found(self) -> tuple[ArchivedLog, ...]:
        return tuple(
            self._logs[position]
            for position in sorted(self._logs)
            if position[1] not in self._blocked or position < self._blocked[position[1]]
        )


def _is_of_load(loads: LoadsBehind, start: int) -> bool:
    """Return whether a load, and not the checkpoint, determines where a run starts.

    Args:
        start: the SCN of the checkpoint; 0 without one.
    """
    return loads.start_scn > 0 and (not start or loads.start_scn < start)


def _dictionary_lost(scn: int, lacking: Collection[str], reason: str) -> OlrPgError:
    """Return the error that the dictionary as of an SCN is not available.

    Args:
        lacking: the tables that the stored dictionary as of this SCN lacks.
    """
    if not lacking:
        return OlrPgError(Code.DICTIONARY_LOST, reason, scn=scn)
    tables = ", ".join(sorted(lacking))
    return OlrPgError(
        Code.DICTIONARY_LOST,
        f"{reason}. The stored dictionary lacks {tables}",
        action=f"replicate the other tables first: remove {tables} from `apply.tables`, start"
        " `olr-pg run`, and wait until it is up to date. Then add the tables to `apply.tables`"
        " again, and restart: their loads stay recorded. Tables that `olr-pg tables add` has added"
        " can be removed only with `olr-pg tables remove`; then empty them, and add them again",
        scn=scn,
    )


def _known(snapshot: Snapshot, names: list[tuple[str, str]], sql: str) -> list[tuple[str, str]]:
    """Remove tables that exist in Oracle but not in the dictionary, because the dictionary is
    older.

    The decoder adds such a table when it reads the redo of its CREATE TABLE
    (`decoding.new_tables`). If the user wrote the query, all its names are kept. These names are
    checked later, because they may be wrong.
    """
    found = [pair for pair in names if has_tables(snapshot, [pair])]
    if len(found) == len(names) or not found or CATALOGUE not in sql:
        return names
    newer = [".".join(pair) for pair in names if pair not in found]
    _log.info(
        "some tables are newer than the dictionary; the decoder reads them from redo",
        tables=newer,
        dictionary_scn=snapshot.scn,
    )
    return found


def _read_users(oracle: OracleDatabase, names: Collection[str]) -> list[UserRow]:
    """Return the rows of USER$ for the accounts in `names` that exist now."""
    if not names:
        return []
    return oracle.read(
        "reading the account of the way back", lambda connection: read_users(connection, names)
    )
