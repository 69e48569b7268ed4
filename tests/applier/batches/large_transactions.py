"""Transactions that do not fit into memory, for the applier's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.applier.conftest import insert

if TYPE_CHECKING:
    from tests.applier.conftest import Change, Replication

SMALL: Final = {"spool_bytes": 4_000, "batch_changes": 50}
"""Settings under which some dozens of changes are large."""


def large(count: int, start: int = 0, table: str = "T") -> list[Change]:
    """Insert rows with ids from `start` on."""
    return [insert({"ID": start + n, "N": n, "V": f"row {n}"}, table) for n in range(count)]


def other(replication: Replication) -> None:
    """Make a second table."""
    replication.execute("CREATE TABLE s.o (id bigint PRIMARY KEY, n numeric, v varchar(20))")
