"""What the schemas of several containers are called lasts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from olr_pg.appliance.container_names import FILE_NAME, containers_of, offline_dictionary
from olr_pg.config.reading import load_config
from olr_pg.config.source_section import OfflineSource
from olr_pg.dictionary.model import Column, Database, Snapshot, Table
from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.errors import Code, OlrPgError
from tests.advice import followed

if TYPE_CHECKING:
    from olr_pg.config.model import Config

ID = Column("ID", 1, 1, 1, 2, 22)


class Source:
    """An offline source whose containers may change."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def config(self, **owners: list[str]) -> Config:
        """Containers whose names end with a digit, each with a table T of these owners."""
        files = []
        for name, own in owners.items():
            con_id = int(name[-1]) + 2
            tables = tuple(Table(one, "T", 100 + n, 100, (ID,)) for n, one in enumerate(own))
            database = Database("CDB", con_id=con_id, con_name=name, dbid=con_id)
            files.append(str(self.folder / f"{name}.json"))
            write_snapshot(Snapshot(1000, database, tables), files[-1])
        path = self.folder / "config.json"
        source = {"kind": "offline", "dictionary": files, "logs": "logs"}
        path.write_text(json.dumps({"context": {"data": "data"}, "source": source}))
        return load_config(path)


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(tmp_path)


def names(config: Config, *, keep: bool) -> list[str]:
    assert isinstance(config.source, OfflineSource)
    return [one.full_name for one in offline_dictionary(config, config.source, keep=keep).tables]


def test_a_schema_keeps_its_name_when_another_container_has_it_later(source: Source) -> None:
    first = source.config(PDB1=["HR", "SHOP"], PDB2=["SHOP"])
    assert names(first, keep=True) == ["HR.T", "PDB1.SHOP.T", "PDB2.SHOP.T"]
    later = source.config(PDB1=["HR", "SHOP"], PDB2=["HR", "SHOP"], PDB3=["HR"])
    assert names(later, keep=True) == [
        "HR.T", "PDB1.SHOP.T", "PDB2.HR.T", "PDB2.SHOP.T", "PDB3.HR.T",
    ]  # fmt: skip
    fewer = source.config(PDB1=["HR", "SHOP"], PDB3=["HR"])
    assert names(fewer, keep=True) == ["HR.T", "PDB1.SHOP.T", "PDB3.HR.T"]


def test_a_container_that_was_renamed_is_refused(source: Source) -> None:
    """By its DBID; nobody would go on with the tables that the target knows."""
    names(source.config(PDB1=["HR"], PDB2=["SHOP"]), keep=True)
    renamed = source.config(PDB1=["HR"], SALES2=["SHOP"])
    for keep in (True, False):
        with pytest.raises(OlrPgError, match="PDB2 was renamed to SALES2") as refused:
            names(renamed, keep=keep)
        words = "remove the entry with the old name under `containers`. No comma may remain"
        error = followed(refused.value, Code.CONTAINER_RENAMED, "rename the PDB back", words)
    assert names(source.config(PDB1=["HR"], SALES3=["SHOP"]), keep=False) == [
        "HR.T",
        "SALES3.SHOP.T",
    ]
    assert names(source.config(PDB1=["HR"], PDB2=["SHOP"]), keep=True) == ["HR.T", "SHOP.T"]
    path = Path(str(error.where["file"]))
    kept = re.sub(r',\s*"PDB2": \d+', "", path.read_text("utf-8"))
    path.write_text(kept, "utf-8")
    for keep in (True, False):
        assert names(renamed, keep=keep) == ["HR.T", "SALES2.SHOP.T"]


def test_a_file_of_before_the_containers_were_kept_is_read(source: Source) -> None:
    config = source.config(PDB1=["HR"], PDB2=["HR"])
    (source.folder / "data").mkdir()
    path = source.folder / "data" / FILE_NAME
    path.write_text('{"version": 1, "schemas": {"HR": "PDB2"}}')
    assert names(config, keep=True) == ["PDB1.HR.T", "HR.T"]
    assert json.loads(path.read_text())["containers"] == {"PDB1": 3, "PDB2": 4}


def test_who_only_looks_keeps_nothing(source: Source) -> None:
    config = source.config(PDB1=["HR"], PDB2=["SHOP"])
    assert names(config, keep=False) == ["HR.T", "SHOP.T"]
    assert not (source.folder / "data" / FILE_NAME).exists()
    assert containers_of(config) == ("PDB1", "PDB2")
    assert containers_of(source.config(PDB1=["HR"])) == ()


def test_a_damaged_file_is_refused(source: Source) -> None:
    config = source.config(PDB1=["HR"], PDB2=["SHOP"])
    (source.folder / "data").mkdir()
    (source.folder / "data" / FILE_NAME).write_text("[]")
    with pytest.raises(OlrPgError) as refused:
        names(config, keep=True)
    assert refused.value.code == Code.CONTAINER_NAMES_UNUSABLE
