"""A log is cut into splits that have every block once."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from olr_pg.capture.logs import open_log
from olr_pg.decoding.split import plan_splits
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("split_bytes", [1, 512, 100_000, 1 << 40])
def test_every_block_of_redo_is_in_one_split(real_log_dir: Path, split_bytes: int) -> None:
    log = open_log(str(real_log_dir / "arch1_15_1224959854.dbf"))
    splits = plan_splits(log, split_bytes)
    assert (splits[0].first_block, splits[-1].end_block) == (2, log.blocks)
    assert all(one.end_block == after.first_block for one, after in pairwise(splits))
    assert sum(split.size for split in splits) == log.used_bytes - 2 * 512
    assert all(split.size <= max(512, split_bytes) for split in splits)


def test_a_file_without_redo_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "x.arc"
    path.write_bytes(bytes(4096))
    with pytest.raises(OlrPgError):
        open_log(str(path))
