"""Decides how to handle each error of PostgreSQL, by its SQLSTATE; no other module decides this.

The driver's exception classes are too coarse: for psycopg, a value that is too long for an index, a
full disk and a server that shuts down are all an ``OperationalError``. The table below has an entry
for every class of SQLSTATE, and one for every code that means something else than its class. A
meaning describes the cause of the error; the reaction to it depends on the caller:

========= ============================== ======================= ==========================
meaning   the applier                    a list of statements    a command
========= ============================== ======================= ==========================
AWAY      waits in the state             ends                    ends with the code below
          ``WAITING_FOR_TARGET``
PASSES    retries, then requests the     reports it, continues   ends with the code below
          transactions again; stops the
          table if the error `may_last`
STATEMENT stops the table                reports it, continues   ends with the code below
OPERATOR  stops the table with the code  reports it, continues   ends with the code below
          below
DEFECT    stops the table                reports it, continues   ends as a defect of olr_pg
========= ============================== ======================= ==========================

An error of the connection has no SQLSTATE: libpq does not return the SQLSTATE if a server refuses a
connection. So the text of the message is compared with known texts (`_WORDS`). The text is English
only if the server's ``lc_messages`` is English. In other languages the form of the message still
shows that the server answered (`is_answer`), and the message is passed on unchanged.

The module also makes the texts of PostgreSQL's errors, with and without the values of rows.

Values of rows may be written only to the error table in the target, because the rows are in the
same database. Logs, status pages and reports may be read by people who must not see the rows.
"""

from __future__ import annotations

import errno
import re
from enum import Enum
from typing import Final, NamedTuple

import psycopg

from olr_pg.errors import Code, OlrPgError, Place
from olr_pg.files.system_errors import advice
from olr_pg.observability.redaction import mask

_DATA_EXCEPTION: Final = "22"
# These errors mean that an encoding lacks a character. The message contains the character's bytes;
# the words in quotes are names of encodings.
_ENCODINGS: Final = ("22021", "22P05")
_RAISED: Final = "P0"
_IN_THE_WAY: Final = ("2B", "0A")
"""Classes of SQLSTATE. The details of these errors contain no values; they name the objects that
depend on a table or column.
"""
_FUNCTION: Final = re.compile(r"PL/pgSQL function \w+(?:\.\w+)?\([\w ,.\[\]]*\) line \d+")
_QUOTED: Final = re.compile(r'"(?:[^"]|"")*"?')


def full_text(error: psycopg.Error) -> str:
    """Return the message and the detail of an error, including values of rows."""
    primary = error.diag.message_primary or str(error).strip()
    detail = error.diag.message_detail
    return f"{primary}: {detail}" if detail else primary


def text_without_values(error: psycopg.Error) -> str:
    """Return the message of an error without the detail and without quoted values.

    If a constraint is violated, only the detail contains values. Data errors (class 22) quote
    values in the same way as names. An error that a function raises can contain any text.
    """
    if (error.sqlstate or "").startswith(_RAISED):
        named = _FUNCTION.match(error.diag.context or "")
        return "a function of the target raised an exception" + (f": {named[0]}" if named else "")
    primary = error.diag.message_primary or str(error).strip().splitlines()[0]
    state = error.sqlstate or ""
    if state.startswith(_DATA_EXCEPTION) and state not in _ENCODINGS:
        return _QUOTED.sub("“…”", primary)
    if state.startswith(_IN_THE_WAY) and error.diag.message_detail:
        return f"{primary}: {'; '.join(error.diag.message_detail.splitlines())}"
    return primary


class Meaning(Enum):
    """The cause of an error."""

    AWAY = "the server cannot be reached, or accepts no work from any client"
    PASSES = "a temporary state or another session: the same statement may succeed later"
    STATEMENT = "this statement or its rows: the same statement fails again"
    OPERATOR = "a privilege, a limit or the server, which an operator must change"
    DEFECT = "a defect of the appliance: it should not have sent the statement"


class Meant(NamedTuple):
    """The meaning of an SQLSTATE.

    Attributes:
        code: the code of the error catalogue, used if a command ends with this error.
        action: the action to recommend; None for the action of the error catalogue.
    """

    meaning: Meaning
    code: Code
    action: str | None = None


_AWAY: Final = Meant(Meaning.AWAY, Code.POSTGRES_UNREACHABLE)
_BUSY: Final = Meant(Meaning.PASSES, Code.TARGET_BUSY)
_REFUSED: Final = Meant(Meaning.STATEMENT, Code.STATEMENT_REFUSED)
_LIMIT: Final = Meant(Meaning.OPERATOR, Code.TARGET_LIMIT)
_RIGHT: Final = Meant(Meaning.OPERATOR, Code.TARGET_PRIVILEGE)
_FAULT: Final = Meant(Meaning.OPERATOR, Code.TARGET_FAULT)
_DEFECT: Final = Meant(Meaning.DEFECT, Code.INTERNAL)

_LOGIN: Final = Meant(
    Meaning.AWAY,
    Code.POSTGRES_UNREACHABLE,
    "check user, password and database of `apply.connect-string`, and whether the role has"
    " LOGIN. Check that pg_hba.conf of the server allows this role to connect from this machine",
)
_TLS: Final = Meant(
    Meaning.AWAY,
    Code.POSTGRES_UNREACHABLE,
    "check `sslmode`, `sslrootcert` and `sslcert` of `apply.connect-string`, and the"
    " server's certificate and TLS settings",
)
_POOL_FULL: Final = Meant(
    Meaning.AWAY,
    Code.TARGET_CONNECTIONS,
    "lower `apply.workers`, close other sessions, or let the connection pooler allow more"
    " (pgbouncer: default_pool_size, max_client_conn). Replication needs `apply.workers` + 1"
    " connections; a load or a comparison needs one per Spark task",
)
_POOL_REFUSES: Final = Meant(
    Meaning.AWAY,
    Code.POSTGRES_UNREACHABLE,
    "a connection pooler does not accept this parameter. If the parameter is `replication`, name"
    " PostgreSQL itself in `apply.connect-string`, because the way back needs this parameter."
    " Otherwise remove the parameter from the connection string",
)
_NO_SOCKET: Final = Meant(
    Meaning.AWAY,
    Code.POSTGRES_UNREACHABLE,
    f"{advice(OSError(errno.EMFILE, ''))}. If this limit is not reached, look for a lack of memory"
    " for the network in the log of the system (`dmesg`)",
)
LEDGER_GONE_ACTION: Final = (
    "restore the tables and the schema olr_pg from the same backup. Or stop the appliance, create"
    " the missing objects with sql/postgres/ledger.sql, and load the tables again: `olr-pg"
    " initial-load --anew --table OWNER.NAME`. If a table of the schema still lacks columns after"
    " the script, drop it and run the script again. Without the schema, it is unknown which changes"
    " the rows contain"
)
_LEDGER_GONE: Final = Meant(Meaning.OPERATOR, Code.LEDGER_UNUSABLE, LEDGER_GONE_ACTION)
_NOT_ADMITTED: Final = Meant(
    Meaning.AWAY,
    Code.TARGET_PRIVILEGE,
    "as the owner of the database or a superuser, run `GRANT CONNECT ON DATABASE … TO …` for the"
    " role of `apply.connect-string`. Replication then continues by itself",
)
_HIDDEN: Final = Meant(Meaning.OPERATOR, Code.TARGET_ROW_SECURITY)
_TIME_LIMIT: Final = Meant(
    Meaning.PASSES,
    Code.TARGET_BUSY,
    "if PostgreSQL's reason names a time limit, raise it for the role or the database (ALTER"
    " ROLE … SET …). If another user cancelled the statement, start the same command again",
)

CLASSES: Final[dict[str, Meant]] = {
    "02": _REFUSED,  # no data: only functions raise it
    "03": _DEFECT,  # statement not yet complete
    "08": _AWAY,
    "09": _REFUSED,  # triggered action
    "0A": _REFUSED,  # not supported by this server
    "0B": _REFUSED,  # invalid transaction initiation: only functions
    "0F": _REFUSED,  # locators
    "0L": _RIGHT,  # invalid grantor
    "0P": _RIGHT,  # invalid role
    "0Z": _REFUSED,  # diagnostics: only functions
    "10": _REFUSED,  # XQuery
    "20": _REFUSED,  # CASE without a branch: only functions
    "21": _REFUSED,  # more than one row where one is allowed
    "22": _REFUSED,  # invalid values (data exceptions)
    "23": _REFUSED,  # constraints
    "24": _DEFECT,  # cursors
    "25": _DEFECT,  # invalid state of the transaction
    "26": _DEFECT,  # a prepared statement is missing
    "27": _REFUSED,  # a trigger has changed the row
    "28": _LOGIN,
    "2B": _REFUSED,  # other objects depend on it
    "2D": _REFUSED,  # COMMIT within a function
    "2F": _REFUSED,  # functions in SQL
    "34": _DEFECT,  # cursors
    "38": _REFUSED,  # functions in other languages
    "39": _REFUSED,
    "3B": _DEFECT,  # savepoints
    "3D": _LOGIN,  # no such database
    "3F": _REFUSED,  # no such schema
    "40": _BUSY,  # deadlocks and conflicts of transactions
    "42": _REFUSED,  # missing or duplicate objects, wrong types, syntax
    "44": _REFUSED,  # WITH CHECK OPTION
    "53": Meant(Meaning.AWAY, Code.TARGET_LIMIT),  # resources
    "54": _REFUSED,  # fixed limits of PostgreSQL
    "55": _REFUSED,  # an object is not in the required state
    "57": _BUSY,  # operator intervention
    "58": Meant(Meaning.AWAY, Code.TARGET_FAULT),  # the server's operating system
    "72": _BUSY,  # snapshot too old
    "F0": Meant(Meaning.OPERATOR, Code.TARGET_FAULT),  # the server's configuration file
    "HV": _REFUSED,  # foreign data wrappers
    "P0": _REFUSED,  # raised by functions and triggers
    "XX": Meant(Meaning.PASSES, Code.TARGET_FAULT),  # internal errors of PostgreSQL
}
"""The meaning of each class of SQLSTATE, which is its first two characters."""

_REJECTED: Final = Meant(
    Meaning.AWAY,
    Code.POSTGRES_UNREACHABLE,
    "PostgreSQL answered and rejected the connection; its message, in the language of"
    " the server, has the reason. Check user, password, database, connection limits and"
    " pg_hba.conf, and whether the server is starting up",
)

_FIXED_LIMIT: Final = Meant(
    Meaning.STATEMENT,
    Code.STATEMENT_REFUSED,
    "PostgreSQL cannot store this row, key or table, because a limit of PostgreSQL is fixed. If the"
    " reason names an index, drop the index in the target, or create it on a shorter expression."
    " If the row is too big, change numeric columns of the target to types of a fixed size, such"
    " as bigint. Then run `olr-pg errors retry`, or continue the load with --resume. Or exclude"
    " columns with `filter.columns`, and load the table again (`olr-pg initial-load --anew --table"
    " OWNER.NAME`). `olr-pg doctor` finds such tables in advance (postgres.limits)",
)

CODES: Final[dict[str, Meant]] = {
    "08004": _REJECTED,
    "25006": Meant(Meaning.AWAY, Code.TARGET_READ_ONLY),
    # These two errors end the session, but the server continues to run.
    "25P03": _TIME_LIMIT,
    "25P04": _TIME_LIMIT,
    "40002": _REFUSED,  # a violated constraint: a retry fails again
    "42501": _RIGHT,
    # These errors are not caused by an object in the target, but by a statement of the appliance.
    "42601": _DEFECT,
    "42P02": _DEFECT,
    "42P03": _DEFECT,
    "42P05": _DEFECT,
    "42P14": _DEFECT,
    "53100": Meant(Meaning.AWAY, Code.TARGET_DISK_FULL),
    # The server lacks memory or space for locks; other transactions use both, so a retry can
    # succeed.
    "53200": Meant(Meaning.PASSES, Code.TARGET_LIMIT),
    "53300": Meant(Meaning.AWAY, Code.TARGET_CONNECTIONS),
    # temp_file_limit is exceeded; other statements may stay below it.
    "53400": _LIMIT,
    "54000": _FIXED_LIMIT,
    "54001": _LIMIT,  # max_stack_depth is exceeded
    "54011": _FIXED_LIMIT,  # too many columns
    "55006": _BUSY,
    "55P02": _RIGHT,  # a setting cannot be changed now
    "55P03": _BUSY,
    "57014": _TIME_LIMIT,
    "57P01": _AWAY,
    "57P02": _AWAY,
    "57P03": _AWAY,
    "57P04": _LOGIN,  # the database was dropped
    "57P05": _TIME_LIMIT,
    # A file of the server is missing or exists already; this concerns only one relation.
    "58P01": _FAULT,
    "58P02": _FAULT,
    "58P03": _FAULT,
    # The remote server of a foreign table cannot be reached; the target itself can.
    "HV00N": _BUSY,
    "HV001": _BUSY,
    "XX001": _FAULT,
    "XX002": _FAULT,
}
"""The meaning of each SQLSTATE that differs from the meaning of its class."""

_PROTOCOL_VIOLATION: Final = "08P01"
_CONFLICTS: Final = frozenset({"23505", "23P01"})
_DUPLICATES: Final = frozenset({"42701", "42710", "42723", "42P04", "42P06", "42P07"})
_MISSING: Final = frozenset({"3F000", "42704", "42P01"})
_UNDEFINED: Final = frozenset({"42P01", "42703"})
_GONE: Final = frozenset({"42P01", "3F000"})
_LEDGER_WORDS: Final = re.compile(r'"olr_pg[."]')
_NO_PARENT_KEY: Final = "42830"
INTERNAL_ERROR: Final = "XX000"
_LOST: Final = "08006"
_LOCKED: Final = "55P03"
_CANCELLED: Final = "57014"
_OUT_OF_MEMORY: Final = "53200"
_FORBIDDEN: Final = "42501"
_ROW_SECURITY: Final = "check_enable_rls"
"""The function of PostgreSQL that refuses a query if `row_security` is off and a policy would hide
rows. The SQLSTATE is that of a missing privilege, and the message can be in any language.
"""
_READ_ONLY: Final = "25006"
_IN_USE: Final = "55006"
_UNUSABLE: Final = "55000"
_NOT_MADE: Final = "08001"
_REFUSED_BY_SERVER: Final = "08004"

_WORDS: Final[tuple[tuple[str, re.Pattern[str]], ...]] = tuple(
    (state, re.compile("|".join(words)))
    for state, *words in (
        # Messages of the server, in the order of the server's checks.
        ("53300", "too many clients already|connection slots are reserved|too many connections"),
        ("57P03", "the database system is "),
        ("28P01", "password authentication failed|no password supplied"),
        (
            "28000",
            "no pg_hba.conf entry|pg_hba.conf rejects|authentication failed",
            "role .* does not exist|not permitted to log in|requested unsupported SASL",
        ),
        ("3D000", "database .* does not exist|is not currently accepting connections"),
        ("42501", "permission denied for database"),
        ("25006", "session is read-only|server is in hot standby|server is not in hot standby"),
        ("57P01", "terminating connection due to administrator command"),
        ("57P02", "terminating connection because of crash"),
        ("57P05", "due to idle-session timeout"),
        ("25P03", "due to idle-in-transaction timeout"),
        ("25P04", "due to transaction timeout"),
        ("53100", "No space left on device"),
    )
)
"""Texts of messages for which libpq returns no SQLSTATE, because the server refuses or ends the
connection.
"""
_NO_DETAILS: Final = "no error details available"
"""Text of psycopg if the operating system gives libpq no socket: libpq does not return the reason.
"""
_NO_SOCKET_WORDS: Final = re.compile(f"{_NO_DETAILS}|Too many open files|No buffer space available")
_TLS_WORDS: Final = re.compile(
    "server does not support SSL|certificate verify failed|SSL error|root certificate file"
    "|server certificate for|could not load .*(?:certificate|key)|sslmode"
)
_POOL_FULL_WORDS: Final = re.compile("query_wait_timeout|max_(?:client|db|user)_conn")
_POOL_REFUSES_WORDS: Final = re.compile("unsupported startup parameter")
"""Texts of pgbouncer, whose errors have the SQLSTATE 08P01 or none."""
_TWO_RESULTS: Final = re.compile("received [0-9]+ results from command")
"""Text of psycopg if a session ends during BEGIN, COMMIT or ROLLBACK: the answer is an error of the
server or of a pooler, and then the end of the connection.
"""
_CONNECTING: Final = (
    "connection failed",
    "connection is bad",
    "failed to resolve",
    "connection timeout",
)
_OF_POOLERS: Final = frozenset({_PROTOCOL_VIOLATION, _REFUSED_BY_SERVER})
_SEVERITY: Final = re.compile(r" failed: [^:\n]{1,40}:  \S")
"""Matches a server's message as libpq formats it: a severity in any language, then two spaces."""
_FATAL: Final = frozenset({"FATAL", "PANIC"})
_ASIDES: Final = (
    "connection failed: ",
    "connection is bad: ",
    "consuming input failed: ",
    "sending query and params failed: ",
    " Is the server running on that host and accepting TCP/IP connections?",
    " Is the server running locally and accepting connections on that socket?",
    " This probably means the server terminated abnormally before or while processing the request.",
)
"""Texts that psycopg and libpq add before or after the reason."""


def state_of(error: psycopg.Error) -> str | None:
    """Return the SQLSTATE of an error; if it has none, the SQLSTATE that matches the error's text.

    Returns:
        None if psycopg raises the error without contact to the server.
    """
    if error.sqlstate is not None:
        return error.sqlstate
    if isinstance(error, psycopg.InternalError) and _TWO_RESULTS.search(str(error)):
        return _LOST
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return None
    text = str(error)
    for state, words in _WORDS:
        if words.search(text):
            return state
    if is_answer(error):
        return _REFUSED_BY_SERVER
    return _NOT_MADE if text.startswith(_CONNECTING) else _LOST


def is_answer(error: psycopg.Error) -> bool:
    """Return whether the server sent the error, in whatever language; a refused login is also an
    answer.
    """
    return error.sqlstate is not None or _SEVERITY.search(str(error)) is not None


def meant(error: psycopg.Error) -> Meant:
    """Return the meaning of an error."""
    state = state_of(error)
    if state is None:
        # If psycopg cannot send a value (text with U+0000), this is an error of the row. Other
        # errors are defects of the appliance.
        return _REFUSED if isinstance(error, psycopg.DataError) else _DEFECT
    if error.sqlstate is None and state == _NOT_MADE and _NO_SOCKET_WORDS.search(str(error)):
        return _NO_SOCKET
    if error.sqlstate is None and state in {_NOT_MADE, _LOST} and _TLS_WORDS.search(str(error)):
        return _TLS
    if _POOL_FULL_WORDS.search(str(error)) and state in _OF_POOLERS:
        return _POOL_FULL
    if _POOL_REFUSES_WORDS.search(str(error)) and state in _OF_POOLERS:
        return _POOL_REFUSES
    if state == _PROTOCOL_VIOLATION and error.diag.severity_nonlocalized not in {None, *_FATAL}:
        # PostgreSQL cannot read a value that the appliance sent. (A FATAL error of this code comes
        # from a pooler that ends the connection.)
        return _DEFECT
    if state == _FORBIDDEN and error.sqlstate is None:
        return _NOT_ADMITTED  # libpq returns no SQLSTATE if the server refuses the connection
    if state == _FORBIDDEN and error.diag.source_function == _ROW_SECURITY:
        return _HIDDEN
    if state in _GONE and _LEDGER_WORDS.search(error.diag.message_primary or ""):
        return _LEDGER_GONE
    return meant_by(state)


def meant_by(state: str) -> Meant:
    """Return the meaning of an SQLSTATE; an unknown class counts as an error of the statement."""
    return CODES.get(state) or CLASSES.get(state[:2], _REFUSED)


def is_transient(error: psycopg.Error) -> bool:
    """Return whether a retry can help: the connection was lost, the statement was cancelled, there
    was a deadlock, the server is temporarily read-only, …
    """
    return meant(error).meaning in {Meaning.AWAY, Meaning.PASSES}


def is_out_of_reach(error: psycopg.Error) -> bool:
    """Return whether the whole server is unreachable or cannot write, so that all tables must
    wait.
    """
    return meant(error).meaning is Meaning.AWAY


def may_last(error: psycopg.Error) -> bool:
    """Return whether an error that is usually transient can also be caused by the statement itself,
    so that retries never succeed: a lack of memory or locks, or XX000.
    """
    found = meant(error)
    return found.meaning is Meaning.PASSES and found.code in {Code.TARGET_LIMIT, Code.TARGET_FAULT}


def is_conflict(error: psycopg.Error) -> bool:
    """Return whether existing rows of the table conflict with a new row."""
    return error.sqlstate in _CONFLICTS


def is_duplicate(error: psycopg.Error) -> bool:
    """Return whether an object was not created because one with this name exists."""
    return error.sqlstate in _DUPLICATES


def is_malformed(error: psycopg.Error) -> bool:
    """Return whether a statement has wrong syntax, names or types, whatever the rows contain."""
    return (error.sqlstate or "").startswith("42")


def is_missing(error: psycopg.Error) -> bool:
    """Return whether a table, schema, role or other object does not exist."""
    return error.sqlstate in _MISSING


def names_nothing(error: psycopg.Error) -> bool:
    """Return whether a statement names a table or column that does not exist."""
    return error.sqlstate in _UNDEFINED


def lacks_parent_key(error: psycopg.Error) -> bool:
    """Return whether a foreign key refers to columns that have no primary or unique key."""
    return error.sqlstate == _NO_PARENT_KEY


def is_locked(error: psycopg.Error) -> bool:
    """Return whether the lock timeout expired because of another session's lock."""
    return error.sqlstate == _LOCKED


def is_cancelled(error: psycopg.Error) -> bool:
    """Return whether somebody cancelled the statement, or it reached its time limit."""
    return error.sqlstate == _CANCELLED


def is_out_of_memory(error: psycopg.Error) -> bool:
    """Return whether the server lacks memory, or space in its lock table, for a statement."""
    return error.sqlstate == _OUT_OF_MEMORY


def is_forbidden(error: psycopg.Error) -> bool:
    """Return whether the role lacks a privilege."""
    return error.sqlstate == _FORBIDDEN


def may_not_write(error: psycopg.Error) -> bool:
    """Return whether the role lacks a privilege, or the session or the server is read-only."""
    return error.sqlstate in (_FORBIDDEN, _READ_ONLY)


def is_in_use(error: psycopg.Error) -> bool:
    """Return whether another session uses an object that only one session can use, such as a
    replication slot.
    """
    return error.sqlstate == _IN_USE


def is_unusable(error: psycopg.Error) -> bool:
    """Return whether an object is in an unusable state, such as a slot whose WAL is gone."""
    return error.sqlstate == _UNUSABLE


def is_of_statement(error: psycopg.Error, connection: psycopg.Connection[object]) -> bool:
    """Return whether the next statement over the same connection can still succeed."""
    return not connection.closed and not is_out_of_reach(error)


_DETAILED: Final = frozenset(("0A", "2B", "42"))
"""Classes of SQLSTATE; the details of these errors contain no values of rows."""


def plain_words(error: psycopg.Error) -> str:
    """Return the message of PostgreSQL or libpq on one line, without parts that are meant for
    programmers.

    The detail is included if it names only objects and types: for example, which types of a foreign
    key are incompatible, or which column a partitioned table's key lacks.
    """
    text = " ".join((error.diag.message_primary or str(error)).split())
    detail = " ".join((error.diag.message_detail or "").split()).rstrip(".")
    if detail and (error.sqlstate or "")[:2] in _DETAILED:
        text = f"{text}: {detail}"
    for aside in _ASIDES:
        text = text.replace(aside, "")
    return text.replace(_NO_DETAILS, "the operating system gave this process no socket")


def target_error(
    error: psycopg.Error,
    doing: str = "",
    code: Code | None = None,
    *,
    is_ddl: bool = False,
    **where: Place | None,
) -> OlrPgError:
    """Convert an error of PostgreSQL to an error with a code, without values of rows.

    Args:
        doing: the failed operation, printed before PostgreSQL's reason.
        code: the code for an error of the statement itself. An error that the server, a privilege
            or a limit causes has the code of the tables above.
        is_ddl: whether the statement contains no values of rows; then the message of a function can
            be included.
        where: the location of the error.
    """
    found = meant(error)
    is_plain = is_ddl or error.sqlstate is None
    reason = mask(plain_words(error) if is_plain else text_without_values(error))
    if hint := _hint(error):
        reason = f"{reason} (PostgreSQL's hint: {hint})"
    if code is not None and found.meaning in {Meaning.STATEMENT, Meaning.DEFECT}:
        found = found._replace(code=code)
    return OlrPgError(
        found.code,
        f"{doing}: {reason}" if doing else reason,
        action=found.action,
        **where,
    )


def _hint(error: psycopg.Error) -> str:
    """Return PostgreSQL's hint if it is meant for an operator. Other hints are dropped, because
    they can quote values.
    """
    if meant(error).code not in {Code.TARGET_LIMIT, Code.TARGET_CONNECTIONS}:
        return ""
    return (error.diag.message_hint or "").strip().rstrip(".")
