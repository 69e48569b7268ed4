"""``olr-pg simulate``: writes archived logs of a simulated database, its dictionary, and its true
changes.

``olr-pg simulate --sql`` executes a file of SQL, and can serve a port that executes more SQL.
``olr-pg demo`` shows replication with a simulated Oracle.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from olr_pg.cli.printing import flush, log_to_stderr, print_json, print_line
from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.simulator.sessions.row_shape import (
    COLUMNS_MAX,
    COLUMNS_MIN,
    ROW_BYTES_MAX,
    ROW_BYTES_MIN,
    RowShape,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.fields.redo_format import SourceMode
    from olr_pg.simulator.live import LiveOptions
    from olr_pg.simulator.oracle_net.serve import LiveServer, StandIn
    from olr_pg.simulator.simulated_files import Summary


def simulate_sql(seed: int, out: Path, file: Path, shape: DatabaseShape) -> Summary:
    """Execute a file of SQL; return a summary of the written files."""
    from olr_pg.proving.scenario import read_scenario
    from olr_pg.simulator.sql.scripts import simulate_script

    scenario = read_scenario(file)
    return simulate_script(seed, out, shape, scenario.steps, scenario.start)


@contextmanager
def serving_sql(
    seed: int, out: Path, file: Path, shape: DatabaseShape, place: tuple[int, float]
) -> Iterator[StandIn]:
    """Execute a file of SQL; while the context is active, serve a port that executes more SQL.

    Args:
        place: the port, and the number of seconds between log switches.
    """
    from olr_pg.proving.scenario import read_scenario
    from olr_pg.simulator.oracle_net.serve import SqlServer
    from olr_pg.simulator.sql.scripts import run_script

    scenario = read_scenario(file)
    port, seconds = place
    with SqlServer(seed, out, shape, port=port, switch_seconds=seconds) as served:
        run_script(served.database, scenario.steps)
        print_line(f"SQL of {served.database.owner}, with the password olr")
        yield served.server


THREADS_MAX: Final = 8
USUAL: Final = RowShape()
LOG_SECONDS: Final = 10
"""Seconds of redo in a log, with ``--live``."""
LOGS_PER_SIZE: Final = 16
"""Number of logs into which the redo of a simulation is divided."""


class Release(StrEnum):
    """The values of ``--version``."""

    R11_2 = "11.2"
    R12_1 = "12.1"
    R12_2 = "12.2"
    R18 = "18"
    R19 = "19"
    R21 = "21"
    R23 = "23"


class BlockSize(StrEnum):
    """The values of ``--block-size``."""

    B512 = "512"
    B1024 = "1024"
    B4096 = "4096"


def simulate(
    *,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Seed of the random choices, for everything that the options do not set.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="The output directory. The command creates it if it does not exist. The"
            " directory must not contain logs.",
        ),
    ],
    workload: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="random: random tables, types and actions; orders: a shop, like TPC-C; bulk: array"
            " inserts; wide: updates of wide rows; lobs: documents of up to 128 KiB.",
        ),
    ] = "random",
    size: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Approximate amount of redo to write: bytes, or for example 500KB, 1MB, 1GB;"
            " default: 256KiB.",
        ),
    ] = None,
    version: Annotated[
        Release | None,
        typer.Option(
            metavar="RELEASE",
            help="COMPATIBLE of the simulated database: 11.2, 12.1, 12.2, 18, 19, 21 or 23."
            " Default: chosen by the seed.",
        ),
    ] = None,
    big_endian: Annotated[
        bool | None,
        typer.Option(
            "--big-endian/--little-endian",
            help="Byte order of the logs. Default: chosen by the seed.",
        ),
    ] = None,
    block_size: Annotated[
        BlockSize | None,
        typer.Option(
            metavar="BYTES",
            help="Block size of the logs: 512, 1024 or 4096. Default: chosen by the seed.",
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=THREADS_MAX,
            metavar="N",
            help="Number of redo threads, as in RAC; default: 1.",
        ),
    ] = None,
    containers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=2,
            metavar="N",
            help=(
                "Number of PDBs whose changes truth.jsonl contains. With 2 (only random and"
                " lobs), both PDBs have the same schema and tables. Default: 1 or none, chosen by"
                " the seed."
            ),
        ),
    ] = None,
    prefilled: Annotated[
        bool,
        typer.Option(
            "--prefilled",
            help="The tables of orders and wide have rows before the first redo; tables/"
            " contains these rows.",
        ),
    ] = False,
    nologging: Annotated[
        bool,
        typer.Option(
            "--nologging",
            help="Some direct-path loads of random write no redo except the range of their"
            " blocks (opcode 19.2); unlogged.jsonl lists them.",
        ),
    ] = False,
    mode: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODE",
            help="A variant of the redo format, such as shared-undo or encrypted; repeatable."
            " docs/simulator.md lists all variants. Default: chosen by the seed.",
        ),
    ] = None,
    truth: Annotated[
        bool,
        typer.Option(
            "--truth/--no-truth",
            help="Write truth.jsonl. The workloads random and lobs always write truth.jsonl.",
        ),
    ] = True,
    copies: Annotated[
        bool,
        typer.Option(
            "--copies/--no-copies",
            help="For 8 MB or more, write orders, bulk and wide as copies of a part of 4 MB."
            " Without copies, each change is generated separately, which takes a second"
            " per 2 to 6 MB.",
        ),
    ] = True,
    columns: Annotated[
        int,
        typer.Option(
            min=COLUMNS_MIN,
            max=COLUMNS_MAX,
            metavar="N",
            help="wide: number of columns of the table.",
        ),
    ] = USUAL.columns,
    column_sets: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="wide: number of different sets of columns that UPDATEs change; 0: each"
            " UPDATE has a random set.",
        ),
    ] = USUAL.sets,
    set_columns: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="wide: maximum number of columns that an UPDATE changes."
        ),
    ] = USUAL.set_max,
    nulls: Annotated[
        float,
        typer.Option(
            min=0.0, max=1.0, metavar="P", help="wide: share of NULLs in columns that allow NULL."
        ),
    ] = USUAL.nulls,
    row_bytes: Annotated[
        int | None,
        typer.Option(
            min=ROW_BYTES_MIN,
            max=ROW_BYTES_MAX,
            metavar="BYTES",
            help="wide: approximate size of a row without NULLs. Default: given by the types"
            " of the columns.",
        ),
    ] = None,
    statements: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="wide: number of statements in each transaction; 0: one transaction contains"
            " all statements. Default: four on average.",
        ),
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Run continuously like a database, with online logs, until Ctrl-C. --size is"
            " ignored.",
        ),
    ] = False,
    rate: Annotated[
        str, typer.Option(metavar="SIZE", help="With --live: amount of redo per second.")
    ] = "200KB",
    switch_seconds: Annotated[
        float,
        typer.Option(
            min=0.1,
            metavar="S",
            help="With --live or --sql: seconds between two log switches.",
        ),
    ] = 2.0,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--for", min=0.1, metavar="S", help="With --live: end after this number of seconds."
        ),
    ] = None,
    ahead: Annotated[
        bool,
        typer.Option(
            "--ahead",
            help="With --live --for: generate all redo first, then write it at its rate, so"
            " that writing needs almost no CPU.",
        ),
    ] = False,
    growing: Annotated[
        bool,
        typer.Option(
            "--growing",
            help="With --live: write archived logs in place, instead of renaming"
            " each log when it is complete.",
        ),
    ] = False,
    groups: Annotated[
        int,
        typer.Option(
            min=2,
            max=99,
            metavar="N",
            help="With --live: number of online log groups of each thread.",
        ),
    ] = 3,
    members: Annotated[
        int,
        typer.Option(
            min=1,
            max=9,
            metavar="N",
            help="With --live: number of members of each online log group.",
        ),
    ] = 2,
    flush_ms: Annotated[
        float,
        typer.Option(
            min=0.1,
            metavar="MS",
            help="With --live: time between two writes of the redo buffer to the online log.",
        ),
    ] = 10.0,
    archive_lag: Annotated[
        int,
        typer.Option(
            min=-1,
            metavar="N",
            help="With --live: archive a log at most this number of log switches late; -1:"
            " never archive (NOARCHIVELOG).",
        ),
    ] = 0,
    idle_threads: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="With --live: number of threads without sessions."),
    ] = 0,
    crash_seconds: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            metavar="S",
            help="With --live: seconds between two crashes of an instance,"
            " each followed by a recovery.",
        ),
    ] = None,
    resetlogs_seconds: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            metavar="S",
            help="With --live: seconds between two OPEN RESETLOGS of the database.",
        ),
    ] = None,
    member_faults: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            metavar="P",
            help="With --live: probability at each log switch that a member of the group is"
            " lost, becomes unreadable, or is repaired.",
        ),
    ] = 0.0,
    sql: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Run the SQL in FILE instead of a workload. With --serve, also accept SQL"
            " afterwards, from the user app with the password olr. docs/simulator.md"
            " describes the syntax for sessions and expected errors.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
    serve: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65_535,
            metavar="PORT",
            help="Serve as this Oracle database on this port of the loopback address (0: any"
            " free port), until interrupted. The command serves after all redo is written; with"
            " --live, it also serves while it writes. Service SIM, user olr, password olr.",
        ),
    ] = None,
    archive_every: Annotated[
        float,
        typer.Option(
            min=0.0,
            metavar="SECONDS",
            help="With --serve, without --live: seconds between two archived logs.",
        ),
    ] = 0.0,
) -> None:
    """Write archived redo logs from a seeded workload, with their dictionary and the truth.

    DIR gets logs/, dictionary.json, truth.jsonl (what decode must print), and the tables' rows as
    Parquet at the start (tables/) and at the end (final/). The command always writes the same bytes
    for the same options.
    """
    wanted = None if size is None else _parse_size(size, "--size")
    from olr_pg.simulator.database_shape import DEFAULT_SIZE, choose_shape
    from olr_pg.simulator.fields.redo_format import COMPATIBLE
    from olr_pg.simulator.live import LiveOptions, simulate_live
    from olr_pg.simulator.simulation import simulate as write_simulation

    _check_containers(containers, workload, version)
    if mode and workload not in ("random", "lobs"):
        raise typer.BadParameter(
            f"{workload} has no modes: random and lobs do", param_hint="--mode"
        )
    rows = RowShape(columns, column_sets, set_columns, nulls, row_bytes, statements)
    if workload != "wide" and rows != USUAL:
        raise typer.BadParameter(
            f"the rows of {workload} cannot be chosen, only those of wide", param_hint="--workload"
        )
    size_bytes = DEFAULT_SIZE if wanted is None else wanted
    options = LiveOptions(
        _parse_size(rate, "--rate"),
        switch_seconds,
        growing=growing,
        groups=groups,
        members=members,
        flush_ms=flush_ms,
        archive_lag=None if archive_lag < 0 else archive_lag,
        seconds=seconds,
        ahead=ahead,
        crash_seconds=crash_seconds,
        resetlogs_seconds=resetlogs_seconds,
        idle_threads=idle_threads,
        member_faults=member_faults,
    )
    if live:
        _check_live(options, threads or 1)
        size_bytes = LOGS_PER_SIZE * int(options.rate * LOG_SECONDS)
    shape = choose_shape(
        seed,
        workload if sql is None else "orders",
        version=None if version is None else COMPATIBLE[version.value],
        big_endian=big_endian,
        block_size=None if block_size is None else int(block_size),
        threads=threads,
        size=size_bytes,
        unlogged=nologging,
        containers=containers,
        modes=None if mode is None else _parse_modes(mode),
        rows=rows,
    )
    server = _live_server(out, serve) if live and serve is not None else None
    with _writing_to(out):
        if sql is not None:
            if serve is None:
                summary = simulate_sql(seed, out, sql, shape)
                _print(summary_record(summary, "sql", out), as_json=as_json)
            else:
                serving = serving_sql(seed, out, sql, shape, (serve, switch_seconds))
                with serving as stand_in:
                    _announce(stand_in, out, has_rows=True)
                    interruption().wait()
            return
        if live:
            summary = simulate_live(
                *(seed, out, interruption(), options),
                workload=workload,
                shape=shape,
                truth=truth,
                prefilled=prefilled,
                watch=server,
            )
        else:
            summary = write_simulation(
                *(seed, out),
                workload=workload,
                size=size_bytes,
                shape=shape,
                truth=truth,
                prefilled=prefilled,
                copies=copies,
            )
    record = summary_record(summary, workload, out)
    if serve is not None and server is None:
        _serve(summary, record, out, (serve, archive_every), as_json=as_json)
        return
    _print(record, as_json=as_json)
    if server is not None:
        print_line("The database has stopped writing. Press Ctrl-C again to end it.", at_once=True)
        interruption().wait()
        server.close()


def _check_containers(containers: int | None, workload: str, version: Release | None) -> None:
    if containers and version is Release.R11_2:
        raise typer.BadParameter("11.2 has no PDBs", param_hint="--containers")
    if containers == 2 and workload not in ("random", "lobs"):
        raise typer.BadParameter(
            f"{workload} works in one PDB: random and lobs in two", param_hint="--containers"
        )


def _check_live(options: LiveOptions, threads: int) -> None:
    if options.rate < 1:
        raise typer.BadParameter("it must be positive", param_hint="--rate")
    if options.ahead and options.seconds is None:
        raise typer.BadParameter("--for sets the amount of redo", param_hint="--ahead")
    if options.idle_threads >= threads:
        raise typer.BadParameter(
            "at least one thread of --threads must have sessions", param_hint="--idle-threads"
        )


@contextmanager
def _writing_to(directory: Path) -> Iterator[None]:
    """Report errors of the file system."""
    try:
        yield
    except BrokenPipeError:
        raise  # an error of stdout is reported elsewhere
    except OSError as error:
        raise OlrPgError(
            Code.SIMULATION_DIRECTORY_UNUSABLE,
            f"{error.filename or directory}: {system_reason(error)}",
        ) from error


def _live_server(directory: Path, port: int) -> LiveServer:
    from olr_pg.simulator.oracle_net.serve import LiveServer

    return LiveServer(directory, port, lambda server: _announce(server, directory))


def _announce(server: StandIn, directory: Path, *, has_rows: bool = False) -> None:
    from pyarrow.parquet import read_metadata

    from olr_pg.simulator.oracle_net.serve import CONFIG, TABLES

    print_line(f"serving: {server.connect_string}")
    files = (directory / TABLES).glob("*.parquet")
    if has_rows or any(read_metadata(file).num_rows for file in files):
        print_line(f"load its rows first: olr-pg initial-load --config {directory / CONFIG}")
    print_line(f"replicate it: olr-pg run --config {directory / CONFIG}")
    flush()


def _serve(
    summary: Summary,
    record: dict[str, Any],
    directory: Path,
    place: tuple[int, float],
    *,
    as_json: bool,
) -> None:
    """Print how to connect (as JSON with `as_json`); then serve until the command is interrupted.

    Args:
        place: the port, and the number of seconds between two archived logs.
    """
    from olr_pg.simulator.oracle_net.serve import served

    port, every = place
    with served(summary, directory, port=port, every=every) as server:
        if not as_json:
            _announce(server, directory)
        _print(record, as_json=as_json)
        if as_json:
            _announce(server, directory)
        flush()
        threading.Event().wait()


def _print(record: dict[str, Any], *, as_json: bool) -> None:
    """Print a summary of the written files."""
    if as_json:
        print_json(record)
        return
    for key, value in record.items():
        print_line(f"{key.replace('_', ' ')}: {_text(value)}")


def interruption() -> threading.Event:
    """Return an event that Ctrl-C or SIGTERM sets, so that the work can end with cleanup."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop


def summary_record(summary: Summary, workload: str, directory: Path) -> dict[str, Any]:
    """Return the summary of the written files, as ``--json`` prints it."""
    from olr_pg.simulator.fields.redo_format import COMPATIBLE

    shape, redo = summary.shape, summary.shape.redo
    releases = {compatible: name for name, compatible in COMPATIBLE.items()}
    return {
        "directory": str(directory),
        "seed": summary.seed,
        "workload": workload,
        "version": releases[redo.version],
        "big_endian": redo.big_endian,
        "block_size": redo.block_size,
        "threads": shape.threads,
        "con_id": shape.con_id,
        "supplemental_logging": {t.full_name: t.logging.value for t in summary.tables},
        "logs": len(summary.logs),
        "log_bytes": summary.log_bytes,
        "transactions": summary.transactions,
        "changes": {kind.name.lower(): count for kind, count in summary.changes.items()},
        "rows": summary.rows,
    }


def _parse_modes(names: list[str]) -> list[SourceMode]:
    from olr_pg.simulator.fields.redo_format import SourceMode

    known = ", ".join(SourceMode)
    for name in names:
        if name not in tuple(SourceMode):
            raise typer.BadParameter(f"{name!r} is none of {known}", param_hint="--mode")
    return [SourceMode(name) for name in names]


def _parse_size(text: str, option: str) -> int:
    from pydantic import ByteSize, TypeAdapter, ValidationError

    try:
        return int(TypeAdapter(ByteSize).validate_python(text))
    except ValidationError:
        raise typer.BadParameter(
            f"not a size like 500KB, 1MB or 1GiB: {text!r}", param_hint=option
        ) from None


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key} {item}" for key, item in value.items())
    return str(value)


def demo(
    *,
    clean: Annotated[
        bool,
        typer.Option(
            "--clean",
            help="Do not run a demo. Remove the files of earlier demos and stop their PostgreSQL.",
        ),
    ] = False,
) -> None:
    """Replicate a simulated Oracle into an embedded PostgreSQL, and compare both.

    PostgreSQL keeps running afterwards. The command prints how to connect to it and how to stop it.
    """
    log_to_stderr()
    if clean:
        _clean()
        return
    from olr_pg.appliance.demo_run import run_demo

    raise typer.Exit(run_demo())


def _clean() -> None:
    from rich.filesize import decimal

    from olr_pg.appliance.demo_run import remove_demos

    kept = found = False
    for one in remove_demos():
        found = True
        if one.kept:
            kept = True
            print_line(f"kept: {one.folder}: {one.kept}")
        else:
            ended = ", its PostgreSQL was stopped" if one.stopped else ""
            print_line(f"removed: {one.folder}, {decimal(one.size)}{ended}", at_once=True)
    if not found:
        print_line("there are no files of earlier demos")
    if kept:
        raise typer.Exit(1)
