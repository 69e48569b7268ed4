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
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog
from sqlalchemy import Connection, select

from olr_pg.capture.archived_log import AbsentLog, ArchivedLog, LogPosition
from olr_pg.capture.logs import FileStamp, LogScan
from olr_pg.capture.source_database import NeededChanges, idle_factor
from olr_pg.dictionary.containers import join_containers
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.archive import ListedLog, list_ends, list_logs, open_listed, open_threads
from olr_pg.oracle.driver.bounded_calls import PASSING, PRIVILEGE
from olr_pg.oracle.facts import (
    SNAPSHOT_STANDBY,
    CurrentDatabase,
    read_container,
    read_container_dbid,
    read_facts,
    read_incarnations,
    read_written_scn,
)
from olr_pg.oracle.lob_fetch import LobFetcher
from olr_pg.oracle.nologging_checks import UnloggedWatch
from olr_pg.oracle.redo_source import RedoSource, expected_logs, online_groups
from olr_pg.oracle.run_dictionary import RunDictionary
from olr_pg.oracle.source_containers import ContainerDatabases
from olr_pg.oracle.tables import DATABASE, INCARNATION, PDB_INCARNATION, bound

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from olr_pg.capture.lineage import Lineage
    from olr_pg.capture.online_logs import OnlineLogs
    from olr_pg.config.source_section import OracleSource
    from olr_pg.dictionary.committed_changes import DictionaryTransaction
    from olr_pg.dictionary.model import Database, Snapshot, Table
    from olr_pg.oracle.oracle_connection import OracleDatabase
    from olr_pg.oracle.vault import LogVault
    from olr_pg.transactions.schema_event import Ancestry, Incarnation

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
        start_scn: the SCN up to which all targets have confirmed all changes; 0 if it is unknown.
        recorded_scn: see `confirmed_scn`; the default is `start_scn`.
        changes: called with the tables (``OWNER.NAME``) and the tables of each TableList query;
            returns the changes that the targets need. The dictionary is read as of the SCN from
            which redo is needed, if Oracle still has the undo. None if there are no loads.
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
        recorded: returns the changes of a dictionary that earlier runs have recorded.

    Raises:
        OlrPgError: 7001 to 7009, the database cannot be queried.
    """

    def __init__(
        self,
        source: OracleSource,
        lineage: Lineage,
        *,
        start_scn: Callable[[], int] = lambda: 0,
        recorded_scn: Callable[[], int] | None = None,
        changes: Callable[[Collection[str], Mapping[str, Collection[str]]], NeededChanges]
        | None = None,
        dictionary: Path | None = None,
        vault: LogVault | None = None,
        online: OnlineLogs | None = None,
        join: Callable[[Sequence[Snapshot]], Snapshot] = join_containers,
        ledger: tuple[str, str] | None = None,
        needed: Callable[[int], int | None] = lambda scn: scn,
        queries: Sequence[str] = (),
        recorded: Callable[[Snapshot], Sequence[DictionaryTransaction]] = lambda _: (),
    ) -> None:
        self._needed = needed
        self._online = online
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
        self._recorded_scn = recorded_scn or start_scn
        self._vault = vault
        self._logs: dict[tuple[int, int, int], ArchivedLog] = {}
        self._stamps: dict[str, FileStamp | None] = {}
        self._blocked: dict[int, tuple[int, int, int]] = {}
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
        self._dictionary = RunDictionary(
            self._containers,
            dictionary,
            ledger=ledger,
            queries=queries,
            join=join,
            start_scn=start_scn,
            changes=changes
            or (lambda *_: NeededChanges(start_scn(), start_scn(), recorded_scn=start_scn())),
            delivered_scn=lambda: self.delivered_scn,
            database=lambda: self.database,
            oldest_scn=self._oldest_scn,
            recorded=recorded,
        )

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
        snapshot = self._dictionary.snapshot
        assert snapshot is not None  # the snapshot exists, because `table` comes from it
        return self._containers.databases[self._containers.container_of(table, snapshot)]

    def resolve(
        self, sql: str, is_abandoned: Callable[[], bool] | None = None
    ) -> tuple[Snapshot, tuple[Table, ...]]:
        """See `SourceDatabase.resolve`.

        Raises:
            OlrPgError: as `RunDictionary.resolve`.
        """
        return self._dictionary.resolve(sql, is_abandoned)

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

    def _oldest_kept(self) -> int:
        """Return the SCN from which on there are logs, in Oracle or in the vault."""
        kept = [] if self._vault is None else self._vault.logs()[0]
        return min([self._oldest_scn(), *(log.header.first_scn for log in kept)])

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
                self._dictionary.remove_unneeded(self._needed, self._oldest_kept)
        except OlrPgError as error:
            if error.code not in PASSING:
                raise
            return LogScan(self._found(), (), (error,), source_answers=False)
        is_new = self._newest != listing.archived.keys()
        self._check_pdbs(scn, listing, is_new=is_new)
        if is_new:
            self._dictionary.check_settings()
            self._newest = frozenset(listing.archived)
            for watch, chosen in zip(self._unlogged, self._dictionary.chosen(), strict=True):
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
        snapshot = self._dictionary.snapshot
        is_known = snapshot is not None
        if not self._facts.database.con_id or not (
            is_new or is_known != self._pdbs_known or time.monotonic() >= self._ask_pdbs
        ):
            return
        oldest = min((first for first, _ in listing.archived.values()), default=0)
        known = [None] * len(self._pdbs) if snapshot is None else snapshot.containers
        for watch, one in zip(self._pdbs, known, strict=True):
            watch.check(max(scn, oldest), None if one is None else one.database)
        self._pdbs_known, self._ask_pdbs = is_known, time.monotonic() + _PDB_SECONDS

    def confirmed_scn(self) -> int:
        """See `SourceDatabase.confirmed_scn`."""
        return self._recorded_scn()

    @property
    def delivered_scn(self) -> int:
        """See `SourceDatabase.delivered_scn`."""
        return self._lineage.delivered_scn

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
                lambda one, _: (self._incarnations(one), read_written_scn(one)),
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
        incarnations = self._incarnations(connection)
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

    def _incarnations(self, connection: Connection) -> tuple[Incarnation, ...]:
        """Read the incarnations that can be followed.

        A physical standby that is converted to a snapshot standby opens with RESETLOGS, and is
        flashed back to this SCN when it becomes a physical standby again (Data Guard Concepts and
        Administration, “Managing a Snapshot Standby Database”). So the changes of its incarnation
        do not last. It is followed only if it is the incarnation with which replication began.

        Raises:
            OlrPgError: 7048.
        """
        incarnations = read_incarnations(connection)
        if incarnations and self._lineage.is_of_another(incarnations[0]):
            role = str(connection.execute(select(DATABASE.c.DATABASE_ROLE)).scalar_one())
            if role == SNAPSHOT_STANDBY:
                raise OlrPgError(
                    Code.SOURCE_IS_SNAPSHOT_STANDBY,
                    f"incarnation {incarnations[0].resetlogs_id} began at SCN"
                    f" {incarnations[0].resetlogs_scn}",
                )
        return incarnations

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
