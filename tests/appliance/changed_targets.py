"""A target that a DBA changes between and during runs, in drawn histories.

    uv run python -m tests.appliance.changed_targets --count 20 --first 1
    uv run python -m tests.appliance.changed_targets --only olr_pg --count 20

A live source has drawn changes. Before or during each run, a superuser of the target acts as if
olr_pg did not exist (`target_acts`). Then an operator follows what the errors advise, until a run
succeeds. In the end each table must be equal to the source. If only rows differ that the DBA has
changed, `verify` must find them and `repair` correct them. Any other difference must have been told
by an error or a warning that names the table. There is no internal error and no run that does not
end, retries at full speed or needs the same advice again and again.
"""

from __future__ import annotations

import argparse
import faulthandler
import re
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from contextlib import suppress
from importlib import resources
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from structlog.testing import capture_logs

from olr_pg.applier.batches import table_queue
from olr_pg.errors import Code, OlrPgError
from olr_pg.load import copy_task
from tests.appliance.changed_configurations import TABLES, Changed, Drawn
from tests.appliance.target_acts import ACTS, NEXT, Act, acts
from tests.postgres.own_cluster import own_cluster
from tests.proving.served import served_source
from tests.simulation.entry import spark_or_not

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.postgres.embedded import EmbeddedPostgres

ROLE: Final = "applier"
_ROUNDS: Final = 3
_KINDS: Final = "iiiiiiuuuddat"
_STEPS_MAX: Final = 7
"""So many runs may end with an error whose advice is followed."""

_RUN_SECONDS: Final = 100.0
"""A run that lasts longer does not end: the process prints its stacks and ends."""

_CPU_SECONDS: Final = 20.0
_LINES_MAX: Final = 400
_HOLD_SECONDS: Final = 0.5
_PARTITIONED: Final = (
    f"CREATE SCHEMA app AUTHORIZATION {ROLE};;SET ROLE {ROLE};;"
    "CREATE TABLE app.p (id integer PRIMARY KEY, x integer) PARTITION BY RANGE (id);;"
    "CREATE TABLE app.p_p1 PARTITION OF app.p FOR VALUES FROM (MINVALUE) TO (50);;"
    "CREATE TABLE app.p_p2 PARTITION OF app.p FOR VALUES FROM (50) TO (1000000)"
)
STRANGERS: Final = ("A", "B", "P")
_LOADS: Final = "initial-load --anew"
_COLUMNS_MAX: Final = 9
_SCRIPT: Final = "sql/postgres/ledger.sql"
_RIGHTS: Final = "sql/postgres/role.sql"
_COMMENTED: Final = (
    f"GRANT postgres TO {ROLE};;GRANT CREATE ON DATABASE target TO {ROLE};;"
    f"CREATE SCHEMA IF NOT EXISTS app;;GRANT CREATE ON SCHEMA app TO {ROLE}"
)
"""What role.sql has as comments."""
_RESUMES: Final = "initial-load --resume"
_STATEMENT: Final = re.compile(r"`((?:ALTER TABLE olr_pg\.[^`.…;]*(?:; )?)+)`")


class BrokenError(Exception):
    """Something that must hold did not."""


class Done(NamedTuple):
    """An act that can be undone, with its words."""

    act: Act
    undo: str
    session: psycopg.Connection[Any]


class Stranger:
    """A superuser of the target.

    Attributes:
        done: the acts that are not undone yet.
        story: what was done, for the report.
        touched: by table, the ids of the rows that this superuser has changed.
    """

    def __init__(self, changed: Changed, target: str, first: int) -> None:
        self._changed, self._target = changed, target
        self._numbers = iter(range(first, first + 1000))
        self.done: list[Done] = []
        self.story: list[str] = []
        self.touched: dict[str, set[str]] = {name: set() for name in TABLES}

    def act(self, act: Act, table: str) -> None:
        """Act on a table; an act that PostgreSQL refuses is left out."""
        words = self._words(table)
        before = self._rows(table) if act.changes_rows else None
        session = psycopg.connect(self._target, autocommit=True)
        try:
            session.execute("SET lock_timeout = '3s'")
            self._execute(session, act.do.format(**words))
        except psycopg.Error as error:
            self.story.append(f"    refused ({_line(error)}): {act.do.format(**words)}")
            session.close()
            return
        self.story.append(f"    {table}: {act.do.format(**words)}")
        if act.changes_rows:
            self._touch(table, before)
        if act.undo:
            self.done.append(Done(act, act.undo.format(**words), session))
        if not act.is_kept:
            session.close()

    def undo(self, *, passing: bool = False) -> bool:
        """Undo all acts, or those without which no run can end; return whether there was one."""
        chosen = [one for one in reversed(self.done) if one.act.is_passing or not passing]
        for one in chosen:
            self.done.remove(one)
            with suppress(psycopg.Error):
                if one.act.is_kept and not one.session.closed:
                    self._execute(one.session, one.undo)
                    one.session.close()
                else:
                    self.execute(one.undo)
                self.story.append(f"    undone: {one.undo}")
        return bool(chosen)

    def leave(self) -> None:
        """End the sessions in which acts are kept."""
        for one in self.done:
            one.session.close()

    def forget(self, table: str) -> None:
        """Record that the table was loaded again."""
        self.touched[table].clear()

    def execute(self, statements: str) -> None:
        """Execute statements that belong to no act."""
        with psycopg.connect(self._target, autocommit=True) as session:
            session.execute("SET lock_timeout = '3s'")
            self._execute(session, statements)

    @staticmethod
    def _execute(session: psycopg.Connection[Any], statements: str) -> None:
        for statement in statements.split(NEXT):
            session.execute(statement.encode())

    def _words(self, table: str) -> dict[str, Any]:
        with psycopg.connect(self._target) as session:
            found = session.execute(
                "SELECT current_database(), (SELECT format_type(atttypid, atttypmod)"
                " FROM pg_attribute WHERE attrelid = to_regclass(%(t)s) AND attname = 'x'),"
                " (SELECT inhrelid::regclass::text FROM pg_inherits"
                " WHERE inhparent = to_regclass(%(t)s) ORDER BY 1 LIMIT 1)",
                {"t": f"app.{table.lower()}"},
            ).fetchone()
        assert found is not None
        return {
            "t": f"app.{table.lower()}", "n": table.lower(), "k": next(self._numbers),
            "role": ROLE, "source": f"APP.{table}", "db": found[0], "x": found[1] or "integer",
            "p": found[2] or "app.none",
        }  # fmt: skip

    def _rows(self, table: str) -> Counter[tuple[str, ...]] | None:
        rows = self._changed.rows(table)[1]
        return None if rows is None else Counter(rows)

    def _touch(self, table: str, before: Counter[tuple[str, ...]] | None) -> None:
        after = self._rows(table)
        if before is None or after is None:
            self.touched[table].add("*")
            return
        self.touched[table].update(row[0] for row in ((before - after) + (after - before)))
        if before == after:  # what olr_pg writes from now on
            self.touched[table].add("*")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


class Course:
    """A seed at work.

    Args:
        target: the connection string of a superuser, for an empty database.
        apply: the connection string of the applier.
    """

    def __init__(self, seed: int, changed: Changed, target: str, only: Sequence[str] = ()) -> None:
        self._rng = Random(f"target {seed}")
        self._changed, self._target = changed, target
        self._acts = acts(only)
        self._drawn = Drawn(seed, kinds=_KINDS)
        self._quiet_from = dict.fromkeys(STRANGERS, 0)
        self.stranger = Stranger(changed, target, seed * 1000)
        if self._rng.random() < 0.7:
            self.stranger.execute(_PARTITIONED)
        self.story = self.stranger.story
        self.codes = Counter[str]()

    def live(self) -> None:
        """Live through the seed.

        Raises:
            BrokenError: something does not hold.
        """
        first = [f"INSERT INTO {name} (id, x) VALUES ({900 + n}, 1)" for name in STRANGERS
                 for n in range(3)]  # fmt: skip
        if self._run([*first, *self._drawn.statements()]) is not None:
            raise BrokenError("the first run ends with an error")
        if self._rng.random() < 0.3:
            self._load(list(STRANGERS))
        for _ in range(_ROUNDS):
            self._round()
        self._mend()
        for name in STRANGERS:
            self._settle(name)
        self._last()

    def _round(self) -> None:
        form, act = self._draw()
        table = self._rng.choice(act.on)
        statements = self._drawn.statements()
        # A DBA can act before the changes arrive, or while they are applied.
        if act.changes_rows or self._rng.random() < 0.6:
            self.stranger.act(act, table)
            self._run(statements)
        else:
            self._run(statements, lambda: self.stranger.act(act, table))
        self.codes[form] += 1

    def _draw(self) -> tuple[str, Act]:
        if self._rng.random() < 0.25 and "olr_pg" in {form for form, _ in self._acts}:
            return "olr_pg", self._rng.choice(ACTS["olr_pg"])
        return self._rng.choice(self._acts)

    # --- runs ---

    def _run(
        self, statements: Sequence[str], during: Callable[[], None] | None = None
    ) -> OlrPgError | None:
        self.story += statements
        over = threading.Event()
        thread = threading.Thread(target=self._meanwhile, args=(during, over), daemon=True)
        thread.start()
        faulthandler.dump_traceback_later(_RUN_SECONDS, exit=True)
        told, cpu = len(self._changed.told), time.process_time()
        try:
            error = self._changed.run(statements)
        finally:
            faulthandler.cancel_dump_traceback_later()
            over.set()
            thread.join()
        self.story.append(f"run: {error or 'right'}")
        self.story += [f"    told: {one[:300]}" for one in self._changed.told[told:]]
        if error is not None and error.code == Code.INTERNAL:
            raise BrokenError("an internal error")
        if time.process_time() - cpu > _CPU_SECONDS:
            raise BrokenError(f"the run took {time.process_time() - cpu} s of a core")
        if len(self._changed.told) - told > _LINES_MAX:
            raise BrokenError(f"the run logged {len(self._changed.told) - told} warnings")
        if error is None:
            for name in STRANGERS:
                if self._changed.is_same(name):
                    self._quiet_from[name] = len(self._changed.told)
        return error

    def _meanwhile(self, during: Callable[[], None] | None, over: threading.Event) -> None:
        try:
            if during is not None:
                while not over.wait(0.01) and not self._applies():
                    pass
                over.wait(self._rng.choice((0.0, 0.1, 0.4)))
                during()
            over.wait(self._rng.choice((0.2, 1.5)))
            self.stranger.undo(passing=True)
        except psycopg.Error as error:
            self.story.append(f"    the stranger: {_line(error)}")

    def _applies(self) -> bool:
        with psycopg.connect(self._target) as session:
            query = "SELECT FROM pg_stat_activity WHERE usename = %s"
            return session.execute(query, (ROLE,)).fetchone() is not None

    # --- what an operator does ---

    def _mend(self) -> None:
        """Follow what the errors advise, until a run succeeds."""
        for _ in range(_STEPS_MAX):
            error = self._run([])
            if error is None:
                return
            self._follow(error)
        error = self._run([])
        if error is not None:
            raise BrokenError(f"the advice does not lead to an end: {error}\n{error.action}")

    def _follow(self, error: OlrPgError) -> None:
        reasons = self._reasons(error)
        for code, _, _, _ in reasons:
            self.codes[f"OLR-{code:05}"] += 1
        has_advice = any(_LOADS in action for _, _, _, action in reasons)
        if (not has_advice or self._rng.random() < 0.5) and self.stranger.undo():
            if error.code == Code.TABLES_STOPPED:
                self._command("errors", "retry")
            return
        if any(_SCRIPT in action for _, _, _, action in reasons):
            self._run_scripts(is_superuser=any(_RIGHTS in action for _, _, _, action in reasons))
        for statement in _STATEMENT.findall(error.action):
            self.stranger.execute(statement)
            return
        if _RESUMES in error.action:
            self._command("initial-load", "--resume", "--table", str(error.where["table"]))
            return
        loaded = [table for _, _, table, action in reasons if _LOADS in action]
        if loaded:
            named = {name for name in STRANGERS if any(f".{name}" in one for one in loaded)}
            self._load(sorted(named) or list(TABLES))
            return
        self.stranger.undo()
        for code, number, _, _ in reasons:
            if number:
                self._command("errors", "skip", str(number))
            self.story.append(f"    skipped OLR-{code:05}")

    def _run_scripts(self, *, is_superuser: bool) -> None:
        """Run ledger.sql as the owner of the schema, or as a superuser also role.sql."""
        for name in ("ledger.sql", "role.sql")[: 1 + is_superuser]:
            script = resources.files("olr_pg.applier").joinpath(f"sql/{name}").read_text("utf-8")
            script = re.sub(r"(?s)SELECT format.*?gexec", "", script)
            for variable, value in (("role", ROLE), ("target_schema", "app")):
                script = script.replace(f':"{variable}"', value)
            words = "" if is_superuser else f"SET ROLE {ROLE};"
            try:
                self.stranger.execute(_COMMENTED if is_superuser else "SELECT")
                with psycopg.connect(self._target, autocommit=True) as session:
                    session.execute(f"{words}{script}".encode())
                self.story.append(f"    sql/postgres/{name}")
            except psycopg.Error as error:
                self.story.append(f"    sql/postgres/{name}: {_line(error)}")

    def _reasons(self, error: OlrPgError) -> list[tuple[int, int, str, str]]:
        """Return code, number, table and action of what ended the run."""
        if error.code != Code.TABLES_STOPPED:
            return [(int(error.code), 0, str(error.where.get("table", "")), error.action)]
        with psycopg.connect(self._target) as session:
            rows = session.execute(
                "SELECT code, id, source_table, action, message FROM olr_pg.error"
                " WHERE resolution = 'stopped'"
            ).fetchall()
        self.story += [f"    {row[2]} OLR-{row[0]:05}: {row[4]}" for row in rows]
        return [(code, number, table, action or Code(code).action)
                for code, number, table, action, _ in rows]  # fmt: skip

    def _command(self, *words: str) -> tuple[int, str]:
        faulthandler.dump_traceback_later(_RUN_SECONDS, exit=True)
        with capture_logs():
            code, output = self._changed.give(*words)
        faulthandler.cancel_dump_traceback_later()
        self.story.append(f"    olr-pg {' '.join(words)}: {code} {output[:400]}")
        if "OLR-09" in output or "Traceback" in output:
            raise BrokenError(f"{words}: {output}")
        return code, output

    def _load(self, names: Sequence[str]) -> None:
        tables = [word for name in names for word in ("--table", f"APP.{name}")]
        for _ in range(_COLUMNS_MAX):
            code, output = self._command("initial-load", "--anew", *tables)
            missing = re.search(r"(app\.\w+) has no column '(\w+)'", output)
            if missing is None:
                break
            self.stranger.execute(f"ALTER TABLE {missing[1]} ADD {missing[2]} integer")
        if code == 0:
            for name in names:
                self.stranger.forget(name)

    def _settle(self, name: str) -> None:
        """Find and correct what still differs; it must be the stranger's, or must have been
        told.
        """
        if self._changed.is_same(name):
            return
        here, there = self._changed.rows(name)
        told = self._changed.told[self._quiet_from[name] :]
        is_told = any(re.search(rf"\b(APP|app)\.{name}\b", one, re.IGNORECASE) for one in told)
        if there is None:
            raise BrokenError(f"{name} is missing, or lacks columns")
        one, other = Counter(here), Counter(there)
        ids = {row[0] for row in ((one - other) + (other - one))}
        touched = self.stranger.touched[name]
        if not is_told and ids - touched and "*" not in touched:
            raise BrokenError(f"{name} differs silently: {ids - touched}")
        self.codes["repaired"] += 1
        output = ""
        for _ in range(2):
            output = self._repair(name)
            if self._changed.is_same(name):
                return
            self.stranger.undo()  # PostgreSQL's reason
        raise BrokenError(f"repair does not correct {name}: {output}")

    def _repair(self, name: str) -> str:
        with tempfile.TemporaryDirectory() as place:
            file = str(Path(place) / "differences")
            table = ("--table", f"APP.{name}")
            if self._command("verify", *table, "--differences", file)[0] == 0:
                raise BrokenError(f"verify does not find the differences of {name}")
            return self._command("repair", "--differences", file, "--yes")[1]

    def _last(self) -> None:
        """After all was corrected, replication must go on."""
        later = [f"INSERT INTO {name} (id, x) VALUES (800, 1)" for name in STRANGERS]
        later += [f"UPDATE {name} SET x = x + 1" for name in STRANGERS]
        if (error := self._run(later)) is not None:
            self._follow(error)
            self._mend()
        for name in STRANGERS:
            self._settle(name)
        differing = [name for name in STRANGERS if not self._changed.is_same(name)]
        if differing:
            raise BrokenError(f"differ after all was corrected: {differing}")


def new_target(cluster: EmbeddedPostgres) -> tuple[str, str]:
    """Make a database and a role for the applier; return both connection strings."""
    with psycopg.connect(cluster.connect_string, autocommit=True) as connection:
        for (gid,) in connection.execute("SELECT gid FROM pg_prepared_xacts").fetchall():
            # Only in its own database can a prepared transaction be ended.
            with psycopg.connect(cluster.connect_string, dbname="target", autocommit=True) as one:
                one.execute(f"ROLLBACK PREPARED '{gid}'".encode())
        connection.execute("DROP DATABASE IF EXISTS target WITH (FORCE)")
        if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (ROLE,)).fetchone():
            connection.execute(f"DROP OWNED BY {ROLE}".encode())
            connection.execute(f"DROP ROLE {ROLE}".encode())
        spaces = "SELECT spcname FROM pg_tablespace WHERE spcname LIKE 'z%'"
        for (space,) in connection.execute(spaces).fetchall():
            connection.execute(f"DROP TABLESPACE {space}".encode())
        connection.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD 'x'".encode())
        connection.execute("CREATE DATABASE target STRATEGY file_copy")
        connection.execute(f"GRANT ALL ON DATABASE target TO {ROLE}".encode())
        connection.execute(f"GRANT SET ON PARAMETER session_replication_role TO {ROLE}".encode())
    target = make_conninfo(cluster.connect_string, dbname="target")
    return target, make_conninfo(target, user=ROLE, password="x")


def live_seed(seed: int, cluster: EmbeddedPostgres, only: Sequence[str] = ()) -> Course:
    """Live through a seed.

    Raises:
        BrokenError: something does not hold.
    """
    target, own = new_target(cluster)
    apply = {"connect-string": own, "retry-seconds": 4, "answer-seconds": 2}
    with (
        tempfile.TemporaryDirectory() as place,
        served_source(Path(place) / "source") as served,
    ):
        return lived(Course(seed, Changed(served, target, apply), target, only))


def lived(course: Course) -> Course:
    """Live through a course, and return it.

    Raises:
        BrokenError: something does not hold; with what was done.
    """
    try:
        course.live()
    except Exception as error:
        story = "\n".join(f"    {one}" for one in course.story)
        if not isinstance(error, BrokenError):
            story += f"\n{traceback.format_exc()}"
        raise BrokenError(f"{error}\n{story}") from error
    finally:
        course.stranger.undo()
    return course


def in_this_process(patch: pytest.MonkeyPatch) -> None:
    """Decode and load in this process, and hold the changes of locked tables soon."""
    spark_or_not(patch, None)
    patch.setattr(copy_task, "HERE_BYTES", 1 << 40)
    patch.setattr(table_queue, "HOLD_SECONDS", _HOLD_SECONDS)
    patch.setattr("olr_pg.observability.logging_setup.configure_logging", lambda *_, **__: None)


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--only", action="append", choices=ACTS, default=[])
    options = parser.parse_args()
    bad, codes = 0, Counter[str]()
    with (
        pytest.MonkeyPatch.context() as patch,
        own_cluster("fsync = off", "max_prepared_transactions = 5") as cluster,
    ):
        in_this_process(patch)
        for seed in range(options.first, options.first + options.count):
            try:
                course = live_seed(seed, cluster, options.only)
            except BrokenError as error:
                bad += 1
                sys.stdout.write(f"seed {seed}: BROKEN {error}\n")
            else:
                codes += course.codes
                sys.stdout.write(f"seed {seed}: right {dict(course.codes)}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{bad} broken; {codes}\n")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
