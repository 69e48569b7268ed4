"""Spans of the appliance's work, for whoever collects traces; nothing is made where nobody does.

The rooms that work name their spans here; `olr_pg.monitor.otlp` collects them where the
configuration asks for it (`metrics.otlp`). So no room needs OpenTelemetry's library.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    Begin = Callable[[str, dict[str, Any]], AbstractContextManager[Any]]
    """Begins a span of a name with attributes."""

_collector: list[Begin] = []
_NOTHING: Final = nullcontext()


def span(name: str, **attributes: str | int) -> AbstractContextManager[Any]:
    """Return the span of a piece of work, which lasts as long as the context.

    An exception that leaves the context marks the span as failed.

    Args:
        attributes: what tells one such span from another; names of tables, SCNs and counts, never
            values of rows.
    """
    if not _collector:
        return _NOTHING
    return _collector[-1](
        f"olr_pg.{name}", {f"olr_pg.{key}": attributes[key] for key in attributes}
    )


def collect(begin: Begin) -> None:
    """Hand every span to `begin` from now on, until `end_collecting`."""
    _collector.append(begin)


def end_collecting() -> None:
    """Make no spans any more."""
    _collector.clear()
