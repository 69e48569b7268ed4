"""Opens connections to the target for the applier, and proves for each target transaction that it
runs in the connection's own session.

An operator can change the mode of a pooler while the appliance runs (pgbouncer's ``RELOAD``), and
the check of a new connection (`postgres.bounded_connection`) does not recognise every pooler. So
each connection also sets a mark in its session, a parameter with a random value. Each target
transaction reads the mark together with the ledger's row. If the mark is missing, the session's
other settings are missing too.

The schema of the ledger must belong to roles that the connection's role trusts (`check_owners`):
triggers, views and functions of the ledger run with the privileges of this connection.

The encoding of the target may lack characters of our own texts (`storable`).
"""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.rows import tuple_row

from olr_pg.applier.settings import ANSWER_SECONDS, ApplierSettings
from olr_pg.applier.target.catalogue import MIN_VERSION
from olr_pg.applier.target.statement_watch import ConnectionWatch, StatementWatch
from olr_pg.errors import Code, OlrPgError
from olr_pg.postgres.bounded_connection import BoundedConnection, with_timeouts
from olr_pg.postgres.sqlstates import is_transient, target_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from psycopg import Connection
    from psycopg.abc import Buffer


T = TypeVar("T")

_SET_UP_SECONDS: Final = 30.0
"""Time limit in seconds for each statement that prepares a new connection. None of these statements
waits for a lock.
"""

_REPLICA: Final = "SET session_replication_role = replica"
_MARK: Final = "SELECT set_config('olr_pg.session', %s, false)"
OWN_MARK: Final = "current_setting('olr_pg.session', true)"
"""SQL expression for the mark of the session that runs the query."""

# Timeouts are off: if a statement takes long, it is large or waits for a lock, and a retry after a
# timeout would take as long. synchronous_commit must not be off: after a crash, commits that were
# confirmed to the server could be missing. It is set even if its value is already on, because the
# server's default can change while the session lasts. JIT is off: a batch has few rows, so
# compiling its plan would cost more than it saves. The timeouts are named one by one. To find them
# in pg_settings, PostgreSQL would need a temporary file if `work_mem` is small, and the role may
# not be allowed to create one. Hash and merge joins are off, so that rows are found through the
# index of their key. Otherwise the planner would read a whole table of some thousand rows for each
# batch. client_connection_check_interval: the server checks regularly whether this client still
# exists, because an abandoned session would keep its locks. A server on Windows cannot do this.
# bytea_output and extra_float_digits are set, because `olr_pg.incomplete` contains keys as text.
# standard_conforming_strings is on: if it were off, PostgreSQL would read a backslash in a literal
# of the converted schema as an escape, and \' would not end the literal. row_security is off: if a
# row security policy would hide rows, PostgreSQL reports an error.
_SETTINGS: Final = """
SET standard_conforming_strings = on;
SET row_security = off;
SET jit = off;
SET exit_on_error = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET client_encoding = 'UTF8';
SET bytea_output = 'hex';
SET extra_float_digits = 1;
SET default_transaction_isolation = 'read committed';
SET tcp_keepalives_idle = 30;
SET tcp_keepalives_interval = 10;
SET tcp_keepalives_count = 3;
SELECT set_config(name, '0', false) FROM unnest(ARRAY['statement_timeout',
    'idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout']) name
WHERE current_setting(name, true) IS NOT NULL;
SELECT set_config('synchronous_commit', 'on', false)
WHERE current_setting('synchronous_commit') IN ('off', 'on');
SELECT set_config('client_connection_check_interval', '30s', false)
WHERE version() !~* 'msvc|mingw|visual c'
"""

# Usually this role owns everything, no trigger exists, and the schema contains only relations and
# functions. Then the other query, which takes three times as long, is not needed.
_NOT_OWN: Final = """
SELECT FROM pg_catalog.pg_namespace AS n
    LEFT JOIN pg_catalog.pg_depend AS d ON d.refobjid OPERATOR(pg_catalog.=) n.oid
        AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_namespace'::pg_catalog.regclass
    LEFT JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) d.objid
        AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
    LEFT JOIN pg_catalog.pg_proc AS p ON p.oid OPERATOR(pg_catalog.=) d.objid
        AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
WHERE n.nspname OPERATOR(pg_catalog.=) 'olr_pg'::pg_catalog.name AND (c.relhastriggers
    OR d.objid IS NOT NULL AND c.oid IS NULL AND p.oid IS NULL
    OR pg_catalog.pg_get_userbyid(n.nspowner) OPERATOR(pg_catalog.<>) current_user
    OR pg_catalog.pg_get_userbyid(c.relowner) OPERATOR(pg_catalog.<>) current_user
    OR pg_catalog.pg_get_userbyid(p.proowner) OPERATOR(pg_catalog.<>) current_user)
LIMIT 1
"""

# Trusted are: roles that this session could act as, and roles that could act as this session's role
# (its administrators are among its members since PostgreSQL 16, and before, all roles with
# CREATEROLE); superusers; and the owner of the database with its members, who create the ledger if
# the applier's role may not. All names and operators are qualified, because the search path of the
# role can name the schema of a stranger, whose operators can match better than PostgreSQL's.
_STRANGERS: Final = """
WITH RECURSIVE own AS (
    SELECT oid FROM pg_catalog.pg_roles WHERE rolname OPERATOR(pg_catalog.=) current_user
    UNION
    SELECT m.roleid FROM pg_catalog.pg_auth_members AS m
        JOIN own ON m.member OPERATOR(pg_catalog.=) own.oid
), masters AS (
    SELECT oid FROM pg_catalog.pg_roles
    WHERE rolname OPERATOR(pg_catalog.=) current_user
        OR oid OPERATOR(pg_catalog.=) ANY (SELECT datdba FROM pg_catalog.pg_database
            WHERE datname OPERATOR(pg_catalog.=) pg_catalog.current_database())
    UNION
    SELECT m.member FROM pg_catalog.pg_auth_members AS m
        JOIN masters ON m.roleid OPERATOR(pg_catalog.=) masters.oid
), trusted AS (
    SELECT oid FROM own UNION ALL SELECT oid FROM masters
    UNION ALL SELECT r.oid FROM pg_catalog.pg_roles AS r
        WHERE r.rolsuper
            OR r.rolname OPERATOR(pg_catalog.=) 'pg_database_owner'::pg_catalog.name
            OR r.rolcreaterole
                AND pg_catalog.current_setting('server_version_num')::pg_catalog.int4
                    OPERATOR(pg_catalog.<) 160000
                AND NOT EXISTS (SELECT FROM pg_catalog.pg_roles AS i
                    WHERE i.rolname OPERATOR(pg_catalog.=) current_user AND i.rolsuper)
), ledger AS (
    SELECT oid, nspowner FROM pg_catalog.pg_namespace
    WHERE nspname OPERATOR(pg_catalog.=) 'olr_pg'::pg_catalog.name
), found AS (
    SELECT 'the schema olr_pg' AS what, nspowner AS owner FROM ledger
    UNION ALL
    SELECT pg_catalog.concat('the relation olr_pg.', c.relname), c.relowner
    FROM ledger AS l
        JOIN pg_catalog.pg_class AS c ON c.relnamespace OPERATOR(pg_catalog.=) l.oid
    UNION ALL
    SELECT pg_catalog.concat('the function olr_pg.', p.proname), p.proowner
    FROM ledger AS l
        JOIN pg_catalog.pg_proc AS p ON p.pronamespace OPERATOR(pg_catalog.=) l.oid
    UNION ALL
    SELECT pg_catalog.concat('the function of the trigger ', t.tgname, ' on olr_pg.', c.relname),
        p.proowner
    FROM ledger AS l
        JOIN pg_catalog.pg_class AS c ON c.relnamespace OPERATOR(pg_catalog.=) l.oid
        JOIN pg_catalog.pg_trigger AS t
            ON t.tgrelid OPERATOR(pg_catalog.=) c.oid AND NOT t.tgisinternal
        JOIN pg_catalog.pg_proc AS p ON p.oid OPERATOR(pg_catalog.=) t.tgfoid
)
SELECT what, pg_catalog.pg_get_userbyid(owner)::pg_catalog.text FROM found
WHERE NOT owner OPERATOR(pg_catalog.=) ANY (SELECT oid FROM trusted) ORDER BY what LIMIT 1
"""


class Binary:
    """A parameter that is already in PostgreSQL's binary format. The SQL must cast the parameter to
    the type of the value.
    """

    __slots__ = ("data",)

    def __init__(self, data: Buffer) -> None:
        self.data = data


class _BinaryDumper(Dumper):
    format = Format.BINARY
    oid = 0

    def dump(self, obj: Binary) -> Buffer | None:
        return obj.data


def connect(
    connect_string: str,
    *,
    replica: bool | None = True,
    watch: StatementWatch | None = None,
    answer_seconds: float = ANSWER_SECONDS,
) -> BoundedConnection:
    """Connect in autocommit mode.

    A watch observes the statements of the connection, so that none waits forever for a server or a
    network that does not answer (`statement_watch`).

    Args:
        connect_string: libpq's connect string. Timeouts and keepalives in the connect string are
            used. By default, a server that has disappeared is detected after about a minute.
        replica: whether to prevent ordinary triggers and foreign keys from firing. If triggers and
            foreign keys fire, each transaction checks deferrable keys only at its end, which costs
            a round trip. None for a connection that changes no rows of replicated tables: triggers
            fire, and nothing is deferred.
        watch: a watch for several connections; None to make one for this connection only.
        answer_seconds: if the connection gets its own watch, the time limit for a statement whose
            answer is lost.

    Raises:
        OlrPgError: 5004, the role cannot set session_replication_role; 5014, the server is too old;
            5029 and 5172, an unfit pooler; 5033, the ledger belongs to a stranger.
        psycopg.Error: the server cannot be reached, or a transient error (`target_error`).
    """
    connection = BoundedConnection.connect(
        with_timeouts(connect_string),
        autocommit=True,
        application_name="olr_pg applier",
        # No prepared statements: the planner must see the length of arrays, which a generic plan
        # would guess.
        prepare_threshold=None,
    )
    try:
        connection.answer_seconds = _SET_UP_SECONDS
        (watch or ConnectionWatch(connect_string, answer_seconds)).opened(connection)
        connection.adapters.register_dumper(Binary, _BinaryDumper)
        if connection.info.server_version < MIN_VERSION:
            version = connection.info.parameter_status("server_version")
            raise OlrPgError(Code.POSTGRES_VERSION, f"the server is {version}")
        connection.execute(_SETTINGS)
        check_owners(connection)
        if replica:
            connection.execute(_REPLICA)
        # The applier can divide the changes of one statement among several. Triggers check
        # deferrable keys, and do not fire if `replica` is set.
        connection.defers_keys = replica is False
        connection.mark = secrets.token_hex(8)  # from now on, `check_session` expects it
        connection.execute(_MARK, (connection.mark,))
        connection.answer_seconds = None
    except psycopg.Error as error:
        connection.close()
        if is_transient(error):
            raise
        raise target_error(error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def connect_with(settings: ApplierSettings, *, writes: bool = True) -> BoundedConnection:
    """Connect as `connect` does, to the target of `settings`.

    Args:
        writes: whether the connection changes rows of replicated tables.
    """
    return connect(
        settings.connect_string,
        replica=settings.is_replica if writes else None,
        answer_seconds=settings.answer_seconds,
    )


class OutageWatch(Protocol):
    """Receives the errors and successes of connections. `outage.TargetOutage` implements it."""

    def failed(self, connection: object, error: psycopg.Error) -> None:
        """Record an error of a connection."""

    def retry_ended(self, connection: object) -> None:
        """Record that nothing is retried over a connection for now."""

    def reached(self, connection: object) -> None:
        """Record that the target answered on a connection."""


class Watches(NamedTuple):
    """The objects that watch a connection.

    Attributes:
        outage: is informed of the connection's errors and successes.
        statements: watches the statements, as for `connect`.
    """

    outage: OutageWatch | None = None
    statements: StatementWatch | None = None


class KeptConnection:
    """A connection that is opened on first use, and closed after an error.

    Args:
        lost: called whenever the connection ends.
        check: called with each new connection before its first use.
        replica: as for `connect`.
    """

    def __init__(
        self,
        connect_string: str,
        lost: Callable[[], None] = lambda: None,
        check: Callable[[Connection[Any]], None] = lambda _connection: None,
        watches: Watches = Watches(),  # noqa: B008 - it is immutable
        *,
        replica: bool = True,
    ) -> None:
        self._outage, self._watch = watches
        self._replica = replica
        self._connect_string = connect_string
        self._lost = lost
        self._check = check
        self._connection: BoundedConnection | None = None

    def use(self, work: Callable[[Connection[Any]], T], serves: str = "") -> T:
        """Call `work` with the connection, and return its result. Open a connection if there is
        none.

        Args:
            serves: the table that the work is for, if any.

        Raises:
            any error of `connect`, `check` and `work`.
        """
        try:
            if self._connection is None:
                self._connection = self._open()
            self._connection.serves = serves
            result = work(self._connection)
        except psycopg.Error as error:
            met = self._reason(error)
            # After any error, the connection's state is unknown.
            self.close()
            ends = self._watch is not None and self._watch.is_abandoned
            if self._outage is not None and not ends:
                self._outage.failed(self, met)
            if met is not error:
                raise met from error
            raise
        if self._outage is not None:
            self._outage.reached(self)
        return result

    @property
    def is_open(self) -> bool:
        """Whether a connection was opened and not closed. An open connection may be broken although
        psycopg has not noticed it yet.
        """
        return self._connection is not None

    def _reason(self, error: psycopg.Error) -> psycopg.Error:
        """If the watch has closed the connection, return the reason, else return the error."""
        given_up = None if self._connection is None else self._connection.given_up
        return error if given_up is None else psycopg.OperationalError(given_up)

    def rest(self) -> None:
        """Record that retries over this connection end for now."""
        if self._outage is not None:
            self._outage.retry_ended(self)

    def _open(self) -> BoundedConnection:
        connection = connect(self._connect_string, replica=self._replica, watch=self._watch)
        try:
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Close the connection. The next `use` opens another connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._lost()


def check_owners(connection: Connection[Any]) -> None:
    """Check that the schema of the ledger and all objects in it belong to trusted roles.

    Any role that may create schemas in the database can create the schema first, with tables that
    have triggers, or with views in place of the tables.

    Raises:
        OlrPgError: 5033, an object belongs to another role.
    """
    with connection.cursor(row_factory=tuple_row) as cursor:
        if cursor.execute(_NOT_OWN).rowcount == 0:
            return
        stranger = cursor.execute(_STRANGERS).fetchone()
    if stranger is not None:
        what, owner = (one.decode() if isinstance(one, bytes) else one for one in stranger)
        raise OlrPgError(Code.LEDGER_OF_STRANGER, f"{what} belongs to the role {owner}")


def check_session(connection: Connection[Any], mark: str | None) -> None:
    """Check that a query ran in the connection's own session. Connections without a mark pass.

    Args:
        mark: the value of `OWN_MARK` in the query's answer.

    Raises:
        OlrPgError: 5029, the query ran in another session, or the session has lost its settings.
            The caller must roll back.
    """
    own = connection.mark if isinstance(connection, BoundedConnection) else None
    if own is not None and mark != own:
        raise OlrPgError(
            Code.POOLER_SHARES_SESSIONS,
            "a transaction ran in a session without the settings of the connection. Nothing of it"
            " is applied",
        )


@contextmanager
def hash_joins(connection: Connection[Any]) -> Iterator[None]:
    """Allow hash joins in a transaction that lasts as long as the context, for queries about all
    tables: with 20,000 tables, a nested loop takes more than a minute.
    """
    with connection.transaction():
        connection.execute("SET LOCAL enable_hashjoin = on")
        yield


def storable(connection: Connection[Any], value: T) -> T:
    r"""Return texts in a form that the server can store: non-ASCII characters as ``\uxxxx``.

    If the server's encoding is UTF8, they are unchanged. Use this function for messages and
    statements, never for values of rows.

    Args:
        value: a text, or dicts and lists of texts as in JSON; other values are unchanged.
    """
    if connection.info.parameter_status("server_encoding") == "UTF8":
        return value
    escaped: T = _escaped(value)
    return escaped


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("ascii", "backslashreplace").decode("ascii")
    if isinstance(value, dict):
        return {key: _escaped(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_escaped(part) for part in value]
    return value
