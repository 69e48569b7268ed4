"""Files that are read while somebody else writes into them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from olr_pg.capture.online_file import ALIGNMENT, READ_BYTES, OnlineFile
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "redo.log"
    path.write_bytes(os.urandom(READ_BYTES + 5 * ALIGNMENT + 512))
    return path


@pytest.mark.parametrize("offset", [0, 512, ALIGNMENT, 3 * ALIGNMENT - 512])
@pytest.mark.parametrize("size", [1, 512, ALIGNMENT, READ_BYTES, 2 * READ_BYTES])
@pytest.mark.parametrize("direct", [True, False])
def test_any_range_is_read(
    path: Path, offset: int, size: int, direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not direct:
        monkeypatch.setattr("olr_pg.capture.online_file._DIRECT", 0)
    with OnlineFile(str(path)) as file:
        assert file.read(offset, size).tobytes() == path.read_bytes()[offset : offset + size]
        assert not (file.direct and not direct)


def test_what_is_written_later_is_read(path: Path) -> None:
    with OnlineFile(str(path)) as file:
        file.read(0, ALIGNMENT)
        with path.open("r+b") as writer:
            writer.write(b"new")
        assert file.read(0, 3).tobytes() == b"new"
        assert not file.is_replaced
        path.rename(path.with_suffix(".old"))
        assert file.is_replaced


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "missing"):
        with pytest.raises(OlrPgError) as raised:
            OnlineFile(str(place))
        assert raised.value.code == 2002
