"""Something about a target that does not fit, and the error that a load or a run ends it with."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.findings import Finding, error, warning

if TYPE_CHECKING:
    from collections.abc import Iterable


class Unfit(NamedTuple):
    """Names something that does not fit.

    Attributes:
        finding: for `olr-pg doctor`.
        code: of the error that refuses it; None where replication works with it, or PostgreSQL
            itself refuses what would go wrong.
    """

    finding: Finding
    code: Code | None = None


def refused_for(code: Code, check: str, what: str, *mend: str) -> Unfit:
    """Make a finding that a load and a run refuse."""
    return Unfit(error(check, what, *mend), code)


def warned_of(check: str, what: str, *mend: str) -> Unfit:
    """Make a finding that a load and a run accept."""
    return Unfit(warning(check, what, *mend))


def first_refusal(found: Iterable[Unfit]) -> OlrPgError | None:
    """Return the error of the first finding that is refused; None where there is none."""
    for one in found:
        if one.code is not None:
            return OlrPgError(one.code, one.finding.what, action=" ".join(one.finding.mend) or None)
    return None
