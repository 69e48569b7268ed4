"""The checkpoint file: written, opened again, damaged, foreign, and killed in between."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olr_pg.errors import OlrPgError
from olr_pg.server.checkpoint import FILE_NAME, Checkpoint, Saved, read_saved

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = "FREE dbid 1 container 3"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / FILE_NAME


def test_no_file_means_no_saved_scn(path: Path) -> None:
    assert Checkpoint(path, SOURCE).saved is None
    assert not path.exists()


def test_what_is_saved_is_there_after_a_restart(path: Path) -> None:
    checkpoint = Checkpoint(path, SOURCE)
    for scn in (2267707, 5, 2**64 - 1):
        assert checkpoint.save(scn)
        assert checkpoint.saved == scn
        assert Checkpoint(path, SOURCE).saved == scn


def test_an_unchanged_value_is_not_written_again(path: Path) -> None:
    checkpoint = Checkpoint(path, SOURCE)
    assert checkpoint.save(7)
    before = path.stat()
    assert not checkpoint.save(7)
    assert not Checkpoint(path, SOURCE).save(7)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_file_of_a_newer_version_is_refused(path: Path) -> None:
    Checkpoint(path, SOURCE).save(7)
    path.write_text(path.read_text().replace('"version": 4', '"version": 5'))
    with pytest.raises(OlrPgError, match="version 5") as caught:
        Checkpoint(path, SOURCE)
    assert caught.value.code == 4035


VERSION_3 = b"""{
  "format": "olr-pg checkpoint",
  "version": 3,
  "source": "FREE dbid 1 container 3",
  "min_start_scn": 7,
  "recovery_image": "image-1.json",
  "confirmed_by": "olr_pg",
  "crc32": %d
}
"""


def test_a_file_of_version_3_does_not_know_how_far_the_dictionary_was_followed(path: Path) -> None:
    path.write_bytes(VERSION_3 % 1)
    with pytest.raises(OlrPgError, match="checksum"):
        Checkpoint(path, SOURCE)
    path.write_bytes(VERSION_3 % 1918980090)
    assert read_saved(path) == Saved(7, "image-1.json", "olr_pg", None)
    checkpoint = Checkpoint(path, SOURCE, lambda: 6)
    assert checkpoint.dictionary_scn is None
    assert checkpoint.save(7, "image-1.json", "olr_pg")
    assert Checkpoint(path, SOURCE).dictionary_scn == 6


def test_the_image_is_saved_with_its_scn(path: Path) -> None:
    checkpoint = Checkpoint(path, SOURCE)
    assert checkpoint.save(7, "image-1.json")
    assert not checkpoint.save(7, "image-1.json")
    assert checkpoint.save(7, "image-2.json")
    again = Checkpoint(path, SOURCE)
    assert (again.saved, again.image) == (7, "image-2.json")
    assert again.save(7)
    assert Checkpoint(path, SOURCE).image is None


def test_a_file_of_another_source_is_refused(path: Path) -> None:
    Checkpoint(path, SOURCE).save(7)
    with pytest.raises(OlrPgError, match="FREE dbid 1") as caught:
        Checkpoint(path, "OTHER")
    assert caught.value.code == 4012
    assert "context.data" in caught.value.action


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff", b"null", b'{"min_start_scn": 1}', b"text"])
def test_a_foreign_file_is_refused(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    with pytest.raises(OlrPgError) as caught:
        Checkpoint(path, SOURCE)
    assert caught.value.code == 4011
    assert caught.value.where["path"] == str(path)
    assert path.read_bytes() == data


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_any_damage_is_refused_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("damage") / FILE_NAME
    Checkpoint(path, SOURCE).save(2267707)
    whole = bytearray(path.read_bytes())
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(whole)
    try:
        assert Checkpoint(path, SOURCE).saved == 2267707  # white space was hit
    except OlrPgError as error:
        # One of two outcomes; the digit of the version may be what was hit.
        assert error.code in (4011, 4035)  # noqa: PT017
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 3))])
    with pytest.raises(OlrPgError, match="OLR-04011"):
        Checkpoint(path, SOURCE)


def test_a_directory_that_is_not_there_is_told(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "absent" / FILE_NAME, SOURCE)
    with pytest.raises(OlrPgError) as caught:
        checkpoint.save(1)
    assert caught.value.code == 4013
    assert checkpoint.saved is None


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(OlrPgError) as caught:
        Checkpoint(tmp_path, SOURCE)
    assert caught.value.code == 4011


WRITER = """
import sys
from pathlib import Path
from olr_pg.server.checkpoint import Checkpoint
checkpoint = Checkpoint(Path(sys.argv[1]), sys.argv[2])
scn = 0
while True:
    scn += 1
    checkpoint.save(scn)
    print(scn, flush=True)
"""


@pytest.mark.parametrize("lines", [1, 7, 40])
def test_a_kill_leaves_the_last_value_or_the_one_in_hand(path: Path, lines: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, os.fspath(path), SOURCE], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        for _ in range(lines):
            process.stdout.readline()
    finally:
        process.kill()
        rest = process.stdout.read().splitlines()
        process.stdout.close()
        process.wait()
    told = int(rest[-1]) if rest else lines
    assert Checkpoint(path, SOURCE).saved in (told, told + 1)
    assert Checkpoint(path, SOURCE).save(3) is (told != 3)
