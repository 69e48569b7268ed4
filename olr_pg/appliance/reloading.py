"""Reloads the configuration after a SIGHUP; some changes take effect without a restart."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, cast

import structlog

from olr_pg.config.model import secret_texts
from olr_pg.config.section import Section
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.logging_setup import configure_logging

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from olr_pg.appliance.target import RunningTarget
    from olr_pg.config.model import Config, NamedTarget, Target
    from olr_pg.monitor.service import StatusService

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

_log = structlog.get_logger(__name__)


@contextmanager
def hangups() -> Iterator[threading.Event]:
    """While the context is active, SIGHUP sets the event that is yielded. This works only in the
    main thread.

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
        self._changes = self._seen_changes()

    def _seen_changes(self) -> list[int]:
        """Return for each target when `olr-pg tables` last changed its tables; 0 for never."""
        found = []
        for target in self._targets:
            try:
                found.append(target.config.changes_file().stat().st_mtime_ns)
            except OSError:
                found.append(0)
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
                "configuration not reloaded: the previous one stays in effect",
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
                    "the new list of tables was rejected: the previous one stays in effect",
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
