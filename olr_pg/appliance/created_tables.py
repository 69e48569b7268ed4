"""Replicates tables that are created while their redo is read.

A table that a statement creates without rows needs no load: it is empty at the commit of the
statement, and all later changes are in the redo. If a pattern of `apply.tables` matches its name,
the table is recorded durably, before any transaction that commits after the statement is delivered.
Then the appliers of the targets restart with the table in their list. The target's ledger treats it
as a table that was loaded, without rows, as of that commit. The hand-over that follows each load
then delivers every change of this table once; the other tables skip changes that they already have.

The new name of a renamed table is recorded in the same way. The recorded target is the target table
of the old name; the applier renames this target table when it reaches the renaming in the order of
changes (`applier.stopped.renaming`).

The table is not in the dictionary snapshot. The definition of the new table is rebuilt from the
stored dictionary changes (`dictionary.change_history`).

This module also loads new tables that were created with rows, if `apply.ddl.new-table` is ``load``.

A table that was created with rows (CREATE TABLE … AS SELECT) cannot be replicated from its creation
on, because the redo may not contain its rows. Such a table is loaded as ``olr-pg tables add`` does:
a separate process reads the rows of the live source as of an SCN, then the applier restarts with
the table in its list. During the load the applier continues with the other tables, and the load
does not use the memory of the appliance.

Tables are loaded one after the other, into one target after the other. If a load fails, a warning
says so, and the table is loaded when the appliance starts again; an interrupted load continues.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import orjson
import structlog

from olr_pg.applier.session.handover import Created
from olr_pg.config.source_section import OracleSource
from olr_pg.decoding.new_tables import warn_of_new_table
from olr_pg.dictionary.containers import ContainerNames
from olr_pg.dictionary.table_list import would_name
from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.files.durable import damaged, replace_file
from olr_pg.files.system_errors import advice
from olr_pg.monitor.control import OwnCommand

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
    from pathlib import Path

    from olr_pg.appliance.target import RunningTarget
    from olr_pg.applier.session.applier_session import Applier
    from olr_pg.capture.source_database import SourceDatabase
    from olr_pg.config.model import Config
    from olr_pg.decoding.dictionary_follower import DictionaryFollower
    from olr_pg.decoding.filters import Filters
    from olr_pg.decoding.new_tables import Begin
    from olr_pg.dictionary.model import Snapshot, Table

FILE_NAME: Final = "created-tables.json"

_FIELDS: Final = "scn", "start_scn", "obj", "is_renamed"
"""The fields of `Created` that the file contains."""

_IF_DAMAGED: Final = (
    "restore the file from a backup. Or delete the file. After the next start, run `olr-pg tables"
    " add` for each table that was created since the first start and is missing in `olr-pg tables"
    " list`"
)

_log = structlog.get_logger(__name__)


class CreatedTables:
    """The records of the created and renamed tables; thread-safe.

    Args:
        path: path of the file; its directory must exist.

    Attributes:
        targets: the targets whose appliers restart for a new table; empty until the targets are
            created.
        check_logs: raises an error if the oldest available log begins after an SCN.
        load: called with the name of a new table that has rows; returns whether it will be loaded.

    Raises:
        OlrPgError: 3075, the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._known = _read(path)
        self.targets: Sequence[RunningTarget] = ()
        self.check_logs: Callable[[int], None] = _know_nothing
        self.load: Callable[[str], bool] = _load_nothing

    @property
    def known(self) -> Mapping[str, Created]:
        """The position at which the history of each table begins, by ``OWNER.NAME``."""
        with self._lock:
            return self._known.copy()

    def forget(self, names: Collection[str]) -> None:
        """Forget records, so that the tables are recorded again when the redo of their creation is
        read. The file keeps the records until then.
        """
        with self._lock:
            self._known = {name: one for name, one in self._known.items() if name not in names}

    def take(self, table: Table, begin: Begin) -> bool:
        """Record a table durably and restart the appliers; see `decoding.new_tables.Take`.

        A table whose DDL an earlier run has recorded is taken only if all redo since its creation
        is available.

        Raises:
            OlrPgError: 3075, the table cannot be recorded.
        """
        name = table.full_name
        if begin.has_rows:
            return self.load(name)
        # If the redo of the statement has just been read, the target for which it was read has not
        # got any transaction that commits later. A target without a session starts at its
        # checkpoint, or at this SCN.
        begun = (one.delivery.begun_scn for one in self.targets)
        start_scn = min((scn for scn in begun if scn), default=0)
        if begin.is_past or start_scn > begin.scn:
            # The targets are already past the table's creation, so the redo since then must be read
            # again.
            start_scn = 0
        if not start_scn and name not in self.known:
            # Do not hold the lock: a target that reads its list of tables holds the lock of the
            # logs, and waits for this lock.
            try:
                self.check_logs(begin.scn)
            except OlrPgError as error:
                _log.warning(
                    "the redo since the creation of a table is incomplete",
                    table=name,
                    scn=begin.scn,
                    code=error.label,
                    reason=error.detail,
                )
                return False
        with self._lock:
            before = self._known.get(name)
            if before is not None:
                return before.obj == table.object_key
            # A renaming is the first event under the new name, and has the SCN of its commit: begin
            # one SCN earlier to include it.
            scn = begin.scn - begin.is_renamed
            noted = Created(scn, start_scn, table.object_key, begin.is_renamed, is_just_read=True)
            known = self._known | {name: noted}
            document = {key: dict(zip(_FIELDS, one, strict=False)) for key, one in known.items()}
            try:
                replace_file(self._path, orjson.dumps(document))
            except OSError as error:
                raise _unusable(self._path, error) from error
            self._known = known
        what = "renamed" if begin.is_renamed else "new"
        _log.info(f"a {what} table is replicated from its creation on", table=name, scn=begin.scn)
        for target in self.targets:
            target.renew(target.config)
        return True


def _know_nothing(_: int) -> None:
    """Assume that all logs are available."""


def _load_nothing(_: str) -> bool:
    return False


def _read(path: Path) -> dict[str, Created]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unusable(path, error) from error
    try:
        return {name: Created(**one) for name, one in orjson.loads(data).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise damaged(path, data, _IF_DAMAGED) from error


def _unusable(path: Path, error: Exception) -> OlrPgError:
    code = Code.DICTIONARY_HISTORY_UNUSABLE
    return OlrPgError(code, plain_reason(error), action=advice(error), file=str(path))


class GrownDatabase:
    """Adds the recorded tables to the dictionary of a source database.

    Args:
        source: the underlying source.
        filters: the filters for all targets.
        created: the recorded tables.
        follow: returns a follower that has applied all dictionary changes that were read so far.
    """

    def __init__(
        self,
        source: SourceDatabase,
        filters: Filters,
        created: CreatedTables,
        follow: Callable[[Snapshot], DictionaryFollower],
    ) -> None:
        self._source, self._filters = source, filters
        self._created, self._follow = created, follow
        self._grown: _Grown | None = None

    def resolve(
        self, sql: str, is_abandoned: Callable[[], bool] | None = None
    ) -> tuple[Snapshot, tuple[Table, ...]]:
        """See `SourceDatabase.resolve`."""
        snapshot, tables = self._source.resolve(sql, is_abandoned)
        grown = self._grown_of(snapshot)
        chosen = (one for one in grown.tables if grown.is_named(sql, one))
        new = (self._filters.shape(table) for table in chosen if self._filters.wants(table))
        return grown.snapshot, (*tables, *new)

    @property
    def created(self) -> Mapping[str, Created]:
        """See `CreatedTables.known`."""
        return self._created.known

    def as_begun(self, tables: Sequence[Table]) -> tuple[Table, ...]:
        """Return tables with the definitions with which a target must create them.

        The history of a recorded table may begin with a later table of its name, because the first
        table was dropped before it could be recorded. For decoding, `resolve` returns the first
        table. The target must be created with the columns of the later table: the history begins
        with the statement that created the later table, so the applier skips this statement.

        Args:
            tables: tables that `resolve` has returned.
        """
        begun = {} if self._grown is None else self._grown.begun
        return tuple(begun.get(table.full_name, table) for table in tables)

    def _grown_of(self, snapshot: Snapshot) -> _Grown:
        """Return the dictionary with the recorded tables. Return the same object as long as nothing
        has changed, because a decoding run compares dictionaries by identity.

        If somebody has restored older files, but not an older file of the recorded tables, the
        recorded changes of the dictionary can lack the creation of a table. Then the table is
        recorded again when its creation is read from redo.
        """
        noted = self._created.known
        known = self._grown
        if known is None or known.before is not snapshot or known.noted != noted:
            known = _Grown(snapshot, noted, self._follow)
            if known.ahead:
                _log.info(
                    "the recorded changes of the dictionary lack the creation of tables: reading it"
                    " from redo again",
                    tables=sorted(known.ahead),
                )
                self._created.forget(known.ahead)
                known = _Grown(snapshot, self._created.known, self._follow)
            self._grown = known
        return known

    def __getattr__(self, name: str) -> Any:
        """Delegate all other attributes to the source."""
        return getattr(self._source, name)


class _Grown:
    """A dictionary, and the recorded tables that are added to it."""

    def __init__(
        self,
        before: Snapshot,
        noted: Mapping[str, Created],
        follow: Callable[[Snapshot], DictionaryFollower],
    ) -> None:
        self.before, self.noted, self._follow = before, noted, follow

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """The recorded tables, each with the first definition that a table of its name had."""
        return tuple(first for first, _ in self._begun)

    @cached_property
    def begun(self) -> dict[str, Table]:
        """The recorded tables, each with the definition that it had where its history begins, by
        ``OWNER.NAME``.
        """
        return {first.full_name: begun for first, begun in self._begun}

    @cached_property
    def _wanted(self) -> dict[str, Created]:
        """The records of the tables that the dictionary lacks."""
        there = {table.full_name for table in self.before.tables}
        return {name: one for name, one in self.noted.items() if name not in there}

    @cached_property
    def _follower(self) -> DictionaryFollower:
        return self._follow(self.before)

    @property
    def ahead(self) -> frozenset[str]:
        """The recorded tables whose creation is not among the recorded changes of the
        dictionary.
        """
        return frozenset(
            name
            for name, one in self._wanted.items()
            if one.scn + one.is_renamed > self._follower.known_scn
        )

    @cached_property
    def _begun(self) -> list[tuple[Table, Table]]:
        if not self._wanted:
            return []
        begins = {one.obj: one for one in self._wanted.values()}
        return [
            (first, self._follower.as_of(begin.obj, begin.scn) or first)
            for first in self._follower.created()
            if (begin := begins.get(first.object_key)) is not None
        ]

    @cached_property
    def snapshot(self) -> Snapshot:
        """The dictionary with the recorded tables. If no table must be added, the result is the
        source's own object.
        """
        if not self.tables:
            return self.before
        members = tuple(
            replace(one, tables=(*one.tables, *(t for t in self.tables if t.con_id == number)))
            for one in self.before.members
            for number in [one.database.con_id]
        )
        return replace(self.before, tables=(*self.before.tables, *self.tables), members=members)

    def is_named(self, sql: str, table: Table) -> bool:
        """Return whether a TableList query names a table, with or without its container."""
        of_it = next(o for o in self.before.containers if table.con_id in (0, o.database.con_id))
        owners = ContainerNames.of(of_it).spellings(table.source_owner)
        return any(would_name(sql, owner, table.name) for owner in {table.owner, *owners})


class CreatedOfTarget:
    """The recorded tables as the appliers of one target get them, one applier after the other.

    Args:
        grown: the source; None if new tables are not replicated.
    """

    def __init__(self, grown: GrownDatabase | None) -> None:
        self._grown = grown
        self._begun = set[str]()
        self._last: tuple[Applier, Set[str]] | None = None

    def created(self) -> dict[str, Created]:
        """Return the tables for the next applier. They are no longer just read if an earlier
        applier has begun with them. An applier that has failed before it prepared the target, or
        was replaced before, has begun with none.
        """
        if self._grown is None:
            return {}
        if self._last is not None and self._last[0].is_begun:
            self._begun |= self._last[1]
        return {
            name: one._replace(is_just_read=one.is_just_read and name not in self._begun)
            for name, one in self._grown.created.items()
        }

    def used_by(self, applier: Applier, names: Set[str]) -> None:
        """Record the next applier, and the names of all its tables."""
        self._last = applier, names & self.created().keys()


_ENDING_SECONDS: Final = 10.0
_REASON_LINES_MAX: Final = 20
_REASON_LENGTH_MAX: Final = 500


@contextmanager
def loading_new_tables(
    config: Config,
    withheld: Callable[[], Mapping[str, str]],
    command: Sequence[str] = (sys.executable, "-P", "-m", "olr_pg"),
) -> Iterator[Callable[[str], bool]]:
    """Yield a function that is called with the name of a table, and load these tables while the
    context is active.

    The function returns whether the table will be loaded into every target that has a bundled
    applier: the source is live, and these targets have the policy ``load``. The function returns at
    once.

    Args:
        withheld: returns the values that the configuration reads from the environment.
        command: the program to run; the words of the command follow it.
    """
    policies = {part.name: part.apply.ddl.new_table for part in config.targets if part.apply}
    names = [name for name, policy in policies.items() if policy == "load"]
    if not names or not isinstance(config.source, OracleSource):
        yield lambda _: False
        return
    loads = _Loads([*command, "tables", "add", "--config", config.file], names, withheld())

    def load(table: str) -> bool:
        loads.add(table)
        return len(names) == len(policies)

    try:
        yield load
    finally:
        loads.stop()


class _Loads:
    """A queue of tables, and the thread that runs the command for each of them.

    Args:
        command: the command without the target and the table.
        targets: the names of the targets; an empty name if there is only one.
        environ: environment variables for the process, in addition to those of this process.
    """

    def __init__(
        self, command: Sequence[str], targets: Sequence[str], environ: Mapping[str, str]
    ) -> None:
        self._command, self._targets = list(command), targets
        self._process = OwnCommand(environ, _ENDING_SECONDS)
        self._at_work = set[str]()
        self._waiting = deque[str]()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="olr-load", daemon=True)
        self._thread.start()

    def add(self, table: str) -> None:
        """Load a table, unless it waits or is being loaded."""
        with self._changed:
            if table not in self._at_work:
                self._at_work.add(table)
                self._waiting.append(table)
                self._changed.notify()
                _log.info("loading a new table that was created with rows", table=table)

    def _run(self) -> None:
        while (table := self._next()) is not None:
            for target in self._targets:
                self._load(table, target)
            with self._changed:
                self._at_work.discard(table)

    def _next(self) -> str | None:
        """Wait for the next table; None after the end."""
        with self._changed:
            ended = self._process.ended
            self._changed.wait_for(lambda: self._waiting or ended.is_set())
            return None if ended.is_set() else self._waiting.popleft()

    def _load(self, table: str, target: str) -> None:
        named = {"table": table, **({"target": target} if target else {})}
        of_target = ["--target", target] if target else []
        last = deque[bytes](maxlen=_REASON_LINES_MAX)
        command = [*self._command, *of_target, "--", table]
        try:
            code = self._process.run(command, last.append, with_errors=True)
            output = " ".join(b"".join(last).decode("utf-8", "replace").split())
        except OSError as failure:
            code, output = 1, plain_reason(failure)
        if self._process.ended.is_set():
            return
        if code == 0:
            _log.info("a new table was loaded, and is replicated", **named)
            return
        warn_of_new_table(
            f"the rows of the table were not loaded: {output[-_REASON_LENGTH_MAX:]}", **named
        )

    def stop(self) -> None:
        """End the command that runs. The load continues when the appliance starts again."""
        self._process.stop()
        with self._changed:
            self._changed.notify()
        self._thread.join()
