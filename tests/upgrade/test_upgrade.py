"""Releases go on with what earlier ones left: `context.data`, the ledger, a stopped table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from tools.upgrade_state import STOPPED, configuration

STATES: Final = sorted(Path(__file__).parent.glob("*.tar.xz"))
_TABLES: Final = """
SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'shop' ORDER BY 1
"""


def olr_pg(*arguments: str | Path, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-c", "from olr_pg.cli.entry import run; run()", *map(str, arguments)],
        capture_output=True, text=True, timeout=250, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def run(config: Path, code: int = 0) -> None:
    olr_pg("run", "--once", "--config", config, code=code)


def rows(connect_string: str) -> dict[str, list[Any]]:
    with psycopg.connect(connect_string) as connection:
        tables = [name for (name,) in connection.execute(_TABLES)]
        return {
            table: connection.execute(
                f"SELECT t::text FROM shop.{table} t ORDER BY 1".encode()
            ).fetchall()
            for table in tables
        }


def state(archive: Path, folder: Path, database: str) -> Path:
    """Put a release's files and its target back; the configuration."""
    with tarfile.open(archive) as packed:
        # Python 3.11.2, which is Debian 12's, has no filters yet.
        if hasattr(tarfile, "data_filter"):
            packed.extraction_filter = tarfile.data_filter
        packed.extractall(folder)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute((folder / "target.sql").read_bytes())
    return configuration(folder, folder / "logs", folder / "data", database)


@pytest.mark.parametrize("archive", STATES, ids=lambda path: path.name.removesuffix(".tar.xz"))
def test_the_state_of_an_earlier_release_goes_on(
    archive: Path, tmp_path: Path, postgres_database: str, second_database: str
) -> None:
    config = state(archive, tmp_path, postgres_database)
    applied_before = json.loads((tmp_path / "data" / "applied.json").read_text())
    # The table that an earlier release has stopped is still stopped; the others go on.
    run(config, code=6)
    listed = json.loads(olr_pg("errors", "list", "--json", "--config", config, code=1))
    assert [line["source_table"] for line in listed["stopped"]] == ["SHOP.STOCK"]
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(f"ALTER TABLE {STOPPED} DROP CONSTRAINT refused".encode())
    olr_pg("errors", "retry", "--config", config)
    run(config)
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    (fresh / "dictionary.json").write_bytes((tmp_path / "dictionary.json").read_bytes())
    run(configuration(fresh, tmp_path / "logs", fresh / "data", second_database))
    found = rows(postgres_database)
    assert found == rows(second_database)
    assert sum(map(len, found.values())) > 300
    assert json.loads((tmp_path / "data" / "applied.json").read_text()) != applied_before
    # It was no start from the beginning: what the earlier release had applied was not again.
    with psycopg.connect(postgres_database) as connection:
        (conflicts,) = (
            connection.execute("SELECT sum(conflicts) FROM olr_pg.ledger").fetchone() or ()
        )
    assert conflicts == 0


def test_there_is_a_state() -> None:
    assert STATES
    assert all(os.access(path, os.R_OK) for path in STATES)
