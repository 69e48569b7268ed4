"""A target of the running appliance: its port, its checkpoint, its client."""

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
from olr_pg.files.disk_room import has_room, tells_of_full_disk
from olr_pg.files.private import make_private_directory
from olr_pg.observability.steady_time import steady_time

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.applier.session.applier_session import Applier, ApplyReport
    from olr_pg.config.model import Config
    from olr_pg.replicator.target_feed import Delivery
    from olr_pg.server.checkpoint import Checkpoint
    from olr_pg.server.listener import Listener

RESETLOGS: Final = Code.RESETLOGS_BEHIND_DELIVERED
_PAUSE_SECONDS: Final = 5.0
_PAUSE_SECONDS_MAX: Final = 300.0
_LASTED_SECONDS: Final = 60.0
"""An applier that worked for so long begins with the shortest pause again."""

_ROOM_SECONDS: Final = 1.0
"""How often a full disk is looked at."""

_log = structlog.get_logger(__name__)


class FullDisk(NamedTuple):
    """A disk of `context.data` that has no room.

    Attributes:
        since: in seconds of Unix time.
        error: 1160, with what met it.
    """

    since: float
    error: OlrPgError


class RunningTarget:
    """Is one target of a running appliance.

    Args:
        config: the configuration of this target by itself.
        delivery, listener, checkpoint: its own.
        connect_string: of the database that its bundled applier writes to.
        make_applier: makes that applier for a configuration of this target, anew after a failure
            and for other tables; None: its clients are external.

    Attributes:
        connect_string: as above.
        applier: the bundled one at work, or the last one.
        failure: what ended it; None while it works.
        full: the full disk that ended it, until it is started again; None where there is none.
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
        self._stopping = threading.Event()
        self._pause = _PAUSE_SECONDS
        self._started = 0.0
        self._again_at = 0.0

    @property
    def name(self) -> str:
        """Is the target's name; empty where there is only one."""
        return self.config.name

    @property
    def is_applied(self) -> bool:
        """Is true where it has a bundled applier."""
        return self._make_applier is not None

    @property
    def is_alive(self) -> bool:
        """Is true while its applier works."""
        return self._thread is not None and not self._ended.is_set()

    @property
    def busy_threads(self) -> list[Sequence[threading.Thread]]:
        """Groups of threads that have work: one of each group at least has to move.

        While workers have batches, the applier's own thread may wait for them.
        """
        if not self.is_alive or self.applier is None or self._thread is None:
            return []
        return self.applier.busy_threads or [(self._thread,)]

    @property
    def is_waiting(self) -> bool:
        """Is true while its applier waits for a database that is not there yet."""
        applier = self.applier
        return applier is not None and applier.outage is not None and not applier.is_begun

    @property
    def is_confirmed(self) -> bool:
        """Is true where all that was there is confirmed, or nobody is there to confirm it."""
        if not self.delivery.drained.is_set():
            return False
        session = self.listener.replicating
        queue = None if session is None else session.queue
        return queue is None or queue.wait_until_confirmed(0)

    def start(self, *, once: bool) -> None:
        """Start the applier in a thread, so that the main one is free for signals."""
        is_again, self.failure = self._started > 0, None
        if self.full is not None:
            seconds = round(steady_time() - self.full.since, 1)
            _log.info("the disk has room again", full_seconds=seconds, **self.delivery.named)
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
        # In this order: tables that change from here on are taken by the applier after this one.
        self._renewed.clear()
        if is_again and self._make_applier is not None:
            self.applier = self._make_applier(self.config)
        assert self.applier is not None
        if self._stopping.is_set():
            return  # `stop` came before there was an applier to stop
        if self._renewed.is_set():
            self.applier.drain()
        try:
            self._report = self.applier.run(once=once, drained=self.delivery.drained.is_set)
        except OlrPgError as error:
            # Tables that have stopped do not end what goes on with the others.
            if error.code != Code.TABLES_STOPPED or not self._renewed.is_set():
                raise

    def renew(self, config: Config) -> None:
        """Let the applier end with what it has received, and another one begin with other tables.

        Args:
            config: of this target by itself.
        """
        self.config = config
        self._renewed.set()
        if self.applier is not None:
            self.applier.drain()

    @property
    def is_renewed(self) -> bool:
        """Is true while its applier ends for another one."""
        return self._renewed.is_set()

    def stop(self) -> None:
        """Let its applier end after the batches at work."""
        self._stopping.set()
        if self.applier is not None:
            self.applier.stop()

    def abandon(self) -> None:
        """Let its applier end at once: statements at work are cancelled and given up."""
        if self.applier is not None:
            self.applier.abandon()

    def join(self, seconds: float) -> None:
        """Wait for the end of its applier, so long at most.

        Not with `Thread.join`: where a signal's handler raises while that waits, a thread that is
        at work passes for ended from then on (CPython 3.11, bpo-45274).
        """
        if self._thread is not None:
            self._ended.wait(seconds)

    def postpone(self) -> None:
        """Say that its applier failed, and start it again after a pause, or once there is room."""
        is_late = time.monotonic() - self._started > _LASTED_SECONDS
        if is_late:
            self._pause = _PAUSE_SECONDS
        self._thread = None
        if self.full is None:
            self._tell_failure()
            self._again_at = time.monotonic() + self._pause
        else:
            _log.warning(
                "the disk of context.data is full and is waited for",
                error=self.full.error,
                **self.delivery.named,
            )
            self._again_at = time.monotonic() + (_ROOM_SECONDS if is_late else self._pause)
        self._pause = min(2 * self._pause, _PAUSE_SECONDS_MAX)

    def _tell_failure(self) -> None:
        reason = OlrPgError(Code.APPLIER_ENDED, str(self.failure), target=self.name)
        _log.error(
            "a target's applier has ended",
            code=reason.label,
            reason=str(reason),
            again_in_seconds=self._pause,
            exc_info=None if isinstance(self.failure, OlrPgError) else self.failure,
        )

    @property
    def is_postponed(self) -> bool:
        """Is true while its failed applier waits for being started again."""
        return self._thread is None

    def is_due(self) -> bool:
        """Tell whether the wait is over; where it is for room, the disk is probed now and then."""
        if not self.is_postponed or time.monotonic() < self._again_at:
            return False
        if self.full is None or has_room(Path(self.config.context.data)):
            return True
        self._again_at = time.monotonic() + _ROOM_SECONDS
        return False

    def _full_disk(self, failure: BaseException) -> FullDisk | None:
        """Return the full disk that ended the applier; None where it was something else.

        The applier knows only what the port told it, so that the disk is asked, too.
        """
        path = Path(self.config.context.data)
        refused = isinstance(failure, OlrPgError) and failure.code == Code.SERVER_REFUSED
        is_told = tells_of_full_disk(failure) or (refused and os.strerror(ENOSPC) in str(failure))
        if not is_told and has_room(path):
            return None
        error = OlrPgError(Code.DATA_DISK_FULL, str(failure), path=str(path))
        return FullDisk(steady_time(), error)

    def report(self) -> None:
        """Log what its applier did."""
        if self._report is None:
            return
        named = self.delivery.named
        for name, counters in sorted(self._report.tables.items()):
            _log.info("applied", table=name, **counters._asdict(), **named)
        # 0: the position is the one that the run began with.
        _log.info("done", confirmed_scn=self._report.confirmed_scn or "as before", **named)

    def _cause(self, error: BaseException) -> BaseException:
        """Find the cause: the applier knows only what the port told it; decoding may fail."""
        if not isinstance(error, OlrPgError):
            return error
        cause = self.delivery.failure or error
        if cause.code == RESETLOGS and self.config.apply is not None:
            cause = _with_orphans(cause, self.connect_string, self.config.apply.subscription)
        if cause is not error:
            cause.__cause__ = error
        return cause


def _with_orphans(error: OlrPgError, target: str, subscription: str) -> OlrPgError:
    """Return the error of a source opened with RESETLOGS, with what the target has too much."""
    scn = error.where.get("scn")
    orphans = orphaned_transactions(target, subscription, scn if isinstance(scn, int) else 0)
    found = "; ".join(str(orphan) for orphan in orphans) or "none in the ledger"
    return OlrPgError(RESETLOGS, f"{error.detail}; orphaned in the target: {found}", scn=scn)


def data_directory(config: Config) -> Path:
    """Return `context.data`, made where it is missing: what all targets share.

    Raises:
        OlrPgError: 1092.
    """
    return _made(Path(config.context.data), config)


def target_directory(config: Config) -> Path:
    """Return the directory of one target by itself, made where it is missing.

    Raises:
        OlrPgError: 1092.
    """
    return _made(target_path(config), config)


def target_path(config: Config) -> Path:
    """Return where that directory is, or will be."""
    data = Path(config.context.data)
    return data / "targets" / config.name if config.name else data


def is_passable(config: Config) -> bool:
    """Tell whether an embedded PostgreSQL, which is never root, must get through `context.data`."""
    applied = [part.apply for part in config.targets]
    return os.geteuid() == 0 and any(one is not None and one.embedded for one in applied)


def _made(directory: Path, config: Config) -> Path:
    try:
        make_private_directory(directory, passable=is_passable(config))
    except OSError as error:
        raise OlrPgError(
            Code.DATA_DIRECTORY_UNUSABLE, plain_reason(error), path=str(directory)
        ) from error
    return directory
