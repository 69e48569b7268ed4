"""Spans of the appliance's work for tracing; without a collector no spans are made.

The rooms name their spans by this module; `olr_pg.monitor.otlp` collects them if configured
(`metrics.otlp`). So no other room needs OpenTelemetry's library.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    Begin = Callable[[str, dict[str, Any]], AbstractContextManager[Any]]
    """Begins a span with a name and attributes."""

_collector: list[Begin] = []
_NOTHING: Final = nullcontext()


def span(name: str, **attributes: str | int) -> AbstractContextManager[Any]:
    """Return the span of some work; it lasts while the context is active.

    An exception that leaves the context marks the span as failed.

    Args:
        attributes: attributes that distinguish the span: names of tables, SCNs and counts, never
            values of rows.
    """
    if not _collector:
        return _NOTHING
    return _collector[-1](
        f"olr_pg.{name}", {f"olr_pg.{key}": attributes[key] for key in attributes}
    )


def collect(begin: Begin) -> None:
    """Pass every span to `begin` from now on, until `end_collecting`."""
    _collector.append(begin)


def end_collecting() -> None:
    """Stop making spans."""
    _collector.clear()
