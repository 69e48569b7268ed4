"""Steps carried out on files."""

from __future__ import annotations

from pathlib import Path

import pytest

from olr_pg.simulator.online_redo.online_files import OnlineFiles
from olr_pg.simulator.online_redo.steps import (
    Archived,
    CopyToArchive,
    CreateFile,
    ForbidReading,
    RemoveFile,
    Write,
    WriteArchive,
)
from tests.simulator.online_redo.played import Source
from tests.simulator.reader import parse_log

CREATE = CreateFile("redo01a.log", b"head", 2_000)


def test_a_file_is_made_written_and_made_anew_in_place(tmp_path: Path) -> None:
    path = tmp_path / "online" / "redo01a.log"
    with OnlineFiles(tmp_path / "online", tmp_path / "logs") as files:
        files.apply(CREATE)
        assert path.read_bytes() == b"head" + bytes(1_996)
        files.apply(Write("redo01a.log", 1_000, b"redo"))
        assert path.read_bytes() == b"head" + bytes(996) + b"redo" + bytes(996)
        before = path.stat().st_ino
        files.apply(CREATE)
        assert path.read_bytes() == b"head" + bytes(1_996)
        assert path.stat().st_ino == before


def test_a_file_that_is_gone_can_be_made_again(tmp_path: Path) -> None:
    path = tmp_path / "online" / "redo01a.log"
    with OnlineFiles(tmp_path / "online", tmp_path / "logs") as files:
        files.apply(CREATE)
        files.apply(RemoveFile("redo01a.log"))
        assert not path.exists()
        files.apply(CREATE)
        files.apply(Write("redo01a.log", 4, b"redo"))
        assert path.read_bytes()[:8] == b"headredo"


def test_the_instance_writes_what_others_may_not_read(tmp_path: Path) -> None:
    path = tmp_path / "online" / "redo01a.log"
    with OnlineFiles(tmp_path / "online", tmp_path / "logs") as files:
        files.apply(CREATE)
        files.apply(ForbidReading("redo01a.log", forbidden=True))
        assert path.stat().st_mode & 0o777 == 0
        files.apply(Write("redo01a.log", 4, b"redo"))
        files.apply(ForbidReading("redo01a.log", forbidden=False))
        assert path.read_bytes()[:8] == b"headredo"


@pytest.mark.parametrize("growing", [False, True])
def test_an_archived_log_appears_whole_or_grows(
    shop: Source, tmp_path: Path, growing: bool
) -> None:
    data, name = bytes(shop.logs[0].data), "arch.dbf"
    making = None if growing else tmp_path / "archiving"
    archived = tmp_path / "logs" / name
    with OnlineFiles(tmp_path / "online", tmp_path / "logs", making) as files:
        files.apply(CreateFile("redo01a.log", bytes(512), len(data)))
        files.apply(Write("redo01a.log", 512, data[512:]))
        files.apply(WriteArchive(name, data[:512]))
        for at in range(512, len(data), 4_096):
            assert archived.exists() == growing
            files.apply(CopyToArchive(name, "redo01a.log", at, min(4_096, len(data) - at)))
        files.apply(Archived(name, parse_log(data).header))
    assert archived.read_bytes() == data
