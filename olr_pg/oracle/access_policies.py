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
from olr_pg.oracle.driver.driver_failures import PRIVILEGE, oracle_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.dictionary.model import Table

ACCESS: Final = "EXEMPT ACCESS POLICY"
REDACTION: Final = "EXEMPT REDACTION POLICY"

_HAS_POLICY: Final = 0x800
"""Bit of TAB$.FLAGS: the table has a security policy (dictionary §2.3)."""

_PRIVILEGES: Final = "SELECT PRIVILEGE FROM SESSION_PRIVS WHERE PRIVILEGE LIKE 'EXEMPT %'"
_POLICIES: Final = (
    "SELECT POLICY_NAME, ENABLE, SEL, INS, UPD, DEL FROM ALL_POLICIES"
    " WHERE OBJECT_OWNER = :owner AND OBJECT_NAME = :name ORDER BY POLICY_NAME"
)
_FLAGS: Final = "SELECT FLAGS FROM SYS.TAB$ WHERE OBJ# = :obj"
_REDACTED: Final = (
    "SELECT POLICY_NAME, ENABLE FROM REDACTION_POLICIES"
    " WHERE OBJECT_OWNER = :owner AND OBJECT_NAME = :name ORDER BY POLICY_NAME"
)


def check_access_policies(connection: Any, table: Table, *, writes: bool = False) -> None:
    """Check that no policy hides rows of a table from the connection's account, or replaces values.

    Data Redaction is not noticed if the account cannot read REDACTION_POLICIES; `olr-pg doctor
    --load` reports this.

    Args:
        connection: a connection of the driver, in the table's container.
        table: the table, with the names that it has in its container.
        writes: whether the connection also changes rows. A policy for INSERT, UPDATE or DELETE can
            hide rows from such statements, too: DELETE without a condition would leave the hidden
            rows.

    Raises:
        OlrPgError: 7047, a policy applies.
        oracledb.Error: any error of Oracle.
    """
    exempt = {privilege for (privilege,) in _rows(connection, _PRIVILEGES)}
    if ACCESS not in exempt and (reason := _hides_rows(connection, table, writes)) is not None:
        raise _refused(connection, table, reason, ACCESS)
    if REDACTION not in exempt and (reason := _replaces_values(connection, table)) is not None:
        raise _refused(connection, table, reason, REDACTION)


def _hides_rows(connection: Any, table: Table, writes: bool) -> str | None:
    """Return which security policy may hide rows; None if there is none."""
    found = _rows(connection, _POLICIES, owner=table.owner, name=table.name)
    active = [
        policy
        for policy, enabled, selects, *others in found
        if enabled == "YES" and "YES" in (selects, *(others if writes else ()))
    ]
    if active:
        return f"the policy {', '.join(active)} (ALL_POLICIES) may hide rows"
    if found:
        return None
    # Oracle's own script that creates TAB$ calls this bit "table has security policy". The view
    # may lack policies that are not of DBMS_RLS.
    flagged = _rows_if_allowed(connection, _FLAGS, obj=table.obj)
    if any(int(flags or 0) & _HAS_POLICY for (flags,) in flagged):
        return (
            "according to TAB$.FLAGS, the table has a security policy that ALL_POLICIES does not"
            " show. It can be a policy of Label Security, which may hide rows"
        )
    return None


def _replaces_values(connection: Any, table: Table) -> str | None:
    """Return which redaction policy may replace values; None if there is none, or the account
    cannot read the policies.
    """
    found = _rows_if_allowed(connection, _REDACTED, owner=table.owner, name=table.name)
    active = [policy for policy, enabled in found if str(enabled or "").strip() == "YES"]
    if not active:
        return None
    return f"the policy {', '.join(active)} (REDACTION_POLICIES) may replace values"


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


def _rows(connection: Any, query: str, **binds: object) -> Sequence[Any]:
    with connection.cursor() as cursor:
        cursor.execute(query, binds)
        rows: Sequence[Any] = cursor.fetchall()
    return rows


def _rows_if_allowed(connection: Any, query: str, **binds: object) -> Sequence[Any]:
    """Return the rows of the query; none if the account lacks the privilege."""
    try:
        return _rows(connection, query, **binds)
    except oracledb.Error as error:
        if oracle_error(error, "checking the policies of a table").code != PRIVILEGE:
            raise
        return ()
