"""Describes what ``olr-pg doctor`` finds: one value per thing that is wrong, with what mends it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from olr_pg.errors import format_place

if TYPE_CHECKING:
    from olr_pg.errors import OlrPgError


class Severity(IntEnum):
    """Says how bad a finding is."""

    WARNING = 1
    ERROR = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """Describes one thing that is wrong.

    Attributes:
        check: of which check, a short stable name such as ``oracle.archivelog``.
        what: what is wrong, one sentence without a final full stop.
        mend: what to do, line by line: SQL as it is to be run, or words.
    """

    severity: Severity
    check: str
    what: str
    mend: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the finding for ``--json``."""
        return {
            "severity": self.severity.name.lower(),
            "check": self.check,
            "what": self.what,
            "mend": list(self.mend),
        }


def error(check: str, what: str, *mend: str) -> Finding:
    """Something that keeps the appliance from working, or from being right."""
    return Finding(Severity.ERROR, check, what, mend)


def warning(check: str, what: str, *mend: str) -> Finding:
    """Something that will, or may, be missed."""
    return Finding(Severity.WARNING, check, what, mend)


def coded(check: str, problem: OlrPgError, *, severe: bool = True) -> Finding:
    """Make a finding of an error of the catalogue; a warning where it is not `severe`."""
    report = error if severe else warning
    place = format_place(problem.where)
    what = f"{problem.label} {problem.title}: {problem.detail}" + (f" [{place}]" if place else "")
    return report(check, what, problem.action)
