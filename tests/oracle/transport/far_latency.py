"""Latency of online redo without a mount, over lines that are cut at random.

From the flush of a commit's LWN to its rows in PostgreSQL, at 1 MB/s. A tool: it prints figures,
also the appliance's CPU seconds and the round trips, which say more where the machine is busy.

    python -m tests.oracle.transport.far_latency --kind sftp --seconds 30 --count 2
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from olr_pg.bench.online_latency import CONFIG, commits, flushes_of, latencies, replicated
from olr_pg.simulator.oracle_net.state import ARCHIVE, ORADATA
from tests.oracle.transport.conftest import SshHost, breaking

if TYPE_CHECKING:
    from collections.abc import Mapping

KINDS = ("bfile", "sftp", "command")
CUT_BYTES = 1_000_000, 16_000_000
"""A line is cut after so many bytes, at least and at most: every few seconds."""

WHOLE = 'cat "$0/$(basename "$1")"'
RANGE = 'tail -c +$(($2 + 1)) "$0/$(basename "$1")" | head -c "$3"'


class Measured(NamedTuple):
    """What a run took.

    Attributes:
        latencies: in seconds, ascending.
        cpu_seconds: of the appliance.
        turns: round trips over lines, those of the archived logs among them; 0 of a command.
    """

    latencies: list[float]
    cpu_seconds: float
    turns: int


def measure(kind: str, folder: Path, seconds: float, seed: int) -> Measured:
    """Replicate for so many seconds."""
    chance, turns = random.Random(seed), list[float]()
    with ExitStack() as stack:
        host = SshHost(folder / "ssh")
        stack.callback(host.close)
        run = host.archive / "run"
        run.mkdir()

        def line(port: int) -> int:
            way = breaking(port, lambda: chance.randint(*CUT_BYTES), turns=turns)
            return stack.enter_context(way)

        def section(source: Path) -> Mapping[str, object]:
            made: dict[str, Any] = json.loads((source / CONFIG).read_bytes())["source"]
            made |= {"path-mapping": [], "redo": "online"}
            made["vault"] = {"directory": str(folder / "vault")}
            if kind == "bfile":
                address, service = made["server"].split("/")
                made["server"] = f"127.0.0.1:{line(int(address.split(':')[1]))}/{service}"
                made["transport"] = {"kind": "bfile"}
            elif kind == "sftp":
                port = line(host.port)
                host.known_at(port)
                root = "/backup/run/source"
                mapping = [ARCHIVE, f"{root}/logs", ORADATA, f"{root}/online"]
                made["transport"] = host.section(port=port, **{"path-mapping": mapping})
            else:
                made["transport"] = {
                    "kind": "command",
                    "command": ["sh", "-c", WHOLE, str(source / "logs"), "{name}"],
                    "range-command": [
                        *("sh", "-c", RANGE, str(source / "online")),
                        *("{name}", "{offset}", "{size}"),
                    ],
                }
            return made

        watched = replicated(run, "1MB", seconds, section)
        source = run / "source"
        found = latencies(commits(source / "truth.jsonl"), flushes_of(source), watched.seen)
        return Measured(found, watched.cpu_seconds, len(turns))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=KINDS, action="append", help="default: all")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each run's workload")
    parser.add_argument("--count", type=int, default=1, help="runs of each kind")
    asked = parser.parse_args()
    for kind in asked.kind or KINDS:
        for seed in range(asked.count):
            with tempfile.TemporaryDirectory(prefix="olr-pg-far-") as folder:
                (Path(folder) / "ssh").mkdir()
                found, cpu, turns = measure(kind, Path(folder), asked.seconds, seed)
            at = [round(1000 * found[int(share * (len(found) - 1))]) for share in (0.5, 0.99, 1)]
            sys.stdout.write(
                f"{kind}: {len(found)} commits, median {at[0]} ms, 99 % {at[1]} ms, highest"
                f" {at[2]} ms; CPU {cpu:.1f} s, {turns} round trips; load"
                f" {os.getloadavg()[0]:.1f}\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
