"""A full disk at the start is told by its code."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from olr_pg.appliance.full_disk import full_disk_told
from olr_pg.errors import Code, OlrPgError


def test_no_room_has_a_code_and_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(OlrPgError) as caught, full_disk_told(tmp_path):
        # A device that takes nothing, as a full disk.
        Path("/dev/full").write_bytes(b"x")
    assert caught.value.code is Code.DATA_DISK_FULL
    assert caught.value.where == {"path": str(tmp_path)}
    with pytest.raises(OSError, match="other") as other, full_disk_told(tmp_path):
        raise OSError(errno.EIO, "other")
    assert other.value.errno == errno.EIO
