"""The appliance: ``olr-pg run``. Puts the parts together, starts them, and ends them in order."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from olr_pg.applier import applied
from olr_pg.applier.embedded import start_embedded
from olr_pg.applier.schema_events import SchemaEvents
from olr_pg.applier.session import Applier
from olr_pg.applier.settings import (
    ApplierSettings,
    ConflictPolicy,
    Consistency,
    TruncatePolicy,
)
from olr_pg.applier.warm import warming
from olr_pg.config.model import MIB, NamedTarget
from olr_pg.config.tls import server_context
from olr_pg.datatypes.convert import DatabaseFacts
from olr_pg.errors import OlrPgError
from olr_pg.replicator.data_lock import only_one
from olr_pg.replicator.decoder import Decoder
from olr_pg.replicator.delivery import Delivery
from olr_pg.replicator.filters import NO_FILTERS, Filters, filters_of
from olr_pg.replicator.follower import DictionaryFollower
from olr_pg.replicator.heap import give_back_large_memory
from olr_pg.replicator.history import FILE_NAME as HISTORY_FILE
from olr_pg.replicator.history import DictionaryHistory
from olr_pg.replicator.monitoring import monitored
from olr_pg.replicator.observer import Parts
from olr_pg.replicator.open_source import open_source
from olr_pg.replicator.recovery import DIRECTORY as RECOVERY_DIRECTORY
from olr_pg.replicator.recovery import BoundedRecovery
from olr_pg.replicator.reloading import Reloader, hangups
from olr_pg.replicator.serving import Serving
from olr_pg.replicator.spark_decoding import PRELOAD
from olr_pg.replicator.spill import SpillFiles
from olr_pg.replicator.target import RunningTarget, data_directory, target_directory
from olr_pg.replicator.threads import FILE_NAME as THREADS_FILE
from olr_pg.server.backlog import Backlog
from olr_pg.server.checkpoint import FILE_NAME, Checkpoint, source_identity
from olr_pg.server.listener import Listener
from olr_pg.spark.session import SparkSettings, stop_session
from olr_pg.wire.frames import ByteOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from olr_pg.config.model import Apply, Config
    from olr_pg.dictionary.model import Database, Snapshot
    from olr_pg.replicator.source_database import SourceDatabase

_WAITING_PART = 16
"""What part of `context.memory.max-mb` open transactions may take, past which the largest wait on
disk. To finish those that are in memory takes some times as much."""
_READY_PART = 5
"""What the ready queue may take; the rest is for results on their way from Spark, and for the
applier's own form of what it was given."""
_APPLIED_PART = 7
"""What the applier may hold unconfirmed: more than half of the queue, so that the next is ready
meanwhile. The bytes of the messages are those of the queue itself."""
_SPOOLED_PART = 32
"""What of one source transaction the applier keeps in memory until its Commit is here."""

_log = structlog.get_logger(__name__)


def run_appliance(
    config: Config, *, once: bool, apply: bool, reload: Callable[[], Config] | None = None
) -> int:
    """Serve the ports of the targets and, with `apply`, bring what they serve into PostgreSQL.

    SystemExit, which SIGTERM raises, lets the applier apply and confirm what it has received, for
    `apply.drain-seconds` at most; a second one ends that.

    Args:
        config: the configuration.
        once: end when what is there has been confirmed.
        apply: run the bundled applier.
        reload: reads the configuration again when SIGHUP asks for it; only in the main thread.

    Returns:
        The exit code.

    Raises:
        OlrPgError: what went wrong, once everything has been stopped.
        KeyboardInterrupt: passed on, once everything has been stopped.
    """
    parts = config.targets
    if apply and not any(part.apply for part in parts):
        raise OlrPgError(1091, "there is no `apply` section")
    give_back_large_memory()
    data = data_directory(config)
    with ExitStack() as stack:
        stack.enter_context(only_one(data))
        hung_up = threading.Event() if reload is None else stack.enter_context(hangups())
        checkpoints: list[Checkpoint] = []
        source = stack.enter_context(open_source(config, data, lambda: _lowest(checkpoints)))
        for part in parts:
            directory = target_directory(part)
            checkpoints.append(Checkpoint(directory / FILE_NAME, source_identity(source.database)))
        if apply:
            for order in {part.port.byte_order for part in parts if part.apply}:
                stack.enter_context(warming(ByteOrder(order)))
        stack.callback(stop_session)
        memory = config.context.memory
        spill_mb = config.context.max_spill_mb
        storage = SpillFiles(
            data / "spill",
            # Each may be decoded for by itself.
            memory.max_mb * MIB // _WAITING_PART // len(parts),
            disk_max=None if spill_mb is None else spill_mb * MIB,
        )
        filters = filters_of(config.filter)
        told = apply and all(part.apply for part in parts)
        alone = len(parts) == 1
        decoder = Decoder(
            source,
            SparkSettings(config.spark.master, dict(config.spark.conf), PRELOAD),
            once=once,
            threads_file=data / THREADS_FILE,
            storage=storage,
            follow=_following(data, ends_delivery=alone and not told, filters=filters),
            incidents=data / "incidents",
            filters=filters,
            recovery=_recovery(config, source.database, storage, checkpoints),
            expected=() if alone else [part.name for part in parts if apply and part.apply],
        )
        targets = [
            _open(part, decoder, source, checkpoint, stack, share=len(parts), apply=apply)
            for part, checkpoint in zip(parts, checkpoints, strict=True)
        ]
        names = () if alone else tuple(target.name for target in targets)
        observed = [Parts(target, storage, memory.max_mb * MIB, names) for target in targets]
        service = stack.enter_context(monitored(config, observed, data))
        poll: Callable[[], None] = _nothing
        if reload is not None:
            listeners = [target.listener for target in targets]
            poll = Reloader(config, reload, listeners, service, hung_up).poll
        drain_seconds = max((part.apply.drain_seconds for part in parts if part.apply), default=0.0)
        Serving(targets, decoder, once=once, poll=poll).run(drain_seconds)
    return 0


def _open(
    config: Config,
    decoder: Decoder,
    source: SourceDatabase,
    checkpoint: Checkpoint,
    stack: ExitStack,
    *,
    share: int,
    apply: bool,
) -> RunningTarget:
    """One target, with its port open and its applier made.

    Args:
        config: of this target by itself.
        share: how many targets share the memory.
        apply: run the bundled applier, if it has one.
    """
    port, memory = config.port, config.context.memory
    order, events = ByteOrder(port.byte_order), SchemaEvents()
    section = config.apply if apply else None
    directory = target_directory(config)
    delivery = Delivery(
        decoder,
        config.name,
        big_endian=order.is_big,
        chunk_bytes=port.chunk_size,
        transactions_max=memory.max_tx_msgs,
        bytes_max=memory.max_mb * MIB // _READY_PART // share,
        backlog=Backlog(directory / "ready", port.max_spill_mb * MIB)
        if isinstance(port, NamedTarget) and share > 1
        else None,
        filters=filters_of(port.filter) if isinstance(port, NamedTarget) else NO_FILTERS,
        schema_events=events,
        ends_with_table=section is None and share > 1,
    )
    connect_string = "" if section is None else open_target(section, directory, stack)
    listener = stack.enter_context(
        Listener(
            delivery,
            checkpoint,
            host=port.address.host,
            port=port.address.port,
            order=order,
            limits=port.limits,
            tls=server_context(port.tls) if port.tls else None,
            allow=port.allow,
        )
    )
    if section is None:
        return RunningTarget(config, delivery, listener, checkpoint)

    def make_applier() -> Applier:
        database = source.database
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
        )
        return Applier(settings, delivery.tables(section.table_query), events, listener.connect)

    return RunningTarget(config, delivery, listener, checkpoint, connect_string, make_applier)


def _recovery(
    config: Config, database: Database, storage: SpillFiles, checkpoints: Sequence[Checkpoint]
) -> BoundedRecovery | None:
    """Keeps open transactions over restarts, unless the configuration says not to."""
    limit = config.context.bounded_recovery_mb
    if limit is None:
        return None
    directory = data_directory(config) / RECOVERY_DIRECTORY
    for part in config.targets:
        # Up to version 0.1 the images of a list of one target were with its checkpoint.
        own = target_directory(part) / RECOVERY_DIRECTORY
        if own.is_dir() and not directory.exists():
            own.rename(directory)
    named = {p.name: c.image for p, c in zip(config.targets, checkpoints, strict=True)}
    return BoundedRecovery(
        directory, source_identity(database), limit * MIB, storage, storage.disk_max, named
    )


def _lowest(checkpoints: Sequence[Checkpoint]) -> int | None:
    """From where on redo is still needed by any target; None where one has no checkpoint yet."""
    saved = [checkpoint.saved for checkpoint in checkpoints]
    known = [scn for scn in saved if scn is not None]
    return min(known) if known and len(known) == len(saved) else None


def _following(
    data: Path, *, ends_delivery: bool, filters: Filters
) -> Callable[[Snapshot], DictionaryFollower]:
    """Makes followers of the dictionary, from where earlier ones had got.

    Args:
        ends_delivery: whether nobody is told what they find.
        filters: what is left out.
    """
    histories: dict[int, DictionaryHistory] = {}

    def follow(snapshot: Snapshot) -> DictionaryFollower:
        history = histories.get(id(snapshot))
        if history is None:
            path = data / HISTORY_FILE
            history = DictionaryHistory(path, source_identity(snapshot.database), snapshot.scn)
            histories.clear()
            histories[id(snapshot)] = history
        follower = DictionaryFollower(
            snapshot, record=history.add, ends_delivery=ends_delivery, filters=filters
        )
        follower.apply(tuple(history.transactions))
        return follower

    return follow


def open_target(apply: Apply, data: Path, stack: ExitStack) -> str:
    """The connection string of the target; an embedded one is started for the stack's span."""
    if not apply.embedded:
        return apply.connect_string.get_secret_value()
    cluster = start_embedded(data / "postgres")
    stack.callback(cluster.stop)
    _log.info("embedded PostgreSQL runs", port=cluster.port, directory=str(cluster.directory))
    return cluster.connect_string


def applier_settings(
    apply: Apply,
    target: str,
    address: tuple[str, int],
    order: ByteOrder,
    facts: DatabaseFacts,
    memory_bytes: int = 512 * MIB,
) -> ApplierSettings:
    """What the applier is told.

    Args:
        target: the connection string.
        address: of the port.
        memory_bytes: of the whole appliance, for decoded data.
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
        truncate=TruncatePolicy(apply.on_truncate),
        byte_order=order,
        facts=facts,
        policies=apply.value_policies,
    )


def _nothing() -> None:
    """What there is to do now and then where nobody can ask for anything."""
