"""`olr-pg prove`, killed with -9 at random moments: what it leaves, and the result.

    uv run python -m tests.proving.kills --count 20 [--seed 1]

A run that nobody kills says what the result is. Then the command is started and killed again and
again, at moments drawn over the time that it took. After each kill the scratch schema holds nothing
but the journal and what the journal names. At last it is left alone: the result is the same, and
nothing is left in the source.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg

from olr_pg.oracle.oracle_connection import OracleDatabase, open_connection
from olr_pg.postgres.embedded import start_embedded
from olr_pg.proving.scratch_schema import JOURNAL, SchemaObject, ScratchSchema
from tests.proving.served import Served, served_source

if TYPE_CHECKING:
    from collections.abc import Sequence

PATTERNS: Final = ("statements/merge", "lobs/in_the_row", "ddl/other_tables_come_and_go")


class Outcome(NamedTuple):
    """What a campaign found.

    Attributes:
        kills: how many runs were killed before their end.
        wrong: what is not as it must be; empty.
    """

    kills: int
    wrong: list[str]


class Campaign:
    """Runs of the command on one stand-in."""

    def __init__(self, served: Served, target: str, out: Path, patterns: Sequence[str]) -> None:
        self._served, self._out, self._target = served, out, target
        config = served.config_file(target)
        chosen = [part for one in patterns for part in ("--scenario", one)]
        self._command = [
            *(sys.executable, "-m", "olr_pg", "prove", "--config", str(config), "--json"),
            *("--out", str(out), *chosen),
        ]
        self.wrong: list[str] = []

    def whole(self) -> dict[str, Any]:
        """Let it run to its end; return the verdicts of each scenario."""
        done = subprocess.run(self._command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.wrong.append(f"exit code {done.returncode}: {done.stderr[-500:]}")
            return {}
        self._look(journal=False)
        found = json.loads(done.stdout.splitlines()[-1])
        return {
            one["scenario"]: {name: judge["verdict"] for name, judge in one["judges"].items()}
            for one in found["scenarios"]
        }

    def killed(self, seconds: float) -> bool:
        """Start it and kill it so long after; tell whether it had not ended by then."""
        with subprocess.Popen(
            self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
        self._look(journal=True)
        return process.returncode == -signal.SIGKILL

    def _look(self, *, journal: bool) -> None:
        """See what is in the scratch schema, and in the target."""
        database = OracleDatabase(self._served.source)
        source = self._served.source.model_copy(
            update={"user": self._served.prove.user, "password": self._served.prove.password}
        )
        try:
            found = ScratchSchema(source, database).objects()
        finally:
            database.close()
        known = {SchemaObject("TABLE", JOURNAL)} if journal else set()
        if journal and known <= found:
            with open_connection(source) as connection, connection.cursor() as cursor:
                cursor.execute(f"SELECT kind, name FROM {JOURNAL}")
                known |= {SchemaObject(*row) for row in cursor.fetchall()}
        if found - known:
            self.wrong.append(f"left in the source: {', '.join(map(str, found - known))}")
        if not journal:
            with psycopg.connect(self._target) as connection:
                schemas = connection.execute(
                    "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'olr%'"
                ).fetchall()
            if schemas:
                self.wrong.append(f"left in the target: {schemas}")
            if (self._out / "work").exists():
                self.wrong.append("the working files are left")


def campaign(
    served: Served, target: str, out: Path, count: int, seed: int, patterns: Sequence[str]
) -> Outcome:
    """Kill the command so many times, and compare."""
    runs, rng = Campaign(served, target, out, patterns), Random(seed)
    began = time.monotonic()
    expected = runs.whole()
    lasted = time.monotonic() - began
    kills = 0
    while kills < count and not runs.wrong:
        if runs.killed(rng.uniform(0.1, 1.0) * lasted):
            kills += 1
        sys.stderr.write(f"{kills} of {count} killed\n")
    if runs.whole() != expected:
        runs.wrong.append("the result is another one")
    return Outcome(kills, runs.wrong)


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scenario", action="append")
    options = parser.parse_args()
    patterns = options.scenario or PATTERNS
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        cluster = start_embedded(place / "postgres")
        try:
            with served_source(place / "source", options.seed) as served:
                found = campaign(
                    served, cluster.connect_string, place / "out", options.count, options.seed,
                    patterns,
                )  # fmt: skip
        finally:
            cluster.stop()
    sys.stdout.write(f"{found.kills} kills: {'; '.join(found.wrong) or 'nothing is wrong'}\n")
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
