"""Table data in Parquet files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from olr_pg.errors import OlrPgError
from olr_pg.load.parquet import BATCH_BYTES, SCN_KEY, START_SCN_KEY, find_table_data


def write(path: Path, values: list[int], scn: bytes | None = None, group: int = 99) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = pa.schema([("ID", pa.int64())], metadata=None if scn is None else {SCN_KEY: scn})
    pq.write_table(pa.table({"ID": values}, schema=schema), path, row_group_size=group)


def rows(folder: Path) -> list[int]:
    found = find_table_data(folder, "S.T")
    batches = (batch for part in found.partitions for batch in part.batches())
    return [value.as_py() for batch in batches for value in batch.column(0)]  # type: ignore[union-attr]


def test_a_partition_is_a_row_group_and_its_rows_come_in_order(tmp_path: Path) -> None:
    write(tmp_path / "S.T.parquet", list(range(10)), b"77", 4)
    found = find_table_data(tmp_path, "S.T")
    assert [part.rows for part in found.partitions] == [4, 4, 2]
    sizes = [part.size for part in found.partitions]
    assert sizes[0] >= sizes[2] > 0
    assert (found.rows, found.scn, found.start_scn) == (10, 77, None)
    assert rows(tmp_path) == list(range(10))


def test_a_folder_of_files_is_one_table(tmp_path: Path) -> None:
    write(tmp_path / "S.T" / "b.parquet", [3, 4])
    write(tmp_path / "S.T" / "a.parquet", [1, 2])
    assert rows(tmp_path) == [1, 2, 3, 4]


def test_what_changes_is_not_the_same_data(tmp_path: Path) -> None:
    write(tmp_path / "S.T.parquet", [1])
    before = find_table_data(tmp_path, "S.T").identity
    assert find_table_data(tmp_path, "S.T").identity == before
    write(tmp_path / "S.T.parquet", [1] * 1_000)
    assert find_table_data(tmp_path, "S.T").identity != before


def test_a_file_that_is_replaced_while_it_is_loaded_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "S.T.parquet", [1, 2, 3], group=1)
    first, *others = find_table_data(tmp_path, "S.T").partitions
    assert len(list(first.batches())) == 1
    write(tmp_path / "S.T.parquet", [4, 5, 6, 7], group=1)
    with pytest.raises(OlrPgError) as caught:
        list(others[0].batches())
    assert caught.value.code == 5110


@pytest.mark.parametrize("other", ["S.T/b.parquet", "S.T/day=1/b.parquet"])
def test_files_that_would_not_be_read_are_refused(tmp_path: Path, other: str) -> None:
    write(tmp_path / "S.T" / "a.parquet" if "day" in other else tmp_path / "S.T.parquet", [1])
    write(tmp_path / other, [2])
    with pytest.raises(OlrPgError, match=r"b\.parquet") as caught:
        find_table_data(tmp_path, "S.T")
    assert caught.value.code == 5103


def test_wide_rows_come_in_small_batches(tmp_path: Path) -> None:
    wide = pa.table({"C": [str(n) * 100_000 for n in range(8)]})
    pq.write_table(wide, tmp_path / "S.T.parquet", use_dictionary=False, compression="none")
    (part,) = find_table_data(tmp_path, "S.T").partitions
    assert max(batch.nbytes for batch in part.batches()) <= BATCH_BYTES  # type: ignore[union-attr]


def test_files_that_contradict_each_other(tmp_path: Path) -> None:
    write(tmp_path / "S.T" / "a.parquet", [1], b"5")
    write(tmp_path / "S.T" / "b.parquet", [1], b"6")
    with pytest.raises(OlrPgError, match="different SCNs"):
        find_table_data(tmp_path, "S.T")
    pq.write_table(pa.table({"OTHER": [1]}), tmp_path / "S.T" / "b.parquet")
    with pytest.raises(OlrPgError, match="the columns of the file differ"):
        find_table_data(tmp_path, "S.T")


def test_what_is_no_table_data(tmp_path: Path) -> None:
    with pytest.raises(OlrPgError, match="neither S\\.T\\.parquet"):
        find_table_data(tmp_path, "S.T")
    write(tmp_path / "S.T.parquet", [1], b"soon")
    with pytest.raises(OlrPgError, match="is not an SCN"):
        find_table_data(tmp_path, "S.T")
    (tmp_path / "S.T.parquet").write_bytes(b"PAR1")
    with pytest.raises(OlrPgError) as caught:
        find_table_data(tmp_path, "S.T")
    assert caught.value.code == 5103


def test_the_oldest_open_transaction_is_in_the_metadata(tmp_path: Path) -> None:
    schema = pa.schema([("ID", pa.int64())], metadata={SCN_KEY: b"9", START_SCN_KEY: b"4"})
    pq.write_table(pa.table({"ID": [1]}, schema=schema), tmp_path / "S.T.parquet")
    found = find_table_data(tmp_path, "S.T")
    assert (found.scn, found.start_scn) == (9, 4)
