"""Errors of the driver as errors of the catalogue."""

from __future__ import annotations

import oracledb
import pytest

from olr_pg.errors import OlrPgError
from olr_pg.fallback.fallback_run import _passing, _PassingError
from olr_pg.oracle.driver.driver_failures import (
    CLIENT_LIBRARY,
    CREDENTIALS,
    LOST,
    NOT_REACHED,
    OTHER,
    PASSING,
    PRIVILEGE,
    SERVICE,
    SNAPSHOT_AGE,
    UNREACHABLE,
    is_transient,
    oracle_error,
)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("ORA-01017: invalid credential", CREDENTIALS),
        ("DPY-6005: cannot connect\nORA-12541: no listener", UNREACHABLE),
        ("DPY-6005: cannot connect\nDPY-6001: service is unknown", SERVICE),
        ("ORA-01555: snapshot too old", SNAPSHOT_AGE),
        ("ORA-08181: specified number is not a valid system change number", NOT_REACHED),
        ('ORA-41900: missing FLASHBACK privilege on "SYS"."OBJ$"', PRIVILEGE),
        ("DPY-6005: cannot connect\nDPY-3010: release 11.2 is not supported", CLIENT_LIBRARY),
        ("DPY-6005: cannot connect\nORA-12516: no handler available", LOST),
        ("ORA-99999: new", OTHER),
        ("no number", OTHER),
    ],
)
def test_the_most_specific_number_counts(text: str, code: int) -> None:
    error = oracle_error(oracledb.DatabaseError(text), "reading X")
    assert error.code == code
    assert error.detail.startswith("reading X: ")


@pytest.mark.parametrize(
    "text",
    [
        "ORA-01035: ORACLE only available to users with RESTRICTED SESSION privilege",
        "ORA-12526: TNS:listener: all appropriate instances are in restricted mode",
        "ORA-00028: your session has been killed",
        "ORA-02396: exceeded maximum idle time, please connect again",
        "ORA-01089: immediate shutdown or close in progress",
        "ORA-01033: ORACLE initialization or shutdown in progress",
        "ORA-01109: database not open",
        "ORA-12514: TNS:listener does not currently know of service",
        "ORA-00020: maximum number of processes (300) exceeded",
    ],
)
def test_what_a_dba_does_to_sessions_and_instances_passes(text: str) -> None:
    assert oracle_error(oracledb.DatabaseError(text), "reading X").code in PASSING


def test_the_words_are_one_line_without_help_and_secrets() -> None:
    text = "DPY-6005: no (CONNECTION_ID=abc==)\n\nHelp: https://docs.oracle.com/x\npassword=s3cret"
    text += "\n[Errno 111] Connection refused"
    detail = oracle_error(oracledb.DatabaseError(text), "connecting").detail
    assert "\n" not in detail
    assert "s3cret" not in detail
    assert "CONNECTION_ID" not in detail
    assert "Help:" not in detail
    assert detail.endswith("Connection refused")
    assert "Errno" not in detail


def test_only_a_lost_connection_is_tried_again_at_once() -> None:
    assert is_transient(oracle_error(oracledb.DatabaseError("ORA-03113: end of file"), "x"))
    assert not is_transient(oracle_error(oracledb.DatabaseError("ORA-00942: no table"), "x"))
    assert not is_transient(ValueError())


NOT_UNIQUE = (
    "ORA-02091: transaction rolled back\nORA-00001: unique constraint (A.PK) violated on"
    " table A.T columns (ID)"
)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (
            f"{NOT_UNIQUE}\nORA-03301: (ORA-00001 details) row with values (ID:'SECRET') exists",
            NOT_UNIQUE.replace("\n", ": "),
        ),
        (
            "ORA-20001: no credit for SECRET\nSECRET again\nORA-06512: at A.TRG, line 3",
            "ORA-20001: PL/SQL of the database raised this error: ORA-06512: at A.TRG, line 3",
        ),
        (
            "ORA-01722: unable to convert string value containing 'SECRET' to a number: column N",
            "ORA-01722: unable to convert string value containing … to a number: column N",
        ),
        (
            "ORA-01438: value SECRET greater than specified precision (3, 1) for column N",
            "ORA-01438: value … greater than specified precision (3, 1) for column N",
        ),
        ("ORA-54013: 'it''s SECRET' is wrong", "ORA-54013: … is wrong"),
        ('ORA-12899: value too large for column "A"."T"."C" (actual: 9, maximum: 8)', None),
    ],
)
def test_an_error_of_a_write_contains_no_value(text: str, left: str | None) -> None:
    found = oracle_error(oracledb.DatabaseError(text), "writing", of_rows=True)
    assert found.detail == f"writing: {left or text}"
    for whole in (oracledb.DatabaseError(text), oracledb.IntegrityError(text)):
        with pytest.raises((OlrPgError, _PassingError)) as caught, _passing():
            raise whole
        assert "SECRET" not in str(caught.value)
