"""The main loop of the appliance, in the main thread: restarts failed appliers, and decides when to
end.

The loop reports to the service manager (systemd) that the appliance is alive (`Watchdog`). If a
thread that has work makes no progress for `STILL_SECONDS`, the reports end, and systemd restarts
the process (``WatchdogSec=``). A thread can wait for something external, such as a lock in
PostgreSQL or a source that does not answer. Such a thread does not count as stuck: its waits have
time limits, so it runs periodically. A thread that waits for Spark while a backlog is decoded does
not count as stuck either.

The loop reloads the configuration after a SIGHUP. Some changes take effect without a restart.
"""

from __future__ import annotations

import signal
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, cast

import structlog

from olr_pg.config.changed_tables import TableChanges, read_table_changes
from olr_pg.config.fields import Section
from olr_pg.config.model import Config, NamedTarget, Target, secret_texts
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.advised_commands import complete_commands
from olr_pg.observability.logging_setup import configure_logging
from olr_pg.observability.service_manager import ServiceManager, ThreadActivity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from olr_pg.appliance.target import RunningTarget
    from olr_pg.monitor.service import StatusService
    from olr_pg.replicator.decoder import Decoder

_WAIT_SECONDS: Final = 0.2
_REST_SECONDS: Final = 2.0
"""The last seconds of the time limit; they are reserved for cancelling statements and closing
connections and files.
"""

_log = structlog.get_logger(__name__)


class Serving:
    """Starts the targets' appliers, and ends when there is no more work.

    If there are several targets, the failure of an applier does not end the others: the failed
    applier is restarted after a pause (OLR-04043). The appliance ends only if all appliers have
    failed and there are no external clients.

    If the disk of `context.data` is full (OLR-01160), the appliance does not end: the affected
    appliers restart when there is space.

    Args:
        decoder: the decoder; it is told which targets are unavailable.
        once: end when all available changes are confirmed; failed appliers are not restarted.
        polls: functions that are called periodically.
    """

    def __init__(
        self,
        targets: Sequence[RunningTarget],
        decoder: Decoder,
        *,
        once: bool,
        polls: Sequence[Callable[[], None]],
    ) -> None:
        self._targets = targets
        self._applied = [target for target in targets if target.is_applied]
        self._served = [target for target in targets if not target.is_applied]
        self._decoder = decoder
        self._once = once
        self._polls = polls
        self._says_waiting = False

    def run(self, drain_seconds: float, ending_seconds: float) -> None:
        """Serve until the end.

        Args:
            drain_seconds: time limit, after SystemExit, to apply and confirm the transactions that
                were received.
            ending_seconds: time limit from the end of the loop, whatever its reason, to the end of
                the process.

        Raises:
            OlrPgError: the error of the first failed target.
        """
        try:
            # The list of tables may have changed since the configuration was read: a command that
            # found no status page has not waited for this appliance.
            self._poll()
            for target in self._applied:
                target.start(once=self._once)
            while not self._is_over():
                self._wait()
                self._poll()
        except SystemExit:
            began = time.monotonic()
            abandons_in = ending_seconds - min(_REST_SECONDS, ending_seconds / 4)
            self._drain(min(drain_seconds, abandons_in))
            ending_seconds -= time.monotonic() - began
            raise
        finally:
            self._end(time.monotonic() + ending_seconds)
        for target in self._applied:
            target.report()

    def _poll(self) -> None:
        for poll in self._polls:
            poll()

    def _end(self, deadline: float) -> None:
        """Stop the appliers. Shortly before `deadline`, abandon the appliers that have not
        ended.
        """
        rest = min(_REST_SECONDS, max(0.0, deadline - time.monotonic()) / 4)
        for target in self._applied:
            target.stop()
        for target in self._applied:
            target.join(max(0.0, deadline - rest - time.monotonic()))
        late = [target for target in self._applied if target.is_alive]
        for target in late:
            _log.warning(
                "the applier did not stop in time: cancelling its running statements",
                **target.delivery.named,
            )
            target.abandon()
        for target in late:
            target.join(max(0.0, deadline - rest / 4 - time.monotonic()))

    def _wait(self) -> None:
        """Wait for `_WAIT_SECONDS`, or until the first applier ends."""
        at_work = [target for target in self._applied if target.is_alive]
        if at_work:
            at_work[0].join(_WAIT_SECONDS)
        else:
            time.sleep(_WAIT_SECONDS)

    def _is_over(self) -> bool:
        """Return whether the loop can end. Otherwise restart failed appliers whose pause is over.

        Raises:
            OlrPgError: a failure that ends the loop.
        """
        at_work = [target for target in self._applied if target.is_alive]
        failed = [target for target in self._applied if target.failure and not target.is_alive]
        for target in self._applied:
            if target in failed or target.is_waiting:
                self._decoder.runs.stop_expecting(target.name)
        if self._once:
            if at_work:
                return False
            if failed:
                raise _failure(failed[0])
            return self._is_taken()
        lasting = [target for target in failed if target.full is None]
        if lasting and len(lasting) == len(self._targets):
            raise _failure(lasting[0])
        for target in failed:
            if target.is_due():
                target.start(once=False)
            elif not target.is_postponed:
                target.postpone()
        return bool(self._applied) and not (at_work or failed or self._served)

    def _is_taken(self) -> bool:
        """Return whether the external clients have confirmed all transactions. The first time that
        a client has not confirmed all of them, log that the appliance waits for the external
        clients.
        """
        waiting = [target for target in self._served if not target.is_confirmed]
        if waiting and not self._says_waiting:
            self._says_waiting = True
            addresses = [":".join(map(str, target.listener.address)) for target in waiting]
            _log.info("waiting for external clients to confirm all transactions", ports=addresses)
        return not waiting

    def _drain(self, seconds: float) -> None:
        """Make the appliers apply and confirm the transactions that they have received."""
        _log.info("terminating: applying the transactions received so far", seconds_max=seconds)
        deadline = time.monotonic() + seconds
        for target in self._applied:
            if target.applier is not None:
                target.applier.drain()
        for target in self._applied:
            target.join(max(0.0, deadline - time.monotonic()))
            if target.applier is not None:
                confirmed = target.applier.confirmed_scn
                _log.info(
                    "the applier has ended",
                    confirmed_scn=confirmed or "none yet",
                    **target.delivery.named,
                )


def _failure(target: RunningTarget) -> BaseException:
    """Return the failure of a target. If there are several targets, the error's place and the
    commands of its action name this target.
    """
    failure, named = target.failure, target.delivery.named
    assert failure is not None
    if not isinstance(failure, OlrPgError) or not named:
        return failure
    action = complete_commands(failure.action, None, target.name)
    of_target = OlrPgError(failure.code, failure.detail, action=action, **(failure.where | named))
    return of_target.with_traceback(failure.__traceback__)


STILL_SECONDS: Final = 900.0
"""Seconds without progress after which a thread counts as stuck. This time is longer than any wait
for an answer of Oracle, during which a thread makes no progress.
"""

_DECODING: Final = "olr-decode"


class Watchdog:
    """Reports that the appliance is alive; the main loop calls `poll` periodically.

    Args:
        targets: the targets whose threads must make progress.
        still_seconds: seconds without activity after which a thread counts as stuck.
    """

    def __init__(
        self,
        service_manager: ServiceManager,
        targets: Sequence[RunningTarget],
        activity: ThreadActivity | None = None,
        still_seconds: float = STILL_SECONDS,
    ) -> None:
        self._service_manager = service_manager
        self._targets = targets
        self._activity = activity or ThreadActivity()
        self._still_seconds = still_seconds
        self._is_told = False

    def poll(self) -> None:
        """Report that the appliance is alive, unless a thread is stuck."""
        seconds, names = self._activity.longest_still(self._busy())
        if seconds < self._still_seconds:
            self._is_told = False
            self._service_manager.alive()
        elif not self._is_told:
            self._is_told = True
            error = OlrPgError(
                Code.THREAD_STUCK, f"{names}: no progress for {seconds:.0f} s", threads=names
            )
            _log.error(str(error), code=error.label, action=error.action)

    def _busy(self) -> list[Sequence[threading.Thread]]:
        decoding = [(one,) for one in threading.enumerate() if one.name == _DECODING]
        return [*decoding, *(group for one in self._targets for group in one.busy_threads)]


RELOADABLE: Final = (
    "apply.tables",
    "target.apply.tables",
    "log.level",
    "log.format",
    "target.allow",
    "target.limits",
    "status.allow",
)
"""Keys that can change without a restart; the keys below them can change too."""


@contextmanager
def hangups() -> Iterator[threading.Event]:
    """While the context is active, SIGHUP sets the event that is yielded. Signals can be received
    only in the main thread.

    Enter the context before anything is started, because by default SIGHUP ends the process.
    """
    hung_up = threading.Event()
    before = signal.signal(signal.SIGHUP, lambda _signal, _frame: hung_up.set())
    try:
        yield hung_up
    finally:
        signal.signal(signal.SIGHUP, before)


class Reloader:
    """Applies changes of the configuration while the appliance runs.

    Args:
        config: the current configuration.
        load: loads the configuration file.
        service: the status page, if there is one.
        wanted: an event that is set when a reload is requested.
        targets: the targets in the order of the configuration. The applier of a target restarts if
            the target's tables have changed.
    """

    def __init__(
        self,
        config: Config,
        load: Callable[[], Config],
        service: StatusService | None,
        wanted: threading.Event,
        targets: Sequence[RunningTarget] = (),
    ) -> None:
        self._config = config
        self._load = load
        self._service = service
        self._wanted = wanted
        self._targets = targets
        # A command may have changed the tables after the configuration was read.
        self._changes: list[TableChanges | None] = [
            target.config.apply.changes if target.config.apply else None for target in targets
        ]

    def _seen_changes(self) -> list[TableChanges | None]:
        """Return for each target the tables that `olr-pg tables` has added and removed; None if
        they cannot be read, or if the target has no bundled applier.
        """
        found: list[TableChanges | None] = []
        for target in self._targets:
            changes = None
            with suppress(OlrPgError):
                if target.config.apply:
                    changes = read_table_changes(target.config.changes_file())
            found.append(changes)
        return found

    def poll(self) -> None:
        """Reload if a reload was requested, or if `olr-pg tables` has changed the tables of a
        target.
        """
        seen = self._seen_changes()
        if self._wanted.is_set() or seen != self._changes:
            self._changes = seen
            self._wanted.clear()
            self.reload()

    def reload(self) -> None:
        """Load the file again and apply its changes; an invalid file changes nothing."""
        try:
            fresh = self._load()
        except OlrPgError as error:
            _log.warning(
                "configuration not reloaded: the previous configuration stays in effect",
                error=OlrPgError(Code.CHANGED_CONFIG_REFUSED, str(error)),
            )
            return
        changed = changed_keys(self._config, fresh)
        taken = [key for key in changed if _is_reloadable(key)]
        refused = [key for key in changed if not _is_reloadable(key)]
        secrets = {*secret_texts(self._config), *secret_texts(fresh)}
        renewed = self._renew(fresh)
        self._take(fresh)
        if any(key.startswith("log.") for key in taken):
            configure_logging(fresh.log.level, fresh.log.format, secrets=secrets)
        tables = {"tables_of": renewed} if renewed else {}
        _log.info("configuration reloaded", taken=taken, **tables)
        if refused:
            _log.warning("some changed options take effect only after a restart", keys=refused)

    def _renew(self, fresh: Config) -> list[str]:
        """Restart the appliers whose tables have changed; return the names of their targets."""
        known = {part.name: part.apply for part in fresh.targets}
        renewed = []
        for target in self._targets:
            apply, before = known.get(target.name), target.config.apply
            if apply is None or before is None or apply.table_query == before.table_query:
                continue
            try:
                target.delivery.tables(apply.table_query)
            except OlrPgError as error:
                _log.warning(
                    "the new list of tables was rejected: the previous list stays in effect",
                    error=error,
                    **target.delivery.named,
                )
                continue
            # Take only the tables from the new section, because the other options need a restart.
            taken = before.model_copy(update={"tables": apply.tables}).with_changes(apply.changes)
            target.renew(target.config.model_copy(update={"apply": taken}))
            renewed.append(target.name or "the target")
        return renewed

    def _take(self, fresh: Config) -> None:
        old, new = self._config.target, fresh.target
        ports: list[Target] = []
        if _alike(old, new):
            for running, before, after in zip(
                self._targets, _entries(old), _entries(new), strict=True
            ):
                update = {"allow": after.allow, "limits": after.limits}
                listener = running.listener
                listener.settings = listener.settings._replace(
                    allow=after.allow, limits=after.limits
                )
                ports.append(before.model_copy(update=update))
            for number, one in enumerate(self._targets if isinstance(old, tuple) else ()):
                ports[number] = ports[number].model_copy(update={"apply": one.config.apply})
        if self._service is not None:
            self._service.allow = fresh.status.allow
        target = old if not ports else tuple(ports) if isinstance(old, tuple) else ports[0]
        self._config = self._config.model_copy(
            update={
                "log": fresh.log,
                "target": target,
                "apply": self._targets[0].config.apply
                if self._targets and not isinstance(old, tuple)
                else self._config.apply,
                "status": self._config.status.model_copy(update={"allow": fresh.status.allow}),
            }
        )


def _entries(target: Target | tuple[NamedTarget, ...]) -> tuple[Target, ...]:
    return target if isinstance(target, tuple) else (target,)


def _sections(value: object) -> tuple[Section, ...]:
    return value if isinstance(value, tuple) else (cast("Section", value),)


def _alike(old: object, new: object) -> bool:
    """Return whether both are sections of the same type, or lists of targets with the same
    names.
    """
    if isinstance(old, tuple) and isinstance(new, tuple):
        names = [[getattr(one, "name", None) for one in entries] for entries in (old, new)]
        return names[0] == names[1] and None not in names[0]
    return isinstance(old, Section) and type(old) is type(new)


def changed_keys(old: Section, new: Section, prefix: str = "") -> list[str]:
    """List the changed keys, with dots as in the file; a key of a target in a list is named as if
    there were only one target.
    """
    found: list[str] = []
    for name, field in type(old).model_fields.items():
        key = prefix + (field.serialization_alias or field.alias or name)
        before, after = getattr(old, name), getattr(new, name, None)
        if before == after:
            continue
        if not _alike(before, after):
            found.append(key)
            continue
        for one, other in zip(_sections(before), _sections(after), strict=True):
            found += changed_keys(one, other, key + ".")
    return list(dict.fromkeys(found))


def _is_reloadable(key: str) -> bool:
    return any(key == one or key.startswith(one + ".") for one in RELOADABLE)
