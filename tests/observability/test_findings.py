"""What `olr-pg doctor` finds, as a value."""

from __future__ import annotations

from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.findings import Severity, coded, error, warning


def test_errors_are_worse_than_warnings() -> None:
    assert Severity.ERROR > Severity.WARNING
    assert error("a", "b").severity is Severity.ERROR
    assert warning("a", "b").severity is Severity.WARNING


def test_an_error_of_the_catalogue_is_a_finding_with_its_place_and_action() -> None:
    problem = OlrPgError(Code.TABLE_UNKNOWN, "not there", action="name it", table="A.B")
    found = coded("source.tables", problem, severe=False)
    assert found.severity is Severity.WARNING
    assert found.what == f"{problem.label} {problem.title}: not there [table A.B]"
    assert found.mend == ("name it",)
    assert coded("source.tables", problem).severity is Severity.ERROR


def test_as_json() -> None:
    assert error("oracle.x", "is off", "SQL 1", "SQL 2").as_json() == {
        "severity": "error",
        "check": "oracle.x",
        "what": "is off",
        "mend": ["SQL 1", "SQL 2"],
    }
