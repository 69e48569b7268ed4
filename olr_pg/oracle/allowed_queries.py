"""Finds out what the account of a live source may read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy.exc
from sqlalchemy import literal

from olr_pg.oracle.driver_failures import PRIVILEGE, oracle_error

if TYPE_CHECKING:
    from sqlalchemy import Connection


def is_allowed(connection: Connection, query: Any) -> bool:
    """Tell whether the query is allowed; it returns nothing.

    Raises:
        sqlalchemy.exc.DBAPIError: it fails for another reason.
    """
    try:
        connection.execute(query.where(literal(0) == literal(1))).all()
    except sqlalchemy.exc.DBAPIError as problem:
        if oracle_error(problem, "checking privileges").code != PRIVILEGE:
            raise
        return False
    return True
