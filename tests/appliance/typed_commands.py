"""Commands that a DBA types while tables are replicated, in drawn sequences.

    uv run python -m tests.appliance.typed_commands --count 20 --first 1

A live source has drawn changes, also in transactions that stay open. The appliance is started,
ended and killed. Between and during runs, commands are typed: also two at a time, or interrupted
and killed. No command may end with an internal error, hang, or have an exit code that does not
agree with its output. In the end, the appliance runs, and what its errors advise is done. Then each
table of the list must be equal to the source, unless somebody has left changes out (`errors skip`,
`tables add --no-load`, an edited list, rows deleted in the target). Then `verify` and `repair`, or
a new load, must make the table equal.
"""

from __future__ import annotations

import argparse
import http.client
import json
import signal
import sys
import tempfile
import time
import urllib.parse
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import oracledb
import psycopg
from psycopg.conninfo import make_conninfo

from olr_pg.config.reading import load_config
from tests.appliance.changed_configurations import TABLES, Changed, Drawn
from tests.appliance.command_forms import FORMS
from tests.appliance.forked_appliance import ForkedCommand, become_without_spark
from tests.postgres.own_cluster import own_cluster
from tests.proving.served import Served, served_source

if TYPE_CHECKING:
    from collections.abc import Sequence

_STEPS: Final = 14
_SECONDS_MAX: Final = 240.0
"""More than any wait of a command that does not depend on the amount of data."""
_ADVICE_MAX: Final = 12
_WEIGHTS: Final = {
    **{name: 0.1 for name in FORMS if name.startswith("fallback")},
    **dict.fromkeys(["config check", "errors explain", "dictionary export", "logs", "doctor"], 0.3),
    **dict.fromkeys(["run", "initial-load", "tables add", "tables remove", "errors skip"], 6),
    **dict.fromkeys(["tables pause", "tables resume", "errors retry", "verify", "repair"], 4),
    **dict.fromkeys(["cutover", "migrate"], 3),
}
"""How often each command is drawn; 1 for the others."""
_TOKEN: Final = "a token of the DBA who types"
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
_WAITS: Final = ("--until-scn", "--until-time")
"""Options that let a run wait for redo, which an idle source does not archive."""
_NOT_NAMES: Final = ("APP.NONE", "A", "APP.Ä", "app.", "APP.*", '"APP.A"', "-x", "APP.A.B")


class Typed(NamedTuple):
    """A command that has ended.

    Attributes:
        code: the exit code; negative for a signal that killed it, None if it did not end.
        sent: the signal that was sent to it; None without one.
    """

    words: tuple[str, ...]
    code: int | None
    output: str
    sent: signal.Signals | None = None

    @property
    def problem(self) -> str:
        """What is wrong with the way it ended; empty if nothing is."""
        if self.code is None:
            return "hangs"
        if self.sent is signal.SIGINT and "KeyboardInterrupt" in self.output:
            # Before the command begins, Python itself ends.
            return "prints Traceback" if "group.py" in self.output else ""
        for text in ("Traceback", "OLR-09001", "OLR-09012", "Fatal Python error"):
            if text in self.output:
                return f"prints {text}"
        if self.sent is not None:
            return ""
        if self.code < 0 or self.code > 12:
            return f"ends with {self.code}"
        refusal = "OLR-" in self.output or "Usage:" in self.output or "Invalid" in self.output
        if self.code not in (0, 1, 10, 11, 12) and not refusal:
            return f"ends with {self.code} without an error"
        return ""

    def __str__(self) -> str:
        sent = "" if self.sent is None else f" ({self.sent.name})"
        said = " ".join(self.output.split())
        return f"{' '.join(self.words)}{sent} -> {self.code}: {said[-700:]}"


class Done(list[str]):
    """What was done; each line with the seconds since the begin."""

    def __init__(self) -> None:
        super().__init__()
        self._began = time.monotonic()

    def append(self, line: str) -> None:
        """Add a line."""
        super().append(f"{time.monotonic() - self._began:5.1f} {line}")


class Operated(Changed):
    """A live source, its target, and the processes of a DBA.

    Attributes:
        done: what was done, in words.
        problems: what is wrong.
        names: the commands that are drawn.
    """

    def __init__(self, served: Served, target: str, rng: Random, *, listed: bool) -> None:
        super().__init__(served, target)
        self.rng, self._listed = rng, listed
        self._has_page = rng.random() < 0.75
        self.names = [*FORMS]
        self.listed = [f"APP.{name}" for name in TABLES]
        self.drawn = Drawn(rng.randrange(1 << 30), kinds="iiiiiuuuddat")
        self.done = Done()
        self.problems: list[str] = []
        self.left_out = set[str]()
        self.appliance: ForkedCommand | None = None
        self._numbers = iter(range(10_000))
        self._sessions = list[oracledb.Connection]()
        self._scns = [self.current_scn()]
        self._appliance_log = self.folder / "appliance.log"
        self.config = self.write()

    def write(self) -> Path:
        """Write the configuration with the present list of tables."""

        def change(document: dict[str, Any]) -> None:
            document["status"] = {
                "enabled": self._has_page,
                "address": "127.0.0.1:0",
                "control": {"tokens": {"dba": _TOKEN}},
            }
            document["source"]["poll-ms"] = 20
            if self._listed:
                document["apply"]["tables"] = self.listed

        return self.written([change])

    # --- commands ---

    def begin(self, *words: str) -> tuple[ForkedCommand, Path]:
        """Start a command; return its process and its output."""
        output = self.folder / f"{next(self._numbers)}.out"
        output.touch()
        arguments = [*words[:1], "--config", str(self.config), *words[1:]]
        if words[0] in {name.split()[0] for name in FORMS if " " in name}:
            arguments = [*words[:2], "--config", str(self.config), *words[2:]]
        if words[:2] == ("errors", "explain"):
            arguments = [*words]
        return self._process(arguments, output), output

    def _process(self, arguments: Sequence[str], output: Path) -> ForkedCommand:
        files = [str(output)] * 2
        return ForkedCommand(arguments, self.folder, files, become_without_spark)

    def end(
        self,
        words: Sequence[str],
        begun: tuple[ForkedCommand, Path],
        after: float | None = None,
        number: signal.Signals = signal.SIGKILL,
    ) -> Typed:
        """Wait for the end of a command, or send it a signal after so many seconds."""
        process, output = begun
        sent = None
        if after is not None and process.wait(after) is None:
            process.send_signal(number)
            sent = number
        code = process.wait(_SECONDS_MAX)
        if code is None:
            process.kill()
        typed = Typed(tuple(words), code, output.read_text("utf-8"), sent)
        self.done.append(str(typed))
        if typed.problem:
            self.problems.append(f"{typed.problem}: {typed}")
        return typed

    def command(self, *words: str) -> Typed:
        """Type a command, and wait for its end."""
        return self.end(words, self.begin(*words))

    def type(self) -> None:
        """Type a drawn command; or two at the same time, or one that is interrupted."""
        rng, words = self.rng, self.words()
        self._note(words)
        others = list[tuple[list[str], tuple[ForkedCommand, Path]]]()
        process = self.begin(*words)
        if rng.random() < 0.25:
            again = words if rng.random() < 0.3 else self.words()
            self._note(again)
            others.append((again, self.begin(*again)))
        ends = bool({"--continuous", "--no-apply", *_WAITS} & {*words})
        after = rng.choice([None, None, None, rng.random() * 3, 0.3 + rng.random()])
        if ends and after is None:
            after = 4.0
        self.end(words, process, after, rng.choice(_SIGNALS[: 2 if ends else 3]))
        for again, other in others:
            again_ends = bool({"--continuous", "--no-apply", *_WAITS} & {*again})
            self.end(again, other, 4.0 if again_ends else None, signal.SIGTERM)

    def words(self) -> list[str]:
        """Draw a command."""
        rng = self.rng
        (name,) = rng.choices(self.names, [_WEIGHTS.get(name, 1) for name in self.names])
        found = name.split()
        for word in rng.choice(FORMS[name]).split():
            found += self._filled(word)
        return found

    def _filled(self, word: str) -> list[str]:
        rng = self.rng
        names = [self._name() for _ in range(rng.choice([1, 1, 2]))]
        match word:
            case "{tables}":
                return names
            case "{--tables}":
                return [part for name in names for part in ("--table", name)]
            case "{--table}":
                return ["--table", names[0]]
            case "{error}":
                return [str(rng.choice(self._errors() or [1]) + rng.choice([0, 0, 0, 0, 7]))]
            case "{scn}":
                return [str(rng.choice(self._scns))]
            case "{later}":
                return [str(self.current_scn())]
            case "{time}":
                return [f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}"]
            case "{differences}":
                return [str(self.folder / "differences.jsonl")]
            case "{file}" | "{folder}":
                return [str(self.folder / f"exported{next(self._numbers)}")]
        return [word]

    def _name(self) -> str:
        rng = self.rng
        if rng.random() < 0.12:
            return rng.choice(_NOT_NAMES)
        name = rng.choice("AABBBP")
        if rng.random() < 0.15:
            return rng.choice([f"app.{name.lower()}", f'"APP"."{name}"', f'app."{name}"'])
        return f"APP.{name}"

    def _note(self, words: Sequence[str]) -> None:
        """Note tables of which a command leaves changes out."""
        if words[:2] == ["errors", "skip"]:
            self.left_out.update(self._query("SELECT source_table FROM olr_pg.error"))
        if "--no-load" in words:
            self.left_out.update(f"APP.{name}" for name in TABLES)

    # --- everything else that happens ---

    def step(self) -> None:
        """Let something drawn happen."""
        rng = self.rng
        kinds = {
            self.change: 5, self.begin_transaction: 1, self.end_transaction: 1, self.start: 3,
            self.stop: 1.5, self.type: 9, self.refuse: 1, self.allow: 1, self.drift: 0.4,
            self.over_http: 1, self.edit: 0.5,
        }  # fmt: skip
        (act,) = rng.choices([*kinds], [*kinds.values()])
        act()

    def change(self) -> None:
        """Change the source."""
        for statement in self.drawn.statements():
            try:
                self.execute([statement])
            except oracledb.Error as error:
                self.done.append(f"{statement}: {error}")
            else:
                self.done.append(statement)
        self._scns.append(self.current_scn())

    def begin_transaction(self) -> None:
        """Insert a row in a transaction that stays open."""
        session = self.session()
        name = self.rng.choice("ABP")
        number = 100_000 + next(self._numbers)
        session.cursor().execute(f"INSERT INTO {name} (id, x) VALUES ({number}, 3)")
        self._sessions.append(session)
        self.done.append(f"open transaction inserts {number} into {name}")

    def end_transaction(self) -> None:
        """Commit or roll back an open transaction."""
        if self._sessions:
            with self._sessions.pop(0) as session:
                if self.rng.random() < 0.8:
                    session.commit()
                    self.done.append("commit")
                else:
                    session.rollback()
                    self.done.append("rollback")

    def start(self) -> None:
        """Start the appliance, unless it runs."""
        if self.appliance is None or self.appliance.poll() is not None:
            self._look()
            self.appliance = self._process(
                ["run", "--config", str(self.config)], self._appliance_log
            )
            self.done.append("the appliance starts")
            self.appliance.wait(self.rng.random() * 3)

    def stop(self, number: signal.Signals | None = None) -> None:
        """End the appliance with a signal."""
        if self.appliance is not None:
            number = number or self.rng.choice(_SIGNALS)
            self.done.append(f"the appliance gets {number.name}")
            self.appliance.send_signal(number)
            if self.appliance.wait(60) is None:
                self.problems.append(f"the appliance does not end after {number.name}")
                self.appliance.kill()
            self._look()

    def _look(self) -> None:
        """Look at how the appliance has ended."""
        if self.appliance is not None:
            code = self.appliance.poll()
            log = self._appliance_log.read_text("utf-8") if self._appliance_log.exists() else ""
            typed = Typed(("run",), code, log, signal.SIGTERM)
            said = [
                line
                for line in log.splitlines()
                if "WARN" in line or "ERROR" in line or "OLR-" in line
            ]
            self.done.append(f"the appliance has ended: {code} {said}")
            if typed.problem:
                self.problems.append(f"{typed.problem}: {typed}")
            self._appliance_log.unlink(missing_ok=True)
            self.appliance = None

    def refuse(self) -> None:
        """Let the target refuse some rows of a table."""
        name = self.rng.choice("abp")
        self._admin(f"ALTER TABLE app.{name} ADD CONSTRAINT refused CHECK (x < 6) NOT VALID")

    def allow(self) -> None:
        """Remove the reason."""
        for name in "abp":
            self._admin(f"ALTER TABLE app.{name} DROP CONSTRAINT refused")

    def drift(self) -> None:
        """Delete rows of the target, which nobody should do."""
        name = self.rng.choice("abp")
        self.left_out.add(f"APP.{name.upper()}")
        self._admin(f"DELETE FROM app.{name} WHERE id % 3 = 0")

    def edit(self) -> None:
        """Edit the list of tables in the configuration."""
        if self._listed:
            self.listed = [
                f"APP.{name}" for name in TABLES if name == "Z" or self.rng.random() < 0.7
            ]
            self.left_out.update(f"APP.{name}" for name in TABLES)
            self.config = self.write()
            self.done.append(f"the configuration lists {self.listed}")

    def over_http(self) -> None:
        """Send a command to the appliance that runs."""
        rng = self.rng
        names: dict[str, Any] = {"tables": [self._name()]}
        action = rng.choice(["pause", "resume", "add", "remove", "retry", "skip", "reload"])
        body: dict[str, Any] = {} if action in ("reload", "skip") else names
        if action in ("pause", "resume", "retry") and rng.random() < 0.4:
            body = {} if action == "retry" else {"all": True}
        if action == "skip":
            body = {"errors": self._errors() or [1], "transaction": rng.random() < 0.5}
            self._note(["errors", "skip"])
        if action == "add" and rng.random() < 0.3:
            body = {**names, "load": False}
            self._note(["--no-load"])
        with suppress(OSError, ValueError, KeyError, http.client.HTTPException):
            found = json.loads((self.folder / "data" / "status.json").read_bytes())
            place = urllib.parse.urlsplit(found["url"])
            with closing(
                http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
            ) as one:
                headers = {"Authorization": f"Bearer {_TOKEN}"}
                one.request("POST", f"/control/{action}", json.dumps(body), headers)
                answer = one.getresponse()
                text = answer.read().decode()
            self.done.append(f"POST {action} {body}: {answer.status} {text[-500:]}")
            if "Traceback" in text or "OLR-09001" in text or answer.status >= 500:
                self.problems.append(self.done[-1])

    def _admin(self, statement: str) -> None:
        with suppress(psycopg.Error), psycopg.connect(self.target, autocommit=True) as connection:
            connection.execute("SET lock_timeout = '3s'")
            connection.execute(statement.encode())
            self.done.append(statement)

    def _query(self, query: str) -> list[Any]:
        try:
            with psycopg.connect(self.target, autocommit=True) as connection:
                return [value for (value,) in connection.execute(query.encode())]
        except psycopg.errors.UndefinedTable:
            return []

    def _errors(self) -> list[int]:
        return self._query("SELECT id FROM olr_pg.error ORDER BY id DESC LIMIT 5")

    # --- the end ---

    def finish(self) -> list[str]:
        """Stop what is begun, run to the end, and return what is wrong."""
        self.done.append("-- the end")
        self.stop(signal.SIGTERM)
        while self._sessions:
            self.end_transaction()
        self.allow()
        self.archive()
        last = self._settled()
        if last is not None:
            return [*self.problems, f"the advice does not help: {last}"]
        self.command("errors", "list")
        self.command("tables", "list")
        differing = self._differing()
        bad = [name for name in differing if name not in self.left_out]
        self.problems += [f"{name} differs silently" for name in bad]
        if differing:
            self.done.append(f"-- differing: {differing}")
            self._compare_and_repair(differing)
        return self.problems

    def _compare_and_repair(self, differing: Sequence[str]) -> None:
        file = str(self.folder / "last-differences.jsonl")
        options = [word for name in differing for word in ("--table", name)]
        self.command("verify", "--differences", file, *options)
        self.command("repair", "--differences", file, "--yes")
        left = self._differing()
        if left:
            self.done.append(f"-- differing after the repair: {left}")
            for name in left:
                self.command("initial-load", "--anew", "--table", name)
            last = self._settled()
            self.problems += [
                f"{name} differs after {last or 'its load'}" for name in self._differing()
            ]

    def _settled(self) -> Typed | None:
        """Run until the end, and do what errors advise; return the error whose advice fails."""
        for _ in range(_ADVICE_MAX):
            typed = self.command("run", "--once")
            if typed.code == 0:
                held = self._held()
                if not held:
                    return None
                self.command("tables", "resume", *held)
            elif not self._follow(typed):
                return typed
        return typed

    def _held(self) -> list[str]:
        return self._query("SELECT source_table FROM olr_pg.ledger WHERE paused")

    def _follow(self, typed: Typed) -> bool:
        """Do what an error advises; return whether it is a known one."""
        said = typed.output
        if "OLR-08012" in said:
            self.command("tables", "resume", "--all")
        elif "OLR-05010" in said:
            for name in self._held():
                self.command("tables", "resume", name)
            if self.command("errors", "retry").code != 0:
                for name in self._query("SELECT source_table FROM olr_pg.ledger WHERE stopped"):
                    if name in self._replicated():
                        self.command("initial-load", "--anew", "--table", name)
                    else:
                        self.command("tables", "remove", name)
        elif "OLR-05107" in said:
            if self.command("initial-load", "--resume").code != 0:
                named = [
                    part
                    for name in TABLES
                    for part in ("--table", f"APP.{name}")
                    if f"table APP.{name} to do" in " ".join(said.split())
                ]
                self.command("initial-load", "--resume", *named)
        else:
            return False
        return True

    def _replicated(self) -> set[str]:
        """Return the tables that the list contains now."""
        apply = load_config(self.config).apply
        assert apply is not None
        if apply.table_names is None:
            removed = {str(name) for name in apply.changes.removed}
            return {f"APP.{name}" for name in TABLES} - removed
        return {str(name) for name in apply.table_names} & {f"APP.{name}" for name in TABLES}

    def _differing(self) -> list[str]:
        """Return the replicated tables whose rows differ."""
        replicated = sorted(self._replicated())
        return [name for name in replicated if not self.is_same(name.removeprefix("APP."))]


def judge(operated: Operated, steps: int = _STEPS) -> list[str]:
    """Live through a sequence; return what is wrong."""
    rng = operated.rng
    if rng.random() < 0.6:
        operated.start_scn = None
        operated.config = operated.write()
        operated.change()
        operated.command("initial-load")
    try:
        for _ in range(steps):
            operated.step()
        return operated.finish()
    finally:
        if operated.appliance is not None:
            operated.appliance.kill()


def operated(served: Served, target: str, seed: int) -> Operated:
    """Return the DBA of a seed."""
    rng = Random(seed)
    return Operated(served, target, rng, listed=rng.random() < 0.6)


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--steps", type=int, default=_STEPS)
    parser.add_argument("--only", action="append", choices=FORMS, help="type only these commands")
    parser.add_argument("--all", action="store_true", help="print what right seeds did, too")
    options = parser.parse_args()
    bad = 0
    with own_cluster("fsync = off") as cluster:
        target = make_conninfo(cluster.connect_string, dbname="target")
        for seed in range(options.first, options.first + options.count):
            with psycopg.connect(cluster.connect_string, autocommit=True) as connection:
                connection.execute("DROP DATABASE IF EXISTS target WITH (FORCE)")
                connection.execute("CREATE DATABASE target")
            began = time.monotonic()
            with (
                tempfile.TemporaryDirectory() as place,
                served_source(Path(place) / "source") as served,
            ):
                one = operated(served, target, seed)
                one.names = options.only or one.names
                problems = judge(one, options.steps)
            bad += bool(problems)
            lines = [f"seed {seed}: {problems or 'right'} ({time.monotonic() - began:.0f} s)"]
            if problems or options.all:
                lines += (f"    {done}" for done in one.done)
            sys.stdout.write("\n".join(lines) + "\n")
            sys.stdout.flush()
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
