"""Texts of ours in databases of other encodings."""

from __future__ import annotations

import pytest

from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ErrorRow, TableLedger, ensure_ledger
from olr_pg.load.steps_done import FAILED, note_step, read_steps
from olr_pg.postgres.printed_definitions import storable
from tests.applier.target.test_database_kind import encoded

_TEXT = "CREATE TEMPORARY TABLE … „ж“"


@pytest.mark.parametrize(
    ("encoding", "stored"),
    [("UTF8", _TEXT), ("LATIN1", "CREATE TEMPORARY TABLE \\u2026 \\u201e\\u0436\\u201c")],
)
def test_messages_and_steps_are_kept(postgres: str, encoding: str, stored: str) -> None:
    row = ErrorRow(
        commit_scn=1, xid="1.2.3", position=0, scn=1, row_id=None, operation="ddl", code=5008,
        sqlstate=None, message=_TEXT, statement=_TEXT, before=None, after=None,
        resolution="stopped",
    )  # fmt: skip
    with encoded(postgres, encoding) as database, connect(database) as connection:
        ensure_ledger(connection)
        TableLedger("olr_pg", "S.T", "s.t").record(connection, row)
        found = connection.execute("SELECT message, statement FROM olr_pg.error").fetchall()
        assert found == [(stored, stored)]
        note_step(connection, "olr_pg", "report", FAILED, {"reasons": [_TEXT], "count": 1})
        assert read_steps(connection, "olr_pg")["report"].detail == {
            "reasons": [stored],
            "count": 1,
        }
        assert storable(connection, None) is None
