"""Maps Oracle's exceptions, error numbers and SQLCODE to the conditions of PL/pgSQL.

Oracle's errors have numbers, and PostgreSQL's errors have an SQLSTATE. Often several numbers of
Oracle correspond to one SQLSTATE. A handler of one of these numbers would also catch the errors of
the other numbers, so the handler is translated only if the block cannot raise the other errors.

Errors of the application have an SQLSTATE of their own: ``OE001`` is ORA-20001; for an exception
that a routine declares, the SQLSTATE begins with ``OR``.
"""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.schema.translating import UntranslatableError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

CONDITIONS: Final = {
    "NO_DATA_FOUND": "no_data_found",
    "TOO_MANY_ROWS": "too_many_rows",
    "DUP_VAL_ON_INDEX": "unique_violation",
    "ZERO_DIVIDE": "division_by_zero",
    "INVALID_NUMBER": "invalid_text_representation",
    "VALUE_ERROR": "string_data_right_truncation OR numeric_value_out_of_range"
    " OR invalid_text_representation OR null_value_not_allowed",
    "CASE_NOT_FOUND": "case_not_found",
    "CURSOR_ALREADY_OPEN": "duplicate_cursor",
    "INVALID_CURSOR": "invalid_cursor_name",
    "OTHERS": "OTHERS",
}


class _Numbered(NamedTuple):
    """The condition for an error number of Oracle.

    Attributes:
        others: the statements that raise other errors of Oracle with the same condition. A block
            that contains one of them cannot have a handler for this number.
    """

    condition: str
    others: tuple[str, ...] = ()


_NUMBERED: Final = {
    1: _Numbered("unique_violation"),
    54: _Numbered("lock_not_available"),
    60: _Numbered("deadlock_detected"),
    1400: _Numbered("not_null_violation", ("UPDATE", "MERGE")),
    1403: _Numbered("no_data_found"),
    1407: _Numbered("not_null_violation", ("INSERT", "MERGE")),
    1422: _Numbered("too_many_rows"),
    1427: _Numbered("cardinality_violation"),
    1476: _Numbered("division_by_zero"),
    2290: _Numbered("check_violation"),
    2291: _Numbered("foreign_key_violation", ("UPDATE", "DELETE", "MERGE")),
    2292: _Numbered("foreign_key_violation", ("INSERT", "UPDATE", "MERGE")),
}
"""The condition for each error number of Oracle that a handler can name."""

_OWN: Final = range(20000, 21000)
_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_FOREIGN: Final = -28500
"""Oracle's number for an error of a database that is not Oracle's (Database Error Messages,
ORA-28500).
"""
_CODES: Final = {
    "P0002": 100, "P0003": -1422, "23505": -1, "22012": -1476, "20000": -6592, "42P03": -6511,
    "34000": -1001, "55P03": -54, "40P01": -60, "23514": -2290, "21000": -1427,
}  # fmt: skip
"""SQLCODE for each SQLSTATE that corresponds to exactly one error number of Oracle."""
SQLCODE: Final = (
    "CASE WHEN SQLSTATE LIKE 'OE___' THEN -20000 - CAST(SUBSTR(SQLSTATE, 3) AS integer)"
    " WHEN SQLSTATE LIKE 'OR___' THEN 1"
    + "".join(f" WHEN SQLSTATE = '{state}' THEN {code}" for state, code in _CODES.items())
    + f" ELSE {_FOREIGN} END"
)
"""PL/pgSQL for the value of SQLCODE in a handler."""
_MESSAGES: Final = {
    "P0002": "ORA-01403: no data found",
    "P0003": "ORA-01422: exact fetch returns more than requested number of rows",
    "22012": "ORA-01476: divisor is equal to zero",
    "20000": "ORA-06592: CASE not found while executing CASE statement",
    "42P03": "ORA-06511: PL/SQL: cursor already open",
    "34000": "ORA-01001: invalid cursor",
    "21000": "ORA-01427: single-row subquery returns more than one row",
    "40P01": "ORA-00060: deadlock detected while waiting for resource",
}
"""The messages of those errors of Oracle whose message contains no names."""
SQLERRM: Final = (
    "CASE WHEN SQLSTATE LIKE 'OR___' THEN 'User-Defined Exception'"
    + "".join(f" WHEN SQLSTATE = '{state}' THEN '{text}'" for state, text in _MESSAGES.items())
    + " ELSE SQLERRM END"
)
"""PL/pgSQL for the value of SQLERRM in a handler."""
_CODE: Final = re.compile(r"\bSQLCODE\b", re.IGNORECASE)
_CODE_LITERAL: Final = re.compile(r"-\s*(\d+)")


class Tried(NamedTuple):
    """The statements of a block, whose errors its handlers catch.

    Attributes:
        text: the text of the statements in PL/SQL.
        changes, calls: the number of statements that change rows, and of calls of routines.
        conversions: where the statements convert texts to numbers: ``SQL`` or ``PL/SQL``.
    """

    text: str
    changes: int
    calls: int
    conversions: Collection[str]


class Declared(NamedTuple):
    """An exception that a routine declares.

    Attributes:
        condition: the exception's condition in PL/pgSQL.
        others: as of `_Numbered`.
        number: the error number of EXCEPTION_INIT; 0 without it.
    """

    condition: str
    others: tuple[str, ...] = ()
    number: int = 0

    @property
    def is_own(self) -> bool:
        """Whether only the application raises it."""
        return self.condition.startswith("SQLSTATE")


def own_state(number: int) -> str:
    """Return the SQLSTATE of an error that RAISE_APPLICATION_ERROR raises.

    Raises:
        UntranslatableError: Oracle does not allow the number.
    """
    if number not in _OWN:
        raise UntranslatableError(f"RAISE_APPLICATION_ERROR with -{number}, which is out of range")
    return f"OE{number - _OWN.start:03}"


def declared(seed: str, taken: Collection[Declared]) -> Declared:
    """Return an exception without a number. The SQLSTATE of the exception is derived from a text
    that identifies its declaration.
    """
    states = {one.condition for one in taken}
    number = zlib.crc32(seed.encode())
    while True:
        digits = (_DIGITS[number // 36**power % 36] for power in (2, 1, 0))
        found = Declared(f"SQLSTATE 'OR{''.join(digits)}'")
        if found.condition not in states:
            return found
        number += 1


def numbered(name: str, number: str) -> Declared:
    """Return the exception of EXCEPTION_INIT.

    Raises:
        UntranslatableError: no condition corresponds to the number.
    """
    digits = number.replace(" ", "").removeprefix("-")
    if number.strip() == "100":
        return Declared("no_data_found", number=1403)
    if digits.isdigit() and int(digits) in _OWN:
        return Declared(f"SQLSTATE '{own_state(int(digits))}'", number=int(digits))
    found = _NUMBERED.get(int(digits)) if digits.isdigit() else None
    if found is None:
        raise UntranslatableError(f"the exception {name} for ORA-{digits}: use its SQLSTATE")
    return Declared(found.condition, found.others, int(digits))


def check_handler(names: Sequence[str], exceptions: dict[str, Declared], tried: Tried) -> None:
    """Check that a handler catches the same errors as in Oracle.

    Raises:
        UntranslatableError: the block can raise other errors that have the same condition.
    """
    if "OTHERS" in names:
        return
    predefined = {name for name in names if name not in exceptions}
    for kind, name in (("PL/SQL", "VALUE_ERROR"), ("SQL", "INVALID_NUMBER")):
        named = predefined & {"VALUE_ERROR", "INVALID_NUMBER"}
        if named and name not in predefined and kind in tried.conversions:
            raise UntranslatableError(
                f"a handler that does not name {name}, although {kind} converts a text to a"
                " number there: PostgreSQL has one error for both"
            )
    if "VALUE_ERROR" in predefined and tried.changes:
        raise UntranslatableError(
            "a handler for VALUE_ERROR of a block that changes rows: in PostgreSQL it would also"
            " catch values that do not fit into a column"
        )
    for name in set(names) & set(exceptions):
        one = exceptions[name]
        found = [
            word for word in one.others if re.search(rf"\b{word}\b", tried.text, re.IGNORECASE)
        ]
        if one.others and (found or tried.calls):
            what = found[0] if found else "calls"
            raise UntranslatableError(
                f"a handler for ORA-{one.number} of a block with {what}: PostgreSQL has the same"
                " SQLSTATE for other errors"
            )


def check_codes(text: str) -> bool:
    """Return whether a handler uses SQLCODE.

    Raises:
        UntranslatableError: the handler compares SQLCODE with a number for which PostgreSQL has no
            SQLSTATE of its own.
    """
    if not _CODE.search(text):
        return False
    known = {-code for code in _CODES.values()}
    for found in _CODE_LITERAL.finditer(text):
        number = int(found[1])
        if number > 1 and number not in known and number not in _OWN:
            raise UntranslatableError(
                f"a handler compares SQLCODE with -{number}: PostgreSQL has no SQLSTATE for it"
            )
    return True
