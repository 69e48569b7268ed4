"""Defines the findings of ``olr-pg doctor``. A finding describes a problem, and how to fix it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from olr_pg.errors import format_place

if TYPE_CHECKING:
    from olr_pg.errors import OlrPgError


class Severity(IntEnum):
    """The severity of a finding."""

    WARNING = 1
    ERROR = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem that a check has found.

    Attributes:
        check: the name of the check, short and stable, such as ``oracle.archivelog``.
        what: the problem, as one sentence without a final full stop.
        mend: how to fix the problem: lines of SQL to run, or of text.
    """

    severity: Severity
    check: str
    what: str
    mend: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the finding in the form in which ``--json`` prints it."""
        return {
            "severity": self.severity.name.lower(),
            "check": self.check,
            "what": self.what,
            "mend": list(self.mend),
        }


def error(check: str, what: str, *mend: str) -> Finding:
    """Return a finding about a problem that prevents the appliance from working, or from
    replicating correctly.
    """
    return Finding(Severity.ERROR, check, what, mend)


def warning(check: str, what: str, *mend: str) -> Finding:
    """Return a finding about a problem that does not prevent replication, but because of which
    something is or may be lost.
    """
    return Finding(Severity.WARNING, check, what, mend)


def coded(check: str, problem: OlrPgError, *, severe: bool = True) -> Finding:
    """Return a finding for an error of the catalogue: an error if `severe`, otherwise a warning."""
    report = error if severe else warning
    place = format_place(problem.where)
    what = f"{problem.label} {problem.title}: {problem.detail}" + (f" [{place}]" if place else "")
    return report(check, what, problem.action)
