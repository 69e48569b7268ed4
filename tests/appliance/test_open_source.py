"""The source that a configuration names, without what its filter leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.appliance.open_source import open_source
from olr_pg.config.reading import parse_config
from olr_pg.dictionary.model import Column, Database, Snapshot, Table
from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.config.model import Config

COLUMNS = (Column("ID", 1, 1, 1, 2, 22), Column("SECRET", 2, 2, 2, 2, 22))
EVERYTHING = "SELECT owner, table_name FROM all_tables"


def config(folder: Path, **sections: Any) -> Config:
    tables = tuple(Table("APP", name, obj, obj, COLUMNS) for obj, name in enumerate("TU", 100))
    write_snapshot(Snapshot(9, Database("X", resetlogs=(1,)), tables), str(folder / "d.json"))
    (folder / "archive").mkdir()
    source = {"kind": "offline", "dictionary": "d.json", "logs": "archive", "poll-ms": 1500}
    return parse_config({"source": source, **sections}, folder, {}, file="c.json")


def test_an_offline_source_is_read_with_the_filter(tmp_path: Path) -> None:
    section = {"tables": {"exclude": ["APP.U"]}, "columns": {"APP.T": ["SECRET"]}}
    with open_source(config(tmp_path, filter=section), tmp_path, lambda: None) as source:
        snapshot, tables = source.resolve(EVERYTHING)
        assert [table.full_name for table in tables] == ["APP.T"]
        assert [column.name for column in tables[0].delivered] == ["ID"]
        assert snapshot.scn == 9
        assert source.scan(0, 0).logs == ()
        assert source.pause(0) <= 1.5


def test_a_dictionary_that_is_not_there_is_an_error_of_its_own(tmp_path: Path) -> None:
    found = config(tmp_path)
    (tmp_path / "d.json").unlink()
    with (
        pytest.raises(OlrPgError) as caught,
        open_source(found, tmp_path, lambda: None),
    ):
        pass
    assert caught.value.code // 1000 == 3
