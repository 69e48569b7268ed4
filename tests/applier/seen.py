"""What the applier's tests look at in a target: rows, errors, held changes, the spool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.applier.batches.replay import replay
from olr_pg.applier.target.connection import connect
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from olr_pg.applier.batches.replay import Replayed

Replication = Any  # tests/applier/conftest.py


def fails(replication: Replication, **options: Any) -> OlrPgError:
    """The error that applying ends with."""
    with pytest.raises(OlrPgError) as caught:
        replication.apply(**options)
    return caught.value


def stops(replication: Replication, **options: Any) -> OlrPgError:
    """The error of tables that stopped while the others went on."""
    error = fails(replication, **options)
    assert error.code == 5010
    return error


def retry(replication: Replication, table: str = "S.T", **options: Any) -> Replayed:
    """Let a stopped table go on."""
    with connect(replication.target) as connection:
        return replay(connection, replication.settings(**options), table)


def rows(replication: Replication, table: str = "s.t") -> list[tuple[Any, ...]]:
    """The rows of a target table, in order."""
    found: list[tuple[Any, ...]] = replication.rows(f"SELECT * FROM {table} ORDER BY 1")
    return found


def held(replication: Replication) -> list[tuple[Any, ...]]:
    """What the hold has."""
    found: list[tuple[Any, ...]] = replication.rows(
        "SELECT source_table, commit_scn, changes FROM olr_pg.held ORDER BY id"
    )
    return found


def errors(replication: Replication) -> list[tuple[Any, ...]]:
    """The lines of the error table."""
    found: list[tuple[Any, ...]] = replication.rows(
        "SELECT source_table, commit_scn, position, operation, code, sqlstate, resolution,"
        " attempts FROM olr_pg.error ORDER BY id"
    )
    return found
