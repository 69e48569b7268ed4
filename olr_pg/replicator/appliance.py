"""The appliance: ``olr-pg run``. Puts the parts together, starts them, and ends them in order."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from olr_pg.applier.embedded import start_embedded
from olr_pg.applier.orphans import orphaned_transactions
from olr_pg.applier.schema_events import SchemaEvents
from olr_pg.applier.session import Applier
from olr_pg.applier.settings import (
    ApplierSettings,
    ConflictPolicy,
    Consistency,
    TruncatePolicy,
)
from olr_pg.applier.warm import warming
from olr_pg.config.model import MIB
from olr_pg.config.tls import server_context
from olr_pg.datatypes.convert import DatabaseFacts
from olr_pg.errors import OlrPgError
from olr_pg.replicator.decoder import PRELOAD, Decoder
from olr_pg.replicator.filters import Filters, filters_of
from olr_pg.replicator.follower import DictionaryFollower
from olr_pg.replicator.history import FILE_NAME as HISTORY_FILE
from olr_pg.replicator.history import DictionaryHistory
from olr_pg.replicator.monitoring import monitored
from olr_pg.replicator.observer import Parts
from olr_pg.replicator.open_source import open_source
from olr_pg.replicator.reloading import Reloader
from olr_pg.replicator.spill import SpillFiles
from olr_pg.replicator.threads import FILE_NAME as THREADS_FILE
from olr_pg.server.checkpoint import FILE_NAME, Checkpoint
from olr_pg.server.listener import Listener
from olr_pg.spark.session import SparkSettings, stop_session
from olr_pg.wire.frames import ByteOrder

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.applier.session import ApplyReport
    from olr_pg.config.model import Apply, Config
    from olr_pg.dictionary.model import Database, Snapshot

RESETLOGS = 7020
_READY_PART = 8
"""What part of `context.memory.max-mb` the ready queue may take; half is for open transactions, the
rest for results on their way from Spark, and for the applier's own form of what it was given."""
_APPLIED_PART = 16
"""What the applier may hold unconfirmed: half of the queue, so that the next is ready meanwhile."""
_WAIT_SECONDS = 0.2

_log = structlog.get_logger(__name__)


def run_appliance(
    config: Config, *, once: bool, apply: bool, reload: Callable[[], Config] | None = None
) -> int:
    """Serve the port and, with `apply`, bring what it serves into PostgreSQL.

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
    if apply and config.apply is None:
        raise OlrPgError(1091, "there is no `apply` section")
    data = data_directory(config)
    with ExitStack() as stack:
        source = stack.enter_context(open_source(config, data, lambda: checkpoint.saved))
        checkpoint = Checkpoint(data / FILE_NAME, _identity(source.database))
        order = ByteOrder(config.target.byte_order)
        if apply:
            stack.enter_context(warming(order))
        stack.callback(stop_session)
        target = open_target(config.apply, data, stack) if apply and config.apply else None
        memory = config.context.memory
        filters = filters_of(config.filter)
        events = SchemaEvents()
        spill_mb = config.context.max_spill_mb
        storage = SpillFiles(
            data / "spill",
            memory.max_mb * MIB // 2,
            disk_max=None if spill_mb is None else spill_mb * MIB,
        )
        decoder = Decoder(
            source,
            SparkSettings(config.spark.master, dict(config.spark.conf), PRELOAD),
            big_endian=config.target.byte_order == "big",
            chunk_bytes=config.target.chunk_size,
            transactions_max=memory.max_tx_msgs,
            bytes_max=memory.max_mb * MIB // _READY_PART,
            once=once,
            threads_file=data / THREADS_FILE,
            storage=storage,
            follow=lambda snapshot: _follower(
                snapshot, data, is_applied=target is not None, filters=filters
            ),
            schema_events=events,
            incidents=data / "incidents",
            filters=filters,
        )
        listener = stack.enter_context(
            Listener(
                decoder,
                checkpoint,
                host=config.target.address.host,
                port=config.target.address.port,
                order=order,
                limits=config.target.limits,
                tls=server_context(config.target.tls) if config.target.tls else None,
                allow=config.target.allow,
            )
        )
        applier: Applier | None = None
        if target is not None and config.apply is not None:
            database = source.database
            facts = DatabaseFacts(database.charset, database.ncharset, database.timezone)
            settings = applier_settings(
                config.apply, target, listener.address, order, facts, memory.max_mb * MIB
            )
            _, tables = source.resolve(config.apply.table_query)
            connect = listener.connect if listener.is_guarded else None
            applier = Applier(settings, tables, events, connect)
        parts = Parts(decoder, listener, checkpoint, storage, applier, memory.max_mb * MIB)
        service = stack.enter_context(monitored(config, parts, data))
        poll: Callable[[], None] = _nothing
        if reload is not None:
            reloader = Reloader(config, reload, listener, service)
            stack.enter_context(reloader.on_hangup())
            poll = reloader.poll
        if applier is None or target is None or config.apply is None:
            _serve(decoder, listener, once=once, poll=poll)
            return 0
        run = _ApplierThread(applier, once=once, drained=decoder.drained.is_set)
        try:
            report = run.wait(config.apply.drain_seconds, poll)
        except OlrPgError as error:
            # The applier only knows what the port told it; the cause is here.
            cause = decoder.failure or error
            raise _with_orphans(cause, target, config.apply.subscription) from error
        _report(report)
    return 0


def _follower(
    snapshot: Snapshot, data: Path, *, is_applied: bool, filters: Filters
) -> DictionaryFollower:
    """Follows the dictionary from where an earlier run had got.

    Args:
        is_applied: whether the bundled applier is told what it finds.
        filters: what is left out.
    """
    history = DictionaryHistory(data / HISTORY_FILE, _identity(snapshot.database), snapshot.scn)
    follower = DictionaryFollower(
        snapshot,
        record=history.add,
        ends_delivery=not is_applied,
        filters=filters,
    )
    follower.apply(tuple(history.transactions))
    return follower


def data_directory(config: Config) -> Path:
    """`context.data`, made where it is missing.

    Raises:
        OlrPgError: 1092.
    """
    data = Path(config.context.data)
    try:
        data.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OlrPgError(1092, str(error), path=str(data)) from error
    return data


def open_target(apply: Apply, data: Path, stack: ExitStack) -> str:
    """The connection string of the target; an embedded one is started for the stack's span."""
    if not apply.embedded:
        return apply.connect_string.get_secret_value()
    cluster = start_embedded(data / "postgres")
    stack.callback(cluster.stop)
    _log.info("embedded PostgreSQL runs", port=cluster.port, directory=str(cluster.directory))
    return cluster.connect_string


def _identity(database: Database) -> str:
    """What a checkpoint's SCNs belong to."""
    return f"{database.name}/{database.con_id}/{database.dbid or 0}"


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
        queue_bytes=memory_bytes // _APPLIED_PART,
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


class _ApplierThread:
    """Runs the applier in a thread, so that the main one is free for signals."""

    def __init__(self, applier: Applier, *, once: bool, drained: Callable[[], bool]) -> None:
        self._applier = applier
        self._outcome: list[ApplyReport | BaseException] = []

        def work() -> None:
            try:
                self._outcome.append(applier.run(once=once, drained=drained))
            except BaseException as error:  # noqa: BLE001 - raised again in the main thread
                self._outcome.append(error)

        self._thread = threading.Thread(target=work, name="olr-apply")

    def wait(self, drain_seconds: float, poll: Callable[[], None]) -> ApplyReport:
        """Wait for its end; where this thread is told to end first, end the applier.

        Args:
            drain_seconds: that it has then to apply and confirm what it has received.
            poll: called now and then.
        """
        self._thread.start()
        try:
            while self._thread.is_alive():
                self._thread.join(_WAIT_SECONDS)
                poll()
        except SystemExit:
            _log.info("terminating: what was received is applied", seconds_max=drain_seconds)
            self._applier.drain()
            self._thread.join(drain_seconds)
            _log.info("terminated", confirmed_scn=self._applier.confirmed_scn)
            raise
        finally:
            self._applier.stop()
            self._thread.join()
        outcome = self._outcome[0]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


def _serve(decoder: Decoder, listener: Listener, *, once: bool, poll: Callable[[], None]) -> None:
    """Serve external clients until interrupted; with `once` until one has confirmed everything.

    Args:
        poll: called now and then.
    """
    while not (decoder.drained.wait(_WAIT_SECONDS) and once):
        poll()
    while (session := listener.replicating) is not None:
        queue = session.queue
        if queue is None or queue.wait_until_confirmed(_WAIT_SECONDS):
            return


def _with_orphans(error: OlrPgError, target: str, subscription: str) -> OlrPgError:
    """`error`; where the source was opened with RESETLOGS, with what the target has too much."""
    if error.code != RESETLOGS:
        return error
    scn = error.where.get("scn")
    orphans = orphaned_transactions(target, subscription, scn if isinstance(scn, int) else 0)
    found = "; ".join(str(orphan) for orphan in orphans) or "none in the ledger"
    return OlrPgError(RESETLOGS, f"{error.detail}; orphaned in the target: {found}", scn=scn)


def _report(report: ApplyReport) -> None:
    for name, counters in sorted(report.tables.items()):
        _log.info("applied", table=name, **counters._asdict())
    _log.info("done", confirmed_scn=report.confirmed_scn)
