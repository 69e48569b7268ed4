"""Stopped tables: what they get is held, in order, and applied when they go on."""

from __future__ import annotations

from typing import Any

import pytest

from olr_pg.applier.session.applier_session import Applier
from olr_pg.applier.stopped.held_events import read_source, source_document
from olr_pg.applier.target.ledger import VERSION
from olr_pg.datatypes.convert import DEFAULT_FACTS
from olr_pg.errors import OlrPgError
from tests.applier.seen import retry, rows, stops

Replication = Any  # tests/applier/conftest.py
KEY = ("olr_pg", "S.T")


def test_the_bookkeeping_of_version_1_is_brought_up_to_date(replication: Replication) -> None:
    r = replication
    r.execute("""
        CREATE SCHEMA olr_pg;
        CREATE TABLE olr_pg.ledger (subscription text, source_table text, target_table text,
            commit_scn bigint, xids text[] NOT NULL DEFAULT '{}', applied_at timestamptz,
            transactions bigint NOT NULL DEFAULT 0, inserted bigint NOT NULL DEFAULT 0,
            updated bigint NOT NULL DEFAULT 0, deleted bigint NOT NULL DEFAULT 0,
            conflicts bigint NOT NULL DEFAULT 0, stopped boolean NOT NULL DEFAULT false,
            PRIMARY KEY (subscription, source_table));
        INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn, xids,
            stopped) VALUES ('olr_pg', 'S.T', 's.t', 10, '{0.0.1}', true)""")
    r.transaction(r.insert({"ID": 1}))
    last = r.transaction(r.insert({"ID": 2}))
    r.apply()
    assert rows(r) == [(2, None, None)]
    assert r.rows("SELECT commit_scn, stopped FROM olr_pg.ledger") == [(last, False)]
    r.execute("UPDATE olr_pg.version SET version = version + 1")
    with pytest.raises(OlrPgError) as caught:
        r.apply()
    assert caught.value.code == 5140
    assert str(VERSION + 1) in caught.value.detail


def test_a_hold_of_another_release_is_refused(replication: Replication) -> None:
    r = replication
    r.execute("ALTER TABLE s.t ADD CONSTRAINT small CHECK (n < 100)")
    r.transaction(r.insert({"ID": 1, "N": 100}))
    stops(r)
    again = Applier(r.settings())
    again._target.use(again._prepare)
    again._target.close()
    (table,) = again.tables
    assert table.error is not None, "what stopped in an earlier run is still said to be"
    assert (table.name, table.error.code) == ("S.T", 5008)
    r.execute("UPDATE olr_pg.held SET data = substr(data, 1, 50)")
    with pytest.raises(OlrPgError) as caught:
        retry(r)
    assert caught.value.code == 5141
    assert read_source(source_document(None, DEFAULT_FACTS, 5)) == (None, DEFAULT_FACTS)
