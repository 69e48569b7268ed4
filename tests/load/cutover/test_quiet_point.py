"""What a cut-over asks of a live database, through the stand-in."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from olr_pg.capture.logs import open_log
from olr_pg.config.reading import load_config
from olr_pg.dictionary.structure import Sequence, Structure
from olr_pg.errors import OlrPgError
from olr_pg.load.cutover.quiet_point import cutover_source
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.simulation import simulate
from tests.oracle.live_source import LiveSource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.load.cutover.quiet_point import CutoverSource

SEQUENCE = Sequence(owner="SIM", name="KEYS", next=101, increment=10)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveSource]:
    shape = choose_shape(11, "random", threads=2)
    summary = simulate(11, tmp_path / "source", size=60_000, shape=shape)
    snapshot = replace(summary.snapshot, structure=Structure(sequences=(SEQUENCE,)))
    source = LiveSource(replace(summary, snapshot=snapshot), tmp_path)
    yield source
    source.close()


@pytest.fixture
def end(live: LiveSource, tmp_path: Path) -> CutoverSource:
    server = live.server.connect_string
    source = {"kind": "oracle", "user": "olr", "password": "olr", "server": server}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"source": source}), "utf-8")
    return cutover_source(load_config(path), None, None)


def test_open_transactions_are_not_quiet(live: LiveSource, end: CutoverSource) -> None:
    live.archive()
    live.state.catalogue.insert("GV$TRANSACTION", [{"START_SCN": 77}, {"START_SCN": 66}])
    with pytest.raises(OlrPgError) as caught:
        end.quiet()
    assert caught.value.code == 5121
    assert caught.value.detail == "2 open transactions, the oldest since SCN 66"
    live.state.catalogue.update('DELETE FROM SYS."GV$TRANSACTION"')
    assert end.quiet() == (live.state.scn, "")


def test_every_open_thread_is_asked_for(live: LiveSource, end: CutoverSource) -> None:
    while live.waiting:
        live.archive()
    assert set(end.archived()) == {1, 2}
    assert max(end.archived().values()) == live.state.scn
    # What commits at the SCN that ends the last log is in the next one.
    assert live.state.scn == max(open_log(str(log)).next_scn for log in live.summary.logs) - 1
    closed = 'UPDATE SYS."V$THREAD" SET "STATUS" = \'CLOSED\' WHERE "THREAD#" = 2'
    live.state.catalogue.update(closed)
    assert set(end.archived()) == {1}
    live.state.catalogue.update('DELETE FROM SYS."V$ARCHIVED_LOG"')
    assert end.archived() == {1: 0}


def test_the_sequences_of_the_owners(live: LiveSource, end: CutoverSource) -> None:
    live.archive()
    assert end.sequences({"SIM"}, live.state.scn) == (SEQUENCE,)
    assert end.sequences({"OTHER"}, live.state.scn) == ()
