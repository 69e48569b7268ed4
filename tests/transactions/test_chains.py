"""Rows of several pieces without supplemental data: what belongs together, what nobody tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.errors import OlrPgError
from olr_pg.simulator.model.tables import Logging
from tests.transactions.row_forms import Shape, SmallDatabase, wide

if TYPE_CHECKING:
    from pathlib import Path


def unlogged_chain(folder: Path) -> SmallDatabase:
    """A committed row of three pieces in a table without supplemental logging."""
    base = SmallDatabase(folder, Shape(Logging.NONE))
    assert base.session.insert(base.table, base.row(1, 1000, 1000, 1000, 10))
    base.session.commit()
    return base


def test_a_later_piece_of_an_older_row_is_refused(tmp_path: Path) -> None:
    base = unlogged_chain(tmp_path)
    (row,) = base.table.live
    # The model takes the row for one that this transaction wrote.
    base.session.begin_empty()
    row.chain_owner = base.session.transaction
    assert base.session.update(row, {4: wide(11)})
    base.close()
    with pytest.raises(OlrPgError) as caught:
        base.decoded()
    assert caught.value.code == 2061
    assert "SUPPLEMENTAL LOG" in caught.value.action


def test_a_later_piece_of_an_own_row_is_told(tmp_path: Path) -> None:
    base = SmallDatabase(tmp_path, Shape(Logging.NONE))
    row = base.session.insert(base.table, base.row(1, 1000, 1000, 1000, 10))
    assert row
    assert base.session.update(row, {4: wide(11)})
    assert base.session.update(row, {1: wide(990)})
    base.close()
    base.check()


def test_a_chain_whose_head_does_not_follow_is_refused(tmp_path: Path) -> None:
    base = unlogged_chain(tmp_path)
    (row,) = base.table.live
    row.chain = row.chain[:-1]
    assert base.session.delete(row)
    base.close()
    with pytest.raises(OlrPgError) as caught:
        base.decoded()
    assert caught.value.code == 2061
