"""Writes what a release leaves behind, for a test that goes on with it in later releases.

    uv run python tools/upgrade_state.py tests/upgrade/VERSION.tar.xz

Run it in the checkout of the release, once it is tagged (CONTRIBUTING.md, "Cut a release"). The
archive has simulated redo, the dictionary, `context.data` in the middle of it, and the target's
database with its ledger: one table has stopped and holds changes, transactions are open.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

import psycopg

from olr_pg.postgres.embedded import start_embedded

STOPPED: Final = "shop.stock"
"""Its rows are refused from the second log on."""

_SIMULATE: Final = (
    "simulate --seed 11 --workload orders --live --ahead --for 4 --switch-seconds 1 --rate 60KB"
)
_LOGS_APPLIED: Final = (1, 3)
"""How many logs are there at the first run, and at the second."""


def olr_pg(*arguments: str, codes: tuple[int, ...] = (0,)) -> None:
    """Run a command of the checkout; any other exit code ends this."""
    done = subprocess.run(  # noqa: S603 - commands of this file
        [sys.executable, "-c", "from olr_pg.cli.entry import run; run()", *arguments], check=False
    )
    if done.returncode not in codes:
        sys.exit(f"olr-pg {' '.join(arguments)}: exit code {done.returncode}")


def configuration(folder: Path, logs: Path, data: Path, connect_string: str) -> Path:
    """Write the configuration of a run, and return its file."""
    path = folder / "olr-pg.json"
    source = {"kind": "offline", "dictionary": str(folder / "dictionary.json"), "logs": str(logs)}
    apply = {"connect-string": connect_string, "tables": ["SHOP.*"], "create-tables": True}
    config = {
        "context": {"data": str(data)},
        "source": source,
        "target": {"address": "127.0.0.1:0"},
        "status": {"enabled": False},
        "apply": apply,
    }
    path.write_text(json.dumps(config))
    return path


def write_state(archive: Path) -> None:
    """Run the checkout up to the middle of the redo, and pack what it leaves."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)  # the embedded PostgreSQL is never root
        olr_pg(*_SIMULATE.split(), "--out", str(folder / "simulated"))
        (folder / "simulated" / "dictionary.json").rename(folder / "dictionary.json")
        (folder / "simulated" / "logs").rename(folder / "logs")
        part = folder / "part"
        part.mkdir()
        cluster = start_embedded(folder / "postgres")
        try:
            config = configuration(folder, part, folder / "data", cluster.connect_string)
            _run_twice(folder, config, cluster.connect_string)
            _dump(cluster.connect_string, folder / "target.sql")
        finally:
            cluster.stop()
        with tarfile.open(archive, "w:xz") as packed:
            for name in ("dictionary.json", "logs", "data", "target.sql"):
                packed.add(folder / name, name)


def _run_twice(folder: Path, config: Path, connect_string: str) -> None:
    logs = sorted((folder / "logs").iterdir())
    first, second = _LOGS_APPLIED
    for number, log in enumerate(logs[:second], 1):
        os.link(log, folder / "part" / log.name)
        if number == first:
            olr_pg("run", "--once", "--config", str(config))
            with psycopg.connect(connect_string, autocommit=True) as connection:
                connection.execute(
                    f"ALTER TABLE {STOPPED} ADD CONSTRAINT refused CHECK (false) NOT VALID".encode()
                )
    olr_pg("run", "--once", "--config", str(config), codes=(6,))


def _dump(connect_string: str, path: Path) -> None:
    """Write the database as statements that every supported release of PostgreSQL takes."""
    with psycopg.connect(connect_string) as connection:
        found = connection.execute("SELECT setting FROM pg_config WHERE name = 'BINDIR'").fetchone()
    assert found is not None
    dumped = subprocess.run(  # noqa: S603 - of the server that was just started
        [f"{found[0]}/pg_dump", "--no-owner", "--no-privileges", "--inserts", connect_string],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    newer = ("\\", "SET transaction_timeout")
    lines = dumped.stdout.splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not line.startswith(newer)))


if __name__ == "__main__":
    write_state(Path(sys.argv[1]).absolute())
