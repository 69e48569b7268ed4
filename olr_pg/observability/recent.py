"""Keeps the latest warnings and errors that were logged, for the status of a running appliance."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, MutableMapping
from typing import Any, Final

EVENTS_MAX: Final = 50

_GRAVE: Final = ("warning", "error", "critical", "exception")
_TEXT_MAX: Final = 2_000

# The process has one list, as it has one structlog configuration.
_events: deque[Mapping[str, object]] = deque(maxlen=EVENTS_MAX)
_lock = threading.Lock()


def remember(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Keep an event if it is a warning or an error. This is a structlog processor; it runs after
    secrets were removed.
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
