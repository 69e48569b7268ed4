"""``olr-pg initial-load``: loads whole tables as of an SCN into the target.

``olr-pg fetch-lobs``: fetches from the live source the LOB values that the redo did not contain.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from olr_pg.cli.config import ConfigOption, TargetOption
from olr_pg.cli.group import advised
from olr_pg.cli.printing import print_json, print_line, print_table, report_console, report_table
from olr_pg.cli.shared_options import (
    BeginCopyOption,
    CopyScnOption,
    CopySinceOption,
    EndCopyOption,
    JsonOption,
    TableOption,
    read_config,
    spark_session_of,
)
from olr_pg.load.row_progress import row_progress
from olr_pg.observability.wording import counted, span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from olr_pg.config.model import Config
    from olr_pg.datatypes.policies import Counters
    from olr_pg.load.copied_rows import Copy
    from olr_pg.load.initial import LoadedTable, LoadOptions
    from olr_pg.load.load_progress import LoadWatch
    from olr_pg.load.lob_fetching import FetchedTable
    from olr_pg.load.row_progress import RowProgress
    from olr_pg.load.table_data import SourceTable
    from olr_pg.load.target_structure import StructurePart

POLL_SECONDS: Final = 0.5


def initial_load(
    config: ConfigOption,
    *,
    table: TableOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted load.")] = False,
    restart: Annotated[
        bool,
        typer.Option(
            "--restart",
            help="Empty the tables of an interrupted load, and start the load from the beginning."
            " With --begin-copy, the copy begins again, at a later SCN.",
        ),
    ] = False,
    anew: Annotated[
        bool,
        typer.Option(
            "--anew",
            help=(
                "Empty the tables named with --table, and load them again, even if they are"
                " replicated or stopped. The appliance must not run meanwhile."
            ),
        ),
    ] = False,
    later_scn: Annotated[
        bool,
        typer.Option(
            "--later-scn",
            help="If Oracle has no undo for the SCN of a table any more, load the table again"
            " as of the current SCN (live source).",
        ),
    ] = False,
    begin_copy: BeginCopyOption = False,
    end_copy: EndCopyOption = False,
    scn: CopyScnOption = None,
    since: CopySinceOption = None,
    only_target: TargetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Load whole tables as of an SCN. Then `olr-pg run` continues from there.

    The rows come from the live database, or from the Parquet files in `source.tables`. With
    `apply.create-tables`, the command creates missing tables, with the keys, indexes and sequences
    of the dictionary. Use --resume to continue an interrupted load; nothing is loaded twice. If a
    table fails, the others are still loaded. The command then ends with the table's error, and
    --resume loads the rest.

    Another tool can copy the rows instead, between a command with --begin-copy and a command with
    --end-copy.
    """
    from olr_pg.load.initial import LoadOptions

    copy = copy_step(begin=begin_copy, end=end_copy, scn=scn, since=since)
    if resume + restart + anew + end_copy > 1 or (resume and begin_copy):
        raise typer.BadParameter(
            "only one of --resume, --restart, --anew, --begin-copy and --end-copy can be used;"
            " --begin-copy can be used with --restart or --anew"
        )
    if anew and not table:
        raise typer.BadParameter("--anew requires --table OWNER.NAME for each table to empty")
    load_tables(
        read_config(config, only_target),
        table or (),
        LoadOptions(resume or (copy is not None and not restart), restart, anew, copy),
        later_scn=later_scn,
        as_json=as_json,
    )
    if end_copy and not as_json:
        print_line(
            advised(
                "Run `olr-pg verify` first: a change of a wrong row stops the table, and a stopped"
                " table cannot be compared."
            )
        )


def copy_step(*, begin: bool, end: bool, scn: int | None, since: int | None) -> Copy | None:
    """Return the step of a copy that the options name; None if they name none.

    Raises:
        typer.BadParameter: the options contradict each other.
    """
    from olr_pg.load.copied_rows import Copy, CopyStep
    from olr_pg.load.table_data import LoadMoment

    if begin and end:
        raise typer.BadParameter("only one of --begin-copy and --end-copy can be used")
    if (scn is None) is not (since is None) or (scn is not None and not end):
        raise typer.BadParameter("--scn and --since are used together, with --end-copy")
    if not begin and not end:
        return None
    if scn is None or since is None:
        return Copy(CopyStep.BEGIN if begin else CopyStep.END)
    if since > scn:
        raise typer.BadParameter("--since must not be higher than --scn")
    return Copy(CopyStep.END, LoadMoment(scn, since))


def load_tables(
    loaded: Config,
    table: Sequence[str],
    options: LoadOptions,
    *,
    later_scn: bool = False,
    as_json: bool = False,
    is_added: bool = False,
) -> None:
    """Load tables of a configuration, and print the result.

    Args:
        loaded: the configuration; it has only one target.
        table: table names; empty for all of `apply.tables`.
        options: what to do with interrupted and loaded tables.
        later_scn: see the option of the command.
        is_added: whether `olr-pg tables add` adds the tables to the list.

    Raises:
        OlrPgError: the error of the first table that was not loaded; 8015, the tables cannot be
            added yet.
    """
    from olr_pg.appliance.data_lock import hold_data_lock
    from olr_pg.appliance.opened_target import open_target
    from olr_pg.appliance.target import data_directory, target_directory
    from olr_pg.applier.statements.target_plan import target_name
    from olr_pg.load import sources
    from olr_pg.load.copied_rows import CopyStep, copied_tables
    from olr_pg.load.initial import initial_load as load
    from olr_pg.load.load_page import load_page
    from olr_pg.load.stored_dictionaries import dictionaries_of
    from olr_pg.load.target_structure import StructureBuilder, raise_for_failures
    from olr_pg.observability.advised_commands import failure_record
    from olr_pg.spark.session import stop_session

    with ExitStack() as stack:
        if options.anew:
            stack.enter_context(hold_data_lock(data_directory(loaded)))
        source = stack.enter_context(sources.open_tables(loaded, for_load=True))
        snapshot = source.snapshot
        chosen = source.choose(table)
        if options.copy is None:
            work = source.sources(chosen)
        else:
            work = copied_tables(source, chosen, options.copy)
        stack.callback(stop_session)
        target = open_target(sources.apply_section(loaded), target_directory(loaded), stack)
        settings = sources.target_settings(loaded, snapshot, target)
        builder = None
        if settings.create_tables:
            builder = StructureBuilder(settings, snapshot.structure, source.choose(()))
        targets = {
            one.table.full_name: target_name(settings, one.table.owner, one.table.name)
            for one in work
        }
        stack.enter_context(load_progress(target, settings.subscription, targets, work))
        stack.enter_context(load_page(loaded, target, snapshot.database, targets, work))
        stored = dictionaries_of(loaded, source, settings)
        begins = options.copy is not None and options.copy.step is CopyStep.BEGIN
        names = [one.table.full_name for one in work]
        stored.add(names, is_later=begins or not is_added)
        if options.copy is None or begins:
            stored.store_begin()
        elif options.copy.moment is not None:
            stored.store_claimed(work[0].start_scn)
        done = load(
            settings,
            work,
            lambda: spark_session_of(loaded),
            options._replace(
                builder=builder,
                undo_retention=source.undo_retention,
                later=source.later if later_scn else None,
            ),
        )
        if source.moment is not None:
            stored.store(one.start_scn for one in done.tables if one.start_scn)
    parts = builder.parts if builder is not None else []
    if as_json:
        structure = [one._asdict() for one in parts]
        failures = [failure_record(failure) for failure in done.failures]
        tables = [_json(one) for one in done.tables]
        print_json({"tables": tables, "structure": structure, "failures": failures})
    else:
        if options.copy is None:
            _print_loaded(done.tables)
        elif options.copy.step is CopyStep.BEGIN:
            _print_begun(done.tables)
            return
        else:
            _print_copied(done.tables)
        _print_structure(parts)
        for failure in done.failures:
            print_line(f"not loaded: {failure}")
    if done.failures:
        raise done.failures[0]
    if builder is not None:
        raise_for_failures(builder.parts)


@contextmanager
def load_progress(
    target: str,
    subscription: str,
    targets: Mapping[str, tuple[str, str]],
    work: Sequence[SourceTable],
) -> Iterator[None]:
    """Show the progress of the load on stderr."""
    from olr_pg.load.load_progress import LoadWatch

    stop = threading.Event()
    with row_progress("loading", row_totals(work)) as progress:
        thread = threading.Thread(
            target=_watch,
            args=(lambda: LoadWatch(target, subscription, targets), progress, stop),
            name="olr-load-progress",
        )
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


def row_totals(work: Sequence[SourceTable], times: int = 1) -> dict[str, int | None]:
    """Return the number of rows of each table, multiplied by `times`; None if the source does not
    know it.
    """
    known = any(one.data.rows for one in work)
    return {one.table.full_name: times * one.data.rows if known else None for one in work}


def _watch(
    open_watch: Callable[[], LoadWatch], progress: RowProgress, stop: threading.Event
) -> None:
    """Show the load's progress until `stop` is set. Show nothing if there is no connection, or if
    the ledger's tables are missing.
    """
    import psycopg

    from olr_pg.errors import OlrPgError

    while not stop.is_set():
        try:
            with open_watch() as watch:
                while not stop.wait(POLL_SECONDS):
                    progress.update(watch.read())
        except (psycopg.Error, OlrPgError):
            stop.wait(POLL_SECONDS)


def _json(done: LoadedTable) -> dict[str, Any]:
    return {
        **done._asdict(),
        "seconds": round(done.seconds, 3),
        "losses": losses_json(done.losses),
    }


def losses_json(losses: Mapping[str, Counters]) -> dict[str, dict[str, int]]:
    """Return the counts of values that policies changed, by column; counts of 0 are left out."""
    return {
        column: {kind: count for kind, count in asdict(counters).items() if count}
        for column, counters in losses.items()
    }


def _print_begun(begun: Sequence[LoadedTable]) -> None:
    """Print which rows to copy. A table whose copy has begun before has an earlier SCN."""
    if not begun:
        print_line(
            "all tables are already loaded: there is nothing to copy. With --anew, the command"
            " empties loaded tables and begins a copy"
        )
        return
    for scn in sorted({one.scn for one in begun}):
        print_line(f"Copy the rows of these tables as of SCN {scn}:")
        for one in begun:
            if one.scn == scn:
                print_line(f"    {one.table} into {one.target}")
    print_line(
        "When the rows are in the target, repeat the command with --end-copy instead of"
        " --begin-copy. Until `olr-pg run` has read them, keep the archived logs from SCN"
        f" {min(one.start_scn for one in begun)} on."
    )


def _print_copied(copied: Sequence[LoadedTable]) -> None:
    for one in copied:
        print_line(f"{one.table}: `olr-pg run` replicates the changes after SCN {one.scn}")


def _print_loaded(done: Sequence[LoadedTable]) -> None:
    from rich.filesize import decimal

    numbers = ("SCN", "Rows", "Bytes", "Done after")
    grid = report_table("Table", "Target", numbers=numbers, title="Loaded")
    for one in done:
        grid.add_row(
            *(one.table, one.target, str(one.scn), f"{one.rows:,}", decimal(one.bytes)),
            span(one.seconds),
        )
    print_table(report_console(), grid)
    for one in done:
        if one.parts_before == one.parts > 0:
            print_line(f"{one.table}: already loaded, not loaded again (--anew loads it again)")
    for one in done:
        for column, counts in losses_json(one.losses).items():
            words = ", ".join(f"{count} {kind}" for kind, count in counts.items())
            print_line(f"{one.table}.{column}: {words}")


def _print_structure(parts: Sequence[StructurePart]) -> None:
    """Print how many objects of each kind were created, and each object that could not be
    created.
    """
    for kind in dict.fromkeys(part.kind for part in parts):
        states = Counter(part.state for part in parts if part.kind == kind)
        counts = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
        print_line(f"{kind}: {counts}")
    for part in parts:
        if part.reason:
            print_line(f"{part.table}: {part.kind} {part.name} {part.state}: {part.reason}")
        if part.definition:
            print_line(f"    {part.definition}")
    print_line(
        "initial-load does not create column defaults, check constraints, identity columns and"
        " virtual columns. If the source has them, they are listed above. initial-load neither"
        " creates nor lists triggers and views. `olr-pg schema apply` creates all of these that"
        " PostgreSQL accepts."
    )


EXIT_LEFT = 1


def fetch_lobs(
    config: ConfigOption,
    *,
    table: TableOption = None,
    target_name: TargetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch the LOB values that the target lacks from the live source.

    `olr-pg errors list` shows these values as incomplete. The command works with and without a
    running `olr-pg run`. Exit code 1 if some could not be fetched.
    """
    from olr_pg.load.lob_fetching import fetch_lobs as fetch

    done: list[FetchedTable] = []
    for one in fetch(read_config(config, target_name), table or ()):
        done.append(one)
        if not as_json:
            reason = f": {one.failure}" if one.failure else ""
            print_line(
                f"{one.table}: {counted(one.fetched, 'value')} fetched, {one.left} left{reason}"
            )
    if as_json:
        print_json({"tables": [one._asdict() for one in done]})
    elif not done:
        print_line("no table lacks LOB values")
    if any(one.left for one in done):
        raise typer.Exit(EXIT_LEFT)
