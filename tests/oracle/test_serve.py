"""``olr-pg simulate --serve``: a database for everybody who has none."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import oracledb
import pytest

from olr_pg.config.load import load_config
from olr_pg.replicator.doctor import diagnose
from olr_pg.simulator.oracle_net.serve import served
from olr_pg.simulator.simulate import simulate

if TYPE_CHECKING:
    from pathlib import Path

LOGS = "SELECT COUNT(*) FROM V$ARCHIVED_LOG"


def test_a_simulation_is_served_until_interrupted(tmp_path: Path) -> None:
    command = ["simulate", "--seed", "4", "--size", "60KB", "--out", str(tmp_path / "sim")]
    entry = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from olr_pg.cli.main import run; run()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", entry, *command, "--workload", "orders", "--serve", "0"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            server = next(
                line.split()[1] for line in process.stdout if line.startswith("serving: ")
            )
            with oracledb.connect(user="olr", password="olr", dsn=server) as connection:
                ((count,),) = connection.cursor().execute(LOGS)
            assert count == len(list((tmp_path / "sim" / "logs").iterdir()))
            # The configuration that comes with it is right, but for the time it takes to run it.
            assert diagnose(load_config(tmp_path / "sim" / "olr-pg.json")) == []
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
        finally:
            process.kill()


def test_logs_are_archived_one_after_the_other(tmp_path: Path) -> None:
    summary = simulate(4, tmp_path, workload="orders", size=60_000)

    def wait_for(count: int, every: float) -> None:
        with (
            served(summary, tmp_path, port=0, every=every) as server,
            oracledb.connect(user="olr", password="olr", dsn=server.connect_string) as connection,
        ):
            while connection.cursor().execute(LOGS).fetchall() != [(count,)]:
                pass

    wait_for(0, 3_600.0)
    wait_for(len(summary.logs), 0.01)


@pytest.mark.parametrize("port", [-1, 70_000])
def test_a_port_that_cannot_be(tmp_path: Path, port: int) -> None:
    from typer.testing import CliRunner

    from olr_pg.cli.main import app

    command = ["simulate", "--seed", "4", "--out", str(tmp_path / "sim"), "--serve", str(port)]
    assert CliRunner().invoke(app, command).exit_code == 2
