"""Each step of each command of the way back, struck three times, on a way from begin to end.

    uv run python -m tests.fallback.killed_steps [--command run] [--victim appliance] [--times 3]

A step is a statement, a commit or a message that changes something in PostgreSQL or in Oracle. Once
it is done, its victim is struck: the appliance is killed; PostgreSQL is killed and started again;
Oracle loses every session and what they had open, and lets nobody in for a moment, as a restart
does. Then the command is started again, and struck at the same step, three times in all. After that
it runs to its end, and both sides have to be as if nothing had happened. The steps are counted by
reaching them, so none is left out: a command is struck at one step after the other until it has no
more.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

import oracledb
import psycopg

from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.config.reading import load_config
from olr_pg.errors import OlrPgError
from olr_pg.fallback.fallback_run import status
from olr_pg.fallback.slot_stream import SlotStream
from olr_pg.load.cutover.cut_back import open_ways_back
from olr_pg.load.cutover_steps import DONE, note_step
from tests.fallback.kills import logical_postgres
from tests.fallback.made_way import MadeWay
from tests.proving.served import served_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from olr_pg.postgres.embedded import EmbeddedPostgres
    from tests.proving.served import Served

COMMANDS: Final = ("begin", "run", "cutover", "end")
CUT_OVER: Final = "cutover --fallback"
"""A command of `killed_cut_overs`; `COMMANDS` are those of the ways here."""

VICTIMS: Final = ("appliance", "Oracle", "PostgreSQL")
AWAY_SECONDS: Final = 0.2
RECORDS: Final = {"V empty-text null": 1, "BIG empty-text null": 1}
"""What the writes of `Ways` leave in Oracle's table of records, struck or not."""

_READS: Final = re.compile(
    r"\s*(SELECT|SHOW|SET|ALTER SESSION|IDENTIFY_SYSTEM|TIMELINE_HISTORY)\b", re.IGNORECASE
)
_WRITES: Final = re.compile(
    r"NEXTVAL|setval|pg_\w*_replication_slot\b|pg_logical_emit", re.IGNORECASE
)
_FALLBACK: Final = "olr_pg.cli.migration.fallback"
_CALLS: Final[dict[str, tuple[str, str, dict[str, Any]]]] = {
    "begin": (_FALLBACK, "begin_command", {}),
    "run": (_FALLBACK, "run_command", {"once": True}),
    "cutover": (_FALLBACK, "cutover_command", {"unverified": True}),
    "end": (_FALLBACK, "end_command", {}),
    CUT_OVER: (
        "olr_pg.cli.migration.cutover",
        "cutover",
        {"unverified": True, "accept": ["*"], "fallback": True},
    ),
}


class Strike(NamedTuple):
    """Where a command is struck.

    Attributes:
        at: the number of a step, words of it, or seconds after its beginning: only the appliance
            is struck after a time.
        times: how often it is started again and struck there.
    """

    at: int | str | float
    victim: str
    times: int = 3


class Reached(NamedTuple):
    """What became of a command.

    Attributes:
        is_struck: it came to the step.
        failure: the label of its error; what else it raised; empty where it ended well.
        steps: how many it did, if it was not killed.
    """

    is_struck: bool
    failure: str
    step: str
    steps: int = 0


# --- in a process of its own ---------------------------------------------------------------------


class _Steps:
    """Counts the steps of a command; strikes behind one of them.

    Args:
        at: its number, or words of it.
    """

    def __init__(self, at: int | str | float, strike: Callable[[str], None]) -> None:
        self._at, self._strike = at, strike
        self.count = 0

    def watch(self) -> None:
        for owner, name in (
            (psycopg.Cursor, "execute"), (oracledb.Cursor, "execute"),
            (oracledb.Cursor, "executemany"), (oracledb.Connection, "commit"),
            (SlotStream, "start"), (SlotStream, "confirm"),
        ):  # fmt: skip
            self._wrap(owner, name)

    def _wrap(self, owner: Any, name: str) -> None:
        do = getattr(owner, name)

        def stepped(this: Any, *arguments: Any, **options: Any) -> Any:
            found = do(this, *arguments, **options)
            text = str(arguments[0]) if arguments and "execute" in name else name
            if _WRITES.search(text) or not _READS.match(text):
                at = self._at
                if at in text if isinstance(at, str) else self.count == at:
                    self._at = -1
                    self._strike(" ".join(text.split())[:70])
                self.count += 1
            return found

        setattr(owner, name, stepped)


def _attend() -> None:
    """Fork for each request of the campaign: the imports are done once."""
    answers = os.fdopen(os.dup(1), "w")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    modules = {module for module, _, _ in _CALLS.values()}
    for name in (*modules, "olr_pg.load.cutover.cut_back", "olr_pg.load.cutover.cut_over"):
        importlib.import_module(name)
    for name in ("olr_pg.load.initial", "olr_pg.spark.session"):
        importlib.import_module(name)
    while line := sys.stdin.readline():
        request = json.loads(line)
        pid = os.fork()
        if not pid:
            _carry_out(request, answers)
            os._exit(0)
        at = request["at"]
        if isinstance(at, float) and not _ends_within(pid, at):
            os.kill(pid, signal.SIGKILL)
            _answer(answers, "struck", f"after {at:.2f} s")
        with suppress(ChildProcessError):  # it was waited for
            os.waitpid(pid, 0)
        _answer(answers, "over")


def _ends_within(pid: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return True
        time.sleep(0.005)
    return False


def _carry_out(request: dict[str, Any], answers: IO[str]) -> None:
    def strike(step: str) -> None:
        _answer(answers, "struck", step)
        if request["victim"] == "appliance":
            os.kill(os.getpid(), signal.SIGKILL)
        sys.stdin.readline()

    steps = _Steps(request["at"], strike)
    steps.watch()
    module, name, options = _CALLS[request["command"]]
    try:
        getattr(importlib.import_module(module), name)(Path(request["config"]), **options)
    except OlrPgError as error:
        _answer(answers, "failed", f"{error.label} {error.detail}")
    except BaseException as error:  # noqa: BLE001 - whatever it is, the campaign shall say so
        _answer(answers, "failed", f"{type(error).__name__}: {error}")
    _answer(answers, "steps", str(steps.count))


def _answer(answers: IO[str], what: str, text: str = "") -> None:
    answers.write(json.dumps([what, text]) + "\n")
    answers.flush()


# --- the campaign --------------------------------------------------------------------------------


class Commands:
    """Carries commands out in other processes, and strikes where it is told to."""

    def __init__(self, config: Path, cluster: EmbeddedPostgres, served: Served) -> None:
        self._config, self._cluster, self._served = config, cluster, served
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fallback.killed_steps", "--attend"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def carry_out(self, command: str, strike: Strike | None = None) -> Reached:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        at, victim = (-1, "") if strike is None else (strike.at, strike.victim)
        self._tell({"command": command, "at": at, "victim": victim, "config": str(self._config)})
        found = Reached(is_struck=False, failure="", step="")
        while True:
            what, text = json.loads(self._process.stdout.readline())
            if what == "over":
                return found
            if what == "failed":
                found = found._replace(failure=text)
                continue
            if what == "steps":
                found = found._replace(steps=int(text))
                continue
            found = found._replace(is_struck=True, step=text)
            if victim != "appliance":
                self._strike(victim)
                self._tell({})

    def _tell(self, request: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def _strike(self, victim: str) -> None:
        if victim == "PostgreSQL":
            pid = self._cluster.pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            self._cluster.revive()
            return
        server = self._served.server.server
        server.refusing = True
        server.cut()

        def open_again() -> None:
            server.refusing = False

        threading.Timer(AWAY_SECONDS, open_again).start()


class Ways:
    """Ways back over one table, one after the other, each from its beginning to its end."""

    def __init__(self, folder: Path, cluster: EmbeddedPostgres, served: Served) -> None:
        self._made = made = MadeWay(served, cluster.connect_string, "stepped")
        self._served = served
        config = made.config_file(folder)
        document = json.loads(config.read_text())
        document["fallback"]["on-conflict"] = "overwrite"
        config.write_text(json.dumps(document))
        self._config = config
        self.commands = Commands(config, cluster, served)
        for name in ("a", "b"):
            made.oracle(
                f"CREATE TRIGGER {{t}}_{name} BEFORE UPDATE ON {{t}} FOR EACH ROW"
                " BEGIN :NEW.w := 99; END;"
            )
        made.oracle("ALTER TRIGGER {t}_b DISABLE")
        made.oracle("ALTER TABLE {t} ADD CONSTRAINT {t}_up FOREIGN KEY (w) REFERENCES {t}")
        served.execute("CREATE SEQUENCE stepped_seq START WITH 5")
        made.sql("CREATE SEQUENCE app.stepped_seq START WITH 5")
        with psycopg.connect(made.database, autocommit=True) as connection:
            ensure_ledger(connection)
            pair = {"sequence": "APP.STEPPED_SEQ", "target": ["app", "stepped_seq"]}
            note_step(connection, "olr_pg", "sequences", DONE, {"advanced": [pair]})
        self._states = self._trigger_states()
        self._next = 1

    def judge(self, strikes: Mapping[str, Strike]) -> tuple[dict[str, Reached], str]:
        """Go from begin to end, some commands struck; return what they reached, and what is wrong.

        Args:
            strikes: by command.
        """
        struck: dict[str, Reached] = {}
        for one in COMMANDS:
            if one == "cutover" and set(strikes) == {"end"}:
                continue  # so that it is `end` that enables what was set aside
            self._before(one)
            for _ in range(strikes[one].times if one in strikes else 0):
                found = self.commands.carry_out(one, strikes[one])
                struck.setdefault(one, found)
                if found.failure and not found.failure.startswith("OLR-"):
                    return struck, f"{one}: {found.failure}"
                if not found.is_struck or not self._is_unfinished(one, strikes[one].victim, found):
                    break
            found = self.commands.carry_out(one)
            wrong = found.failure or self._after(one)
            if wrong:
                return struck, f"{one}: {wrong}"
        return struck, ""

    @staticmethod
    def _is_unfinished(command: str, victim: str, found: Reached) -> bool:
        """Tell whether there is something left to strike."""
        return victim == "appliance" or bool(found.failure) or command == "run"

    def _before(self, command: str) -> None:
        first = self._next
        made = self._made
        if command == "run":
            made.sql(
                f"INSERT INTO {{t}} VALUES ({first}, '', NULL, ''), ({first + 1}, 'a', 1, 'b')"
            )
            made.sql(f"UPDATE {{t}} SET w = {first}, v = 'changed' WHERE id = {first + 1}")
            made.sql(
                f"INSERT INTO {{t}} SELECT n, 'v' || n, NULL, repeat('x', 400)"
                f" FROM generate_series({first + 2}, {first + 302}) n",
                "SAVEPOINT a", "DELETE FROM {t}", "ROLLBACK TO a",
                f"UPDATE {{t}} SET id = id + 400 WHERE id > {first + 290}",
            )  # fmt: skip
            self._next += 1000
        elif command == "cutover":
            made.sql(f"UPDATE {{t}} SET v = 'once more' WHERE id = {first - 1000}")
            made.sql("SELECT nextval('app.stepped_seq') FROM generate_series(1, 40)")

    def _after(self, command: str) -> str:
        """Say what is not as it has to be."""
        with open_ways_back(load_config(self._config)) as (way,):
            found = status(way)
        states = self._trigger_states()
        if command == "end":
            left = [found.begun, found.slot, found.ledger, *found.set_aside, *found.records]
            if any(one is not None for one in left):
                return f"left behind: {left}"
            return "" if states == self._states else f"triggers and keys: {states}"
        if found.begun is None or found.slot is None or found.ledger is None:
            return f"not begun: {found}"
        if command == "begin":
            return "" if states == self._states else f"triggers and keys: {states}"
        there, here = self._made.rows()
        if [tuple(value or None for value in row) for row in there] != here:
            return "rows differ"
        if found.ledger.stops:
            return f"stopped: {found.ledger.stops}"
        if command == "run":
            records = {
                f"{one.item} {one.cause} {one.policy}": n for one, n in found.records.items()
            }
            if records != RECORDS:
                return f"records: {records}"
            return "" if set(states.values()) == {"DISABLED"} else f"triggers fire: {states}"
        if states != self._states:
            return f"triggers and keys: {states}"
        return self._sequence_is_behind()

    def _sequence_is_behind(self) -> str:
        with self._made.oracle_cursor() as cursor:
            cursor.execute("SELECT stepped_seq.NEXTVAL FROM DUAL")
            row = cursor.fetchone()
        with psycopg.connect(self._made.database) as connection:
            there = connection.execute("SELECT last_value FROM app.stepped_seq").fetchone()
        assert row is not None
        assert there is not None
        return "" if row[0] > there[0] else f"the sequence is at {row[0]}, not behind {there[0]}"

    def _trigger_states(self) -> dict[str, str]:
        with self._made.oracle_cursor() as cursor:
            cursor.execute(
                "SELECT trigger_name, status FROM sys.dba_triggers UNION ALL SELECT"
                " constraint_name, status FROM sys.dba_constraints WHERE constraint_type = 'R'"
            )
            return dict(cursor)


@contextmanager
def opened_ways() -> Iterator[Ways]:
    """Make both sides."""
    with (
        tempfile.TemporaryDirectory() as folder,
        logical_postgres() as cluster,
        served_source(Path(folder) / "source") as served,
    ):
        ways = Ways(Path(folder), cluster, served)
        try:
            yield ways
        finally:
            ways.commands.close()


def campaign(
    ways: Ways, commands: Sequence[str], victims: Sequence[str], times: int
) -> Iterator[tuple[str, str, str]]:
    """Strike at every step; yield the command, the step, and what is wrong."""
    for victim in victims:
        for command in commands:
            at = 0
            while True:
                struck, wrong = ways.judge({command: Strike(at, victim, times)})
                reached = struck[command]
                if not reached.is_struck and not wrong:
                    break
                yield f"{victim}, {command} {at}", reached.step, wrong
                if wrong:
                    return  # what is left behind would disturb the next ones
                at += 1


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--command", choices=COMMANDS, action="append")
    parser.add_argument("--victim", choices=VICTIMS, action="append")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--attend", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.attend:
        _attend()
        return 0
    failed = 0
    with opened_ways() as ways:
        found = campaign(
            ways, options.command or COMMANDS, options.victim or VICTIMS, options.times
        )
        for where, step, wrong in found:
            failed += bool(wrong)
            sys.stdout.write(f"{where:28} {step:72} {wrong or 'right'}\n")
            sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main())
