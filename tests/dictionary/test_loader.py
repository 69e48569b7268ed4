from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from olr_pg.dictionary import snapshot_file
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.model import Snapshot
from olr_pg.dictionary.snapshot_file import dump_snapshot
from olr_pg.errors import OlrPgError


def error_of(path: Path | str) -> OlrPgError:
    with pytest.raises(OlrPgError) as caught:
        load_snapshot(str(path))
    assert caught.value.where["file"] == str(path)
    return caught.value


def test_the_form_is_told_by_the_content(
    shop: Snapshot, real_snapshot: Snapshot, checkpoint_path: str, tmp_path: Path
) -> None:
    ours = tmp_path / "TEST-chkpt-1.json"
    ours.write_bytes(dump_snapshot(shop))
    theirs = tmp_path / "x"
    theirs.write_bytes(Path(checkpoint_path).read_bytes())

    assert load_snapshot(str(ours)) == shop
    assert load_snapshot(str(theirs)) == real_snapshot


def test_a_byte_order_mark_is_tolerated(shop: Snapshot, tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_bytes(b"\xef\xbb\xbf" + dump_snapshot(shop))

    assert load_snapshot(str(path)) == shop


_LIMITED = """
import resource, sys
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.errors import OlrPgError
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20),) * 2)
try:
    load_snapshot(sys.argv[1])
except OlrPgError as error:
    print(int(error.code), error.where["file"])
"""


@pytest.mark.parametrize(
    ("begin", "size", "code"),
    [
        (b"{", 800 << 20, 3001),
        (b" ", 800 << 20, 3002),
        (b"{", 2 << 30, 3001),
        (b"x", 2 << 30, 3002),
    ],
)
def test_a_huge_file_is_no_traceback(tmp_path: Path, begin: bytes, size: int, code: int) -> None:
    path = tmp_path / "huge"
    path.write_bytes(begin)
    os.truncate(path, size)
    assert _code_under_a_limit(path) == code


def test_a_file_of_more_bytes_than_a_dictionary_can_have(
    shop: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "d.json"
    path.write_bytes(dump_snapshot(shop))
    monkeypatch.setattr(snapshot_file, "_BYTES_MAX", path.stat().st_size)
    assert load_snapshot(str(path)) == shop
    path.write_bytes(path.read_bytes() + b" ")
    assert error_of(path).code == 3001


def test_an_endless_device_is_not_read_to_its_end() -> None:
    assert _code_under_a_limit(Path("/dev/zero")) == 3002


def _code_under_a_limit(path: Path) -> int:
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, path], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    code, file = done.stdout.split()
    assert file == str(path)
    return int(code)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    error = error_of(tmp_path / "none.json")

    assert error.code == 3001
    assert error.detail == "No such file or directory"


def test_a_directory(tmp_path: Path) -> None:
    assert error_of(tmp_path).code == 3001


def test_an_impossible_path() -> None:
    assert error_of("a\0b").code == 3001


def test_a_file_that_is_not_json_names_the_place(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text('{"scn": 1,\n "database": nope}')
    error = error_of(path)

    assert error.code == 3002
    assert error.where["line"] == 2


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"[" * 5000, b'{"scn": NaN}'])
def test_other_bytes_are_not_json(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_bytes(data)

    assert error_of(path).code == 3002


def test_a_log_is_not_json(real_log_dir: Path) -> None:
    assert error_of(real_log_dir / "arch1_16_1224959854.dbf").code == 3002


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"[1]", "a list of 1 elements"),
        (b"{}", "the keys none"),
        (b'{"version": "1", "source": {}}', "the keys version, source"),
        (b'{"format": 1}', "found 1"),
    ],
)
def test_another_json_file_is_no_dictionary(data: bytes, found: str, tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_bytes(data)
    error = error_of(path)

    assert error.code == 3003
    assert found in error.detail


def test_the_decoder_output_is_no_dictionary(real_log_dir: Path) -> None:
    assert error_of(real_log_dir / "logminer-reference.json").code in {3002, 3003}
