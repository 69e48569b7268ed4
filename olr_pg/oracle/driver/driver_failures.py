"""Converts the driver's errors to errors with codes of the error catalogue."""

from __future__ import annotations

import re
from typing import Final

import oracledb
import sqlalchemy.exc

from olr_pg.errors import Code, OlrPgError, plain_reason, without_noise
from olr_pg.observability.redaction import mask
from olr_pg.oracle.driver.bounded_calls import HostError, SilenceError

CREDENTIALS: Final = Code.ORACLE_LOGIN_REFUSED
SERVICE: Final = Code.ORACLE_SERVICE_UNKNOWN
PRIVILEGE: Final = Code.ORACLE_PRIVILEGE
SNAPSHOT_AGE: Final = Code.ORACLE_SNAPSHOT_TOO_OLD
NOT_REACHED: Final = Code.SCN_NOT_REACHED
TIMEOUT: Final = Code.ORACLE_TIMEOUT
LOST: Final = Code.ORACLE_CONNECTION_LOST
NOT_OPEN: Final = Code.ORACLE_NOT_OPEN
UNREACHABLE: Final = Code.ORACLE_UNREACHABLE
CLIENT_LIBRARY: Final = Code.ORACLE_CLIENT_LIBRARY
OTHER: Final = Code.ORACLE_ERROR
NO_PLACE: Final = Code.ORACLE_ADDRESS_INVALID

_TRANSIENT: Final = frozenset({UNREACHABLE, LOST, NOT_OPEN})
"""Errors that an immediate retry can resolve."""

PASSING: Final = _TRANSIENT | {
    TIMEOUT,
    SERVICE,
    Code.STANDBY_INCARNATION,
    Code.SOURCE_IS_SNAPSHOT_STANDBY,
}
"""Errors that a later retry can resolve: the database restarts, is overloaded or changes its
role.
"""

_CODES: Final[dict[str, int]] = {
    **dict.fromkeys(("ORA-01017", "ORA-01005", "ORA-28000", "ORA-28001", "ORA-01045"), CREDENTIALS),
    **dict.fromkeys(("DPY-6001", "DPY-6003", "ORA-12514", "ORA-12505"), SERVICE),
    "ORA-65011": SERVICE,  # there is no such PDB
    # The database is starting, shutting down or only mounted: ordinary users cannot log in, or can
    # read only fixed views.
    **dict.fromkeys(("ORA-01033", "ORA-01109", "ORA-01219"), NOT_OPEN),
    **dict.fromkeys(("ORA-00942", "ORA-01031", "ORA-01720", "ORA-41900"), PRIVILEGE),
    **dict.fromkeys(("ORA-01555", "ORA-08180", "ORA-01466", "ORA-22924"), SNAPSHOT_AGE),
    # ORA-08181 means an SCN in the future. If undo has expired, the error is ORA-01555.
    "ORA-08181": NOT_REACHED,
    **dict.fromkeys(("DPY-4024", "ORA-01013", "ORA-03136"), TIMEOUT),
    **dict.fromkeys(
        (
            *("ORA-03113", "ORA-03114", "ORA-03135", "ORA-00028", "ORA-01012"),
            *("ORA-01034", "ORA-01089", "ORA-01090", "ORA-01092", "ORA-12537", "ORA-12571"),
            *("ORA-12528", "ORA-12526", "ORA-02396", "DPY-4011", "DPY-1001", "DPY-6010"),
            # Restricted mode, or all processes or sessions are in use: the database accepts
            # connections later.
            *("ORA-12527", "ORA-01035", "ORA-00018", "ORA-00020"),
            *("ORA-12516", "ORA-12518", "ORA-12519", "ORA-12520"),
        ),
        LOST,
    ),
    **dict.fromkeys(
        ("DPY-6005", "DPY-6000", "ORA-12541", "ORA-12170", "ORA-12543", "ORA-12545"), UNREACHABLE
    ),
    **dict.fromkeys(
        (
            *("DPY-4000", "DPY-4017", "DPY-4018", "DPY-4021", "DPY-4026", "DPY-4027"),
            *("DPY-2049", "DPY-2056"),
        ),
        NO_PLACE,
    ),
    # The thin mode does not support a release before 12.1, native network encryption, or an old
    # password verifier.
    **dict.fromkeys(("DPY-3010", "DPY-3001", "DPY-3015"), CLIENT_LIBRARY),
    **dict.fromkeys(("DPI-1047", "DPI-1072", "DPY-2019", "DPY-2053"), CLIENT_LIBRARY),
}
_NUMBER: Final = re.compile(r"\b(?:ORA|DPY|DPI)-\d{4,5}\b")
_CONNECTION_ID: Final = re.compile(r"\s*\(CONNECTION_ID=[^)]*\)")


_ROW_DETAILS: Final = "ORA-03301"
_RAISED: Final = re.compile(r"(ORA-20\d{3}): .*")
_VALUES: Final = (
    re.compile(r"(?<=string value containing ).+(?= to a number)"),
    re.compile(r"(?<=: value ).+?(?= (?:greater|larger) than )"),
    re.compile(r"'(?:[^']|'')*'"),
)


def _without_values(text: str) -> str:
    """Return the message of an error of a statement that writes rows, without values of the rows.

    Since 23ai, Oracle's messages contain values: of a duplicate key (ORA-03301; the parameter
    ERROR_MESSAGE_DETAILS is on by default), of a text that is not a number (ORA-01722), and of a
    number that is too large (ORA-01438). An error that PL/SQL raises (ORA-20000 to ORA-20999) can
    contain any text, in several lines, up to the next number of an error.
    """
    lines, is_left_out = list[str](), False
    for line in text.splitlines():
        if _NUMBER.match(line):
            is_left_out = line.startswith(_ROW_DETAILS)
            raised = _RAISED.match(line)
            if raised is not None:
                lines.append(f"{raised[1]}: PL/SQL of the database raised this error")
                is_left_out = True
        if not is_left_out:
            for value in _VALUES:
                line = value.sub("…", line)
            lines.append(line)
    return "\n".join(lines)


def oracle_error(
    error: Exception, doing: str, *, action: str | None = None, of_rows: bool = False
) -> OlrPgError:
    """Convert an error of the driver, or the error with which SQLAlchemy wraps it, to an error with
    a code.

    Args:
        doing: the failed operation, for the message: "reading V$DATABASE".
        action: the action to recommend; None for the action of the error catalogue.
        of_rows: whether the statement had values of rows, which the message must not contain.
    """
    original = error.orig if isinstance(error, sqlalchemy.exc.DBAPIError) else error
    text = _words(original if isinstance(original, BaseException) else error, of_rows=of_rows)
    # The first number belongs to the outermost error ("cannot connect"); the number of the reason
    # follows.
    numbers = _NUMBER.findall(text)
    codes = [_CODES[number] for number in numbers if number in _CODES]
    specific = [code for code in codes if code != UNREACHABLE]
    code = (specific or codes or [OTHER])[0]
    if isinstance(original, SilenceError):
        code = TIMEOUT
    elif isinstance(original, HostError):
        code = UNREACHABLE
    return OlrPgError(code, f"{doing}: {mask(text)}", action=action)


def is_transient(error: BaseException) -> bool:
    """Return whether an immediate retry can help."""
    return isinstance(error, OlrPgError) and error.code in _TRANSIENT


def _words(error: BaseException, *, of_rows: bool) -> str:
    """Join the meaningful lines of the error into one line."""
    if isinstance(error, sqlalchemy.exc.DBAPIError) and isinstance(error.orig, oracledb.Error):
        error = error.orig
    text = _without_values(str(error)) if of_rows else str(error)
    said = (line.rstrip(" .") for line in without_noise(text).splitlines())
    lines = [line for line in said if line and not line.startswith("Help:")]
    return _CONNECTION_ID.sub("", ": ".join(lines)) or plain_reason(error)
