"""Warns if a run is about to create target tables whose source tables already have rows, because
the redo does not contain these rows.

The check runs once, when a run begins. If the source or the target does not answer, the check
reports nothing, because the run itself reports this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import psycopg
import sqlalchemy.exc
import structlog
from sqlalchemy import literal, select

from olr_pg.applier.statements.target_plan import target_name
from olr_pg.applier.target.catalogue import lost_table, read_table
from olr_pg.applier.target.connection import connect_with
from olr_pg.config.source_section import OracleSource
from olr_pg.dictionary.containers import unqualified
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.facts import read_container
from olr_pg.oracle.source_containers import ContainerDatabases
from olr_pg.oracle.tables import of_user

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.config.model import Config
    from olr_pg.dictionary.model import Table

_NAMED_MAX: Final = 5

_log = structlog.get_logger(__name__)


def warn_of_rows(config: Config, settings: ApplierSettings, tables: Sequence[Table]) -> None:
    """Warn if the run will create target tables whose source tables already have rows.

    Args:
        settings: the applier's settings, with the target's connection string.
    """
    if not isinstance(config.source, OracleSource) or not settings.create_tables:
        return
    try:
        new = _missing(settings, tables)
        filled = _filled(config.source, new) if new else []
    except (OlrPgError, psycopg.Error):
        return
    if filled:
        more = len(filled) - _NAMED_MAX
        named = ", ".join(filled[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
        warning = OlrPgError(Code.ROWS_LEFT_BEHIND, named)
        _log.warning(
            "tables are created empty, without the rows that Oracle already has", error=warning
        )


def _missing(settings: ApplierSettings, tables: Sequence[Table]) -> list[Table]:
    """Return the tables that are missing in the target and that the run will create."""
    with connect_with(settings) as connection:
        return [table for table in tables if _is_to_be_created(connection, settings, table)]


def _is_to_be_created(
    connection: psycopg.Connection[Any], settings: ApplierSettings, table: Table
) -> bool:
    schema, name = target_name(settings, table.owner, table.name)
    if read_table(connection, schema, name) is not None:
        return False
    return lost_table(connection, schema, name, settings.subscription, table.full_name) is None


def _filled(source: OracleSource, tables: Sequence[Table]) -> list[str]:
    """Return the names of tables that have rows; tables that the account cannot read are left
    out.
    """
    containers = ContainerDatabases(source)
    try:
        return [
            name
            for oracle in containers.databases.values()
            for name in oracle.read(
                "checking whether tables have rows",
                lambda connection: _with_rows(connection, tables, several=bool(containers.names)),
            )
        ]
    finally:
        containers.close()


def _with_rows(connection: Connection, tables: Sequence[Table], *, several: bool) -> list[str]:
    con_id = read_container(connection)[0] if several else 0
    own = [one for one in tables if one.con_id == con_id]
    return [one.full_name for one in own if _has_rows(connection, unqualified(one))]


def _has_rows(connection: Connection, table: Table) -> bool:
    # The query has no row limit, because Oracle 11.2 has no syntax for it; only the first rows are
    # fetched.
    query: Any = select(literal(1)).select_from(of_user(table))
    try:
        return connection.execute(query).first() is not None
    except sqlalchemy.exc.DBAPIError:
        return False  # the account lacks SELECT, which a run does not need
