"""At any instant, copies of the online files decode to a beginning of the truth."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest

from olr_pg.dictionary.loader import load_snapshot
from olr_pg.errors import OlrPgError
from olr_pg.rendering.json_lines import JsonLines
from olr_pg.replicator.decode_once import decode_logs
from olr_pg.simulator.database_shape import choose_shape, demo_shape
from olr_pg.simulator.online_redo.online_database import OnlineOptions
from olr_pg.simulator.online_redo.written_redo import FlushStyle
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.writer.instance import Pace
from tests.simulator.online_redo.completeness import TruthPrefix
from tests.simulator.online_redo.played import Playing, source_of

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot
    from olr_pg.simulator.simulated_files import Summary

WILD = OnlineOptions(style=FlushStyle(pieces=6, torn=0.6), archive_lag=2)
LOOKS = 12


def decoded(snapshot: Snapshot, folder: Path) -> bytes | None:
    """What is printed up to the first thing that is missing."""
    lines = JsonLines(snapshot.database)
    places = [str(folder / "logs"), str(folder / "online")]
    found = bytearray()
    blobs = decode_logs(snapshot, places)
    while True:
        try:
            found += lines.render(next(blobs))
        except StopIteration:
            return bytes(found)
        except OlrPgError as error:
            if error.code == 2005 and error.where["block"] == 1:
                return None  # its header was being written: whoever copied it copies it again
            if error.code not in {2001, 2010}:
                raise
            return bytes(found)


def shop(folder: Path) -> Summary:
    shape = replace(demo_shape(), pace=Pace(log_blocks=24))
    return simulate(3, folder, workload="orders", size=70_000, shape=shape)


def cluster(folder: Path) -> Summary:
    shape = choose_shape(11, "random", threads=2, block_size=512, big_endian=True)
    shape = replace(shape, pace=replace(shape.pace, log_blocks=40, lwn_bytes=2_000, strands=2))
    return simulate(11, folder, size=60_000, shape=shape)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("make", [shop, cluster])
def test_copies_decode_to_a_beginning_of_the_truth(tmp_path: Path, make: object, seed: int) -> None:
    assert callable(make)
    source = source_of(make(tmp_path / "source"))
    snapshot = load_snapshot(str(tmp_path / "source" / "dictionary.json"))
    steps = sum(1 for _ in Playing(source, tmp_path / "count", seed, WILD).play())
    looks = set(Random(seed).sample(range(steps // 10, steps), LOOKS)) | {steps - 1}
    playing = Playing(source, tmp_path / "play", seed, WILD)
    prefix = TruthPrefix(source.truth, source.logs)
    for number, _ in enumerate(playing.play()):
        if number not in looks:
            continue
        got = decoded(snapshot, playing.folder)
        if got is None:
            continue
        assert source.truth.startswith(got)
        if len(source.threads) == 1:
            # Of several threads, the one that was read least decides.
            assert got.startswith(prefix.complete(playing.database.flushed()))
    assert decoded(snapshot, playing.folder) == source.truth
