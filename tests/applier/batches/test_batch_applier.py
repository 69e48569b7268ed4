from __future__ import annotations

from typing import Any

import psycopg
import pytest

from olr_pg.applier.batches.batch_applier import CommitDurability
from olr_pg.applier.target.connection import connect
from olr_pg.errors import OlrPgError

Replication = Any  # tests/applier/conftest.py

LATE = """
CREATE FUNCTION s.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'not this one'; END $$;
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON s.t DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (NEW.id = 13) EXECUTE FUNCTION s.refuse();
ALTER TABLE s.t ENABLE ALWAYS TRIGGER late
"""


@pytest.mark.parametrize("lags", [False, True])
def test_places_come_with_the_commit(replication: Replication, lags: bool) -> None:
    with connect(replication.target) as connection:
        durability = CommitDurability(lambda: lags)
        connection.execute("BEGIN")
        connection.execute("INSERT INTO s.t (id) VALUES (1)")
        with connection.pipeline():
            durability.commit(connection)
        assert durability.lags is lags
        end, flushed = durability.places(connection)
        assert end >= flushed > 0
        later, _ = durability.places(connection)
        assert later >= end
    assert replication.rows("SELECT id FROM s.t") == [(1,)]


def test_a_commit_that_fails_has_no_places(replication: Replication) -> None:
    replication.execute(LATE)
    with connect(replication.target) as connection:
        durability = CommitDurability(lambda: True)
        connection.execute("BEGIN")
        connection.execute("INSERT INTO s.t (id) VALUES (13)")
        with pytest.raises(psycopg.errors.RaiseException), connection.pipeline():
            durability.commit(connection)
        end, flushed = durability.places(connection)
        assert end >= flushed > 0


def test_what_a_commit_refuses_holds_nobody_else_back(replication: Replication) -> None:
    """Found transaction by transaction, while other batches follow."""
    r = replication
    r.execute(LATE)
    for number in range(1, 60):
        r.transaction(r.insert({"ID": number}))
    with pytest.raises(OlrPgError) as caught:
        r.apply(batch_changes=5)
    assert caught.value.code == 5010
    assert r.rows("SELECT count(*), max(id) FROM s.t") == [(12, 12)]
    errors = r.rows("SELECT commit_scn, attempts, message FROM olr_pg.error")
    assert len(errors) == 1
    assert errors[0][1] == 1
    assert "not this one" in errors[0][2]
