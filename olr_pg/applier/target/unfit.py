"""A property of the target that is unfit for replication, and the error with which a load or a run
refuses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.findings import Finding, error, warning

if TYPE_CHECKING:
    from collections.abc import Iterable


class Unfit(NamedTuple):
    """An unfit property of the target.

    Attributes:
        finding: the result that `olr-pg doctor` prints.
        code: the code of the error with which a load or a run refuses the target. None if it does
            not, because replication works with this property, or because PostgreSQL itself reports
            the error.
    """

    finding: Finding
    code: Code | None = None


def refused_for(code: Code, check: str, what: str, *mend: str) -> Unfit:
    """Return an unfit property because of which a load or a run refuses the target."""
    return Unfit(error(check, what, *mend), code)


def warned_of(check: str, what: str, *mend: str) -> Unfit:
    """Return an unfit property with which a load or a run accepts the target."""
    return Unfit(warning(check, what, *mend))


def first_refusal(found: Iterable[Unfit]) -> OlrPgError | None:
    """Return the error for the first property because of which the target is refused, or None."""
    for one in found:
        if one.code is not None:
            return OlrPgError(one.code, one.finding.what, action=" ".join(one.finding.mend) or None)
    return None
