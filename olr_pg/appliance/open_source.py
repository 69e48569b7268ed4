"""Opens the configured source database, live or offline.

The status page and the commands show the identities of the source, the appliance and the target.

After initial loads, a first run needs the dictionary as of the SCN at which it starts. An earlier
dictionary, for example as of the oldest log, would lack the DDL up to that SCN, because the redo of
this DDL is not read. With such a dictionary, rows would be decoded with old columns and partitions.
So this module determines the SCN at which a run starts to read redo, and which redo must be kept.
"""

from __future__ import annotations

import re
import socket
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import psycopg
import structlog

from olr_pg.appliance.container_names import offline_dictionary, source_dictionary
from olr_pg.applier.session.handover import read_handover, read_needed
from olr_pg.applier.target.catalogue import relation_exists
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.outage import target_place
from olr_pg.capture.lineage import FILE_NAME, Lineage
from olr_pg.capture.online_logs import FOLDER, MemberWay, OnlineLogs
from olr_pg.capture.source_database import NeededChanges, OfflineDatabase
from olr_pg.config.source_section import OfflineSource, OracleSource
from olr_pg.config.table_patterns import LEDGER
from olr_pg.decoding.filters import FilteredDatabase, filters_of
from olr_pg.dictionary.change_history import FILE_NAME as HISTORY_FILE
from olr_pg.dictionary.change_history import DictionaryHistory
from olr_pg.errors import Code, OlrPgError
from olr_pg.monitor.status_values import Identity
from olr_pg.server.checkpoint import source_identity

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from olr_pg.capture.source_database import SourceDatabase
    from olr_pg.config.model import Config
    from olr_pg.dictionary.committed_changes import DictionaryTransaction
    from olr_pg.dictionary.model import Database, Snapshot

_log = structlog.get_logger(__name__)

_NOT_LOADED: Final = frozenset((Code.TABLE_LOADED_IN_PART, Code.COPY_NOT_USABLE))
"""Errors of a table whose load, or copy by another tool, is not complete."""


class _Target(NamedTuple):
    """What is known of a target.

    Attributes:
        saved: returns the SCN of its checkpoint; None or 0 without a checkpoint.
        connect_string: empty if no bundled applier runs for the target.
        query: its TableList query.
        first_scn: `apply.start-scn`, which is used without a checkpoint; 0 if it is not set.
    """

    saved: Callable[[], int | None]
    connect_string: str
    subscription: str
    query: str
    first_scn: int

    @property
    def position(self) -> int:
        """The SCN of its checkpoint, or `apply.start-scn` without a checkpoint; 0 without both."""
        return self.saved() or self.first_scn


_NO_LISTS: Final[Mapping[str, Collection[str]]] = {}


class TargetStarts:
    """The positions of a configuration's targets, which are queried for their loads."""

    def __init__(self) -> None:
        self._targets = dict[str, _Target]()

    def know(
        self,
        name: str,
        saved: Callable[[], int | None],
        connect_string: str = "",
        subscription: str = "",
        query: str = "",
        first_scn: int = 0,
    ) -> None:
        """Add a target, or replace what is known of it; see `_Target`."""
        self._targets[name] = _Target(saved, connect_string, subscription, query, first_scn)

    def confirmed_scn(self) -> int:
        """Return the SCN up to which all targets have confirmed all changes; 0 if it is unknown for
        a target.
        """
        return min((one.position for one in self._targets.values()), default=0)

    def recorded_scn(self) -> int:
        """Return an SCN up to which the runs for some of the targets have recorded all DDL. A new
        target without a position does not count. If no target has a checkpoint, return
        `confirmed_scn`.
        """
        targets = self._targets.values()
        if any(one.saved() for one in targets):
            return min(one.position for one in targets if one.position)
        return self.confirmed_scn()

    def needed(self, scn: int) -> int | None:
        """Return the SCN below which no target needs redo, if everything below `scn` is confirmed.

        A load that replication has not passed can need older redo, also while it is still in
        progress: it can take hours, and meanwhile replication of the other tables continues. A
        target that was restored from a backup can also need older redo.

        Returns:
            The SCN; None if a target cannot be queried.
        """
        for target in self._targets.values():
            if not target.connect_string:
                continue
            try:
                with connect(target.connect_string, replica=None) as connection:
                    needed = read_needed(connection, target.subscription)
            except (OlrPgError, psycopg.Error) as error:
                _log.info(
                    "the vault removes no logs until this target can be queried", reason=str(error)
                )
                return None
            positions = scn, needed.loads, needed.recorded
            scn = min(one for one in positions if one is not None)
        return scn

    def changes(
        self, tables: Collection[str], lists: Mapping[str, Collection[str]] = _NO_LISTS
    ) -> NeededChanges:
        """Return the changes that at least one of the targets needs. The loads of a target that
        cannot be queried do not count.

        Args:
            tables: ``OWNER.NAME`` of every replicated table.
            lists: the tables of each TableList query. A target whose query is missing here can have
                all of `tables`.

        Raises:
            OlrPgError: 5107, a table is only partly loaded; 5119, another tool copies its rows. If
                there are several targets, only the target with such a table reports it.
        """
        found = [
            self._of_target(one, lists.get(one.query, tables)) for one in self._targets.values()
        ]
        needed = NeededChanges.of_all(found)
        # A target that continues needs every table that its query selects.
        continued = {one.query for one in self._targets.values() if one.position}
        loaded = {query: one for query, one in needed.loaded.items() if query not in continued}
        return needed._replace(loaded=loaded)

    def _of_target(self, target: _Target, tables: Collection[str]) -> NeededChanges:
        saved, recorded = target.position, target.saved() or 0
        without_loads = NeededChanges(saved, saved, recorded_scn=recorded)
        if not target.connect_string:
            return without_loads
        try:
            with connect(target.connect_string, replica=None) as connection:
                if not relation_exists(connection, "olr_pg.load"):
                    return without_loads
                found = read_handover(connection, target.subscription, tables)
        except (OlrPgError, psycopg.Error) as error:
            is_incomplete = isinstance(error, OlrPgError) and error.code in _NOT_LOADED
            if is_incomplete and len(self._targets) == 1:
                raise  # fail before an older dictionary is stored
            return without_loads  # the applier reports an error of the target
        start = found.start(saved or None, 0)
        loaded = {target.query: found.unlisted} if start and not saved else {}
        return NeededChanges(start, saved, found.lowest_scn, recorded, loaded)


DICTIONARY: Final = "dictionary.json"
"""File in `context.data` with the dictionary that a run of a live source began with."""


_EXTENSION_SECONDS: Final = 600.0
"""More than an attempt to reach Oracle takes, also if no host answers."""

_PAUSE_SECONDS: Final = 5.0
"""The pause between two attempts to reach Oracle at the start."""


def await_oracle(source: OracleSource, starting: Callable[[float], None]) -> None:
    """Wait until Oracle can be reached: after an outage of all machines, Oracle can be ready later
    than this one. Without this, a service manager would give up after some starts.

    Args:
        starting: is called before each pause, with the seconds until the next call.

    Raises:
        OlrPgError: 7xxx, an error of Oracle that does not pass by waiting, for example a rejected
            password.
    """
    from olr_pg.oracle.driver.bounded_calls import PASSING
    from olr_pg.oracle.redo_source import read_once

    waits = False
    while True:
        try:
            read_once(source, "connecting to Oracle", lambda _primary, _redo: None)
        except OlrPgError as error:
            if error.code not in PASSING:
                raise
            if not waits:
                waits = True
                _log.warning(
                    "waiting for Oracle", code=error.label, reason=error.detail, action=error.action
                )
            starting(_EXTENSION_SECONDS)
            time.sleep(_PAUSE_SECONDS)
        else:
            break
    if waits:
        _log.info("Oracle can be reached again")


def _recorded(path: Path, snapshot: Snapshot) -> Sequence[DictionaryTransaction]:
    """Return the changes of a dictionary that earlier runs have recorded."""
    if not path.exists():
        return ()
    return DictionaryHistory(path, source_identity(snapshot.database), snapshot.scn).transactions


@contextmanager
def open_source(
    config: Config,
    data: Path,
    saved: Callable[[], int | None],
    starts: TargetStarts | None = None,
) -> Iterator[SourceDatabase]:
    """Open the source of `config`. Tables and columns that a filter excludes are left out.

    Args:
        data: the directory `context.data`.
        saved: returns the checkpoint's SCN, below which no redo is needed; None without a
            checkpoint. The source calls this function when it needs the SCN.
        starts: the positions of the targets. The source queries them when it needs the SCN at which
            the run starts. None for one target without loads.

    Raises:
        OlrPgError: 3xxx errors of the offline dictionary, 7xxx errors of the live database, 1092
            files in `data` cannot be written.
    """
    filters = filters_of(config.filter, config.fallback)
    source = config.source
    if starts is None:
        starts = TargetStarts()
        starts.know("", saved)
    if isinstance(source, OfflineSource):
        online = None
        if source.redo == "online":
            online = OnlineLogs(data / FOLDER, source.verify_ms / 1000)
        snapshot = offline_dictionary(config, source, keep=True)
        offline = OfflineDatabase(
            snapshot,
            [str(place) for place in source.logs],
            poll_seconds=source.poll_ms / 1000,
            lineage=Lineage(data / FILE_NAME),
            online=online,
            online_specs=[str(place) for place in source.online_logs or ()],
            recorded_scn=starts.recorded_scn,
        )
        try:
            yield FilteredDatabase(offline, filters)
        finally:
            if online is not None:
                online.close()
        return
    # Import here, so that the drivers are loaded only if they are needed.
    from olr_pg.oracle.live_source import LiveDatabase
    from olr_pg.oracle.transport.log_transport import make_transport
    from olr_pg.oracle.vault import LogVault

    live = LiveDatabase(
        source,
        Lineage(data / FILE_NAME),
        start_scn=starts.confirmed_scn,
        recorded_scn=starts.recorded_scn,
        changes=starts.changes,
        dictionary=data / DICTIONARY,
        vault=None
        if source.vault is None
        else LogVault(
            source.vault,
            saved,
            None if source.transport is None else make_transport(source.transport, source),
            starts.needed,
        ),
        online=_online_logs(source, data),
        join=partial(source_dictionary, config, keep=True),
        ledger=None if config.fallback is None else (config.fallback.owner, LEDGER),
        needed=starts.needed,
        queries=[part.apply.table_query for part in config.targets if part.apply],
        recorded=partial(_recorded, data / HISTORY_FILE),
    )
    try:
        yield FilteredDatabase(live, filters)
    finally:
        live.close()


def _online_logs(source: OracleSource, data: Path) -> OnlineLogs | None:
    """Return the reader of the online logs: as files of a mounted directory, or over
    `source.transport`.
    """
    if source.redo != "online":
        return None
    folder, verify_seconds = data / FOLDER, source.verify_ms / 1000
    if source.transport is None:
        return OnlineLogs(folder, verify_seconds)
    from olr_pg.oracle.transport.log_transport import open_ranges

    ranges = open_ranges(source.transport, source)
    way = MemberWay(ranges.open, ranges.look_seconds, ranges.close)
    return OnlineLogs(folder, verify_seconds, way=way)


_PARTS: Final = {
    part: re.compile(rf"\(\s*{part}\s*=\s*([^()\s]+)\s*\)", re.IGNORECASE)
    for part in ("HOST", "PORT", "SERVICE_NAME", "SID")
}


def identity_of(config: Config, database: Database, connect_string: str) -> Identity:
    """Return the identity of one target of an appliance.

    Args:
        config: the configuration with this target only.
        connect_string: the connection string of the target; empty if the clients are external.
    """
    source, apply = config.source, config.apply
    return Identity(
        instance=config.status.name or socket.gethostname(),
        config=config.file,
        source=database.name,
        container=database.con_name or "",
        source_place=server_place((source.standby or source).server)
        if isinstance(source, OracleSource)
        else "copied logs",
        target=target_place(connect_string) if connect_string else "",
        subscription=apply.subscription if apply is not None and connect_string else "",
    )


def server_place(server: str) -> str:
    """Return an Oracle server's host, port and service, without other parts of its address.

    Args:
        server: host:port/service, a connect descriptor, or a name of tnsnames.ora.
    """
    if "(" not in server:
        return server.partition("?")[0].rpartition("@")[2]
    found = {part: form.search(server) for part, form in _PARTS.items()}
    host, port, service, sid = (match[1] if match else "" for match in found.values())
    return host + (f":{port}" if port else "") + (f"/{service or sid}" if service or sid else "")
