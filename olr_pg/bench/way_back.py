"""The benchmarks of the fallback to Oracle and of continuous verification.

The fallback: changes per second, compared with a simple executemany, and the latency from commit to
commit. A simulated Oracle server (the stand-in), in a separate process, executes the SQL in place
of Oracle. The stand-in executes statements row by row and is much slower than Oracle. So only the
ratio of the two clients of the same server is meaningful, not the absolute figures.

Continuous verification: how much it delays replication. The benchmark replicates the same source
once without and once with continuous verification. The verification has the default budget, which
is not reduced while replication lags. The source's redo is written at a fixed rate, and the
latencies of its commits are compared. The share of a core that the verification's process uses is
compared with the budget, which also covers the statements of the source and of the target.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import oracledb
import orjson
import psycopg

from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.bench.inputs import Cluster, running
from olr_pg.bench.measure import Result, Sample, compared, cpu_of_process_tree, measured, peak_mib
from olr_pg.bench.online_latency import CONFIG, LOW, commits, flushes_of, latencies, replicated
from olr_pg.config.model import Verify
from olr_pg.config.reading import load_config
from olr_pg.fallback.fallback_run import prepare, run
from olr_pg.load.cutover.cut_back import open_ways_back

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from olr_pg.bench.suite import Options
    from olr_pg.fallback.way_back import WayBack

_ROWS_MAX: Final = 20_000
_BATCH: Final = 2_000
_COMMITS: Final = 40
_POLL_SECONDS: Final = 0.002
_WAIT_SECONDS: Final = 120.0
_COLUMNS: Final = "(id NUMBER(10) PRIMARY KEY, name VARCHAR2(40), price NUMBER(12,2), made DATE)"
_ORACLE: Final = f"""-- purpose: the tables of the benchmark of the way back
CREATE TABLE back {_COLUMNS};
CREATE TABLE plain {_COLUMNS};
"""
_POSTGRES: Final = """
CREATE SCHEMA app;
CREATE TABLE app.back (id bigint PRIMARY KEY, name varchar(40), price numeric(12,2),
    made timestamp(0));
"""
_INSERT: Final = """
INSERT INTO app.back SELECT n, 'name of ' || n, n / 4.0, timestamp '2024-01-01' + n * interval '1 s'
FROM generate_series(%s::int, %s::int) n
"""
_TRANSACTION: Final = 100
_COMMAND: Final = "from olr_pg.cli.entry import run; run()"


def fallback(options: Options) -> Iterator[Result]:
    """Yield changes per second, and milliseconds from a commit in PostgreSQL to the commit in
    Oracle.
    """
    rows = min(options.rows, _ROWS_MAX)
    with (
        running([options.folder / "postgres"]) as (cluster,),
        _served(options.folder) as (document, dsn),
    ):
        target = cluster.new_database()
        with psycopg.connect(target, autocommit=True) as connection:
            connection.execute(_POSTGRES)
            ensure_ledger(connection)
        config = _config(options.folder, document, target)
        with open_ways_back(load_config(config)) as (way,):
            prepare(way)
            yield _throughput(way, cluster, target, dsn, rows, options.runs)
        yield _latency(config, target, dsn)
        with psycopg.connect(target, autocommit=True) as connection:
            connection.execute("SELECT pg_drop_replication_slot(%s)", (way.slot,))


def _throughput(
    way: WayBack, cluster: Cluster, target: str, dsn: str, rows: int, runs: int
) -> Result:
    """Compare the fallback with executemany, which inserts the same rows."""
    first = 1

    def back() -> Sample:
        nonlocal first
        with psycopg.connect(target) as connection:
            for start in range(first, first + rows, _TRANSACTION):
                last = min(start + _TRANSACTION, first + rows) - 1
                connection.execute(_INSERT, (start, last))
                connection.commit()
        first += rows

        def work() -> float:
            run(way, once=True)
            return rows

        return measured(work, [cluster.pid])

    def plain() -> Sample:
        with psycopg.connect(target) as connection:
            query = _INSERT.replace("INSERT INTO app.back ", "")
            made = connection.execute(query, (first, first + rows - 1)).fetchall()

        def work() -> float:
            with closing(_connect(dsn)) as oracle, oracle.cursor() as cursor:
                for at in range(0, len(made), _BATCH):
                    cursor.executemany(
                        "INSERT INTO plain VALUES (:1, :2, :3, :4)", made[at : at + _BATCH]
                    )
                    oracle.commit()
            return rows

        return measured(work)

    return compared(
        "way back, inserts", "changes/s", back, anchor="executemany", anchor_run=plain, runs=runs
    )


def _latency(config: Path, target: str, dsn: str) -> Result:
    """Measure from the end of a commit in PostgreSQL until Oracle shows the row."""
    process = subprocess.Popen(  # noqa: S603 - ourselves
        [sys.executable, "-c", _COMMAND, "fallback", "run", "--config", str(config)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        seconds = list[float]()
        with (
            psycopg.connect(target, autocommit=True) as connection,
            closing(_connect(dsn)) as oracle,
        ):
            for number in range(_COMMITS + 1):
                key = 1_000_000_000 + number
                connection.execute(_INSERT, (key, key))
                start = time.perf_counter()
                _await(process, oracle, key)
                if number:  # ignore the first change, which includes the start of the process
                    seconds.append(time.perf_counter() - start)
        cpu, peak = cpu_of_process_tree(process.pid), peak_mib([process.pid])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
    value = 1000 * median(seconds)
    return Result("way back, from commit to commit", value, "ms", "", None, None, cpu, peak)


def _await(process: subprocess.Popen[bytes], oracle: oracledb.Connection, key: int) -> None:
    until = time.monotonic() + _WAIT_SECONDS
    with oracle.cursor() as cursor:
        while True:
            cursor.execute("SELECT COUNT(*) FROM back WHERE id = :1", [key])
            if cursor.fetchone() == (1,):
                return
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"row {key} has not arrived; exit code {process.poll()}")
            time.sleep(_POLL_SECONDS)


@contextmanager
def _served(folder: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """Run the stand-in in a separate process; yield its configuration and its address."""
    script, source = folder / "tables.sql", folder / "source"
    script.write_text(_ORACLE, "utf-8")
    options = ["--seed", "4", "--out", str(source), "--sql", str(script), "--serve", "0"]
    with subprocess.Popen(  # noqa: S603 - ourselves
        [sys.executable, "-c", _COMMAND, "simulate", *options],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.startswith("serving: "):
                    break
            else:
                raise RuntimeError("the stand-in does not start")
            document: dict[str, Any] = json.loads((source / "olr-pg.json").read_text("utf-8"))
            yield document, str(document["source"]["server"])
        finally:
            process.send_signal(signal.SIGINT)


def _config(folder: Path, document: dict[str, Any], target: str) -> Path:
    path = folder / "way-back.json"
    document |= {
        "context": {"data": str(folder / "data")},
        "apply": {"connect-string": target, "tables": ["APP.BACK"]},
        "fallback": {"user": "app", "password": "olr"},
    }
    path.write_text(json.dumps(document), "utf-8")
    return path


def _connect(dsn: str) -> oracledb.Connection:
    return oracledb.connect(user="app", password="olr", dsn=dsn)  # noqa: S106 - the stand-in's


_VERIFY: Final = {"continuous": "report", "lag-max": 1_000_000}
_SHARES: Final = (("median", 0.5), ("99 %", 0.99))


class _Run(NamedTuple):
    """The measurements of a run.

    Attributes:
        seconds: the latencies, in ascending order.
        share: share of a core that the verification's process used.
    """

    seconds: Sequence[float]
    share: float
    cpu_seconds: float
    peak_rss_mib: float


def verification(options: Options) -> Iterator[Result]:
    """Yield the latencies of commits beside continuous verification, in milliseconds, with the
    latencies without it as anchor; and the CPU time of the verification.
    """
    name, rate = LOW
    pairs = []
    for number in range(options.runs):
        folder = options.folder / str(number)
        plain = _run(folder / "plain", rate, options.seconds, {})
        pairs.append((plain, _run(folder / "verified", rate, options.seconds, _VERIFY)))
    runs = [verified for _, verified in pairs]
    beside = median(one.cpu_seconds for one in runs), max(one.peak_rss_mib for one in runs)
    for what, share in _SHARES:
        values = [(_at(plain, share), _at(verified, share)) for plain, verified in pairs]
        yield Result(
            f"online redo, {name}, verified: {what}",
            median(verified for _, verified in values),
            "ms",
            "not verified",
            median(plain for plain, _ in values),
            median(verified / plain for plain, verified in values),
            *beside,
        )
    used, budget = 100 * median(one.share for one in runs), Verify().share
    yield Result(
        f"online redo, {name}: CPU of the verification", used, "% of a core",
        "budget", budget, used / budget, *beside,
    )  # fmt: skip


def _at(run: _Run, share: float) -> float:
    """Return the latency in milliseconds that a share of the commits does not exceed."""
    return 1000 * run.seconds[int(share * (len(run.seconds) - 1))]


def _run(folder: Path, rate: str, seconds: float, verify: Mapping[str, Any]) -> _Run:
    folder.mkdir(parents=True)
    watched = replicated(folder, rate, seconds, _live, {"verify": verify})
    source = folder / "source"
    found = latencies(commits(source / "truth.jsonl"), flushes_of(source), watched.seen)
    return _Run(found, watched.verifying_share, watched.cpu_seconds, watched.peak_rss_mib)


def _live(source: Path) -> dict[str, Any]:
    """Return the section `source` for a simulated database that answers queries, whose online logs
    are read in place.
    """
    section: dict[str, Any] = orjson.loads((source / CONFIG).read_bytes())["source"]
    return section | {"redo": "online"}
