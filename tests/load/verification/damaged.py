"""Histories whose copy is damaged at random: continuous verification finds it, and mends it.

    uv run python -m tests.load.verification.damaged --count 200

Of each seed a source is simulated and its tables loaded. A walk over the copy as it is must find
nothing; one over the copy with one row damaged (a value, a LOB, a lost row, an extra one) just that
row, which is mended, and a last walk nothing. Exit code 1 if a seed is otherwise.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import psycopg
from psycopg import sql

from olr_pg.load import sources
from olr_pg.load.verification.continuous import Budget, ContinuousVerification, Mending
from olr_pg.postgres.embedded import start_embedded
from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.sessions.workload import DdlUse
from olr_pg.simulator.simulation import random_workload
from tests.load.conftest import Project
from tests.load.table_data import simulated

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from olr_pg.monitor.proofs import Proof

    Connection = psycopg.Connection[tuple[object, ...]]

SIZE = 40_000


class Checked(NamedTuple):
    """What a seed came to: a fault is empty where all was right."""

    damage: str
    fault: str = ""


def check_seed(seed: int, folder: Path, database: str) -> Checked:
    """Damage the copy of a seed's tables, and see what is found."""
    # The dictionary is that of the start.
    shape = replace(choose_shape(seed, "random"), ddl=DdlUse.NONE)
    source = simulated(seed, folder / "source", SIZE, shape, random_workload)
    project = Project(folder, source, database, _no_session)
    project.tables = source.folder / "final"
    project.apply = {
        "schema-mapping": {"SIM": f"damaged_{seed}"},
        "subscription": f"damaged-{seed}",
    }
    project.load()
    with psycopg.connect(database, autocommit=True) as connection:
        try:
            return _check(project, connection, Random(seed), f"damaged_{seed}")
        finally:
            schema = sql.Identifier(f"damaged_{seed}")
            connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(schema))


def _check(project: Project, connection: Connection, rng: Random, schema: str) -> Checked:
    wrong = [proof for proof in _walk(project, None) if not proof.is_equal]
    if wrong:
        return Checked("none", f"false alarm: {wrong}")
    damage = _damage(connection, rng, schema)
    if damage is None:
        return Checked("no row to damage")
    table, words = damage
    found = [proof for proof in _walk(project, None) if not proof.is_equal]
    # Without a key, a row with another value is one that lacks and one too many.
    names = [one.table.partition(".")[2].lower() for one in found]
    count = sum(one.differences for one in found)
    is_changed = words in ("a value", "a LOB")
    if names != [table] or count not in ((1, 2) if is_changed else (1,)):
        return Checked(words, f"{words} of {table}, but found {found}")
    mended = sum(proof.mended for proof in _walk(project, Mending(count)))
    wrong = [proof for proof in _walk(project, None) if not proof.is_equal]
    if mended != count or wrong:
        return Checked(words, f"{words} of {table}: {mended} mended, then {wrong}")
    return Checked(words)


def _walk(project: Project, mending: Mending | None) -> list[Proof]:
    """Compare each table once."""
    config = project.config()
    snapshot = sources.read_dictionary(config)
    settings = sources.target_settings(config, snapshot, project.database)
    with sources.open_tables(config) as source:
        verification = ContinuousVerification(
            settings, source, project.folder, _no_session, mending, lambda _: None
        )
        tables = source.choose(())
        return list(islice(verification.walk(tables, Budget(1.0)), len(tables)))


def _damage(connection: Connection, rng: Random, schema: str) -> tuple[str, str] | None:
    """Damage a row; return its table and what was done, None where no table has a row."""
    names = connection.execute(
        "SELECT relname::text FROM pg_class WHERE relnamespace = to_regnamespace(%s)"
        " AND relkind = 'r' ORDER BY 1",
        (schema,),
    ).fetchall()
    tables = [str(name) for (name,) in names]
    for name in rng.sample(tables, len(tables)):
        words = damage_row(connection, rng, f"{schema}.{name}")
        if words:
            return name, words
    return None


def damage_row(
    connection: Connection, rng: Random, name: str, row: str = "", without: Collection[str] = ()
) -> str:
    """Damage a row of a table; return what was done, nothing where it has no row.

    Args:
        name: ``schema.table``.
        row: a condition of the row; empty for any row.
        without: columns whose values are left as they are.
    """
    table = sql.Identifier(*name.split("."))
    place: sql.Composable = sql.SQL(row)
    if not row:
        rows = connection.execute(sql.SQL("SELECT ctid::text FROM {}").format(table)).fetchall()
        if not rows:
            return ""
        place = sql.SQL("ctid = {}::tid").format(sql.Literal(rng.choice(rows)[0]))
    change = partial(_change, without=without)
    kinds: list[Callable[..., str]] = [change, _lose, _add]
    found = (kind(connection, rng, table, place) for kind in rng.sample(kinds, 3))
    return next(filter(None, found), "")


def _lose(connection: Connection, _: Random, table: sql.Identifier, place: sql.Composable) -> str:
    connection.execute(sql.SQL("DELETE FROM {} WHERE {}").format(table, place))
    return "a lost row"


def _add(connection: Connection, _: Random, table: sql.Identifier, place: sql.Composable) -> str:
    with connection.transaction():
        copied = sql.SQL("CREATE TEMP TABLE extra ON COMMIT DROP AS SELECT * FROM {} WHERE {}")
        connection.execute(copied.format(table, place))
        for column, kind in connection.execute(_KEY, (table.as_string(),)).fetchall():
            name = sql.Identifier(str(column))
            value = _UNUSED.get(str(kind)) or sql.SQL("(SELECT max({}) + 1 FROM {})").format(
                name, table
            )
            connection.execute(sql.SQL("UPDATE extra SET {} = {}").format(name, value))
        connection.execute(sql.SQL("INSERT INTO {} SELECT * FROM extra").format(table))
    return "an extra row"


_KEY = """
SELECT attname::text, format_type(atttypid, NULL)
FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY(indkey)
WHERE indrelid = %s::regclass AND indisprimary
"""


_UNUSED = {
    "character varying": sql.SQL("'~extra'"),
    "character": sql.SQL("'~extra'"),
    "bytea": sql.SQL("'\\xffffff'"),
    "timestamp without time zone": sql.SQL("'2099-01-01'"),
}
"""Keys that no row has, by type."""


def _change(
    connection: Connection,
    rng: Random,
    table: sql.Identifier,
    place: sql.Composable,
    without: Collection[str],
) -> str:
    columns = connection.execute(
        "SELECT attname::text, format_type(atttypid, NULL), attname LIKE 'lob%%'"
        " FROM pg_attribute a"
        " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND NOT EXISTS ("
        "     SELECT FROM pg_index WHERE indrelid = attrelid AND attnum = ANY(indkey)"
        "     AND indisprimary)",
        (table.as_string(),),
    ).fetchall()
    for column, kind, is_lob in rng.sample(columns, len(columns)):
        name = sql.Identifier(str(column))
        if kind not in _OTHERS or column in without:
            continue
        query = sql.SQL("UPDATE {} SET {} = {} WHERE {} AND {} IS NOT NULL")
        other = sql.SQL(_OTHERS[str(kind)]).format(name)
        try:
            done = connection.execute(query.format(table, name, other, place, name))
        except psycopg.DataError:
            continue  # it was as large as it may be
        if done.rowcount:
            return "a LOB" if is_lob else "a value"
    return ""


_OTHERS = {
    **dict.fromkeys(("smallint", "integer", "bigint"), "{} + 1"),
    "numeric": "CASE WHEN {0} > 1 THEN {0} - 1 ELSE {0} + 1 END",
    "text": "{} || 'x'",
    "character varying": "left({0}, -1) || CASE WHEN right({0}, 1) = 'x' THEN 'y' ELSE 'x' END",
    "bytea": "{} || decode('01', 'hex')",
    "character": "CASE WHEN {0} = 'x' THEN 'y' ELSE 'x' END",
    **dict.fromkeys(
        ("real", "double precision"),
        "CASE WHEN abs({0}) > 1e30 THEN 1 WHEN abs({0}) > 1 THEN {0} / 2 ELSE {0} + 1000 END",
    ),
    **dict.fromkeys(
        ("timestamp without time zone", "timestamp with time zone"), "{} + interval '1 second'"
    ),
    "interval": "-{} - interval '1 month 1 day'",
}


def _no_session() -> NoReturn:
    raise AssertionError("so few rows are compared in this process")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.load.verification.damaged")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1)
    options = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="olr-pg-damaged-"))
    cluster = start_embedded(home)
    faults, kinds = 0, dict[str, int]()
    try:
        for seed in range(options.seed, options.seed + options.count):
            folder = Path(tempfile.mkdtemp(prefix=f"olr-pg-damaged-{seed}-"))
            found = check_seed(seed, folder, cluster.connect_string)
            shutil.rmtree(folder)
            kinds[found.damage] = kinds.get(found.damage, 0) + 1
            if found.fault:
                faults += 1
                sys.stdout.write(f"seed {seed} FAILED: {found.fault}\n")
                sys.stdout.flush()
        sys.stdout.write(f"{options.count - faults} of {options.count} right; {kinds}\n")
    finally:
        cluster.stop()
        shutil.rmtree(home)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
