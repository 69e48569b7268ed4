"""Checks that a query of a table returns all rows with their real values.

Oracle can add a condition to each query of a table (Virtual Private Database, Label Security), and
can replace values in the results (Data Redaction). No error shows this. Redo contains all rows with
their real values, so a table that was loaded, compared or repaired with such queries would differ
from the replicated changes: rows would be missing, or values would be wrong, and a comparison would
delete what replication has written.

Access policies do not apply to accounts with EXEMPT ACCESS POLICY or EXEMPT REDACTION POLICY
(Oracle Database Security Guide, “Using Oracle Virtual Private Database to Control Data Access”;
Advanced Security Guide, “Exemption of Users from Oracle Data Redaction Policies”). A policy's
function or expression can also exempt the account. But olr_pg cannot read this, so it reports such
a policy as a policy that applies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import oracledb

from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.driver.bounded_calls import PRIVILEGE, oracle_error
from olr_pg.oracle.oracle_connection import execute
from olr_pg.oracle.tables import batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from olr_pg.dictionary.model import Table

ACCESS: Final = "EXEMPT ACCESS POLICY"
REDACTION: Final = "EXEMPT REDACTION POLICY"

_HAS_POLICY: Final = 0x800
"""Bit of TAB$.FLAGS: the table has a security policy (dictionary §2.3)."""

_PRIVILEGES: Final = "SELECT PRIVILEGE FROM SESSION_PRIVS WHERE PRIVILEGE LIKE 'EXEMPT %'"
_POLICIES: Final = (
    "SELECT OBJECT_OWNER, OBJECT_NAME, POLICY_NAME, ENABLE, SEL, INS, UPD, DEL FROM ALL_POLICIES"
    " WHERE {} ORDER BY POLICY_NAME"
)
_FLAGS: Final = "SELECT OBJ#, FLAGS FROM SYS.TAB$ WHERE OBJ# IN ({})"
_REDACTED: Final = (
    "SELECT OBJECT_OWNER, OBJECT_NAME, POLICY_NAME, ENABLE FROM REDACTION_POLICIES"
    " WHERE {} ORDER BY POLICY_NAME"
)


def check_access_policies(connection: Any, table: Table) -> None:
    """Check that no policy hides rows of a table from a query of the connection's account, or
    replaces values; see `hiding_policies`.

    Raises:
        OlrPgError: 7047, a policy applies.
        oracledb.Error: any error of Oracle.
    """
    for error in hiding_policies(connection, [table]):
        raise error


def hiding_policies(
    connection: Any, tables: Sequence[Table], *, writes: bool = False
) -> Iterator[OlrPgError]:
    """Yield error 7047 for each table with a policy that hides rows from the connection's account,
    or replaces values.

    Data Redaction is not noticed if the account cannot read REDACTION_POLICIES; `olr-pg doctor
    --load` reports this.

    Args:
        connection: a connection of the driver, in the tables' container.
        tables: the tables, with the names that they have in their container.
        writes: whether the connection also changes rows. A policy for INSERT, UPDATE or DELETE can
            hide rows from such statements, too: DELETE without a condition would leave the hidden
            rows.

    Raises:
        oracledb.Error: any error of Oracle.
    """
    exempt = {privilege for (privilege,) in execute(connection, _PRIVILEGES)}
    hiding = {} if ACCESS in exempt else _hiding_rows(connection, tables, writes)
    replacing = {} if REDACTION in exempt else _replacing_values(connection, tables)
    for table in tables:
        if reason := hiding.get(table.full_name):
            yield _refused(connection, table, reason, ACCESS)
        elif reason := replacing.get(table.full_name):
            yield _refused(connection, table, reason, REDACTION)


def _hiding_rows(connection: Any, tables: Sequence[Table], writes: bool) -> dict[str, str]:
    """Return which security policies may hide rows, by the name of the table."""
    found = _by_table(_of_tables(execute, connection, _POLICIES, tables))
    reasons = dict[str, str]()
    for table in tables:
        active = [
            policy
            for policy, enabled, selects, *others in found.get(table.full_name, ())
            if enabled == "YES" and "YES" in (selects, *(others if writes else ()))
        ]
        if active:
            text = f"the policy {', '.join(active)} (ALL_POLICIES) may hide rows"
            reasons[table.full_name] = text
    # Oracle's own script that creates TAB$ calls this bit "table has security policy". The view
    # may lack policies that are not of DBMS_RLS.
    unknown = {table.obj: table for table in tables if table.full_name not in found}
    for obj in _flagged(connection, list(unknown)):
        reasons[unknown[obj].full_name] = (
            "according to TAB$.FLAGS, the table has a security policy that ALL_POLICIES does not"
            " show. The policy can be one of Label Security, which may hide rows"
        )
    return reasons


def _flagged(connection: Any, objs: Sequence[int]) -> Iterator[int]:
    """Yield OBJ# of the tables that have a security policy according to TAB$; none if the account
    cannot read TAB$.
    """
    for batch in batches(objs):
        marks, binds = _binds("t", batch)
        for obj, flags in _rows_if_allowed(connection, _FLAGS.format(marks), binds):
            if int(flags or 0) & _HAS_POLICY:
                yield int(obj)


def _replacing_values(connection: Any, tables: Sequence[Table]) -> dict[str, str]:
    """Return which redaction policies may replace values, by the name of the table; empty if the
    account cannot read the policies.
    """
    found = _by_table(_of_tables(_rows_if_allowed, connection, _REDACTED, tables))
    active = {
        name: [policy for policy, enabled in own if str(enabled or "").strip() == "YES"]
        for name, own in found.items()
    }
    return {
        name: f"the policy {', '.join(own)} (REDACTION_POLICIES) may replace values"
        for name, own in active.items()
        if own
    }


def _of_tables(
    read: Callable[[Any, str, Mapping[str, object]], Sequence[Any]],
    connection: Any,
    query: str,
    tables: Sequence[Table],
) -> Iterator[Sequence[Any]]:
    """Yield the rows of a view of policies that belong to the tables."""
    for batch in batches(sorted((table.owner, table.name) for table in tables)):
        owners, of_owners = _binds("o", sorted({owner for owner, _ in batch}))
        names, of_names = _binds("t", sorted({name for _, name in batch}))
        where = f"OBJECT_OWNER IN ({owners}) AND OBJECT_NAME IN ({names})"
        listed = set(batch)
        for row in read(connection, query.format(where), of_owners | of_names):
            if (row[0], row[1]) in listed:
                yield row


def _by_table(rows: Iterable[Sequence[Any]]) -> dict[str, list[Sequence[Any]]]:
    """Return the rows without owner and name of their table, by the table's name."""
    found: dict[str, list[Sequence[Any]]] = {}
    for owner, name, *row in rows:
        found.setdefault(f"{owner}.{name}", []).append(row)
    return found


def _binds(letter: str, values: Sequence[object]) -> tuple[str, dict[str, object]]:
    """Return the marks of an IN list and their binds."""
    binds = {f"{letter}{number}": value for number, value in enumerate(values)}
    return ", ".join(f":{name}" for name in binds), binds


def _refused(connection: Any, table: Table, reason: str, privilege: str) -> OlrPgError:
    return OlrPgError(
        Code.POLICY_HIDES_DATA,
        reason,
        action=f"as a DBA: GRANT {privilege} TO {str(connection.username).upper()}. The grant is"
        " necessary even if the policy itself already exempts this user, because olr_pg cannot"
        " see that. Or disable the policy while olr_pg reads the table. Replication needs"
        " neither, because redo contains all rows",
        table=table.full_name,
    )


def _rows_if_allowed(connection: Any, query: str, binds: Mapping[str, object]) -> Sequence[Any]:
    """Return the rows of the query; none if the account lacks the privilege."""
    try:
        return execute(connection, query, binds)
    except oracledb.Error as error:
        if oracle_error(error, "checking the policies of a table").code != PRIVILEGE:
            raise
        return ()
