"""A decoding error leaves an incident file with the records of its transaction."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.decoding.incidents import with_incident
from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.errors import OlrPgError
from olr_pg.files.sealed import RowKey, SealedReader, sealing
from olr_pg.redo.dump.incident import incident_records, read_incident
from olr_pg.redo.record_view import same_transaction, vector_xids
from olr_pg.replicator.decode_once import DecodingOptions, decode_logs
from olr_pg.simulator.sessions.sys_dictionary import sys_cell
from tests.replicator.ddl_source import NUMBER, TEXT, DdlSource
from tests.replicator.test_ddl_pipeline import run_once

if TYPE_CHECKING:
    from olr_pg.dictionary.model import Snapshot


@pytest.fixture
def source(tmp_path: Path) -> DdlSource:
    """A row has more columns than the dictionary says."""
    source = DdlSource(tmp_path / "s", followed=False)
    source.create("A", {"ID": NUMBER, "NAME": TEXT})
    source.take_snapshot()
    source.insert("A", 1, "one")
    session = source.session
    for number in (2, 3):
        assert session.insert(source.tables["A"], _cells(number)) is not None
    session.commit()
    source.finish()
    return source


def _cells(number: int) -> list[Any]:
    return [sys_cell(number), sys_cell(f"secret {number}")]


def narrowed(source: DdlSource) -> Snapshot:
    """The dictionary without the last column."""
    assert source.snapshot is not None
    (table,) = source.snapshot.tables
    narrow = replace(table, columns=table.columns[:1])
    return replace(source.snapshot, tables=(narrow,))


def check_incident(folder: Path) -> bytes:
    (path,) = folder.iterdir()
    content = path.read_bytes()
    incident = read_incident(content, path=str(path))
    assert incident.code == 2016
    assert incident.xid is not None
    assert [record.failed for record in incident.records].count(True) == 1
    for record in incident_records(incident):
        xids = [xid for vector in record.vectors for xid in vector_xids(vector)]
        assert any(same_transaction(incident.xid, xid) for xid in xids)
    return content


def test_decode_leaves_the_records_of_the_transaction(source: DdlSource, tmp_path: Path) -> None:
    folder = tmp_path / "incidents"
    with pytest.raises(OlrPgError) as caught:
        list(
            decode_logs(
                narrowed(source),
                [str(source.directory / "logs")],
                options=DecodingOptions(incidents=folder),
            )
        )
    assert str(folder) in str(caught.value.where["incident"])
    content = check_incident(folder)
    assert b"one".hex().encode() in content


def test_in_a_directory_of_everybody_no_other_user_gets_its_rows(
    source: DdlSource, tmp_path: Path
) -> None:
    def written() -> OlrPgError:
        options = DecodingOptions(incidents=tmp_path / "incidents")
        before = os.umask(0)
        try:
            with pytest.raises(OlrPgError) as caught:
                list(
                    decode_logs(narrowed(source), [str(source.directory / "logs")], options=options)
                )
        finally:
            os.umask(before)
        return caught.value

    path = Path(str(written().where["incident"]))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    # The name is known, so another user can create files and links before.
    prepared = path.with_name(f"{path.name}.new")
    prepared.touch(0o666)
    written()
    assert prepared.read_bytes() == b""
    mine = tmp_path / "mine"
    mine.touch()
    path.unlink()
    path.symlink_to(mine)
    assert "incident" not in written().where
    assert mine.read_bytes() == b""


def test_with_a_key_it_is_encrypted(source: DdlSource, tmp_path: Path) -> None:
    folder, key = tmp_path / "incidents", RowKey(bytes(range(32)))
    with sealing(key), pytest.raises(OlrPgError):
        list(
            decode_logs(
                narrowed(source),
                [str(source.directory / "logs")],
                options=DecodingOptions(incidents=folder),
            )
        )
    (path,) = folder.iterdir()
    assert b"one".hex().encode() not in path.read_bytes()
    with sealing(key), SealedReader(path) as sealed:
        path.write_bytes(sealed.read(0, sealed.size))
    check_incident(folder)


def test_without_a_place_in_the_redo_the_error_stays_as_it_is(tmp_path: Path) -> None:
    for error in (
        OlrPgError(2011, "x", thread=1),
        OlrPgError(2005, "x", thread=1, sequence=1, block=2, offset=16),
        OlrPgError(2011, "x", thread=1, sequence=1, block=2, offset=16),
    ):
        assert with_incident(error, [], tmp_path) is error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("one_session")
def test_the_run_leaves_it_in_its_data_directory(source: DdlSource, postgres_database: str) -> None:
    write_snapshot(narrowed(source), str(source.directory / "dictionary.json"))
    with pytest.raises(OlrPgError, match="OLR-02016"):
        run_once(source, postgres_database, ["A"])
    check_incident(source.directory / "data" / "incidents")
