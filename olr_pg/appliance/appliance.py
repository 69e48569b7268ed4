"""The appliance: ``olr-pg run``. Creates the parts, starts them, and ends them in the right
order.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import structlog

from olr_pg.appliance.compiling_ahead import kernels_ahead
from olr_pg.appliance.created_tables import FILE_NAME as CREATED_FILE
from olr_pg.appliance.created_tables import (
    CreatedOfTarget,
    CreatedTables,
    GrownDatabase,
    loading_new_tables,
)
from olr_pg.appliance.data_lock import hold_data_lock
from olr_pg.appliance.encryption import encrypted_files
from olr_pg.appliance.main_loop import Reloader, Serving, Watchdog, hangups
from olr_pg.appliance.mapping_checks import report_idle_mappings
from olr_pg.appliance.open_source import TargetStarts, await_oracle, identity_of, open_source
from olr_pg.appliance.opened_target import open_target
from olr_pg.appliance.status_observer import Parts, make_control, monitored
from olr_pg.appliance.target import (
    RunningTarget,
    confirming_applier,
    data_directory,
    is_passable,
    target_directory,
)
from olr_pg.applier.session.applier_session import Applier
from olr_pg.applier.session.server_side import ServerSide, SourceLogs
from olr_pg.applier.settings import (
    START_SECONDS,
    ApplierSettings,
    ConflictPolicy,
    Consistency,
    DdlPolicy,
    IncompletePolicy,
    TriggerHandling,
    UnloggedPolicy,
    not_translated,
)
from olr_pg.applier.target import applied_file as applied
from olr_pg.applier.target.way_back_lives import known_ledgers
from olr_pg.capture.redo_threads import FILE_NAME as THREADS_FILE
from olr_pg.config.model import MIB, SHUTDOWN_SECONDS, NamedTarget
from olr_pg.config.port_sections import server_context
from olr_pg.config.source_section import OracleSource
from olr_pg.datatypes.convert import DatabaseFacts
from olr_pg.decoding.dictionary_follower import DictionaryFollower
from olr_pg.decoding.filters import NO_FILTERS, Filters, TargetView, filters_of
from olr_pg.decoding.heap import give_back_large_memory
from olr_pg.decoding.spill import SpillFiles
from olr_pg.dictionary.change_history import FILE_NAME as HISTORY_FILE
from olr_pg.dictionary.change_history import DictionaryHistory
from olr_pg.dictionary.client_queries import check_relations
from olr_pg.dictionary.evolution import DdlKind
from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.files.durable import tells_of_full_disk
from olr_pg.files.owned import close_to_others, close_tree_to_others, private_umask
from olr_pg.observability.service_manager import ServiceManager
from olr_pg.observability.wording import counted
from olr_pg.replicator.decoder import Decoder, Delivery
from olr_pg.replicator.recovery.bounded_recovery import DIRECTORY as RECOVERY_DIRECTORY
from olr_pg.replicator.recovery.bounded_recovery import BoundedRecovery
from olr_pg.replicator.spark_decoding import PRELOAD
from olr_pg.server.backlog import Backlog
from olr_pg.server.checkpoint import FILE_NAME, Checkpoint, source_identity
from olr_pg.server.listener import Listener
from olr_pg.server.port_connection import PortSettings
from olr_pg.server.queue import QueueBounds
from olr_pg.spark.session import spark_settings, stop_session
from olr_pg.wire.frames import ByteOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from olr_pg.applier.settings import TranslateStep
    from olr_pg.capture.source_database import SourceDatabase
    from olr_pg.config.model import Apply, Config
    from olr_pg.decoding.new_tables import Take
    from olr_pg.dictionary.model import Database, Snapshot
    from olr_pg.ordering.run_end import Until


_WAITING_PART = 16
"""Open transactions can use 1/16 of `context.memory.max-mb`. If they need more, the largest are
spilled to disk. The share is small, because a transaction in memory needs several times its size
when it is finished.
"""
_READY_PART = 5
"""Ready transactions can use 1/5 of `context.memory.max-mb`. The rest is left for results from
Spark, and for changes that the applier has converted.
"""
_APPLIED_PART = 7
"""The applier can hold unconfirmed changes in 1/7 of the memory. This share is more than half of
the queue's share, so that the next changes are ready when the applier confirms. The bytes of the
messages count for the queue.
"""
_SPOOLED_PART = 32
"""Until its Commit arrives, the applier can keep one source transaction in 1/32 of the memory. A
larger transaction is written to files (spooled).
"""

_log = structlog.get_logger(__name__)


def run_appliance(
    config: Config,
    *,
    once: bool,
    apply: bool,
    reload: Callable[[], Config] | None = None,
    until: Until | None = None,
    withheld: Callable[[], Mapping[str, str]] = dict,
    interpret: bool = False,
    translate: TranslateStep = not_translated,
) -> int:
    """Serve the ports of the targets and, with `apply`, run the bundled applier.

    If a target has no `apply` section, only its port is served. So configuration files of OLR,
    which have no `apply` section, work unchanged.

    SystemExit, which SIGTERM raises, makes the applier apply and confirm the transactions that it
    has received, for at most `apply.drain-seconds`. A second signal ends the draining at once.

    Args:
        once: end when all changes that are available now are confirmed.
        apply: whether to run the bundled applier.
        reload: reads the configuration again after SIGHUP. SIGHUP is handled only if the main
            thread calls this function.
        until: end when all transactions that commit up to this point are confirmed; None to run
            without end.
        withheld: returns the values that the configuration reads from the environment.
        interpret: interpret kernels that are not compiled yet, instead of waiting for them; only
            for simulated data.
        translate: translates DDL of the source into the target's SQL.

    Returns:
        The exit code.

    Raises:
        OlrPgError: an error of a part of the appliance; it is raised after everything has been
            stopped.
        KeyboardInterrupt: raised again, after everything has been stopped.
    """
    parts = config.targets
    if apply and not any(part.apply for part in parts):
        _log.info("no `apply` section is configured: changes are served to external clients only")
        apply = False
    give_back_large_memory()
    service_manager = ServiceManager.of_environment()
    data = data_directory(config)
    with ExitStack() as stack:
        stack.enter_context(private_umask())
        stack.enter_context(full_disk_told(data))
        stack.enter_context(hold_data_lock(data))
        _close_files(config, data)
        stack.enter_context(encrypted_files(config, data))
        hung_up = threading.Event() if reload is None else stack.enter_context(hangups())
        has_run = any((target_directory(part) / FILE_NAME).exists() for part in parts)
        if isinstance(config.source, OracleSource) and has_run and not (once or until):
            # At the first start, an unreachable source is more probably a wrong configuration.
            await_oracle(config.source, service_manager.starting)
        checkpoints: list[Checkpoint] = []
        starts = TargetStarts()
        source = stack.enter_context(
            open_source(config, data, lambda: _lowest(checkpoints), starts)
        )
        filters = filters_of(config.filter, config.fallback)
        told = apply and all(part.apply for part in parts)
        alone = len(parts) == 1
        following = _Following(data, ends_delivery=alone and not told, filters=filters)
        identity = source_identity(source.database)
        for part in parts:
            file = target_directory(part) / FILE_NAME
            checkpoints.append(Checkpoint(file, identity, following.scn))
        # Record the highest checkpoint before a target with a lower one starts and follows a
        # RESETLOGS. Otherwise a restart at the highest checkpoint would skip transactions that the
        # new incarnation began before this checkpoint.
        source.delivering(max((one.saved or 0 for one in checkpoints), default=0))
        orders = {ByteOrder(part.port.byte_order) for part in parts if apply and part.apply}
        stack.enter_context(kernels_ahead(orders, interpret=interpret))
        stack.callback(stop_session)
        memory = config.context.memory
        storage = SpillFiles(
            data / "spill",
            # Divide the memory by the number of targets, because each target can have a decoding
            # run of its own.
            memory.max_mb * MIB // _WAITING_PART // len(parts),
            disk_max=_spilled_max(config),
        )
        created = grown = None
        if told and all(part.apply.ddl.new_table != "ignore" for part in parts if part.apply):
            created = CreatedTables(data / CREATED_FILE)
            if not (once or until):
                created.load = stack.enter_context(loading_new_tables(config, withheld))
            following.take = created.take
            source = grown = GrownDatabase(source, filters, created, following.known)
        decoder = Decoder(
            source,
            spark_settings(config, PRELOAD),
            once=once,
            threads_file=data / THREADS_FILE,
            storage=storage,
            follow=following.begin,
            incidents=data / "incidents",
            filters=filters,
            recovery=_recovery(config, source.database, storage, checkpoints),
            until=until,
            expected=() if alone else [part.name for part in parts if apply and part.apply],
        )
        common = _OfAllTargets(
            decoder, source, starts, stack, grown, translate, filters, len(parts), apply
        )
        # All targets share one dictionary, so the loads of all targets must be known before the
        # first target reads the dictionary.
        places = [
            _place_of(part, checkpoint, common)
            for part, checkpoint in zip(parts, checkpoints, strict=True)
        ]
        targets = [
            _open(part, checkpoint, common, place)
            for part, checkpoint, place in zip(parts, checkpoints, places, strict=True)
        ]
        if created is not None:
            created.targets, created.check_logs = targets, decoder.logs.check_from
        names = () if alone else tuple(target.name for target in targets)
        observed = [
            Parts(
                target,
                storage,
                memory.max_mb * MIB,
                names,
                decoder.splits,
                identity_of(target.config, source.database, target.connect_string),
            )
            for target in targets
        ]
        control = None
        if config.status.control is not None:
            control = make_control(config, None if reload is None else hung_up.set, withheld)
        service = stack.enter_context(monitored(config, observed, data, control))
        polls: list[Callable[[], None]] = [Watchdog(service_manager, targets).poll]
        if reload is not None:
            polls.append(Reloader(config, reload, service, hung_up, targets).poll)
        stack.callback(service_manager.stopping)
        drain_seconds = max((part.apply.drain_seconds for part in parts if part.apply), default=0.0)
        ends = once or until is not None
        serving = Serving(targets, decoder, once=ends, polls=polls)
        serving.run(drain_seconds, ending_seconds(config))
    return 0


def ending_seconds(config: Config) -> float:
    """Return the maximum seconds from a signal until the end of the process."""
    parts = [part.apply.ending_seconds for part in config.targets if part.apply]
    return max(parts, default=SHUTDOWN_SECONDS)


def _spilled_max(config: Config) -> int | None:
    """Return the maximum number of bytes that can be spilled; None for no limit."""
    limit = config.context.max_spill_mb
    return None if limit is None else limit * MIB


def _close_files(config: Config, data: Path) -> None:
    """Remove the access of other users to the files; a permissive umask, or a user, may have
    granted it.
    """
    loose = close_to_others(data, passable=is_passable(config))
    if isinstance(config.source, OracleSource) and config.source.vault is not None:
        vault = Path(config.source.vault.directory)
        loose += close_tree_to_others(vault) if vault.is_dir() else []
    if loose:
        error = OlrPgError(
            Code.FILES_NOT_PRIVATE,
            f"{counted(len(loose), 'file')}; the first one is {loose[0]}",
            path=str(data),
        )
        _log.warning(str(error), code=error.label, action=error.action)


class _OfAllTargets(NamedTuple):
    """The objects that all targets share.

    Attributes:
        starts: receives the position and the address of each target.
        stack: closes the ports.
        grown: the source with the tables that are created while their redo is read; None if such
            tables are not replicated.
        translate: see `run_appliance`.
        filters: the filters for all targets.
        share: the number of targets that share the memory.
        apply: whether to run the bundled applier of a target with an `apply` section.
    """

    decoder: Decoder
    source: SourceDatabase
    starts: TargetStarts
    stack: ExitStack
    grown: GrownDatabase | None
    translate: TranslateStep
    filters: Filters
    share: int
    apply: bool


def _place_of(config: Config, checkpoint: Checkpoint, common: _OfAllTargets) -> str:
    """Return the connection string of one target, and remember its position, and where its loads
    are recorded; empty if no bundled applier runs for the target.

    Args:
        config: the configuration with this target only.
    """
    section = config.apply if common.apply else None
    place = ""
    if section is not None:
        place = open_target(section, target_directory(config), common.stack, kept=True)
    _note_start(config, checkpoint, common, place)
    return place


def _note_start(
    config: Config, checkpoint: Checkpoint, common: _OfAllTargets, connect_string: str
) -> None:
    section = config.apply
    first = 0 if section is None else section.start_scn
    names = ("", "") if section is None else (section.subscription, section.table_query)
    common.starts.know(config.name, lambda: checkpoint.saved, connect_string, *names, first)


def _open(
    config: Config, checkpoint: Checkpoint, common: _OfAllTargets, connect_string: str
) -> RunningTarget:
    """Open the port of one target and create its applier.

    Args:
        config: the configuration with this target only.
        connect_string: the result of `_place_of`.
    """
    decoder, share, stack = common.decoder, common.share, common.stack
    port, memory = config.port, config.context.memory
    order = ByteOrder(port.byte_order)
    section = config.apply if common.apply else None
    directory = target_directory(config)
    view = TargetView(
        big_endian=order.is_big,
        chunk_bytes=port.chunk_size,
        filters=filters_of(port.filter) if isinstance(port, NamedTarget) else NO_FILTERS,
        # The option is only for external clients, because the bundled applier writes XML as text.
        raw_xml=port.binary_xml == "raw" and section is None,
    )
    bounds = QueueBounds(
        transactions_max=memory.max_tx_msgs,
        bytes_max=memory.max_mb * MIB // _READY_PART // share,
        backlog=Backlog(directory / "ready", port.max_spill_mb * MIB)
        if isinstance(port, NamedTarget) and share > 1
        else None,
    )
    delivery = Delivery(decoder, config.name, view, bounds, is_told=section is not None)
    delivery.ends_with_table = section is None and share > 1
    delivery.followed_scn = lambda: checkpoint.dictionary_scn
    listener = stack.enter_context(
        Listener(
            delivery,
            checkpoint,
            PortSettings(
                host=port.address.host,
                port=port.address.port,
                order=order,
                limits=port.limits,
                tls=server_context(port.tls) if port.tls else None,
                allow=port.allow,
                # The query of a client runs in Oracle, with the privileges of our account.
                check_query=check_relations if isinstance(config.source, OracleSource) else None,
            ),
            applier=None if section is None else confirming_applier(section),
        )
    )
    if section is None:
        return RunningTarget(config, delivery, listener, checkpoint)

    created = CreatedOfTarget(common.grown)

    def make_applier(config: Config) -> Applier:
        section = config.apply
        assert section is not None  # an `apply` section is never removed
        database = common.source.database
        facts = DatabaseFacts(database.charset, database.ncharset, database.timezone)
        settings = applier_settings(
            section, connect_string, listener.address, order, facts, memory.max_mb * MIB // share
        )
        limit = config.context.max_spill_mb
        settings = replace(
            settings,
            spool_directory=directory / "spool",
            applied_file=directory / applied.FILE_NAME,
            spool_max=None if limit is None else limit * MIB,
            dbid=database.dbid or None,
            containers=database.containers,
            translate=common.translate,
        )
        _note_start(config, checkpoint, common, connect_string)
        tables = delivery.tables(section.table_query)
        report_idle_mappings(section, tables, **delivery.named)
        if common.grown is not None:
            tables = tuple(map(delivery.view.filters.shape, common.grown.as_begun(tables)))
        snapshot = common.source.resolve(section.table_query)[0]
        settings = replace(settings, known_ledgers=known_ledgers(snapshot, common.filters.ledger))
        if isinstance(config.source, OracleSource):
            # Import the driver only if it is needed.
            from olr_pg.appliance.offline_checks import warn_of_rows

            warn_of_rows(config, settings, tables)
        applier = Applier(
            settings,
            tables,
            ServerSide(
                listener.connect,
                lambda: checkpoint.confirmed_by == confirming_applier(section),
                SourceLogs(decoder.logs.current_scn, decoder.logs.check_from),
            ),
            created.created(),
        )
        created.used_by(applier, {table.full_name for table in tables})
        delivery.told = applier.wake
        return applier

    return RunningTarget(config, delivery, listener, checkpoint, connect_string, make_applier)


def _recovery(
    config: Config, database: Database, storage: SpillFiles, checkpoints: Sequence[Checkpoint]
) -> BoundedRecovery | None:
    """Return the storage of the recovery images; None if the configuration disables it."""
    limit = config.context.bounded_recovery_mb
    if limit is None:
        return None
    directory = data_directory(config) / RECOVERY_DIRECTORY
    for part in config.targets:
        # Move images of version 0.1 and earlier: a single target in a list stored them beside its
        # checkpoint.
        own = target_directory(part) / RECOVERY_DIRECTORY
        if own.is_dir() and not directory.exists():
            own.rename(directory)
    named = {p.name: c.image for p, c in zip(config.targets, checkpoints, strict=True)}
    return BoundedRecovery(
        directory, source_identity(database), limit * MIB, storage, storage.disk_max, named
    )


def _lowest(checkpoints: Sequence[Checkpoint]) -> int | None:
    """Return the lowest of the SCNs from which the targets need redo; None if a target has no
    checkpoint yet.
    """
    saved = [checkpoint.saved for checkpoint in checkpoints]
    known = [scn for scn in saved if scn is not None]
    return min(known) if known and len(known) == len(saved) else None


class _Following:
    """Creates objects that apply the DDL in the redo to the dictionary (followers); a new follower
    continues where the last one ended.

    Args:
        ends_delivery: see `DictionaryFollower`.
        filters: the configured filters.

    Attributes:
        take: see `decoding.new_tables.Take`; None if new tables are not replicated.
    """

    def __init__(self, data: Path, *, ends_delivery: bool, filters: Filters) -> None:
        self._data, self._ends_delivery, self._filters = data, ends_delivery, filters
        self._history: tuple[int, DictionaryHistory] | None = None
        self.take: Take | None = None

    def begin(self, snapshot: Snapshot) -> DictionaryFollower:
        """Return the follower for a decoding run."""
        history = self._history_of(snapshot)
        follower = DictionaryFollower(
            snapshot,
            record=history.add,
            ends_delivery=self._ends_delivery,
            filters=self._filters,
            take=self.take,
        )
        follower.apply(tuple(history.transactions))
        return follower

    def scn(self) -> int | None:
        """Return the SCN up to which all dictionary changes are stored; None before the first
        dictionary.
        """
        return None if self._history is None else self._history[1].scn

    def known(self, snapshot: Snapshot) -> DictionaryFollower:
        """Return a follower that has applied all dictionary changes that were read so far."""
        follower = DictionaryFollower(snapshot, filters=self._filters, take=self.take)
        follower.apply(tuple(self._history_of(snapshot).transactions))
        return follower

    def _history_of(self, snapshot: Snapshot) -> DictionaryHistory:
        """Return the history of dictionary changes after the SCN of `snapshot`; all callers share
        one object.
        """
        if self._history is None or self._history[0] != snapshot.scn:
            identity = source_identity(snapshot.database)
            history = DictionaryHistory(self._data / HISTORY_FILE, identity, snapshot.scn)
            self._history = snapshot.scn, history
        return self._history[1]


def applier_settings(
    apply: Apply,
    target: str,
    address: tuple[str, int],
    order: ByteOrder,
    facts: DatabaseFacts,
    memory_bytes: int = 512 * MIB,
) -> ApplierSettings:
    """Return the settings of the bundled applier.

    Args:
        memory_bytes: the memory of the whole appliance for decoded data.
    """
    return ApplierSettings(
        connect_string=target,
        host=address[0],
        port=address[1],
        table_query=apply.table_query,
        start_scn=apply.start_scn,
        subscription=apply.subscription,
        workers=apply.workers,
        consistency=Consistency(apply.consistency),
        batch_changes=apply.batch_changes,
        batch_milliseconds=apply.batch_ms,
        batch_bytes=memory_bytes // _APPLIED_PART // 4,
        queue_bytes=memory_bytes // _APPLIED_PART,
        spool_bytes=memory_bytes // _SPOOLED_PART,
        held_max=None if apply.max_held_mb is None else apply.max_held_mb * MIB,
        create_tables=apply.create_tables,
        schema_names=apply.schema_mapping,
        table_names=apply.table_mapping,
        conflict=ConflictPolicy(apply.on_conflict),
        ddl={DdlKind(kind): DdlPolicy(policy) for kind, policy in apply.ddl.by_kind()},
        triggers=TriggerHandling(apply.triggers),
        unlogged=UnloggedPolicy(apply.unlogged_tables),
        outage_seconds=apply.retry_seconds,
        start_seconds=START_SECONDS if apply.retry_seconds is None else apply.retry_seconds,
        answer_seconds=apply.answer_seconds,
        incomplete={
            pattern: IncompletePolicy(name) for pattern, name in apply.incomplete_lobs.items()
        },
        byte_order=order,
        facts=facts,
        policies=apply.value_policies,
        choices=apply.choices,
    )


def settings_for(config: Config, snapshot: Snapshot, target: str) -> ApplierSettings:
    """Return the applier's settings, with names and types in the target, for commands that do not
    connect to the port.
    """
    assert config.apply is not None
    database = snapshot.database
    facts = DatabaseFacts(database.charset, database.ncharset, database.timezone)
    order = ByteOrder(config.port.byte_order)
    settings = applier_settings(config.apply, target, ("", 0), order, facts)
    return replace(settings, containers=database.containers)


@contextmanager
def full_disk_told(data: Path) -> Iterator[None]:
    """Convert the error of a full disk to an error with a code, so that it is not reported as a
    defect.

    Args:
        data: `context.data`.

    Raises:
        OlrPgError: 1160, the disk is full.
    """
    try:
        yield
    except OSError as error:
        if not tells_of_full_disk(error):
            raise
        raise OlrPgError(Code.DATA_DISK_FULL, plain_reason(error), path=str(data)) from error
