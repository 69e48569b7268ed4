"""`olr-pg cutover --fallback`, killed at random moments, over cut-overs and ways home.

    uv run python -m tests.fallback.killed_cut_overs [--kills 30] [--seed 1]

Each cut-over is killed up to four times: after a random time, or after a random step, which is a
statement or a commit that changes something on either side. After each kill nothing may be half
done: a step that is noted as done is done, those before it are, too, and `olr-pg fallback run`
works or refuses with an error of its own. Then the same command is started again, and has to
finish. Applications write to PostgreSQL, the rows reach Oracle, `olr-pg fallback cutover` brings
the applications home, and the next cut-over begins. The way back ends after every second one, so
that the next one has to begin anew.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

import oracledb
import psycopg

from olr_pg.config.reading import load_config
from olr_pg.errors import Code
from olr_pg.fallback.fallback_run import status
from olr_pg.load.cutover.cut_back import open_ways_back
from olr_pg.load.cutover.cut_over import steps_of
from olr_pg.load.cutover_steps import read_steps
from tests.fallback.killed_steps import CUT_OVER, Commands, Reached, Strike
from tests.fallback.kills import logical_postgres
from tests.fallback.made_way import way_document, write_document
from tests.proving.served import served_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.proving.served import Served

KILLS_MAX: Final = 4
"""Of one cut-over."""

_STEPS: Final = tuple(step.name for step in steps_of(fallback=True))
_ATTEMPTS: Final = 20
_NOT_ARCHIVED: Final = f"OLR-{Code.LAST_REDO_NOT_ARCHIVED:05}"


class Kill(NamedTuple):
    """A kill, the steps that were done by then, and what is wrong; empty if nothing is."""

    moment: str
    done: str
    wrong: str


class CutOvers:
    """Cut-overs of one table, one after the other, each with a way home."""

    def __init__(
        self, folder: Path, target: str, served: Served, commands: Callable[[Path], Commands]
    ) -> None:
        self._served, self._target = served, target
        served.execute("CREATE TABLE sold (id NUMBER(9) PRIMARY KEY, name VARCHAR2(20))")
        served.execute("CREATE SEQUENCE sold_seq")
        more = {"create-tables": True, "start-scn": served.server.database.current_scn()}
        document = way_document(served, folder / "data", self._target, "sold", **more)
        self._config = write_document(document, folder / "olr-pg.json")
        self.commands = commands(self._config)
        self._next = 1

    def cut_over(self) -> tuple[Reached, float]:
        """Write to Oracle, and cut over without a kill; return the seconds, too."""
        self._write_to_oracle()
        start = time.monotonic()
        return self._call(), time.monotonic() - start

    def kill(self, strikes: Iterator[Strike]) -> Iterator[Kill]:
        """Write to Oracle, cut over, and kill at these moments; the last call has to finish."""
        self._write_to_oracle()
        for strike in strikes:
            found = self._call(strike)
            wrong = self._half_done()
            if not found.is_struck:
                wrong = wrong or found.failure
                if wrong:
                    yield Kill("it ended before", "", wrong)
                break
            yield Kill(found.step, " ".join(self._done()), wrong)
        finished = self._call()
        if wrong := finished.failure or self._half_done() or self._unfinished():
            yield Kill("the next call", " ".join(self._done()), wrong)

    def go_home(self, *, end: bool) -> str:
        """Write to PostgreSQL, and take the applications to Oracle; return what is wrong."""
        with psycopg.connect(self._target) as connection:
            connection.execute("UPDATE app.sold SET name = 'of PostgreSQL'")
            connection.execute("INSERT INTO app.sold VALUES (%s, 'new')", [self._next])
            connection.execute("SELECT nextval('app.sold_seq') FROM generate_series(1, 9)")
        self._next += 1
        for command in ("run", "cutover", *(("end",) if end else ())):
            found = self.commands.carry_out(command)
            if found.failure:
                return f"{command}: {found.failure}"
            if wrong := self._differences():
                return f"{command}: {wrong}"
        return ""

    def _write_to_oracle(self) -> None:
        first = self._next
        for number in range(first, first + 3):
            self._served.execute(f"INSERT INTO sold VALUES ({number}, 'of Oracle')")
        self._served.execute("UPDATE sold SET name = 'again' WHERE MOD(id, 3) = 0")
        self._next += 3

    def _call(self, strike: Strike | None = None) -> Reached:
        """Cut over; switch logs, as a DBA does, while the step `archived` asks for it."""
        for _ in range(_ATTEMPTS):
            self._served.server.database.switch_logs()
            found = self.commands.carry_out(CUT_OVER, strike)
            if not found.failure.startswith(_NOT_ARCHIVED):
                break
        return found

    def _done(self) -> list[str]:
        with suppress(psycopg.errors.UndefinedTable), psycopg.connect(self._target) as connection:
            found = read_steps(connection, "olr_pg")
            return [name for name in _STEPS if name in found and found[name].is_over]
        return []

    def _half_done(self) -> str:
        """Return what is noted as done without being so."""
        done = self._done()
        if done != list(_STEPS[: len(done)]):
            return f"steps: {done}"
        running = self.commands.carry_out("run").failure
        if "fallback" not in done:
            return "" if not running or running.startswith("OLR-073") else running
        with open_ways_back(load_config(self._config)) as (way,):
            found = status(way)
        lacking = found.begun is None or found.slot is None or found.ledger is None
        return running or (f"the way back has not begun: {found}" if lacking else "")

    def _unfinished(self) -> str:
        done = self._done()
        return "" if done == list(_STEPS) else f"only {done} are done"

    def _differences(self) -> str:
        query = "SELECT id, name FROM {} ORDER BY id"
        with psycopg.connect(self._target) as connection:
            there = connection.execute(query.format("app.sold").encode()).fetchall()
            row = connection.execute("SELECT last_value FROM app.sold_seq").fetchone()
        with (
            oracledb.connect(user="app", password="olr", dsn=self._served.dsn) as oracle,
            oracle.cursor() as cursor,
        ):
            cursor.execute(query.format("sold"))
            here = [tuple(one) for one in cursor]
        assert row is not None
        if len(there) != self._next - 1:
            return f"{len(there)} rows, not {self._next - 1}"
        return "" if there == here else f"{len(set(there) ^ set(here))} rows differ"


@contextmanager
def opened_cut_overs(seed: int) -> Iterator[CutOvers]:
    """Make both sides."""
    with (
        tempfile.TemporaryDirectory() as folder,
        logical_postgres() as cluster,
        served_source(Path(folder) / "source", seed) as served,
    ):

        def commands(config: Path) -> Commands:
            return Commands(config, cluster, served)

        cut_overs = CutOvers(Path(folder), cluster.connect_string, served, commands)
        try:
            yield cut_overs
        finally:
            cut_overs.commands.close()


def campaign(cut_overs: CutOvers, kills: int, seed: int) -> Iterator[Kill]:
    """Cut over and go home until so many kills have struck; yield each one."""
    rng, number, struck = Random(seed), 0, 0
    reached, seconds = cut_overs.cut_over()
    if wrong := reached.failure or cut_overs.go_home(end=True):
        yield Kill("without a kill", "", wrong)
        return

    def moments() -> Iterator[Strike]:
        for _ in range(rng.randint(1, KILLS_MAX)):
            by_time = rng.random() < 0.5
            at = rng.uniform(0, seconds) if by_time else rng.randrange(reached.steps)
            yield Strike(at, "appliance")

    while struck < kills:
        for one in cut_overs.kill(moments()):
            struck += 1
            yield one
            if one.wrong:
                return
        number += 1
        if wrong := cut_overs.go_home(end=number % 2 == 0):
            yield Kill("the way home", "", wrong)
            return


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found = list[Kill]()
    with opened_cut_overs(options.seed) as cut_overs:
        for one in campaign(cut_overs, options.kills, options.seed):
            found.append(one)
            sys.stdout.write(f"{one.moment:72} done: {one.done:60} {one.wrong or 'right'}\n")
            sys.stdout.flush()
    wrong = sum(bool(one.wrong) for one in found)
    sys.stdout.write(f"{len(found)} kills, {wrong} wrong\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
