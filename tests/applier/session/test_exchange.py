"""The connection to the server: both byte orders, a server that restarts or is not there."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from olr_pg.applier.session.applier_session import Applier
from olr_pg.errors import OlrPgError
from olr_pg.wire.frames import ByteOrder

Replication = Any  # tests/applier/conftest.py


def _table(replication: Replication, table: str = "s.t") -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = replication.rows(f"SELECT * FROM {table} ORDER BY 1")
    return rows


@pytest.mark.parametrize("order", list(ByteOrder))
def test_both_byte_orders(replication: Replication, order: ByteOrder) -> None:
    r = replication
    r.script.order = order
    r.transaction(r.insert({"ID": 1, "N": 1, "V": "x"}))
    r.apply()
    assert _table(r) == [(1, 1, "x")]


def test_a_server_that_restarts(replication: Replication) -> None:
    r = replication
    for i in range(1_000):
        r.transaction(r.insert({"ID": i, "N": i}))
    settings = r.settings(batch_changes=10, window=16)
    applier = Applier(settings)
    thread = threading.Thread(target=applier.run)
    thread.start()
    for count in (50, 200):
        r.wait_for(f"SELECT count(*) >= {count} FROM s.t")
        r.serve(settings.port)
    r.wait_for("SELECT count(*) = 1000 FROM s.t")
    applier.stop()
    thread.join()
    assert r.rows("SELECT transactions FROM olr_pg.ledger") == [(1_000,)]


def test_two_clients_at_once(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1, "N": 1}))
    first = Applier(r.settings(poll_milliseconds=10))
    thread = threading.Thread(target=first.run)
    thread.start()
    r.wait_for("SELECT count(*) = 1 FROM s.t")
    second = Applier(r.settings(subscription="other", retry_seconds=0.2))
    with pytest.raises(OlrPgError) as caught:
        second.run(once=True)
    assert caught.value.code == 5011
    first.stop()
    thread.join()


def test_server_that_is_not_there(replication: Replication) -> None:
    r = replication
    settings = replace(r.settings(), retry_seconds=0.1)
    r.close()
    with pytest.raises(OlrPgError) as caught:
        Applier(settings).run(once=True)
    assert caught.value.code == 5011
