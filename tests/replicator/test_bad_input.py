"""What a user gets wrong: each a coded error, and nothing half applied."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
import pytest

from olr_pg.appliance.appliance import run_appliance
from olr_pg.config.reading import load_config
from olr_pg.decoding.split import open_for_decoding
from olr_pg.errors import OlrPgError
from olr_pg.spark.jobs import run_tasks
from tests.appliance.test_appliance import DICTIONARY, write_config

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

LOG = "arch1_15_1224959854.dbf"


pytestmark = pytest.mark.usefixtures("one_session")


def failure(path: Path) -> OlrPgError:
    with pytest.raises(OlrPgError) as caught:
        run_appliance(load_config(path), once=True, apply=True)
    assert caught.value.action
    return caught.value


def rows_of(database: str) -> int:
    """Rows in the target; 0 too where the run did not even make it."""
    with psycopg.connect(database) as connection:
        found = connection.execute("SELECT to_regclass('olr_test.test_cdc')").fetchone()
        assert found is not None
        if found[0] is None:
            return 0
        count = connection.execute("SELECT count(*) FROM olr_test.test_cdc").fetchone()
        assert count is not None
        number: int = count[0]
        return number


def truncated(data: bytes) -> bytes:
    return data[: 512 * 400]


def half_a_block_short(data: bytes) -> bytes:
    return data[:-256]


def text(data: bytes) -> bytes:
    return b"these are no redo records\n" * (len(data) // 26)


def of_another_database(data: bytes) -> bytes:
    """The same log after another RESETLOGS, with a checksum that fits."""
    block = bytearray(data[512:1024])
    block[160:164] = (1).to_bytes(4, "little")
    block[14:16] = b"\0\0"
    total = 0
    for at in range(0, 512, 2):
        total ^= int.from_bytes(block[at : at + 2], "little")
    block[14:16] = total.to_bytes(2, "little")
    return data[:512] + bytes(block) + data[1024:]


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (truncated, 2004),
        (half_a_block_short, 2004),
        (text, 2003),
        (of_another_database, 2009),
    ],
)
def test_a_log_that_cannot_be_used(
    tmp_path: Path,
    real_log_dir: Path,
    postgres_database: str,
    damage: Callable[[bytes], bytes],
    code: int,
) -> None:
    log = tmp_path / "some.arc"
    log.write_bytes(damage((real_log_dir / LOG).read_bytes()))
    source = {"kind": "offline", "dictionary": str(real_log_dir / DICTIONARY), "logs": str(log)}
    config = write_config(tmp_path, real_log_dir, postgres_database, source=source)

    error = failure(config)

    assert error.code == code
    assert error.where["file"] == str(log)
    assert rows_of(postgres_database) == 0


def test_a_log_that_shrinks_below_the_reader(
    tmp_path: Path, real_log_dir: Path, shared_session: Callable[[], SparkSession]
) -> None:
    """To read what is mapped and not there any more kills the worker; the next try says why."""

    def copied_over(path: bytes) -> bytes:
        log = open_for_decoding(path.decode(), mapped=True)
        os.truncate(path, 512 * 400)
        return bytes([int(np.bitwise_xor.reduce(log.raw))])

    path = tmp_path / LOG
    path.write_bytes((real_log_dir / LOG).read_bytes())
    with pytest.raises(OlrPgError) as caught:
        list(run_tasks(shared_session(), [str(path).encode()], copied_over))
    assert caught.value.code == 2004
    assert caught.value.where["file"] == str(path)


def test_a_missing_log(tmp_path: Path, real_log_dir: Path, postgres_database: str) -> None:
    source = {
        "kind": "offline",
        "dictionary": str(real_log_dir / DICTIONARY),
        "logs": str(tmp_path / "gone.arc"),
    }
    config = write_config(tmp_path, real_log_dir, postgres_database, source=source)
    assert failure(config).code == 2002


def test_an_unknown_table(tmp_path: Path, real_log_dir: Path, postgres_database: str) -> None:
    apply: dict[str, Any] = {"tables": ["OLR_TEST.TEST_CDD"]}
    error = failure(write_config(tmp_path, real_log_dir, postgres_database, apply=apply))
    assert error.code == 3012
    assert "TEST_CDD" in str(error)
    assert rows_of(postgres_database) == 0


def test_a_port_in_use(tmp_path: Path, real_log_dir: Path, postgres_database: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        target = {"address": address}
        error = failure(write_config(tmp_path, real_log_dir, postgres_database, target=target))
    assert error.code == 4009
    assert address.rpartition(":")[2] in str(error)
    assert rows_of(postgres_database) == 0


def test_postgres_down(tmp_path: Path, real_log_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    database = f"host=127.0.0.1 port={port} user=nobody password=secret-word dbname=postgres"
    error = failure(write_config(tmp_path, real_log_dir, database))
    assert 5000 < error.code < 6000
    assert "secret-word" not in str(error)


def test_a_wrong_key(tmp_path: Path, real_log_dir: Path, postgres_database: str) -> None:
    path = write_config(tmp_path, real_log_dir, postgres_database, spark={"mastre": "local"})
    with pytest.raises(OlrPgError, match=r"spark\.mastre") as caught:
        load_config(path)
    assert caught.value.code == 1002
