"""What decode writes, measured: the files of both forms are there, on one core and on two."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from olr_pg.bench.inputs import log_set
from olr_pg.bench.sites import outputs
from olr_pg.bench.suite import Options

if TYPE_CHECKING:
    from pathlib import Path


def test_each_form_is_measured_beside_its_anchor(tmp_path: Path) -> None:
    found = {}
    for one in outputs(Options(300_000, tmp_path, tmp_path, runs=1)):
        found[one.name] = one.anchor
        assert one.value > 0
        workload = one.name.split()[1]
        if "JSON Lines" in one.name:
            truth = log_set(tmp_path, workload, 300_000).folder / "truth.jsonl"
            assert (tmp_path / "lines.jsonl").read_bytes() == truth.read_bytes()
        else:
            files = list((tmp_path / "parquet").rglob("*.parquet"))
            assert files
            assert all(pq.ParquetFile(path).metadata.num_rows for path in files)
    assert found == {
        **{
            f"decode {workload} to {form}, one core": anchor
            for workload in ("orders", "bulk", "lobs")
            for form, anchor in (("JSON Lines", "messages"), ("Parquet files", "JSON Lines"))
        },
        "decode orders to JSON Lines, two processes": "one core",
        "decode orders to Parquet files, two processes": "one core",
    }
