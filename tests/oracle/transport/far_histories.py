"""Histories of a database whose online logs are not mounted, read over lines that are cut.

A tool draws them at random, with redo threads, RESETLOGS, crashes and members that fail:

    python -m tests.oracle.transport.far_histories --count 20
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from olr_pg.capture.lineage import Lineage
from olr_pg.capture.online_logs import OnlineLogs
from olr_pg.config.source_section import OracleSource
from olr_pg.oracle.live_source import LiveDatabase
from olr_pg.oracle.online_checks import check_online
from olr_pg.oracle.oracle_connection import OracleDatabase
from olr_pg.oracle.transport.log_transport import make_transport, open_ranges
from olr_pg.oracle.vault import LogVault
from olr_pg.simulator.oracle_net.serve import LiveServer
from olr_pg.simulator.oracle_net.state import ARCHIVE, ORADATA
from tests.oracle.test_live_online import OPTIONS, Working, all_of, names
from tests.oracle.transport.conftest import SshHost, breaking
from tests.replicator.scripted_source import SHOP, Reader

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.simulator.live import LiveOptions

KINDS = ("bfile", "sftp", "command")
SHORT = replace(OPTIONS, seconds=0.8)
RANGE = 'tail -c +$(($2 + 1)) "$0/$(basename "$1")" | head -c "$3"'
WHOLE = 'cat "$0/$(basename "$1")"'


def far(
    stack: ExitStack,
    kind: str,
    working: Working,
    ssh_host: SshHost,
    vault: Path,
    cut: int | Callable[[], int],
) -> OracleSource:
    """The source of a database whose files are not mounted, over a line that is cut."""
    common: dict[str, Any] = {"path-mapping": [], "vault": {"directory": str(vault)}}
    folder = working.folder
    if kind == "command":
        command = {
            "kind": "command",
            "command": ["sh", "-c", WHOLE, str(folder / "logs"), "{name}"],
            "range-command": [
                *("sh", "-c", RANGE, str(folder / "online")),
                *("{name}", "{offset}", "{size}"),
            ],
        }
        return working.source(**common, transport=command)
    if kind == "bfile":
        working.source()
        port = stack.enter_context(breaking(working.server.port, cut))
        server = f"127.0.0.1:{port}/{working.server.service}"
        return working.source(**common, server=server, transport={"kind": "bfile"})
    port = stack.enter_context(breaking(ssh_host.port, cut))
    ssh_host.known_at(port, ssh_host.port)
    root = f"/backup/{folder.parent.name}/source"
    mapping = [ARCHIVE, f"{root}/logs", ORADATA, f"{root}/online"]
    section = ssh_host.section(port=port, **{"path-mapping": mapping})
    return working.source(**common, transport=section)


def check_all_comes(
    folder: Path,
    ssh_host: SshHost,
    kind: str,
    options: LiveOptions,
    threads: int = 1,
    cut: int | Callable[[], int] = 150_000,
) -> None:
    """Read a database at work to its end: everything comes once and in order."""
    with ExitStack() as stack:
        home = tempfile.mkdtemp(dir=ssh_host.archive)
        working = Working(Path(home) / "source", options, threads, LiveServer)
        stack.callback(working.end)
        source = far(stack, kind, working, ssh_host, folder / "vault", cut)
        assert source.transport is not None
        assert source.vault is not None
        oracle = OracleDatabase(source)
        stack.callback(oracle.close)
        found = oracle.read("testing", lambda connection: check_online(connection, source))
        assert found == []
        ranges = open_ranges(source.transport, source)
        online = OnlineLogs(
            folder / "spool",
            open_member=ranges.open,
            look_seconds=ranges.look_seconds,
            close_way=ranges.close,
        )
        vault = LogVault(source.vault, lambda: None, make_transport(source.transport, source))
        database = LiveDatabase(source, Lineage(folder / "lineage"), online=online, vault=vault)
        stack.callback(database.close)
        reader = stack.enter_context(Reader(database, query=SHOP))
        got = all_of(working, reader)
        truth = working.truth()
        assert truth
        assert names(got) == truth


def main() -> None:
    """Draw histories, and tell what each was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the seed to begin with")
    asked = parser.parse_args()
    for seed in range(asked.first, asked.first + asked.count):
        _check_drawn(seed)


def _check_drawn(seed: int) -> None:
    chance = random.Random(seed)
    kind, threads = chance.choice(KINDS), chance.choice((1, 1, 2, 3))
    happens: dict[str, Any] = chance.choice(
        ({}, {"resetlogs_seconds": 0.5}, {"crash_seconds": 0.4}, {"idle_threads": threads - 1})
    )
    sys.stdout.write(f"seed {seed}: {kind}, {threads} redo threads, {happens or 'quiet'}\n")
    sys.stdout.flush()
    options = replace(OPTIONS, **happens)
    with tempfile.TemporaryDirectory(prefix="olr-pg-far-") as folder:
        (Path(folder) / "ssh").mkdir()
        host = SshHost(Path(folder) / "ssh")
        try:
            check_all_comes(
                *(Path(folder), host, kind, options, threads),
                lambda: chance.randrange(20_000, 600_000),
            )
        finally:
            host.close()


if __name__ == "__main__":
    main()
