"""The present program continues the state of an old build, in drawn histories.

    git worktree add --detach /tmp/old COMMIT
    uv run python -m tests.upgrade.old_builds --build /tmp/old --count 10 --first 1

The commands of both builds run as processes of their own, with the same live stand-in, target and
`context.data`. The old build loads, replicates and is killed, and an operator pauses, removes and
adds tables meanwhile. Then the present program continues; once, the old build is started again,
which must change nothing if it ends with an error. In the end, each table must be equal to the
source, or an error or a warning must have named it, and loading it anew makes it equal.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, Self

import oracledb
import psycopg
from psycopg.conninfo import make_conninfo

from tests.appliance.changed_configurations import TABLES, Change, Changed, Drawn
from tests.postgres.own_cluster import own_cluster
from tests.proving.served import Served, served_source

if TYPE_CHECKING:
    from collections.abc import Sequence

PRESENT: Final = Path(__file__).parents[2]
_HANGS: Final = 150.0
"""Seconds after which a command hangs."""

_REFUSED: Final = re.compile(r"OLR-(05140|04035|04011|05015|03012)")
_TOLD: Final = re.compile(r"warn|error|OLR-\d{5}|Traceback|HANGS", re.IGNORECASE)
_BROKEN: Final = re.compile(r"HANGS|Traceback|internal error")


class Build:
    """A checkout, whose commands run in processes of their own."""

    def __init__(self, tree: Path, folder: Path) -> None:
        self._output = folder / f"output-{tree.name}"
        server = Path(__file__).with_name("command_server.py")
        environment = os.environ | {"PYTHONPATH": str(tree), "NUMBA_DISABLE_JIT": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(server)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True, cwd=folder,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def command(self, words: Sequence[str], seconds: float | None = None) -> tuple[int, str]:
        """Give a command, which is killed after some seconds; return its exit code, and output."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps({"words": [*words], "output": str(self._output)}) + "\n")
        stdin.flush()
        process = int(stdout.readline())
        handle = os.pidfd_open(process)
        try:
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            if not poll.poll(1000 * (seconds or _HANGS)):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)
        code = int(stdout.readline())
        text = self._output.read_text("utf-8", "replace")
        if code == -signal.SIGKILL and seconds is None:
            text += "\nHANGS"
        return code, text


class Continued(Changed):
    """A live source, a target, and the state of an old build."""

    def __init__(self, served: Served, target: str, other: str, rng: Random) -> None:
        super().__init__(served, target, {"ddl": {"new-table": rng.choice(["follow", "ignore"])}})
        self._other, self._rng = other, rng
        self.listed = ["APP.*"]
        self.done: list[str] = []
        self.keys: dict[str, Any] = {}
        self._context: dict[str, Any] = {}
        self._source: dict[str, Any] = {}
        if rng.random() < 0.3:
            self._context["encryption-key"] = base64.b64encode(b"k" * 32).decode()
        if rng.random() < 0.3:
            self._context["bounded-recovery-mb"] = 1
        if rng.random() < 0.3:
            self._source["vault"] = {"directory": str(self.folder / "vault")}
        if rng.random() < 0.3:
            self.keys["consistency"] = "transaction"
        self._two = rng.random() < 0.25
        self.done.append(str((self._context, self._source, self.keys, self._apply, self._two)))

    def written(self, changes: Sequence[Change] = ()) -> Path:
        path = super().written(changes)
        document = json.loads(path.read_text())
        document["context"] |= self._context
        document["source"] |= self._source | {"poll-ms": 20}
        document["apply"] |= self.keys | {"tables": self.listed}
        if self._two:
            one = document.pop("apply")
            two = one | {"connect-string": self._other}
            document["target"] = [
                {"name": name, "apply": apply} for name, apply in (("one", one), ("two", two))
            ]
        path.write_text(json.dumps(document))
        return path

    def execute(self, statements: Sequence[str]) -> None:
        for statement in statements:
            try:
                super().execute([statement])
            except oracledb.DatabaseError as error:  # an open transaction locks the table
                self.done.append(f"{statement}: {error}")

    def command(self, build: Build, *words: str, seconds: float | None = None) -> tuple[int, str]:
        """Give a command for each target; the last code that is not 0."""
        config = ["--config", str(self.written())]
        targets = [["--target", "one"], ["--target", "two"]]
        result = 0, ""
        for more in targets if self._two and words[0] != "run" else [[]]:
            begun = time.monotonic()
            code, text = build.command([*words, *config, *more], seconds)
            told = [
                line
                for line in text.splitlines()
                if _TOLD.search(line) and "RuntimeWarning" not in line
            ]
            self.told += told
            took = time.monotonic() - begun
            given = f"{' '.join((*words, *more))}: {code} ({took:.0f} s) "
            self.done.append(given + " | ".join(told)[-900:])
            if code or not result[0]:
                result = code, result[1] + text
        return result

    def sql(self, statement: str) -> str:
        """Execute SQL in each target; an error of PostgreSQL is no error."""
        for target in [self.target, self._other][: 1 + self._two]:
            with psycopg.connect(target, autocommit=True) as connection:
                try:
                    connection.execute(statement.encode())
                except psycopg.Error as error:
                    self.done.append(f"{statement}: {error}")
        return statement

    def different(self, tables: Sequence[str]) -> list[str]:
        """Return the tables that differ in a target."""
        found = {name for name in tables if not self.is_same(name)}
        if self._two:
            self.target, self._other = self._other, self.target
            found |= {name for name in tables if not self.is_same(name)}
            self.target, self._other = self._other, self.target
        return sorted(found)

    def copy(self) -> None:
        """Copy the rows as another tool does."""
        for name in TABLES:
            with self.session() as oracle:
                cursor = oracle.cursor()
                rows = cursor.execute(f"SELECT * FROM {name}").fetchall()
                columns = ", ".join(one[0].lower() for one in cursor.description)
            for target in [self.target, self._other][: 1 + self._two]:
                with psycopg.connect(target, autocommit=True) as connection:
                    for row in rows:
                        places = ", ".join("%s" for _ in row)
                        statement = f"INSERT INTO app.{name.lower()} ({columns}) VALUES ({places})"
                        connection.execute(statement.encode(), row)

    def state(self) -> dict[str, str]:
        """Return the digests of the files and the tables that a refused start may not change."""
        found = {}
        for file in sorted((self.folder / "data").rglob("*")):
            if file.is_file() and file.name not in ("dictionary.json", "run.lock"):
                found[str(file)] = hashlib.sha256(file.read_bytes()).hexdigest()
        with psycopg.connect(self.target) as connection:
            tables = connection.execute(
                "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables"
                " WHERE schemaname IN ('olr_pg', 'app')"
            ).fetchall()
            for (table,) in tables:
                rows = connection.execute(f"SELECT t::text FROM {table} t ORDER BY 1".encode())
                found[table] = str(rows.fetchall())
        return found


def live(continued: Continued, old: Build, new: Build, rng: Random, seed: int) -> list[str]:
    """Live through a history; return what is wrong."""
    drawn = Drawn(seed, kinds="iiiiiiuuddatcr")
    wrong = list[str]()
    open_session = None

    def change() -> None:
        statements = drawn.statements()
        continued.done.extend(statements)
        continued.execute(statements)
        continued.archive()

    change()
    late_copy = begin(continued, old, rng)
    for _ in range(rng.randint(1, 3)):
        if open_session is None and rng.random() < 0.4:
            open_session = continued.session()
            open_session.cursor().execute("INSERT INTO z (id, x) VALUES (5000, 1)")
            open_session.cursor().execute("INSERT INTO p (id, x) VALUES (5001, 1)")
            continued.done.append("open transaction in Z and P")
        if rng.random() < 0.7:
            act(continued, old, rng, drawn)
        change()
        seconds = rng.uniform(0.5, 5) if rng.random() < 0.5 else None
        continued.command(old, "run", "--once", seconds=seconds)
    change()
    continued.done.append("--- the present program")
    if late_copy:
        continued.command(new, "initial-load", "--end-copy")
    if rng.random() < 0.3:
        act(continued, new, rng, drawn)
    seconds = rng.uniform(0.5, 5) if rng.random() < 0.3 else None
    code, _ = continued.command(new, "run", "--once", seconds=seconds)
    if code in (0, 6) and rng.random() < 0.6:  # it has written
        before = continued.state()
        code, text = continued.command(old, "run", "--once")
        after = continued.state()
        if code == 0:
            continued.done.append("the old build runs")
        elif _REFUSED.search(text):
            wrong += [
                f"{key}: changed by a refused start"
                for key in before | after
                if before.get(key) != after.get(key)
            ]
        else:
            wrong.append(f"the old build: {code} {text[-1500:]}")
    if open_session is not None:
        open_session.cursor().execute("UPDATE z SET x = 77 WHERE id = 5000")
        (open_session.commit if rng.random() < 0.7 else open_session.rollback)()
        open_session.close()
    change()
    wrong += operate(continued, new)
    different = continued.different(drawn.tables)
    continued.done.append(f"different: {different}")
    for name in different:
        if not any(f".{name}" in one for one in continued.told):
            wrong.append(f"{name} differs silently")
    for name in different:
        load_anew(continued, new, f"APP.{name}")
    if different:
        change()
        wrong += operate(continued, new)
        still = continued.different(drawn.tables)
        wrong += [f"{name} differs after loading it anew" for name in still]
    return wrong + [line for line in continued.done if _BROKEN.search(line)]


def begin(continued: Continued, old: Build, rng: Random) -> bool:
    """Begin with the old build; whether a copy ends later."""
    kinds = ("nothing", "load", "load", "killed load", "killed load", "copy", "late copy")
    kind = rng.choice(kinds)
    continued.done.append(f"begin: {kind}")
    if kind == "nothing":
        return False
    continued.start_scn = None
    if "copy" in kind:
        code, _ = continued.command(old, "initial-load", "--begin-copy")
        if code == 2:  # a build that does not have the option
            continued.command(old, "initial-load")
            return False
        continued.copy()
        if kind == "copy":
            continued.command(old, "initial-load", "--end-copy")
        return kind == "late copy"
    if kind == "load":
        continued.command(old, "initial-load")
        return False
    continued.command(old, "initial-load", seconds=rng.uniform(0.5, 4))
    if rng.random() < 0.5:
        continued.command(old, "initial-load", "--resume")
    return False


def act(continued: Continued, build: Build, rng: Random, drawn: Drawn) -> None:
    """Do what an operator or a DBA does between two runs."""
    name = rng.choice(drawn.tables)
    kind = rng.choice(("stop", "stop", "pause", "remove", "add", "no load", "ddl", "leave"))
    continued.done.append(f"act: {kind} {name}")
    if kind == "stop":
        check = "ADD CONSTRAINT refused CHECK (x < 500) NOT VALID"
        continued.sql(f"ALTER TABLE app.{name.lower()} {check}")
        continued.execute([f"INSERT INTO {name} (id, x) VALUES ({rng.randint(6000, 9000)}, 600)"])
    elif kind == "pause":
        continued.command(build, "tables", "pause", f"APP.{name}")
    elif kind == "remove":
        continued.command(build, "tables", "remove", f"APP.{name}")
        continued.told.append(f"the operator removed APP.{name}")
    elif kind in ("add", "no load"):
        new = f"X{rng.randint(1, 999)}"
        continued.execute([f"CREATE TABLE {new} (id NUMBER(9) PRIMARY KEY, x NUMBER(9))"])
        drawn.tables.append(new)
        words = ["--no-load"] if kind == "no load" else []
        continued.command(build, "tables", "add", f"APP.{new}", *words)
    elif kind == "ddl":
        continued.keys["ddl"] = {"add-column": "stop", "truncate": "stop", "new-table": "follow"}
        continued.execute([f"ALTER TABLE {name} ADD (w{rng.randint(1, 999)} NUMBER(9))"])
    else:
        continued.listed = ["APP.*", f"!APP.{name}"] if len(continued.listed) == 1 else ["APP.*"]


def load_anew(continued: Continued, new: Build, name: str) -> None:
    """Load a table anew; if its columns or name have changed, create it again."""
    if continued.command(new, "initial-load", "--anew", "--table", name)[0]:
        continued.command(new, "tables", "remove", name)
        continued.sql(f"DROP TABLE IF EXISTS {name.lower()}")
        continued.command(new, "tables", "add", name)


def operate(continued: Continued, new: Build) -> list[str]:
    """Do as errors advise until a run has no error; return what is wrong."""
    continued.listed = ["APP.*"]
    anew = set[str]()
    for _ in range(5):
        code, text = continued.command(new, "run", "--once")
        if code == 0:
            _, listed = continued.command(new, "tables", "list")
            paused = re.findall(r"^paused +(APP\.\w+)", listed, re.MULTILINE)
            if not paused:
                return []
            continued.command(new, "tables", "resume", *paused)
        elif "OLR-05107" in text or "initial-load --resume" in text:
            if continued.command(new, "initial-load", "--resume")[0]:
                continued.command(new, "initial-load", "--restart")
        elif "OLR-03076" in text:
            continue  # "start the appliance again"
        elif "OLR-03012" in text:  # the load was killed before it had recorded anything
            continued.command(new, "initial-load")
        elif "--end-copy" in text:
            continued.command(new, "initial-load", "--end-copy")
        elif code == 6:
            _, listed = continued.command(new, "errors", "list")
            stopped = sorted(set(re.findall(r"APP\.\w+", listed)))
            for name in stopped:
                drop = "DROP CONSTRAINT IF EXISTS refused"
                continued.sql(f"ALTER TABLE IF EXISTS {name.lower()} {drop}")
            if continued.command(new, "errors", "retry")[0] or "OLR-05145" in text:
                for name in stopped:
                    if name in anew:
                        continue
                    anew.add(name)
                    load_anew(continued, new, name)
        else:
            names = sorted(set(re.findall(r"--table (APP\.\w+)", text)) - anew)
            if not names:
                return [f"ended with {text[-1500:]}"]
            anew |= set(names)
            for name in names:
                continued.command(new, "initial-load", "--anew", "--table", name)
    return ["no end of errors"]


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    bad = 0
    with (
        tempfile.TemporaryDirectory() as outputs,
        own_cluster("fsync = off") as cluster,
        Build(options.build, Path(outputs)) as old,
        Build(PRESENT, Path(outputs)) as new,
    ):
        for seed in range(options.first, options.first + options.count):
            with psycopg.connect(cluster.connect_string, autocommit=True) as connection:
                for name in ("target", "other"):
                    connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
                    connection.execute(f"CREATE DATABASE {name}".encode())
            target = make_conninfo(cluster.connect_string, dbname="target")
            other = make_conninfo(cluster.connect_string, dbname="other")
            rng = Random(seed)
            begun = time.monotonic()
            with (
                tempfile.TemporaryDirectory() as place,
                served_source(Path(place) / "source") as served,
            ):
                continued = Continued(served, target, other, rng)
                try:
                    wrong = live(continued, old, new, rng, seed)
                except Exception as error:  # noqa: BLE001 - the next seed
                    wrong = [f"the campaign: {error!r}"]
            bad += bool(wrong)
            took = time.monotonic() - begun
            lines = [f"seed {seed} ({took:.0f} s): {wrong or 'right'}"]
            if wrong or options.verbose:
                lines += (f"    {one}" for one in continued.done)
            sys.stdout.write("\n".join(lines) + "\n")
            sys.stdout.flush()
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
