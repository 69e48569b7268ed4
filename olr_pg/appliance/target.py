"""A target of the running appliance: its port, its checkpoint, its applier."""

from __future__ import annotations

import os
import threading
import time
from errno import ENOSPC
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from olr_pg.applier.target.orphaned_transactions import orphaned_transactions
from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.files.durable import has_room, tells_of_full_disk
from olr_pg.files.owned import make_private_directory
from olr_pg.observability.periodic import steady_time

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.applier.session.applier_session import Applier, ApplyReport
    from olr_pg.config.model import Apply, Config
    from olr_pg.replicator.decoder import Delivery
    from olr_pg.server.checkpoint import Checkpoint
    from olr_pg.server.listener import Listener

RESETLOGS: Final = Code.RESETLOGS_BEHIND_DELIVERED
_PAUSE_SECONDS: Final = 5.0
_PAUSE_SECONDS_MAX: Final = 300.0
_LASTED_SECONDS: Final = 60.0
"""If an applier has run for this time, the pause after its next failure is the shortest again."""

_ROOM_SECONDS: Final = 1.0
"""Interval at which the disk is checked for free space after it was full."""

_log = structlog.get_logger(__name__)


class FullDisk(NamedTuple):
    """A full disk of `context.data`.

    Attributes:
        since: Unix time in seconds.
        error: error 1160, with the operation that failed.
    """

    since: float
    error: OlrPgError


class RunningTarget:
    """One target of a running appliance.

    Args:
        config: the configuration with this target only.
        delivery, listener, checkpoint: the parts of the port of this target.
        connect_string: connection string of the database that the bundled applier writes to.
        make_applier: creates the bundled applier for a configuration of this target. This function
            is called again after a failure and when the list of tables has changed. None if the
            clients are external.

    Attributes:
        connect_string: see above.
        applier: the bundled applier that is running or that ran last.
        failure: the error that ended the applier; None while it runs.
        full: the full disk that ended the applier, until it is restarted; otherwise None.
    """

    def __init__(
        self,
        config: Config,
        delivery: Delivery,
        listener: Listener,
        checkpoint: Checkpoint,
        connect_string: str = "",
        make_applier: Callable[[Config], Applier] | None = None,
    ) -> None:
        self.config = config
        self.delivery = delivery
        self.listener = listener
        self.checkpoint = checkpoint
        self.connect_string = connect_string
        self._make_applier = make_applier
        self.applier = None if make_applier is None else make_applier(config)
        self.failure: BaseException | None = None
        self.full: FullDisk | None = None
        self._report: ApplyReport | None = None
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        self._renewed = threading.Event()
        delivery.is_renewed = self._renewed.is_set
        self._stopping = threading.Event()
        self._pause = _PAUSE_SECONDS
        self._started = 0.0
        self._again_at = 0.0

    @property
    def name(self) -> str:
        """The target's name; empty if there is only one target."""
        return self.config.name

    @property
    def is_applied(self) -> bool:
        """Whether the target has a bundled applier."""
        return self._make_applier is not None

    @property
    def is_alive(self) -> bool:
        """Whether the target's applier is running."""
        return self._thread is not None and not self._ended.is_set()

    @property
    def busy_threads(self) -> list[Sequence[threading.Thread]]:
        """Groups of threads that have work. At least one thread of each group must make progress.

        While workers have batches, the applier's own thread is in no group, because it may wait for
        the workers.
        """
        if not self.is_alive or self.applier is None or self._thread is None:
            return []
        return self.applier.busy_threads or [(self._thread,)]

    @property
    def is_waiting(self) -> bool:
        """Whether the applier waits for a database that is unreachable."""
        applier = self.applier
        return applier is not None and applier.outage is not None and not applier.is_begun

    @property
    def is_confirmed(self) -> bool:
        """Whether all available transactions are confirmed; also True if there is no client."""
        if not self.delivery.drained.is_set():
            return False
        session = self.listener.replicating
        queue = None if session is None else session.queue
        return queue is None or queue.wait_until_confirmed(0)

    def start(self, *, once: bool) -> None:
        """Start the applier in a thread, so that the main thread can handle signals."""
        is_again, self.failure = self._started > 0, None
        if self.full is not None:
            seconds = round(steady_time() - self.full.since, 1)
            _log.info("the disk has free space again", full_seconds=seconds, **self.delivery.named)
            self.full = None
        self._started = time.monotonic()
        self._ended = ended = threading.Event()

        def work() -> None:
            try:
                self._work(once=once, is_again=is_again)
                while self._renewed.is_set() and not self._stopping.is_set():
                    self._work(once=once, is_again=True)
            except BaseException as error:  # noqa: BLE001 - looked at by the main thread
                self.failure = self._cause(error)
                self.full = self._full_disk(self.failure)
            finally:
                ended.set()

        self._thread = threading.Thread(target=work, name="olr-apply", daemon=True)
        self._thread.start()

    def _work(self, *, once: bool, is_again: bool) -> None:
        # Clear the flag before creating the applier. If the tables change after that, the flag ends
        # this applier, and the next one uses the new tables.
        self._renewed.clear()
        if is_again and self._make_applier is not None:
            self.applier = self._make_applier(self.config)
        assert self.applier is not None
        if self._stopping.is_set():
            return  # `stop` was called before the applier existed
        if self._renewed.is_set():
            self.applier.drain()
        try:
            self._report = self.applier.run(once=once, drained=self.delivery.drained.is_set)
        except OlrPgError as error:
            # If the applier restarts with other tables, the error about stopped tables is not a
            # failure.
            if error.code != Code.TABLES_STOPPED or not self._renewed.is_set():
                raise

    def renew(self, config: Config) -> None:
        """Make the applier apply the transactions that it has received and end. Then start another
        applier with the changed tables. Before the first start, only replace the applier.

        Args:
            config: the configuration with this target only.
        """
        self.config = config
        if not self._started:
            self.applier = None if self._make_applier is None else self._make_applier(config)
            return
        self._renewed.set()
        if self.applier is not None:
            self.applier.drain()

    @property
    def is_renewed(self) -> bool:
        """Whether the applier is ending so that another one can replace it."""
        return self._renewed.is_set()

    def stop(self) -> None:
        """Make the applier end after the current batches."""
        self._stopping.set()
        if self.applier is not None:
            self.applier.stop()

    def abandon(self) -> None:
        """Make the applier end at once; running statements are cancelled."""
        if self.applier is not None:
            self.applier.abandon()

    def join(self, seconds: float) -> None:
        """Wait for at most `seconds` until the applier ends.

        `Thread.join` is not used: if a signal handler raises an exception during the wait, Python
        regards the running thread as ended (CPython 3.11, bpo-45274).
        """
        if self._thread is not None:
            self._ended.wait(seconds)

    def postpone(self) -> None:
        """Record that the applier failed, so that it is restarted after a pause or when there is
        disk space.
        """
        is_late = time.monotonic() - self._started > _LASTED_SECONDS
        if is_late:
            self._pause = _PAUSE_SECONDS
        self._thread = None
        if self.full is None:
            self._tell_failure()
            self._again_at = time.monotonic() + self._pause
        else:
            _log.warning(
                "the disk of context.data is full: waiting for free space",
                error=self.full.error,
                **self.delivery.named,
            )
            self._again_at = time.monotonic() + (_ROOM_SECONDS if is_late else self._pause)
        self._pause = min(2 * self._pause, _PAUSE_SECONDS_MAX)

    def _tell_failure(self) -> None:
        reason = OlrPgError(Code.APPLIER_ENDED, str(self.failure), target=self.name)
        _log.error(
            "the applier of a target failed; it is restarted after a pause",
            code=reason.label,
            reason=str(reason),
            again_in_seconds=self._pause,
            exc_info=None if isinstance(self.failure, OlrPgError) else self.failure,
        )

    @property
    def is_postponed(self) -> bool:
        """Whether the failed applier waits for its restart."""
        return self._thread is None

    def is_due(self) -> bool:
        """Return whether the wait for the restart is over. If the applier waits for disk space,
        check the disk periodically.
        """
        if not self.is_postponed or time.monotonic() < self._again_at:
            return False
        if self.full is None or has_room(Path(self.config.context.data)):
            return True
        self._again_at = time.monotonic() + _ROOM_SECONDS
        return False

    def _full_disk(self, failure: BaseException) -> FullDisk | None:
        """Return the full disk that ended the applier; None if the applier ended for another
        reason.

        The applier knows only the errors that it receives over the port, so the disk itself is also
        checked.
        """
        path = Path(self.config.context.data)
        refused = isinstance(failure, OlrPgError) and failure.code == Code.SERVER_REFUSED
        is_told = tells_of_full_disk(failure) or (refused and os.strerror(ENOSPC) in str(failure))
        if not is_told and has_room(path):
            return None
        error = OlrPgError(Code.DATA_DISK_FULL, str(failure), path=str(path))
        return FullDisk(steady_time(), error)

    def report(self) -> None:
        """Log the result of the applier."""
        if self._report is None:
            return
        named = self.delivery.named
        for name, counters in sorted(self._report.tables.items()):
            _log.info("applied", table=name, **counters._asdict(), **named)
        # SCN 0 means that the confirmed position has not changed during this run.
        _log.info("done", confirmed_scn=self._report.confirmed_scn or "unchanged", **named)

    def _cause(self, error: BaseException) -> BaseException:
        """Return the underlying error. The applier knows only the error that it receives over the
        port; if decoding failed, the error of decoding is the cause.
        """
        if not isinstance(error, OlrPgError):
            return error
        cause = self.delivery.failure or error
        if cause.code == RESETLOGS and self.config.apply is not None:
            cause = _with_orphans(cause, self.connect_string, self.config.apply.subscription)
        if cause is not error:
            cause.__cause__ = error
        return cause


def _with_orphans(error: OlrPgError, target: str, subscription: str) -> OlrPgError:
    """Add a list of the orphaned transactions in the target to the error about a RESETLOGS of the
    source.
    """
    scn, resetlogs = (error.where.get(key) for key in ("scn", "resetlogs"))
    orphans = orphaned_transactions(
        *(target, subscription),
        scn if isinstance(scn, int) else 0,
        resetlogs if isinstance(resetlogs, int) else 0,
    )
    found = "; ".join(str(orphan) for orphan in orphans) or "none in the ledger"
    detail = f"{error.detail}; orphaned in the target: {found}"
    return OlrPgError(RESETLOGS, detail, action=None, **error.where)


def data_directory(config: Config) -> Path:
    """Return `context.data`, which all targets share; create it if it is missing.

    Raises:
        OlrPgError: 1092, the directory cannot be created.
    """
    return _made(Path(config.context.data), config)


def target_directory(config: Config) -> Path:
    """Return the directory of one target; create it if it is missing.

    Raises:
        OlrPgError: 1092, the directory cannot be created.
    """
    return _made(target_path(config), config)


def target_path(config: Config) -> Path:
    """Return the path of a target's directory, whether it exists or not."""
    data = Path(config.context.data)
    return data / "targets" / config.name if config.name else data


def confirming_applier(apply: Apply) -> str:
    """Return the name under which the checkpoint records the bundled applier."""
    return f"applier {apply.subscription}"


def is_passable(config: Config) -> bool:
    """Return whether `context.data` must allow access for an embedded PostgreSQL, which never runs
    as root.
    """
    applied = [part.apply for part in config.targets]
    return os.geteuid() == 0 and any(one is not None and one.embedded for one in applied)


def _made(directory: Path, config: Config) -> Path:
    try:
        make_private_directory(directory, passable=is_passable(config))
    except OSError as error:
        is_file = isinstance(error, FileExistsError)
        reason = "the path is not a directory" if is_file else plain_reason(error)
        raise OlrPgError(Code.DATA_DIRECTORY_UNUSABLE, reason, path=str(directory)) from error
    return directory
