"""Copies of the real logs, and copies with a changed header."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.model import Database

BLOCK = 512


class RealLogs:
    """The two real logs as bytes, and where to put changed copies of them.

    Attributes:
        first, second: sequences 15 and 16.
    """

    # Offsets in block 1 (redo-format §1.4).
    DBID = (24, "<I")
    DB_NAME = (28, "<8s")
    ACTIVATION = (52, "<I")
    NAB = (156, "<I")
    RESETLOGS = (160, "<I")
    THREAD = (176, "<H")
    FIRST_SCN = (180, "<Q")
    NEXT_SCN = (192, "<Q")

    def __init__(self, folder: Path, source: Path) -> None:
        self.folder = folder
        self.first = (source / "arch1_15_1224959854.dbf").read_bytes()
        self.second = (source / "arch1_16_1224959854.dbf").read_bytes()

    def put(self, name: str, data: bytes) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return str(path)

    @staticmethod
    def changed(
        data: bytes, *fields: tuple[tuple[int, str], object], sequence: int | None = None
    ) -> bytes:
        """`data` with fields of its header replaced and the header's checksum right again."""
        block = bytearray(data[BLOCK : 2 * BLOCK])
        for (offset, form), value in fields:
            struct.pack_into(form, block, offset, value)
        if sequence is not None:
            struct.pack_into("<I", block, 8, sequence)
        struct.pack_into("<H", block, 14, 0)
        struct.pack_into("<H", block, 14, np.bitwise_xor.reduce(np.frombuffer(block, np.uint16)))
        return data[:BLOCK] + bytes(block) + data[2 * BLOCK :]


@pytest.fixture
def logs(tmp_path: Path, real_log_dir: Path) -> RealLogs:
    return RealLogs(tmp_path, real_log_dir)


@pytest.fixture(scope="session")
def database(real_log_dir: Path) -> Database:
    return load_snapshot(str(real_log_dir / "TEST-chkpt-2266634.json")).database
