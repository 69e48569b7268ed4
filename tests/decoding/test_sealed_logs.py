"""Encrypted copies of logs decode to what the plain ones do, and to nothing without their key."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from olr_pg.capture.logs import open_log
from olr_pg.capture.readers import map_log, read_blocks, same_content
from olr_pg.decoding.split import plan_splits
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.errors import OlrPgError
from olr_pg.files.sealed import RowKey, seal_file, sealing
from olr_pg.replicator.decode_once import DecodingOptions, decode_logs
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.writer.instance import Pace

if TYPE_CHECKING:
    from olr_pg.dictionary.model import Snapshot

KEY = RowKey(bytes(range(32)))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> tuple[Snapshot, Path, Path]:
    """A dictionary, its logs (small ones, which are decoded together) and encrypted copies."""
    folder = tmp_path_factory.mktemp("sealed")
    shape = replace(choose_shape(4, "random"), pace=Pace(log_blocks=100))
    simulate(4, folder / "sim", size=300_000, shape=shape)
    sealed = folder / "sealed"
    shutil.copytree(folder / "sim" / "logs", sealed)
    with sealing(KEY):
        for path in sealed.iterdir():
            seal_file(path)
    snapshot = load_snapshot(str(folder / "sim" / "dictionary.json"))
    return snapshot, folder / "sim" / "logs", sealed


@pytest.mark.parametrize("split_bytes", [4_096, 1 << 30])
def test_they_decode_to_the_same(source: tuple[Snapshot, Path, Path], split_bytes: int) -> None:
    snapshot, plain, sealed = source
    plan = partial(plan_splits, split_bytes=split_bytes)
    with sealing(KEY):
        expected, found = (
            b"".join(
                bytes(blob)
                for blob in decode_logs(snapshot, [str(folder)], options=DecodingOptions(plan=plan))
            )
            for folder in (plain, sealed)
        )
    assert len(expected) > 10_000
    assert found == expected


def test_they_are_read_like_the_plain_ones(source: tuple[Snapshot, Path, Path]) -> None:
    _, plain, sealed = source
    with sealing(KEY):
        for path in plain.iterdir():
            one, other = open_log(str(path)), open_log(str(sealed / path.name))
            assert (one.header, one.size) == (other.header, other.size)
            assert same_content(one, other)
            assert np.array_equal(map_log(one.path), map_log(other.path))
            end = one.blocks
            assert np.array_equal(read_blocks(one, 3, end), read_blocks(other, 3, end))


def test_without_the_key_and_damaged_they_are_unreadable_logs(
    source: tuple[Snapshot, Path, Path], tmp_path: Path
) -> None:
    snapshot, _, sealed = source
    with pytest.raises(OlrPgError, match="the file is encrypted, and no key is set") as caught:
        list(decode_logs(snapshot, [str(sealed)]))
    assert caught.value.code == 2002
    path = tmp_path / "log.arc"
    data = bytearray(min(sealed.iterdir()).read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with sealing(KEY), pytest.raises(OlrPgError, match="damaged or cut off") as caught:
        list(decode_logs(snapshot, [str(path)]))
    assert caught.value.code == 2002
