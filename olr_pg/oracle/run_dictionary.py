"""The dictionary with which a run of a live source begins.

All targets share one dictionary, and the redo brings its later changes. With a dictionary that is
later than a change, this change may not be decoded: a MOVE or TRUNCATE in between has given the
table another data object number. With an older dictionary than the redo that is read, the DDL in
between is missing, unless an earlier run has recorded it. `RunBegin` knows which dictionaries are
neither; `RunDictionary` looks for one:

1. the dictionary of the earlier runs, in `context.data`, if it contains all tables, and if the
   checkpoint of a target proves that the DDL since then is recorded;
2. Oracle's, as of the SCN from which redo is needed, if Oracle still has the undo, or if there was
   no DDL since then;
3. one that a load, or the begin of a copy by another tool, has stored;
4. that of the earlier runs, if they have delivered transactions up to the SCN from which redo is
   needed. No checkpoint proves that the files belong together, so Oracle's is better;
5. a later one, with a warning, if no load needs an earlier one: that of the earlier runs, or the
   present one.

A TableList query runs on Oracle's present catalogue. A table that was renamed or dropped after the
SCN from which redo is read is not in it any more, but its changes up to this DDL, and the DDL, are
needed. So the query also selects from the tables that existed as of that SCN, and from those that
an earlier query of this run has selected (`_EarlierTables`). A target that begins with its loads
needs only those of them that were loaded.

`check_settings` checks that the source still has the properties with which its dictionary was read.
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

import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from olr_pg.dictionary.committed_changes import SysRowOperation
from olr_pg.dictionary.containers import unqualified
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.oracle_schemas import is_oracle_schema
from olr_pg.dictionary.selection import find_tables, has_tables, missing_tables
from olr_pg.dictionary.snapshot_file import store_snapshot
from olr_pg.dictionary.table_list import selected_names
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.dictionary_queries import SYS, read_sys_objects, read_users
from olr_pg.oracle.driver.bounded_calls import NOT_REACHED, PASSING, SNAPSHOT_AGE
from olr_pg.oracle.facts import ValueSettings, read_value_settings
from olr_pg.oracle.source_containers import begun_file, begun_scns
from olr_pg.oracle.tables import OBJ

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from olr_pg.capture.source_database import NeededChanges
    from olr_pg.dictionary.committed_changes import DictionaryTransaction
    from olr_pg.dictionary.model import Database, Snapshot, Table
    from olr_pg.oracle.oracle_connection import OracleDatabase
    from olr_pg.oracle.source_containers import ContainerDatabases


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


CATALOGUE: Final = "FROM DBA_TABLES"
"""A query that contains this text was made from patterns (`config.table_patterns`), so the tables
that it lists exist.
"""

ANY_OWNER: Final = "AND OWNER NOT IN ("
"""A query that contains this text was made from a pattern that leaves the owner open, such as
``*.ORDERS``.
"""

_READS_CATALOGUE: Final = "_TABLES"
"""A query that contains this text reads ALL_TABLES, DBA_TABLES or USER_TABLES."""

_CLEAN_SECONDS: Final = 3600.0
"""The pause between two searches for stored dictionaries that are not needed any more."""

_log = structlog.get_logger(__name__)


class RunBegin(NamedTuple):
    """Where a run begins, which decides which dictionaries it can use.

    Attributes:
        saved: the lowest SCN of a checkpoint or of `apply.start-scn`; 0 without both. The targets
            that have one have confirmed all changes of earlier commits, except those of loaded
            tables.
        wanted: the SCN from which redo is read; 0 if there are no logs.
        rows_scn: the lowest SCN as of which a table was loaded that replication has not reached; 0
            without such a table.
        recorded: the DDL up to this SCN is recorded; 0 if it is unknown.
    """

    saved: int
    wanted: int
    rows_scn: int = 0
    recorded: int = 0

    def permits(self, scn: int) -> bool:
        """Return whether a dictionary as of `scn` is not later than a change that a target needs.

        It may be later than `wanted`: a transaction that was open at `wanted` has prevented DDL of
        the tables that it had changed. So changes of a loaded table need no earlier dictionary than
        the one as of the rows, and changes of other tables none before the checkpoint. Without both
        nothing is known, and every dictionary is permitted.
        """
        return all(scn <= bound for bound in (self.saved, self.rows_scn) if bound)

    def can_keep(self, scns: Sequence[int]) -> bool:
        """Return whether the run can begin with the dictionaries of the earlier runs as of `scns`.
        They are later than the checkpoint if somebody has restored an older checkpoint.

        Args:
            scns: the SCN of each container's dictionary. They differ if a run was killed while it
                stored them.
        """
        return self.permits(max(scns)) and self.wanted <= max(min(scns), self.recorded)

    def is_later(self, scns: Sequence[int]) -> bool:
        """Return whether dictionaries are later than `wanted`, but not than a load: they are no
        worse than the present ones.
        """
        return self.wanted <= min(scns) and (not self.rows_scn or max(scns) <= self.rows_scn)

    def can_use_stored(self, begun: int, scn: int) -> bool:
        """Return whether the run can begin with a dictionary that a load has stored.

        Args:
            begun: the SCN from which that load needs redo.
            scn: the SCN of the dictionary: `begun`, or the SCN of the load's rows.
        """
        return self.wanted <= begun and self.permits(scn)


class RunDictionary:
    """Runs the TableList queries of a live source, and chooses the dictionary of the run.

    Args:
        containers: the source's containers.
        path: the file with the dictionary that the first run began with. Later DDL is applied to it
            while redo is read, so a restart needs the same dictionary. None to store nothing.
        ledger: owner and name of the table with the fallback's ledger, which may not exist yet;
            None without a fallback.
        queries: the TableList queries of several targets, which share one dictionary.
        join: joins the dictionaries of several containers.
        start_scn, changes: see `LiveDatabase`.
        database: returns the properties of the database.
        oldest_scn: returns the SCN from which on there are archived logs of all redo threads; 0 if
            there are none.
        delivered_scn: returns the SCN below which transactions may have been delivered.
        recorded: returns the changes of a dictionary that earlier runs have recorded.

    Attributes:
        snapshot: the dictionary; None before the first query.
    """

    def __init__(
        self,
        containers: ContainerDatabases,
        path: Path | None,
        *,
        ledger: tuple[str, str] | None,
        queries: Sequence[str],
        join: Callable[[Sequence[Snapshot]], Snapshot],
        start_scn: Callable[[], int],
        changes: Callable[[Collection[str], Mapping[str, Collection[str]]], NeededChanges],
        database: Callable[[], Database],
        oldest_scn: Callable[[], int],
        delivered_scn: Callable[[], int],
        recorded: Callable[[Snapshot], Sequence[DictionaryTransaction]],
    ) -> None:
        self.snapshot: Snapshot | None = None
        self._containers, self._queries, self._join = containers, queries, join
        self._files = [] if path is None else containers.files(path)
        self._start_scn, self._changes = start_scn, changes
        self._database, self._oldest_scn = database, oldest_scn
        self._delivered_scn = delivered_scn
        self._names: tuple[tuple[str, str], ...] = ()
        self._lists = dict[str, tuple[tuple[str, str], ...]]()
        self._earlier = _EarlierTables(containers, recorded)
        self._by_pattern = self._any_owner = False
        self._answered = set[str]()
        self._clean_again = 0.0
        self._ledgers: tuple[tuple[str, str], ...] = ()
        if ledger is not None:
            owner, name = ledger
            pdbs = containers.names
            self._ledgers = tuple((f"{one}.{owner}", name) for one in pdbs) or (ledger,)

    def resolve(
        self, sql: str, is_abandoned: Callable[[], bool] | None = None
    ) -> tuple[Snapshot, tuple[Table, ...]]:
        """See `SourceDatabase.resolve`.

        Raises:
            OlrPgError: 3010 to 3017 errors of the query or its tables, 3082 the dictionary that a
                load needs is lost, 7001 to 7009 errors of the database.
        """
        names = self._containers.run_table_list(sql, is_abandoned)
        if self.snapshot is not None:
            names = self._earlier.added_to(names, sql, self._names)
            if sql in self._answered:
                names = _known(self.snapshot, names, sql)
            else:
                self._check_loads(self.snapshot.scn)
        # All targets share one dictionary, which contains the tables of all targets.
        before = [*self._names, *self._names_of_others(sql)]
        self._names = tuple(dict.fromkeys((*before, *names)))
        self._note_list(sql, names)
        snapshot, begin = self.snapshot, None
        if snapshot is None:
            begin = self._begin_with_earlier()
            names = list(self._lists[sql])
            snapshot = self._kept(begin)
        same = snapshot is not None and snapshot.database.dbid == self._database().dbid
        if snapshot is None or not same or not has_tables(snapshot, names):
            snapshot = self._join(self._read_dictionaries(begin or self._begin()))
        names = _known(snapshot, self._earlier.completed(names, sql, snapshot), sql)
        names = self._earlier.usable(snapshot, names)
        named = tuple(dict.fromkeys((*before, *names)))
        self._names = tuple(self._earlier.usable(snapshot, named))
        self.snapshot = snapshot
        self._answered.add(sql)
        return snapshot, find_tables(snapshot, names)

    def _note_list(self, sql: str, names: Sequence[tuple[str, str]]) -> None:
        self._lists[sql] = tuple(names)
        self._by_pattern |= CATALOGUE in sql
        self._any_owner |= ANY_OWNER in sql

    def _names_of_others(self, sql: str) -> list[tuple[str, str]]:
        """Return the tables of the other targets, before the first dictionary is read. With a
        dictionary that lacks them, or as of a later load, their changes would be lost.

        Args:
            sql: the query of this target.
        """
        if self.snapshot is not None:
            return []
        found = self._containers.run_other_lists(one for one in self._queries if one != sql)
        for query, names in found.items():
            self._note_list(query, names)
        return [name for names in found.values() for name in names]

    def _check_loads(self, scn: int) -> None:
        """Check that the dictionary is not later than the rows of a load, before a target gets its
        first tables. A target that did not answer at the start, or did not exist, may have such a
        load.

        Args:
            scn: the SCN of the dictionary.

        Raises:
            OlrPgError: 3082, a load needs an earlier dictionary.
        """
        begin = self._begin()
        if 0 < begin.rows_scn < scn:
            raise OlrPgError(
                Code.DICTIONARY_LOST,
                f"the dictionary in use is as of SCN {scn}, but a target that did not answer at the"
                f" start has a load as of SCN {begin.rows_scn}",
                action="start the appliance again while all targets can be reached, so that it"
                " reads the earlier dictionary",
                scn=begin.wanted,
            )

    def _begin(self) -> RunBegin:
        needed = self._needed()
        wanted = needed.start_scn or self._oldest_scn()
        return RunBegin(needed.confirmed_scn, wanted, needed.rows_scn, needed.recorded_scn)

    def _needed(self) -> NeededChanges:
        names = {f"{owner}.{name}" for owner, name in self._names}
        lists = {query: set(map(".".join, own)) for query, own in self._lists.items()}
        needed, new = self._changes(names, lists), self._earlier.new
        if needed.start_scn or not needed.rows_scn or not new:
            return needed
        # A table that is newer than the loads needs no redo from before its creation.
        older = {query: own - new for query, own in lists.items()}
        return self._changes(names - new, older)

    def _begin_with_earlier(self) -> RunBegin:
        """Add the earlier tables to the lists, and return where the run begins. A load of an
        earlier table can need older redo.
        """
        begin = self._begin()
        continues = begin.saved or begin.rows_scn or any(file.exists() for file in self._files)
        # Without a position, a table without a load may be newer than the loads of the others.
        scn = begin.wanted if begin.saved else begin.rows_scn or begin.wanted
        read = set[int]()
        while continues and scn not in read and self._earlier.read(scn, self._lists):
            read.add(scn)
            self._earlier.loaded = self._needed().loaded
            for query, names in list(self._lists.items()):
                self._lists[query] = tuple(self._earlier.added_to(names, query, ()))
            every = (name for names in self._lists.values() for name in names)
            self._names = tuple(dict.fromkeys((*self._names, *every)))
            begin = self._begin()
            scn = begin.wanted
        return begin

    def _kept(self, begin: RunBegin) -> Snapshot | None:
        """Return the dictionary of the earlier runs, if this run can begin with it."""
        if not self._files or not all(file.exists() for file in self._files):
            return None
        stored = self._load_dictionaries()
        snapshot = self._join(stored)
        if not begin.can_keep([one.scn for one in stored]):
            return None
        if snapshot.database.dbid == self._database().dbid:
            check_settings(self._databases, stored)
        return snapshot

    def check_settings(self) -> None:
        """Check that each container still has the properties of its dictionary. The check runs at
        the start, because an earlier run may have stored the dictionary, and before the first redo
        of a new list is read.

        Raises:
            OlrPgError: 7024 to 7026 (`check_settings`).
        """
        if self.snapshot is not None:
            check_settings(self._databases, self.snapshot.containers)

    @property
    def _databases(self) -> list[OracleDatabase]:
        return list(self._containers.databases.values())

    def _load_dictionaries(self) -> list[Snapshot]:
        """Load the stored dictionary of each container, adopt the present DBTIMEZONE, add further
        users (`_with_other_owners`), and store a dictionary that has changed.
        """
        kept = [load_snapshot(str(file)) for file in self._files]
        is_same = kept[0].database.dbid == self._database().dbid
        own = with_timezones(self._databases, kept) if is_same else kept
        found = self._with_other_owners(own)
        for file, before, after in zip(self._files, kept, found, strict=True):
            if after is not before:
                store_snapshot(after, file)
        return found

    def _with_other_owners(
        self, snapshots: Sequence[Snapshot], earlier: Mapping[str, Snapshot] | None = None
    ) -> list[Snapshot]:
        """Add the present users whose tables are not in the dictionaries, but may be needed later:
        the fallback's account, and all users if a pattern leaves the owner open.

        A table that is created later, like the fallback's ledger, is followed only if the
        dictionary contains its owner. An account that was dropped and created again has a new
        number, so both numbers are added. These numbers stay in the stored dictionary, even after
        the fallback has ended and the account was dropped.

        Args:
            earlier: the stored dictionaries that `snapshots` replace, by container. Only the
                earlier dictionaries can still contain an account that was dropped.
        """
        if not self._ledgers and not self._any_owner:
            return list(snapshots)
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
            now = oracle.read("reading the users", read_users)
            users = {one.user: one for one in kept if one.name in owners}
            users |= {one.user: one for one in now if self._may_own(one.name, owners)}
            for one in rows.sys_user:
                users.pop(one.user, None)
            if users:
                # Oracle may have reused the ROWID of a dropped account for another account.
                more = (replace(one, row_id="") for one in users.values())
                rows = rows.model_copy(update={"sys_user": [*rows.sys_user, *more]})
                snapshot = replace(snapshot, sys_rows=rows)
            found.append(snapshot)
        return found

    def _may_own(self, user: str, owners: Collection[str]) -> bool:
        """Return whether a user without a replicated table can create one.

        Args:
            owners: the owners of the fallback's ledger.
        """
        return user in owners or (self._any_owner and not is_oracle_schema(user))

    def _read_dictionaries(self, begin: RunBegin) -> list[Snapshot]:
        """Read the dictionary of each container, all as of one SCN, and store them."""
        read = self._dictionaries_at_start(begin)
        pairs = zip(self._containers.databases, self._files, strict=False)
        files = {name: file for name, file in pairs if self._ledgers and file.exists()}
        earlier = {name: load_snapshot(str(file)) for name, file in files.items()}
        same = {
            name: one for name, one in earlier.items() if one.database.dbid == read[0].database.dbid
        }
        found = self._with_other_owners(read, same)
        for file, snapshot in zip(self._files, found, strict=False):
            store_snapshot(snapshot, file)
        return found

    def _dictionaries_at_start(self, begin: RunBegin) -> Sequence[Snapshot]:
        """Return the dictionaries of all containers as of the SCN from which redo is needed: from
        Oracle, or, if it no longer has the undo, as a load or the begin of a copy has stored them.
        If neither has them and no load needs them, return later ones: those of the earlier runs, or
        those as of the current SCN.

        Each container has its own undo, so one container may be readable as of that SCN and another
        one not.

        Raises:
            OlrPgError: 3082, a load needs the dictionary as of that SCN, or the dictionary of the
                earlier runs lacks a table.
        """
        names = (*self._names, *self._ledgers)
        try:
            # Without any log, 0 stands for the current SCN.
            return self._containers.read_dictionaries(names, begin.wanted or None, structure=False)
        except OlrPgError as error:
            if not begin.wanted or error.code not in (SNAPSHOT_AGE, NOT_REACHED):
                raise
            if error.code == NOT_REACHED:
                # A checkpoint can be after the last SCN of an idle source.
                return self._containers.read_dictionaries(names, structure=False)
            reason = error.detail
        lacking = set[str]()
        for scn in begun_scns(self._files):
            stored = self._stored([begun_file(file, scn) for file in self._files])
            if stored and begin.can_use_stored(scn, max(one.scn for one in stored)):
                missing = self._lacking(stored)
                if not missing:
                    return stored
                lacking |= missing
        kept = self._stored(self._files)
        missing = self._lacking(kept)
        delivered = begin._replace(recorded=max(begin.recorded, self._delivered_scn()))
        if kept and delivered.can_keep([one.scn for one in kept]):
            if not missing:
                return kept
            if begin.saved:
                raise _dictionary_lost(begin.wanted, lacking or missing, reason)
        is_later = bool(kept) and not missing and begin.is_later([one.scn for one in kept])
        if begin.rows_scn and not is_later:
            raise _dictionary_lost(begin.wanted, lacking, reason)
        _log.warning(
            "using a later dictionary: changes before a table's last DDL cannot be decoded",
            start_scn=begin.wanted,
            reason=reason,
        )
        return kept if is_later else self._containers.read_dictionaries(names, structure=False)

    def _stored(self, files: Sequence[Path]) -> list[Snapshot]:
        """Return the dictionary of each container from files that a run, a load or the begin of a
        copy has stored; empty if they are missing, or of another database.
        """
        if not files or not all(file.exists() for file in files):
            return []
        stored = [load_snapshot(str(file)) for file in files]
        return stored if self._join(stored).database.dbid == self._database().dbid else []

    def _lacking(self, stored: Sequence[Snapshot]) -> set[str]:
        """Return the listed tables that stored dictionaries lack, except those that are newer, so
        that the decoder reads them from redo (`_known`).
        """
        if not stored or self._by_pattern:
            return set()
        missing = missing_tables(self._join(stored), self._names)
        return {".".join(pair) for pair in missing if pair not in self._earlier.added}

    def remove_unneeded(
        self, needed: Callable[[int], int | None], oldest_kept: Callable[[], int]
    ) -> None:
        """Remove the dictionaries that loads have stored, if no run can begin at their SCN: every
        target has confirmed the redo from there on, and the first logs of this redo are deleted.
        They are looked for once an hour.

        As long as the logs exist, a target that is restored from a backup may need the dictionary.

        Args:
            needed: see `LiveDatabase`.
            oldest_kept: returns the SCN from which on there are logs.
        """
        if time.monotonic() < self._clean_again:
            return
        self._clean_again = time.monotonic() + _CLEAN_SECONDS
        scns, confirmed = begun_scns(self._files), self._start_scn()
        below = needed(confirmed) if scns and confirmed else None
        if below is None or scns[0] >= below:
            return
        oldest = oldest_kept()
        for scn in scns:
            if scn < min(below, oldest):
                for file in self._files:
                    with suppress(OSError):  # try again later
                        begun_file(file, scn).unlink(missing_ok=True)
                _log.info("a stored dictionary is not needed any more", scn=scn)

    def chosen(self) -> list[tuple[Table, ...]]:
        """Return the tables that all targets have selected, for each container, with the names that
        they have in that container.
        """
        if self.snapshot is None:
            return [()] * len(self._containers.databases)
        tables = find_tables(self.snapshot, self._names)
        if not self.snapshot.members:
            return [tables]
        return [
            tuple(unqualified(one) for one in tables if one.con_id == member.database.con_id)
            for member in self.snapshot.members
        ]


class _EarlierTables:
    """The tables that existed as of the SCN from which a run reads redo, and that are gone now, or
    have another name.

    Attributes:
        new: the tables (``OWNER.NAME``) that did not exist as of this SCN. The redo since then
            contains their creation or their rename.
        loaded: see `NeededChanges`. If such a target got other earlier tables, it would need the
            redo before its loads.
        added: the names that `added_to` has added.
    """

    def __init__(
        self,
        containers: ContainerDatabases,
        recorded: Callable[[Snapshot], Sequence[DictionaryTransaction]],
    ) -> None:
        self._containers, self._recorded = containers, recorded
        self._scn = 0
        self._gone: list[tuple[str, str]] | None = []
        self.new = frozenset[str]()
        self.loaded: Mapping[str, Collection[str]] = {}
        self.added = set[tuple[str, str]]()

    def read(self, scn: int, queries: Iterable[str]) -> bool:
        """Read the names as of an SCN, unless they are known. If Oracle can no longer read them,
        `completed` adds names instead.

        Args:
            scn: 0 if there are no logs.
            queries: the TableList queries. A query that names its tables needs no names.

        Returns:
            Whether names have changed since the SCN.

        Raises:
            OlrPgError: 7001 to 7009, errors of the database.
        """
        if scn in (0, self._scn) or not any(_READS_CATALOGUE in one.upper() for one in queries):
            return False
        self._scn = scn
        try:
            earlier, present = self._containers.table_names(scn), self._containers.table_names()
            self._gone = sorted(earlier - present)
            self.new = frozenset(map(".".join, present - earlier))
        except OlrPgError as error:
            if error.code not in (SNAPSHOT_AGE, NOT_REACHED):
                raise
            # A checkpoint can be after the last SCN of an idle source: nothing has changed since.
            self._gone = None if error.code == SNAPSHOT_AGE else []
            self.new = frozenset()
        return bool(self._gone or self.new)

    def completed(
        self, names: Sequence[tuple[str, str]], sql: str, snapshot: Snapshot
    ) -> list[tuple[str, str]]:
        """Add the tables of the run's dictionary, if Oracle could not read the earlier names. The
        dictionary can be older than the SCN from which redo is read.
        """
        if self._gone is None:
            changes = [one for one in self._recorded(snapshot) if one.commit_scn < self._scn]
            ended = _ended(snapshot, changes)
            self._gone = self._containers.absent(
                [
                    (one.owner, one.name)
                    for one in snapshot.tables
                    if one.object_key not in ended and not is_oracle_schema(one.source_owner)
                ]
            )
        return self.added_to(names, sql, ())

    def added_to(
        self, names: Sequence[tuple[str, str]], sql: str, known: Sequence[tuple[str, str]]
    ) -> list[tuple[str, str]]:
        """Return the names that a query has found in Oracle, and those of earlier tables that it
        selects.

        Of the tables that exist, the query has selected those that it wants. It can leave others
        out for reasons that their names do not show, such as the privileges of the account.

        Args:
            known: tables that may be gone now.
        """
        there = set(names)
        others = [name for name in self._gone or () if name not in there]
        others += self._containers.absent([name for name in known if name not in there])
        if not others:
            return list(names)
        added = selected_names(list(dict.fromkeys(others)), sql, self._containers.names)
        loaded = self.loaded.get(sql)
        if loaded is not None:
            added = [name for name in added if ".".join(name) in loaded]
        self.added.update(added)
        return [*names, *added]

    def usable(self, snapshot: Snapshot, names: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return the names without those of earlier tables that the dictionary lacks, or that
        cannot be replicated, for example temporary tables: the query has not seen what they are.
        """
        added = [name for name in names if name in self.added]
        left_out = set(missing_tables(snapshot, added))
        there = [name for name in added if name not in left_out]
        found = find_tables(snapshot, there, with_refused=True)
        left_out |= {(one.owner, one.name) for one in found if one.obstacle is not None}
        return [name for name in names if name not in left_out]


def _ended(snapshot: Snapshot, changes: Sequence[DictionaryTransaction]) -> set[int]:
    """Return the `Table.object_key` of the tables of a dictionary whose names have ended with these
    changes: the table was dropped or renamed.
    """
    found = set[int]()
    for member in snapshot.containers:
        con_id = member.database.con_id if snapshot.members else 0
        names = {
            change.row_id: change.values.get("NAME")
            for one in changes
            if one.con_id == con_id or not con_id
            for change in one.changes
            if change.table == OBJ.name
            and (change.operation is SysRowOperation.DELETE or "NAME" in change.values)
        }
        rows = [] if member.sys_rows is None else member.sys_rows.sys_obj
        found |= {
            con_id << 32 | row.obj
            for row in rows
            if row.row_id in names and names[row.row_id] != row.name.encode()
        }
    return found


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
    missing = dict.fromkeys(missing_tables(snapshot, names))
    found = [pair for pair in names if pair not in missing]
    if not missing or not found or CATALOGUE not in sql:
        return names
    newer = [".".join(pair) for pair in missing]
    _log.info(
        "some tables are newer than the dictionary; the decoder reads them from redo",
        tables=newer,
        dictionary_scn=snapshot.scn,
    )
    return found
