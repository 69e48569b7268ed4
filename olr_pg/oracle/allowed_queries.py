"""Checks which tables and views the account of a live source can read."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy.exc
from sqlalchemy import Integer, false, literal_column, select, union_all

from olr_pg.oracle.driver.bounded_calls import PRIVILEGE, oracle_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import Connection, FromClause, Table

TOGETHER_MAX: Final = 50
"""Maximum number of tables that one statement checks."""


def rows_if_allowed(connection: Connection, query: Any) -> Sequence[Any] | None:
    """Return the rows of the query; None if the account lacks the privilege.

    Raises:
        sqlalchemy.exc.DBAPIError: the query fails for another reason.
    """
    try:
        return connection.execute(query).all()
    except sqlalchemy.exc.DBAPIError as problem:
        if oracle_error(problem, "checking privileges").code != PRIVILEGE:
            raise
        return None


def forbidden(connection: Connection, sources: Mapping[str, FromClause]) -> frozenset[str]:
    """Return the names of the tables and views that the account cannot read.

    Raises:
        sqlalchemy.exc.DBAPIError: a query fails for another reason.
    """
    names = iter(sources)
    batches = iter(lambda: list(islice(names, TOGETHER_MAX)), [])
    return frozenset(name for batch in batches for name in _among(connection, sources, batch))


def unreadable(connection: Connection, views: Iterable[Table]) -> list[Table]:
    """Return the views that the account cannot read, in the order of `views`.

    Raises:
        sqlalchemy.exc.DBAPIError: a query fails for another reason.
    """
    known = {view.name: view for view in views}
    denied = forbidden(connection, known)
    return [view for name, view in known.items() if name in denied]


def _among(
    connection: Connection, sources: Mapping[str, FromClause], names: Sequence[str]
) -> Iterator[str]:
    """Yield the names that the account cannot read. Check all names in one statement; if it fails,
    check each half.
    """
    one = literal_column("1", Integer)
    queries = (select(one).select_from(sources[name]).where(false()) for name in names)
    if rows_if_allowed(connection, union_all(*queries)) is not None:
        return
    if len(names) == 1:
        yield names[0]
        return
    middle = len(names) // 2
    yield from _among(connection, sources, names[:middle])
    yield from _among(connection, sources, names[middle:])
