"""Makes the status of the appliance from its parts, and periodically samples values for rates and
durations.

The status page, the metrics and the exporter show them, if they are configured.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import threading
import time
from collections import Counter, deque
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from olr_pg.appliance.target import target_path
from olr_pg.applier.session.applier_session import Overview
from olr_pg.applier.statements.table_changes import STREAM
from olr_pg.capture.capture_state import CapturePhase
from olr_pg.config.address import LOOPBACK
from olr_pg.config.port_sections import server_context
from olr_pg.errors import Code, OlrPgError
from olr_pg.monitor.control import Control
from olr_pg.monitor.exporter import Collector, MetricsTable, PostgresExporter, exported
from olr_pg.monitor.history import FILE_NAME as HISTORY_FILE
from olr_pg.monitor.history import HistoryRecorder, HistoryStore
from olr_pg.monitor.lag import Milestones, Stages, held_lag, split_lag
from olr_pg.monitor.metrics import make_registry
from olr_pg.monitor.problems import with_problems
from olr_pg.monitor.proofs import FILE_NAME as PROOFS
from olr_pg.monitor.proofs import Proof, ProofFile
from olr_pg.monitor.service import FILE_NAME, ServiceSettings, StatusService
from olr_pg.monitor.status_values import (
    Identity,
    PortStatus,
    ProcessStatus,
    Rates,
    SourceStatus,
    StageState,
    Status,
    TableStatus,
    ThreadStatus,
)
from olr_pg.observability.logging_setup import recent_events
from olr_pg.observability.periodic import Periodic, clock_shift, steady_time
from olr_pg.observability.wording import counted, some
from olr_pg.replicator.spark_decoding import SplitCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from olr_pg.appliance.target import RunningTarget
    from olr_pg.applier.batches.batch_applier import TableProgress
    from olr_pg.applier.target.blockers import Blocked
    from olr_pg.capture.capture_state import CaptureState
    from olr_pg.config.model import Config
    from olr_pg.monitor.lag import Lag
    from olr_pg.replicator.decoding_progress import DecodeProgress
    from olr_pg.replicator.spark_decoding import SparkDecoding
    from olr_pg.transactions.waiting_storage import Storage

TARGET_BEHIND: Final = "TARGET_BEHIND"
"""All archived redo has been decoded, but the target does not contain all of its changes yet."""

WAITING_FOR_TARGET: Final = "WAITING_FOR_TARGET"
"""The target is unreachable or cannot write; the applier retries."""

WAITING_FOR_DISK: Final = "WAITING_FOR_DISK"
"""The disk of `context.data` is full; replication resumes when there is space."""

PAUSED: Final = "PAUSED"
"""The subscription is paused: the applier receives and confirms nothing."""

STARTING: Final = "STARTING"
"""The bundled applier is checking the target, and has not requested any changes yet."""

STOPPING: Final = "STOPPING"
"""The appliance is shutting down: the applier applies the changes that it has received."""

SAMPLE_SECONDS: Final = 0.5
_RATE_SAMPLES: Final = 20
_BEHIND_SECONDS: Final = 2.0
"""A table is reported as waiting behind another table only if its lag is at least this number of
seconds.
"""

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


class Parts(NamedTuple):
    """The parts of the appliance from which the status is made.

    Attributes:
        names: names of all targets, if there are several.
        memory_max: bytes, `context.memory.max-mb`.
        splits: decodes the splits, and counts where they were decoded.
        identity: the identity for the status page.
    """

    target: RunningTarget
    storage: Storage
    memory_max: int
    names: tuple[str, ...] = ()
    splits: SparkDecoding | None = None
    identity: Identity = Identity()


class _Sample(NamedTuple):
    at: float
    redo_bytes: int
    rows: int
    changes: int


class Observer:
    """Makes a `Status` on request, and samples values periodically; thread-safe.

    The observer is a context manager; it samples values while the context is active.

    Args:
        parts: the parts to observe.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._version = importlib.metadata.version("olr-pg")
        self._started_at = steady_time()
        self._lock = threading.Lock()
        self._taken = Milestones()
        self._taken_of: object = None
        self._seen, self._seen_since = "", self._started_at
        self._proofs = ProofFile(target_path(parts.target.config) / PROOFS)
        self._samples: deque[_Sample] = deque(maxlen=_RATE_SAMPLES)
        self._sampling = Periodic("olr-observe", SAMPLE_SECONDS, self._sample)

    def __enter__(self) -> Observer:
        self._sampling.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._sampling.stop()

    def _sample(self) -> None:
        """Record the counters from which rates are computed, and the time of a change of state.

        This must stay cheap for tens of thousands of tables, so it does not build their statuses.
        """
        now = steady_time()
        applier = self._parts.target.applier
        overview = Overview() if applier is None else applier.overview
        self._state(self._port(now), overview, (), now)
        source = self._parts.target.delivery.progress.source
        self._samples.append(_Sample(now, source.redo_bytes, source.rows, overview.changes))

    def _source(self) -> SourceStatus:
        parts = self._parts
        counts = SplitCounts() if parts.splits is None else parts.splits.counts
        source = parts.target.delivery.progress.source
        return replace(
            source,
            threads=with_holding(source.threads, waiting=source.waiting_transactions > 0),
            spilled_bytes=parts.storage.waiting_bytes,
            splits_here=counts.here,
            splits_by_spark=counts.by_spark,
        )

    def status(self) -> Status:
        """Return the current status."""
        now = steady_time()
        parts = self._parts
        applier = parts.target.applier
        progress = parts.target.delivery.progress
        port = self._port(now)
        confirmed_scn = None if applier is None else applier.confirmed_scn or None
        tables = self._tables(first_lacking(port, confirmed_scn), now)
        overview = Overview() if applier is None else applier.overview
        newest = progress.archived.at
        free = _free(parts.target.config)
        status = Status(
            version=self._version,
            at=now,
            started_at=self._started_at,
            state=self._state(port, overview, tables, now),
            source=self._source(),
            port=port,
            process=process_status(parts.memory_max),
            tables=tables,
            rates=self._rates(),
            archive_seconds=None if newest is None else max(0.0, now - newest),
            confirmed_scn=confirmed_scn,
            events=recent_events(),
            data_free_bytes=None if free is None else free[0],
            data_free_ratio=None if free is None else free[1],
            target=parts.target.name,
            targets=parts.names,
            identity=parts.identity,
            loads=() if applier is None else tuple(applier.loads),
        )
        listener = parts.target.listener
        session = listener.replicating
        ahead = None if session is None else session.ahead
        # If the disk is full, the state already shows this.
        is_full = parts.target.full is not None
        unsaved = None if is_full else parts.target.checkpoint.failure
        own = [] if applier is None else [b.error for b in applier.blocked if not _is_of_table(b)]
        crowded = None if applier is None else lock_holds_all(applier.crowded_out)
        slow = [] if applier is None else [one.error for one in applier.health]
        status = replace(status, target_problems=Counter(error.label for error in slow))
        warnings = (listener.silence, ahead, unsaved, crowded, *own, *slow)
        failure = None if is_full else parts.target.failure
        return with_problems(status.moved(clock_shift()), failure, warnings)

    def _state(
        self, port: PortStatus, overview: Overview, tables: Sequence[TableStatus], now: float
    ) -> StageState:
        """Return the state of decoding. The state is "caught up" only if the target contains all
        decoded changes.

        Args:
            tables: if not empty, the reason names the tables that wait behind a slow one.
        """
        state = self._parts.target.delivery.state
        applier = self._parts.target.applier
        target = self._parts.target
        is_over = applier is not None and applier.is_ending and not target.is_renewed
        if is_over and target.is_alive:
            return StageState(STOPPING, self._noted(STOPPING, now))
        full = target.full
        if full is not None:
            return StageState(WAITING_FOR_DISK, full.since, _advised(full.error))
        outage = None if applier is None else applier.outage
        if outage is not None and state.phase is not CapturePhase.STOPPED:
            return StageState(WAITING_FOR_TARGET, outage.since, _advised(outage.error))
        pause = None if applier is None else applier.pause
        if pause is not None and state.phase is not CapturePhase.STOPPED:
            why = f"paused by {pause.by}; resume with `olr-pg tables resume --all`"
            return StageState(PAUSED, pause.since, why)
        is_new = applier is not None and not applier.is_begun
        if is_new and self._parts.target.failure is None and state.reason is None:
            return StageState(STARTING, self._noted(STARTING, now))
        crowded = None if applier is None else lock_holds_all(applier.crowded_out)
        cause = state.reason or crowded
        reason = None if cause is None else _advised(cause)
        lacking = None
        if state.phase is CapturePhase.CAUGHT_UP:
            lacking = self._lacking(port, overview, tables)
        if lacking is None:
            self._noted("", now)
            return StageState(state.phase.value, state.since, reason)
        return StageState(TARGET_BEHIND, self._noted(TARGET_BEHIND, now), lacking)

    def _noted(self, state: str, now: float) -> float:
        """Return since when `state` has lasted; used for states that are known only from
        samples.
        """
        with self._lock:
            if self._seen != state:
                self._seen, self._seen_since = state, now
            return self._seen_since

    def _lacking(
        self, port: PortStatus, overview: Overview, tables: Sequence[TableStatus]
    ) -> str | None:
        """Describe which decoded changes the target lacks; None if it lacks none."""
        target = self._parts.target
        session = target.listener.replicating
        if session is not None and session.ahead is not None:
            return str(session.ahead)
        if target.failure is not None:
            return "the bundled applier has ended, and olr_pg restarts it"
        if overview.blocked:
            return f"blocked in PostgreSQL: {some(overview.blocked)}"
        unconfirmed = port.ready + port.transmitted
        if unconfirmed:
            waiting = counted(unconfirmed, "transaction")
            text = f"{waiting} {'is' if unconfirmed == 1 else 'are'} not confirmed"
            return "; ".join([text, *waiting_behind(tables)])
        return held_tables(overview)

    def _port(self, now: float) -> PortStatus:
        listener = self._parts.target.listener
        host, number = listener.address
        address = f"[{host}]:{number}" if ":" in host else f"{host}:{number}"
        saved = self._parts.target.checkpoint.saved
        refused = listener.refusals.counts()
        session = listener.replicating
        queue = None if session is None else session.queue
        silent = 0.0 if session is None else max(0.0, time.monotonic() - session.asked_at)
        if session is None or queue is None:
            return PortStatus(
                address,
                listener.connections,
                None if session is None else session.peer,
                refused,
                saved,
                silent_seconds=silent,
            )
        # Read the decoder's position before the queue, so that the queue contains all transactions
        # up to this position.
        queued_scn = self._parts.target.delivery.progress.queued.scn
        held = queue.status()
        taken_scn = queued_scn if held.next_scn is None else held.next_scn
        with self._lock:
            if self._taken_of is not queue:
                self._taken, self._taken_of = Milestones(), queue
            self._taken.add(taken_scn, now)
        transactions_max, bytes_max = queue.bounds
        return PortStatus(
            address,
            listener.connections,
            session.peer,
            refused,
            saved,
            taken_scn or None,
            held.ready + held.transmitting,
            held.transmitted,
            held.held_bytes,
            bytes_max,
            transactions_max,
            held.full,
            held.held_back,
            held.spilled_bytes,
            silent,
        )

    def _tables(self, taken_scn: int, now: float) -> tuple[TableStatus, ...]:
        applier = self._parts.target.applier
        if applier is None:
            return ()
        blocked = {one.table: _advised(one.error) for one in applier.blocked}
        proofs = self._proofs.read()
        lags = self._lags(now)
        made = []
        for table in sorted(applier.tables, key=lambda one: one.name):
            name, held, pending = table.name, table.held, table.pending
            scn = held.commit_scn if held else taken_scn if pending is None else pending
            made.append(table_status(table, lags(scn), now, blocked.get(name), proofs.get(name)))
        return tuple(made)

    def _lags(self, now: float) -> Callable[[int], Lag]:
        """Return a function that returns the lag of the change at an SCN. The returned function
        computes the lag once for each SCN, because most tables have no pending changes and share
        one SCN.
        """
        delivery = self._parts.target.delivery
        progress = delivery.progress
        stages = Stages(progress.archived, progress.read, progress.queued, self._taken)
        since = missing_since(delivery.state, progress)
        return cache(lambda scn: split_lag(scn, now, stages, since))

    def _rates(self) -> Rates:
        samples = list(self._samples)
        if len(samples) < 2:
            return Rates()
        first, last = samples[0], samples[-1]
        seconds = max(last.at - first.at, SAMPLE_SECONDS)
        differences = (new - old for new, old in zip(last[1:], first[1:], strict=True))
        # After a restart the counters begin at 0 again, so a difference can be negative.
        return Rates(*(max(0.0, difference / seconds) for difference in differences))


def waiting_behind(tables: Sequence[TableStatus]) -> list[str]:
    """Describe which tables wait behind which other table: a slow table delays the other tables of
    its worker.
    """
    behind: dict[str, list[str]] = {}
    for table in tables:
        if table.behind is not None:
            behind.setdefault(table.behind, []).append(table.name)
    return [
        f"{some(names)} {'waits' if len(names) == 1 else 'wait'} behind {slow}: one worker"
        f" applies these tables, and the changes of {slow} take most of its time"
        for slow, names in behind.items()
    ]


def lock_holds_all(blocked: Sequence[Blocked]) -> OlrPgError | None:
    """Return error 5099 if blocked tables keep all other tables from receiving changes, otherwise
    None.
    """
    names = some([one.table for one in blocked if _is_of_table(one)])
    if not names:
        return None
    return OlrPgError(
        Code.LOCK_HOLDS_ALL,
        f"unconfirmed changes fill their share of `context.memory.max-mb` behind {names}",
    )


def _is_of_table(blocked: Blocked) -> bool:
    return blocked.table not in ("", STREAM)


def held_tables(overview: Overview) -> str | None:
    """Describe which tables have held changes, because they are stopped or paused; None if there
    are none.
    """
    for why, names in (("stopped", overview.stopped), ("paused", overview.paused)):
        if names:
            return f"{why}: {some(names)}"
    return None


def with_holding(threads: Sequence[ThreadStatus], *, waiting: bool) -> tuple[ThreadStatus, ...]:
    """Mark the redo thread with the lowest position, if transactions wait for the redo of other
    threads.
    """
    read = [thread.decoded_scn or 0 for thread in threads]
    least = min(read, default=0)
    waits = waiting and len(threads) > 1
    return tuple(
        replace(thread, holds_back=waits and scn == least)
        for thread, scn in zip(threads, read, strict=True)
    )


def table_status(
    found: TableProgress,
    lag: Lag,
    now: float,
    blocked: str | None = None,
    proof: Proof | None = None,
) -> TableStatus:
    """Return the status of a table from its applier's progress.

    Args:
        lag: the lag of the first change that the table may lack.
        now: Unix time in seconds.
        blocked: the session in PostgreSQL that blocks the table, and the recommended action.
        proof: the result of the table's last comparison with the source.
    """
    counters, held = found.counters, found.held
    if held is not None:
        lag = held_lag(lag, held.since, now)
    seconds = lag.total
    if proof is not None and not proof.at:
        proof = None  # the table was never compared
    return TableStatus(
        found.name,
        (found.commit_scn or None) if held is None else held.commit_scn - 1,
        found.waiting,
        counters.transactions,
        counters.inserted,
        counters.updated,
        counters.deleted,
        counters.conflicts,
        None if found.error is None else f"{found.error}; {found.error.action}",
        lag,
        seconds,
        found.altered,
        None if held is None else held.commit_scn,
        None if held is None else held.since,
        found.incomplete,
        None if held is None else held.error_id,
        found.paused,
        blocked,
        found.behind if seconds >= _BEHIND_SECONDS else None,
        None if proof is None else proof.scn or None,
        None if proof is None else proof.at,
        0 if proof is None else proof.differences,
    )


def missing_since(state: CaptureState, progress: DecodeProgress) -> float | None:
    """Return the time since which redo is missing after the last readable redo; None if no redo is
    known to be missing.

    The gap may not be between two available logs, for example if a log that Oracle lists cannot be
    read. Then the missing redo was written after the last readable log. If the source is
    unreachable, it is unknown how much redo it has written since the last query.
    """
    known = progress.source.missing_since
    if known is not None:
        return known
    if state.phase is CapturePhase.WAITING_FOR_SOURCE:
        looked_at = progress.looked_at
        return state.since if looked_at is None else min(looked_at, state.since)
    if state.phase is not CapturePhase.WAITING_FOR_REDO:
        return None
    last = progress.archived.at
    return state.since if last is None else min(last, state.since)


def first_lacking(port: PortStatus, confirmed_scn: int | None) -> int:
    """Return the SCN of the first commit that a table may lack, for a table without pending
    changes.

    Args:
        confirmed_scn: the last SCN that the applier has confirmed. If the applier has not
            subscribed yet (for example, because PostgreSQL is down), no later changes were
            delivered.
    """
    return port.taken_scn or max(port.saved_scn or 0, (confirmed_scn or 0) + 1)


def _free(config: Config) -> tuple[int, float] | None:
    """Return the free space on the disk of `context.data`, in bytes and as a share of the disk."""
    try:
        usage = shutil.disk_usage(config.context.data)
    except OSError:
        return None
    return usage.free, usage.free / max(usage.total, 1)


def process_status(memory_max: int) -> ProcessStatus:
    """Return the resources that this process uses."""
    resident = descriptors = None
    # /proc may not be mounted, and a process at its limit of open files cannot read it.
    with suppress(OSError):
        resident = int(Path("/proc/self/statm").read_text("ascii").split()[1]) * _PAGE_BYTES
        # Subtract the descriptor that is open to list the directory.
        descriptors = sum(1 for _ in Path("/proc/self/fd").iterdir()) - 1
    return ProcessStatus(os.getpid(), resident, descriptors, threading.active_count(), memory_max)


def _advised(error: OlrPgError) -> str:
    return f"{error}; {error.action}"


_HOUR_SECONDS = 3600.0

_log = structlog.get_logger(__name__)


def make_control(
    config: Config,
    reload: Callable[[], None] | None,
    withheld: Callable[[], Mapping[str, str]],
) -> Control:
    """Return the object that executes commands over HTTP, if the configuration allows such
    commands.

    Args:
        reload: triggers a reload of the configuration; None if a reload is not possible.
        withheld: returns the values that the configuration reads from the environment.

    Raises:
        OlrPgError: 8017, a token is too short.
    """
    settings = config.status
    assert settings.control is not None
    tokens = {name: token.get_secret_value() for name, token in settings.control.tokens.items()}
    host = LOOPBACK if settings.address is None else settings.address.host
    if settings.tls is None and host not in (LOOPBACK, "::1", "localhost"):
        _log.warning(
            "without status.tls, the tokens of status.control are sent unencrypted", host=host
        )
    return Control(tokens, config.file, reload, environ=withheld)


@contextmanager
def monitored(
    config: Config, parts: Sequence[Parts], data: Path, control: Control | None = None
) -> Iterator[StatusService | None]:
    """Serve the status page with its history, and run the exporter, while the context is active.

    Args:
        parts: the parts of each target.
        control: executes the commands of the page; None for a page without commands.
        data: the directory `context.data`.

    Yields:
        The status page; None if no page is configured.

    Raises:
        OlrPgError: 4009, 4010, 4030, the page cannot be served; 1180, OpenTelemetry is missing.
    """
    settings = config.status
    with ExitStack() as stack:
        observers = [stack.enter_context(Observer(one)) for one in parts]
        targets = {
            one.target.name: observer.status for one, observer in zip(parts, observers, strict=True)
        }
        which = config.metrics.tables if config.metrics else "auto"
        registry = make_registry(
            observers[0].status,
            targets,
            only_changed=None if which == "auto" else which == "changed",
        )
        postgres = config.metrics.postgres if config.metrics else None
        if postgres is not None:
            table = MetricsTable(
                postgres.connect_string.get_secret_value(),
                postgres.table_scheme,
                postgres.table_name,
                postgres.interval_seconds,
                postgres.keep_hours * _HOUR_SECONDS,
            )
            stack.enter_context(PostgresExporter(table, registry))
        otlp = config.metrics.otlp if config.metrics else None
        if otlp is not None:
            headers = {name: value.get_secret_value() for name, value in otlp.headers.items()}
            collector = Collector(
                otlp.endpoint, headers, otlp.interval_seconds, otlp.traces, settings.name or ""
            )
            stack.enter_context(exported(collector, registry))
        service = None
        if settings.enabled:
            history = HistoryStore(data / HISTORY_FILE)
            stack.enter_context(HistoryRecorder(history, targets))
            service = StatusService(
                targets,
                registry,
                ServiceSettings(
                    settings.address,
                    server_context(settings.tls) if settings.tls else None,
                    settings.allow,
                    data / FILE_NAME,
                    settings.hosts,
                ),
                history=history,
                control=control,
            )
            if control is not None:
                stack.callback(control.stop)
            stack.enter_context(service)
        yield service
