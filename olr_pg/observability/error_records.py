"""Converts an `OlrPgError` to a record that says its code, what failed, where, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from olr_pg.errors import format_place
from olr_pg.observability.wording import one_line

if TYPE_CHECKING:
    from olr_pg.errors import OlrPgError, Place


class Failure(TypedDict):
    """The parts of an error, for logs and for scripts."""

    code: str
    what: str
    where: dict[str, Place]
    action: str


def failure_record(error: OlrPgError) -> Failure:
    """Split `error` into its parts."""
    return Failure(
        code=error.label,
        what=f"{error.title}: {error.detail}",
        where=dict(error.where),
        action=error.action,
    )


def format_failure(failure: Failure) -> str:
    """Format an error for people, in lines: the code and what failed, where, and what to do."""
    lines = [f"{failure['code']}: {failure['what']}"]
    if failure["where"]:
        lines.append(f"  where: {one_line(format_place(failure['where']))}")
    lines.append(f"  to do: {failure['action']}")
    return "\n".join(lines)
