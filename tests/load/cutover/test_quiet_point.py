"""What a cut-over asks of a live database, through the stand-in."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from olr_pg.capture.logs import open_log
from olr_pg.config.reading import load_config
from olr_pg.dictionary.model import Column, Database, Snapshot, Table
from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.dictionary.structure import Sequence, Structure
from olr_pg.errors import Code, OlrPgError
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
    return cutover_source(load_config(path), (), None)


def test_options_of_an_offline_source_are_refused_for_a_live_one(tmp_path: Path) -> None:
    source = {"user": "u", "password": "p", "server": "127.0.0.1:1/S"}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"source": source}), "utf-8")
    for dictionary, scn in (((), 5), ((tmp_path / "end.json",), None)):
        with pytest.raises(OlrPgError) as caught:
            cutover_source(load_config(path), dictionary, scn)
        assert caught.value.code == 1090


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


class Twins:
    """An offline source of two PDBs that both have SHOP, and its dictionaries of the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, when in (("begin", 10), ("end", 100)):
            for number, pdb in enumerate(("PDB1", "PDB2")):
                database = Database("ORCL", con_id=3 + number, con_name=pdb, activation=1)
                keys = Sequence(owner="SHOP", name="KEYS", next=when + number, increment=1)
                write_snapshot(
                    Snapshot(when, database, (table(),), structure=Structure(sequences=(keys,))),
                    str(folder / f"{name}.{pdb}.json"),
                )
        document = {
            "context": {"data": str(folder / "data")},
            "source": {
                "kind": "offline",
                "dictionary": [str(folder / "begin.PDB1.json"), str(folder / "begin.PDB2.json")],
                "logs": str(folder / "logs"),
            },
        }
        (folder / "config.json").write_text(json.dumps(document), "utf-8")

    def sequences(self, *dictionary: str, scn: int = 50) -> dict[str, int]:
        config = load_config(self.folder / "config.json")
        files = [self.folder / name for name in dictionary]
        found = cutover_source(config, files, None).sequences({"PDB1.SHOP", "PDB2.SHOP"}, scn)
        return {one.owner: one.next for one in found}


def table() -> Table:
    return Table("SHOP", "A", 70, 70, (Column("ID", 1, 1, 1, 2, 22),))


@pytest.mark.parametrize(
    "given",
    [
        ["end.PDB1.json", "end.PDB2.json"],
        ["end.PDB2.json", "end.PDB1.json"],
        ["end.json"],
    ],
)
def test_the_final_dictionary_is_that_of_every_container(tmp_path: Path, given: list[str]) -> None:
    assert Twins(tmp_path).sequences(*given) == {"PDB1.SHOP": 100, "PDB2.SHOP": 101}


def test_a_final_dictionary_that_lacks_a_container_is_refused(tmp_path: Path) -> None:
    twins = Twins(tmp_path)
    for given in (["end.PDB2.json"], ["end.PDB1.json", "end.PDB1.json"]):
        with pytest.raises(OlrPgError) as caught:
            twins.sequences(*given)
        assert caught.value.code == Code.CONTAINERS_NOT_TOGETHER
        assert "the source's containers are PDB1, PDB2" in caught.value.detail
    (tmp_path / "end.PDB2.json").unlink()
    with pytest.raises(OlrPgError, match=r"end\.PDB2\.json"):
        twins.sequences("end.json")


def test_dictionaries_of_before_the_end_are_too_old(tmp_path: Path) -> None:
    twins = Twins(tmp_path)
    for given in ([], ["begin.json"]):
        with pytest.raises(OlrPgError) as caught:
            twins.sequences(*given)
        assert caught.value.code == Code.SEQUENCES_TOO_OLD
