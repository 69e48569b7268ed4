"""The file of differences: written, read, refused."""

from __future__ import annotations

import base64
import stat
from pathlib import Path

import orjson
import pytest

from olr_pg.errors import OlrPgError
from olr_pg.load.verification.differences import (
    FORMAT,
    TableDifferences,
    check_writable,
    read_differences,
    write_differences,
)
from olr_pg.load.verification.target_state import TargetState
from olr_pg.load.verification.verification import MISSING, RowDifference

HEAD = {"format": FORMAT, "subscription": "sub"}
TABLE = {
    "table": "S.T", "target": ["s", "t"], "columns": ["id"], "types": [23], "key": ["id"],
    "applied_scn": 7, "applied_xids": ["1.2.3"], "conflicts": 4, "files": [[5, 6, 1]],
}  # fmt: skip
IMAGE = base64.b64encode(b"\1\2").decode()
ROW = {"kind": MISSING, "source_image": IMAGE, "target_image": None, "key_image": IMAGE}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    write_differences(path, [HEAD, TABLE, ROW, ROW])
    difference = RowDifference(MISSING, b"\1\2", b"\1\2", None)
    assert read_differences(path, "sub") == [
        TableDifferences(
            "S.T",
            "s",
            "t",
            ("id",),
            (23,),
            ("id",),
            [difference, difference],
            TargetState(4, (7, ("1.2.3",)), ((5, 6, 1),)),
        )
    ]


def test_nobody_else_may_read_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.touch(0o644)
    write_differences(path, [HEAD])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [{**HEAD, "format": "olr-pg-differences/1"}],
        [{**HEAD, "subscription": "other"}],
        [HEAD, ROW],
        [HEAD, TABLE, {**ROW, "key_image": "?"}],
        [HEAD, {**TABLE, "target": 5}],
    ],
)
def test_what_is_no_such_file(tmp_path: Path, lines: list[dict[str, object]]) -> None:
    path = tmp_path / "d.jsonl"
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    with pytest.raises(OlrPgError) as caught:
        read_differences(path, "sub")
    assert caught.value.code == 5112


def test_a_place_that_takes_no_file_is_told_before_the_work(tmp_path: Path) -> None:
    check_writable(tmp_path / "d.jsonl")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OlrPgError) as caught:
        check_writable(tmp_path / "none" / "d.jsonl")
    assert caught.value.code == 5112
    assert caught.value.detail == "No such file or directory"  # `where` names the file


@pytest.mark.parametrize("wrong", ["not json", "7"])
def test_the_line_that_is_wrong_is_named(tmp_path: Path, wrong: str) -> None:
    path = tmp_path / "d.jsonl"
    path.write_bytes(orjson.dumps(HEAD) + b"\n" + wrong.encode() + b"\n")
    with pytest.raises(OlrPgError, match="line 2 is not a JSON object"):
        read_differences(path, "sub")
