"""``olr-pg fallback``: replication from PostgreSQL back to Oracle after the cut-over."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from olr_pg.cli.config import ConfigOption, TargetOption
from olr_pg.cli.printing import print_json, print_line
from olr_pg.cli.shared_options import (
    JsonOption,
    TableOption,
    read_config,
    spark_session_of,
    table_names,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.config.model import Config
    from olr_pg.fallback.fallback_run import Status
    from olr_pg.fallback.oracle_ledger import LedgerState
    from olr_pg.fallback.value_report import TableReport
    from olr_pg.fallback.way_back import WayBack

EXIT_REFUSED: Final = 1

app = typer.Typer(
    help="Replicate from PostgreSQL back to Oracle after the cut-over.",
    no_args_is_help=True,
)

StoppedOption = Annotated[
    list[str],
    typer.Option(
        "--table",
        metavar="OWNER.NAME",
        help="The table, as OWNER.NAME; repeatable.",
        autocompletion=table_names,
    ),
]


@app.callback()
def fallback() -> None:
    """Replicate from PostgreSQL back to Oracle after the cut-over.

    Run `begin` before applications write to PostgreSQL, then `run`. Run `end` when you no longer
    need to go back. The section `fallback` contains the account that writes in Oracle.
    """


@app.command("report")
def report(
    config: ConfigOption,
    *,
    no_count: Annotated[
        bool,
        typer.Option("--no-count", help="Do not count rows; report only which values could occur."),
    ] = False,
    target_name: TargetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Report which values Oracle cannot store, before the cut-over.

    For each column, the report shows what does not fit, which policy applies, and how many rows are
    affected today. It changes nothing. Exit code 1 if a value would be refused.
    """
    from olr_pg.fallback.value_report import report_json, report_lines

    tables = _reports(read_config(config, target_name), count=not no_count)
    if as_json:
        print_json(report_json(tables))
    else:
        for line in report_lines(tables):
            print_line(line)
    if not all(table.is_ready for table in tables):
        raise typer.Exit(EXIT_REFUSED)


@app.command("begin")
def begin_command(
    config: ConfigOption, *, target_name: TargetOption = None, as_json: JsonOption = False
) -> None:
    """Begin the fallback: create publication and slot in PostgreSQL, the ledger in Oracle.

    Transactions that commit after this are replicated to Oracle. If the way back has already begun,
    it keeps its position, and the command publishes its tables again.
    """
    from olr_pg.appliance.opened_target import opened_target
    from olr_pg.fallback.fallback_run import prepare
    from olr_pg.fallback.pgoutput import lsn_text
    from olr_pg.fallback.preparation import begun_record
    from olr_pg.load.cutover.cut_back import open_ways_back
    from olr_pg.load.cutover_steps import begin_again

    loaded = read_config(config, target_name)
    with opened_target(loaded, ledger="required") as target, open_ways_back(loaded) as ways:
        found = [prepare(way) for way in ways]
        begin_again(target.connection, ways[0].subscription)
    if as_json:
        print_json(begun_record(found))
        return
    for one in found:
        print_line(
            f"The way back begins at LSN {lsn_text(one.lsn)}, with the replication slot {one.slot}."
        )


@app.command("run")
def run_command(
    config: ConfigOption,
    *,
    once: Annotated[
        bool,
        typer.Option(
            "--once",
            help="Exit when Oracle contains all transactions that were committed in PostgreSQL"
            " before the start of this command.",
        ),
    ] = False,
    target_name: TargetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Apply PostgreSQL's transactions to Oracle, in commit order, until Ctrl-C or SIGTERM.

    You can restart it at any time, also after a kill: nothing is applied twice or skipped. The
    command serves a status page at `fallback.metrics-address`, except with --once. With --once,
    exit code 1 means that tables are stopped.
    """
    from olr_pg.fallback.fallback_run import run_all
    from olr_pg.fallback.pgoutput import lsn_text
    from olr_pg.fallback.way_back_page import way_back_page
    from olr_pg.load.cutover.cut_back import check_not_taken_back, open_ways_back

    loaded = read_config(config, target_name)
    check_not_taken_back(loaded)
    last: dict[str, LedgerState] = {}

    def follow(way: WayBack, state: LedgerState) -> None:
        last[way.container] = state

    with open_ways_back(loaded) as ways, ExitStack() as stack:
        if not once and loaded.way_back.metrics_address is not None:
            page = stack.enter_context(way_back_page(loaded, ways))
            if not as_json:
                print_line(f"Status page: {page.url}", at_once=True)
        if not as_json:
            slots = ", ".join(way.slot for way in ways)
            print_line(f"Replicating from slot {slots} to Oracle …", at_once=True)
        try:
            run_all(ways, once=once, progress=follow)
        finally:
            for container, state in last.items():
                lsn = lsn_text(state.lsn)
                if as_json:
                    name = {"container": container} if container else {}
                    print_json({**name, "lsn": lsn, "transactions": state.transactions})
                else:
                    print_line(
                        f"{container or 'Oracle'} contains the transactions that were"
                        f" committed up to LSN {lsn}."
                    )


@app.command("status")
def status_command(
    config: ConfigOption, *, target_name: TargetOption = None, as_json: JsonOption = False
) -> None:
    """Show the progress of the fallback, and the WAL that PostgreSQL keeps for it."""
    from olr_pg.fallback.fallback_run import status_of_all
    from olr_pg.fallback.way_back_status import status_record

    with _ways(config, target_name) as ways:
        found = status_of_all(ways)
    if as_json:
        print_json(status_record(found))
        return
    for one in found.containers or (found,):
        if one.container:
            print_line(f"{one.container}:")
        for line in _status_lines(one):
            print_line(line)


@app.command("resume")
def resume_command(
    config: ConfigOption, *, table: StoppedOption, target_name: TargetOption = None
) -> None:
    """Resume stopped tables after you have corrected the cause.

    A `run` in progress resumes these tables within seconds; if none is in progress, the next `run`
    resumes them.
    """
    _resume(config, target_name, table, skip=False)


@app.command("skip")
def skip_command(
    config: ConfigOption, *, table: StoppedOption, target_name: TargetOption = None
) -> None:
    """Skip the transaction that stopped a table, and resume the table.

    The command skips all changes that the transaction made to this table; other tables get their
    changes of the transaction. Run `olr-pg fallback verify` afterwards, because later changes of
    these rows can conflict.
    """
    _resume(config, target_name, table, skip=True)


def _resume(config: Path, target_name: str | None, tables: list[str], *, skip: bool) -> None:
    from olr_pg.fallback.fallback_run import resume_table

    with _ways(config, target_name) as ways:
        for name in tables:
            resumed = any(resume_table(way, name, skip=skip) for way in ways)
            print_line(f"{name}: {'resumed, catching up' if resumed else 'is not stopped'}")


@app.command("verify")
def verify_command(
    config: ConfigOption,
    *,
    table: TableOption = None,
    target_name: TargetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the current rows of both databases; exit code 1 if they differ.

    Run `olr-pg fallback run --once` first, while no application writes; changes that are not
    applied yet count as differences.
    """
    from olr_pg.cli.migration.verify import both_sides, print_verification
    from olr_pg.load.cutover.cut_back import check_way_back
    from olr_pg.load.verification.verification import verify

    loaded = read_config(config, target_name)
    check_way_back(loaded)
    with ExitStack() as stack:
        source, settings = both_sides(stack, loaded)
        work = source.sources(source.choose(table or ()))
        found = verify(settings, work, lambda: spark_session_of(loaded))
        print_verification(settings, found, as_json=as_json)
    if found.failures:
        raise found.failures[0]
    if not found.identical:
        raise typer.Exit(1)


@app.command("cutover")
def cutover_command(
    config: ConfigOption,
    *,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="Do not compare the tables.")
    ] = False,
    target_name: TargetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Return to Oracle: apply the rest, compare, advance the sequences.

    Stop the applications and `olr-pg fallback run` first. Run this command again to continue where
    it stopped. The fallback exists until `olr-pg fallback end`.
    """
    from olr_pg.load.cutover.cut_back import cut_back, cut_back_lines
    from olr_pg.load.cutover.step_lines import begin_line
    from olr_pg.spark.session import stop_session

    loaded = read_config(config, target_name)

    def announce(step: str, title: str) -> None:
        if not as_json:
            print_line(begin_line(step, title), at_once=True)

    try:
        found = cut_back(
            loaded,
            lambda: spark_session_of(loaded),
            unverified=unverified,
            progress=announce,
        )
    finally:
        stop_session()
    if as_json:
        print_json({"finished": True, "steps": found})
        return
    for line in cut_back_lines(found):
        print_line(line)
    print_line(
        "Now let the applications use Oracle again. Then end the way back: olr-pg fallback end"
    )


@app.command("end")
def end_command(config: ConfigOption, *, target_name: TargetOption = None) -> None:
    """End the fallback: remove slot and publication in PostgreSQL, the ledger in Oracle.

    First, the command enables the triggers and foreign keys in Oracle that `fallback run` has
    disabled.

    Changes that are not applied by then never reach Oracle.
    """
    from olr_pg.fallback.fallback_run import end

    with _ways(config, target_name) as ways:
        for way in ways:
            end(way)
    print_line("The way back has ended.")


@contextmanager
def _ways(config: Path, target_name: str | None) -> Iterator[tuple[WayBack, ...]]:
    from olr_pg.load.cutover.cut_back import open_ways_back

    with open_ways_back(read_config(config, target_name)) as ways:
        yield ways


def _status_lines(found: Status) -> Iterator[str]:
    from olr_pg.fallback.pgoutput import lsn_text
    from olr_pg.observability.wording import counted

    slot, ledger = found.slot, found.ledger
    if found.begun is None and ledger is None:
        yield "The way back has not begun. To begin it, run `olr-pg fallback begin`."
        return
    if ledger is None:
        yield "The ledger of this way back is missing in Oracle."
    else:
        yield (
            "Oracle contains the transactions that were committed up to LSN"
            f" {lsn_text(ledger.lsn)}: {counted(ledger.transactions, 'transaction')}. Oracle is"
            f" {found.lag_bytes:,} bytes of WAL behind PostgreSQL."
        )
    if slot is None:
        yield "The replication slot does not exist."
    else:
        kept = "unknown" if slot.wal_bytes is None else f"{slot.wal_bytes:,} bytes"
        reader = "in use" if slot.is_active else "not in use"
        yield (
            f"Replication slot: {reader}; WAL status {slot.wal_status or 'unknown'}, {kept}"
            " of WAL kept"
        )
    for name, one in sorted(ledger.stops.items() if ledger else ()):
        state = f"STOPPED: {one.reason}" if one.is_stopped else "catching up"
        yield f"{name}: {state}; applied up to LSN {lsn_text(one.lsn)}"
    for record, count in found.records.items():
        times = counted(count, "time")
        yield f"{record.table}, {record.item}: {record.cause}, {record.policy} ({times})"
    if found.set_aside:
        yield "Disabled in Oracle until `olr-pg fallback cutover` or `end` runs these statements:"
    for statement in found.set_aside:
        yield f"    {statement};"


def _reports(config: Config, *, count: bool) -> list[TableReport]:
    from olr_pg.appliance.opened_target import opened_target
    from olr_pg.fallback.oracle_values import ValueSettings
    from olr_pg.fallback.value_report import report_values
    from olr_pg.load import sources

    way = config.way_back
    section = sources.apply_section(config)
    with (
        opened_target(config, ledger="unused") as (connection, target),
        sources.open_tables(config) as source,
    ):
        settings = sources.target_settings(config, source.snapshot, target)
        values = ValueSettings.of(way.policies, section, source.snapshot.database)
        chosen = source.choose(())
        found = report_values(connection, chosen, settings, values, count=count, omits=way.omits)
        return list(found)
