"""Handles internal errors of the conversion, so that an error in one object does not end the
command.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog

from olr_pg.schema.statement import Statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

_log = structlog.get_logger(__name__)

_DEEP: Final = "it is nested too deeply to be translated"


def failure_reason(error: Exception) -> str:
    """Return one line that says where the conversion failed. Log the error with its traceback."""
    if isinstance(error, RecursionError):
        return _DEEP
    _log.error("converting an object of the source failed", exc_info=error)
    place = _place(error.__traceback__)
    return (
        f"olr_pg has a defect ({type(error).__name__} in {place}): report it"
        " with the text of the object"
    )


def _place(calls: TracebackType | None) -> str:
    place = "an unknown place"
    while calls is not None:
        place = f"{Path(calls.tb_frame.f_code.co_filename).name}:{calls.tb_lineno}"
        calls = calls.tb_next
    return place


def each_safely(
    what: str, name: str, source: str, make: Callable[[], Iterable[Statement]]
) -> Iterator[Statement]:
    """Yield the statements of one object. If `make` raises an error, yield a statement without SQL
    whose `reason` describes the error.
    """
    try:
        yield from list(make())
    except Exception as error:  # noqa: BLE001 - one object must not end the command: it is listed
        yield Statement("by hand", name, "", failure_reason(error), source, what=what)
