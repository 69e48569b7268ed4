"""What a command says whose configuration lacks something."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from olr_pg.config.model import Config
from olr_pg.config.reading import parse_config
from olr_pg.dictionary.model import Column, Database, Snapshot, Table
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.parquet import SCN_KEY
from olr_pg.load.sources import apply_section, offline_source, open_tables, table_sources

LIVE = {"user": "u", "password": "p", "server": "db:1521/orcl"}


@pytest.fixture
def live(tmp_path: Path) -> Config:
    return parse_config({"source": LIVE}, folder=tmp_path)


def test_a_live_source_is_no_offline_one(live: Config) -> None:
    with pytest.raises(OlrPgError) as caught:
        offline_source(live)
    assert caught.value.code == Code.NOT_SUPPORTED


def test_there_is_no_target(live: Config) -> None:
    with pytest.raises(OlrPgError) as caught:
        apply_section(live)
    assert caught.value.code == Code.NO_TARGET


def test_a_live_source_takes_no_folder_of_rows(live: Config, tmp_path: Path) -> None:
    with pytest.raises(OlrPgError, match="--tables") as caught, open_tables(live, folder=tmp_path):
        pass
    assert caught.value.code == Code.NOT_SUPPORTED


def test_files_are_not_taken_for_rows_of_another_scn(tmp_path: Path) -> None:
    column = Column("ID", 1, 1, 1, 2, 22, precision=12, scale=0, nullable=False)
    table = Table("S", "T", 80_000, 80_000, (column,))
    snapshot = Snapshot(5, Database("X", activation=1, resetlogs=(1,)), (table,))
    schema = pa.schema([("ID", pa.int64())], metadata={SCN_KEY: b"77"})
    pq.write_table(pa.table({"ID": [1]}, schema=schema), tmp_path / "S.T.parquet")
    source = {"kind": "offline", "dictionary": "d.json", "logs": ["logs"], "tables": str(tmp_path)}
    config = parse_config({"source": source}, folder=tmp_path)
    for scn in (None, 77):
        assert [one.scn for one in table_sources(config, snapshot, [table], scn=scn)] == [77]
    with pytest.raises(OlrPgError, match="as of SCN 77, not 78") as caught:
        table_sources(config, snapshot, [table], scn=78)
    assert caught.value.code == Code.TABLE_DATA_UNUSABLE
