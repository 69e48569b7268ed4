"""Configures the log: structured events on stderr, as lines for people or as JSON.

Levels are numbers, as in OpenLogReplicator (OLR): 0 logs nothing, 1 only critical errors, 2 errors
and warnings, 3 also information about what a running appliance does (the default). Level 4, which
OLR does not have, adds debugging detail. A critical error ends the run, or stops a table or a
target; each event of the log level "error" is critical. The configured level does not affect which
warnings and errors the status page shows.

Code that logs an `OlrPgError` passes it as ``error=``. The error's code, what failed, where, and
what to do become keys of the event. A `Redactor` removes secrets from every event before it is
rendered. Log records of libraries that use the standard library's `logging` (such as Spark's
gateway and the database drivers) are processed in the same way.

The latest warnings and errors are kept for the status of a running appliance (`recent_events`).

The module imports structlog without rich, which structlog would import for coloured tracebacks.
Tracebacks are already text when they reach structlog's renderer, and to import rich would take a
tenth of the run time of a short command.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections import deque
from collections.abc import Iterable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO

from olr_pg.errors import OlrPgError, plain_reason
from olr_pg.observability.advised_commands import failure_record
from olr_pg.observability.redaction import Redactor, register_secrets
from olr_pg.observability.wording import one_line, visible

if TYPE_CHECKING:
    from pydantic import SecretStr
    from structlog.typing import FilteringBoundLogger, Processor

_modules: dict[str, Any] = sys.modules
_RICH = "rich"

if _RICH in _modules:
    import structlog
else:
    _modules[_RICH] = None  # pretend that rich is not installed
    try:
        import structlog
    finally:
        del _modules[_RICH]

EVENTS_MAX: Final = 50

_GRAVE: Final = ("warning", "error", "critical", "exception")
_TEXT_MAX: Final = 2_000

# The process has one list, as it has one structlog configuration.
_events: deque[Mapping[str, object]] = deque(maxlen=EVENTS_MAX)
_lock = threading.Lock()


def remember(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Keep an event if it is a warning or an error. The function is a structlog processor that runs
    after secrets were removed.
    """
    if event.get("level") in _GRAVE:
        kept = {
            key: value if isinstance(value, int | float | None) else _short(value)
            for key, value in event.items()
            if not key.startswith("_")
        }
        with _lock:
            _events.append(kept)
    return event


def recent_events() -> tuple[Mapping[str, object], ...]:
    """Return the latest warnings and errors, the newest last."""
    with _lock:
        return tuple(_events)


def _short(value: object) -> str:
    text = (
        value
        if isinstance(value, str)
        else ", ".join(f"{key} {item}" for key, item in value.items())
        if isinstance(value, Mapping)
        else str(value)
    )
    return text[:_TEXT_MAX]


LogFormat = Literal["human", "json"]

_NOTHING: Final = logging.CRITICAL + 1

LEVELS: Final[tuple[int, ...]] = (
    _NOTHING,
    logging.ERROR,
    logging.WARNING,
    logging.INFO,
    logging.DEBUG,
)
"""The standard library's log level for each of our levels."""

CRITICAL: Final = 1
WARNINGS: Final = 2
INFORMATION: Final = 3
DEBUG: Final = 4

_REMEMBERED: Final = logging.WARNING
"""Events of this level or a higher one are kept for the status page, regardless of the configured
level.
"""

_FOREIGN_LEVEL_MIN: Final = logging.WARNING

_NUMBERS: Final = {
    name.lower(): number for name, number in logging.getLevelNamesMapping().items()
} | {"exception": logging.ERROR}
"""The standard library's level for each level name of an event."""

_Event = MutableMapping[str, Any]


def get_logger(name: str) -> FilteringBoundLogger:
    """Return the logger of a part of the appliance; `name` becomes the event's key
    ``component``.
    """
    logger: FilteringBoundLogger = structlog.get_logger(component=name)
    return logger


def configure_logging(
    level: int = INFORMATION,
    log_format: LogFormat = "human",
    *,
    secrets: Iterable[str | SecretStr] = (),
    stream: TextIO | None = None,
) -> None:
    """Configure logging for the whole process; a later call replaces an earlier one.

    Args:
        level: 0 to 4.
        log_format: ``human`` or ``json`` (one object per line).
        secrets: texts that must never be printed.
        stream: where to write; default: stderr.

    Raises:
        ValueError: `level` is out of range.
    """
    if not 0 <= level < len(LEVELS):
        raise ValueError(f"log level {level} is not in 0..{len(LEVELS) - 1}")
    stream = stream or sys.stderr
    secrets = tuple(secrets)
    register_secrets(secrets)
    processors = _processors(Redactor(secrets))
    renderers = _renderers(log_format, colors=stream.isatty())
    structlog.configure(
        processors=[*processors, _above(LEVELS[level]), *renderers],
        wrapper_class=structlog.make_filtering_bound_logger(min(LEVELS[level], _REMEMBERED)),
        logger_factory=structlog.WriteLoggerFactory(stream),
        # Loggers are created at import time; caching would keep their first configuration.
        cache_logger_on_first_use=False,
    )
    _configure_foreign(level, stream, processors, renderers)


def _configure_foreign(
    level: int, stream: TextIO, processors: list[Processor], renderers: list[Processor]
) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                structlog.stdlib.add_logger_name,
                # The status page shows only events of the appliance; events of libraries go only to
                # the log.
                *(one for one in processors if one is not remember),
            ],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    # psycopg logs a warning at each lost connection, although the error is ignored; the applier
    # logs the errors that matter.
    logging.getLogger("psycopg").setLevel(logging.NOTSET if level == DEBUG else logging.ERROR)
    # Log information events of libraries only at our debugging level.
    root.setLevel(logging.INFO if level == DEBUG else max(LEVELS[level], _FOREIGN_LEVEL_MIN))


def _above(least: int) -> Processor:
    """Return a processor that drops events below the standard library's level `least`."""

    def drop_lower(_logger: object, _method: str, event: _Event) -> _Event:
        if _NUMBERS.get(event.get("level", ""), logging.INFO) < least:
            raise structlog.DropEvent
        return event

    return drop_lower


def _processors(redactor: Redactor) -> list[Processor]:
    def redact(_logger: object, _method: str, event: _Event) -> _Event:
        return {
            # Keys that begin with _, such as `_record`, belong to structlog.
            key: value if key.startswith("_") else redactor.entry(key, value)
            for key, value in event.items()
        }

    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        explain_failure,
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        redact,
        remember,
    ]


def _renderers(log_format: LogFormat, *, colors: bool) -> list[Processor]:
    if log_format == "json":
        return [
            structlog.processors.EventRenamer("message"),
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ]
    return [
        flatten_place,
        show_controls,
        structlog.dev.ConsoleRenderer(colors=colors, sort_keys=False),
    ]


def explain_failure(_logger: object, _method: str, event: _Event) -> _Event:
    """Replace an `OlrPgError` under the key ``error`` by the keys code, what, where (if the error
    has a place) and action.
    """
    error = event.get("error")
    if isinstance(error, OlrPgError):
        del event["error"]
        event.update((key, value) for key, value in failure_record(error).items() if value)
    elif isinstance(error, BaseException):
        event["error"] = plain_reason(error)
    return event


def show_controls(_logger: object, _method: str, event: _Event) -> _Event:
    """Replace the control characters of the texts, which a terminal would execute, by escapes. In
    the message, do so with ends of lines, too, because a name in it must not forge a line of the
    log. In other values, structlog does this, except in tracebacks.
    """
    shown = {
        key: visible(value) if isinstance(value, str) else value for key, value in event.items()
    }
    if isinstance(shown.get("event"), str):
        shown["event"] = one_line(shown["event"])
    return shown


def flatten_place(_logger: object, _method: str, event: _Event) -> _Event:
    """Convert the value of the key ``where`` to text for people."""
    if isinstance(event.get("where"), dict):
        event["where"] = ", ".join(f"{key} {value}" for key, value in event["where"].items())
    return event
