"""Redo in a file, and out of it again."""

from __future__ import annotations

from pathlib import Path

from olr_pg.simulator.online_redo.redo_spool import spooled
from olr_pg.simulator.online_redo.written_redo import redo_of_logs
from tests.simulator.online_redo.played import Source


def test_redo_comes_out_as_it_was_put_in(shop: Source, tmp_path: Path) -> None:
    assert list(spooled(redo_of_logs(shop.logs), tmp_path / "spool")) == list(
        redo_of_logs(shop.logs)
    )
    assert list(tmp_path.iterdir()) == []


def test_a_spool_without_redo_is_empty(tmp_path: Path) -> None:
    assert list(spooled([], tmp_path / "spool")) == []
