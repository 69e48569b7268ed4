"""Converts an `OlrPgError` to a record: code, what failed, where, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from olr_pg.errors import format_place

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
    """Return the lines for people: code and what failed, where, what to do."""
    lines = [f"{failure['code']}: {failure['what']}"]
    if failure["where"]:
        lines.append(f"  where: {format_place(failure['where'])}")
    lines.append(f"  to do: {failure['action']}")
    return "\n".join(lines)
