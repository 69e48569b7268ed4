"""Errors of the catalogue as records and as text."""

from __future__ import annotations

from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.error_records import failure_record, format_failure


def test_a_record_has_code_what_where_and_action() -> None:
    error = OlrPgError(2005, "the checksum is wrong", sequence=7, block=12)
    assert failure_record(error) == {
        "code": "OLR-02005",
        "what": "a block of the log is corrupt: the checksum is wrong",
        "where": {"sequence": 7, "block": 12},
        "action": Code.BLOCK_CORRUPT.action,
    }


def test_the_text_has_a_line_for_each() -> None:
    error = OlrPgError(1001, "no such file", action="look again", file="x.json")
    assert format_failure(failure_record(error)).splitlines() == [
        "OLR-01001: the configuration file cannot be read: no such file",
        "  where: file x.json",
        "  to do: look again",
    ]


def test_an_error_without_a_place_has_no_line_for_it() -> None:
    text = format_failure(failure_record(OlrPgError(2001, "looked at nothing")))
    assert "where" not in text
