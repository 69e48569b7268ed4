"""Real archived logs into a real PostgreSQL, through Spark, the port and the applier."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from olr_pg.appliance.appliance import full_disk_told, run_appliance
from olr_pg.config.reading import load_config
from olr_pg.errors import Code, OlrPgError

COMMIT_SCN = 2267708
DICTIONARY = "TEST-chkpt-2266634.json"


def write_config(folder: Path, real: Path, database: str, **changes: Any) -> Path:
    """A configuration of the real logs into `database`."""
    document: dict[str, Any] = {
        "context": {"data": str(folder / "data")},
        "source": {
            "kind": "offline",
            "dictionary": str(real / DICTIONARY),
            "logs": str(real / "*.dbf"),
        },
        "target": {"address": "127.0.0.1:0"},
        "apply": {
            "connect-string": database,
            "tables": ["OLR_TEST.TEST_CDC"],
            "create-tables": True,
        },
        "spark": {"master": "local[2,2]"},
    }
    for key, value in changes.items():
        document[key] = {**document.get(key, {}), **value}
    path = folder / "config.json"
    path.write_text(json.dumps(document), "utf-8")
    return path


def run_once(path: Path) -> None:
    assert run_appliance(load_config(path), once=True, apply=True) == 0


@pytest.mark.usefixtures("one_session")
def test_the_real_logs_leave_one_row_and_a_second_run_applies_nothing(
    tmp_path: Path, real_log_dir: Path, postgres_database: str
) -> None:
    config = write_config(tmp_path, real_log_dir, postgres_database)
    run_once(config)
    with psycopg.connect(postgres_database) as connection:
        rows = connection.execute("SELECT id, name, xmin::text FROM olr_test.test_cdc").fetchall()
        ledger = connection.execute("SELECT * FROM olr_pg.ledger").fetchall()
    assert [row[:2] for row in rows] == [(1, "hello world")]
    assert len(ledger) == 1
    assert COMMIT_SCN in ledger[0]
    assert ["10.12.572"] in ledger[0]

    run_once(config)
    with psycopg.connect(postgres_database) as connection:
        again = connection.execute("SELECT id, name, xmin::text FROM olr_test.test_cdc").fetchall()
    assert again == rows


@pytest.mark.usefixtures("one_session")
def test_a_flipped_bit_ends_the_run_with_its_place_and_nothing_is_applied(
    tmp_path: Path, real_log_dir: Path, postgres_database: str
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    data = bytearray((real_log_dir / "arch1_15_1224959854.dbf").read_bytes())
    data[600 * 100] ^= 0x10
    (logs / "broken.arc").write_bytes(data)
    config = write_config(
        tmp_path,
        real_log_dir,
        postgres_database,
        source={
            "kind": "offline",
            "dictionary": str(real_log_dir / DICTIONARY),
            "logs": str(logs),
        },
    )
    with pytest.raises(OlrPgError) as caught:
        run_once(config)
    assert caught.value.code == 2005
    assert caught.value.where["block"] == 117
    with psycopg.connect(postgres_database) as connection:
        assert connection.execute("SELECT count(*) FROM olr_test.test_cdc").fetchone() == (0,)


def test_no_room_has_a_code_and_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(OlrPgError) as caught, full_disk_told(tmp_path):
        # A device that takes nothing, as a full disk.
        Path("/dev/full").write_bytes(b"x")
    assert caught.value.code is Code.DATA_DISK_FULL
    assert caught.value.where == {"path": str(tmp_path)}
    with pytest.raises(OSError, match="other") as other, full_disk_told(tmp_path):
        raise OSError(errno.EIO, "other")
    assert other.value.errno == errno.EIO
