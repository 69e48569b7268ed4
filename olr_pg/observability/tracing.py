"""Creates spans of the appliance's work for tracing; if nothing collects them, it creates none.

All other rooms (folders of `olr_pg`) create their spans with this module. `olr_pg.monitor.exporter`
collects the spans if `metrics.otlp` is configured. So only that module needs OpenTelemetry's
library.
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

    If an exception leaves the context, the span is marked as failed.

    Args:
        attributes: attributes of the span: names of tables, SCNs and counts, never values of rows.
    """
    if not _collector:
        return _NOTHING
    return _collector[-1](
        f"olr_pg.{name}", {f"olr_pg.{key}": attributes[key] for key in attributes}
    )


def collect(begin: Begin) -> None:
    """From now on, pass every new span to `begin`, until `end_collecting` is called."""
    _collector.append(begin)


def end_collecting() -> None:
    """End tracing: create no spans from now on."""
    _collector.clear()
