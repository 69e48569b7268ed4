"""Transactions of the target that a source, which was taken back, does not have any more."""

from __future__ import annotations

from typing import Any

import pytest

from olr_pg.applier.target.orphaned_transactions import orphaned_transactions
from olr_pg.errors import OlrPgError
from olr_pg.scalars import format_xid

Replication = Any  # tests/applier/conftest.py


def test_what_commits_at_or_after_the_scn(replication: Replication) -> None:
    r = replication
    assert orphaned_transactions(r.target, "olr_pg", 0, 7) == []  # no ledger yet
    r.transaction(r.insert({"ID": 1}), scn=1_000, xid=3)
    r.apply()
    assert orphaned_transactions(r.target, "olr_pg", 1_001, 7) == []
    assert orphaned_transactions(r.target, "other", 1_000, 7) == []
    (found,) = orphaned_transactions(r.target, "olr_pg", 1_000, 7)
    assert (found.source_table, found.target_table, found.commit_scn) == ("S.T", "s.t", 1_000)
    assert found.xids == (format_xid(3),)
    r.execute("UPDATE olr_pg.ledger SET resetlogs_id = 7")  # loaded again in the new incarnation
    assert orphaned_transactions(r.target, "olr_pg", 1_000, 7) == []
    assert len(orphaned_transactions(r.target, "olr_pg", 1_000, 8)) == 1
    # An earlier release has left the ledger.
    r.execute("ALTER TABLE olr_pg.ledger DROP COLUMN resetlogs_id")
    assert len(orphaned_transactions(r.target, "olr_pg", 1_000, 7)) == 1


def test_a_target_out_of_reach() -> None:
    with pytest.raises(OlrPgError) as caught:
        orphaned_transactions("host=127.0.0.1 port=1 connect_timeout=2", "olr_pg", 0, 7)
    assert caught.value.code == 5003
