"""Parquet files: the truth, whole or not there, and anew behind a DDL."""

from __future__ import annotations

import json
import os
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyarrow.parquet as pq
import pytest
from structlog.testing import capture_logs

from olr_pg.errors import Code, OlrPgError
from olr_pg.redo.sessions import SessionDirectory
from olr_pg.rendering.parquet_files import ParquetFiles
from olr_pg.replicator.decode_once import DecodingOptions, LogDecoding
from tests.replicator.ddl_source import NUMBER, TEXT, DdlSource
from tests.replicator.decoded_seeds import SimulatedSeed, Source, simulated

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot

    Row = dict[str, Any]


def write(snapshot: Snapshot, logs: Path, out: Path, threads: int = 0) -> LogDecoding:
    decoding = LogDecoding(snapshot, [str(logs)], packed=True)
    sessions = SessionDirectory()
    with ParquetFiles(out, decoding, sessions, threads=threads) as files:
        for run in decoding.runs(DecodingOptions(sessions=sessions)):
            files.take(run)
    return decoding


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return simulated(tmp_path_factory.mktemp("s"), 5, "orders", 1_000_000)


def rows_of(folder: Path) -> list[Row]:
    """The rows of all files of a table."""
    files = [pq.ParquetFile(path) for path in folder.iterdir()]
    return [row for file in files for row in file.read().to_pylist()]


def truth_of(source: Source) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for element in (json.loads(line, parse_float=Decimal) for line in source.truth.splitlines()):
        if "table" in element:
            found.setdefault(element["table"], []).append(element)
    return found


def facts(row: Row) -> tuple[Any, ...]:
    return row["commit_scn"], row["xid"], row["scn"], row["op"], row["rowid"]


@pytest.mark.parametrize(("seed", "threads"), [(3, 0), (4, 2), (7, 0)])
def test_the_files_of_every_table_are_the_truth(tmp_path: Path, seed: int, threads: int) -> None:
    source = SimulatedSeed(seed, 200_000).simulated(tmp_path / "s")
    with (
        patch("olr_pg.rendering.parquet_files.PIECE_BYTES", 2_000),
        patch("olr_pg.rendering.parquet_files.GROUP_BYTES", 20_000),
        patch("olr_pg.rendering.parquet_files.WAITING_BYTES_MAX", 50_000),
    ):
        write(source.snapshot, source.folder / "logs", tmp_path / "out", threads)
    truth = truth_of(source)
    assert {path.name for path in (tmp_path / "out").iterdir()} == truth.keys()
    for table, expected in truth.items():
        assert sorted(map(facts, rows_of(tmp_path / "out" / table))) == sorted(map(facts, expected))


def test_a_file_is_a_logs_and_in_delivery_order(source: Source, tmp_path: Path) -> None:
    decoding = write(source.snapshot, source.folder / "logs", tmp_path / "out")
    names = {
        f"{log.header.thread}_{log.header.sequence}_{log.header.resetlogs_id}.parquet": log
        for log in decoding.logs
    }
    assert len(names) == 2
    for path in (tmp_path / "out").rglob("*"):
        if path.is_dir():
            continue
        log, file = names[path.name], pq.ParquetFile(path)
        scns: list[Any] = file.read()["commit_scn"].to_pylist()
        assert scns == sorted(scns)
        assert all(log.header.first_scn <= scn < log.next_scn for scn in scns)
        assert file.read()["machine"].null_count < len(scns)
    statement = next(line for line in truth_of(source)["SHOP.ORDERS"] if line["op"] == "insert")
    row = next(r for r in rows_of(tmp_path / "out/SHOP.ORDERS") if facts(r) == facts(statement))
    assert row["before"] is None
    assert row["after"]["ORDER_ID" if "ORDER_ID" in row["after"] else "ID"] is not None


def test_a_later_start_replaces_no_file_that_has_more_changes(
    source: Source, tmp_path: Path
) -> None:
    logs = sorted((source.folder / "logs").iterdir())
    out = tmp_path / "out"
    write(source.snapshot, source.folder / "logs", out)
    some = next(out.rglob("1_19_*.parquet"))
    whole = {path: path.read_bytes() for path in out.rglob("*.parquet")}
    later = tmp_path / "later"
    later.mkdir()
    for log in logs[1:]:
        (later / log.name).symlink_to(log)
    with capture_logs() as said:
        assert write(source.snapshot, later, out).lacking_scn
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == whole
    codes = {line["code"] for line in said}
    assert codes == {"OLR-01211", "OLR-02143", "OLR-02144"}
    some.unlink()  # nothing is kept where nothing is
    write(source.snapshot, later, out)
    assert some.exists()


def test_a_ddl_that_changes_the_columns_begins_another_file(tmp_path: Path) -> None:
    source = DdlSource(tmp_path / "s")
    source.create("A", {"ID": NUMBER, "NAME": TEXT})
    snapshot = source.take_snapshot()
    source.insert("A", 1, "one")
    source.add_column("A", "EXTRA", NUMBER)
    source.insert("A", 2, "two", 22)
    source.finish()
    write(snapshot, source.directory / "logs", tmp_path / "out")
    files = sorted((tmp_path / "out/SHOP.A").iterdir(), key=lambda path: len(path.name))
    assert [path.name.endswith("-2.parquet") for path in files] == [False, True]
    images = [pq.ParquetFile(path).read()["after"].to_pylist() for path in files]
    assert images == [
        [{"ID": "1", "NAME": "one"}],
        [{"ID": "2", "NAME": "two", "EXTRA": "22"}],
    ]


def test_what_is_not_whole_is_not_there(source: Source, tmp_path: Path) -> None:
    decoding, sessions = (
        LogDecoding(source.snapshot, [str(source.folder / "logs")], packed=True),
        SessionDirectory(),
    )
    runs = list(decoding.runs(DecodingOptions(sessions=sessions)))
    last = runs[-1].cut(len(runs[-1]) - 1)[0]

    def interrupted() -> None:
        with ParquetFiles(
            tmp_path / "out",
            decoding,
            sessions,
        ) as files:
            for run in (*runs[:-1], last):
                files.take(run)
            assert list((tmp_path / "out").rglob(".*.partial"))
            raise KeyboardInterrupt

    with (
        patch("olr_pg.rendering.parquet_files.PIECE_BYTES", 2_000),
        patch("olr_pg.rendering.parquet_files.GROUP_BYTES", 1),
        pytest.raises(KeyboardInterrupt),
    ):
        interrupted()
    found = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert {path.name for path in found} == {"1_18_1218700800.parquet"}
    assert all(pq.ParquetFile(path).metadata.num_rows for path in found)


def test_the_name_of_the_directory_can_be_any_bytes(source: Source, tmp_path: Path) -> None:
    out = tmp_path / os.fsdecode(b"a\xff'\n")
    write(source.snapshot, source.folder / "logs", out)
    assert [path.name for path in (out / "SHOP.SETTINGS").iterdir()] == ["1_18_1218700800.parquet"]


@pytest.mark.parametrize("threads", [0, 2])
def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path, threads: int) -> None:
    source = SimulatedSeed(3, 50_000).simulated(tmp_path / "s")
    out = tmp_path / "out"
    out.mkdir()
    for table in truth_of(source):
        (out / table).write_text("in the way")
    with pytest.raises(OlrPgError) as caught:
        write(source.snapshot, source.folder / "logs", out, threads)
    assert caught.value.code == Code.OUTPUT_UNWRITABLE
    (tmp_path / "file").write_text("")
    with pytest.raises(OlrPgError) as caught:
        write(source.snapshot, source.folder / "logs", tmp_path / "file")
    assert caught.value.code == Code.OUTPUT_UNWRITABLE
