"""Commands whose network to PostgreSQL goes silent: each ends by itself and says so.

The proxy passes a drawn number of requests on, and nothing more in one or both directions.
``OLR_PG_SEEDS=20`` draws more places.
"""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import suppress
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.simulation.proxy import Proxy, Trip

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.fork_server import ForkServer

SEEDS: Final = range(int(os.environ.get("OLR_PG_SEEDS", "1")))
DONE: Final = (0, 1, 10, 11)
"""Done before the silence, or with findings; any other end has an error of the catalogue."""

FEW: Final = 5
"""How many commands one seed alone tries, after `initial-load`; with more seeds each tries all."""

COMMANDS: Final = (
    ("doctor",),
    ("initial-load",),
    ("initial-load", "--anew", "--table", "SHOP.ORDERS", "--json"),
    ("tables", "pause", "SHOP.ORDERS"),
    ("errors", "list"),
    ("tables", "resume", "SHOP.ORDERS"),
    ("errors", "retry", "SHOP.ORDERS"),
    ("errors", "retry"),
    ("errors", "show", "1"),
    ("errors", "skip", "1"),
    ("tables", "list"),
    ("run", "--once"),
    ("logs", "--purgeable"),
    ("verify",),
    ("repair", "--differences", "differences", "--yes"),
    ("tables", "remove", "SHOP.SETTINGS"),
    ("schema", "diff"),
    ("schema", "apply"),
    ("migrate", "--plan"),
    ("migrate", "--once"),
    ("cutover", "--status"),
    ("cutover", "--unverified"),
)


class Project(NamedTuple):
    """A simulated source with a configuration whose target is behind a proxy.

    Attributes:
        target: past the proxy.
    """

    folder: Path
    commands: ForkServer
    proxy: Proxy
    target: str

    def prepare(self, command: tuple[str, ...]) -> None:
        """Give a command something to do: a table that has stopped, a row that is missing."""
        if command[:2] in {("errors", "show"), ("errors", "skip"), ("errors", "retry")}:
            self._execute("ALTER TABLE shop.stock ADD CONSTRAINT no CHECK (false) NOT VALID")
            self.run("run", "--once")
        if command[0] == "repair":
            self._execute("DELETE FROM shop.warehouses")
            self.run("verify", "--differences", "differences", "--table", "SHOP.WAREHOUSES")

    def _execute(self, statement: str) -> None:
        with (
            suppress(psycopg.errors.DuplicateObject),
            psycopg.connect(self.target, autocommit=True) as connection,
        ):
            connection.execute(statement.encode())

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        name, *rest = arguments
        parts = [name, rest.pop(0)] if name in {"errors", "tables", "schema"} else [name]
        line = [*parts, "--config", str(self.folder / "olr.json"), *rest]
        environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
        return self.commands.run(line, self.folder, environment)


@pytest.fixture
def project(commands: ForkServer, tmp_path: Path, postgres_database: str) -> Iterator[Project]:
    given = conninfo_to_dict(postgres_database)
    place = (str(given["host"]), int(str(given["port"])))
    with Proxy("postgres", lambda: place) as proxy:
        through = make_conninfo(
            postgres_database, host="127.0.0.1", port=proxy.port, connect_timeout=5,
            sslmode="disable", gssencmode="disable",
        )  # fmt: skip
        line = ["simulate", "--seed", "5", "--workload", "orders", "--size", "40KB"]
        simulated = commands.run(
            [*line, "--prefilled", "--out", str(tmp_path / "sim")], tmp_path, os.environ
        )
        assert simulated.returncode == 0, simulated.stderr
        document = {
            "context": {"data": str(tmp_path / "data")},
            "source": {
                "kind": "offline",
                "dictionary": str(tmp_path / "sim/dictionary.json"),
                "logs": str(tmp_path / "sim/logs"),
                "tables": str(tmp_path / "sim/tables"),
            },
            "target": {"address": "127.0.0.1:0"},
            "apply": {
                "connect-string": through,
                "tables": ["SHOP.*"],
                "create-tables": True,
                "answer-seconds": 1,
                "retry-seconds": 5,
            },
        }
        document["status"] = {"enabled": False}
        (tmp_path / "olr.json").write_text(json.dumps(document), "utf-8")
        yield Project(tmp_path, commands, proxy, postgres_database)


def count_requests(proxy: Proxy) -> Trip:
    """Arm a trip that only counts."""
    trip = Trip("requests", lambda _: True, -1, "after", lambda: None, cuts=False)
    proxy.arm(trip)
    return trip


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", SEEDS)
def test_each_command_ends_by_itself(project: Project, seed: int) -> None:
    drawn = Random(f"silent {seed}")
    few = sorted({1, *drawn.sample(range(len(COMMANDS)), FEW)})
    chosen = COMMANDS if len(SEEDS) > 1 else [COMMANDS[one] for one in few]
    for command in chosen:
        project.prepare(command)
        counted = count_requests(project.proxy)
        first = project.run(*command)
        told = f"seed {seed}, {' '.join(command)}"
        assert "Traceback" not in first.stderr, f"{told}: {first.stderr}"
        assert counted._seen > 0, f"{told}: {first.stderr}"
        directions = drawn.choice([("requests",), ("answers",), ("requests", "answers")])
        at = drawn.randint(1, counted._seen)
        told += f", {directions} silent from request {at} of {counted._seen} on"
        silence = partial(project.proxy.silence, *directions)
        project.proxy.arm(None)
        project.prepare(command)
        project.proxy.arm(Trip("requests", lambda _: True, at, "after", silence, cuts=False))
        ended = project.run(*command)
        project.proxy.silence()
        told += f": {ended.returncode}, {ended.stderr}"
        assert ended.returncode in DONE or "OLR-" in ended.stderr, told
        assert "Traceback" not in ended.stderr, told
