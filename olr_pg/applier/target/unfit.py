"""A property of the target that is unfit, and the error with which a load or a run refuses it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.findings import Finding, error, warning

if TYPE_CHECKING:
    from collections.abc import Iterable


class Unfit(NamedTuple):
    """An unfit property of the target.

    Attributes:
        finding: for `olr-pg doctor`.
        code: of the error that refuses it; None if replication works with it, or if PostgreSQL
            itself refuses the failing operations.
    """

    finding: Finding
    code: Code | None = None


def refused_for(code: Code, check: str, what: str, *mend: str) -> Unfit:
    """Return a finding that a load and a run refuse."""
    return Unfit(error(check, what, *mend), code)


def warned_of(check: str, what: str, *mend: str) -> Unfit:
    """Return a finding that a load and a run accept."""
    return Unfit(warning(check, what, *mend))


def first_refusal(found: Iterable[Unfit]) -> OlrPgError | None:
    """Return the error of the first refused finding, or None."""
    for one in found:
        if one.code is not None:
            return OlrPgError(one.code, one.finding.what, action=" ".join(one.finding.mend) or None)
    return None
