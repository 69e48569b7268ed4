"""Support for ``AS OF SCN`` in SQLAlchemy Core.

`read_undo_retention` reads how long the source keeps undo for queries ``AS OF SCN``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import BigInteger, BindParameter, Connection, Table, bindparam, func, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.selectable import Alias
from sqlalchemy.sql.visitors import InternalTraversal

from olr_pg.oracle.tables import PARAMETER, UNDOSTAT, bound


class AsOfScn(Alias):
    """A table as of an SCN; `as_of` returns it.

    The SCN is also a bind in SQLAlchemy's cache of compiled statements, so that a statement is
    compiled only once for all SCNs.
    """

    inherit_cache = True
    _traverse_internals = [  # noqa: RUF012 - as SQLAlchemy declares it
        *Alias._traverse_internals,
        ("scn", InternalTraversal.dp_clauseelement),
    ]
    scn: BindParameter[int]


def as_of(table: Table, scn: int | BindParameter[int], name: str) -> AsOfScn:
    """Return `table` as of `scn`, with the alias `name`; the SCN is a bind."""
    found = AsOfScn._construct(table, name=name)
    if isinstance(scn, int):
        scn = bindparam("scn", scn, BigInteger, unique=True)
    found.scn = scn
    return found


@compiles(AsOfScn, "oracle")
def _compile(element: AsOfScn, compiler: Any, asfrom: bool = False, **options: Any) -> str:
    if not asfrom:
        return str(compiler.visit_alias(element, asfrom=False, **options))
    linter = options.pop("from_linter", None)
    if linter is not None:
        # Tell SQLAlchemy's linter that conditions refer to the alias and not to the table.
        linter.froms[element] = str(element.name)
    table = compiler.process(element.element, asfrom=True, **options)
    scn = compiler.process(element.scn)
    return f"{table} AS OF SCN {scn} {compiler.preparer.quote(str(element.name))}"


class UndoRetention(NamedTuple):
    """Number of seconds for which Oracle keeps undo.

    Attributes:
        wanted: the parameter UNDO_RETENTION. If the undo tablespace is full, Oracle keeps undo for
            a shorter time, unless the retention is guaranteed.
        tuned: the retention that Oracle currently uses, from the latest row of V$UNDOSTAT; None if
            there is no row.
    """

    wanted: int
    tuned: int | None


def read_undo_retention(connection: Connection) -> UndoRetention:
    """Read the current retention (Database Reference, V$UNDOSTAT: one row per ten minutes).

    Raises:
        sqlalchemy.exc.DBAPIError: one of the two views cannot be read.
    """
    wanted = connection.execute(
        select(PARAMETER.c.VALUE).where(bound("undo_retention") == PARAMETER.c.NAME)
    ).scalar_one()
    columns = UNDOSTAT.c
    latest = select(func.max(columns.BEGIN_TIME)).scalar_subquery()
    tuned = connection.execute(
        select(columns.TUNED_UNDORETENTION).where(latest == columns.BEGIN_TIME)
    ).scalar()
    return UndoRetention(int(wanted), None if tuned is None else int(tuned))
