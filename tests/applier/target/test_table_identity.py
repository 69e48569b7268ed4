"""Tables and a ledger that were not restored together: the tables stop, and nothing is applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.applier.batches.replay import replay
from olr_pg.applier.stopped.left_out import unfit_reason
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable

Replication = Any  # tests/applier/conftest.py

_ID = Column("ID", 1, 1, 1, OracleType.NUMBER, 22, 9, 0, nullable=False)
_NAMES = ("T", "U", "EMPTY")
_TABLES = [
    Table("S", name, number, number, (_ID,), key_kind=KeyKind.PRIMARY, key=(1,))
    for number, name in enumerate(_NAMES, 1)
]
_AGAIN = "DROP TABLE s.{0}; CREATE TABLE s.{0} (id int PRIMARY KEY);"
_LEDGER = "CREATE TABLE public.kept AS TABLE olr_pg.ledger; DROP SCHEMA olr_pg CASCADE"
_RESTORED = "INSERT INTO olr_pg.ledger SELECT * FROM public.kept"


@pytest.fixture
def applied(postgres_database: str, replicate: Callable[[str], Replication]) -> Replication:
    """One row in T and one in U; EMPTY has had none."""
    made = replicate(postgres_database)
    made.execute("CREATE SCHEMA s")
    for name in _NAMES:
        made.execute(f"CREATE TABLE s.{name} (id int PRIMARY KEY)")
    made.transaction(made.insert({"ID": 1}, "T"), made.insert({"ID": 1}, "U"))
    made.apply(_TABLES)
    return made


def _stopped(r: Replication) -> dict[str, int]:
    with pytest.raises(OlrPgError) as ended:
        r.apply(_TABLES)
    assert ended.value.code == Code.TABLES_STOPPED
    return dict(r.rows("SELECT source_table, code FROM olr_pg.error WHERE resolution = 'stopped'"))


def _ids(r: Replication, name: str) -> list[int]:
    return [number for (number,) in r.rows(f"SELECT id FROM s.{name} ORDER BY id")]


def test_a_table_that_was_restored_without_the_ledger_stops(applied: Replication) -> None:
    """Also without a later change; until an operator loads it, or says that it has all rows."""
    r = applied
    r.execute(_AGAIN.format("t") + _AGAIN.format("u") + _AGAIN.format("empty"))
    r.transaction(r.insert({"ID": 2}, "T"), r.insert({"ID": 2}, "EMPTY"))
    assert _stopped(r) == dict.fromkeys(("S.T", "S.U"), Code.TARGET_TABLE_REPLACED)
    assert (_ids(r, "t"), _ids(r, "empty")) == ([], [2])
    with connect(r.target) as connection:
        error = replay(connection, r.settings(), "S.T").error
        assert error is not None
        assert error.code == Code.TARGET_TABLE_REPLACED
        # What the error advises.
        r.execute("INSERT INTO s.t VALUES (1); INSERT INTO s.u VALUES (1)")
        r.execute("UPDATE olr_pg.ledger SET target_oid = NULL WHERE source_table = 'S.T'")
        assert replay(connection, r.settings(), "S.T").error is None
    assert _ids(r, "t") == [1, 2]
    assert _stopped(r) == {"S.U": Code.TARGET_TABLE_REPLACED}


def test_a_ledger_that_was_restored_without_the_tables_stops_them(applied: Replication) -> None:
    r = applied
    r.execute(_LEDGER)
    with connect(r.target) as connection:
        ensure_ledger(connection)
    r.execute(_RESTORED)
    assert _stopped(r) == dict.fromkeys(("S.T", "S.U"), Code.TARGET_TABLE_REPLACED)


def test_what_keeps_rows_and_ledger_together_stops_nothing(applied: Replication) -> None:
    r = applied
    for statement in (
        "VACUUM FULL s.t",
        "CLUSTER s.t USING t_pkey",
        "REINDEX TABLE s.t",
        "ALTER TABLE s.t ALTER id TYPE bigint",
        "VACUUM FULL olr_pg.ledger",
    ):
        r.execute(statement)
    r.transaction(r.insert({"ID": 2}, "T"))
    r.apply(_TABLES)
    # A dump that is restored into the same database.
    r.execute(_LEDGER)
    r.execute(_AGAIN.format("t") + _AGAIN.format("u"))
    r.execute("INSERT INTO s.t VALUES (1), (2); INSERT INTO s.u VALUES (1)")
    with connect(r.target) as connection:
        ensure_ledger(connection)
    r.execute(_RESTORED)
    r.transaction(r.insert({"ID": 3}, "T"))
    r.apply(_TABLES)
    assert (_ids(r, "t"), _ids(r, "u")) == ([1, 2, 3], [1])
    # The OIDs of another server or database prove nothing.
    r.execute(_AGAIN.format("t"))
    with connect(r.target) as connection:
        assert unfit_reason(connection, r.settings(), "S.T") is not None
        r.execute("UPDATE olr_pg.ledger SET target_place = regexp_replace(target_place, '^', '1')")
        assert unfit_reason(connection, r.settings(), "S.T") is None
